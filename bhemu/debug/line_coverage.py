"""Which lines, branches and functions of kernels runs have executed, and how often (LCOV).

The counts are those of instructions (riscv/core_loop.py); DWARF says which line an instruction is
of, and which function or inlined copy of one it belongs to.
"""

from __future__ import annotations

import hashlib
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.errors import InputError
from bhemu.machine.tile import of_new_tiles
from bhemu.memmap import L1_SIZE
from bhemu.program import dwarf, elf, files
from bhemu.program.dwarf import Block, Debug, whole_path
from bhemu.riscv.core_loop import settle
from bhemu.riscv.formats import Branch, Jump
from bhemu.riscv.isa import decode

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile


# What the debug information of an ELF says of each of its instructions: line, copy, branches.

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
        self.problem = elf.Symbols(data, path).line_problem
        self.words: list[int] = []
        self.places: list[Place] = []
        self.branches: list[tuple[int, Place]] = []
        self.functions: list[Function] = []
        if self.problem:
            return
        table = elf.sections(data, path)
        values = dict(_words(data, table, path))
        self.words = list(values)
        index = {at: i for i, at in enumerate(values)}
        debug = Debug(data, path)
        copies = _copies(debug, path)
        rows = dwarf.rows(data, table, whole_path) or []
        of_word: dict[int, Place] = {}
        for at, i in index.items():
            if (row := elf.holding(rows, at)) is not None and row.line > 0:
                of_word[i] = Place(row.file, row.line, copies.get(at, -1))
        numbers = {place: number for number, place in enumerate(dict.fromkeys(of_word.values()))}
        jumps: dict[int, list[int]] = defaultdict(list)  # by target
        for i, (at, word) in enumerate(values.items()):
            cls = decode(word) if word & 3 == 3 else None
            if cls is not None and issubclass(cls, Branch | Jump):
                jumps[at + cls.offset.get(word)].append(i)
                if issubclass(cls, Branch) and i in of_word:
                    self.branches.append((i, of_word[i]))
        named = dwarf.names(data, table, whole_path)
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
            files.check_limit("DWARF_STEPS", total, f"{path}: words of code")
            for i, word in enumerate(np.frombuffer(raw[: len(raw) & ~3], "<u4").tolist()):
                yield section.address + 4 * i, word


def _copies(debug: Debug, path: str) -> dict[int, int]:
    """By address the number of the innermost function, or inlined copy of one, that holds it."""
    found: dict[int, int] = {}
    total = 0
    for number, block in sorted(enumerate(debug.blocks), key=lambda one: one[1].depth):
        if block.function is block:
            for part in block.ranges:
                total += (part.hi - part.lo) // 4
                files.check_limit("DWARF_STEPS", total, f"{path}: words of functions and copies")
                found |= dict.fromkeys(range(part.lo, part.hi, 4), number)
    return found


def _declared(die: Any, file_names: Mapping[int, list[str]]) -> tuple[int, str]:
    """Line and file of a function; (0, "") where they are not told."""
    for one in dwarf.origin(die):
        line = dwarf.number(one, "DW_AT_decl_line")
        file = dwarf.named_file(one, "DW_AT_decl_file", file_names)
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
        file = dwarf.named_file(block.entry, "DW_AT_call_file", file_names)
    return Place(file, line, order[id(outer)]) if file else None


code_lines = lru_cache(maxsize=_KEPT)(CodeLines)
"""Of an ELF, read once."""

_FOLDERS_UP = 5  # above an ELF, in which its sources are looked for
Executed = npt.NDArray[np.int64]  # by core and word of L1: times executed, times left by a jump


class BranchKey(NamedTuple):
    """A conditional branch: digest of its ELF, the address at which it was linked."""

    elf: str
    address: int


@dataclass
class Source:
    """What was executed of one file.

    lines: times executed by line, 0 = there is code, which was not executed; branches: by line
    [taken, not taken] of each branch instruction; functions: [first line, calls] by name.
    """

    lines: Counter[int] = field(default_factory=Counter)
    branches: dict[int, dict[BranchKey, list[int]]] = field(default_factory=dict)
    functions: dict[str, list[int]] = field(default_factory=dict)

    def add(self, other: Source) -> None:
        """Add the counts of another run."""
        self.lines.update(other.lines)
        for line, own in other.branches.items():
            for key, counts in own.items():
                held = self.branches.setdefault(line, {}).setdefault(key, [0, 0])
                held[:] = [a + b for a, b in zip(held, counts, strict=True)]
        for name, (line, calls) in other.functions.items():
            held = self.functions.setdefault(name, [line, 0])
            held[1] += calls

    @property
    def lines_hit(self) -> int:
        """How many lines were executed."""
        return sum(count > 0 for count in self.lines.values())

    def outcomes(self, line: int) -> list[list[int]]:
        """[taken, not taken] of each branch of a line, in the order of ELFs and addresses."""
        return [counts for _, counts in sorted(self.branches.get(line, {}).items())]

    @property
    def branch_counts(self) -> list[int]:
        """How often each way out of each branch was taken."""
        return [n for own in self.branches.values() for pair in own.values() for n in pair]


