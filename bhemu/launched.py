"""A program launched on a tile or on a chip: run, compared, and how it ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.errors import BhemuError, Limit, NoProgress
from bhemu.program import saved
from bhemu.program.coordinates import XY
from bhemu.program.outputs import OutputResult, collect
from bhemu.program.specs import FirmwareSpec, OutputSpec, Program

if TYPE_CHECKING:
    from bhemu.chip import Chip
    from bhemu.machine.stop import Stop
    from bhemu.tile import Tile

_NO_PAST = "a saved state has no past: begin with the program, or with a state saved earlier"
_HINT = "raise it, or look where it is with bhemu step"


class Ended(NamedTuple):
    """How a run ended: its stop, if it came to one; its error, or that it ended too early."""

    stop: Stop | None
    error: BhemuError | None

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it."""
        return self.stop is not None and self.stop.reason == "interrupt"


class Launched:
    """A launched program: `chip` is None for one of one tile, `tile` the one that is looked at.

    `shown`: the coordinate of that one, else the first. `one_tile`: a program of a chip is refused.
    options: as of launch().
    """

    def __init__(
        self, program: Program, shown: XY | None = None, *, one_tile: bool = False, **options: Any
    ) -> None:
        self.program = program
        self.chip: Chip | None = None
        if program.is_chip and not one_tile:
            from bhemu import launch_chip

            self.chip = launch_chip.launch(program, **options)
            self.tile: Tile = self.chip.tile[shown or program.placed()[0].at[0]]
        else:
            from bhemu.launch import launch

            self.tile = launch(program, **options)

    def run(self) -> Stop:
        """To the program's end condition, limit or time-out."""
        return self.tile.run() if self.chip is None else self.chip.run()

    def finish(self) -> Ended:
        """As run; how it ended, errors included."""
        stop: Stop | None = None
        try:
            stop = self.run()
            return Ended(stop, self.unfinished(stop))
        except BhemuError as error:
            if isinstance(error, NoProgress) and self.program.firmware is not None:
                self._set_firmware_apart(error, self.program.firmware)
            if isinstance(error, NoProgress) and (other := self._nearly()):
                error.hint = f"{error.hint}; the run was to end when {other}"
            return Ended(stop, error)

    def _set_firmware_apart(self, error: NoProgress, firmware: FirmwareSpec) -> None:
        """Cores that wait for the next kernel in firmware explain no hang."""
        from bhemu.hang.waitgraph import Waiter, set_idle_apart

        paths = {str(path) for path in firmware.elfs.values()}
        tiles = {str(list(tile.xy)): tile for tile in self.tiles}

        def is_idle(waiter: Waiter) -> bool:
            tile, pc = tiles.get(str(waiter.where.get("tile"))), waiter.where.get("pc")
            ranges = () if tile is None or "thread" in waiter.where else tile.ranges
            return any(low <= int(str(pc)) < high and path in paths for low, high, path in ranges)

        set_idle_apart(error, is_idle)

    def keep_history(self) -> None:
        """The tile that is looked at can be stepped, forwards and back; before it runs."""
        if self.chip is None:
            self.tile.keep_history()
        else:
            from bhemu.chip_history import ChipHistory

            ChipHistory(self.tile, self.chip)
        if self.program.kind == saved.KIND:
            self.tile.history.hint = _NO_PAST

    def check(self) -> list[OutputResult]:
        """The outputs: saved, compared."""
        return collect(self.program, self.output)

    def output(self, spec: OutputSpec) -> tuple[int, bytes]:
        """The address of an output and its bytes."""
        if self.chip is not None:
            return self.chip.output(spec)
        address = self.tile.address(spec.at)
        return address, self.tile.read(address, spec.size)

    @property
    def clock(self) -> int:
        """Of the chip, or of the tile."""
        return self.tile.clock if self.chip is None else self.chip.clock

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """All tiles that the program has."""
        if self.chip is None:
            return (self.tile,)
        named = {xy for part in self.program.placed() for xy in part.at}
        return tuple(tile for tile in self.chip.tiles() if tile.xy in named)

    def part(self, xy: XY) -> Program:
        """The program as one tile has it."""
        part = next(p for p in self.program.placed() if xy in p.at or not self.chip)
        return replace(self.program, cores=part.cores, sets=part.sets, image=part.image, tiles=())

    def unfinished(self, stop: Stop) -> BhemuError | None:
        """The error of a run that ended before its end condition, None when it did not."""
        if stop.reason == "until":
            return None
        wanted = self._unmet()
        before = f" before {wanted}" if wanted else ""
        tile = self._late_tile()
        core = next((c for c in tile.core.values() if c.state == "running"), None)
        where = None if core is None else core.where()
        if stop.reason == "limit":
            text = f"the clock limit of {self.program.run.limit} was reached{before}"
            return Limit(text, rule="LIMIT", where=where, hint=_HINT)
        if stop.reason == "timeout":
            text = f"the time-out of {self.program.run.timeout_s} s was reached{before}"
            return Limit(text, category="Timeout", rule="TIMEOUT", where=where, hint=_HINT)
        if stop.reason == "idle" and wanted:
            parked = next((c for c in tile.core.values() if c.state == "parked"), None)
            return NoProgress(
                f"everything is idle or parked{before}",
                rule="IDLE",
                where=None if parked is None else parked.where(),
                hint="did every core start? see the counts of retired instructions",
            )
        return None

    def _open(self) -> list[tuple[Tile, int, int]]:
        """The conditions that do not hold: tile, address, value wanted."""
        if self.chip is not None:
            words = [(self.chip.tile[xy], at, want) for xy, at, want in self.chip.end.words]
        else:
            words = [(self.tile, *word) for word in self.tile.machine.end.words]
        return [(tile, at, want) for tile, at, want in words if tile.read32(at) != want]

    def _late_tile(self) -> Tile:
        unmet = self._open()
        return unmet[0][0] if unmet else self.tile

    def _nearly(self) -> str:
        """The conditions of PROGRAM.toml whose words hold something, and another value."""
        held = [one for one in self._open() if one[0].read32(one[1])]
        return self._in_words(held) if self.program.run.until else ""

    def _unmet(self) -> str:
        return self._in_words(self._open())

    def _in_words(self, conditions: list[tuple[Tile, int, int]]) -> str:
        from bhemu.launch import word_name

        texts = []
        for tile, at, want in conditions[:4]:
            of = f" of tile ({tile.xy[0]},{tile.xy[1]})" if self.chip is not None else ""
            name = word_name(self.program, at)
            texts.append(f"{name}{of} was {want:#x} (it is {tile.read32(at):#x})")
        return " and ".join(texts)
