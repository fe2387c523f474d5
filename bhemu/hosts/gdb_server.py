"""gdb's remote protocol: packets over a connection, and one answer to each."""

import contextlib
import re
import select
import socket
import struct
from collections.abc import Callable

from bhemu.errors import InputError
from bhemu.hosts import gdb_target
from bhemu.system import interrupts
from bhemu.tensix.state import CORES

INTERRUPT = b"\x03"
MOST = 1 << 16  # bytes of one packet
_ACKNOWLEDGEMENTS = (b"+", b"-")
_OUTSIDE = (*_ACKNOWLEDGEMENTS, b"$", INTERRUPT)  # all that a debugger sends between packets
_ESCAPE = 0x7D


class Closed(Exception):  # noqa: N818 (no error: the other side has gone)
    """The connection has ended."""


def checksum(data: bytes) -> bytes:
    """The two hexadecimal digits after a packet."""
    return b"%02x" % (sum(data) & 0xFF)


def escape(data: bytes) -> bytes:
    """Binary data as a packet carries it."""
    return re.sub(rb"[#$*}]", lambda found: bytes((_ESCAPE, found[0][0] ^ 0x20)), data)


def unescape(data: bytes) -> bytes:
    """What was escaped."""
    return re.sub(
        rb"}(.?)", lambda found: bytes(byte ^ 0x20 for byte in found[1]), data, flags=re.DOTALL
    )


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
            if (found := self._take()) is not None:
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


_FEATURES = (
    f"PacketSize={MOST // 4:x};QStartNoAckMode+;swbreak-;hwbreak-;vContSupported+;"
    "qXfer:features:read+;qXfer:threads:read+;qXfer:libraries:read+;qXfer:exec-file:read+;"
    "multiprocess-;ReverseStep+;ReverseContinue+"
)
_ERROR, _OK = b"E01", b"OK"
_ADDRESSES = 1 << 32
_ACCESS = {"0": "", "1": "", "2": "w", "3": "r", "4": "rw"}  # by kind of packet


def _numbers(text: str) -> list[int]:
    """Hexadecimal numbers between punctuation; ValueError for anything else."""
    return [int(part, 16) for part in re.split("[,:;=]", text)]


