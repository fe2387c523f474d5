"""What tiles send to one another, used or written over without an order from tile to tile."""

from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, place, with_evidence
from bhemu.why.order.blame import Blame, Disorder, Side, Walk, disorders
from bhemu.why.order.conflicts import tiles
from bhemu.why.order.delays import delay_before
from bhemu.why.walk import maker, where
from bhemu.why.witness import witnessed

_SEEN = 3


def run(context: Context) -> list[Finding]:
    """The conflicts between tiles, each culprit once.

    What a tile does after it has gone on too early follows from that: later conflicts with it are
    left out.
    """
    together = tiles(context)
    if together is None or together.few:
        return []
    walk = Walk(together)
    found: dict[object, Finding] = {}
    ahead: set[int] = set()
    for one in disorders(walk):
        if not ahead.isdisjoint((one.first.home, one.second.home)):
            continue
        if one.blamed().home == one.second.home:
            ahead.add(one.second.home)
        told = one.stand()
        finding = with_evidence(_finding(one), told)
        key = tuple(finding.culprit.get(name) for name in ("core", "file", "line"))
        if key not in found and len(found) < _SEEN:
            first, second = one.first, one.second
            pair = one.walk.tiles[first.home].xy, first.step, second.step
            found[key] = witnessed(context, finding, *pair, request=first.sent is not None)
    return list(found.values())


def _finding(one: Disorder) -> Finding:
    blame = one.blamed()
    tile = one.walk.tiles[blame.home]
    at, text = where(tile, blame.step, pushed=True), blame.text
    if (loop := delay_before(tile, blame.step)) is not None:
        at = where_core(tile, blame.step.core, loop)
        text += ", but a loop that lets some time pass"
    culprit = place(at, blame.step.clock)
    first, second = one.first, one.second
    what = f"L1 {one.place:#x}"
    said = (
        f"nothing orders tile {_xy(one, first)} {_does(one, first)} {what} of tile"
        f" ({one.tile.xy[0]},{one.tile.xy[1]}) before tile {_xy(one, second)}"
        f" {_does(one, second)} it: {_who(blame, tile)} is wrong, {text}"
    )
    evidence = (
        f"should come first, {_told(one, first)}",
        f"should come then, {_told(one, second)}",
        "no answer that was waited for and no word that was looked at orders them",
    )
    victim = second if blame.home == first.home else first
    other = one.walk.tiles[victim.home]
    return Finding(
        "transfers", "error", said, culprit,
        place(where(other, victim.step, pushed=True), victim.step.clock),
        evidence, blame.advice,
    )  # fmt: skip


def _xy(one: Disorder, side: Side) -> str:
    x, y = one.walk.tiles[side.home].xy
    return f"({x},{y})"


def _does(one: Disorder, side: Side) -> str:
    verb = "writing" if side.write else "reading"
    if side.sent is None:
        return verb
    leaves = not side.write and not side.sent.reads
    return "sending" if leaves else f"{verb} over the NoC"


def _told(one: Disorder, side: Side) -> str:
    step = side.step
    return f"at clock {step.clock}: {where(one.walk.tiles[side.home], step)}"


def _who(blame: Blame, tile: Tile) -> str:
    return f"{maker(blame.step)} of tile ({tile.xy[0]},{tile.xy[1]})"


def applies(seen: Outcome) -> int:
    """To every run of several tiles: what comes out right may be a matter of luck."""
    return 65


CHECK = Check(
    "transfers",
    proves="that a tile uses what another one sends to it before this is known to have arrived, or"
    " that a tile writes over what another one may still need; named is who does not wait, waits"
    " for too little, or lets the other side go on too early",
    misses="DRAM; words of four bytes that are data; programs of more than 64 tiles",
    cost="one observed run, shared with races; 4 with late deliveries",
    applies=applies,
    run=run,
)
