"""Packets of gdb's remote protocol over a connection: framing, acknowledgement, interrupts."""

import select
import socket

INTERRUPT = b"\x03"
MOST = 1 << 16  # bytes of one packet
_ACKNOWLEDGEMENTS = (b"+", b"-")
_OUTSIDE = (*_ACKNOWLEDGEMENTS, b"$", INTERRUPT)  # all that a debugger sends between packets
_ESCAPE = 0x7D
_ESCAPED = b"#$*}"


class Closed(Exception):  # noqa: N818 (no error: the other side has gone)
    """The connection has ended."""


def checksum(data: bytes) -> bytes:
    """The two hexadecimal digits after a packet."""
    return b"%02x" % (sum(data) & 0xFF)


def escape(data: bytes) -> bytes:
    """Binary data as a packet carries it."""
    return b"".join(
        bytes((_ESCAPE, byte ^ 0x20)) if byte in _ESCAPED else bytes((byte,)) for byte in data
    )


def unescape(data: bytes) -> bytes:
    """What was escaped."""
    plain, following = bytearray(), False
    for byte in data:
        if following:
            plain.append(byte ^ 0x20)
            following = False
        elif byte == _ESCAPE:
            following = True
        else:
            plain.append(byte)
    return bytes(plain)


class Connection:
    """Reads and writes packets; `acknowledge` until the debugger asks for no acknowledgements."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._buffer = bytearray()
        self.acknowledge = True

    def interrupted(self) -> bool:
        """True when the debugger sent Ctrl-C; waits for nothing."""
        while select.select([self._link], [], [], 0)[0]:
            self._receive()
            if len(self._buffer) > MOST:
                break
        if INTERRUPT[0] not in self._buffer:
            return False
        self._buffer[:] = self._buffer.replace(INTERRUPT, b"")
        return True

    def packet(self) -> bytes:
        """The next packet's content, INTERRUPT for Ctrl-C; Closed when there is none any more."""
        while True:
            found = self._take()
            if found is not None:
                return found
            self._receive()

    def _take(self) -> bytes | None:
        """A whole packet of the buffer; acknowledgements are dropped.

        Closed for anything else outside of packets, before the packet in front of it is acted on:
        no debugger sends that, but a browser does, whose page may hold packets.
        """
        while self._buffer:
            first = self._buffer[:1]
            if first not in _OUTSIDE:
                raise Closed
            if first == INTERRUPT or first in _ACKNOWLEDGEMENTS:
                del self._buffer[0]
                if first == INTERRUPT:
                    return INTERRUPT
                continue
            end = self._buffer.find(b"#")
            if end < 0 or len(self._buffer) < end + 3:
                if len(self._buffer) > MOST:
                    raise Closed
                return None
            if self._buffer[end + 3 : end + 4] not in (b"", *_OUTSIDE):
                raise Closed
            data, sent = bytes(self._buffer[1:end]), bytes(self._buffer[end + 1 : end + 3])
            del self._buffer[: end + 3]
            right = checksum(data) == sent.lower()
            if self.acknowledge:
                self._send(b"+" if right else b"-")
            if right:
                return unescape(data)
        return None

    def send(self, data: bytes) -> None:
        """One packet; its acknowledgement is dropped when it comes."""
        self._send(b"$" + data + b"#" + checksum(data))

    def _send(self, data: bytes) -> None:
        try:
            self._link.sendall(data)
        except OSError:
            raise Closed from None

    def _receive(self) -> None:
        try:
            data = self._link.recv(1 << 16)
        except OSError:
            raise Closed from None
        if not data:
            raise Closed
        self._buffer += data
