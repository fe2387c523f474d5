"""A late run in which an unordered pair happens in the other order: found, then halved.

The run delays some acts, as texts allow (docs/timing.md), and ends differently from the user's run.
So the order of the pair matters, and one command shows it.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import NamedTuple

from bhemu.errors import Limit
from bhemu.memmap import CORE_NAMES
from bhemu.program.coordinates import XY
from bhemu.program.options import AGENTS, NOC, Acts, Lateness
from bhemu.program.schema import SESSION
from bhemu.text import joined
from bhemu.timing import cycles
from bhemu.why.check import Context, Outcome, end_of
from bhemu.why.findings import Finding, line_of, with_evidence, with_rest
from bhemu.why.order.conflicts import requests
from bhemu.why.order.observe import unit_of
from bhemu.why.steps import Step, Word, maker

NOT_SHOWN = "no late run has shown that their order matters"
_SESSION = "no late run was tried: the host of a session waits in each read, which takes minutes"
_SEEDS = (3, 2, 1, 7, 6)  # all acts late, far first, then half of them (timing/draws.py)
_NEAR, _LATER = 0, 1  # all acts up to 64, 512 cycles late: for cores, with their many acts
_FAR = (3, 2)  # those that let the second access of a pair be late, too
_RUNS = 40  # late runs of one question
_NEVER = Acts("mover", first=1 << 40)
_SLOWER = 20  # cycles of a late run, at most, for a clock unit of the plain one
_UNITS = {
    "unpack0": "unpacker0", "unpack1": "unpacker1", "matrix": "matrix", "vector": "vector",
    "pack": "packer", "mover": "mover",
}  # fmt: skip


@dataclass(frozen=True)
class Witness:
    """A late run that ends differently from the user's run."""

    late: Lateness
    outcome: Outcome


class Pair(NamedTuple):
    """Two accesses that nothing orders, of tile `xy`.

    request: the first is a request of a core to the NoC. apart: the tile of the second, if it is
    another one. waits: of a word that should wait for the unit of the first, which works on its
    last word.
    """

    xy: XY
    first: Step
    second: Step
    request: bool = False
    apart: XY | None = None
    waits: bool = False


def witnessed(context: Context, one: "PairFinding") -> Finding:
    """The finding of a pair, with the command that shows it; without such a command it is a note.

    If the run is right, and wrong in the other order, then the order of the run is meant.
    """
    session = context.program.kind == SESSION
    seen = None if session else of_pair(context, one.pair)
    if seen is None:
        why = _SESSION if session else NOT_SHOWN
        return replace(with_evidence(one.finding, [why]), severity="note")
    meant = context.symptom.fine and not seen.outcome.fine
    found = one.meant if meant and one.meant else one.finding
    return with_evidence(found, [shown(context, seen)])


def shown(context: Context, seen: Witness) -> str:
    """The command of a late run, and how it ends."""
    command = f"bhemu run {context.program.path or 'PROGRAM'} --late {seen.late}"
    return f"shown by {command}: {ending(seen)}"


def ending(seen: Witness) -> str:
    """How a late run ends."""
    if seen.outcome.error is not None:
        return end_of(seen.outcome.error)
    if seen.outcome.fine:
        return "with this late the run ends as expected"
    reports = (joined(str(one.report)) for one in seen.outcome.wrong if one.report is not None)
    return "; ".join(reports) or "its outputs have other bytes"


def of_pair(context: Context, pair: Pair) -> Witness | None:
    """A run in which the first access of a pair comes after the second one.

    Where the run of the user went wrong, a run in which the second comes still later is tried, too.
    """
    xy, first, second, request, apart, waits = pair
    late = [*_of_step(first, None if apart else second)]
    sides = [(xy, [*([Acts(NOC, first.pc)] if request else []), *late])]
    if waits and late and late[0].agent in _UNITS.values():
        sides[0][1].insert(1, Acts(late[0].agent))  # any of its words, which come one by one
    if not context.symptom.fine:
        sides.append((apart or xy, [*_of_step(second, None if request or apart else first)]))
    every = ((tile, acts) for tile, side in sides for acts in side)
    for (tile, acts), seed in product(every, _SEEDS):
        named = not context.program.is_alone and acts.agent != NOC
        own = replace(acts, tile=tile) if named else acts
        if (found := _differs(context, Lateness(seed, (own,)))) is not None:
            return found if acts.agent == NOC else _halved(context, found)
    return _exchanged_on_time(context, sides[0][1], first, second)


