"""The wait-for graph of a chip: what the tiles wait for, and what the NoC could still bring."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bhemu.devices import niu_counters, niu_issue
from bhemu.devices import niu_request as request
from bhemu.devices.noc_map import tile_number
from bhemu.errors import NoProgress
from bhemu.machine.hang.explore import Loop, livelock
from bhemu.machine.hang.release import Releaser
from bhemu.machine.hang.waitgraph import Waiter, graph_of, of_graph, release, wait_for_graph
from bhemu.memmap import CORE_NAMES, HOST, L1_SIZE, NOC_CTRL, NOC_RET_ADDR_LO, NOC_TARG_ADDR_LO
from bhemu.noc.describe import at as shown
from bhemu.tensix.state import NOC_ARRIVED

if TYPE_CHECKING:
    from bhemu.machine.controls import Controls
    from bhemu.machine.tile import Tile


_BUDGET = 10_000  # steps of a look at what a core can still do
_MOST = 4  # senders named for one wait
_LOOK = "look at who should have sent, and at counts of destinations"
# What the number of answers is compared with: (answers, requests sent that are answered, in words)
_ANSWERS = {
    niu_issue.ATOMIC_ANSWERS: (niu_issue.ATOMICS_SENT, "atomic results", "answered atomics"),
    niu_issue.ACKS: (niu_issue.WRITES_SENT, "acknowledgements", "acknowledged writes"),
    niu_issue.READ_ANSWERS: (niu_issue.READS_SENT, "read answers", "reads"),
}


def _name(tile: Tile) -> str:
    return f"({tile.xy[0]},{tile.xy[1]})"


def _counter(tile: Tile, address: int) -> str | None:
    """A counter that is polled, and what it is to be compared with; None for another address."""
    place = niu_counters.place(address)
    if place is None:
        return None
    noc, n = place
    counts = [int(value) for value in tile.state.niu_counter[noc]]
    text = f"counter {niu_counters.NAMES[n]} of NoC {noc} to change"
    if n not in _ANSWERS:
        return text
    sent, answers, requests = _ANSWERS[n]
    return (
        f"{text}: {counts[n]} {answers} have come for {counts[sent]} {requests} sent, and nothing"
        " is under way (a multicast has one for each receiver)"
    )


def _last_writer(chip: Controls, tile: Tile, address: int) -> str:
    """Who wrote an address last over the NoC, as far as is remembered."""
    s = tile.state
    count = int(s.noc_arrivals[0])
    by_number = {number(other): other for other in chip.tiles_made()}
    for k in range(count - 1, max(count - NOC_ARRIVED, 0) - 1, -1):
        at, n, t, core, pc, when = (int(word) for word in s.noc_arrived[k % NOC_ARRIVED])
        if at <= address < at + n or (address < at + n and at < address + 4):
            sender = by_number[t]
            by = "over the NoC" if core == HOST else sender.place(core, pc)
            return f"last written over the NoC in round {when} by tile {_name(sender)}: {by}"
    return "" if count > NOC_ARRIVED else "nothing was ever written there over the NoC"


def number(tile: Tile) -> int:
    """The number of a tile by its coordinate."""
    return tile_number(*tile.xy)


def _senders(chip: Controls, tile: Tile, address: int) -> list[Releaser]:
    """Initiators that are set up for a write or atomic to this address of this tile."""
    found = []
    for other in chip.tiles_made():
        for noc in (0, 1):
            for i in range(4):
                registers = [int(word) for word in other.state.niu_command[noc, i]]
                if _aims(registers, tile, address):
                    how = f"initiator {i} of its NoC {noc} is set up for a request to it"
                    found.append(Releaser(f"tile {_name(other)}", how, "", _state(other)))
    return found[:_MOST]


def _aims(registers: list[int], tile: Tile, address: int) -> bool:
    """Whether the registers of an initiator name an address of a tile as the destination."""
    control = registers[NOC_CTRL >> 2]
    kind = control & 3
    if kind not in (request.WRITE, request.ATOMIC):
        return False
    data = kind == request.WRITE and not control & request.INLINE
    first = (NOC_RET_ADDR_LO if data else NOC_TARG_ADDR_LO) >> 2
    low, given = registers[first], registers[first + 2]
    x, y = tile.xy
    if control & request.MULTICAST:
        sides = [sorted((given & 63, given >> 12 & 63)), sorted((given >> 6 & 63, given >> 18))]
        here = sides[0][0] <= x <= sides[0][1] and sides[1][0] <= y <= sides[1][1] & 63
    else:
        here = given & 0xFFF == x | y << 6
    return here and low <= address < low + (registers[8] if data else 4)


def _state(tile: Tile) -> str:
    """What a tile's cores do at present, as the end of "..., which "."""
    cores = ", ".join(f"{core.name} {core.state}" for core in tile.core.values())
    return f"has {cores}"


