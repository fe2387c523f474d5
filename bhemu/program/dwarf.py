"""Functions, inlined copies, blocks and layouts of structures of an ELF, from .debug_info.

Nothing is relocated: linked ELFs hold final values, and relocations that the linker kept
(--emit-relocs) would be applied a second time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.errors import Call, InputError
from bhemu.program import elf
from bhemu.program.elf import SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, DamagedError
from bhemu.program.files import check_limit, limit
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
        self._left = limit("DWARF_ENTRIES")
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
        for child in die.dwarfinfo.children(die):
            self._left -= 1
            if self._left < 0:
                check_limit("DWARF_ENTRIES", limit("DWARF_ENTRIES") + 1, "DWARF entries")
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
    check_limit("DWARF_BYTES", total, f"{path}: bytes of debug sections")
    info = Info(data, table, path)
    return info if info.present else None


def number(die: Any, attribute: str, default: int = 0) -> int:
    """An attribute that is a number."""
    found = die.attributes.get(attribute)
    return found.value if found is not None and isinstance(found.value, int) else default


def origin(die: Any) -> Iterator[Any]:
    """The entry, and those that it completes: its abstract form, its declaration."""
    for _ in range(_FARTHEST):
        yield die
        for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if link in die.attributes:
                die = die.dwarfinfo.referred(die, link)
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
