"""One session of a host: every message answered in order, until the host ends it or is gone."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from bhemu.errors import BhemuError, InputError
from bhemu.hosts import wire
from bhemu.hosts.umd import Device, name
from bhemu.hosts.wire import Command, MalformedMessage, Message

_REPORTED = 10  # errors that are shown; the others are counted
_ANSWERED = (Command.READ, Command.SMN_READ)
Report = Callable[[BhemuError], object]


class Line(Protocol):
    """What a session asks of a connection."""

    on_silence: Callable[[], object]

    def receive(self) -> bytes | None:
        """The next message; None when the host is gone."""

    def send(self, message: Message) -> None:
        """A reply."""


class Session:
    """Serves a host on `line` from `device`.

    An error is reported and the read that it belongs to is answered without data, which a host
    takes as a failed read: its program sees an error instead of waiting for ever.
    """

    def __init__(self, line: Line, report: Report) -> None:
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
                message = wire.read(buffer)
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
                message = wire.read(buffer)
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
