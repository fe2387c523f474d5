"""A program launched on a tile or on a chip: run, compared, and how it ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.errors import BhemuError, Limit, NoProgress
from bhemu.launch.launch import launch, word_name
from bhemu.program import schema
from bhemu.program.coordinates import XY
from bhemu.program.outputs import OutputResult, collect
from bhemu.program.specs import FirmwareSpec, Program

if TYPE_CHECKING:
    from bhemu.machine.machine import Chip
    from bhemu.machine.stop import Stop
    from bhemu.machine.tile import Tile

_NO_PAST = "a saved state has no past: begin with the program, or with a state saved earlier"
_HINT = "raise it, or look where it is with bhemu step"


class RunResult(NamedTuple):
    """How a run ended: its stop, if it came to one; its error, or that it ended too early."""

    stop: Stop | None
    error: BhemuError | None

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it."""
        return self.stop is not None and self.stop.reason == "interrupt"


class Launched:
    """A launched program: `machine` is a Tile or a Chip, `tile` the one that is looked at.

    `shown`: the coordinate of that one, else the first. options: as of launch().
    """

    def __init__(self, program: Program, shown: XY | None = None, **options: Any) -> None:
        self.program = program
        self.machine: Tile | Chip = launch(program, **options)
        self.tile = self.at(shown or program.placed()[0].at[0])

    def at(self, xy: XY) -> Tile:
        """The tile at a coordinate; a program of one tile has the one."""
        alone = self.machine.network is None  # and may be anywhere
        return self.machine.chosen(None) if alone else self.machine.tile[xy]

    def run(self) -> Stop:
        """To the program's end condition, limit or time-out."""
        return self.machine.run()

    def finish(self) -> RunResult:
        """As run; how it ended, errors included."""
        stop: Stop | None = None
        try:
            stop = self.run()
            return RunResult(stop, self.unfinished(stop))
        except BhemuError as error:
            if isinstance(error, NoProgress) and self.program.firmware is not None:
                self._set_firmware_apart(error, self.program.firmware)
            if isinstance(error, NoProgress) and (other := self._nearly()):
                error.hint = f"{error.hint}; the run was to end when {other}"
            return RunResult(stop, error)

    def _set_firmware_apart(self, error: NoProgress, firmware: FirmwareSpec) -> None:
        """Cores that wait for the next kernel in firmware explain no hang."""
        from bhemu.machine.hang.graph import Waiter, set_idle_apart

        paths = {str(path) for path in firmware.elfs.values()}
        tiles = {str(list(tile.xy)): tile for tile in self.tiles}

        def is_idle(waiter: Waiter) -> bool:
            tile, pc = tiles.get(str(waiter.where.get("tile"))), waiter.where.get("pc")
            ranges = () if tile is None or "thread" in waiter.where else tile.ranges
            return any(low <= int(str(pc)) < high and path in paths for low, high, path in ranges)

        set_idle_apart(error, is_idle)

    def keep_history(self) -> None:
        """The tile that is looked at can be stepped, forwards and back; before it runs."""
        self.tile.keep_history()
        if self.program.kind == schema.SAVED_STATE:
            self.tile.history.hint = _NO_PAST

    def check(self) -> list[OutputResult]:
        """The outputs: saved, compared."""
        return collect(self.program, self.machine.output)

    @property
    def clock(self) -> int:
        """Of the machine."""
        return self.machine.clock

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """All tiles that the program has."""
        named = {self.at(xy) for part in self.program.placed() for xy in part.at}
        return tuple(sorted(named, key=lambda tile: tile.number))

    def part(self, xy: XY) -> Program:
        """The program as one tile has it."""
        part = next(p for p in self.program.placed() if xy in p.at or self.program.is_alone)
        return replace(self.program, cores=part.cores, sets=part.sets, image=part.image, tiles=())

    def unfinished(self, stop: Stop) -> BhemuError | None:
        """The error of a run that ended before its end condition, None when it did not."""
        if stop.reason == "until":
            return None
        wanted = self._in_words(self._open())
        before = f" before {wanted}" if wanted else ""
        unmet = self._open()
        tile = unmet[0][0] if unmet else self.tile
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

    def end_words(self) -> list[tuple[Tile, int, int]]:
        """The end condition: tile, address, value wanted."""
        return [(self.at(xy), at, want) for xy, at, want in self.machine.loop.end.words]

    def _open(self) -> list[tuple[Tile, int, int]]:
        """The conditions that do not hold: tile, address, value wanted."""
        return [(tile, at, want) for tile, at, want in self.end_words() if tile.read32(at) != want]

    def _nearly(self) -> str:
        """The conditions of PROGRAM.toml whose words hold something, and another value."""
        held = [one for one in self._open() if one[0].read32(one[1])]
        return self._in_words(held) if self.program.run.until else ""

    def _in_words(self, conditions: list[tuple[Tile, int, int]]) -> str:
        texts = []
        for tile, at, want in conditions[:4]:
            of = "" if len(self.tiles) == 1 else f" of tile ({tile.xy[0]},{tile.xy[1]})"
            name = word_name(self.program, at)
            texts.append(f"{name}{of} was {want:#x} (it is {tile.read32(at):#x})")
        return " and ".join(texts)
