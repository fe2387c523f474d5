"""Which lines, branches and functions of kernels runs have executed, and how often (LCOV).

The counts are those of instructions (riscv/observed.py); DWARF says which line an instruction is
of, and which function or inlined copy of one it belongs to.
"""

from __future__ import annotations

import weakref
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.debug.code_lines import Function, code_lines
from bhemu.errors import InputError
from bhemu.machine.tile import tile_created
from bhemu.memmap import L1_SIZE
from bhemu.program import files
from bhemu.riscv.observed import settle

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile
    from bhemu.program.symbols import Symbols

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
        for line, count in other.lines.items():
            self.lines[line] += count
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

    def add_image(self, image: Symbols, path: Path, executed: Executed) -> None:
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
        for one in code.functions:
            for number in one.places:
                most[number] = max(most[number], _calls(one, counts))
        found: dict[str, Source] = defaultdict(Source)
        for (file, line, _), times in zip(code.places, most.tolist(), strict=True):
            found[file].lines[line] += times
        for i, place in code.branches:
            times, taken = counts[i].tolist()
            own = found[place.file].branches.setdefault(place.line, {})
            own[BranchKey(code.digest, code.words[i])] = [taken, times - taken]
        for one in code.functions:
            function = found[one.file].functions.setdefault(one.name, [one.line, 0])
            function[1] += _calls(one, counts)
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

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, for from_dict in another process."""
        return {
            "sources": {
                name: [
                    list(source.lines.items()),
                    [
                        [line, *key, *pair]
                        for line, own in source.branches.items()
                        for key, pair in own.items()
                    ],
                    source.functions,
                ]
                for name, source in self.sources.items()
            },
            "without": self.without,
            "missing": sorted(self.missing),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LineCoverage:
        """What as_dict has made."""
        found = cls()
        for name, (lines, branches, functions) in data["sources"].items():
            own = found.sources[name] = Source(Counter(dict(lines)), {}, functions)
            for line, digest, address, *pair in branches:
                own.branches.setdefault(line, {})[BranchKey(digest, address)] = pair
        found.without, found.missing = data["without"], set(data["missing"])
        return found

    def write(self, path: Path, test: str = "") -> None:
        """Write an LCOV tracefile; InputError where that cannot be done."""
        text = "".join(f"{line}\n" for line in self.lcov(test)).encode()
        files.write_whole(path, lambda file: file.write(text), "coverage")

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


def _calls(function: Function, counts: Executed) -> int:
    """How often control came to the first instruction of a function from outside."""
    return int(counts[function.entry, 0] - counts[list(function.back), 1].sum())


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


@contextmanager
def watching() -> Iterator[list[Watched]]:
    """Count on every tile that is made within the context."""
    found: list[Watched] = []

    def begin(tile: Tile) -> None:
        found.append(Watched(tile))

    tile_created.append(begin)
    try:
        yield found
    finally:
        tile_created.remove(begin)


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
