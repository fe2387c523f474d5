"""NoC requests in time: each is performed in the cycle in which it arrives.

In drawn times it arrives later than in modelled ones, by what is drawn for it, in any order that
its virtual channel allows.

The tiles of a chip run alone up to the next cycle in which something arrives, and for at most
times.WINDOW cycles, in which nothing that they send can arrive: so no tile sees what comes from a
later cycle than its own. A request passes the stages below; DUE of its row holds the cycle of the
next one and which it is.
"""

from typing import Any

import numpy as np

from bhemu.devices import niu, noc_map
from bhemu.devices import niu_request as request
from bhemu.jit.intrinsics import move
from bhemu.jit.subset import njit
from bhemu.noc import delivery, times
from bhemu.noc.grid import TILES
from bhemu.noc.record import NOC_LOG, NOC_SPENT, NOC_WAITS, tile_of
from bhemu.tensix import in_flight, state
from bhemu.tensix.in_flight import NEVER
from bhemu.tensix.rules import DONE
from bhemu.tensix.state import DRAWN, NOC_DATA, NOC_FIELDS, OFFSET

# ISSUED: the core has stored to NOC_CMD_CTRL. ARRIVES: at its target, where a write or an atomic is
# performed. READS: the answer to a read leaves, with what is there then. ANSWERS: that, or an
# acknowledgement, is back: the own L1 and the counters change.
ISSUED, ARRIVES, READS, ANSWERS = range(4)
MULTICAST = 1 << 8  # of what a request asks for, beside its kind and the kind of its target
_DATA = OFFSET["noc_data"]
_AGAIN = 16  # cycles after which a register that takes nothing is asked again


@njit
def _due(parts: Any, stage: Any) -> Any:
    return times.cycle(parts) * times.STAGES + stage


@njit
def next_event(s: Any) -> Any:
    """(DUE, row) of the first thing that happens to a request of a tile; NEVER: there is none."""
    first, at = np.int64(NEVER), np.int64(0)
    for i in range(s.noc_requests[0]):
        if s.noc_request[i, request.DUE] < first:
            first, at = s.noc_request[i, request.DUE], np.int64(i)
    return first, at


