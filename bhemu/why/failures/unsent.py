"""A hang of a chip in which a core waits for a word that nobody sends: who sent its data last."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bhemu.devices import noc_map
from bhemu.errors import BhemuError, NoProgress, Where
from bhemu.machine.error_text import where_core
from bhemu.memmap import CORE_NAMES
from bhemu.noc.grid import XY
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.requests import Request, requests

_NOTHING = "nothing was ever written there over the NoC"


@dataclass(frozen=True)
class _Sent:
    """The last write of data to a tile, by the store of `where` at `clock` on `tile`."""

    where: Where
    clock: int
    tile: Any


def unsent(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The line behind which a word is not sent: the last that brings a waiting tile its data."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None or not context.is_chip:
        return
    waiters = [one for one in graph.waiters if one.kind == "l1" and _NOTHING in one.history]
    sent = _last(context, {tuple(one.where["tile"]) for one in waiters})
    for waiter in waiters:
        xy = tuple(waiter.where["tile"])
        if xy in sent:
            yield _finding(context, waiter, sent[xy])
            return


def _finding(context: Context, waiter: Any, sent: _Sent) -> Finding:
    xy, core, address = waiter.where["tile"], str(waiter.where["core"]), waiter.resource["address"]
    text = (
        f"tile ({xy[0]},{xy[1]}) {core} waits for L1 {address:#x}, which nobody has written over"
        f" the NoC; {sent.where.core} of tile ({sent.tile.xy[0]},{sent.tile.xy[1]}) sends it data,"
        " and no word behind them"
    )
    tile = context.symptom.machine.tile[tuple(xy)]
    victim = where_core(tile, CORE_NAMES.index(core), int(waiter.where["pc"]))
    return Finding(
        "hang", "error", text, place(sent.where, sent.clock, sent.tile), place(victim, None), (), ""
    )  # fmt: skip


def _last(context: Context, wanted: set[XY]) -> dict[XY, _Sent]:
    """By tile, of those `wanted`, the last write of data of another tile to it."""
    if not wanted:
        return {}
    machine, sent = requests(context)
    found: dict[XY, _Sent] = {}
    for tile, one, clock in sent:
        for xy in wanted - {tile.xy}:
            old = found.get(xy)
            if _goes_to(machine, one, xy) and (old is None or clock >= old.clock):
                found[xy] = _Sent(where_core(tile, one.core, one.pc), clock, tile)
    return found


def _goes_to(machine: Any, one: Request, xy: XY) -> bool:
    """Whether a request writes to a tile."""
    if one.reads:
        return False
    left, top, right, bottom = one.box()
    if one.multicast:
        return one.noc == 0 and left <= xy[0] <= right and top <= xy[1] <= bottom
    word = machine.network.endpoint(one.noc, (left, top))
    return bool(word & 15 == noc_map.TENSIX and word >> 4 & 0xFF == machine.number_of(xy))
