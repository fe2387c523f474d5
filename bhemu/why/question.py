"""From a program to its findings: for `bhemu why` and Tile.why."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from bhemu.devices.bus.address_map import FIRST_BUFFER_STREAMS
from bhemu.errors import BhemuError, Call, InputError, Limit, NoProgress, Where, source_text
from bhemu.launch import Launched, RunResult
from bhemu.machine.hang.explore import livelock
from bhemu.machine.hang.givers import Agents
from bhemu.machine.hang.graph import NOT_FOUND, no_progress
from bhemu.machine.hang.waits import PAGES, semaphore_releasers, touched
from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.memmap import LOCAL_BASE, LOCAL_SIZES
from bhemu.noc.grid import number_at
from bhemu.program import schema, toml
from bhemu.program.coordinates import XY
from bhemu.riscv.assembly import SP
from bhemu.tensix import mmio
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.insn import SEMAPHORE_NAMES
from bhemu.text import joined
from bhemu.why import checks, overwritten, waiting
from bhemu.why.check import Context, Name, outcome, unsaved
from bhemu.why.checks.contract import of_stack
from bhemu.why.findings import (
    Finding,
    merged,
    of_error,
    of_one_hang,
    place,
    waiters_of,
    who_waits,
    with_evidence,
)
from bhemu.why.order.observe import data_end
from bhemu.why.origin import links_of, of_output

_FOLLOWED = 2  # wrong outputs in L1 of a chip, each of which takes one more run
_BUDGET = 20_000  # instructions that are followed to prove a livelock
_LEAST, _TIMES = 200_000, 3  # a run may go on for so many clock units, or times its length
_TIMED = "checks need a run without --late and --timing: words are complete at the gate there"


def refuse_timed(target: Launched) -> None:
    """InputError if the machine has late words or modelled times, before or after its run."""
    if target.tile.state.timed[0]:
        raise InputError(_TIMED, hint="bhemu run --late SEED says whether the outputs hold")


def context(
    target: Launched,
    ended: RunResult,
    say: Callable[[str], None] = lambda _: None,
    names: Callable[[Chip], Name] | None = None,
) -> Context:
    """The context of checks of a run; InputError if the run has late words or modelled times.

    names: gives the code of a session its symbols.
    """
    refuse_timed(target)
    program, error = unsaved(target.program), ended.error
    if program.is_alone and isinstance(error, Limit):
        if loops := livelock(target.tile, _BUDGET):  # it came to its limit in a hang
            error = no_progress(target.machine, {number_at(target.tile.xy): loops})
    seen = outcome(program, target.machine, ended.stop, error)
    own = names if program.kind == schema.SESSION else None
    return Context(program, seen, int(target.tile.state.quantum[0]), say, names=own)


def findings(asked: Context, target: Launched, error: BhemuError | None) -> list[Finding]:
    """Everything that is wrong with a run, in the order of the classes."""
    tile = target.tile if target.program.is_alone else None
    if isinstance(error, Limit):
        error = asked.symptom.error
    if isinstance(error, NoProgress):
        error = waiting.with_counts(asked, waiting.with_seen(asked, error))
    symptom = [] if error is None else [of_error(error, target.clock, tile)]
    if error is not None and error.where is not None:
        asked.touched.append((error.where, target.clock))
    if isinstance(error, NoProgress):
        symptom = [_hang(asked, tile, error, symptom[0])]
    found = [*_too_short(asked, error), *overwritten.arguments(asked)]
    found += [*overwritten.missing(asked), *overwritten.tensors(asked)]
    found += [*overwritten.emptied(asked, error)]
    if tile is not None:  # which is taken back in time by what comes now
        found += [*overwritten.setter(asked, error), *overwritten.code(tile, asked.program)]
    if error is None:
        for number, wrong in enumerate(asked.symptom.wrong):
            symptom += of_output(asked, tile, wrong, follow=number < _FOLLOWED)
    if asked.program.kind == schema.SAVED_STATE:  # which has no past that a check could look at
        found += state_stacks(target)
    else:
        found = checks.findings(asked, checks.fitting(asked), found, roots=True)
    if isinstance(error, NoProgress):
        symptom = [waiting.with_hand_over(symptom[0], error, found)]
        found = waiting.apart(error, found)
    elif error is not None and symptom:
        symptom, found = [], checks.explained(symptom[0], found)
    shown = [one for one in found if (one.check, one.severity) != ("order", "note")]
    asked.notes = [one for one in found if one not in shown]
    return of_kernels(asked, checks.ordered([*symptom, *shown]))


def _too_short(asked: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The line of the limit, if the unchanged program is right with a higher one."""
    path = asked.program.path
    if not isinstance(error, Limit) or path is None:
        return
    machine = asked.launch(engine="compiled", livelock=0, **asked.alone)
    if asked.finish(machine, limit=max(_LEAST, _TIMES * asked.end)).fine:
        line = toml.line_of_key(path, "run", 0, "limit")
        text = f"{path.name}:{line}: the program is right and needs more time than its limit"
        who = place(Where(file=path.name, line=line), None)
        proof = ("run on, it ends, with all outputs as expected",)
        yield Finding("program", "error", text, who, {}, proof, "raise the limit")