def _exchanged_on_time(
    context: Context, acts: Sequence[Acts], first: Step, second: Step
) -> Witness | None:
    """A run with `acts` late, if words that take time exchange a pair without any lateness.

    Then no lateness of the first access changes the end any more. The second one, if late, must
    bring back the end of the user's run.
    """
    seen = context.symptom
    if not acts or not seen.fine or seen.same(_on_time(context)):
        return None
    for late, seed in product(_of_step(second, first), _FAR):
        if (held := _tried(context, Lateness(seed, (late,)))) and held.same(seen):
            ended = _tried(context, found := Lateness(seed, (acts[0],)))
            return Witness(found, ended) if ended and not ended.same(seen) else None
    return None


def _of_step(step: Step, other: Step | None) -> Iterator[Acts]:
    """The acts of a step that may be late: the unit's word, then the thread or core.

    If the thread or core makes the other access too, both are late, which exchanges nothing.
    """
    unit = _UNITS.get(unit_of(step.word) or "") if isinstance(step, Word) else None
    if unit is not None:
        yield Acts(unit, step.pc)
    if isinstance(step, Word) and cycles.is_late_load(step.word):
        yield Acts("scalar_results", step.pc)
    if other is None or maker(other) != maker(step):
        yield Acts(maker(step), step.pc)


def _differs(context: Context, late: Lateness) -> Witness | None:
    """The late run if it ends differently: with other outputs, an error, or in a deadlock."""
    seen = _tried(context, late)
    if seen is None or seen.alike(context.symptom) or seen.alike(_on_time(context)):
        return None
    return Witness(late, seen)


def _tried(context: Context, late: Lateness) -> Outcome | None:
    """The end of the late run; None if it came to its limit, or too many were tried.

    A run that was at work until its limit has no end from which a late run could differ.
    """
    runs = context.facts.get("late runs", 0)
    if runs >= _RUNS or context.late or context.is_endless:
        return None
    context.facts["late runs"] = runs + 1
    _on_time(context)
    seen = _run(context, late)
    return None if isinstance(seen.error, Limit) else seen


def _on_time(context: Context) -> Outcome:
    """The end of the program if words take time and none is late."""
    if "on time" not in context.facts:
        context.facts["on time"] = _run(context, Lateness(0, (_NEVER,)))
    found: Outcome = context.facts["on time"]
    return found


def _run(context: Context, late: Lateness) -> Outcome:
    machine = context.launch(late=str(late), **context.alone)
    return context.finish(machine, limit=_SLOWER * context.most)


def _halved(context: Context, found: Witness) -> Witness:
    """The witness with as few consecutive acts late as possible."""
    (acts,) = found.late.acts
    counts = [int(tile.state.late_seen.max()) for tile in context.tiles(found.outcome.machine)]
    low, high = 1, max(counts)
    while low < high:
        middle = (low + high) // 2
        for first, last in ((low, middle), (middle + 1, high)):
            some = Lateness(found.late.seed, (replace(acts, first=first, last=last),))
            if (less := _differs(context, some)) is not None:
                found, low, high = less, first, last
                break
        else:
            break
    return found


# A late run of a program in which no check has found anything.

_DRAWN = range(1, 9)  # seeds of runs in which any agent may be late
_LOOK = 1_200_000_000  # instructions of all of these runs together
_TRIED = 98  # late runs: eight, those of one agent each, and those that look for its acts
_CORES = 16  # cores of tiles of a chip that are late alone


