"""Functions, inlined copies and blocks of an ELF: .debug_info as pyelftools reads it, bounded.

Nothing is relocated: linked ELFs hold final values, and relocations that the linker kept
(--emit-relocs) would be applied a second time.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from bhemu import limits
from bhemu.errors import Call
from bhemu.program import elf
from bhemu.program.elf import SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, DamagedError
from bhemu.text import printable

_DEEPEST = 64  # entries inside each other, and steps to an origin
_LONGEST = 255
_INLINED, _FUNCTION, _BLOCK = (
    "DW_TAG_inlined_subroutine",
    "DW_TAG_subprogram",
    "DW_TAG_lexical_block",
)
_VARIABLES = ("DW_TAG_variable", "DW_TAG_formal_parameter")


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
        self._calls: dict[int, Inlined] = {}
        self._left = limits.limit("DWARF_ENTRIES")
        try:
            self._table = elf.sections(data, path)
            check_sizes(data, self._table, path)
            self.info = reader(data)
            if self.info is None:
                self.problem = f"{path}: no .debug_info; compile with -g"
                return
            self._read_units()
        except RecursionError:
            self._fail(f"{path}: .debug_info is nested too deep")
        except Exception as error:  # pyelftools raises anything for a damaged file
            self._fail(f"{path}: damaged .debug_info: {printable(str(error))}")

    def _fail(self, problem: str) -> None:
        self.blocks, self.globals, self.problem = [], {}, problem
        self.info = None

    def at(self, address: int) -> list[Block]:
        """The blocks around `address`, the innermost first."""
        found = [block for block in self.blocks if block.holds(address)]
        return sorted(found, key=_depth, reverse=True)

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

    def _read_units(self) -> None:
        for unit in self.info.iter_CUs():
            top = unit.get_top_DIE()
            files = file_names(self.info, unit)
            self._walk(unit, top, None, files, 0)

    def _walk(self, unit: Any, die: Any, outer: Block | None, files: list[str], depth: int) -> None:
        for child in die.iter_children():
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
                self._variable(child, outer)
            if child.has_children and (inner is not None or child.tag == "DW_TAG_namespace"):
                self._walk(unit, child, inner, files, depth + 1)

    def _block(self, unit: Any, die: Any, outer: Block | None, files: list[str]) -> Block | None:
        parts = tuple(part for part in _ranges(self.info, unit, die) if self._is_code(part))
        if not parts:
            return None  # a declaration, the abstract form, or what the linker has dropped
        call = None
        if die.tag == _INLINED:
            index, line = number(die, "DW_AT_call_file"), number(die, "DW_AT_call_line")
            call = (files[index] if 0 <= index < len(files) else "?"), line
        block = Block(die.tag, name_of(die), parts, call, outer, die)
        self.blocks.append(block)
        return block

    def _variable(self, die: Any, outer: Block | None) -> None:
        if outer is not None:
            outer.variables.append(die)
        elif name_of(die):
            if "DW_AT_location" in die.attributes:
                self.globals[name_of(die)] = die
            else:
                self.globals.setdefault(name_of(die), die)

    def _is_code(self, part: Range) -> bool:
        wanted = SHF_ALLOC | SHF_EXECINSTR
        return any(
            s.flags & wanted == wanted and s.address <= part.lo < part.hi <= s.address + s.size
            for s in self._table
        )


def _depth(block: Block) -> int:
    depth, outer = 0, block.outer
    while outer is not None:
        depth, outer = depth + 1, outer.outer
    return depth


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


def reader(data: bytes) -> Any:
    """pyelftools' reader, None without .debug_info."""
    from elftools.elf.elffile import ELFFile  # imported late: bhemu must start fast

    file = ELFFile(io.BytesIO(data))
    if not file.has_dwarf_info():
        return None
    info = file.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
    return info if info.debug_info_sec is not None else None


def file_names(info: Any, unit: Any) -> list[str]:
    """File names as DW_AT_call_file counts them, without folders."""
    program = info.line_program_for_CU(unit)
    if program is None:
        return []
    names = [shown(entry.name) for entry in program["file_entry"]]
    return names if program["version"] >= 5 else ["?", *names]


def shown(raw: Any) -> str:
    """A name of DWARF as text, without folders."""
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    return printable(text.rpartition("/")[2][:_LONGEST]) or "?"


def number(die: Any, attribute: str, otherwise: int = 0) -> int:
    """An attribute that is a number."""
    found = die.attributes.get(attribute)
    return found.value if found is not None and isinstance(found.value, int) else otherwise


def origin(die: Any) -> Iterator[Any]:
    """The entry, and those that it completes: its abstract form, its declaration."""
    for _ in range(_DEEPEST):
        yield die
        for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if link in die.attributes:
                die = die.get_DIE_from_attribute(link)
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


def _ranges(info: Any, unit: Any, die: Any) -> Iterator[Range]:
    """The addresses of its code."""
    attributes = die.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = number(die, "DW_AT_low_pc"), attributes["DW_AT_high_pc"]
        if isinstance(high.value, int):
            yield Range(low, high.value if high.form == "DW_FORM_addr" else low + high.value)
    elif "DW_AT_ranges" in attributes:
        lists = info.range_lists()
        base = number(unit.get_top_DIE(), "DW_AT_low_pc")
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                start = 0 if entry.is_absolute else base
                yield Range(start + entry.begin_offset, start + entry.end_offset)