def _hang(asked: Context, tile: Tile | None, error: NoProgress, found: Finding) -> Finding:
    """A hang with what is known of it besides who waits for whom."""
    stores = [] if tile is None else [*overwritten.awaited(tile, error)]
    ended = [*waiting.left_pages(asked, error)]
    hang = of_one_hang(found, [*stores, *ended])
    waiters, said = waiters_of(error), "has ended" in hang.text
    for one in (one for one in ended if one.victim == who_waits(waiters[0]) and not said):
        text = hang.text.removesuffix(NOT_FOUND)
        hang = replace(hang, text=f"{text}; {one.text.partition('; ')[2]}")
    if (never := next(waiting.beyond(asked, error), None)) is not None:
        text = f"{error.category.lower()}: {never.text}"
        return replace(hang, text=text, culprit=never.culprit)
    sent, cycle = [*waiting.brought(asked, error)], getattr(error.graph, "cycle", ())
    roots = [one for one in waiters if one.who in cycle] or waiters[:1]  # of all waits
    for one in (one for one in sent if one.victim in map(who_waits, roots)):
        led = replace(of_one_hang(hang, sent), culprit=one.culprit, victim=one.victim)
        text, evidence = f"{error.category.lower()}: {one.text}", (hang.text, *led.evidence)
        return replace(led, text=text, evidence=evidence, advice=one.advice)
    if stores:  # what was waited for had come
        return replace(hang, culprit=stores[0].culprit, victim=hang.culprit)
    return hang