def of_run(context: Context) -> Witness | None:
    """A late run that goes wrong, with one agent late if that is enough, and its acts at one pc.

    Any agents may be late, then one at a time, of a chip also a core of one tile. If words that
    take time go wrong without any lateness, no agent is looked for.
    """
    context.facts["late runs"] = _RUNS - _TRIED  # those of pairs are over
    bound = context.work + _LOOK
    agents = dict.fromkeys((_FAR[0], one) for one in _of_requests(context))
    cores: dict[Acts, None] = {}
    for seed in _DRAWN:
        seen = _tried(context, Lateness(seed)) if context.work < bound else None
        if seen is None:
            continue
        if not seen.fine and not seen.alike(context.symptom):
            found = Witness(Lateness(seed), seen)
            return _narrowed(context, found) if _on_time(context).fine else found
        for xy, agent, _ in _late_acts(context, seen):
            agents[_NEAR if agent in CORE_NAMES else _FAR[0], Acts(agent)] = None
            if xy is not None and agent in CORE_NAMES:  # which meets those of other tiles
                cores[Acts(agent, tile=xy)] = None
    for number, acts in (*agents, *product((_NEAR, _LATER), islice(cores, _CORES))):
        alone = _differs(context, Lateness(number, (acts,))) if context.work < bound else None
        if alone is not None and not alone.outcome.fine:
            return _narrowed(context, alone)
    if context.late:
        context.skipped.append("late")
    return None


def _of_requests(context: Context) -> tuple[Acts, ...]:
    """The requests to the NoC, which a tile that is alone has not."""
    return () if context.program.is_alone else (Acts(NOC),)


def _late_acts(context: Context, seen: Outcome) -> Iterator[tuple[XY | None, str, int]]:
    """Tile, None of a program of one tile, agent and pc of the acts that were late."""
    for tile in context.tiles(seen.machine):
        s, xy = tile.state, None if context.program.is_alone else tile.xy
        for _, agent, pc, *_ in s.late_log[: int(s.late_choices[0])].tolist():
            yield xy, AGENTS[agent], pc


def _narrowed(context: Context, seen: Witness) -> Witness:
    """The same with one agent late, then with its acts at one pc, then as few of them as can be."""
    pcs: dict[tuple[XY | None, str], dict[int, None]] = {}
    for xy, agent, pc in _late_acts(context, seen.outcome):
        pcs.setdefault((xy, agent), {})[pc] = None
    known = {one.agent for one in seen.late.acts}
    choices = [Acts(agent, tile=xy) for xy, agent in pcs if not known or agent in known]
    own = () if known else _of_requests(context)
    found, seeds = seen, (seen.late.seed, *_SEEDS[:1]) if known else _SEEDS[:1]
    if not any(one.agent == NOC or one.tile is not None for one in seen.late.acts):
        found = _one_of(context, [*own, *choices], seeds) or seen
    if not found.late.acts:
        return seen
    (acts,), seed = found.late.acts, found.late.seed
    if acts.agent == NOC:
        places = dict.fromkeys(one.step.pc for one in requests(context))
    else:
        of = (by for (xy, agent), by in pcs.items() if agent == acts.agent)
        places = dict.fromkeys(pc for by in of for pc in by)
    choices = [replace(acts, pc=pc) for pc in places]
    found = _one_of(context, choices, (seed, *_FAR)) or found
    return found if acts.agent == NOC else _halved(context, found)


def _one_of(context: Context, choices: Sequence[Acts], seeds: Sequence[int]) -> Witness | None:
    """A late run that goes wrong with one of the choices late, all its acts or half of them."""
    for seed, acts in product(dict.fromkeys((*seeds, 7)), choices):
        seen = _differs(context, Lateness(seed, (acts,)))
        if seen is not None and not seen.outcome.fine:
            return seen
    return None


# The findings of a check, each with its late run.

SEEN = 3
"""Findings of a check at most: later ones are mostly consequences."""


class PairFinding(NamedTuple):
    """A finding, and the pair whose order a late run may show to matter.

    code: a line for each ELF that made it, where the host of a session has loaded it.
    meant: what is wrong if the order in which both happened is meant.
    """

    finding: Finding
    pair: Pair
    code: Sequence[str] = ()
    meant: Finding | None = None


def with_late_runs(
    context: Context, pairs: Iterable[tuple[Hashable, PairFinding]]
) -> list[Finding]:
    """The first of each key, at most SEEN of them, each with the late run that shows it.

    The last one says how many more there are.
    """
    first: dict[Hashable, PairFinding] = {}
    for key, one in pairs:
        first.setdefault(key, one)
    shown = [witnessed(context, one) for one in islice(first.values(), SEEN)]
    found = {line_of(one): one for one in reversed(shown)}  # which may be those of one line now
    return with_rest([*reversed(found.values())], len(first) - len(shown))
