"""Functions, inlined copies, blocks and layouts of structures of an ELF, from .debug_info.

Nothing is relocated: linked ELFs hold final values, and relocations that the linker kept
(--emit-relocs) would be applied a second time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.errors import Call, InputError
from bhemu.program import elf, files, limits
from bhemu.program.elf import SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, DamagedError
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.program.debug_info import Info


_DEEPEST = 64  # entries inside each other
_FARTHEST = 16  # steps to an origin
_LONGEST = 255
_INLINED, _FUNCTION, _BLOCK = (
    "DW_TAG_inlined_subroutine",
    "DW_TAG_subprogram",
    "DW_TAG_lexical_block",
)
_VARIABLES = ("DW_TAG_variable", "DW_TAG_formal_parameter")


class Gone(ValueError):  # noqa: N818 - an answer, not an error
    """A variable has no value here; the message says why."""


class Inlined(NamedTuple):
    """The function of a source position; the calls that were inlined there, the inner first."""

    function: str | None
    calls: tuple[Call, ...]


class Range(NamedTuple):
    """Addresses `lo` to `hi` (exclusive)."""

    lo: int
    hi: int


class Block:
    """A function, one inlined copy of one, or a block with variables of its own.

    `call`: (file, line) of the call that was inlined; `outer`: the block around it; `variables`:
    the entries (pyelftools' DIEs) of variables and parameters.
    """

    __slots__ = ("call", "entry", "kind", "name", "outer", "ranges", "variables")

    def __init__(
        self,
        kind: str,
        name: str,
        ranges: tuple[Range, ...],
        call: tuple[str, int] | None,
        outer: Block | None,
        entry: Any,
    ) -> None:
        self.kind, self.name, self.ranges = kind, name, ranges
        self.call, self.outer, self.entry = call, outer, entry
        self.variables: list[Any] = []

    @property
    def inlined(self) -> bool:
        """Whether it is a copy inside another function."""
        return self.kind == _INLINED

    @property
    def function(self) -> Block | None:
        """The innermost function or inlined copy that it is, or belongs to."""
        block: Block | None = self
        while block is not None and block.kind == _BLOCK:
            block = block.outer
        return block

    def holds(self, address: int) -> bool:
        """Whether code at `address` belongs to it."""
        return any(part.lo <= address < part.hi for part in self.ranges)


class Debug:
    """What .debug_info says of code; addresses are those of linking.

    `problem`: why there is nothing, "" when there is.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self.blocks: list[Block] = []
        self.globals: dict[str, Any] = {}
        self.problem = ""
        self.info: Info | None = None
        self._calls: dict[int, Inlined] = {}
        self._left = limits.limit("DWARF_ENTRIES")
        try:
            table = elf.sections(data, path)
            self._code = _Code(table)
            self.info = reader(data, table, path)
            if self.info is None:
                self.problem = f"{path}: no .debug_info; compile with -g"
                return
            for unit in self.info.units():
                self._walk(unit, unit.get_top_DIE(), None, self.info.files(unit), 0)
            self.info.renew()
        except RecursionError:
            self._fail(f"{path}: .debug_info is nested too deep")
        except InputError as error:
            self._fail(f"{path}: no .debug_info: {error.message}; {error.hint}")
        except Exception as error:  # pyelftools raises anything for a damaged file
            self._fail(f"{path}: damaged .debug_info: {printable(str(error))}")

    def _fail(self, problem: str) -> None:
        self.blocks, self.globals, self.problem, self.info = [], {}, problem, None

    def renew(self) -> None:
        """A new question about variables begins."""
        if self.info is not None:
            self.info.renew()

    def at(self, address: int) -> list[Block]:
        """The blocks around `address`, the innermost first."""
        found = [block for block in self.blocks if block.holds(address)]
        return sorted(found, key=depth_of, reverse=True)

    def calls(self, address: int) -> Inlined:
        """The innermost function, and the calls that were inlined around `address`."""
        if address not in self._calls:
            self._calls[address] = self._find_calls(address)
        return self._calls[address]

    def _find_calls(self, address: int) -> Inlined:
        chain = [block for block in self.at(address) if block.kind != _BLOCK]
        if not chain:
            return Inlined(None, ())
        calls = [
            Call(outer.name, *(block.call or ("?", 0)))
            for block, outer in pairwise(chain)
            if block.inlined
        ]
        return Inlined(chain[0].name, tuple(calls))

    def entries(self, name: str) -> list[int]:
        """Where the code of function `name` begins: itself, and each inlined copy."""
        found = [
            min(part.lo for part in block.ranges)
            for block in self.blocks
            if block.name == name and block.kind != _BLOCK and block.ranges
        ]
        return sorted(set(found))

    def owner(self, address: int) -> Block | None:
        """The function or inlined copy that the code at `address` belongs to."""
        return next((block for block in self.at(address) if block.kind != _BLOCK), None)

    # Reading

    def _walk(self, unit: Any, die: Any, outer: Block | None, files: list[str], depth: int) -> None:
        for child in children(die):
            self._left -= 1
            if self._left < 0:
                limits.check("DWARF_ENTRIES", limits.limit("DWARF_ENTRIES") + 1, "DWARF entries")
            if depth > _DEEPEST:
                raise DamagedError("entries are nested too deep")
            inner = outer
            if child.tag in (_FUNCTION, _INLINED, _BLOCK):
                inner = self._block(unit, child, outer, files)
                if inner is None and child.tag == _BLOCK:
                    inner = outer
            elif child.tag in _VARIABLES:
                if outer is not None:
                    outer.variables.append(child)
                elif name_of(child):
                    if "DW_AT_location" in child.attributes:
                        self.globals[name_of(child)] = child
                    else:
                        self.globals.setdefault(name_of(child), child)
            if child.has_children and (inner is not None or child.tag == "DW_TAG_namespace"):
                self._walk(unit, child, inner, files, depth + 1)

    def _block(self, unit: Any, die: Any, outer: Block | None, files: list[str]) -> Block | None:
        parts = tuple(part for part in _ranges(unit, die) if self._code.holds(part))
        if not parts:
            return None  # a declaration, the abstract form, or what the linker has dropped
        call = None
        if die.tag == _INLINED:
            index, line = number(die, "DW_AT_call_file"), number(die, "DW_AT_call_line")
            call = (files[index] if 0 <= index < len(files) else "?"), line
        block = Block(die.tag, name_of(die), parts, call, outer, die)
        self.blocks.append(block)
        return block


class _Code:
    """The sections with code, of which a file may have thousands."""

    def __init__(self, table: list[elf.Section]) -> None:
        wanted = SHF_ALLOC | SHF_EXECINSTR
        found = sorted(
            (s.address, s.address + s.size) for s in table if s.flags & wanted == wanted and s.size
        )
        self._starts = [start for start, _ in found]
        self._ends = list(accumulate((end for _, end in found), max))  # of all that begin before

    def holds(self, part: Range) -> bool:
        """Whether the addresses, at least one, lie in them."""
        before = bisect_right(self._starts, part.lo)
        return before > 0 and part.lo < part.hi <= self._ends[before - 1]


def depth_of(block: Block) -> int:
    """How many blocks are around it."""
    depth, outer = 0, block.outer
    while outer is not None:
        depth, outer = depth + 1, outer.outer
    return depth


def reader(data: bytes, table: list[elf.Section], path: str) -> Info | None:
    """The reader of .debug_info, None without one; InputError beyond a limit."""
    from bhemu.program.debug_info import Info  # imported late: bhemu must start fast

    check_sizes(data, table, path)
    info = Info(data, table, path)
    return info if info.present else None


def check_sizes(data: bytes, table: list[elf.Section], path: str) -> None:
    """InputError when the debug sections, unpacked, are more than the limit."""
    total = 0
    for section in table:
        if section.name.startswith((".debug_", ".zdebug_")):
            raw = section.bytes_of(data)
            size = len(raw)
            if section.flags & SHF_COMPRESSED:
                size = int.from_bytes(raw[4:8], "little")
            elif section.name.startswith(".z"):
                size = int.from_bytes(raw[4:12], "big")
            total += size
    limits.check("DWARF_BYTES", total, f"{path}: bytes of debug sections")


def number(die: Any, attribute: str, default: int = 0) -> int:
    """An attribute that is a number."""
    found = die.attributes.get(attribute)
    return found.value if found is not None and isinstance(found.value, int) else default


def children(die: Any) -> Iterator[Any]:
    """The entries right below an entry; InputError where they cannot be read."""
    found: Iterator[Any] = die.dwarfinfo.children(die)
    return found


def referred(die: Any, attribute: str) -> Any:
    """The entry that an attribute refers to; InputError where there is none."""
    return die.dwarfinfo.referred(die, attribute)


def origin(die: Any) -> Iterator[Any]:
    """The entry, and those that it completes: its abstract form, its declaration."""
    for _ in range(_FARTHEST):
        yield die
        for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if link in die.attributes:
                die = referred(die, link)
                break
        else:
            return


def name_of(die: Any) -> str:
    """Its name, "" where it has none."""
    for one in origin(die):
        found = one.attributes.get("DW_AT_name")
        if found is not None:
            raw = found.value
            text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
            return printable(text[:_LONGEST])
    return ""


def _ranges(unit: Any, die: Any) -> Iterator[Range]:
    """The addresses of its code."""
    attributes = die.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = number(die, "DW_AT_low_pc"), attributes["DW_AT_high_pc"]
        if isinstance(high.value, int):
            yield Range(low, high.value if high.form == "DW_FORM_addr" else low + high.value)
    elif "DW_AT_ranges" in attributes:
        lists = die.dwarfinfo.range_lists()
        base = number(unit.get_top_DIE(), "DW_AT_low_pc")
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                start = 0 if entry.is_absolute else base
                yield Range(start + entry.begin_offset, start + entry.end_offset)


# Layouts of C structures as an ELF's debug information states them (.debug_info of DWARF 4, 5).
#
# Only what a host needs to talk to firmware: sizes, offsets and array lengths of named structures.
# Members of anonymous structures and unions count as members of what holds them.

_DEEPEST_TYPE = 16  # structures inside each other
_KEPT = 8  # ELFs: a program that is launched again and again has the same firmware
_TRANSPARENT = {
    *("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type"),
    *("DW_TAG_atomic_type", "DW_TAG_restrict_type"),
}
_SUBRANGE = "DW_TAG_subrange_type"
_POINTER = 4  # bytes of what states no size: pointers
_STRUCTURES = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")


@dataclass(frozen=True)
class Type:
    """A type: `size` bytes in all, `count` elements of an array (else 1), its members."""

    size: int
    count: int = 1
    members: Mapping[str, Member] = field(default_factory=dict)

    @property
    def stride(self) -> int:
        """Bytes between two elements of an array."""
        return self.size // self.count

    def __getitem__(self, name: str) -> Member:
        if name not in self.members:
            raise InputError(f"no member {name}", hint=f"there are {', '.join(self.members)}")
        return self.members[name]

    def __contains__(self, name: str) -> bool:
        return name in self.members


@dataclass(frozen=True)
class Member:
    """A member of a structure: its offset in it, and its type."""

    offset: int
    type: Type


def structure(path: Path, name: str) -> Type | None:
    """The structure called `name` in the debug information of the ELF at `path`, None without one.

    InputError when the debug information contradicts itself or is larger than a limit.
    """
    return _structure(files.read_bytes(path, "ELF_BYTES"), str(path), name)


@lru_cache(maxsize=_KEPT)
def _structure(data: bytes, path: str, name: str) -> Type | None:
    try:
        info = reader(data, elf.sections(data, path), path)
        return None if info is None else _Layouts(path).find(info, name)
    except InputError:
        raise
    except Exception as problem:  # pyelftools raises anything for a damaged file
        text = printable(f"{type(problem).__name__}: {problem}")
        raise InputError(
            f"{path}: damaged debug information: {text}", hint="rebuild the file"
        ) from problem


class _Layouts:
    """Entries of .debug_info as types; looks at so many entries at most."""

    def __init__(self, path: str) -> None:
        self._path, self._left = path, limits.limit("DWARF_ENTRIES")

    def _take(self, entries: Iterator[Any]) -> Iterator[Any]:
        for die in entries:
            self._left -= 1
            if self._left < 0:
                most = limits.limit("DWARF_ENTRIES")
                limits.check("DWARF_ENTRIES", most + 1, f"{self._path}: entries of .debug_info")
            yield die

    def find(self, info: Info, name: str) -> Type | None:
        """The structure called `name`, directly or by a typedef, that some unit defines."""
        for unit in info.units():
            for die in self._take(info.entries(unit)):
                if die.tag not in (*_STRUCTURES, "DW_TAG_typedef") or not _is_named(die, name):
                    continue
                target = self._resolved(die)
                if target is not None and "DW_AT_byte_size" in target.attributes:
                    return self._type(target, 0)
        return None

    @staticmethod
    def _resolved(die: Any) -> Any:
        """What a chain of typedefs and qualifiers stands for; None for void."""
        for _ in range(_DEEPEST_TYPE):
            if die.tag not in _TRANSPARENT:
                return die
            if "DW_AT_type" not in die.attributes:
                return None
            die = referred(die, "DW_AT_type")
        raise ValueError("typedefs without end")

    def _type(self, die: Any, depth: int) -> Type:
        if depth > _DEEPEST_TYPE:
            raise ValueError("structures without end")
        die = self._resolved(die)
        if die is None:
            raise ValueError("a member of type void")
        if die.tag == "DW_TAG_array_type":
            element = self._type(referred(die, "DW_AT_type"), depth + 1)
            ranges = (c for c in self._take(children(die)) if c.tag == _SUBRANGE)
            count = prod(_length(each) for each in ranges)
            return Type(element.size * count, max(count, 1), element.members)
        if die.tag in _STRUCTURES:
            return Type(number(die, "DW_AT_byte_size"), 1, dict(self._members(die, depth)))
        return Type(number(die, "DW_AT_byte_size", _POINTER))

    def _members(self, die: Any, depth: int) -> Iterator[tuple[str, Member]]:
        for child in self._take(children(die)):
            if child.tag != "DW_TAG_member" or "DW_AT_type" not in child.attributes:
                continue
            offset = number(child, "DW_AT_data_member_location")
            kind = self._type(referred(child, "DW_AT_type"), depth + 1)
            name = name_of(child)
            if name:
                yield name, Member(offset, kind)
                continue
            for inner, member in kind.members.items():
                yield inner, Member(offset + member.offset, member.type)


def _is_named(die: Any, name: str) -> bool:
    called = die.attributes.get("DW_AT_name")
    return called is not None and called.value == name.encode()


def _length(subrange: Any) -> int:
    """Elements of one dimension; 0 where none is stated."""
    if "DW_AT_count" in subrange.attributes:
        return number(subrange, "DW_AT_count")
    return (number(subrange, "DW_AT_upper_bound", -1) + 1) & 0xFFFFFFFF