def of_program(
    program: Any,
    where: str | None,
    core: str,
    quantum: int,
    xy: XY | None = None,
    times: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Run a program again; its findings, or the causes of the value at the place `where`.

    xy: the tile of `where`. times: the options late and timing of the run.
    """

    def run(program: schema.Program) -> tuple[Launched, RunResult]:
        target = Launched(unsaved(program), xy, quantum=quantum)
        (target.prepare_checks if where is None else target.keep_history)()
        return target, target.finish()

    def ask(program: schema.Program) -> tuple[Context, list[Finding]]:
        target, ended = run(program)
        asked = context(target, ended)
        return asked, findings(asked, target, ended.error)

    target, ended = run(with_times(program, times or {}))
    if where is None:
        if target.tile.state.timed[0]:
            return findings_when_late(target, ended, ask)[1]
        return findings(context(target, ended), target, ended.error)
    links = links_of(context(target, ended), target.tile, core, where)
    made = next((link for link in links if link.where is not None), None)
    culprit = {} if made is None else place(made.where, made.clock, target.tile)
    evidence = tuple("  " * link.depth + str(link) for link in links[1:])
    return [Finding("place", "note", str(links[0]), culprit, {"place": where}, evidence, "")]


_TESTS_LLK = "llk"  # of a program that tests tt-llk itself


def of_kernels(context: Context, found: Sequence[Finding]) -> list[Finding]:
    """The findings with culprits in kernels; a line of a library's header becomes evidence."""
    if context.program.kind == _TESTS_LLK:
        return list(found)
    tiles = {tile.xy: tile for tile in context.tiles(context.symptom.machine)}

    @cache
    def library(xy: Any, core: str) -> frozenset[str]:
        images = tiles[xy].core[core].images if xy in tiles else ()
        of_session = context.libraries.get((xy, core), ())
        return frozenset().union(of_session, *(image.library for image in images))

    return [_outward(one, library) for one in found]


def _outward(found: Finding, library: Any) -> Finding:
    found = replace(found, victim=_caller(found.victim, library))
    who, outer = found.culprit, _caller(found.culprit, library)
    if who == outer:
        return found
    inner = source_text(who.get("file"), who.get("line"), who.get("function"), ())
    said, there = (f"{who['core']} {one['file']}:{one['line']} " for one in (who, outer))
    text, evidence = found.text.replace(said, there, 1), (*found.evidence, f"there in {inner}")
    return replace(found, text=text, culprit=outer, evidence=evidence)


def _caller(who: dict[str, Any], library: Any) -> dict[str, Any]:
    """A place; of one in a header of a library the line of the kernel that calls it."""
    if not who.get("inlined") or "core" not in who or "tile" not in who:
        return who
    names = library(tuple(who["tile"]), who["core"])
    frames = [{name: who.get(name) for name in Call._fields}, *who["inlined"]]
    at = next((n for n, one in enumerate(frames) if one["file"] not in names), 0)
    return {**who, **frames[at], "inlined": frames[at + 1 :]} if at else who


# What is wrong with a run in which words, cores and requests take time.
#
# The checks follow runs in which a word is complete at its gate. So the same program runs again
# without late and timing. If both end differently, the reason is an unordered access, or the
# program reads clocks.

OF_TIME = ("late", "timing")
_NOTHING = (
    "the same program ends differently when nothing is late, and no accesses without an order were"
    " found: it reads a clock or a counter, or they are where the check does not look"
)
_SOME = (
    "the same program ends differently when nothing is late: it reads a clock or a counter, or one"
    " of the pairs of accesses that nothing orders decides it, none of which a late run has shown"
)


def with_times(program: schema.Program, times: Mapping[str, Any]) -> schema.Program:
    """The program with `times` as its options late and timing."""

    def without(options: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in options.items() if name not in OF_TIME}

    chip = program.chip and replace(program.chip, options=without(program.chip.options))
    run = replace(program.run, options={**without(program.run.options), **times})
    return replace(program, run=run, chip=chip)


def findings_when_late(
    late: Launched, ended: RunResult, ask: Callable[[schema.Program], tuple[Context, list[Finding]]]
) -> tuple[Context, list[Finding]]:
    """The findings of a run in which words take time, and of the same run without that.

    ask: runs a program and returns its context and findings. Unordered accesses that no late run of
    their own has shown stay notes: what makes this run end differently may be something else.
    """
    if late.machine.loop.host is not None:
        text = "the host of a session waits in each read of a late run, so that none is looked into"
        raise InputError(text, hint="bhemu why SESSION without --late and --timing")
    asked, found = ask(with_times(late.program, {}))
    seen = outcome(asked.program, late.machine, ended.stop, ended.error)
    if seen.same(asked.symptom):
        return asked, found
    found = [one for one in found if one.found_by != "late"]  # this run is one
    cut = any(isinstance(one.error, Limit) for one in (seen, asked.symptom))  # it may only be late
    # whether another finding tells the reason, or it cannot be found
    known = cut or any(one.check == "order" for one in found)
    symptom = [
        Finding("output", "error", joined(str(one.report)), {}, {"output": one.spec.name}, (), "")
        for one in seen.wrong
    ]
    if seen.error is not None:
        symptom = [of_error(seen.error, late.clock, late.tile if late.program.is_alone else None)]
    given = {name: value for name, value in late.program.options.items() if name in OF_TIME}
    times = " ".join(f"--{name} {value}" for name, value in given.items())
    fine = "as expected" if asked.symptom.fine else f"in {asked.symptom.ending or 'other bytes'}"
    told = [f"without {times} the program ends {fine}"]
    if not known:
        program, text = late.program.path or "PROGRAM", _NOTHING
        if asked.notes:
            text = f"{_SOME} ({len(asked.notes)}): bhemu check --tool order {program}"
        told.append(text)
    marked = [
        with_evidence(replace(one, text=f"with {times}: {one.text}"), told) for one in symptom
    ]
    return asked, checks.ordered([*marked, *found])


# Facts that a saved state alone tells: it has no past, so no check can follow a run.
_TILES = 8  # whose state is shown
_COUNT = 0xFFFF  # counters of circular buffers wrap
_NOT_KNOWN = (
    "not known of a saved state: who wrote what, races, barriers, what was never written; for these"
    " run the program itself (bhemu why PROGRAM), or begin with a state saved earlier"
    " (bhemu step STATE, then reverse-continue, or why PLACE)"
)


@dataclass(frozen=True)
class Told:
    """The contents of a state, by tile, and of how many more tiles they are not shown."""

    tiles: dict[tuple[int, int], list[str]]
    more: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        shown = [{"tile": list(xy), "lines": lines} for xy, lines in self.tiles.items()]
        return {"state": shown, "not_known": _NOT_KNOWN}

    def lines(self) -> Iterator[str]:
        """As text."""
        for (x, y), lines in self.tiles.items():
            yield f"[state] tile ({x},{y})"
            yield from (f"  {line}" for line in lines)
        if self.more:
            yield f"[state] {self.more} more tiles (bhemu step STATE --tile x,y; where, dump)"
        yield _NOT_KNOWN


def state_told(target: Launched, found: Iterable[Finding] = ()) -> Told:
    """Semaphores, circular buffers and banks of tiles that have used them, or that are named."""
    named = {tuple(one.culprit.get("tile") or ()) for one in found}
    used = [tile for tile in target.tiles if tile.xy in named or _used(tile)]
    first = sorted(used, key=lambda tile: tile.xy not in named)[:_TILES]
    return Told({tile.xy: [*_lines(tile)] for tile in first}, len(used) - len(first))


def _used(tile: Tile) -> bool:
    s = tile.state
    return any(one.any() for one in (s.sem, s.sem_by, s.src_valid, s.stream[:, [*PAGES]]))


def _lines(tile: Tile) -> Iterator[str]:
    """What a tile holds in semaphores, circular buffers and banks of SrcA and SrcB."""
    s, agents = tile.state, Agents(tile, ())
    for i, name in enumerate(SEMAPHORE_NAMES):  # those that were set up or used
        value, most = int(s.sem[i]), int(s.sem_max[i])
        if not (value or most or s.sem_by[i].any()):
            continue
        text = f"semaphore {i} ({name}) = {value} of {most}"
        for zero, verb in ((True, "post"), (False, "take")):
            if (value == 0) == zero and not semaphore_releasers(agents, i, zero):
                text += f", nobody can {verb} it any more"
        yield f"{text}; {touched(agents, i).partition(' was ')[2]}"
    for stream in range(mmio.STREAMS):  # counters of pages that kernels keep there
        received = int(s.stream[stream, mmio.REMOTE_DEST_BUF_SIZE])
        acked = int(s.stream[stream, mmio.REMOTE_DEST_BUF_START])
        if received or acked:
            left = (received - acked) & _COUNT
            then = stream - FIRST_BUFFER_STREAMS[1]
            older = f" (in older builds {then})" if then >= 0 else ""
            yield (
                f"circular buffer {stream}{older}: {received} pages announced, {acked} given back:"
                f" {left} in it"
            )
    for which, name in ((SRCA, "SrcA"), (SRCB, "SrcB")):  # that were not given back
        held = [bank for bank in range(2) if s.src_valid[which, bank]]
        if held:
            banks = " and ".join(str(bank) for bank in held)
            reads, writes = int(s.matrix_bank[which]) & 1, int(s.unpack_bank[which]) & 1
            yield (
                f"{name}: bank {banks} belongs to the matrix unit, which reads bank {reads} next;"
                f" unpacker {which} writes bank {writes} next"
            )


def state_stacks(target: Launched) -> list[Finding]:
    """Cores whose sp is within the data of their own memory."""
    found = []
    for tile, core in ((one, core) for one in target.tiles for core in one.core.values()):
        sp, end = int(core.regs[SP]), data_end(core)
        at_top = end >= LOCAL_BASE + LOCAL_SIZES[core.index]  # its ELF counts the stack among data
        if core.state != "reset" and not at_top and LOCAL_BASE <= sp < end:
            text = f"the stack of {core.name} is at {sp:#x}, within its data, which end at {end:#x}"
            found.append(of_stack(core.name, text, place(core.where(), target.clock, tile)))
    return merged([found])
