"""Facts about a hang besides its waits: ended cores, missing requests, semaphores never taken."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from bhemu.errors import NoProgress
from bhemu.jit.subset import JIT
from bhemu.machine.error_text import where_core
from bhemu.machine.hang.waits import BELOW_MAXIMUM
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.noc.grid import XY
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import BGE, BGEU, BLT, BLTU
from bhemu.why.check import Context
from bhemu.why.checks.buffers import COUNT_REGISTERS, Event, events
from bhemu.why.findings import Finding, of_one_hang, outside_headers, place, who_waits
from bhemu.why.order.conflicts import observed
from bhemu.why.order.sent import Sent
from bhemu.why.order.sites import comparison
from bhemu.why.origin.outputs import last_sent
from bhemu.why.steps import where

# A core waits for a count that is not reached.

_TOLD = 2  # such waits


def _waiters(error: NoProgress, kind: str) -> list[Any]:
    """The waiters of a hang that wait for a resource of a kind."""
    return [one for one in getattr(error.graph, "waiters", ()) if one.kind == kind]


def unreached(context: Context, error: NoProgress) -> Iterator[Finding]:
    """Counts that a core waits for and that other cores have begun and do not continue."""
    said = set[tuple[str, int]]()
    for waiter in _waiters(error, "l1"):
        core, pc = str(waiter.where["core"]), int(waiter.where["pc"])
        address = int(waiter.resource["address"])
        tile = context.symptom.machine.tile[tuple(waiter.where.get("tile") or context.tile.xy)]
        words, compared = tile.state.l1.view("<u4"), comparison(tile.state.l1, pc)
        if compared is None or address & 3 or address >= L1_SIZE or (core, pc) in said:
            continue
        branch, register = compared
        have, want = int(words[address >> 2]), int(tile.core[core].regs[register])
        by_noc = "last written over the NoC" in waiter.history
        cls = decode(int(words[branch >> 2]))  # only counts are compared by size
        by_size = cls is not None and issubclass(cls, BLT | BGE | BLTU | BGEU)
        counts = by_noc or (context.program.is_alone and by_size)
        if counts and register and 0 < have < want and len(said) < _TOLD:
            said.add((core, pc))
            text = f"{core} waits until L1 {address:#x} is {want:#x}; others have counted to"
            text += f" {have:#x}, and nobody goes on"
            yield Finding("hang", "error", text, who_waits(waiter), {}, (), "")


# On a chip: a core waits for a flag that nothing sends after its data.

_NOTHING = "nothing was ever written there over the NoC"


def unsent(context: Context, error: NoProgress) -> Iterator[Finding]:
    """The line after which a flag is missing: the last one that sends a waiting tile its data."""
    for waiter in _waiters(error, "l1") if JIT else ():
        if _NOTHING not in waiter.history:
            continue
        last = last_sent(context, partial(_goes_to, context, tuple(waiter.where["tile"])))
        if last is not None:
            yield _no_word(context, waiter, last)
            return


def _no_word(context: Context, waiter: Any, sent: Sent) -> Finding:
    xy, core, address = waiter.where["tile"], str(waiter.where["core"]), waiter.resource["address"]
    by = observed(context)[sent.tile].tile
    sender = where(by, sent.step)
    text = (
        f"tile ({xy[0]},{xy[1]}) {core} waits for L1 {address:#x}, which nobody has written over"
        f" the NoC; {sender.core} of tile ({by.xy[0]},{by.xy[1]}) sends it data,"
        " and no word after them"
    )
    tile = context.symptom.machine.tile[tuple(xy)]
    victim = where_core(tile, CORE_NAMES.index(core), int(waiter.where["pc"]))
    who = place(sender, sent.step.clock, by)
    return Finding("hang", "error", text, who, place(victim, None), (), "")


def _goes_to(context: Context, xy: XY, one: Sent) -> bool:
    """Whether a request writes bytes of L1 to tile `xy`, from another tile."""
    reached = [n for n in one.reached if n != one.tile] if one.takes_data else []
    return any(observed(context)[n].tile.xy == xy for n in reached)


# On a chip: a core waits for pages or room, and the core that counts them has ended.

_GIVES = {"acked": "gives pages back", "received": "announces pages"}


def left_pages(context: Context, error: NoProgress) -> Iterator[Finding]:
    """The line where a core that has ended counted pages that another core waits for.

    If the outputs are as expected, the waiting core is wrong: it does more than there is to do.
    """
    if context.program.is_alone or not context.symptom.wrong or not JIT:
        return
    seen: dict[Any, list[Event]] = {one.tile.xy: [] for one in observed(context)}
    said: set[tuple[int, int]] = set()
    for waiter in _waiters(error, "stream"):
        kind = COUNT_REGISTERS.get(waiter.resource.get("register"))
        if kind is None:
            continue
        xy, stream = tuple(waiter.where["tile"]), waiter.resource["stream"]
        if not seen.get(xy, True):
            seen[xy] = next(events(one) for one in observed(context) if one.tile.xy == xy)
        counted = [one for one in seen.get(xy, ()) if (one.kind, one.high) == (kind, stream)]
        tile = context.symptom.machine.tile[xy]
        if not counted:
            continue
        last = counted[-1]  # whose core has ended if it is back in the firmware that called it
        ended = context.in_firmware(tile, last.core, tile.core[last.who].pc)
        if ended and (last.core, last.pc) not in said:  # of several tiles the first
            said.add((last.core, last.pc))
            yield _counted_in(tile, waiter, counted)


def _counted_in(tile: Tile, waiter: Any, counted: list[Event]) -> Finding:
    last = counted[-1]
    where = outside_headers(where_core(tile, last.core, last.pc))
    text = (
        f"{waiter.who} waits for {waiter.reason}; {last.who} {_GIVES[last.kind]},"
        f" {len(counted)} times, and has ended"
    )
    return Finding("hang", "error", text, place(where, last.clock), who_waits(waiter), (), "")


# What else is known of the semaphore or counter that the root of a hang waits for.


def with_hand_over(hang: Finding, error: NoProgress, found: Iterable[Finding]) -> Finding:
    """The hang with the findings about what its root waits for.

    The culprit is the one that should have ended the wait, if one of them names it.
    """
    of_it = [one for one in found if _is_of_hang(error, one)]
    told = of_one_hang(hang, of_it)
    for one in of_it:
        assert one.ends is not None
        if one.ends.text and _is_lost(error):
            told = replace(told, text=f"{hang.text}: {one.ends.text}", advice=one.advice)
            return replace(told, culprit=one.culprit, victim=hang.culprit)
    return told


def apart(error: NoProgress, found: Iterable[Finding]) -> list[Finding]:
    """The findings that are about something else."""
    return [one for one in found if not _is_of_hang(error, one)]


def _is_of_hang(error: NoProgress, one: Finding) -> bool:
    """Whether a finding is about what the root of a hang waits for."""
    waiters = getattr(error.graph, "waiters", ())
    if not waiters or one.ends is None or waiters[0].where.get("tile") != list(one.ends.tile):
        return False
    held = waiters[0].resource
    things = {(waiters[0].kind, held.get("index"))}
    things.add(("buffer", *map(held.get, ("buffer", "register"))))
    return not things.isdisjoint(one.ends.things)


def _is_lost(error: NoProgress) -> bool:
    """Whether the root of a hang waits for a counter, or that somebody takes from a semaphore."""
    graph: Any = error.graph
    root = graph.waiters[0]
    is_lost = not any(releaser.able for releaser in root.releasers)
    return root.kind != "semaphore" or (is_lost and root.reason.endswith(BELOW_MAXIMUM))
