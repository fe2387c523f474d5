"""Requests between tiles: what their senders knew, and the unordered accesses of two tiles.

The plain vectors of a tile have columns for all tiles (record.FAR): the owners of each tile, then
the sources of its writes by NoC, then channels of requests. Each column is an agent. An access of a
request is ordered by the column and clock of its agent; with accesses of other tiles in the plain
order. Python lets requests arrive at the end of each round (tiles.py).
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.devices import niu_request as request
from bhemu.jit.intrinsics import load_word
from bhemu.jit.subset import njit
from bhemu.tensix.state import NOC_FIELDS, NOC_REQUESTS
from bhemu.why.order import clocks, shadow
from bhemu.why.order import record as r

_TURN = 32  # instructions of a core within one turn of a loop that polls
_ALL_TAGS = 16
TAGS = 3  # of `answer`, after the kinds of requests


@njit
def export(o: Any, to: Any, who: Any) -> None:
    """Write what an owner knows to a row of a vector, as other tiles read it from OTHERS on."""
    clocks.copy(to, 0, o.clocks[who], 0, r.OTHERS + o.far[0])
    for k in range(r.SHARED):
        own = r.OTHERS + shadow.own_column(o, np.int64(k))
        clocks.reach(to, own, o.clocks[who, r.PLAIN + k])


@njit
def learn(o: Any, c: Any, known: Any) -> None:
    """Core `c` comes after everything in a row of columns of all tiles."""
    for k in range(r.SHARED):
        clock = known[shadow.own_column(o, np.int64(k))]
        if k >= r.ISSUE:
            clocks.reach(o.clocks[c], r.PLAIN + k, clock)
        elif clock > o.clocks[c, r.PLAIN + k]:
            clocks.join_moment(o, c, np.int64(k), clock, True, True)
    if clocks.raise_row(o.clocks[c, r.OTHERS :], known, 0, o.far[0]):
        clocks.changed(o, c, True)


@njit
def value_known(o: Any, index: Any) -> Any:
    """What came before a value; all that other tiles have sent here if it is too old."""
    old = o.values_known[0] - index > r.KNOWN_VALUES
    return o.value_known[r.HERE if old else index % r.KNOWN_VALUES]


@njit
def tell(o: Any, name: Any, known: Any) -> None:
    """An agent that acquires `name` later comes after everything in a row of columns."""
    held = clocks.named(o, name)
    for k in range(r.SHARED):
        clocks.reach(held, r.PLAIN + k, known[shadow.own_column(o, np.int64(k))])
    clocks.raise_row(held[r.OTHERS :], known, 0, o.far[0])


# Requests that leave


@njit
def sends(s: Any, o: Any, c: Any, row: Any) -> None:
    """Core `c` has sent a request."""
    i = o.sents[0]
    if i == NOC_REQUESTS:
        o.full[0] = 1
        return
    one, known = o.sent[i], o.sent_known[i]
    clocks.copy(one, 0, o.event[shadow.event(s, o, c, np.int64(0))], 0, r.EVENT)
    clocks.copy(one, r.S_ROW, row, 0, NOC_FIELDS)
    one[r.SENT], one[r.S_VALUE] = 1 + o.sends[0], row[request.OPERAND]
    export(o, known, c)
    o.sents[0] += 1
    o.sends[0] += 1
    if request.takes_data(row[request.CONTROL]):
        low, noc = row[request.LOCAL], row[request.NOC]
        one[r.S_VALUE] = np.int64(load_word(np.int64(s.host[0]) + (low & ~3)))
        column = r.SHARED * o.tiles[0] + r.SOURCES * o.number[0] + noc
        left = o.left[noc, _ALL_TAGS]
        clocks.raise_row(left, known[r.OTHERS :], 0, o.far[0])
        left[column] += 1
        clocks.raise_row(o.left[noc, request.transaction(row)], left, 0, o.far[0])
        clocks.copy(o.arrival, 0, one, 0, r.EVENT)
        o.arrival[r.AGENT], o.arrival[r.CLOCK] = r.OTHERS + column, left[column]
        o.arrival[r.A_LOW], o.arrival[r.A_HIGH] = low, low + request.size(row)
        clocks.copy(o.arrived, 0, known, 0, r.OTHERS)
        clocks.copy(o.arrived, r.OTHERS, left, 0, o.far[0])
        accesses(o)
    clocks.seen(o, c)  # what the core does from now on is not before the request


@njit
def accesses(o: Any) -> None:
    """A request accesses L1: o.arrival describes it, o.arrived came before it."""
    new, known = np.int64(o.events[0]), o.clocks[r.REQUEST]
    o.events[0] += 1
    one = o.event[new]
    clocks.copy(one, 0, o.arrival, 0, r.EVENT)
    o.apart[0] = one[r.HOME] != o.number[0]
    clocks.copy(known, 0, o.arrived, 0, r.OTHERS + o.far[0])
    for k in range(r.SHARED):
        known[r.PLAIN + k] = o.arrived[r.OTHERS + shadow.own_column(o, np.int64(k))]
    agent, low, high = np.int64(r.REQUEST), o.arrival[r.A_LOW], o.arrival[r.A_HIGH]
    shadow.l1(o, agent, low, high, new, np.int64(one[r.WRITE]))
    shadow.make_room(o)


# Looks


@njit
def answered(o: Any, c: Any, noc: Any, index: Any) -> None:
    """Core `c` learns from a counter of its NIU what has left, was answered, or has arrived."""
    tag, answer, left = index - niu.OUTSTANDING, o.answer[noc], o.left[noc]
    if index == niu.READ_ANSWERS:
        learn(o, c, answer[request.READ])
    elif index == niu.ATOMIC_ANSWERS:
        learn(o, c, answer[request.ATOMIC])
    elif index == niu.ACKS:
        learn(o, c, answer[request.WRITE])
    elif 0 <= tag < niu.OUTGOING - niu.OUTSTANDING:
        learn(o, c, answer[TAGS + tag])
        learn(o, c, left[tag])
    elif niu.OUTGOING <= index < niu.OUTGOING + _ALL_TAGS:
        learn(o, c, left[index - niu.OUTGOING])
    elif index >= niu.SENT_ATOMIC_ANSWERS:
        learn(o, c, o.value_known[r.HERE])
    if index == niu.ACKS or index == niu.WRITES_SENT or index == niu.WRITES_SENT + 1:
        learn(o, c, left[_ALL_TAGS])


@njit
def counter_at(address: Any) -> Any:
    """64 times the NoC and the number of the NIU's counter at an address, -1: none."""
    offset = address - mm.NOC0_BASE
    index = (offset % mm.NOC_SIZE - mm.NIU_COUNTERS) >> 2
    if mm.NOC0_BASE <= address < mm.OVERLAY_BASE and 0 <= index < 64:
        return np.int64(64 * (offset // mm.NOC_SIZE) + index)
    return np.int64(-1)


@njit
def passes(s: Any, o: Any, c: Any, word: Any) -> None:
    """Core `c` has read a word on which it branches."""
    pc, clock, last = o.look_step[c, 0, 0], o.clocks[c, c], o.passed[(o.passes[0] - 1) % r.PASSED]
    if last[0] != c or last[2] != word or last[3] != pc or clock > last[1] + _TURN:
        o.passes[0] += 1
    one = o.passed[(o.passes[0] - 1) % r.PASSED]
    one[0], one[1], one[2], one[3], one[4] = c, clock, word, pc, o.look_step[c, 0, 1]
    one[5] = clocks.now(s)
