"""A hang on a chip in which a core waits for pages or room, and who counts them has ended."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from bhemu.errors import BhemuError, Call, NoProgress, Where
from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry
from bhemu.memmap import CORE_NAMES
from bhemu.why.buffers import COUNT_REGISTERS, Event, Recorder
from bhemu.why.check import Context
from bhemu.why.findings import Finding, outside_headers, place, who_waits
from bhemu.why.repair.edits import code_of, firmware_of
from bhemu.why.repair.turns import loops

_GIVES = {"acked": "gives pages back", "received": "announces pages"}


def left_pages(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The loop of a core that has ended, in which it counted pages that another core waits for.

    Where the outputs are as expected, it is the one that waits which does more than there is to do.
    On one of several tiles it may do the work of another one, too.
    """
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None or not context.is_chip or not context.symptom.wrong:
        return
    seen: dict[Any, tuple[list[Entry], list[Event]]] = {}
    said: set[tuple[int, int]] = set()
    for waiter in graph.waiters:
        kind = COUNT_REGISTERS.get(waiter.resource.get("register"))
        if waiter.kind != "stream" or kind is None:
            continue
        xy, stream = tuple(waiter.where["tile"]), waiter.resource["stream"]
        if xy not in seen:
            seen[xy] = _events(context, xy)
        log, events = seen[xy]
        counted = [one for one in events if (one.kind, one.high) == (kind, stream)]
        tile = context.symptom.machine.tile[xy]
        if not counted or not _has_ended(context, tile, counted[-1].core):
            continue
        last = counted[-1]
        if (last.core, last.pc) not in said:  # of several tiles the first
            said.add((last.core, last.pc))
            yield _finding(context, tile, log, waiter, counted)


def _events(context: Context, xy: Any) -> tuple[list[Entry], list[Event]]:
    """The log of one more run of a tile, and what it has done to its buffers."""
    machine = context.launch(engine="compiled", **context.alone)
    tile = machine.tile[xy]
    recorder = Recorder(tile)
    with suppress(BhemuError):
        machine.run(limit=context.most)
    events = list(recorder.events())
    return tile.log, events


def _has_ended(context: Context, tile: Tile, core: int) -> bool:
    """Whether a core is back in the firmware that has called its kernel."""
    own, pc = tile.core[CORE_NAMES[core]], int(tile.core[CORE_NAMES[core]].pc)
    others = firmware_of(context.program)
    return any(image.data in others and image.lookup(pc) for image in own.images)


def _finding(
    context: Context, tile: Tile, log: list[Entry], waiter: Any, counted: list[Event]
) -> Finding:
    last = counted[-1]
    held = code_of(tile, log, firmware_of(context.program)).words.get(last.core, {})
    calls = where_core(tile, last.core, last.pc).inlined
    around = [one for one in loops(held) if one.head <= last.pc <= one.end]
    # What the compiler has put behind the loop jumps back into it as well, from within other calls.
    around = [one for one in around if _encloses(where_core(tile, last.core, one.end), calls)]
    inner = min(around, key=lambda one: one.end - one.head, default=None)
    has_line = inner is not None and where_core(tile, last.core, inner.end).line
    pc = inner.end if inner is not None and has_line else last.pc
    where = outside_headers(where_core(tile, last.core, pc))
    text = (
        f"{waiter.who} waits for {waiter.reason}; {last.who} {_GIVES[last.kind]} in this loop,"
        f" {len(counted)} times, and has ended"
    )
    return Finding("hang", "error", text, place(where, last.clock), who_waits(waiter), (), "")


def _encloses(end: Where, calls: tuple[Call, ...]) -> bool:
    """Whether a loop that ends there is around what the inlined `calls` lead to."""
    return end.inlined == calls[len(calls) - len(end.inlined) :]
