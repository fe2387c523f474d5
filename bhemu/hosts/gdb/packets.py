"""Packets of gdb's remote protocol over a connection: framing, acknowledgement, interrupts."""

import select
import socket

INTERRUPT = b"\x03"
MOST = 1 << 16  # bytes of one packet
_ESCAPE = 0x7D
_ESCAPED = b"#$*}"


class Closed(Exception):  # noqa: N818 (no error: the other side has gone)
    """The connection has ended."""


def checksum(data: bytes) -> bytes:
    """The two hexadecimal digits behind a packet."""
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
        """A whole packet of the buffer; what is none is dropped, as the protocol asks."""
        while self._buffer:
            if self._buffer[0] == INTERRUPT[0]:
                del self._buffer[0]
                return INTERRUPT
            start = self._buffer.find(b"$")
            if start != 0:
                del self._buffer[: start if start > 0 else len(self._buffer)]
                continue
            end = self._buffer.find(b"#")
            if end < 0 or len(self._buffer) < end + 3:
                if len(self._buffer) > MOST:
                    raise Closed
                return None
            data, sent = bytes(self._buffer[1:end]), bytes(self._buffer[end + 1 : end + 3])
            del self._buffer[: end + 3]
            right = checksum(data) == sent.lower()
            if self.acknowledge:
                self._send(b"+" if right else b"-")
            if right:
                return unescape(data)
        return None

    def send(self, data: bytes) -> None:
        """One packet; its acknowledgement is dropped with everything that is no packet."""
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