@njit
def look(chip: Any) -> Any:
    """The first cycle in which something happens to any request, NEVER without one."""
    first = np.int64(NEVER)
    for t in range(chip.tiles[0]):
        chip.event[t] = NEVER
        if chip.tile[t] != 0:
            chip.event[t] = next_event(tile_of(chip, t))[0]
            first = min(first, chip.event[t] // times.STAGES)
    return first


@njit
def _hops(chip: Any, t: Any, row: Any, after: Any) -> Any:
    """(links to the nearest receiver of a request beyond `after` links, to the farthest, where).

    -1, -1 and the own place where there is none.
    """
    noc = row[request.NOC]
    own = delivery.place_of(chip, t, noc)
    if not request.is_multicast(row[request.CONTROL]):
        place = noc_map.place(row[request.ENDPOINT])
        n = times.hops(own, place)
        return n, n, place
    near, far, where = np.int64(-1), np.int64(-1), own
    for u in range(TILES):
        if delivery.receives(chip, t, u, row):
            place = delivery.place_of(chip, u, noc)
            n = times.hops(own, place)
            if n > after and (near < 0 or n < near):
                near = n
            if n > far:
                far, where = n, place
    return near, far, where


@njit
def _farthest(chip: Any, t: Any, row: Any) -> Any:
    """The place of the target; of a multicast that of the receiver with the longest way."""
    return _hops(chip, t, row, np.int64(-1))[2]


@njit
def _flits(row: Any) -> Any:
    return niu.flits(request.size(row)) + 1


@njit
def _charge(chip: Any, t: Any, stage: Any, row: Any, now: Any) -> None:
    """For a profile: what the request does from now to its next stage, and what it waits for."""
    if chip.noc_counts[0] != 1:
        return
    what = request.kind(row[request.CONTROL]) | noc_map.kind(row[request.ENDPOINT]) << 2
    if request.is_multicast(row[request.CONTROL]):
        what = request.kind(row[request.CONTROL]) | noc_map.TENSIX << 2 | MULTICAST
    key = t << 8 | row[request.CORE]
    if chip.noc_logged[0] < NOC_LOG:  # the log holds the first ones
        log = chip.noc_log[chip.noc_logged[0]]
        log[0], log[1], log[2], log[3] = key, row[request.SEQUENCE], stage, now
        log[4], log[5], log[6] = row[request.DUE] // times.STAGES, row[request.PC], what
        log[7], log[8], log[9] = row[request.NOC], row[request.ENDPOINT], request.size(row)
    chip.noc_logged[0] += 1
    at = (key * 7919 + row[request.PC] * 31 + what) & (NOC_SPENT - 1)
    for _ in range(NOC_SPENT // 4):
        found = chip.noc_spent[at]
        if found[0] == 0:
            found[0], found[1], found[2] = key + 1, row[request.PC], what
        if found[0] == key + 1 and found[1] == row[request.PC] and found[2] == what:
            found[4] += max(row[request.DUE] // times.STAGES - now, 0)
            for i in range(NOC_WAITS):
                found[5 + i] += chip.noc_held[i] // times.PARTS
            if stage == ISSUED and row[request.DUE] % times.STAGES == ARRIVES:
                found[3] += 1
            return
        at = (at + 1) & (NOC_SPENT - 1)
    chip.noc_counts[0] = 2


@njit
def _waits(chip: Any, noc: Any, place: Any, row: Any, now: Any) -> Any:
    """Whether an NIU is taken: the packet comes back when it is free."""
    free = times.free_at(chip, noc, place) // times.PARTS
    if free <= now:
        return False
    chip.noc_held[0] = (free - now) * times.PARTS
    row[request.DUE] = free * times.STAGES + row[request.DUE] % times.STAGES
    return True


@njit
def _finds_path(chip: Any, t: Any, s: Any, at: Any, now: Any) -> Any:
    """Whether a multicast must wait for its path; then it comes back. Others may leave meanwhile.

    Multicasts leave one after the other. One after a linked one has the path of that.
    """
    row = s.noc_request[at]
    noc = row[request.NOC]
    if delivery.turn(row[request.RECTANGLE])[0] >= 0:
        return False
    for i in range(at):
        earlier = s.noc_request[i]
        if request.is_multicast(earlier[request.CONTROL]) and earlier[request.NOC] == noc:
            if earlier[request.DUE] % times.STAGES == ISSUED and s.noc_source[i] <= niu.TO_LEAVE:
                row[request.DUE] = (earlier[request.DUE] // times.STAGES + 1) * times.STAGES
                return True
    own = delivery.place_of(chip, t, noc)
    last = chip.cast[noc, times.router(own)]
    if last & 1 == 0 and last >> 1 > now:
        row[request.DUE] = (last >> 1) * times.STAGES
        return True
    near, far, where = _hops(chip, t, row, np.int64(-1))
    row[request.RECTANGLE] = delivery.turn_of(row[request.RECTANGLE], near, np.int64(0))
    if last & 1 or far < 0:
        return False
    row[request.DUE] = (now + times.path(own, where, far) // times.PARTS) * times.STAGES
    return True


@njit
def _leaves(chip: Any, t: Any, s: Any, at: Any, now: Any) -> None:
    """The request leaves its NIU: when does it arrive? A write has left when its last flit has."""
    row = s.noc_request[at]
    drawn = s.timed[0] == DRAWN
    if drawn and s.noc_source[at]:  # the tile takes the bytes in that cycle
        row[request.DUE] = (max(s.noc_source[at], now) + 1) * times.STAGES
        return
    if s.noc_source[at] > niu.TO_LEAVE:  # DUE of its arrival
        row[request.DUE] = s.noc_source[at]
        niu.take_source(s, at)
        in_flight.ask_cores(s)
        return
    noc, kind = row[request.NOC], request.kind(row[request.CONTROL])
    own, many = delivery.place_of(chip, t, noc), request.is_multicast(row[request.CONTROL])
    if (many and _finds_path(chip, t, s, at, now)) or _waits(chip, noc, own, row, now):
        return
    flits = np.int64(1) if kind == request.READ else _flits(row)
    near, far, target = _hops(chip, t, row, np.int64(-1))
    arrives = times.send(chip, noc, own, target, flits, now * times.PARTS)
    arrives -= (far - near) * times.HOP  # the nearest receivers first
    if many:
        linked = np.int64(1 if row[request.CONTROL] & request.LINKED else 0)
        left = times.cycle(times.free_at(chip, noc, own))
        chip.cast[noc, times.router(own)] = left << 1 | linked
    if drawn:
        arrives += delivery.request_late(s, at, np.int64(delivery.ARRIVES)) * times.PARTS
    row[request.DUE] = _due(arrives, np.int64(ARRIVES))
    if s.noc_source[at]:
        s.noc_source[at] = row[request.DUE]
        row[request.DUE] = _due(times.free_at(chip, noc, own) + times.OUT, np.int64(ISSUED))


@njit
def _held_back(s: Any, at: Any) -> Any:
    """In drawn times: whether a request waits for an earlier one whose order it keeps."""
    row = s.noc_request[at]
    for i in range(at):
        earlier = s.noc_request[i]
        if earlier[request.DUE] % times.STAGES != ANSWERS and delivery.in_order(earlier, row):
            row[request.DUE] = (earlier[request.DUE] // times.STAGES + 1) * times.STAGES + ARRIVES
            return True
    return False


@njit
def _served(chip: Any, row: Any, now: Any) -> Any:
    """Since when the answer to a request that has arrived can leave."""
    kind, where = request.kind(row[request.CONTROL]), noc_map.kind(row[request.ENDPOINT])
    ready, bank = now * times.PARTS, np.int64(noc_map.index(row[request.ENDPOINT]))
    if where == noc_map.DRAM and not request.is_multicast(row[request.CONTROL]):
        flits = _flits(row) - 1
        if kind == request.READ:
            return times.read_dram(chip, bank, flits, ready)
        return times.write_dram(chip, bank, flits, ready)
    if kind != request.WRITE:
        ready += times.READ_L1 if where == noc_map.TENSIX else times.OTHER
    return ready


@njit
def _answer(chip: Any, t: Any, row: Any, ready: Any) -> None:
    """The answer leaves: when is it back?"""
    noc = row[request.NOC]
    read = request.kind(row[request.CONTROL]) == request.READ
    flits = _flits(row) if read else np.int64(1)
    place = _farthest(chip, t, row)
    back = times.send(chip, noc, place, delivery.place_of(chip, t, noc), flits, ready)
    row[request.DUE] = _due(back, np.int64(ANSWERS))


@njit
def _pack(s: Any) -> None:
    """Move the data of the requests together, in the order in which they stand."""
    base, used, seen = np.int64(s.host[0]) + _DATA, np.int64(0), np.int64(-1)
    while True:
        first, at = np.int64(NOC_DATA), np.int64(-1)
        for i in range(s.noc_requests[0]):
            row = s.noc_request[i]
            stage, control = row[request.DUE] % times.STAGES, row[request.CONTROL]
            holds = stage == ANSWERS and request.kind(control) != request.WRITE
            if request.takes_data(control):  # a write has its bytes until it arrives
                holds = stage != ANSWERS
            if holds and seen < row[request.DATA] < first:
                first, at = row[request.DATA], np.int64(i)
        if at < 0:
            break
        row, seen = s.noc_request[at], first
        n = request.size(row)
        move(base + used, base + first, n)
        row[request.DATA] = used
        used += (n + 15) & ~15
    s.noc_data_used[0] = used


@njit
def _drop(s: Any, at: Any) -> None:
    """A request is over: the rows after it move up."""
    last = s.noc_requests[0] - 1
    for i in range(at, last):
        for k in range(NOC_FIELDS):
            s.noc_request[i, k] = s.noc_request[i + 1, k]
        s.noc_source[i] = s.noc_source[i + 1]
    s.noc_requests[0] = last
    if last == 0:
        s.noc_data_used[0] = 0
    elif s.noc_data_used[0] > NOC_DATA // 2:
        _pack(s)


@njit
def _perform(chip: Any, t: Any, s: Any, row: Any) -> Any:
    """Perform the request at its target; what it reads is kept until the answer is back."""
    control, n = row[request.CONTROL], request.size(row)
    if request.kind(control) == request.WRITE or not request.is_answered(control):
        return delivery.perform_request(chip, t, s, row)
    part = (n + 15) & ~15
    if s.noc_data_used[0] + 2 * part > NOC_DATA:
        _pack(s)
        if s.noc_data_used[0] + 2 * part > NOC_DATA:
            return np.int64(delivery.STAYS)
    own = np.int64(s.host[0])
    local, kept = own + row[request.LOCAL], own + _DATA + s.noc_data_used[0]
    move(kept, local, n)
    status = delivery.perform_request(chip, t, s, row)
    if status == DONE:
        move(kept + part, local, n)
        move(local, kept, n)
        move(kept, kept + part, n)
        row[request.DATA] = s.noc_data_used[0]
        s.noc_data_used[0] += part
    return status


@njit
def _goes_on(chip: Any, t: Any, row: Any, now: Any) -> Any:
    """Whether a multicast that has reached some tiles goes on to others, which are farther away.

    `chip.receivers`: of all tiles that it has reached.
    """
    turn, reached = delivery.turn(row[request.RECTANGLE])
    chip.receivers[0] += reached
    near = _hops(chip, t, row, turn)[0]
    if near < 0:
        return False
    later = times.cycle(near * times.HOP) - times.cycle(turn * times.HOP)
    row[request.RECTANGLE] = delivery.turn_of(row[request.RECTANGLE], near, chip.receivers[0])
    row[request.DUE] = (now + later) * times.STAGES + ARRIVES
    return True


@njit
def _performs(chip: Any, t: Any, s: Any, at: Any, now: Any) -> Any:
    """A request is performed at its target; its answer leaves. DONE, MAKE, REFUSED, STOPPED."""
    row = s.noc_request[at]
    status = _perform(chip, t, s, row)
    if status == delivery.STAYS:
        row[request.DUE] += _AGAIN * times.STAGES
        return np.int64(DONE)
    if status != DONE:
        chip.refused[0], chip.refused[1] = t, at
        return status
    if request.is_multicast(row[request.CONTROL]) and _goes_on(chip, t, row, now):
        return np.int64(DONE)
    chip.delivered[0] += 1
    delivery.wake(chip, t, s)
    if request.kind(row[request.CONTROL]) == request.READ:
        _answer(chip, t, row, now * times.PARTS)
    elif request.is_answered(row[request.CONTROL]):
        row[request.OPERAND] = chip.receivers[0]
        _answer(chip, t, row, _served(chip, row, now))
    return np.int64(DONE)


@njit
def _event(chip: Any, t: Any, s: Any, at: Any) -> Any:
    """What is due happens to a request: DONE, MAKE, REFUSED, STOPPED."""
    row = s.noc_request[at]
    now, stage = row[request.DUE] // times.STAGES, row[request.DUE] % times.STAGES
    read = request.kind(row[request.CONTROL]) == request.READ
    status = np.int64(DONE)
    chip.noc_held[:NOC_WAITS] = 0
    if stage == ISSUED:
        _leaves(chip, t, s, at, now if now > 0 else chip.clock[0])
    elif stage == ARRIVES and s.timed[0] == DRAWN and _held_back(s, at):
        return status
    elif stage == ARRIVES and read:
        row[request.DUE] = _due(_served(chip, row, now), np.int64(READS))
    elif stage == ANSWERS:
        # The answer is back at the tile that has sent the request.
        control, n = row[request.CONTROL], request.size(row)
        if request.kind(control) != request.WRITE:
            own = np.int64(s.host[0])
            move(own + row[request.LOCAL], own + _DATA + row[request.DATA], n)
            state.written(s, row[request.LOCAL], n)
            delivery.count_answers(s, row, np.int64(1))
        else:
            delivery.count_answers(s, row, row[request.OPERAND])
        delivery.wake(chip, t, s)
        _drop(s, at)
        return status
    elif not read or not _waits(chip, row[request.NOC], _farthest(chip, t, row), row, now):
        status = _performs(chip, t, s, at, now)
    if status == DONE:
        _charge(chip, t, stage, row, now)
    over = row[request.DUE] == now * times.STAGES + ARRIVES  # it neither waits nor goes on
    if status == DONE and over and not request.is_answered(row[request.CONTROL]):
        _drop(s, at)
    return status


@njit
def deliver(chip: Any) -> Any:
    """All that is due by now happens, in the order of time: 0, MAKE, REFUSED, STOPPED, WATCHED."""
    while True:
        t = np.int64(-1)  # of those at the same time each tile has its turn
        for u in range(chip.event_last[0] + 1, chip.tiles[0]):
            if t < 0 or chip.event[u] < chip.event[t]:
                t = np.int64(u)
        for u in range(min(chip.event_last[0] + 1, chip.tiles[0])):
            if t < 0 or chip.event[u] < chip.event[t]:
                t = np.int64(u)
        if chip.event[t] // times.STAGES > chip.clock[0]:
            return np.int64(0)
        s = tile_of(chip, t)
        status = _event(chip, t, s, next_event(s)[1])
        if status != DONE:
            return status
        chip.event[t], chip.event_last[0] = next_event(s)[0], t
        if chip.dram_hit[0] != 0:
            return np.int64(delivery.WATCHED)


@njit
def open_window(chip: Any) -> None:
    """How far the tiles run: to what happens next, or as far as nothing that they send arrives."""
    end, awake = look(chip), False
    for t in range(chip.tiles[0]):
        awake = awake or chip.awake[t] != 0
    if awake or end == NEVER:
        end = min(end, chip.clock[0] + times.WINDOW)
    chip.window_end[0] = max(end, chip.clock[0] + 1)
    for t in range(chip.tiles[0]):
        if chip.due[t]:
            tile_of(chip, t).window_end[0] = chip.window_end[0]


@njit
def close_window(chip: Any) -> Any:
    """The clock at the end of the window; -1 where nothing is left that could go on."""
    awake = look(chip) != NEVER
    for t in range(chip.tiles[0]):
        awake = awake or chip.awake[t] != 0
    return chip.window_end[0] if awake else np.int64(-1)
