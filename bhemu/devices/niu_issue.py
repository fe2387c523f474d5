"""The store to NOC_CMD_CTRL: a request is checked whole, takes its data and goes under way.

It is delivered at the end of the round (noc/delivery.py). Source of the counters: NIU Counters,
Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu_check, noc_map
from bhemu.devices import niu_request as request
from bhemu.devices import niu_rules as rules
from bhemu.jit.address import move
from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE, noted, refuse
from bhemu.tensix.state import CORES, NOC_DATA, NOC_REQUESTS, OFFSET
from bhemu.tensix.stops import LOOK

# Counters, by index from 0x200 (NIU_MST_*, from 48 on NIU_SLV_*)
ATOMIC_ANSWERS, ACKS, READ_ANSWERS, READ_WORDS, ACCEPTED, READS_SENT = range(6)
ATOMICS_SENT, WRITE_WORDS, WRITES_SENT, WRITES_STARTED = 6, 8, 10, 12  # then the posted ones
READS_STARTED, ATOMICS_STARTED, OUTSTANDING, OUTGOING = 14, 15, 16, 32
SENT_ATOMIC_ANSWERS, SENT_ACKS, SENT_READ_ANSWERS, SENT_READ_WORDS = range(48, 52)
REQUESTS, READS, ATOMICS, RECEIVED_WORDS, WRITES, WRITES_BEGUN = 52, 53, 54, 56, 58, 60
_FLIT = 64
_DATA = OFFSET["noc_data"]


@njit
def add(s: Any, noc: Any, counter: Any, n: Any) -> None:
    """Change a counter of 32 bits."""
    total = np.int64(s.niu_counter[noc, counter]) + n
    s.niu_counter[noc, counter] = np.uint32(total & 0xFFFFFFFF)


@njit
def add_outstanding(s: Any, noc: Any, row: Any, n: Any) -> None:
    """Change the count of outstanding requests of the row's id, 8 bits."""
    i = request.transaction(row)
    before = np.int64(s.niu_counter[noc, OUTSTANDING + i])
    after = (before + n) & 0xFF
    s.niu_counter[noc, OUTSTANDING + i] = np.uint32(after)
    if before and after == 0:
        s.niu_zeroed[noc] = np.uint32(np.int64(s.niu_zeroed[noc]) | 1 << i)


@njit
def flits(n: Any) -> Any:
    """Data flits of `n` bytes."""
    return (n + _FLIT - 1) // _FLIT


@njit
def _count(s: Any, row: Any) -> None:
    """What the own NIU counts as a request leaves."""
    noc, control = row[request.NOC], row[request.CONTROL]
    answered = request.is_answered(control)
    posted = np.int64(0 if answered else 1)
    add(s, noc, ACCEPTED, np.int64(1))
    if answered:
        add_outstanding(s, noc, row, np.int64(1))
    if request.kind(control) == request.READ:
        add(s, noc, READS_STARTED, np.int64(1))
        add(s, noc, READS_SENT, np.int64(1))
    elif request.kind(control) == request.ATOMIC:
        if answered:
            add(s, noc, ATOMICS_STARTED, np.int64(1))
        add(s, noc, ATOMICS_SENT + posted, np.int64(1))
    else:
        add(s, noc, WRITES_STARTED + posted, np.int64(1))
        add(s, noc, WRITES_SENT + posted, np.int64(1))
        if request.takes_data(control):
            add(s, noc, WRITE_WORDS + posted, flits(request.size(row)))


@njit
def _link(s: Any, row: Any) -> None:
    """Open or close the linked transaction of the NIU."""
    linked = s.niu_linked[row[request.NOC]]
    linked[0] = 0
    if row[request.CONTROL] & request.LINKED:
        linked[0], linked[1] = 1, row[request.GIVEN]
        linked[2], linked[3] = row[request.CORE], row[request.PC]


@njit
def _note(s: Any, row: Any) -> None:
    """Where the golden model's way is taken, and silicon has another."""
    control, given = row[request.CONTROL], row[request.GIVEN]
    if request.kind(control) == request.ATOMIC and not request.is_answered(control):
        noted(s, rules.POSTED_ATOMIC)
    at = row[request.RECTANGLE]
    if not request.is_multicast(control):
        at = noc_map.place(row[request.ENDPOINT])
    else:
        at = (at & 0xFFF) << 12 | at >> 12
    if at != given & (0xFFFFFF if request.is_multicast(control) else 0xFFF):
        noted(s, rules.WRITE_BACK, given=given, initiator=row[request.INITIATOR])


@njit
def _take(s: Any, row: Any) -> None:
    """Copy the data of a write out of the own L1."""
    n = request.size(row)
    at = row[request.LOCAL]
    if request.has_enables(row[request.CONTROL]) and not niu_check.is_register(row):
        at &= ~15
    base = np.int64(s.host[0])
    move(base + _DATA + row[request.DATA], base + at, n)
    s.noc_data_used[0] += (n + 15) & ~15


@njit
def _end_turn(s: Any, row: Any) -> None:
    """A core whose multicast comes back to its tile goes on when that has arrived.

    Kernels send a flag so and clear their own copy for what other tiles send next. On silicon the
    way back is shorter than the code between, which a whole turn is not.
    """
    both = request.MULTICAST | request.SELF
    if row[request.CONTROL] & both == both and row[request.CORE] < CORES:
        s.turn_yield[0] = 1
        s.attention[0] |= LOOK


@njit
def _alone(s: Any, noc: Any, i: Any) -> Any:
    """Refuse a transfer of a tile that is on no chip."""
    registers = s.niu_command[noc, i]
    return np.int64(
        refuse(
            s,
            rules.TRANSFER,
            address=mm.NOC0_BASE + mm.NOC_SIZE * noc + mm.NOC_CMD_BUF_OFFSET * i + mm.NOC_CMD_CTRL,
            control=np.int64(registers[mm.NOC_CTRL >> 2]),
            target=np.int64(registers[mm.NOC_TARG_ADDR_LO >> 2]),
            answer=np.int64(registers[mm.NOC_RET_ADDR_LO >> 2]),
        )
    )


@njit
def issue(s: Any, c: Any, noc: Any, i: Any) -> Any:
    """Send the request of initiator `i`: DONE, a rule, or the condition to wait for."""
    if s.noc_map[0] == 0:
        return _alone(s, noc, i)
    if s.noc_requests[0] >= NOC_REQUESTS:
        return np.int64(rules.FULL)
    row = s.noc_request[s.noc_requests[0]]
    request.decode(s, c, noc, i, row)
    status = niu_check.check(s, row)
    if status != DONE:
        return status
    if request.takes_data(row[request.CONTROL]):
        if s.noc_data_used[0] + request.size(row) > NOC_DATA:
            return np.int64(rules.FULL)
        _take(s, row)
    _note(s, row)
    _count(s, row)
    _link(s, row)
    _end_turn(s, row)
    s.noc_issued[0] += 1
    s.noc_requests[0] += 1
    return np.int64(DONE)
