"""Modelled times of the NoCs and of DRAM: what a packet takes, and what others make it wait.

A packet leaves its NIU when the one before has, goes link by link (each is taken for a cycle a
flit: all virtual channels share it, in the order of arrival) and is there when its last flit is.
Where it is held up its NIU stays taken. A bank of DRAM takes one read and one write at a time.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.devices.noc_map import HEIGHT, WIDTH
from bhemu.jit.subset import njit

PARTS = 64  # of a cycle, in which compiled code counts
_ALONG_X, _ALONG_Y, _INTO = 0, 1, 2  # ways of a router: links, into the NIU
SPANS = 8  # times in which a way is taken, of which the record knows


ISA, MEASURED, DERIVED, ESTIMATE = "isa", "measured", "derived", "estimate"
"""Where a modelled time comes from, here and in timing/cycles.py."""


class Figure(NamedTuple):
    """A time in cycles, and where it comes from."""

    cycles: float
    kind: str
    source: str


_LATENCIES = "noc_latencies_bh"
_HOP = 8.75
FIGURES = {
    "hop": Figure(_HOP, MEASURED,
        "nocbench-blackhole, hops: 106 cycles in 12 hops of a way round, 149 in 17"),
    "flit on a link": Figure(1, ISA, "NoC: 64 bytes a cycle"),
    "flit in or out of an NIU": Figure(1.03125, MEASURED,
        "nocbench-blackhole, size: 198.3 cycles for 192 flits more"),
    "out of an NIU": Figure(20, DERIVED,
        f"{_LATENCIES}: a write of 64 bytes on one axis, 208, less 12 hops and the program;"
        " a quarter each way"),
    "into an NIU": Figure(20, DERIVED, "as out of an NIU"),
    "read of L1": Figure(18, DERIVED,
        f"{_LATENCIES}: a read of 64 bytes takes 18 more than a write"),
    "read of DRAM": Figure(126, DERIVED,
        f"{_LATENCIES}: a read of 64 bytes of DRAM takes 108 more than of L1"),
    "write to DRAM": Figure(23, DERIVED,
        f"{_LATENCIES}: a write of 64 bytes to DRAM takes 23 more than to L1"),
    "64 bytes of DRAM, read": Figure(1.41, DERIVED,
        f"{_LATENCIES}: 64 reads of 2048 to 16384 bytes, 1.39 to 1.55;"
        " dramratebench-blackhole, onechan: 1.38"),
    "64 bytes of DRAM, written": Figure(1.42, DERIVED,
        f"{_LATENCIES}: 64 writes of 2048 to 16384 bytes, 1.34 to 1.51"),
    "writes that a bank keeps": Figure(120, ESTIMATE,
        f"{_LATENCIES}: 4 writes take less than the bank would"),
    "path of a multicast, a hop": Figure(_HOP, DERIVED,
        f"{_LATENCIES}: 626 cycles to 2x2 tiles, 761 to 8x8, 779 to 11x10, 468 to a row, 358 (on"
        " one axis 208) to one: as many hops as once round the rings of its axes (17, 12) and to"
        " the farthest receiver; none where a linked multicast has kept its path"),
    "register or memory of another tile": Figure(18, ESTIMATE, "as read of L1"),
}  # fmt: skip


def _parts(name: str) -> int:
    return round(PARTS * FIGURES[name].cycles)


HOP, LINK_FLIT = _parts("hop"), _parts("flit on a link")
NIU_FLIT = _parts("flit in or out of an NIU")
OUT, IN = _parts("out of an NIU"), _parts("into an NIU")
READ_L1, OTHER = _parts("read of L1"), _parts("register or memory of another tile")
READ_DRAM, WRITE_DRAM = _parts("read of DRAM"), _parts("write to DRAM")
READ_DRAM_FLIT = _parts("64 bytes of DRAM, read")
WRITE_DRAM_FLIT = _parts("64 bytes of DRAM, written")
DRAM_KEEPS = _parts("writes that a bank keeps")
STAGES = 4  # of a request on its way (noc/timed.py), in DUE of its row
WINDOW = 32
"""Cycles that tiles run alone at most: no packet arrives so soon."""
assert (OUT + IN) // PARTS > WINDOW


@njit
def cycle(parts: Any) -> Any:
    """The first cycle that does not begin before a time."""
    return (parts + PARTS - 1) // PARTS


@njit
def hops(source: Any, target: Any) -> Any:
    """Links from one place on a NoC (y << 6 | x) to another."""
    across = ((target & 63) - (source & 63)) % WIDTH
    return across + ((target >> 6) - (source >> 6)) % HEIGHT


@njit
def router(place: Any) -> Any:
    """The number of a place (y << 6 | x)."""
    return (place >> 6) * WIDTH + (place & 63)


@njit
def path(source: Any, target: Any, links: Any) -> Any:
    """What a multicast waits before it leaves; `target`: its farthest receiver, `links` away."""
    if source & 63 != target & 63:
        links += WIDTH
    if source >> 6 != target >> 6:
        links += HEIGHT
    return links * HOP


@njit
def free_at(chip: Any, noc: Any, place: Any) -> Any:
    """When the NIU at a place (y << 6 | x) can send."""
    return chip.niu_out[noc, router(place)]


@njit
def _take(chip: Any, noc: Any, way: Any, at: Any, head: Any, length: Any) -> Any:
    """A packet takes a way of a router for a time, from `head` on or when it is free: when?

    Spans in which it is taken are kept in order; a packet fits between two that come later.
    """
    spans, now = chip.taken[noc, way, at], (chip.clock[0] - WINDOW) * PARTS
    n = np.int64(0)
    for k in range(SPANS):
        if spans[k, 1] > now:
            spans[n, 0], spans[n, 1] = spans[k, 0], spans[k, 1]
            n += 1
    for k in range(n, SPANS):
        spans[k, 0] = spans[k, 1] = 0
    begins, place = head, np.int64(0)
    while place < n and begins + length > spans[place, 0]:
        begins = max(begins, spans[place, 1])
        place += 1
    ends = begins + length
    if place > 0 and spans[place - 1, 1] == begins:
        spans[place - 1, 1] = ends
    elif place < n and spans[place, 0] == ends:
        spans[place, 0] = begins
    elif n < SPANS:
        for k in range(n, place, -1):
            spans[k, 0], spans[k, 1] = spans[k - 1, 0], spans[k - 1, 1]
        spans[place, 0], spans[place, 1] = begins, ends
    else:  # as if the time before the last span were taken too
        begins = max(head, spans[n - 1, 1])
        spans[n - 1, 1] = begins + length
    return begins


@njit
def send(chip: Any, noc: Any, source: Any, target: Any, flits: Any, ready: Any) -> Any:
    """A packet goes from one place on a NoC to another; the time at which its last flit is there.

    `ready`: since when it waits. Times are in PARTS of a cycle. See also `chip.noc_held`.
    """
    x, y = source & 63, source >> 6
    out, into = router(source), router(target)
    start = max(ready, chip.niu_out[noc, out])
    chip.noc_held[0] = start - ready
    head, n = start + OUT, np.int64(0)
    while x != target & 63 or y != target >> 6:
        along_x = x != target & 63
        if noc == 1 and y != target >> 6:
            along_x = False
        axis = np.int64(_ALONG_X if along_x else _ALONG_Y)
        at = y * WIDTH + x
        begins = _take(chip, noc, axis, at, head, flits * LINK_FLIT)
        chip.noc_held[1] += begins - head
        if chip.noc_counts[0]:
            chip.link_used[noc, axis, at, 0] += flits
            chip.link_used[noc, axis, at, 1] += begins - head
        head = begins + HOP
        n += 1
        if along_x:
            x = (x + 1) % WIDTH
        else:
            y = (y + 1) % HEIGHT
    begins = _take(chip, noc, np.int64(_INTO), into, head, flits * NIU_FLIT)
    chip.noc_held[0] += begins - head
    tail = begins + flits * NIU_FLIT
    chip.niu_out[noc, out] = max(start + flits * NIU_FLIT, tail - n * HOP - OUT)
    return tail + IN


@njit
def read_dram(chip: Any, bank: Any, flits: Any, ready: Any) -> Any:
    """A bank reads; the time since which the answer can leave."""
    start = max(ready, chip.dram_free[bank, 0])
    chip.noc_held[2] += start - ready
    done = start + flits * READ_DRAM_FLIT
    chip.dram_free[bank, 0] = done
    return max(start, done - flits * NIU_FLIT) + READ_DRAM


@njit
def write_dram(chip: Any, bank: Any, flits: Any, ready: Any) -> Any:
    """A bank takes data; the time at which it acknowledges."""
    start = max(ready, chip.dram_free[bank, 1])
    chip.dram_free[bank, 1] = start + flits * WRITE_DRAM_FLIT
    taken = max(ready, start - DRAM_KEEPS)
    chip.noc_held[2] += taken - ready
    return taken + WRITE_DRAM