def _is_untouched(tile: Tile) -> bool:
    """Whether nothing was ever written to it over the NoC."""
    return int(tile.state.noc_arrivals[0]) == 0


def _waiter(chip: Controls, tile: Tile, waiter: Waiter) -> Waiter:
    """A waiter of one tile as the chip's graph shows it."""
    alone = len(chip.tiles_made()) == 1
    of = "" if alone else f"{_name(tile)} "
    own = tuple(dataclasses.replace(r, who=f"{of}{r.who}", able=r.able) for r in waiter.releasers)
    address = waiter.resource.get("address", -1)
    reason, history = waiter.reason, waiter.history
    if waiter.kind == "l1" and 0 <= address < L1_SIZE:
        own += tuple(_senders(chip, tile, address))
        by_noc = "" if alone and _is_untouched(tile) else _last_writer(chip, tile, address)
        history = "; ".join(part for part in (history, by_noc) if part)
    reason = _counter(tile, address) or reason
    who = f"{of}{waiter.who}"
    return dataclasses.replace(waiter, who=who, releasers=own, reason=reason, history=history)


def _linked(tile: Tile) -> list[str]:
    """Linked transactions that nothing has closed."""
    lines = []
    for noc in (0, 1):
        is_open, given, core, pc = (int(word) for word in tile.state.niu_linked[noc])
        if is_open:
            by = "over the NoC" if core == HOST else tile.place(core, pc)
            lines.append(
                f"NoC {noc} of tile {_name(tile)} has a linked request to {shown(given)} that no"
                f" further request has closed, sent by {by}"
            )
    return lines


def linked(chip: Controls) -> list[str]:
    """Every linked transaction of a chip that nothing has closed, a line for each."""
    return [line for tile in chip.tiles_made() for line in _linked(tile)]


def no_progress(chip: Controls, loops: Mapping[int, tuple[Loop, ...]]) -> NoProgress:
    """Deadlock, or livelock: `loops` are those of the running cores by tile number.

    Of a chip with one tile in use it says what it says of a tile that is alone.
    """
    waiters: list[Waiter] = []
    for tile in chip.tiles_made():
        graph = wait_for_graph(tile, loops.get(number(tile), ()))
        waiters += [_waiter(chip, tile, waiter) for waiter in graph.waiters]
    names = [waiter.who for waiter in waiters]
    graph = graph_of(waiters)
    open_links = "; ".join(linked(chip))
    if len(chip.tiles_made()) == 1 and not open_links:
        (only,) = chip.tiles_made()
        return of_graph(only, graph, loops.get(number(only), ()))
    hint = open_links or release(graph) or _LOOK
    if not loops:
        text = f"deadlock: nothing can move any more on the chip ({len(names)} waiting)"
        return NoProgress(text, graph=graph, category="Deadlock", rule="DEADLOCK", hint=hint)
    going = [
        f"{_name(tile)} {CORE_NAMES[loop.core]}"
        for tile in chip.tiles_made()
        for loop in loops.get(number(tile), ())
    ]
    theirs = "their loops" if len(going) > 1 else "its loop"
    text = f"livelock: {_listed(going)} can never leave {theirs}, and nothing is under way"
    return NoProgress(text, graph=graph, category="Livelock", rule="LIVELOCK", hint=hint)


def standstill(chip: Controls, tile: Tile) -> NoProgress:
    """What the cores of one tile wait for, where every core of the chip that runs only polls."""
    graph = wait_for_graph(tile, livelock(tile, _BUDGET))
    waiters = [_waiter(chip, tile, waiter) for waiter in graph.waiters]
    text = f"tile {_name(tile)} waits, every core that runs only polls, and nothing is under way"
    hint = "; ".join(linked(chip)) or "only the host can go on; what it waits for never comes"
    return NoProgress(
        text, graph=graph_of(waiters), category="Livelock", rule="LIVELOCK", hint=hint
    )


def _listed(names: list[Any]) -> str:
    """Names in words, at most eight of them."""
    more = [] if len(names) <= 8 else [f"{len(names) - 8} more"]
    return ", ".join([*names[:8], *more])