class LineCoverage:
    """What runs have executed, by source; runs add up.

    `without`: the ELFs that were executed and have no lines, with the reason; `missing`: sources
    that were not found, by the names that the compiler was given.
    """

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}
        self.without: dict[str, str] = {}
        self.missing: set[str] = set()

    def add(self, other: LineCoverage) -> None:
        """Add what other runs have executed."""
        for name, source in other.sources.items():
            self.sources.setdefault(name, Source()).add(source)
        self.without |= other.without
        self.missing |= other.missing

    def add_image(self, image: elf.Symbols, path: Path, executed: Executed) -> None:
        """Add what a core has executed of an ELF; executed: its counts by word of L1, int64 (n, 2).

        path: the file, near which sources are looked for.
        """
        code = code_lines(image.data, image.path)
        if code.problem:
            self.without[str(path)] = code.problem
            return
        at = np.array([image.running(word) for word in code.words], np.int64)
        counts = np.where((at < L1_SIZE)[:, None], executed[np.minimum(at, L1_SIZE - 4) >> 2], 0)
        most = np.zeros(len(code.places), np.int64)
        np.maximum.at(most, code.place_of, counts[code.placed, 0])
        found: dict[str, Source] = defaultdict(Source)
        for one in code.functions:  # how often control came to the first word from outside
            calls = int(counts[one.entry, 0] - counts[list(one.back), 1].sum())
            found[one.file].functions.setdefault(one.name, [one.line, 0])[1] += calls
            for number in one.places:
                most[number] = max(most[number], calls)
        for (file, line, _), times in zip(code.places, most.tolist(), strict=True):
            found[file].lines[line] += times
        for i, place in code.branches:
            times, taken = counts[i].tolist()
            own = found[place.file].branches.setdefault(place.line, {})
            own[BranchKey(code.digest, code.words[i])] = [taken, times - taken]
        for file, source in found.items():
            if source.lines:
                self.sources.setdefault(self._find(file, path), Source()).add(source)

    def _find(self, file: str, elf_path: Path) -> str:
        """Where a source is; as the compiler was given it where it is not found."""
        home = elf_path.resolve().parent
        for folder in (home, *home.parents[:_FOLDERS_UP], Path.cwd()):
            if files.is_file(folder / file):
                return str((folder / file).resolve())
        self.missing.add(file)
        return file

    def write(self, path: Path, test: str = "") -> None:
        """Write an LCOV tracefile; InputError where that cannot be done."""
        text = "".join(f"{line}\n" for line in self.lcov(test)).encode()
        files.write_whole(path, text, "coverage")

    def lcov(self, test: str = "") -> Iterator[str]:
        """The lines of an LCOV tracefile, as geninfo writes it."""
        for name, source in sorted(self.sources.items()):
            yield f"TN:{test}"
            yield f"SF:{name}"
            functions = sorted(source.functions.items(), key=lambda one: one[1])
            for function, (line, _) in functions:
                yield f"FN:{line},{function}"
            for function, (_, calls) in functions:
                yield f"FNDA:{calls},{function}"
            yield f"FNF:{len(functions)}"
            yield f"FNH:{sum(calls > 0 for _, (_, calls) in functions)}"
            for line in sorted(source.branches):
                for block, pair in enumerate(source.outcomes(line)):
                    for way, times in enumerate(pair):
                        yield f"BRDA:{line},{block},{way},{times if source.lines[line] else '-'}"
            yield f"BRF:{len(source.branch_counts)}"
            yield f"BRH:{sum(n > 0 for n in source.branch_counts)}"
            for line, times in sorted(source.lines.items()):
                yield f"DA:{line},{times}"
            yield f"LF:{len(source.lines)}"
            yield f"LH:{source.lines_hit}"
            yield "end_of_record"


class Watched:
    """A tile whose instructions are counted from now on; keeps its record, but not the tile."""

    def __init__(self, tile: Tile) -> None:
        self.record = tile.observe_cores()
        self.record.counts[0] = 1
        self.tile = weakref.ref(tile)
        self.retired, self.loop_length = tile.state.retired, tile.state.loop_length
        self._loaded, self._ranges, self._done = tile.loaded, tile.ranges, LineCoverage()
        tile.before_reset.append(self._keep)

    def coverage(self) -> LineCoverage:
        """What it has executed so far."""
        settle(self.record, self)
        found = LineCoverage()
        found.add(self._done)
        paths = {Path(name).name: Path(name) for _, _, name in self._ranges}
        for c, own in enumerate(self._loaded):
            for image in own.images:
                path = paths.get(image.path, Path(image.path))
                found.add_image(image, path, self.record.count[c])
        return found

    def _keep(self) -> None:
        """The tile is reset, and its ELFs are forgotten."""
        self._done = self.coverage()
        self.record.count[self.record.count[:, :, 0] != 0] = 0


def watching() -> AbstractContextManager[list[Watched]]:
    """Count on every tile that is made within the context."""
    return of_new_tiles(Watched)


def check(coverage: LineCoverage) -> None:
    """InputError where nothing that was executed has lines."""
    if not coverage.sources:
        told = "; ".join(coverage.without.values()) or "no core has executed an ELF"
        raise InputError(f"no source lines: {told}", hint="compile the kernels with -g")


def sums(sources: Iterable[Source]) -> dict[str, int]:
    """Lines, branches and functions: how many there are, and how many were executed."""
    own = list(sources)
    calls = [n for one in own for _, n in one.functions.values()]
    ways = [n for one in own for n in one.branch_counts]
    return {
        "lines": sum(len(one.lines) for one in own),
        "lines_hit": sum(one.lines_hit for one in own),
        "branches": len(ways),
        "branches_hit": sum(n > 0 for n in ways),
        "functions": len(calls),
        "functions_hit": sum(n > 0 for n in calls),
    }
