"""NoC requests whose data are used before they arrive, or that a kernel does not wait for."""

from collections.abc import Iterator

from bhemu.devices import niu_request as request
from bhemu.errors import Where
from bhemu.machine import error_text
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.program.schema import SESSION
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, outside_headers, place, with_evidence
from bhemu.why.order.conflicts import Conflict, observed, tiles
from bhemu.why.order.observe import name
from bhemu.why.steps import Act, Step
from bhemu.why.witness import Pair, PairFinding, with_late_runs

_ADVICE = {
    request.READ: "wait for its answer (noc_async_read_barrier) before its data are used",
    request.WRITE: "wait until it has been acknowledged (noc_async_write_barrier) before others are"
    " told, and until it has left before its source changes",
    request.ATOMIC: "wait for its answer (noc_async_atomic_barrier)",
}


def run(context: Context) -> list[Finding]:
    """Requests whose data are used too early; kernels that end before their answers."""
    if tiles(context) is None:
        return []
    if found := with_late_runs(context, _unordered(context)):
        return found
    # of a session firmware goes on with what its kernels have asked for
    left = () if context.program.kind == SESSION else _unanswered(context)
    return with_late_runs(context, left)


def _unanswered(context: Context) -> Iterator[tuple[int, PairFinding]]:
    """Kernels that end without a look at the answers of their last requests, by pc."""
    together = tiles(context)
    assert together is not None
    whole = [(n, one.tile) for n, one in enumerate(together.observers) if not one.full]
    for tile, last in ((tile, last) for n, tile in whole for last in together.unanswered(n)):
        step = last.step
        if context.in_firmware(tile, step.core, step.pc):
            continue
        act = Act(tile, step)
        sent = outside_headers(act.where)
        text = f"{CORE_NAMES[step.core]} ends without a look at the answers of its last NoC"
        finding = Finding(
            "barriers", "error", f"{text} {request.KIND_NAMES[last.kind]}s",
            place(_end_of(tile, sent), None), place(sent, step.clock),
            (f"the last of them is sent {act}",), _ADVICE[last.kind],
        )  # fmt: skip
        yield step.pc, PairFinding(finding, Pair(tile.xy, step, step, request=True))


def _unordered(context: Context) -> Iterator[tuple[int, PairFinding]]:
    """Requests whose source or target is used although no core has looked for their answer.

    A user that does not wait for the sender of the request at all is left out: `races` tells it.
    """
    seen = observed(context)
    raced = {
        (one.tile.xy, each.first.owner, each.second.owner)
        for one in seen
        for each in one.conflicts(units=False)
    }
    for races, conflict in [(one, each) for one in seen for each in one.conflicts(units=True)]:
        tile, first, second = races.tile, conflict.first, conflict.second
        others = first.owner != second.owner
        if first.sent is None or (others and (tile.xy, first.owner, second.owner) in raced):
            continue
        blamed = (others and races.release_after(first)) or second.step
        told = races.stand_at(conflict)
        finding = with_evidence(_used(tile, conflict, blamed), told)
        pair = Pair(tile.xy, first.step, second.step, request=True)
        yield first.step.pc, PairFinding(finding, pair)


def _used(tile: Tile, conflict: Conflict, blamed: Step) -> Finding:
    """The finding of a place that is used while a request may still read or write it."""
    first, second = conflict.first, conflict.second
    kind = request.READ if first.write else request.WRITE
    what = "target of a NoC read" if first.write else "source of a NoC write"
    text = f"the {what}, {name(conflict.place)}, is used while it may be on its way"
    asked, used = Act(tile, first.step), Act(tile, second.step)
    evidence = (
        f"asked for {asked}",
        f"used {used}",
        "no load of a counter of the NoC interface unit stands in between",
    )
    who, victim = (
        place(outside_headers(act.where), act.step.clock) for act in (Act(tile, blamed), asked)
    )
    if first.write and first.owner == second.owner:  # its barrier stands after it
        who, victim = victim, who
    return Finding("barriers", "error", text, who, victim, evidence, _ADVICE[kind])


def _end_of(tile: Tile, who: Where) -> Where:
    """The last line of the function that a place stands in."""
    assert who.core is not None
    assert who.pc is not None
    core = tile.core[who.core]
    if who.function is None:
        return who
    _, low, high = core.function(who.pc)
    ends = [error_text.where_core(tile, core.index, pc) for pc in range(low, high, 4)]
    own = [outside_headers(end) for end in ends]
    return max(
        (end for end in own if end.file == who.file and not end.inlined),
        key=lambda end: end.line or 0,
        default=who,
    )


CHECK = Check(
    "barriers",
    proves="the source or target of a NoC request that is used before a counter of answers was"
    " read; a kernel that ends without a look at the answers of its last requests",
    misses="requests for whose answers a core has looked, however early; programs of one tile",
    cost="the observed run of `races`; late runs for each finding",
    applies=lambda seen: 70 if seen.error is None else 0,
    run=run,
)
