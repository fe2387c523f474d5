"""C variables as DWARF describes them: their types, where they are, and their values as text."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from bhemu.errors import InputError
from bhemu.program import elf, files
from bhemu.program.dwarf import Block, Debug, name_of, number, origin, reader
from bhemu.program.dwarf import Gone as Gone
from bhemu.text import printable

# Types of C as DWARF describes them, and values of them as text.

Read = Callable[[int, int], bytes]  # (address, size)

_DEEPEST = 8  # structures inside each other that are shown
_MOST = 16  # elements of an array, members of a structure
_LONGEST_OBJECT = 4096  # bytes of one object that are read
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
_BASE = "(base)"  # a member without a name


@dataclass(frozen=True)
class Member:
    """A member of a structure: `bits` is (lowest bit, how many) of a bit-field."""

    name: str
    offset: int
    type: CType
    bits: tuple[int, int] | None = None


class CType:
    """A type, read when it is looked at; `kind` is that of the type without names and qualifiers.

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
        return type_of(self._plain)

    @property
    def count(self) -> int | None:
        """Elements of an array in its first dimension, None where that is open."""
        dimensions = [c for c in self._below() if c.tag == "DW_TAG_subrange_type"]
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
        for entry in self._below():
            if entry.tag not in ("DW_TAG_member", "DW_TAG_inheritance"):
                continue
            offset, bits = number(entry, "DW_AT_data_member_location"), None
            if "DW_AT_bit_size" in entry.attributes:
                size = number(entry, "DW_AT_bit_size")
                first = number(entry, "DW_AT_data_bit_offset")
                if "DW_AT_bit_offset" in entry.attributes:  # counted from the top: DWARF 2 and 3
                    storage = 8 * (number(entry, "DW_AT_byte_size") or type_of(entry).size)
                    first = 8 * offset + storage - number(entry, "DW_AT_bit_offset") - size
                offset, bits = first // 32 * 4, (first % 32, size)
            found.append(Member(name_of(entry) or _BASE, offset, type_of(entry), bits))
        return found

    @property
    def enumerators(self) -> dict[int, str]:
        """Names of the values of an enumeration."""
        return {number(one, "DW_AT_const_value"): name_of(one) for one in self._below()}

    def _below(self) -> Iterator[Any]:
        """The entries right below; InputError where they cannot be read."""
        found: Iterator[Any] = self._plain.dwarfinfo.children(self._plain)
        return found

    def __str__(self) -> str:
        return _spelled(self._entry, 0)


def type_of(entry: Any) -> CType:
    """The type that an entry names; InputError where it cannot be read."""
    return CType(None if entry is None else _name_of(entry))


def _name_of(entry: Any) -> Any:
    for one in origin(entry):
        if "DW_AT_type" in one.attributes:
            return one.dwarfinfo.referred(one, "DW_AT_type")
    return None


def _plain(entry: Any) -> Any:
    for _ in range(64):
        if entry is None or (entry.tag != "DW_TAG_typedef" and entry.tag not in _TRANSPARENT):
            return entry
        entry = _name_of(entry)
    return None


def _spelled(entry: Any, depth: int) -> str:
    if entry is None:
        return "void"
    if depth > _DEEPEST:
        return "..."
    if entry.tag in _TRANSPARENT:
        return _TRANSPARENT[entry.tag] + _spelled(_name_of(entry), depth + 1)
    if entry.tag in _POINTERS:
        return f"{_spelled(_name_of(entry), depth + 1)} {_POINTERS[entry.tag]}"
    if entry.tag == "DW_TAG_array_type":
        count = CType(entry).count
        return f"{_spelled(_name_of(entry), depth + 1)}[{'' if count is None else count}]"
    words = {"DW_TAG_structure_type": "struct ", "DW_TAG_union_type": "union "}
    return words.get(entry.tag, "") + (name_of(entry) or "(no name)")


_DEEPEST_TYPE = 16  # structures inside each other
_KEPT = 8  # ELFs: a program that is launched again and again has the same firmware
_POINTER = 4  # bytes of what states no size: pointers


@dataclass(frozen=True)
class Layout:
    """A type: `size` bytes in all, `count` elements of an array (else 1), its members.

    Members of anonymous structures and unions count as members of what holds them.
    """

    size: int
    count: int = 1
    members: Mapping[str, Placed] = field(default_factory=dict)

    @property
    def stride(self) -> int:
        """Bytes between two elements of an array."""
        return self.size // self.count

    def __getitem__(self, name: str) -> Placed:
        if name not in self.members:
            raise InputError(f"no member {name}", hint=f"there are {', '.join(self.members)}")
        return self.members[name]

    def __contains__(self, name: str) -> bool:
        return name in self.members


