"""From a program to its findings: for `bhemu why` and Tile.why."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from bhemu.errors import BhemuError, Call, InputError, Limit, NoProgress, Where, source_text
from bhemu.launch import Launched, RunResult
from bhemu.machine.hang.explore import livelock
from bhemu.machine.hang.graph import NOT_FOUND, no_progress
from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.noc.grid import number_at
from bhemu.program import schema, toml
from bhemu.program.coordinates import XY
from bhemu.text import joined
from bhemu.why import checks, overwritten, saved_state
from bhemu.why.check import Context, Name, outcome, unsaved
from bhemu.why.findings import (
    Finding,
    of_error,
    of_one_hang,
    place,
    who_waits,
    with_evidence,
)
from bhemu.why.origin import links_of, of_output
from bhemu.why.waiting import apart, beyond, brought, left_pages, with_hand_over, with_seen

_FOLLOWED = 2  # wrong outputs in L1 of a chip, each of which takes one more run
_BUDGET = 20_000  # instructions that are followed to prove a livelock
_LEAST, _TIMES = 200_000, 3  # a run may go on for so many clock units, or times its length
_TIMED = "checks need a run without --late and --timing: words are complete at the gate there"


def context(
    target: Launched,
    ended: RunResult,
    say: Callable[[str], None] = lambda _: None,
    names: Callable[[Chip], Name] | None = None,
) -> Context:
    """The context of checks of a run; InputError if the run has late words or modelled times.

    names: gives the code of a session its symbols.
    """
    if target.tile.state.timed[0]:
        raise InputError(_TIMED, hint="bhemu run --late SEED says whether the outputs hold")
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
        error = with_seen(asked, error)
    symptom = [] if error is None else [of_error(error, target.clock, tile)]
    if error is not None and error.where is not None:
        asked.touched.append((error.where, target.clock))
    if isinstance(error, NoProgress):
        symptom = [_hang(asked, tile, error, symptom[0])]
    found = [*_too_short(asked, error), *overwritten.arguments(asked)]
    found += [*overwritten.missing(asked), *overwritten.tensors(asked)]
    if tile is not None:  # which is taken back in time by what comes now
        found += [*overwritten.setter(asked, error), *overwritten.code(tile, asked.program)]
    if error is None:
        for number, wrong in enumerate(asked.symptom.wrong):
            symptom += of_output(asked, tile, wrong, follow=number < _FOLLOWED)
    if asked.program.kind == schema.SAVED_STATE:  # which has no past that a check could look at
        found += saved_state.stacks(target)
    else:
        found = checks.findings(asked, checks.fitting(asked), found, roots=True)
    if isinstance(error, NoProgress):
        symptom, found = [with_hand_over(symptom[0], error, found)], apart(error, found)
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
        text = f"PROGRAM.toml:{line}: the program is right and needs more time than its limit"
        who = place(Where(file="PROGRAM.toml", line=line), None)
        proof = ("run on, it ends, with all outputs as expected",)
        yield Finding("program", "error", text, who, {}, proof, "raise the limit")


def _hang(asked: Context, tile: Tile | None, error: NoProgress, found: Finding) -> Finding:
    """A hang with what is known of it besides who waits for whom."""
    stores = [] if tile is None else [*overwritten.awaited(tile, error)]
    ended = [*left_pages(asked, error)]
    hang = of_one_hang(found, [*stores, *ended])
    root = next(iter(getattr(error.graph, "waiters", ())), None)
    said = "has ended" in hang.text
    for one in (one for one in ended if one.victim == who_waits(root) and not said):
        text = hang.text.removesuffix(NOT_FOUND)
        hang = replace(hang, text=f"{text}; {one.text.partition('; ')[2]}")
    if (never := next(beyond(asked, error), None)) is not None:
        text = f"{error.category.lower()}: {never.text}"
        return replace(hang, text=text, culprit=never.culprit)
    sent, graph = [*brought(asked, error)], error.graph
    waiters = getattr(graph, "waiters", ())  # the root of the waits, or all in their cycle
    roots = [one for one in waiters if one.who in getattr(graph, "cycle", ())] or waiters[:1]
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
    who = found.culprit
    if not who.get("inlined") or "core" not in who or "tile" not in who:
        return found
    names = library(tuple(who["tile"]), who["core"])
    frames = [{name: who.get(name) for name in Call._fields}, *who["inlined"]]
    at = next((n for n, one in enumerate(frames) if one["file"] not in names), 0)
    if at == 0:
        return found
    inner = source_text(who.get("file"), who.get("line"), who.get("function"), ())
    said, there = (f"{who['core']} {one['file']}:{one['line']} " for one in (frames[0], frames[at]))
    return replace(
        found,
        text=found.text.replace(said, there, 1),  # there as well
        culprit={**who, **frames[at], "inlined": frames[at + 1 :]},
        evidence=(*found.evidence, f"there in {inner}"),
    )


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
    late: Launched,
    ended: RunResult,
    ask: Callable[[schema.Program], tuple[Context, list[Finding]]],
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
