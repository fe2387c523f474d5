"""The check "cure": the one change of a wrong program with which it ends correctly."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from bhemu.errors import BhemuError, InputError
from bhemu.memmap import CORE_NAMES
from bhemu.program.schema import SAVED_STATE, Program
from bhemu.program.specs import OutputSpec
from bhemu.tensix.observe import WORDS_AND_STORES
from bhemu.why.check import Check, Context
from bhemu.why.edits import Act, Code, Edit, Edits, acts, of_file
from bhemu.why.findings import Finding, place

_RUNS, _MORE = 20, 1_500_000_000  # plain runs, and instructions of 2 ns, that a search may take
_TRIAL, _TILE = 1_000_000, 500_000  # instructions besides, and for each further tile
_RECORDED = 1_000_000  # clock units in which lines are seen to act
_LEAST, _TIMES = 200_000, 2  # clock units of a changed run, and times the first run's
_ROOM, _REACH = 1 << 10, 1 << 20  # bytes for instructions that are added, and how far a jump goes


class _Trials:
    """One machine on which a program is run again and again from its launch on."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._machine = context.launch(engine="compiled", livelock=0, **context.alone)
        self._start = self._machine.snapshot()
        self._limit = max(_LEAST, _TIMES * (context.end - int(self._machine.clock)))
        self._tiles = context.tiles(self._machine)
        held = [(one.state.l1 != 0).reshape(-1, _ROOM).any(axis=1) for one in self._tiles]
        free = np.flatnonzero(~np.any(held, axis=0)[: _REACH // _ROOM])
        self._room = int(free[-1]) * _ROOM if free.size else 0  # which code reaches by one jump

    def acts(self) -> list[Act]:
        """The acts of lines in the unchanged run; an ELF of several tiles counts once."""
        self._machine.restore(self._start)
        kinds = self._context.first(self._machine, 0)
        for tile in kinds:
            tile.log = []
            tile.state.trace[0] = WORDS_AND_STORES
        self._context.finish(self._machine, limit=_RECORDED)
        found = dict[object, Act]()
        for tile in kinds:
            tile.drain_log()
            tile.state.trace[0] = 0
            for act in acts(self._context, tile):
                pc, images = min(act.held), tile.core[CORE_NAMES[act.core]].images
                for image in (one for one in images if one.lookup(pc)):
                    same = act.core, image.data, pc - image.offset, act.address, act.values
                    found.setdefault(same, act)
            tile.log = []
        return list(found.values())

    def changed(self, change: Callable[[Any], None]) -> bool:
        """Whether the program ends correctly after a change of the launched machine."""
        self._machine.restore(self._start)
        try:
            change(self._machine)
        except InputError:
            return False
        self._context.work.done += _TRIAL + _TILE * (len(self._tiles) - 1)
        ended, seen = self._context.finish(self._machine, limit=self._limit), self._context.symptom
        return (seen.error is not None or ended.outputs != seen.outputs) and ended.fine

    def edited(self, act: Act, code: Code) -> bool:
        """Whether it ends correctly with other code for a line, on all tiles that have the line."""
        more = 4 * sum(len(words) + 1 for words in code.values() if len(words) > 1)
        if more > (_ROOM if self._room else 0):
            return False

        def change(_: object) -> None:
            for tile in self._tiles:
                act.put(tile, code, self._room)

        return self.changed(change)

    def of(self, program: Program) -> bool:
        """Whether another program ends correctly."""
        options = {"engine": "compiled", "livelock": 0, **self._context.alone}
        try:
            machine = self._context.launch(program, **options)
        except BhemuError:
            return False
        return self._context.finish(machine, limit=self._limit).fine

    def read(self, number: int, spec: OutputSpec) -> bool:
        """Whether the unchanged run is right if an output is read as `spec` says."""
        seen = self._context.symptom
        others = [one for n, one in enumerate(seen.results) if n != number]
        try:
            report = spec.check(seen.machine.output(spec)[1])
        except InputError:  # what is expected is not exact so, or it ends outside of memory
            return False
        right = report is not None and report.equal and all(one.equal for one in others)
        return seen.error is None and right


def _distance(context: Context, act: Act) -> tuple[int, bool, int, int]:
    """The distance of a line from those that made the first wrong element or met the error."""
    lines = [(one.core, one.file, one.line) for one, _ in context.touched]
    mine = CORE_NAMES[act.core], act.where.file, act.where.line
    at = lines.index(mine) if mine in lines else len(lines)
    clock = next((clock for _, clock in context.touched if clock is not None), 0)
    away = context.end if act.clock is None else abs(clock - act.clock)
    return at, mine[0] not in [core for core, _, _ in lines], away, act.first


def _run(context: Context) -> Sequence[Finding]:
    judged = any(spec.expect is not None for spec in context.program.outputs)
    if context.symptom.fine or not judged or context.program.kind == SAVED_STATE:
        return []
    trials, before = _Trials(context), context.work.done
    if trials.changed(lambda _: None):
        return []  # it needs no more than time
    bound = context.work.done + _RUNS * (context.work.done - before) + _MORE
    every = trials.acts()
    code = Edits(every)
    nearest = sorted(every, key=lambda act: _distance(context, act))
    edits = [*of_file(context.program), *chain.from_iterable(map(code.of, nearest))]
    found: dict[object, list[Edit]] = {}
    tried = 0
    for edit in edits:
        if context.work.done > bound or len(found) > 1:
            break
        tried += 1
        if edit.cures(trials):
            line = edit.where.core, edit.where.file, edit.where.line or edit.where.pc
            found.setdefault(line, []).append(edit)
    most = "" if tried == len(edits) else f", the first of {len(edits)}"
    told = f"{tried} changes were tried{most}; those that cure are all of this line"
    return [_finding(cures, told) for cures in found.values()] if len(found) == 1 else []


def _finding(cures: list[Edit], told: str) -> Finding:
    where, clock, text, _ = cures[0]
    at = f"{where.file}:{where.line}" if where.line else f"pc {where.pc or 0:#x}"
    at = f"{where.core} {at}" if where.core else at
    evidence = (told, *(f"with this as well: {one.text}" for one in cures[1:]))
    text = f"the run also ends correctly if {at} is changed: {text}"
    return Finding("cure", "note", text, place(where, clock), {}, evidence, "")


CHECK = Check(
    name="cure",
    proves="that the run also ends correctly with a change of one line, and with no change of"
    " another line that was tried: a note, and the last; not that this line is the wrong one",
    misses="whatever takes another change: tried are a word left out, a field as it stands"
    " elsewhere in the program, two operands exchanged, a dtype or layout of PROGRAM.toml, two ELFs"
    " exchanged, a wait or post as it stands beside another line of the same instruction; where two"
    " lines cure, nothing is told; it is not asked where something waits, another check has found"
    " something, or no output is compared",
    cost="only where a run went wrong and nothing else was found: at most 20 runs and 3 s",
    applies=lambda seen: 0 if seen.fine else 6,
    run=_run,
)
