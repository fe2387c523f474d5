"""What the debug information of an ELF says of each of its instructions: line, copy, branches."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bhemu.program import dwarf, elf, limits, symbols
from bhemu.program.dwarf import Block, Debug, depth_of
from bhemu.program.symbols import Symbols, whole_path
from bhemu.riscv.formats import Branch, Jump
from bhemu.riscv.isa import decode

_KEPT = 64  # ELFs whose lines are remembered


class Place(NamedTuple):
    """A line within one function, or within one inlined copy of a function."""

    file: str
    line: int
    copy: int


class Function(NamedTuple):
    """A function or an inlined copy of one.

    file, line: where it is declared; entry: its first word; back: jumps of its own to there;
    places: numbers of that line, and of the line of the call that was inlined.
    """

    name: str
    file: str
    line: int
    entry: int
    back: tuple[int, ...]
    places: tuple[int, ...]


class CodeLines:
    """The code of an ELF: `words`, the addresses of linking, of which all else is indices.

    `problem`: why there are no lines, "" when there are; `places`; `placed` and `place_of`, words
    and the numbers of their places; `branches`, conditional branches with their places.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self.digest = hashlib.sha256(data).hexdigest()[:16]
        self.problem = Symbols(data, path).line_problem
        self.words: list[int] = []
        self.places: list[Place] = []
        self.branches: list[tuple[int, Place]] = []
        self.functions: list[Function] = []
        if not self.problem:
            self._read(data, path)

    def _read(self, data: bytes, path: str) -> None:
        table = elf.sections(data, path)
        values = dict(_words(data, table, path))
        self.words = list(values)
        index = {at: i for i, at in enumerate(values)}
        debug = Debug(data, path)
        copies = _copies(debug, path)
        rows = symbols.rows(data, table, whole_path) or []
        starts = [row.lo for row in rows]
        of_word: dict[int, Place] = {}
        for at, i in index.items():
            k = bisect_right(starts, at) - 1
            if k >= 0 and at < rows[k].hi and rows[k].line > 0:
                of_word[i] = Place(rows[k].file, rows[k].line, copies.get(at, -1))
        numbers = {place: number for number, place in enumerate(dict.fromkeys(of_word.values()))}
        jumps: dict[int, list[int]] = defaultdict(list)  # by target
        for i, (at, word) in enumerate(values.items()):
            cls = decode(word) if word & 3 == 3 else None
            if cls is not None and issubclass(cls, Branch | Jump):
                jumps[at + cls.offset.get(word)].append(i)
                if issubclass(cls, Branch) and i in of_word:
                    self.branches.append((i, of_word[i]))
        named = symbols.names(data, table, whole_path)
        order = {id(block): number for number, block in enumerate(debug.blocks)}
        for block in debug.blocks:
            entry = min(part.lo for part in block.ranges)
            if block.function is not block or not block.name or entry not in index:
                continue
            debug.renew()
            with block.entry.dwarfinfo.reading():
                line, file = _declared(block.entry, named)
                called = _called(block, named, order)
            if line:
                back = tuple(i for i in jumps.get(entry, ()) if block.holds(self.words[i]))
                lines = Place(file, line, order[id(block)]), called
                own = tuple(numbers.setdefault(one, len(numbers)) for one in lines if one)
                self.functions.append(Function(block.name, file, line, index[entry], back, own))
        self.places = list(numbers)
        self.placed = np.array([*of_word], np.int64)
        self.place_of = np.array([numbers[place] for place in of_word.values()], np.int64)


def _words(data: bytes, table: list[elf.Section], path: str) -> Iterator[tuple[int, int]]:
    """Address and value of each word of code, in the order of sections."""
    executable, total = elf.SHF_ALLOC | elf.SHF_EXECINSTR, 0
    for section in table:
        if section.flags & executable == executable:
            raw = section.bytes_of(data)
            total += len(raw) // 4
            limits.check("DWARF_STEPS", total, f"{path}: words of code")
            for i, word in enumerate(np.frombuffer(raw[: len(raw) & ~3], "<u4").tolist()):
                yield section.address + 4 * i, word


def _copies(debug: Debug, path: str) -> dict[int, int]:
    """By address the number of the innermost function, or inlined copy of one, that holds it."""
    found: dict[int, int] = {}
    total = 0
    for number, block in sorted(enumerate(debug.blocks), key=lambda one: depth_of(one[1])):
        if block.function is block:
            for part in block.ranges:
                total += (part.hi - part.lo) // 4
                limits.check("DWARF_STEPS", total, f"{path}: words of functions and copies")
                found |= dict.fromkeys(range(part.lo, part.hi, 4), number)
    return found


def _named_file(die: Any, attribute: str, file_names: Mapping[int, list[str]]) -> str:
    """A file that an entry names by its number, "" where there is none."""
    index = dwarf.number(die, attribute, -1)
    place = die.cu.get_top_DIE().attributes.get("DW_AT_stmt_list")
    held = file_names.get(place.value, []) if place is not None else []
    return held[index] if 0 <= index < len(held) else ""


def _declared(die: Any, file_names: Mapping[int, list[str]]) -> tuple[int, str]:
    """Line and file of a function; (0, "") where they are not told."""
    for one in dwarf.origin(die):
        line, file = (
            dwarf.number(one, "DW_AT_decl_line"),
            _named_file(one, "DW_AT_decl_file", file_names),
        )
        if line and file:
            return line, file
    return 0, ""


def _called(
    block: Block, file_names: Mapping[int, list[str]], order: Mapping[int, int]
) -> Place | None:
    """The place of the call that became an inlined copy; None of a function itself."""
    line, file = dwarf.number(block.entry, "DW_AT_call_line"), ""
    outer = block.outer and block.outer.function
    if block.inlined and line and outer:
        file = _named_file(block.entry, "DW_AT_call_file", file_names)
    return Place(file, line, order[id(outer)]) if file else None


@lru_cache(maxsize=_KEPT)
def code_lines(data: bytes, path: str) -> CodeLines:
    """Of an ELF, read once."""
    return CodeLines(data, path)
