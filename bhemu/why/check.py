"""Checks: questions about a program, answered by more runs besides the user's."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from bhemu.errors import BhemuError, Limit, NoProgress, Where
from bhemu.launch import Program, placed_tiles
from bhemu.machine.machine import Chip
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.noc.grid import XY
from bhemu.program import schema
from bhemu.program.outputs import OutputResult
from bhemu.why.findings import Finding

# What a run costs besides its instructions, a Tensix word, a launch, and each further tile of it.
RUN, _WORD, _LAUNCH, TILE = 500_000, 40, 10_000_000, 1_500_000
BYTE = 4  # that is changed before a run


def executed(machine: Any) -> int:
    """The instructions and words that the tiles of a machine have executed, in instructions."""
    return sum(
        int(tile.state.retired.sum()) + _WORD * int(tile.state.executed.sum())
        for tile in machine.tiles_made()
    )


_SLICE = 20_000  # clock units
WORK = 12_000_000_000  # of all checks of one question, some 24 s
AT_MOST = 900.0  # seconds on the clock, where a machine is that slow


def end_of(error: BhemuError) -> str:
    """How an error ends a run, in a line; of a hang, of which nobody looks for the waits, that."""
    if isinstance(error, NoProgress):
        return f"[{error.rule}] no core goes on any more"
    return str(error).splitlines()[0]


@dataclass(frozen=True)
class Outcome:
    """How a run of the program ended, and what it left: the bytes of each output."""

    machine: Any  # Tile or Chip
    stop: Stop | None
    error: BhemuError | None
    program: schema.Program
    addresses: tuple[int, ...]
    outputs: tuple[bytes, ...]
    reads: Mapping[int, bytes]  # of a session's host, those that differ from the session

    @cached_property
    def results(self) -> tuple[OutputResult, ...]:
        """The outputs, compared with what is expected of them."""
        held = zip(self.program.outputs, self.addresses, self.outputs, strict=True)
        return tuple(OutputResult(spec, at, spec.check(data), None) for spec, at, data in held)

    @property
    def wrong(self) -> tuple[OutputResult, ...]:
        """The outputs that are not what was expected."""
        return tuple(result for result in self.results if not result.equal)

    @property
    def hangs(self) -> bool:
        """It made no progress, or came to its limit."""
        return isinstance(self.error, NoProgress | Limit)

    @property
    def refused(self) -> bool:
        """An instruction, word or access of it was an error."""
        return self.error is not None and not self.hangs

    @property
    def fine(self) -> bool:
        """Nothing is known to be wrong with it."""
        return self.error is None and not self.wrong

    def same(self, other: "Outcome") -> bool:
        """Whether it ended as the other one did, with the same bytes."""
        same = self.ending == other.ending and self.reads == other.reads
        return same and self.outputs == other.outputs

    def alike(self, other: "Outcome") -> bool:
        """The same, or refused for the same act: when that came decides what outputs hold then."""
        if self.error is None or other.error is None or self.hangs or other.hangs:
            return self.same(other)
        acts = [(one.rule, one.message, one.where) for one in (self.error, other.error)]
        return acts[0] == acts[1]

    @property
    def ending(self) -> str | None:
        """The kind of error that ended it."""
        return None if self.error is None else type(self.error).__name__


Name = Callable[[Tile, set[tuple[int, int]]], object]
"""Replaces the symbols of a tile's code at each (core, pc)."""