class Session:
    """One debugger at one target, until it leaves; `over` tells that it wants the server to end."""

    def __init__(self, target: gdb_target.Target, connection: Connection) -> None:
        self._target, self._connection = target, connection
        self._core = target.selected  # for registers and memory (Hg)
        self._running = target.selected  # for what runs (Hc)
        self.over = False
        self._left = False
        self._answers: dict[str, Callable[[str], bytes | None]] = {
            "?": lambda _: self._reply(gdb_target.Report(gdb_target.SIGNAL_NONE, self._core)),
            "H": self._choose,
            "T": lambda text: _OK if self._thread(text) is not None else _ERROR,
            "g": lambda _: self._target.registers(self._core).hex().encode(),
            "G": self._set_registers,
            "p": self._register,
            "P": self._set_register,
            "m": self._memory,
            "M": lambda text: self._write(text, bytes.fromhex),
            "X": lambda text: self._write(text, lambda data: data.encode("latin-1")),
            "Z": lambda text: self._point(text, add=True),
            "z": lambda text: self._point(text, add=False),
            "c": lambda _: self._resume(),
            "s": lambda _: self._step(self._running, 0, 0),
            "bc": lambda _: self._stop(self._target.reverse_resume(self._running)),
            "bs": lambda _: self._stop(self._target.reverse_step(self._running)),
            "vCont?": lambda _: b"vCont;c;C;s;S;t;r",
            "vCont": self._continue,
            "D": self._leave,
            "k": self._kill,
            "vKill": self._kill,
            "QStartNoAckMode": self._no_acknowledgements,
            "qSupported": lambda _: _FEATURES.encode(),
            "qC": lambda _: f"QC{self._core + 1:x}".encode(),
            "qAttached": lambda _: b"1",
            "qSymbol": lambda _: _OK,
            "qfThreadInfo": lambda _: b"m" + b",".join(b"%x" % (c + 1) for c in range(CORES)),
            "qsThreadInfo": lambda _: b"l",
            "qThreadExtraInfo": self._extra,
            "qXfer": self._transfer,
            "qRcmd": self._monitor,
        }

    def serve(self) -> None:
        """Answer packets until the debugger leaves."""
        while not self._left:
            if (answer := self._answer(self._connection.packet())) is not None:
                self._connection.send(answer)

    def _answer(self, packet: bytes) -> bytes | None:
        """What one packet is answered with; nothing known: nothing in it, as the protocol asks."""
        if packet == INTERRUPT:
            return self._reply(gdb_target.Report(gdb_target.SIGNAL_NONE, self._core))
        name, rest = self._split(packet.decode("latin-1"))
        if (action := self._answers.get(name)) is None:
            return b""
        try:
            return action(rest)
        except (ValueError, IndexError, InputError):
            return _ERROR  # text may be sent while the program runs only

    def _split(self, text: str) -> tuple[str, str]:
        """(name, arguments) of a packet."""
        if text[:1] in ("q", "Q", "v"):
            name = re.match(r"[A-Za-z]+\??", text)
            assert name is not None
            return name[0], text[name.end() :]
        if text in ("bc", "bs"):
            return text, ""
        return text[:1], text[1:]

    # Threads: 1 to 5 are the cores; 0 is any, -1 all

    def _thread(self, text: str) -> int | None:
        number = int(text, 16)
        if number in (0, -1):
            return self._core
        return number - 1 if 1 <= number <= CORES else None

    def _choose(self, text: str) -> bytes:
        if (core := self._thread(text[1:])) is None or text[:1] not in ("g", "c"):
            return _ERROR
        if text[:1] == "g":
            self._core = core
        else:
            self._running = core
        return _OK

    def _extra(self, text: str) -> bytes:
        if (core := self._thread(text[1:])) is None:
            return _ERROR
        return gdb_target.extra(self._target.core(core)).encode().hex().encode()

    # Registers and memory

    def _register(self, text: str) -> bytes:
        if (value := self._target.register(self._core, int(text, 16))) is None:
            return b"x" * 8  # not available
        return value.hex().encode() if value else _ERROR

    def _set_register(self, text: str) -> bytes:
        number, value = text.split("=")
        data = int.from_bytes(bytes.fromhex(value), "little")
        done = self._target.set_register(self._core, int(number, 16), data % _ADDRESSES)
        return _OK if done else _ERROR

    def _set_registers(self, text: str) -> bytes:
        data = bytes.fromhex(text)
        values = struct.iter_unpack("<I", data[: min(len(data) & ~3, 4 * gdb_target.PC + 4)])
        set_register = self._target.set_register
        done = [set_register(self._core, number, value) for number, (value,) in enumerate(values)]
        return _OK if all(done) else _ERROR

    def _memory(self, text: str) -> bytes:
        address, length = _numbers(text)
        data = self._target.read(self._core, address % _ADDRESSES, min(length, MOST // 4))
        return data.hex().encode() if data or not length else _ERROR

    def _write(self, text: str, decode: Callable[[str], bytes]) -> bytes:
        place, written = text.split(":", 1)
        data = decode(written)
        address, length = _numbers(place)
        if length != len(data):
            return _ERROR
        done = not data or self._target.write(self._core, address % _ADDRESSES, data)
        return _OK if done else _ERROR

    # Breakpoints

    def _point(self, text: str, *, add: bool) -> bytes:
        kind, address, length = text.split(";")[0].split(",")
        at, size = int(address, 16) % _ADDRESSES, int(length, 16)
        if kind not in _ACCESS:
            return b""
        place = at, size, _ACCESS[kind]
        target = self._target
        done = target.set_point(self._core, *place) if add else target.remove_point(*place)
        return _OK if done else _ERROR

    # Running

    def _continue(self, text: str) -> bytes | None:
        """vCont: a step of one core while the others go on, or all go on."""
        for action in text.strip(";").split(";"):
            what, _, thread = action.partition(":")
            if what[:1] in ("s", "S", "r"):
                core = self._thread(thread) if thread else self._running
                if core is None:
                    return _ERROR
                low, high = _numbers(what[1:]) if what[0] == "r" else (0, 0)
                return self._step(core, low, high)
        return self._resume() if text.strip(";")[:1] in ("c", "C") else _ERROR

    def _step(self, core: int, low: int, high: int) -> bytes:
        self._running = core
        return self._stop(self._target.step(core, low, high, self._connection.interrupted))

    def _resume(self) -> bytes:
        return self._stop(self._target.resume(self._running, self._connection.interrupted))

    def _stop(self, report: gdb_target.Report) -> bytes:
        if report.text:
            self._connection.send(b"O" + report.text.encode().hex().encode())
        self._core = self._running = report.core
        return self._reply(report)

    def _reply(self, report: gdb_target.Report) -> bytes:
        return f"T{report.signal:02x}thread:{report.core + 1:x};{report.more}".encode()

    def _leave(self, text: str) -> bytes:
        self._left = True
        return _OK

    def _kill(self, text: str) -> bytes | None:
        self._left = self.over = True
        return _OK if text else None

    # The rest

    def _no_acknowledgements(self, text: str) -> bytes:
        self._connection.acknowledge = False
        return _OK

    def _transfer(self, text: str) -> bytes:
        """A piece of one of the documents of gdb_target.py."""
        _, what, way, name, place = text.split(":")
        tile = self._target.tile
        makers: dict[str, Callable[[], str]] = {
            "features": gdb_target.registers,
            "threads": lambda: gdb_target.threads(tile),
            "exec-file": lambda: gdb_target.executable(tile),
            "libraries": lambda: gdb_target.libraries(tile),
        }
        if what not in makers or way != "read" or name not in ("", "target.xml"):
            return b""
        at, length = _numbers(place)
        data = makers[what]().encode()
        piece = data[at : at + min(length, MOST // 4)]
        return (b"m" if at + len(piece) < len(data) else b"l") + escape(piece)

    def _monitor(self, text: str) -> bytes:
        line = bytes.fromhex(text[1:]).decode("utf-8", errors="replace")
        said = self._target.monitor(line, self._core)
        return said.encode().hex().encode() if said else _OK


def serve(target: gdb_target.Target, listener: socket.socket, once: bool) -> bool:
    """Serve debuggers, one after another, until one kills the program; with `once` only one.

    True when the program was killed.
    """
    while True:
        interrupts.check()
        link, _ = listener.accept()
        with link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            session = Session(target, Connection(link))
            with contextlib.suppress(Closed):
                session.serve()
        if once or session.over:
            return session.over
