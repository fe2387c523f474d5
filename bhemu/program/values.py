"""Types of C as DWARF describes them, and values of them as text."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bhemu.program.dwarf import children, name_of, number, origin, referred
from bhemu.text import printable

Read = Callable[[int, int], bytes]  # (address, size)

_DEEPEST = 8  # structures inside each other that are shown
_MOST = 16  # elements of an array, members of a structure
_LONGEST = 4096  # bytes of one object that are read
_TRANSPARENT = {
    "DW_TAG_const_type": "const ",
    "DW_TAG_volatile_type": "volatile ",
    "DW_TAG_restrict_type": "",
    "DW_TAG_atomic_type": "",
}
_POINTERS = {
    "DW_TAG_pointer_type": "*",
    "DW_TAG_reference_type": "&",
    "DW_TAG_rvalue_reference_type": "&&",
}
_RECORDS = ("DW_TAG_structure_type", "DW_TAG_union_type", "DW_TAG_class_type")
_BOOLEAN, _FLOAT, _SIGNED, _SIGNED_CHAR, _UNSIGNED_CHAR = 2, 4, 5, 6, 8
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


@dataclass(frozen=True)
class Member:
    """A member of a structure: `bits` is (lowest bit, how many) of a bit-field."""

    name: str
    offset: int
    type: CType
    bits: tuple[int, int] | None = None


class CType:
    """A type, read when it is looked at; `kind` is that of the type behind names and qualifiers.

    kind: "integer", "float", "boolean", "character", "pointer", "array", "record", "enum", "void"
    or "other".
    """

    def __init__(self, entry: Any) -> None:
        self._entry = entry
        self._plain = _plain(entry)

    @property
    def kind(self) -> str:
        """See the class."""
        entry = self._plain
        if entry is None:
            return "void"
        if entry.tag == "DW_TAG_base_type":
            code = number(entry, "DW_AT_encoding")
            if code in (_SIGNED_CHAR, _UNSIGNED_CHAR):
                return "character"
            return {_BOOLEAN: "boolean", _FLOAT: "float"}.get(code, "integer")
        if entry.tag in _POINTERS:
            return "pointer"
        kinds = {"DW_TAG_array_type": "array", "DW_TAG_enumeration_type": "enum"}
        return "record" if entry.tag in _RECORDS else kinds.get(entry.tag, "other")

    @property
    def signed(self) -> bool:
        """Whether an integer of it has a sign."""
        code = 0 if self._plain is None else number(self._plain, "DW_AT_encoding")
        return code in (_SIGNED, _SIGNED_CHAR)

    @property
    def size(self) -> int:
        """Bytes; 0 where DWARF does not say."""
        kind, count = self, 1
        for _ in range(_MOST):
            if kind.kind == "pointer":
                return 4 * count
            if kind.kind != "array":
                held = 0 if kind._plain is None else number(kind._plain, "DW_AT_byte_size")
                return held * count
            count *= kind.count or 0
            kind = kind.target
        return 0  # arrays in arrays without end

    @property
    def target(self) -> CType:
        """What a pointer points to, or an array holds."""
        return of(self._plain)

    @property
    def count(self) -> int | None:
        """Elements of an array in its first dimension, None where that is open."""
        dimensions = [c for c in children(self._plain) if c.tag == "DW_TAG_subrange_type"]
        total = 1
        for one in dimensions:
            count = number(one, "DW_AT_count", number(one, "DW_AT_upper_bound", -1) + 1)
            if count <= 0:
                return None
            total *= count
        return total if dimensions else None

    @property
    def members(self) -> list[Member]:
        """Of a structure, class or union."""
        found = []
        for entry in children(self._plain):
            if entry.tag not in ("DW_TAG_member", "DW_TAG_inheritance"):
                continue
            offset, bits = number(entry, "DW_AT_data_member_location"), None
            if "DW_AT_bit_size" in entry.attributes:
                size, first = (
                    number(entry, "DW_AT_bit_size"),
                    number(entry, "DW_AT_data_bit_offset"),
                )
                if "DW_AT_bit_offset" in entry.attributes:  # counted from the top: DWARF 2 and 3
                    storage = 8 * (number(entry, "DW_AT_byte_size") or of(entry).size)
                    first = 8 * offset + storage - number(entry, "DW_AT_bit_offset") - size
                offset, bits = first // 32 * 4, (first % 32, size)
            found.append(Member(name_of(entry) or "(base)", offset, of(entry), bits))
        return found

    @property
    def enumerators(self) -> dict[int, str]:
        """Names of the values of an enumeration."""
        held = children(self._plain)
        return {number(one, "DW_AT_const_value"): name_of(one) for one in held}

    def __str__(self) -> str:
        return _spelled(self._entry, 0)


def of(entry: Any) -> CType:
    """The type that an entry names."""
    return CType(None if entry is None else _named(entry))


def _named(entry: Any) -> Any:
    for one in origin(entry):
        if "DW_AT_type" in one.attributes:
            return referred(one, "DW_AT_type")
    return None


def _plain(entry: Any) -> Any:
    for _ in range(64):
        if entry is None or (entry.tag != "DW_TAG_typedef" and entry.tag not in _TRANSPARENT):
            return entry
        entry = _named(entry)
    return None


def _spelled(entry: Any, depth: int) -> str:
    if entry is None:
        return "void"
    if depth > _DEEPEST:
        return "..."
    if entry.tag in _TRANSPARENT:
        return _TRANSPARENT[entry.tag] + _spelled(_named(entry), depth + 1)
    if entry.tag in _POINTERS:
        return f"{_spelled(_named(entry), depth + 1)} {_POINTERS[entry.tag]}"
    if entry.tag == "DW_TAG_array_type":
        count = CType(entry).count
        return f"{_spelled(_named(entry), depth + 1)}[{'' if count is None else count}]"
    words = {"DW_TAG_structure_type": "struct ", "DW_TAG_union_type": "union "}
    return words.get(entry.tag, "") + (name_of(entry) or "(no name)")


def as_text(kind: CType, raw: bytes, read: Read, form: str = "", depth: int = 0) -> str:
    """The value in `raw`; form: "x" hexadecimal, "d" and "u" decimal, "t" binary, "c", "f"."""
    if kind.kind == "record":
        return _record(kind, raw, read, form, depth)
    if kind.kind == "array":
        return _array(kind, raw, read, form, depth)
    if kind.kind == "float" and len(raw) in _FLOATS and form in ("", "f"):
        return repr(struct.unpack(_FLOATS[len(raw)], raw)[0])
    value = int.from_bytes(raw, "little", signed=kind.signed and form in ("", "d", "c"))
    if form:
        return _formatted(value, raw, form)
    if kind.kind == "boolean":
        return str(bool(value)).lower()
    if kind.kind == "character":
        return f"{value} {chr(value)!r}" if 32 <= value < 127 else str(value)
    if kind.kind == "enum":
        return kind.enumerators.get(value, str(value))
    if kind.kind == "pointer":
        return _pointer(kind, value, read)
    return str(value) if -10 < value < 10 else f"{value} ({value & (1 << 8 * len(raw)) - 1:#x})"


def _formatted(value: int, raw: bytes, form: str) -> str:
    if form == "f" and len(raw) in _FLOATS:
        return repr(struct.unpack(_FLOATS[len(raw)], raw)[0])
    if form == "c":
        return repr(chr(value & 0xFF))
    unsigned = value & (1 << 8 * len(raw)) - 1
    return {"x": f"{unsigned:#x}", "t": f"{unsigned:#b}", "u": str(unsigned)}.get(form, str(value))


def _pointer(kind: CType, value: int, read: Read) -> str:
    target = kind.target
    if value and target.kind == "character":
        try:
            raw = read(value, 64)
        except ValueError:
            return f"{value:#x}"
        text = raw.partition(b"\0")[0].decode(errors="replace")
        return f'{value:#x} "{printable(text)}"'
    return f"{value:#x}"


def _record(kind: CType, raw: bytes, read: Read, form: str, depth: int) -> str:
    if depth >= _DEEPEST:
        return "{...}"
    parts = []
    for member in kind.members[:_MOST]:
        part = slice_of(member, raw)
        parts.append(f"{member.name} = {as_text(member.type, part, read, form, depth + 1)}")
    return "{" + ", ".join([*parts, *(["..."] if len(kind.members) > _MOST else [])]) + "}"


def slice_of(member: Member, raw: bytes) -> bytes:
    """The bytes of a member; a bit-field is moved to bit 0."""
    size = member.type.size
    if member.bits is None:
        return raw[member.offset : member.offset + size]
    low, count = member.bits
    word = int.from_bytes(raw[member.offset : member.offset + 8], "little")
    value = word >> low & (1 << min(max(count, 0), 64)) - 1
    return value.to_bytes(8, "little")[: max(size, 1)]


def _array(kind: CType, raw: bytes, read: Read, form: str, depth: int) -> str:
    if depth >= _DEEPEST:
        return "{...}"
    element, count = kind.target, kind.count or 0
    if element.kind == "character" and not form:
        return f'"{printable(raw.partition(bytes(1))[0].decode(errors="replace"))}"'
    size = max(element.size, 1)
    shown = [
        as_text(element, raw[i * size : (i + 1) * size], read, form, depth + 1)
        for i in range(min(count, _MOST, len(raw) // size))
    ]
    return "{" + ", ".join([*shown, *(["..."] if count > _MOST else [])]) + "}"


def readable(kind: CType) -> int:
    """How many bytes of an object are read at most."""
    return min(max(kind.size, 0), _LONGEST)
