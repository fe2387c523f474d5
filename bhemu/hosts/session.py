"""One session of a host: the connection, and every message answered in order."""

import os
import socket
import time
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlsplit

import pynng

from bhemu.errors import BhemuError, InputError
from bhemu.hosts import umd
from bhemu.hosts.umd import Command, Device, MalformedMessage, Message, name
from bhemu.program import files

_PATIENCE = 10.0  # seconds until a host that started us must listen
_RETRY = 0.02
_LOOK = 250  # milliseconds between two looks whether the host is still there
_SILENCE = 8  # such looks in a row without a message
_QUEUE = 4096  # messages that are received ahead
_MORE = 1 << 16  # bytes of a message beside its data


class Connection:
    """An NNG pair socket, connected to the host at `address` and greeted.

    InputError when no process listens there, or when it is another machine and `remote` is not set.
    `on_lost` is called, in another thread, when the host is gone; `on_silence` within `receive`,
    once after each message that none has followed for a while.
    """

    def __init__(self, address: str, *, remote: bool = False) -> None:
        check_address(address, remote=remote)
        self._address, self._lost = address, False
        self.asked = False  # whether the host sent a message, or it was said that it did not
        self.on_lost: Callable[[], object] = lambda: None
        self.on_silence: Callable[[], object] = lambda: None
        self._socket = pynng.Pair1(recv_timeout=_LOOK, send_timeout=int(_PATIENCE * 1000))
        self._socket.recv_max_size = files.limit("MESSAGE_BYTES") + _MORE
        self._socket.recv_buffer_size = _QUEUE
        self._socket.add_post_pipe_remove_cb(self._on_lost)
        try:
            self._dial()
            self._send(umd.GREETING)
        except BaseException:
            self._socket.close()
            raise

    def _dial(self) -> None:
        parent, end = os.getppid(), time.monotonic() + _PATIENCE
        while True:
            try:
                self._socket.dial(self._address, block=True)
                return
            except pynng.ConnectionRefused:
                if time.monotonic() > end or os.getppid() != parent:
                    hint = "the host that starts the simulator listens there"
                    raise InputError(f"no process listens at {self._address}", hint=hint) from None
            except pynng.NNGException:
                raise self.no_host() from None
            time.sleep(_RETRY)

    def _on_lost(self, pipe: object) -> None:
        self._lost = True
        self.on_lost()

    def receive(self) -> bytes | None:
        """The next message; None when the host is gone and everything it sent was received.

        InputError when it is gone without a message.
        """
        looks = 0
        while True:
            try:
                message = bytes(self._socket.recv())
            except RuntimeError:  # how pynng receives a message of no bytes
                message = b""
            except pynng.Timeout:
                if not self._lost:
                    looks += 1
                    if looks == _SILENCE:
                        self.on_silence()
                    continue
                if self.asked:
                    return None
                self.asked = True  # said once
                raise self.no_host() from None
            self.asked = True
            return message

    def no_host(self) -> InputError:
        """What to say of a host that took the connection and asked nothing."""
        hint = "is it the address of another program, or has it a simulator already?"
        return InputError(f"{self._address} took no simulator", hint=hint)

    def send(self, message: Message) -> None:
        """Send; nothing happens when the host is gone."""
        self._send(umd.write(message))

    def _send(self, buffer: bytes) -> None:
        if self._lost:
            return
        try:
            self._socket.send(buffer)
        except (pynng.Timeout, pynng.Closed):
            self._lost = True

    def close(self) -> None:
        """End the connection."""
        self.on_lost = lambda: None
        self._socket.close()


def check_address(address: str, *, remote: bool) -> None:
    """InputError unless `address` is tcp://HOST:PORT of this machine, or ipc://PATH."""
    try:
        parts = urlsplit(address)
        place = (parts.hostname or "", parts.port or 0)
    except ValueError:
        place, parts = ("", 0), urlsplit("")
    if parts.scheme == "ipc" and parts.path:
        return
    if parts.scheme != "tcp" or not all(place):
        raise InputError(f"{address!r} is no address", hint="as in tcp://localhost:50000")
    if not remote and not _is_here(place[0]):
        raise InputError(f"{address} is not on this machine", hint="--remote allows it")


def _is_here(host: str) -> bool:
    """Whether every address of `host` can be bound, as only those of this machine can."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, at in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(at)
    except OSError:
        return False
    return True


_REPORTED = 10  # errors that are shown; the others are counted
_ANSWERED = (Command.READ, Command.SMN_READ)
Report = Callable[[BhemuError], object]


class Session:
    """Serves a host on `line` from `device`.

    An error is reported and the read that it belongs to is answered without data, which a host
    takes as a failed read: its program sees an error instead of waiting for ever.
    """

    def __init__(self, line: Connection, report: Report) -> None:
        self._line, self._report = line, report
        self._begin = time.monotonic()
        self.errors = 0
        self.count: Counter[int] = Counter()
        self.bytes_written = 0
        self.ended = ""

    def serve(self, device: Device) -> None:
        """Until the end of the session: by the host's EXIT, or because the host is gone."""
        receive, answer, count = self._line.receive, device.answer, self.count
        device.report = self._note
        self._line.on_silence = device.silent
        while (buffer := receive()) is not None:
            try:
                message = umd.read(buffer)
            except MalformedMessage as problem:
                self._note(InputError(f"a message that cannot be read: {problem}"))
                continue
            command = message.command
            count[command] += 1
            if command == Command.EXIT:
                self.ended = "exit"
                return
            self.bytes_written += len(message.data) if command == Command.WRITE else 0
            try:
                data = answer(message)
            except BhemuError as error:
                self._note(error)
                data = b"" if command in _ANSWERED else None
            if data is not None:
                self._line.send(message._replace(data=data))
        self.ended = "host gone"

    def refuse(self) -> None:
        """Answer every read without data, the next one too that was asked already."""
        self._line.send(Message(Command.READ))
        while (buffer := self._line.receive()) is not None:
            try:
                message = umd.read(buffer)
            except MalformedMessage:
                continue
            if message.command == Command.EXIT:
                return
            if message.command in _ANSWERED:
                self._line.send(message._replace(data=b""))

    def _note(self, error: BhemuError) -> None:
        self.errors += 1
        if self.errors <= _REPORTED:
            self._report(error)

    def __str__(self) -> str:
        """One line: what was asked, how it ended, how long it took."""
        counts = ", ".join(f"{name(command)} {n}" for command, n in sorted(self.count.items()))
        seconds = time.monotonic() - self._begin
        wrote = f"{self.bytes_written} bytes written, "
        errors = f"{self.errors} errors, " if self.errors else ""
        return f"{counts or 'no message'}; {wrote}{errors}{self.ended}, {seconds:.1f} s"
