"""A hang in which somebody waits for a core that has come to its end: where that one gives."""

from collections.abc import Iterator
from typing import Any

from bhemu.errors import BhemuError, NoProgress
from bhemu.machine.error_text import where_core
from bhemu.machine.hang.explore import code_stores
from bhemu.machine.hang.waits import Releaser
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.tensix.state import PARKED
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place, who_waits


def ended_early(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The line of a core that has ended, from which the first wait of a hang waits for more."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None or context.is_chip or graph.cycle:
        return
    tile = context.tile
    for waiter in graph.waiters:
        able = [one for one in waiter.releasers if one.able]
        ended = [one for one in able if _has_ended(tile, one)]
        if not ended or len(able) != len(ended):
            continue
        for one in ended:
            yield _finding(context, waiter, one)
        return


def unread(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """Where a core ends that has left a message unread whose sender waits for its answer."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None or context.is_chip:
        return
    tile, s = context.tile, context.tile.state
    for waiter in graph.waiters:
        if waiter.kind != "mailbox" or "reader" not in waiter.resource:
            continue
        sender, core = waiter.resource["reader"], waiter.resource["writer"]
        left = int(s.mailbox_write[sender, core]) - int(s.mailbox_read[sender, core])
        if int(s.core_state[core]) != PARKED or not left:
            continue
        name = CORE_NAMES[core]
        text = f"{name} has ended with {left} unread in its mailbox from {waiter.who}, which waits"
        where = where_core(tile, core, _says_done(tile, core))
        yield Finding(
            "hang", "error", f"{text} for its answer", place(where, None, tile),
            who_waits(waiter), (), "",
        )  # fmt: skip


def _says_done(tile: Tile, core: int) -> int:
    """The store by which a core says that it is done; where it stands, if there is none."""
    ends = {at & ~3 for _, at, _ in tile.loop.end.words}
    stores = code_stores(tile, core).stores
    told = [one.pc for at, known in stores.items() if at & ~3 in ends for one in known]
    return int(told[-1] if told else tile.state.pc[core])


def _has_ended(tile: Tile, one: Releaser) -> bool:
    return one.core is not None and int(tile.state.core_state[one.core]) == PARKED


def _finding(context: Context, waiter: Any, one: Releaser) -> Finding:
    assert one.core is not None
    where = where_core(context.tile, one.core, one.pc or 0)
    name = CORE_NAMES[one.core]
    text = f"{waiter.who} waits for {waiter.reason}; {name} gives that here, and has ended"
    who = place(where, None, context.tile)
    return Finding("hang", "error", text, who, who_waits(waiter), (), "")
