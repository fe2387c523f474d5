"""Loads that get old bytes of L1, in runs with modelled data caches of the cores."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bhemu.machine.error_text import where_core
from bhemu.riscv.formats import Atomic, Fence, Load
from bhemu.riscv.isa import decode
from bhemu.text import joined
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, place, with_rest
from bhemu.why.order import record as r
from bhemu.why.order.conflicts import Observed, observed
from bhemu.why.order.observe import Observer, is_polled, spin
from bhemu.why.order.shadow import ACCESSED, DROPPED, STALE
from bhemu.why.steps import Act, Instruction, Step, maker

_SEEDS = 3
_SEEN = 3  # findings of a run
_LINES = 4  # of a data cache
_ADVICE = "fence (invalidate_l1_cache) before the load: a cache does not see what others write"


def run(context: Context) -> list[Finding]:
    """The loads of stale bytes in a run that ends differently from one without caches."""
    if context.program.l0 == "model":  # then every stale load is the user's business
        seed = context.program.options.get("seed", 0)
        found = _found(context, context.again(l0="model", seed=seed), seed)
        unfenced = [] if found else list(_unfenced(context))
        return found or with_rest(unfenced[:_SEEN], len(unfenced[_SEEN:]))
    if context.symptom.error is not None:
        return []
    for seed in range(1, _SEEDS + 1):
        seen = context.again(l0="model", seed=seed)
        if not seen.same(context.symptom):
            return _found(context, seen, seed)
    return []


def _unfenced(context: Context) -> Iterator[Finding]:
    """Loops that wait for a word of another core and never drop their data cache."""
    for seen in observed(context):
        tile = seen.tile
        for core, pc, address in seen.polls:
            loop = spin(tile.state.l1, pc)
            writer = seen.writer(core, address)
            if loop is None or writer is None:
                continue
            words = tile.state.l1[loop[0] : loop[1]].view(np.uint32).tolist()
            kinds = [cls for word in words if (cls := decode(word)) is not None]
            if any(issubclass(cls, Fence | Atomic) for cls in kinds):
                continue
            if sum(issubclass(cls, Load) for cls in kinds) > _LINES:
                continue  # which replace each other's lines
            at = where_core(tile, core, pc)
            yield Finding(
                "stale", "warning",
                f"{at.core} waits for L1 {address:#x} in a loop without a fence, with a data"
                f" cache: what others write is not seen there: {at}",
                place(at, None, tile), Act(tile, writer).placed(),
                ("here the word was there in time, by chance",),
                _ADVICE,
            )  # fmt: skip


@dataclass
class _Load:
    """A load of stale bytes, and the step that wrote newer ones.

    repeated: the load got them twice, and the core did not drop its cache in between.
    """

    step: Instruction
    address: int
    writer: Step | None
    polled: bool = False
    repeated: bool = False


def _found(context: Context, seen: Outcome, seed: int) -> list[Finding]:
    """The loads of the first tile that got stale bytes in a run that was `seen`."""
    stale = (one for one in context.tiles(seen.machine) if one.state.l0_stale[:, 0].any())
    if (where := next(stale, None)) is None:
        return []
    machine = context.launch(engine="compiled", l0="model", seed=seed, **context.alone)
    observer = Observer(machine.tile[where.xy])
    context.finish(machine, limit=context.most)
    observer.rows()  # raises what has gone wrong
    again = Observed(observer)
    loads = list(_stale_loads(again).values())
    chosen = [one for one in loads if not one.polled] or loads
    how = "otherwise" if not seen.fine or context.program.l0 != "model" else "as without, by chance"
    end = "; ".join(joined(str(result)) for result in seen.wrong)
    end = end if seen.error is None else str(seen.error).splitlines()[0]
    shown = []
    for load in chosen[:_SEEN]:
        act, place_of = Act(again.tile, load.step), f"L1 {load.address:#x}"
        victim: dict[str, Any] = {"place": place_of}
        by = "by the coprocessor, the host or over the NoC"
        if load.writer is not None:
            writer = Act(again.tile, load.writer)
            victim, by = writer.placed(), f"by {writer.where}"
        evidence = (
            f"{place_of} was written {by}, after the core had loaded its line",
            f"with data caches the program ends {how}" + (f": {end}" if end else ""),
            f"as in bhemu run {context.program.path or 'PROGRAM'} --l0 model --seed {seed}",
        )
        text = f"a load of {maker(load.step)} gets an old {place_of} from its data cache"
        text = f"{text}: {act.where}"
        shown.append(Finding("stale", "error", text, act.placed(), victim, evidence, _ADVICE))
    return with_rest(shown, len(chosen[_SEEN:]))


def _stale_loads(seen: Observed) -> dict[tuple[int, int], _Load]:
    """All loads of stale bytes of a tile, by core and pc."""
    found: dict[tuple[int, int], _Load] = {}
    since = set[tuple[int, int]]()  # loads of stale bytes since their core dropped its cache
    dropped = set[tuple[int, int]]()  # whose core has dropped it since
    notes = seen.notes[np.isin(seen.notes[:, r.N_WHAT], (STALE, DROPPED, ACCESSED))]
    for what, _, _, pc, core, time, address in notes[:, : r.N_LOW + 1].tolist():
        key = core, pc
        if what == DROPPED:
            dropped |= {other for other in found if other[0] == core}
            since = {other for other in since if other[0] != core}
        if key in dropped and found[key].polled and not found[key].repeated:
            dropped.discard(key)  # a turn of a poll that dropped the cache and looked again
            del found[key]
        if what == STALE:
            step = Instruction(time, core, pc, seen.tile.read32(pc))
            load = _Load(step, address, seen.writer(core, address, time))
            load = found.setdefault(key, load)
            load.repeated |= key in since
            since.add(key)
            load.polled = load.step is not step or is_polled(seen.tile.state.l1, pc)
    return found


CHECK = Check(
    "stale",
    proves="a load that gets older bytes than L1 holds, because another agent wrote them and the"
    ' core did not drop its cache, in a run that ends otherwise for it; with l0 = "model" also a'
    " loop that waits for a word of another core without a fence",
    misses="stale bytes that change nothing; which line is replaced and when hardware drops all of"
    " them is a model",
    cost="3 runs, and an observed one where they differ",
    applies=lambda seen: 0 if seen.refused else 65,
    run=run,
)
