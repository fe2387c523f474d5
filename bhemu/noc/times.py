"""When a request arrives in modelled time: interface units, links and routers, channels of DRAM.

A packet takes each link on its way for as long as its flits pass; its head goes on by a hop. Each
NoC goes round in one direction, so that a request and its answer make a whole turn of every axis
that they use. The target acts when the tail of the request is there, the sender counts the answer
when the tail of that is there. Times are in hundredths of cycles; docs/timing.md has the sources.
"""

from typing import Any

import numpy as np

from bhemu.devices import niu, noc_map
from bhemu.devices import niu_request as request
from bhemu.devices.noc_map import HEIGHT, WIDTH
from bhemu.jit.subset import njit
from bhemu.noc import memory
from bhemu.tensix.state import MODELLED

PARTS = 100  # of a cycle
WINDOW = 8  # cycles between two looks at what arrives: less than the shortest way takes
HOP = 865  # 147 cycles more for 17 hops more: noc_latencies, ONE_FROM_ONE 64 B, 373 and 226
FLIT = 104  # 61.5 B a cycle: noc_latencies, ONE_FROM_ONE and ONE_TO_ONE of 64 KiB
INTERFACE = 1500  # each of four passages of an interface unit: ONE_TO_ONE 64 B, 358, less the rest
L1_READ = 2000  # ONE_FROM_ONE 64 B, 373, against 358 of the write
DRAM_READ, DRAM_WRITE = 12700, 2600  # DRAM_SHARDED 64 B: 481 read, 381 written
READ_CHANNEL = 145  # 64 B of a channel: 44 B a cycle, DRAM_SHARDED reads, 40 to 46
WRITE_CHANNEL = 136  # 47 B a cycle: the same of writes, 40 to 56
_X, _Y, _OUT, _IN = range(4)  # links of a node
# Stages of a request: it waits for the interface of its tile; is on its way; the memory of the
# target works on it; its answer waits for the interface there; and is on its way back.
QUEUED, ARRIVES, SERVED, ANSWERS, BACK = range(5)


@njit
def _take(link: Any, which: Any, at: Any, busy: Any) -> Any:
    """A packet takes a link when it is free: when its head is through."""
    at = max(at, link[which])
    link[which] = at + busy
    return at


@njit
def _arrives(chip: Any, noc: Any, source: Any, target: Any, flits: Any, at: Any) -> Any:
    """When the tail of a packet that is sent at a time is at its target."""
    links, busy = chip.link_free[noc], flits * FLIT
    x, y = source & 63, source >> 6 & 63
    at = _take(links[y * WIDTH + x], np.int64(_OUT), at, busy) + INTERFACE
    for turn in range(2):
        if turn == noc:  # NoC 0 goes along x first, NoC 1 along y
            while x != target & 63:
                at = _take(links[y * WIDTH + x], np.int64(_X), at, busy) + HOP
                x = (x + 1) % WIDTH
        else:
            while y != target >> 6 & 63:
                at = _take(links[y * WIDTH + x], np.int64(_Y), at, busy) + HOP
                y = (y + 1) % HEIGHT
    return _take(links[y * WIDTH + x], np.int64(_IN), at, busy) + INTERFACE + busy


@njit
def _farthest(row: Any) -> Any:
    """The last corner of a multicast, else the target, as this NoC counts."""
    if request.is_multicast(row[request.CONTROL]):
        return row[request.RECTANGLE] >> 12 & 0xFFF
    return np.int64(noc_map.place(row[request.ENDPOINT]))


@njit
def _memory(chip: Any, row: Any, at: Any) -> Any:
    """When the memory of the target has read or written what a request that reaches it asks for."""
    reads = request.kind(row[request.CONTROL]) == request.READ
    if noc_map.kind(row[request.ENDPOINT]) != noc_map.DRAM:
        return at + (L1_READ if reads else 0)
    busy = niu.flits(request.size(row)) * (READ_CHANNEL if reads else WRITE_CHANNEL)
    bank = memory.number(row[request.ENDPOINT])
    at = max(at, chip.channel_free[bank])
    chip.channel_free[bank] = at + busy
    return at + (DRAM_READ + busy if reads else DRAM_WRITE)  # a write is taken before it is done


@njit
def _data(row: Any) -> Any:
    """Flits of a packet that carries the data of a request, with its header."""
    return 1 + niu.flits(request.size(row))


@njit
def _waits(chip: Any, noc: Any, node: Any) -> Any:
    """The cycle in which the interface of a node sends another packet, 0 = now.

    A packet takes the links of its way when it leaves, so that it holds none long before.
    """
    free = chip.link_free[noc][(node >> 6 & 63) * WIDTH + (node & 63), _OUT] // PARTS
    return free if free > chip.clock[0] else np.int64(0)


@njit
def _next(chip: Any, s: Any, row: Any, stage: Any) -> Any:
    """Begin the next stage of a request, unless it must wait; the cycle in which that ends."""
    noc, at = row[request.NOC], row[request.DUE] * PARTS
    own, target = np.int64(s.niu_node[noc]) & 0xFFF, _farthest(row)
    reads = request.kind(row[request.CONTROL]) == request.READ
    if stage == ARRIVES:
        at = _memory(chip, row, at)
    elif stage == SERVED:
        pass
    else:
        source, end = (own, target) if stage == QUEUED else (target, own)
        waits = _waits(chip, noc, source)
        if waits:
            return waits
        flits = np.int64(1)
        if reads == (stage == ANSWERS):
            flits = 1 + niu.flits(request.size(row))  # a header, and the data
        if reads and flits > 1 and noc_map.kind(row[request.ENDPOINT]) == noc_map.DRAM:
            at -= flits * FLIT  # the first of them leave before the channel has read the last
        at = _arrives(chip, noc, source, end, flits, at)
    row[request.CONTROL] += 1 << request.STAGE
    return at // PARTS


@njit
def is_modelled(s: Any) -> Any:
    """Whether requests of this tile take time."""
    return s.timed[0] == MODELLED


@njit
def _stage(row: Any) -> Any:
    return row[request.CONTROL] >> request.STAGE & 7


@njit
def due(chip: Any, s: Any, row: Any) -> Any:
    """Whether the target acts on a request now, of a read or answer: whether it is back."""
    reads = request.kind(row[request.CONTROL]) == request.READ
    while row[request.DUE] <= chip.clock[0]:
        stage = _stage(row)
        if stage == BACK or (stage == SERVED and not reads):
            return True
        row[request.DUE] = _next(chip, s, row, stage)
    return False


@njit
def has_acted(row: Any) -> Any:
    """Whether the target of a request that is no read has acted on it."""
    return request.kind(row[request.CONTROL]) != request.READ and _stage(row) > SERVED


@njit
def answers_later(row: Any) -> Any:
    """Whether the answer of a request on which the target has acted now is still to come."""
    later = _stage(row) == SERVED and request.is_answered(row[request.CONTROL])
    if later:
        row[request.CONTROL] += 1 << request.STAGE
    return later