class Placed(NamedTuple):
    """A member of a structure: its offset in it, and its type."""

    offset: int
    type: Layout


def structure(path: Path, name: str) -> Layout | None:
    """The structure called `name` in the debug information of the ELF at `path`, None without one.

    InputError when the debug information contradicts itself or is larger than a limit.
    """
    return _structure(files.read_bytes(path, "ELF_BYTES"), str(path), name)


@lru_cache(maxsize=_KEPT)
def _structure(data: bytes, path: str, name: str) -> Layout | None:
    try:
        info = reader(data, elf.sections(data, path), path)
        entries = (die for unit in info.units() for die in info.entries(unit)) if info else ()
        for die in entries:
            called = die.attributes.get("DW_AT_name")
            if called is None or called.value != name.encode():
                continue
            kind = CType(die) if die.tag in (*_RECORDS, "DW_TAG_typedef") else None
            if kind is not None and kind.size:
                return _layout(kind, 0)
        return None
    except InputError:
        raise
    except Exception as problem:  # pyelftools raises anything for a damaged file
        text = printable(f"{type(problem).__name__}: {problem}")
        hint = "rebuild the file"
        raise InputError(f"{path}: damaged debug information: {text}", hint=hint) from problem


def _layout(kind: CType, depth: int) -> Layout:
    if depth > _DEEPEST_TYPE:
        raise ValueError("structures without end")
    if kind.kind == "array":
        element, count = _layout(kind.target, depth + 1), kind.count or 0
        return Layout(element.size * count, max(count, 1), element.members)
    members: dict[str, Placed] = {}
    for one in kind.members if kind.kind == "record" else ():
        held = _layout(one.type, depth + 1)
        if one.name == _BASE:
            members |= {
                name: Placed(one.offset + at, of) for name, (at, of) in held.members.items()
            }
        else:
            members[one.name] = Placed(one.offset, held)
    return Layout(kind.size or _POINTER, 1, members)


