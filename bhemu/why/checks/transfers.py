"""Bytes that tiles send to each other, used or overwritten without an order between tiles."""

from collections.abc import Iterator

from bhemu.noc.grid import XY
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, place, with_evidence
from bhemu.why.order.blame import Disorder, Side, Walk, disorders
from bhemu.why.order.conflicts import tiles
from bhemu.why.steps import Act, maker
from bhemu.why.witness import Pair, PairFinding, with_late_runs


def run(context: Context) -> list[Finding]:
    """The conflicts between tiles, each culprit once."""
    together = tiles(context)
    if together is None or together.few:
        return []
    return with_late_runs(context, _pairs(Walk(together)))


def _pairs(walk: Walk) -> Iterator[tuple[object, PairFinding]]:
    """The conflicts by culprit; later ones of a tile that has gone on too early are left out."""
    ahead: set[int] = set()
    for one in disorders(walk):
        first, second = one.first, one.second
        if not ahead.isdisjoint((first.home, second.home)):
            continue
        if one.blamed().act.tile is walk.tiles[second.home]:
            ahead.add(second.home)
        told = one.stand()
        finding = with_evidence(_finding(one), told)
        key = tuple(finding.culprit.get(name) for name in ("core", "file", "line"))
        xy, request = walk.tiles[first.home].xy, first.sent is not None
        apart = first.home != second.home
        yield key, PairFinding(finding, Pair(xy, first.step, second.step, request, apart))


def _finding(one: Disorder) -> Finding:
    blame, first, second = one.blamed(), one.first, one.second
    (at, text), tiles = blame.placed(), one.walk.tiles
    said = (
        f"nothing orders tile {_xy(tiles[first.home].xy)} {_does(first)} L1 {one.place:#x} of tile"
        f" {_xy(one.tile.xy)} before tile {_xy(tiles[second.home].xy)} {_does(second)} it:"
        f" {maker(blame.act.step)} of tile {_xy(blame.act.tile.xy)} is wrong, {text}"
    )
    acts = Act(tiles[first.home], first.step), Act(tiles[second.home], second.step)
    evidence = (
        f"should come first, {acts[0]}",
        f"should come then, {acts[1]}",
        "no answer that was waited for and no word that was looked at orders them",
    )
    victim = acts[blame.act.tile is acts[0].tile]
    return Finding(
        "transfers", "error", said, place(at, blame.act.step.clock),
        place(victim.where, victim.step.clock), evidence, blame.advice,
    )  # fmt: skip


def _xy(xy: XY) -> str:
    return f"({xy[0]},{xy[1]})"


def _does(side: Side) -> str:
    verb = "writing" if side.write else "reading"
    if side.sent is None:
        return verb
    leaves = not side.write and not side.sent.reads
    return "sending" if leaves else f"{verb} over the NoC"


CHECK = Check(
    "transfers",
    proves="that a tile uses what another one sends to it before this is known to have arrived, or"
    " that a tile writes over what another one may still need; named is who does not wait, waits"
    " for too little, or lets the other side go on too early",
    misses="DRAM; words of four bytes that are data; programs of more than 64 tiles",
    cost="the observed run of `races`; late runs for each finding",
    applies=lambda seen: 65,  # to every run: some are right by luck
    run=run,
)
