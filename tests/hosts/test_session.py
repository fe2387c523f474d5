"""A session: answers in order, errors told and answered, garbage survived."""

import random
from collections.abc import Iterable

from hosts.fake_chip import BROKEN, FakeChip, device
from hosts.test_wire import MESSAGES, mutated

from bhemu.errors import BhemuError
from bhemu.hosts import umd
from bhemu.hosts.session import Session
from bhemu.hosts.umd import Command, MalformedMessage, Message

CORE = (1, 2)


class Script:
    """A host that sends these messages and is gone."""

    def __init__(self, messages: Iterable[Message | bytes]) -> None:
        self._waiting = iter(messages)
        self.replies: list[Message] = []

    def receive(self) -> bytes | None:
        message = next(self._waiting, None)
        return umd.write(message) if isinstance(message, Message) else message

    def send(self, message: Message) -> None:
        self.replies.append(message)


def served(*messages: Message | bytes) -> tuple[Script, Session, list[BhemuError], FakeChip]:
    chip, at = device()
    errors: list[BhemuError] = []
    line = Script(messages)
    session = Session(line, errors.append)
    session.serve(at)
    return line, session, errors, chip


def read(address: int, size: int = 4, core: tuple[int, int] = CORE) -> Message:
    return Message(Command.READ, core, address, size, bytes(4))


def write(address: int, data: bytes) -> Message:
    return Message(Command.WRITE, CORE, address, len(data), data)


def test_every_read_is_answered_in_order_and_nothing_else() -> None:
    reads = [read(4 * i) for i in range(5)]
    line, session, errors, _ = served(write(0, b"0000111122223333"), *reads, Message(Command.EXIT))
    assert [reply.data for reply in line.replies] == [
        *(b"0000", b"1111", b"2222", b"3333"),
        bytes(4),
    ]
    assert [reply.address for reply in line.replies] == [0, 4, 8, 12, 16]
    assert {reply.command for reply in line.replies} == {Command.READ}
    assert errors == []
    assert session.ended == "exit"
    assert str(session).startswith("WRITE 1, READ 5, EXIT 1; 16 bytes written, exit, ")


def test_nothing_after_exit_is_answered() -> None:
    line, session, _, _ = served(Message(Command.EXIT), read(0))
    assert line.replies == []
    assert session.ended == "exit"


def test_a_host_that_vanishes_ends_the_session() -> None:
    assert served(read(0))[1].ended == "host gone"


def test_a_refused_read_is_answered_without_data_and_told() -> None:
    line, session, errors, _ = served(read(0, core=(60, 60)), read(0))
    assert [reply.data for reply in line.replies] == [b"", bytes(4)]
    assert [str(error) for error in errors] == ["there is no endpoint at (60, 60)"]
    assert session.errors == 1


def test_a_refused_write_is_told_and_not_answered() -> None:
    line, _, errors, _ = served(Message(Command.WRITE, (60, 60), 0, 4, bytes(4)), read(0))
    assert [reply.data for reply in line.replies] == [bytes(4)]
    assert len(errors) == 1


def test_a_chip_that_fails_is_told_and_its_read_answered_without_data() -> None:
    line, _, errors, _ = served(write(BROKEN, bytes(4)), read(0), read(0))
    assert [reply.data for reply in line.replies] == [b"", bytes(4)]
    assert [error.rule for error in errors] == ["FAKE"]


def test_a_read_of_another_chip_is_answered_without_data() -> None:
    line, _, errors, _ = served(Message(Command.SMN_READ, CORE, 0, 4, bytes(4)))
    assert [(reply.command, reply.data) for reply in line.replies] == [(Command.SMN_READ, b"")]
    assert "SMN_READ is no request" in str(errors[0])


def test_errors_without_end_are_counted_but_not_all_told() -> None:
    _, session, errors, _ = served(*[b"garbage"] * 1000)
    assert session.errors == 1000
    assert len(errors) == 10
    assert "1000 errors" in str(session)


def test_mutated_messages_neither_stop_nor_mislead_a_session() -> None:
    rng = random.Random(3)
    expected = 0
    messages: list[bytes] = []
    for _ in range(100_000):
        buffer = mutated(rng)
        try:
            command = umd.read(buffer).command
        except MalformedMessage:
            command = Command.WRITE
        if command != Command.EXIT:
            messages.append(buffer)
            expected += command in (Command.READ, Command.SMN_READ)
    line, session, _, chip = served(*messages, write(0x40, b"end!"), read(0x40), MESSAGES[-1])
    assert session.ended == "exit"
    assert len(line.replies) == expected + 1
    assert line.replies[-1].data == b"end!"
    assert len(chip.memory) > 0


def test_refusing_answers_the_read_that_waits_and_all_later_ones() -> None:
    line = Script([read(0), write(0, b"1234"), b"garbage", read(4), MESSAGES[-1], read(8)])
    Session(line, print).refuse()
    assert [(reply.command, reply.data) for reply in line.replies] == [(Command.READ, b"")] * 3
