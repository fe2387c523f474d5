"""A hang on a chip in which a core waits for pages or room, and who counts them has ended."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from bhemu.errors import BhemuError, Call, NoProgress, Where
from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.formats import Branch, Jump
from bhemu.riscv.isa import decode
from bhemu.why.buffers import COUNT_REGISTERS, Event, Recorder
from bhemu.why.check import Context
from bhemu.why.findings import Finding, outside_headers, place, who_waits
from bhemu.why.firmware import firmware_of, in_firmware

_GIVES = {"acked": "gives pages back", "received": "announces pages"}


def left_pages(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The loop of a core that has ended, in which it counted pages that another core waits for.

    Where the outputs are as expected, it is the one that waits which does more than there is to do.
    On one of several tiles it may do the work of another one, too.
    """
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None or not context.is_chip or not context.symptom.wrong:
        return
    seen: dict[Any, list[Event]] = {}
    said: set[tuple[int, int]] = set()
    for waiter in graph.waiters:
        kind = COUNT_REGISTERS.get(waiter.resource.get("register"))
        if waiter.kind != "stream" or kind is None:
            continue
        xy, stream = tuple(waiter.where["tile"]), waiter.resource["stream"]
        if xy not in seen:
            seen[xy] = _events(context, xy)
        counted = [one for one in seen[xy] if (one.kind, one.high) == (kind, stream)]
        tile = context.symptom.machine.tile[xy]
        if not counted or not _has_ended(context, tile, counted[-1].core):
            continue
        last = counted[-1]
        if (last.core, last.pc) not in said:  # of several tiles the first
            said.add((last.core, last.pc))
            yield _finding(tile, waiter, counted)


def _events(context: Context, xy: Any) -> list[Event]:
    """What one more run of a tile does to its buffers."""
    machine = context.launch(engine="compiled", **context.alone)
    tile = machine.tile[xy]
    recorder = Recorder(tile)
    with suppress(BhemuError):
        machine.run(limit=context.most)
    return list(recorder.events())


def _has_ended(context: Context, tile: Tile, core: int) -> bool:
    """Whether a core is back in the firmware that has called its kernel."""
    own = tile.core[CORE_NAMES[core]]
    return in_firmware(firmware_of(context.program), own, own.pc)


def _finding(tile: Tile, waiter: Any, counted: list[Event]) -> Finding:
    last = counted[-1]
    calls = where_core(tile, last.core, last.pc).inlined
    around = [(head, end) for head, end in _loops(tile, last) if head <= last.pc <= end]
    # What the compiler has put behind the loop jumps back into it as well, from within other calls.
    around = [one for one in around if _encloses(where_core(tile, last.core, one[1]), calls)]
    _, end = min(around, key=lambda one: one[1] - one[0], default=(0, last.pc))
    pc = end if where_core(tile, last.core, end).line else last.pc
    where = outside_headers(where_core(tile, last.core, pc))
    text = (
        f"{waiter.who} waits for {waiter.reason}; {last.who} {_GIVES[last.kind]} in this loop,"
        f" {len(counted)} times, and has ended"
    )
    return Finding("hang", "error", text, place(where, last.clock), who_waits(waiter), (), "")


def _loops(tile: Tile, event: Event) -> Iterable[tuple[int, int]]:
    """The loops of the function of an event: where each begins, the last branch back to there."""
    _, low, high = tile.core[CORE_NAMES[event.core]].function(event.pc)
    ends: dict[int, int] = {}
    for pc in range(low, high, 4):
        word = tile.read32(pc)
        cls: Any = decode(word)
        calls = cls is not None and issubclass(cls, Jump) and word >> 7 & 31
        if cls is None or calls or not issubclass(cls, Branch | Jump):
            continue
        if low <= (head := pc + cls.offset.get(word)) < pc:
            ends[head] = pc
    return ends.items()


def _encloses(end: Where, calls: tuple[Call, ...]) -> bool:
    """Whether a loop that ends there is around what the inlined `calls` lead to."""
    return end.inlined == calls[len(calls) - len(end.inlined) :]
