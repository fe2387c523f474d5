"""Runs of a program with a change in it: does it end as it should, with the right outputs?"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bhemu.errors import BhemuError, InputError
from bhemu.machine.resolve import resolve as address_of
from bhemu.machine.tile import Tile
from bhemu.program.options import QUANTUM
from bhemu.program.specs import OutputSpec, Program
from bhemu.why.repair.bench import bench_of
from bhemu.why.repair.looks import Looks
from bhemu.why.work import Work, executed

_LEAST, _TIMES = 200_000, 3  # clock units that a changed run may take, and times the first run's
# What a trial costs, as instructions: itself, of a chip, a tile put back, a launch.
_TRIAL, _CHIP, _TILE, _LAUNCH = 40_000, 250_000, 100_000, 10_000_000


class Trials:
    """One tile or chip on which a program is run again and again from its launch on.

    `clock`: when the unchanged run ended; `work` is counted up.
    """

    def __init__(
        self, program: Program, clock: int, quantum: int = QUANTUM, work: Work | None = None
    ) -> None:
        self.program, self._clock, self._quantum = program, clock, quantum
        self.work = work or Work()
        self.bench = bench_of(program, quantum)
        self._limit = max(_LEAST, _TIMES * (clock - self.bench.first_clock))
        self._tiles = [tile for part in self.bench.parts for tile in part]
        self._before = self._acts()
        self._wrong: set[bytes] = set()
        self._plain: bytes | None = None  # L1 after the unchanged run, of one tile
        self._left: npt.NDArray[np.uint32] | None = None
        self._ended = False
        self._looks: Looks | None = None
        self.count = 0

    @property
    def tile(self) -> Tile:
        """The first tile."""
        return self.bench.parts[0][0]

    def of(self, program: Program) -> "Trials":
        """The same for another program."""
        self.work.done += _LAUNCH * len(self._tiles)
        return Trials(program, self._clock, self._quantum, self.work)

    def look_early(self) -> None:
        """From now on give up a changed run as soon as an output shows that it is wrong."""
        self._looks = Looks(self.program, self.bench, self._clock)

    def begin(self) -> Tile:
        """As it was launched; the first tile."""
        self.bench.begin()
        return self.tile

    def ends(self, looks: Looks | None = None) -> bool:
        """Run on; whether the program comes to its end, and none of `looks` refutes it."""
        self.count += 1
        for tile in self._tiles:
            tile.state.flush[:] = 1
        try:
            for number, clock in enumerate(looks.clocks if looks else ()):
                ended = self.bench.reaches(clock)
                if ended is not None:
                    return ended
                if looks and looks.refutes(number):
                    return False
            return self.bench.ends(self._limit)
        finally:
            once = _CHIP if not self.program.is_alone else _TRIAL
            self.work.done += once + _TILE * len(self._tiles) + self._acts() - self._before

    def _acts(self) -> int:
        return executed(self._tiles)

    def is_right(
        self,
        change: Callable[[Tile], None] | None = None,
        part: int = 0,
        *,
        changes: Mapping[int, Callable[[Tile], None]] | None = None,
    ) -> bool:
        """Whether the program ends and all its outputs are as expected after `change`.

        change: of each tile of `part` of the program; None: none, and the run goes to its end.
        changes: the same of several parts, by their numbers.
        """
        self.begin()
        every = changes or ({} if change is None else {part: change})
        for number, one in every.items():
            for tile in self.bench.parts[number]:
                one(tile)
        try:
            self._ended = self.ends(self._looks if every else None)
        except BhemuError:
            self._ended = False
        return self._ended and self._agrees([self.bench.read(s) for s in self.program.outputs])

    def _agrees(self, outputs: Sequence[bytes]) -> bool:
        whole = b"".join(outputs)
        if whole in self._wrong:
            return False
        for spec, data in zip(self.program.outputs, outputs, strict=True):
            report = spec.check(data)
            if report is not None and not report.equal:
                self._wrong.add(whole)
                return False
        return True

    def _agree(self, outputs: Sequence[OutputSpec]) -> bool:
        """Whether the last run left what these outputs are to be."""
        try:
            reports = [spec.check(self.bench.read(spec)) for spec in outputs]
        except InputError:  # what is expected is not exact in that format
            return False
        return all(report is None or report.equal for report in reports)

    def left_at(self, address: int) -> int | None:
        """The word of L1 behind the unchanged run, which need not come to its end."""
        if self._left is None:
            self.is_right()
            self._left = self.tile.state.l1.view("<u4").copy()
        return int(self._left[address >> 2]) if address % 4 == 0 else None

    def reads_right(self, number: int, spec: OutputSpec) -> bool:
        """Whether the unchanged run is right where output `number` is read as `spec` says."""
        if not self.program.is_alone:
            self.is_right()
            outputs = [spec if i == number else s for i, s in enumerate(self.program.outputs)]
            return self._ended and self._agree(outputs)
        self.work.done += _TRIAL
        if self._plain is None:
            self.is_right()
            self._plain = self.tile.state.l1.tobytes() if self._ended else b""
        if not self._plain:
            return False
        try:
            for i, own in enumerate(self.program.outputs):
                one = spec if i == number else own
                at = address_of(self.tile, one.at)
                report = one.check(self._plain[at : at + one.size])
                if report is not None and not report.equal:
                    return False
        except InputError:
            return False
        return True