@dataclass
class Context:
    """What a check works on: the program, the end of its run, and more runs.

    `symptom`: the end of the user's run; `quantum`: of that run. `facts`: what checks share, by
    name. `touched`: the lines that made the first wrong element of each output or met the error,
    and their clocks, the last one first.
    """

    program: schema.Program
    symptom: Outcome
    quantum: int
    say: Callable[[str], None]
    facts: dict[str, Any] = field(default_factory=dict)
    touched: list[tuple[Where, int | None]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    work: int = 0  # that was done so far, in instructions
    skipped: list[str] = field(default_factory=list)  # checks for which no work was left
    cut: list[XY] = field(default_factory=list)  # tiles too long for the order to their end
    names: Callable[[Chip], Name] | None = None  # of a session, whose code has no symbols
    libraries: dict[tuple[XY, str], frozenset[str]] = field(default_factory=dict)  # files, by core
    notes: list[Finding] = field(default_factory=list)  # of pairs that no late run has shown
    end: int = field(init=False)  # the clock when the run ended

    def __post_init__(self) -> None:
        self.end = int(self.symptom.machine.clock)

    @property
    def tile(self) -> Tile:
        """The first tile that the program names, of the user's run."""
        return self.tiles(self.symptom.machine)[0]

    @property
    def past(self) -> Tile | None:
        """The tile of the user's run if it is the only one and keeps a history."""
        tile = self.tile
        return tile if self.program.is_alone and tile.loop.observer is not None else None

    def tiles(self, machine: Any) -> tuple[Tile, ...]:
        """The tiles of the program."""
        return tuple(tile for tile, _ in placed_tiles(machine, self.program))

    def part(self, tile: Tile) -> schema.TileSpec:
        """The part of the program that a tile has."""
        placed = placed_tiles(tile.machine, self.program)
        return next(part for one, part in placed if one.xy == tile.xy)

    @cached_property
    def firmware(self) -> frozenset[bytes]:
        """The bytes of the ELFs of the program's firmware, which counts as correct."""
        elfs = self.program.firmware.elfs.values() if self.program.firmware else ()
        return frozenset(one.read_bytes() for one in elfs)

    def in_firmware(self, tile: Tile, core: int, pc: int) -> bool:
        """Whether an instruction of a core belongs to firmware."""
        images = tile.core[CORE_NAMES[core]].images
        return any(one.data in self.firmware and one.lookup(pc) for one in images)

    @property
    def late(self) -> bool:
        """Whether the checks have used up their work or time."""
        return self.work > WORK or time.monotonic() - self.began > AT_MOST

    def launch(self, program: schema.Program | None = None, **options: Any) -> Any:
        """Launch the program, or a similar one; nothing of it has executed yet."""
        self.work += _LAUNCH + TILE * (len(self.tiles(self.symptom.machine)) - 1)
        given = Program(**vars(program or self.program))
        machine = given.launch(**{"quantum": self.quantum, **options})
        machine.loop.explains_hangs = False  # the waits are known of the user's run
        return machine

    @property
    def alone(self) -> dict[str, Any]:
        """Options of a launch that runs everything in this thread."""
        return {} if self.program.is_alone else {"threads": 1}

    def outputs(self, machine: Any) -> tuple[bytes, ...]:
        """The bytes where the outputs are, as a machine holds them now."""
        return tuple(machine.output(spec)[1] for spec in self.program.outputs)

    def finish(
        self,
        machine: Any,
        *,
        limit: int | None = None,
        until: Any = None,
        each_round: Callable[[], None] | None = None,
    ) -> Outcome:
        """Run a launched program to its end, or to `until`, at most `limit` clock units.

        each_round: called after each round of a chip.
        """
        stop, error, before = None, None, executed(machine)
        end = None if limit is None else machine.clock + limit
        try:
            stop = machine.run(until, limit=limit) if each_round is None else None
            while each_round is not None and (stop is None or stop.reason == "rounds"):
                left = None if end is None else max(end - machine.clock, 0)
                stop = machine.run(limit=left, rounds=1)
                each_round()
                machine.loop.continues_last_run = True
        except BhemuError as problem:
            error = problem
        finally:
            if each_round is not None:
                machine.loop.continues_last_run = False
        self.work += RUN + executed(machine) - before
        return outcome(self.program, machine, stop, error)

    def again(self, prepare: Callable[[Any], None] | None = None, **options: Any) -> Outcome:
        """The program launched and run to its end, `prepare`d in between."""
        machine = self.launch(**options)
        if prepare is not None:
            prepare(machine)
        return self.finish(machine, limit=self.most)

    def first(self, machine: Any, most: int) -> list[Tile]:
        """At most `most` tiles, but at least one of each kind."""
        kinds: dict[Any, list[Tile]] = {}  # by what their cores execute
        for tile, part in placed_tiles(machine, self.program):
            cores = part.cores.values()
            kinds.setdefault(tuple((one.name, one.elf, one.pc) for one in cores), []).append(tile)
        lasts = [kind[-1] for kind in kinds.values() if len(kind) > 1]
        others = [*lasts, *(one for kind in kinds.values() for one in kind[1:-1])]
        return [*(kind[0] for kind in kinds.values()), *others[: max(most - len(kinds), 0)]]

    @property
    def most(self) -> int:
        """The limit, in clock units, of a run that should do what the user's run did."""
        return self.end if self.is_endless else 4 * self.last_activity + 100_000

    @property
    def is_endless(self) -> bool:
        """Whether the user's run was at work until its limit."""
        return isinstance(self.symptom.error, Limit) and 2 * self.last_activity > self.end

    @cached_property
    def last_activity(self) -> int:
        """The clock at the end of the run; of a hang soon after the last word, change of L1, or (on
        a chip) delivery of a transfer."""
        seen = self.symptom.machine
        if not self.symptom.hangs:
            return self.end
        if self.program.is_alone:
            tile, reached, before, reason = self.launch(), 0, b"", "limit"
            limit = _SLICE  # longer and longer where nothing happens
            with suppress(BhemuError):
                while tile.clock < self.end and reason == "limit":
                    reason = tile.run(limit=min(limit, self.end - tile.clock)).reason
                    after = tile.state.executed.tobytes() + tile.state.l1.tobytes()
                    limit = 2 * limit
                    if after != before:
                        reached, before, limit = tile.clock, after, _SLICE
            return int(reached) or self.end
        chip, rounds, reason = self.launch(**self.alone), 64, "rounds"
        delivered, last = chip.network.state.delivered, seen.network.state.delivered[0]
        with suppress(BhemuError):
            while delivered[0] < last and reason == "rounds":
                reason, rounds = chip.run(rounds=rounds).reason, 2 * rounds
        return min(int(chip.clock), int(seen.clock))


def unsaved(program: schema.Program) -> schema.Program:
    """The program without the files to which its outputs are saved."""
    return replace(program, outputs=tuple(replace(one, save=None) for one in program.outputs))


def outcome(
    program: schema.Program, machine: Any, stop: Stop | None, error: BhemuError | None
) -> Outcome:
    """The outcome of a run."""
    wanted = machine.loop.end.words
    if error is None and stop is not None and (stop.reason in ("limit", "timeout")):
        error = Limit("the limit of the run was reached", rule="LIMIT")
    if error is None and stop is not None and stop.reason == "idle" and wanted:
        error = NoProgress("everything is idle or parked before its end", rule="IDLE")
    held = [machine.output(spec) for spec in program.outputs]
    addresses, outputs = tuple(at for at, _ in held), tuple(data for _, data in held)
    host = machine.loop.host
    reads = {} if host is None else {at: got for at, (_, got) in host.differences.items()}
    return Outcome(machine, stop, error, program, addresses, outputs, reads)


@dataclass(frozen=True)
class Check:
    """One check, declared in a file of `checks/`.

    proves, misses, cost: sentences for the user. applies: how well the check fits the end of the
    run, 0 = not at all; the best come first. run: its findings, none for a correct program.
    """

    name: str
    proves: str
    misses: str
    cost: str
    applies: Callable[[Outcome], int]
    run: Callable[[Context], Sequence[Finding]]
