"""The messages of UMD's simulation protocol (directory mode): one FlatBuffers table each.

The package flatbuffers reads without checking any offset against the length of the buffer, and it
takes four times as long: requests are read here, whole or not at all. Replies are written with it.
"""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

# EXIT from (0, 0), as `write` writes it: at hand before NumPy is, because a host waits for it.
GREETING = bytes.fromhex(
    "140000000000000000000a0020001f00180004000a00000000000000"
    "00000000000000000000000000000000080000000000000500000000"
)
_U16, _U32, _I32 = Struct("<H"), Struct("<I"), Struct("<i")
_I8, _U64, _XY = Struct("<b"), Struct("<Q"), Struct("<QQ")
_WORD = 4
_SLOTS, _WIDTHS = Struct("<5H"), (1, 4, 16, 8, 4)  # command, data, core, address, size
_NO_FIELDS = (0, 0, 0, 0, 0)


class Command(IntEnum):
    """What a message asks for; the names are those of UMD's schema."""

    WRITE = 0
    READ = 1
    ALL_TENSIX_RESET_DEASSERT = 2
    ALL_TENSIX_RESET_ASSERT = 3
    START = 4
    EXIT = 5
    ALL_NEO_DMS_RESET_DEASSERT = 6
    ALL_NEO_DMS_RESET_ASSERT = 7
    NEO_DM_RESET_ASSERT = 8
    NEO_DM_RESET_DEASSERT = 9
    AXI_RAM_WRITE_NOTIFICATION = 10
    AXI_RAM_READ_NOTIFICATION = 11
    SMN_WRITE = 12
    SMN_READ = 13
    ALL_NEO_DMS_UNCORE_RESET_DEASSERT = 14
    ALL_NEO_DMS_UNCORE_RESET_ASSERT = 15
    NEO_DM_UNCORE_RESET_ASSERT = 16
    NEO_DM_UNCORE_RESET_DEASSERT = 17


class Message(NamedTuple):
    """One message: `command` may be a number that Command lacks; `data` are whole words.

    `core` is the (x, y) of the descriptor, None when the message names none; `size` is in bytes.
    """

    command: int
    core: tuple[int, int] | None = None
    address: int = 0
    size: int = 0
    data: bytes = b""


class MalformedMessage(ValueError):  # noqa: N818 - as the errors of bhemu
    """The bytes are no message of this protocol."""


def read(buffer: bytes) -> Message:
    """The message in `buffer`; MalformedMessage when an offset leads out of it."""
    table, fields = _fields(buffer)
    command, data, core, address, size = fields
    return Message(
        _I8.unpack_from(buffer, table + command)[0] if command else 0,
        _XY.unpack_from(buffer, table + core) if core else None,
        _U64.unpack_from(buffer, table + address)[0] if address else 0,
        _U32.unpack_from(buffer, table + size)[0] if size else 0,
        _vector(buffer, table + data) if data else b"",
    )


def _fields(buffer: bytes) -> tuple[int, tuple[int, ...]]:
    """The position of the table, and the offsets of its five fields in it (0: absent)."""
    end = len(buffer)
    table = _at(_U32, buffer, 0)
    vtable = table - _at(_I32, buffer, table)
    slots, length = (_at(_U16, buffer, vtable) - _WORD) // 2, _at(_U16, buffer, vtable + 2)
    if slots < 0 or vtable + _WORD + 2 * slots > end or table + length > end:
        raise MalformedMessage("the table does not lie within the message")
    found = _NO_FIELDS
    if slots >= 5:
        found = _SLOTS.unpack_from(buffer, vtable + _WORD)
    elif slots:
        given = (_U16.unpack_from(buffer, vtable + _WORD + 2 * n)[0] for n in range(slots))
        found = (*given, *_NO_FIELDS)[:5]
    command, data, core, address, size = found
    if max(command + 1, data + 4, core + 16, address + 8, size + 4) > length:
        _check_widths(found, length)
    return table, found


def _check_widths(found: tuple[int, ...], length: int) -> None:
    for offset, width in zip(found, _WIDTHS, strict=True):
        if offset and offset + width > length:
            raise MalformedMessage("a field does not lie within its table")


def _at(kind: Struct, buffer: bytes, position: int) -> int:
    if not 0 <= position <= len(buffer) - kind.size:
        raise MalformedMessage("an offset leads out of the message")
    value: int = kind.unpack_from(buffer, position)[0]
    return value


def _vector(buffer: bytes, position: int) -> bytes:
    start = position + _at(_U32, buffer, position)
    count = _at(_U32, buffer, start)
    begin = start + _WORD
    if begin + _WORD * count > len(buffer):
        raise MalformedMessage("the data are longer than the message")
    return buffer[begin : begin + _WORD * count]


def write(message: Message) -> bytes:
    """The bytes of a message; data are padded to whole words."""
    import flatbuffers
    import numpy as np

    words = np.frombuffer(message.data + bytes(-len(message.data) % _WORD), "<u4")
    builder = flatbuffers.Builder(words.nbytes + 128)
    vector = builder.CreateNumpyVector(words)
    builder.StartObject(5)
    builder.PrependInt8Slot(0, message.command, 0)
    builder.PrependUOffsetTRelativeSlot(1, vector, 0)
    x, y = message.core or (0, 0)
    builder.Prep(8, 16)
    builder.PrependUint64(y)
    builder.PrependUint64(x)
    builder.PrependStructSlot(2, builder.Offset(), 0)
    builder.PrependUint64Slot(3, message.address, 0)
    builder.PrependUint32Slot(4, message.size, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())