def as_text(kind: CType, raw: bytes, read: Read, form: str = "", depth: int = 0) -> str:
    """The value in `raw`; form: "x" hexadecimal, "d" and "u" decimal, "t" binary, "c", "f"."""
    if kind.kind in ("record", "array"):
        if depth >= _DEEPEST:
            return "{...}"
        if kind.kind == "record":
            members = kind.members
            count = len(members)
            parts = [(one.type, slice_of(one, raw), f"{one.name} = ") for one in members[:_MOST]]
        else:
            element, count = kind.target, kind.count or 0
            if element.kind == "character" and not form:
                return f'"{printable(raw.partition(bytes(1))[0].decode(errors="replace"))}"'
            size = max(element.size, 1)
            starts = range(0, size * min(count, _MOST, len(raw) // size), size)
            parts = [(element, raw[at : at + size], "") for at in starts]
        shown = [name + as_text(of, part, read, form, depth + 1) for of, part, name in parts]
        return "{" + ", ".join([*shown, *(["..."] if count > _MOST else [])]) + "}"
    if len(raw) in _FLOATS and (form == "f" or (kind.kind == "float" and not form)):
        return repr(struct.unpack(_FLOATS[len(raw)], raw)[0])
    value = int.from_bytes(raw, "little", signed=kind.signed and form in ("", "d", "c"))
    if form:
        if form == "c":
            return repr(chr(value & 0xFF))
        unsigned = value & (1 << 8 * len(raw)) - 1
        return {"x": f"{unsigned:#x}", "t": f"{unsigned:#b}", "u": str(unsigned)}.get(
            form, str(value)
        )
    if kind.kind == "boolean":
        return str(bool(value)).lower()
    if kind.kind == "character":
        return f"{value} {chr(value)!r}" if 32 <= value < 127 else str(value)
    if kind.kind == "enum":
        return kind.enumerators.get(value, str(value))
    if kind.kind == "pointer":
        if value and kind.target.kind == "character":
            try:
                raw = read(value, 64)
            except ValueError:
                return f"{value:#x}"
            text = raw.partition(b"\0")[0].decode(errors="replace")
            return f'{value:#x} "{printable(text)}"'
        return f"{value:#x}"
    return str(value) if -10 < value < 10 else f"{value} ({value & (1 << 8 * len(raw)) - 1:#x})"


def slice_of(member: Member, raw: bytes) -> bytes:
    """The bytes of a member; a bit-field is moved to bit 0."""
    size = member.type.size
    if member.bits is None:
        return raw[member.offset : member.offset + size]
    low, count = member.bits
    word = int.from_bytes(raw[member.offset : member.offset + 8], "little")
    value = word >> low & (1 << min(max(count, 0), 64)) - 1
    return value.to_bytes(8, "little")[: max(size, 1)]


def readable(kind: CType) -> int:
    """How many bytes of an object are read at most."""
    return min(max(kind.size, 0), _LONGEST_OBJECT)


_MASK = 0xFFFF_FFFF
_MOST_STEPS = 1000
_LONGEST_EXPRESSION = 4096  # bytes of an expression
_UNARY: dict[str, Callable[[int, Any], int]] = {  # of the uppermost, and of the operation's number
    "DW_OP_neg": lambda a, n: -a & _MASK,
    "DW_OP_not": lambda a, n: ~a & _MASK,
    "DW_OP_plus_uconst": lambda a, n: a + n[0],
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "DW_OP_plus": lambda a, b: a + b,
    "DW_OP_minus": lambda a, b: a - b,
    "DW_OP_mul": lambda a, b: a * b,
    "DW_OP_and": lambda a, b: a & b,
    "DW_OP_or": lambda a, b: a | b,
    "DW_OP_xor": lambda a, b: a ^ b,
    "DW_OP_shl": lambda a, b: a << (b & 31),
    "DW_OP_shr": lambda a, b: a >> (b & 31),
    "DW_OP_shra": lambda a, b: (a - ((a & 1 << 31) << 1)) >> (b & 31),
}


@dataclass(frozen=True)
class Location:
    """In memory at `address`, or in register `register`, or nowhere: `value` alone is known."""

    address: int | None = None
    register: int | None = None
    value: int | None = None


@dataclass(frozen=True)
class Frame:
    """The registers and the memory of a core that stands at `pc`, an address of linking."""

    debug: Debug
    pc: int
    registers: Sequence[int]
    read: Read
    symbol: Callable[[str], int | None] = lambda name: None  # the address of an ELF's symbol


def visible(debug: Debug, pc: int, depth: int = 0) -> Iterator[tuple[str, Any, Block]]:
    """(name, entry, block) of the variables in scope; `depth` leaves inlined functions out."""
    debug.renew()
    seen = set()
    left = depth
    for block in debug.at(pc):
        if left == 0:
            for entry in block.variables:
                if (name := name_of(entry)) and name not in seen:
                    seen.add(name)
                    yield name, entry, block
        if block.kind != "DW_TAG_lexical_block":
            if left == 0:
                return
            left -= 1


def find(debug: Debug, pc: int, name: str, depth: int = 0) -> tuple[Any, Block | None] | None:
    """The variable of that name that is seen at `pc`."""
    for known, entry, block in visible(debug, pc, depth):
        if known == name:
            return entry, block
    entry = debug.globals.get(name)
    return None if entry is None else (entry, None)


def owners(debug: Debug, name: str) -> Iterator[str]:
    """The functions that have a variable of that name, wherever it is in scope."""
    debug.renew()
    for block in debug.blocks:
        if any(name_of(entry) == name for entry in block.variables):
            if (function := block.function) is not None:
                yield function.name


def locate(frame: Frame, entry: Any, block: Block | None) -> Location:
    """Where the variable is; Gone where it is nowhere, InputError where that cannot be read."""
    with entry.dwarfinfo.reading():
        for one in origin(entry):
            if (constant := one.attributes.get("DW_AT_const_value")) is not None:
                value = constant.value
                if not isinstance(value, int):
                    value = int.from_bytes(bytes(value), "little")
                return Location(value=value)
            if (place := one.attributes.get("DW_AT_location")) is not None:
                return evaluate(frame, one, block, _expression(frame, one, place))
        address = frame.symbol(name_of(entry)) if block is None else None
        if address is None:
            raise Gone("optimized out")
        return Location(address=address)


def _expression(frame: Frame, entry: Any, attribute: Any) -> Any:
    """The location expression that holds at the frame's pc."""
    from elftools.dwarf.locationlists import LocationParser

    info = frame.debug.info
    assert info is not None
    parser = LocationParser(info.location_lists())
    version = entry.cu["version"]
    if not parser.attribute_has_location(attribute, version):
        raise Gone("its location is of a form that is not read")
    found: Any = parser.parse_from_attribute(attribute, version, entry)
    if hasattr(found, "loc_expr"):
        return found.loc_expr
    low = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = 0 if low is None else int(low.value)
    for one in found:
        if hasattr(one, "base_address"):
            base = one.base_address
            continue
        start = 0 if one.is_absolute else base
        if start + one.begin_offset <= frame.pc < start + one.end_offset:
            return one.loc_expr
    raise Gone("optimized out here")


def evaluate(frame: Frame, entry: Any, block: Block | None, expression: Any) -> Location:
    """The location that an expression computes."""
    from elftools.dwarf.dwarf_expr import DWARFExprParser

    stack: list[int] = []
    if len(expression) > _LONGEST_EXPRESSION:
        raise Gone(f"its location is an expression of {len(expression)} bytes")
    operations = DWARFExprParser(entry.cu.structs).parse_expr(expression)
    if not operations:
        raise Gone("optimized out")
    for op in operations[:_MOST_STEPS]:
        name, args = op.op_name, op.args
        if name.startswith("DW_OP_reg") or name == "DW_OP_regx":
            if len(operations) > 1:
                raise Gone("it is in pieces")
            return Location(register=_register(name, "DW_OP_reg", args))
        if name == "DW_OP_stack_value" and stack:
            return Location(value=stack.pop() & _MASK)
        if name == "DW_OP_implicit_value":
            return Location(value=int.from_bytes(bytes(args[0]), "little"))
        try:  # one operation of an expression that does not end it
            if name in _ARITHMETIC:
                b, a = stack.pop(), stack.pop()
                stack.append(_ARITHMETIC[name](a & _MASK, b & _MASK) & _MASK)
            elif name in _UNARY:
                stack.append(_UNARY[name](stack.pop(), args))
            elif name == "DW_OP_addr" or name.startswith("DW_OP_const"):
                stack.append(int(args[0]))
            elif name == "DW_OP_addrx":
                stack.append(entry.cu.dwarfinfo.get_addr(entry.cu, args[0]))
            elif name.startswith("DW_OP_lit"):
                stack.append(int(name.removeprefix("DW_OP_lit")))
            elif name.startswith("DW_OP_breg"):
                stack.append(frame.registers[_register(name, "DW_OP_breg", args)] + args[-1])
            elif name == "DW_OP_fbreg":
                stack.append(_frame_base(frame, block) + args[0])
            elif name == "DW_OP_call_frame_cfa":
                stack.append(_frame_address(frame))
            elif name == "DW_OP_deref":
                stack.append(int.from_bytes(frame.read(stack.pop() & _MASK, 4), "little"))
            elif name == "DW_OP_dup":
                stack.append(stack[-1])
            elif "entry_value" in name:
                raise Gone("optimized out (its value at the call is not kept)")
            else:
                raise Gone(f"its location uses {name}, which is not read")
        except IndexError as error:
            raise Gone("its location is damaged") from error
    if not stack:
        raise Gone("its location is damaged")
    return Location(address=stack.pop() & _MASK)


def _register(name: str, prefix: str, args: Any) -> int:
    digits = name.removeprefix(prefix)
    number = int(digits) if digits.isdecimal() else int(args[0])
    if not 0 <= number < 32:
        raise Gone(f"it is in register {number}, which these cores do not have")
    return number


def _frame_base(frame: Frame, block: Block | None) -> int:
    while block is not None and block.outer is not None:
        block = block.outer
    attribute = None if block is None else block.entry.attributes.get("DW_AT_frame_base")
    if block is None or attribute is None:
        raise Gone("its function has no frame base")
    found = evaluate(frame, block.entry, None, _expression(frame, block.entry, attribute))
    if found.register is not None:
        return frame.registers[found.register]
    return (found.address if found.value is None else found.value) or 0


def _frame_address(frame: Frame) -> int:
    """The canonical frame address, from the call frame information."""
    info = frame.debug.info
    assert info is not None
    sources = ((info.has_CFI, info.CFI_entries), (info.has_EH_CFI, info.EH_CFI_entries))
    for present, entries in sources:
        for entry in entries() if present() else ():
            rule = _frame_rule(entry, frame.pc)
            if rule is not None and rule.reg is not None and 0 <= rule.reg < 32:
                return int(frame.registers[rule.reg] + rule.offset) & _MASK
    raise Gone("its frame is not described")


def _frame_rule(entry: Any, pc: int) -> Any:
    """How an entry of the call frame information computes the frame address; None elsewhere."""
    header = getattr(entry, "header", {})  # the end of .eh_frame has none
    if "initial_location" not in header:
        return None
    low = header["initial_location"]
    if not low <= pc < low + header["address_range"]:
        return None
    if len(entry.instructions) + len(entry.cie.instructions) > _MOST_STEPS:
        return None  # each may stand for a row of all registers
    return [row for row in entry.get_decoded().table if row["pc"] <= pc][-1]["cfa"]
