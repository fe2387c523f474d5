"""A last look at a run that is right: the same with all agents late, as they may be on hardware."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bhemu.machine.error_text import where_core
from bhemu.memmap import CORE_NAMES
from bhemu.program.options import NOC, Acts
from bhemu.program.schema import SESSION
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, in_words, place, with_evidence, with_role
from bhemu.why.witness import NOT_SHOWN, ending, of_run, shown

_ADVICE = (
    "look for what must have happened before this, or must wait for it, and nothing orders it;"
    " unless the program reads a clock"
)


def _run(context: Context) -> Sequence[Finding]:
    if not context.symptom.fine or context.program.kind == SESSION:
        return []
    seen = of_run(context)
    if seen is None:
        return []
    acts = seen.late.acts
    who = _placed(context, acts[0]) if len(acts) == 1 else {}
    late, at = "words, cores and transfers are late, as they may be on hardware", in_words(who)
    if acts and acts[0].agent == NOC:
        late = f"the requests of {at} are late" if who else "requests to the NoC are late"
    elif acts:
        core, _, stores = acts[0].agent.partition("_")
        late = (
            f"the stores of {core} are late" if stores == "stores" else f"{acts[0].agent} is late"
        )
        late += f" at {at}" if who else ""
    text = f"the result depends on time: it is wrong if {late}: {ending(seen).partition(';')[0]}"
    return [Finding("late", "error", text, who, {}, (shown(context, seen),), _ADVICE)]


def with_pairs(late: Sequence[Finding], told: Sequence[Finding]) -> list[Finding]:
    """The findings, of which notes tell pairs that nothing orders and no late run of theirs shows.

    A late run of everything that goes wrong shows the pair that the delayed line is of; if no line
    was found, or PROGRAM.toml is wrong, the only pair.
    """
    pairs = [one for one in told if one.check == "order"]
    if not late or not pairs:
        return [*told, *late]
    (seen,) = late
    at = seen.culprit.get("core"), seen.culprit.get("pc")
    only = len(pairs) == 1 and (at[1] is None or "pc" not in pairs[0].culprit)

    def is_shown(one: Finding) -> bool:
        sides = ((side.get("core"), side.get("pc")) for side in (one.culprit, one.victim))
        return only or (at[1] is not None and at in sides)

    if (chosen := next(filter(is_shown, pairs), None)) is None:
        unshown = [f"{one.text}: {in_words(one.culprit)}" for one in pairs]
        return [*told, with_evidence(seen, unshown)]
    evidence = [line for line in chosen.evidence if line != NOT_SHOWN]
    shown = replace(chosen, severity="error", evidence=(*evidence, seen.text, *seen.evidence))
    return [shown if one is chosen else one for one in told]


def _placed(context: Context, acts: Acts) -> dict[str, Any]:
    """The place of the delayed acts, in the code of the core that makes or pushes them."""
    if acts.pc is None:
        return {}
    tile = next(t for t in context.tiles(context.symptom.machine) if acts.tile in (None, t.xy))
    own = acts.agent.partition("_")[0]
    names = [own] if own in CORE_NAMES else CORE_NAMES
    for name in names:
        if tile.core[name].images and tile.locate(CORE_NAMES.index(name), acts.pc)[0] is not None:
            where = where_core(tile, CORE_NAMES.index(name), acts.pc)
            return with_role(place(where, None, tile), "late")
    return {}


CHECK = Check(
    "late",
    proves="that the run goes wrong where words, cores and transfers are late, as they may be on"
    " hardware, although no check has found what is not ordered; named is the agent, and its line,"
    " whose delay is enough",
    misses="what is wrong only with other delays than those of eight seeds; the other side of the"
    " access that is not ordered",
    cost="only where a run is right and nothing else was found: eight late runs, and 36 more that"
    " look for the agent",
    applies=lambda seen: 1 if seen.fine else 0,
    run=_run,
)
