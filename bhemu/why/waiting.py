"""Facts about a hang besides its waits: ended cores, semaphores never taken."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from bhemu.errors import NoProgress
from bhemu.jit.subset import JIT
from bhemu.machine.error_text import outside_headers, where_core
from bhemu.machine.hang.givers import Agents, Releaser, name_of
from bhemu.machine.hang.graph import graph_of
from bhemu.machine.hang.waits import BELOW_MAXIMUM, GAVE, MOST, PAGES, Waiter, semaphore_name
from bhemu.memmap import CORE_NAMES
from bhemu.program import schema
from bhemu.text import times
from bhemu.why import order as r
from bhemu.why.check import Context
from bhemu.why.checks.buffers import COUNT_REGISTERS, REGISTERS, Event, events
from bhemu.why.findings import Finding, of_one_hang, place, waiters_of, who_waits
from bhemu.why.order.conflicts import Observed, seen_at, tiles
from bhemu.why.order.shadow import STORED
from bhemu.why.order.tiles import Sent, Tiles


def with_seen(context: Context, error: NoProgress) -> NoProgress:
    """The hang; who has stored to an awaited count or word so far could do so again.

    Of waits for which nobody was found in the code: by the observed run.
    """
    lost = [
        one
        for one in waiters_of(error, "stream", "l1")
        if "address" in one.resource and not any(by.able for by in one.releasers)
    ]
    if not lost or not JIT or context.program.kind == schema.SAVED_STATE:
        return error
    more = {}
    for waiter in lost:
        if (one := seen_at(context, _tile_of(waiter))) is None:
            continue
        at, own = waiter.resource["address"], CORE_NAMES.index(waiter.where["core"])
        stores = one.stores_to(at)
        if waiter.kind == "stream":
            rows = one.notes[one.notes[:, r.N_WHAT] == STORED]
            stores = rows[rows[:, r.N_LOW] == at][:, [r.N_CORE, r.N_PC]].tolist()
        agents = Agents(context.symptom.machine.tile[one.tile.xy], ())
        stores = sorted(
            ((core, pc) for core, pc in stores if core != own), key=lambda by: agents.comes(*by)
        )
        if stores:
            how = f"it has stored there {len(stores)} time{'s' if len(stores) > 1 else ''} so far"
            of = waiter.who.partition(" ")[0]
            last = _of(error, f"{of} " if of.startswith("(") else "", agents.acts(*stores[-1], how))
            more[id(waiter)] = (*(by for by in waiter.releasers if by.who != last.who), last)
    return _with_releasers(error, more)


def _tile_of(waiter: Waiter) -> Any:
    """The place of the tile of a waiter, () if it has none."""
    return tuple(waiter.where.get("tile", ()))


def _of(error: NoProgress, tile: str, by: Releaser) -> Releaser:
    """One of a tile that could end a wait, which may wait itself in this hang."""
    who = f"{tile}{by.who}"
    waits = who in [other.who for other in waiters_of(error)]
    return replace(by, who=who, state="waits itself" if waits else by.state)


def _with_releasers(error: NoProgress, more: dict[int, tuple[Releaser, ...]]) -> NoProgress:
    """The hang with other releasers of some waiters, `more` by the id of each."""
    if more:
        every = waiters_of(error)
        error.graph = graph_of(
            [replace(one, releasers=more.get(id(one), one.releasers)) for one in every]
        )
    return error


def with_counts(context: Context, error: NoProgress) -> NoProgress:
    """The hang; of a word that several tiles write, who has done so less often than others."""
    together = None if context.program.is_alone or not JIT else tiles(context)
    more = {}
    for waiter in waiters_of(error, "l1"):
        seen = None if together is None else seen_at(context, _tile_of(waiter))
        if together is None or seen is None:
            continue
        sent = together.flags[seen.number].get(waiter.resource["address"] >> 2, {}).values()
        last = {(one.tile, one.core): one for one in sent}
        count = Counter((one.tile, one.core) for one in sent)
        never = [one for one in waiter.releasers if one.given == 0]
        if len(count) < 2 or len({*count.values(), *(0 for _ in never)}) < 2:
            continue
        for at, number in sorted(count.items(), key=lambda one: one[1])[: MOST - 1]:
            tile = together.observers[at[0]].tile
            agents = Agents(context.symptom.machine.tile[tile.xy], ())
            by = agents.acts(at[1], last[at].step.pc, f"{GAVE} {times(number)}")
            never.append(replace(_of(error, f"{name_of(tile)} ", by), given=number))
        more[id(waiter)] = tuple(never)
    return _with_releasers(error, more)


def left_pages(context: Context, error: NoProgress) -> Iterator[Finding]:
    """The line where a core that has ended counted pages that another core waits for.

    If the outputs are as expected, the waiting core is wrong: it does more than there is to do.
    """
    if context.program.is_alone or not context.symptom.wrong or not JIT:
        return
    said: set[tuple[int, int]] = set()

    @cache
    def seen(xy: Any) -> list[Event]:
        one = seen_at(context, xy)
        return [] if one is None else events(one)

    for waiter in waiters_of(error, "stream"):
        kind = COUNT_REGISTERS.get(waiter.resource["register"])
        xy, stream = _tile_of(waiter), waiter.resource["stream"]
        counted = [one for one in seen(xy) if (one.kind, one.high) == (kind, stream)]
        if kind is None or not counted:
            continue
        tile, last = context.symptom.machine.tile[xy], counted[-1]
        # whose core has ended if it is back in the firmware that called it
        ended = context.in_firmware(tile, last.core, tile.core[last.who].pc)
        if ended and (last.core, last.pc) not in said:  # of several tiles the first
            said.add((last.core, last.pc))
            where = outside_headers(where_core(tile, last.core, last.pc))
            does, _ = PAGES[waiter.resource["register"]]
            text = f"{waiter.who} waits for {waiter.reason}; {last.who} {does},"
            text += f" {len(counted)} times, and has ended"
            who = place(where, last.clock)
            yield Finding("hang", "error", text, who, who_waits(waiter), (), "")


def beyond(context: Context, error: NoProgress) -> Iterator[Finding]:
    """The cores that wait for more pages, or for room for more, than a circular buffer has.

    Counts of a core with words that still wait at the gate are not complete.
    """
    for waiter in waiters_of(error, "stream"):
        held, kind = waiter.resource, COUNT_REGISTERS.get(waiter.resource["register"])
        known = kind is not None and {"buffer", "value"} <= held.keys()
        if not known or waiter.wanted is None:
            continue
        tile = context.symptom.machine.tile[_tile_of(waiter)]
        has = next(b.pages for b in context.part(tile).buffers if b.index == held["buffer"])
        core, s = CORE_NAMES.index(waiter.where["core"]), tile.state
        if (s.gate_full.astype(bool) & (s.gate_core == core)).any():
            continue
        counts = s.stream[held["stream"]]
        there = int(counts[REGISTERS["received"]]) - int(counts[REGISTERS["acked"]]) & 0xFFFF
        if there > has:  # more were given back than announced, or the other way round
            continue
        there = there if kind == "received" else has - there
        wanted = there + waiter.wanted.value - held["value"]
        if wanted > has:
            what = f"{wanted} pages" if kind == "received" else f"room for {wanted} pages"
            text = f"{waiter.who} waits for {what} of buffer {held['buffer']}, which has {has}"
            where = place(where_core(tile, core, int(waiter.where["pc"])), context.end, tile)
            yield Finding("hang", "error", text, where, {}, (), "")


def brought(context: Context, error: NoProgress) -> Iterator[Finding]:
    """Writes over the NoC that came last to an awaited word, and left it as it was before.

    The culprit is the core that stored what was sent, else the one that sent it.
    """
    together = None if context.program.is_alone or not JIT else tiles(context)
    if together is None:
        return
    for waiter in waiters_of(error, "l1"):
        seen = seen_at(context, _tile_of(waiter))
        if seen is None or waiter.wanted is None:
            continue
        tile, o = seen.tile, seen.record
        came = context.symptom.machine.tile[tile.xy].state.noc_arrivals[0]
        if came != tile.state.noc_arrivals[0]:  # not all of it was observed
            continue
        word, held = waiter.resource["address"] >> 2, waiter.resource["value"]
        slot = int(o.slot[word]) - 1
        last = int(o.values[slot]) - 1
        sent = together.flags[seen.number].get(word, {}).get(last) if slot >= 0 else None
        if sent is None or sent.increments:
            continue
        values = [int(o.value[slot, n % r.VALUES, 0]) for n in range(last + 1)]
        before = [int(o.first[word]), *values[:-1]]
        # not of a count, which two have added to at once
        flag = waiter.wanted.value in before or {*before} == {held}
        if flag and before[-1] == held == values[-1]:
            yield _sent(together, sent, waiter)


def _sent(together: Tiles, sent: Sent, waiter: Any) -> Finding:
    """A write that left an awaited word as it was."""
    by, step, how = together.observers[sent.tile], sent.step, "has sent"
    at, held = waiter.resource["address"], waiter.resource["value"]
    who = f"({by.tile.xy[0]},{by.tile.xy[1]}) {CORE_NAMES[sent.core]}"
    stored = None
    if sent.takes_data:
        source = sent.own[0] + at - sent.remote[0]
        stored = Observed(by, []).writer(-1, source, step.clock)
        how = f"has sent L1 {source:#x}, which is {held}," if stored else how
    of, _, waits = waiter.who.partition(" ")
    name = semaphore_name(by.tile, sent.core, at)
    text = f"{who} {how} {'' if stored else f'{held} '}to {at:#x}{name} of {of}"
    text += f", where {waits} waits for {waiter.wanted}"
    made = step if stored is None else stored
    where = place(where_core(by.tile, made.core, made.pc), made.clock)
    advice = f"let the word that is sent hold {waiter.wanted} until the request has left"
    advice = advice if stored else f"send {waiter.wanted}"
    return Finding("hang", "error", text, where, who_waits(waiter), (), advice)


# What else is known of the semaphore or counter that the root of a hang waits for.


def with_hand_over(hang: Finding, error: NoProgress, found: Iterable[Finding]) -> Finding:
    """The hang with the findings about what its root waits for.

    The culprit is the one that should have ended the wait, if one of them names it.
    """
    of_it = [one for one in found if _is_of_hang(error, one)]
    told = of_one_hang(hang, of_it)
    for one in of_it:
        assert one.ends is not None
        root = waiters_of(error)[0]  # waits for a counter, or that somebody takes from a semaphore
        lost = not any(by.able for by in root.releasers) and root.reason.endswith(BELOW_MAXIMUM)
        if one.ends.text and (root.kind != "semaphore" or lost):
            told = replace(told, text=f"{hang.text}: {one.ends.text}", advice=one.advice)
            return replace(told, culprit=one.culprit, victim=hang.culprit)
    return told


def apart(error: NoProgress, found: Iterable[Finding]) -> list[Finding]:
    """The findings that are about something else."""
    return [one for one in found if not _is_of_hang(error, one)]


def _is_of_hang(error: NoProgress, one: Finding) -> bool:
    """Whether a finding is about what the root of a hang waits for."""
    root = next(iter(waiters_of(error)), None)
    if root is None or one.ends is None or root.where.get("tile") != list(one.ends.tile):
        return False
    held = root.resource
    things: set[tuple[Any, ...]] = {(root.kind, held.get("index"))}
    things.add(("buffer", *map(held.get, ("buffer", "register"))))
    return not things.isdisjoint(one.ends.things)
