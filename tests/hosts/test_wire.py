"""UMD's messages: what the flatbuffers package writes is read, nothing else is taken for one."""

import random
import struct

import flatbuffers
import pytest
from flatbuffers import number_types as kinds
from flatbuffers.table import Table

from bhemu.hosts import umd
from bhemu.hosts.umd import Command, MalformedMessage, Message

MESSAGES = (
    Message(Command.WRITE, (1, 2), 0x100, 8, b"12345678"),
    Message(Command.READ, (16, 11), 0xFFB121B0, 4, bytes(4)),
    Message(Command.ALL_TENSIX_RESET_DEASSERT, (7, 3), 0, 4, bytes(4)),
    Message(Command.READ, (18, 23), (1 << 64) - 1, (1 << 32) - 1),
    Message(Command.WRITE, (17, 12), 1 << 31, 4096, bytes(range(256)) * 16),
    Message(Command.EXIT, (0, 0), 0, 0),
)


def by_package(message: Message, order: tuple[int, ...] = (0, 1, 2, 3, 4)) -> bytes:
    """The message by the package's own means, its fields added in that order."""
    builder = flatbuffers.Builder(64)
    words = struct.unpack(f"<{len(message.data) // 4}I", message.data)
    builder.StartVector(4, len(words), 4)
    for word in reversed(words):
        builder.PrependUint32(word)
    vector = builder.EndVector()
    x, y = message.core or (0, 0)

    def core() -> None:
        builder.Prep(8, 16)
        builder.PrependUint64(y)
        builder.PrependUint64(x)
        builder.PrependStructSlot(2, builder.Offset(), 0)

    add = (
        lambda: builder.PrependInt8Slot(0, message.command, 0),
        lambda: builder.PrependUOffsetTRelativeSlot(1, vector, 0),
        core,
        lambda: builder.PrependUint64Slot(3, message.address, 0),
        lambda: builder.PrependUint32Slot(4, message.size, 0),
    )
    builder.StartObject(5)
    for slot in order:
        add[slot]()
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: f"{m.command}-{m.size}")
def test_what_the_package_writes_is_read(message: Message) -> None:
    for order in ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (1, 3, 0, 4, 2)):
        assert umd.read(by_package(message, order)) == message


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: f"{m.command}-{m.size}")
def test_what_is_written_the_package_reads(message: Message) -> None:
    buffer = umd.write(message)
    table = Table(buffer, struct.unpack_from("<I", buffer)[0])

    def number(slot: int, kind: object) -> int:
        offset = table.Offset(4 + 2 * slot)
        return table.Get(kind, table.Pos + offset) if offset else 0

    core = table.Pos + table.Offset(8)
    start, length = table.Vector(table.Offset(6)), table.VectorLen(table.Offset(6))
    assert message == Message(
        number(0, kinds.Int8Flags),
        (table.Get(kinds.Uint64Flags, core), table.Get(kinds.Uint64Flags, core + 8)),
        number(3, kinds.Uint64Flags),
        number(4, kinds.Uint32Flags),
        buffer[start : start + 4 * length],
    )
    assert umd.read(buffer) == message


def test_the_greeting_is_exit() -> None:
    assert umd.write(Message(Command.EXIT)) == umd.GREETING
    assert umd.read(umd.GREETING).command == Command.EXIT


def test_a_message_as_other_simulators_lay_it_out() -> None:
    head = struct.pack("<I7Hxx", 20, 14, 44, 4, 8, 12, 28, 36)
    table = struct.pack("<ib3xIQQQI4x", 16, 1, 36, 10, 11, 0x1000, 4)
    assert umd.read(head + table + struct.pack("<II", 1, 0x2A)) == Message(
        Command.READ, (10, 11), 0x1000, 4, b"\x2a\0\0\0"
    )


def test_absent_fields_are_defaults() -> None:
    assert umd.read(struct.pack("<IHHi", 8, 4, 4, 4)) == Message(Command.WRITE)
    only_command = struct.pack("<IHHHxxib", 12, 6, 5, 4, 8, 5)
    assert umd.read(only_command) == Message(Command.EXIT)


def test_data_are_padded_to_words() -> None:
    assert umd.read(umd.write(Message(Command.READ, data=b"abcde"))).data == b"abcde\0\0\0"


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: f"{m.command}-{m.size}")
def test_a_part_of_a_message_is_no_message(message: Message) -> None:
    buffer = by_package(message)
    shorter = (*range(0, len(buffer), 4), len(buffer) - 1)
    for end in (*range(min(len(buffer), 80)), *shorter[-20:]):
        if message.data or end < len(buffer) - 8:  # a table may end in padding
            try:
                assert umd.read(buffer[:end]) != message
            except MalformedMessage:
                continue
    with pytest.raises(MalformedMessage):
        umd.read(buffer[:20])


def mutated(rng: random.Random) -> bytes:
    buffer = bytearray(by_package(rng.choice(MESSAGES[:4])))
    for _ in range(rng.randint(1, 6)):
        kind = rng.randrange(4)
        at = rng.randrange(len(buffer)) if buffer else 0
        if kind == 0 and buffer:
            buffer[at] = rng.randrange(256)
        elif kind == 1 and buffer:
            buffer[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del buffer[rng.randrange(len(buffer) + 1) :]
        else:
            buffer[at:at] = rng.randbytes(rng.randint(1, 8))
    return bytes(buffer)


def test_a_mutated_message_is_a_message_or_malformed() -> None:
    rng = random.Random(1)
    outcomes = {"read": 0, "malformed": 0}
    for _ in range(100_000):
        buffer = mutated(rng)
        try:
            message = umd.read(buffer)
        except MalformedMessage:
            outcomes["malformed"] += 1
            continue
        outcomes["read"] += 1
        assert len(message.data) <= len(buffer) and len(message.data) % 4 == 0
    assert min(outcomes.values()) > 10_000


def test_garbage_is_malformed() -> None:
    rng = random.Random(2)
    taken = 0
    for _ in range(20_000):
        try:
            umd.read(rng.randbytes(rng.randrange(100)))
            taken += 1
        except MalformedMessage:
            pass
    assert taken < 200
