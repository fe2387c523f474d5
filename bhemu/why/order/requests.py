"""Requests between tiles: what their senders knew, and the unordered accesses of two tiles.

The plain vectors of a tile have columns for all tiles (record.FAR): the owners of each tile, then
the sources of its writes by NoC, then channels of requests. Each column is an agent. An access of a
request is ordered by the column and clock of its agent. Python lets requests arrive at the end of
each round (tiles.py).
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.devices import niu_request as request
from bhemu.jit.intrinsics import load_word
from bhemu.jit.subset import njit
from bhemu.tensix.state import NOC_FIELDS, NOC_REQUESTS
from bhemu.why.order import clocks
from bhemu.why.order import record as r

# Columns of `passed`
CORE, CLOCK, WORD, PC, TEXT, FLOOR, UPTO, TIME = range(8)
_TURN = 32  # instructions of a core within one turn of a loop that polls
_ACCESSED, FLAG = 1, 2  # bits of far_mark
_ALL_TAGS = 16
TAGS, RECEIVED = 3, 32  # of `counted`: request kinds are 0 to 2
NOTHING, LEFT, LEFT_TAGS = -1, -2, -3


@njit
def own_column(o: Any, who: Any) -> Any:
    """The column of an owner of this tile."""
    return r.SHARED * o.number[0] + who


@njit
def export(o: Any, to: Any, who: Any) -> None:
    """Write what an owner knows to a row of columns of all tiles."""
    clocks.copy(to, 0, o.clocks[who], r.OTHERS, o.far[0])
    for k in range(r.SHARED):
        clocks.reach(to, own_column(o, np.int64(k)), o.clocks[who, r.PLAIN + k])


@njit
def learn(o: Any, c: Any, known: Any) -> None:
    """Core `c` comes after everything in a row of columns of all tiles."""
    for k in range(r.SHARED):
        clock = known[own_column(o, np.int64(k))]
        if k >= r.ISSUE:
            clocks.reach(o.clocks[c], r.PLAIN + k, clock)
        elif clock > o.clocks[c, r.PLAIN + k]:
            clocks.join_moment(o, c, np.int64(k), clock, True, True)
    if raise_far(o, o.clocks[c], r.OTHERS, known):
        clocks.learned(o, c)
        clocks.changed(o, c, True)


@njit
def raise_far(o: Any, to: Any, first: Any, known: Any) -> Any:
    """Raise the columns of all tiles, from `first` on in a row, to those of another one."""
    grew = False
    for i in range(o.far[0]):
        grew = clocks.reach(to, first + i, known[i]) or grew
    return grew


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
        clocks.reach(held, r.PLAIN + k, known[own_column(o, np.int64(k))])
    raise_far(o, held, r.OTHERS, known)


# Requests that leave


@njit
def sends(s: Any, o: Any, c: Any, row: Any) -> None:
    """Core `c` has sent a request."""
    i = o.sents[0]
    if i == NOC_REQUESTS:
        o.full[0] = 1
        return
    one, known = o.sent[i], o.sent_known[i]
    clocks.copy(one, 0, row, 0, NOC_FIELDS)
    one[r.SENT_CORE], one[r.SENT_CLOCK] = c, o.clocks[c, c]
    one[r.SENT_VALUE] = row[request.OPERAND]
    one[r.SENT_PC], one[r.SENT_WORD], one[r.SENT_TIME] = o.step[0], o.step[2], o.step[5]
    export(o, known, c)
    o.sents[0] += 1
    if request.takes_data(row[request.CONTROL]):
        low, noc = row[request.LOCAL], row[request.NOC]
        one[r.SENT_VALUE] = np.int64(load_word(np.int64(s.host[0]) + (low & ~3)))
        column = r.SHARED * o.tiles[0] + r.SOURCES * o.number[0] + noc
        left = o.left[noc, _ALL_TAGS]
        raise_far(o, left, 0, known)
        left[column] += 1
        raise_far(o, o.left[noc, request.transaction(row)], 0, left)
        new = new_event(o)
        read = o.far_event[new]
        read[r.F_COLUMN], read[r.F_CLOCK], read[r.F_HOME] = column, left[column], o.number[0]
        read[r.F_WRITE], read[r.F_LOW], read[r.F_HIGH] = 0, low, low + request.size(row)
        read[r.F_NUMBER], read[r.F_PC], read[r.F_TIME] = o.sends[0], o.step[0], o.step[5]
        remote(o, left, new)
    o.sends[0] += 1
    clocks.seen(o, c)  # what the core does from now on is not before the request


@njit
def new_event(o: Any) -> Any:
    """The number of a new access of a request; sets `full` if there are too many."""
    new = o.far_events[0]
    if new == r.FAR_EVENTS - 1:
        o.full[0] = 1
    else:
        o.far_events[0] += 1
    return np.int64(new)


# Accesses of requests


@njit
def put_previous(o: Any, to: Any, at: Any, home: Any, word: Any) -> None:
    """Note the last writer of a word, if that wrote for tile `home`."""
    to[at], to[at + 1] = 0, 0
    far, near = o.far_event[o.far_writer[word]], o.event[last_writer(o, word)]
    known = o.far_writer[word] > 0
    if known and far[r.F_TIME] >= near[r.TIME]:
        if far[r.F_HOME] == home:
            to[at], to[at + 1] = 1 + far[r.F_COLUMN], far[r.F_CLOCK]
    elif 0 <= near[r.AGENT] < r.NOC and home == o.number[0]:
        who = clocks.owner(near[r.AGENT])
        to[at], to[at + 1] = 1 + own_column(o, who), near[r.OWNER_CLOCK]


@njit
def last_writer(o: Any, word: Any) -> Any:
    """The event that wrote a word of L1, or one of its bytes, last; 0 = nobody."""
    if o.split[word] == 0:
        return np.int64(o.writer[word])
    found = np.int64(0)
    for k in range(4):
        found = max(found, np.int64(o.writer[r.BYTES + 4 * word + k]))
    return found


@njit
def remote(o: Any, known: Any, new: Any) -> None:
    """A request accesses L1; `known`: what came before it."""
    one = o.far_event[new]
    low, high, write = one[r.F_LOW], min(one[r.F_HIGH], mm.L1_SIZE), one[r.F_WRITE]
    put_previous(o, one, r.F_PREVIOUS, one[r.F_HOME], low >> 2)
    for word in range(low >> 2, (high + 3) >> 2):
        if one[r.F_HOME] != o.number[0]:
            if o.split[word]:
                for at in range(max(low, 4 * word), min(high, 4 * word + 4)):
                    _compare_near(o, known, np.int64(r.BYTES + at), at, new)
            else:
                _compare_near(o, known, np.int64(word), max(low, 4 * word), new)
        o.far_mark[word] |= np.uint8(_ACCESSED)
        _compare_far(o, known, word, low, high, one[r.F_HOME], new, np.int64(0), write)
        if write:
            o.far_writer[word] = new
        else:
            free = new % r.FAR_READERS
            for k in range(r.FAR_READERS):
                old = o.far_reader[word, k]
                if old == 0 or o.far_event[old, r.F_COLUMN] == one[r.F_COLUMN]:
                    free = np.int64(k)
            o.far_reader[word, free] = new


@njit
def _compare_near(o: Any, known: Any, cell: Any, place: Any, new: Any) -> None:
    """Compare an access of a request with the last ones of cores and units at a place."""
    for k in range(-1, r.READERS if o.far_event[new, r.F_WRITE] else 0):
        old = o.event[o.writer[cell] if k < 0 else o.reader[cell, k]]
        if 0 <= old[r.AGENT] < r.NOC:  # requests are accesses of their own here
            who = clocks.owner(old[r.AGENT])
            if old[r.OWNER_CLOCK] > known[own_column(o, who)]:
                held = o.far_known[who, old[r.VERSION] % r.FAR_VERSIONS]
                _pair(o, place, np.int64(0), new, old, held)


@njit
def local(o: Any, agent: Any, low: Any, high: Any, new: Any, write: Any) -> None:
    """A core or unit accesses bytes of a word that requests have accessed."""
    word, known = low >> 2, o.clocks[clocks.owner(agent), r.OTHERS :]
    _compare_far(o, known, word, low, high, o.number[0], np.int64(0), new, write)
    if write:
        o.far_writer[word] = 0
        o.far_mark[word] &= np.uint8(FLAG)


@njit
def _compare_far(
    o: Any, known: Any, word: Any, low: Any, high: Any, home: Any, new: Any, near: Any, write: Any
) -> None:
    """Compare an access of tile `home`, of a request or `near`, with those of others' requests.

    A write drops the readers of the word.
    """
    for k in range(-1, r.FAR_READERS if write else 0):
        old = np.int64(o.far_writer[word] if k < 0 else o.far_reader[word, k])
        one = o.far_event[old]
        first = max(low, one[r.F_LOW])
        if old and one[r.F_HOME] != home and first < min(high, one[r.F_HIGH]):
            if one[r.F_CLOCK] > known[one[r.F_COLUMN]]:
                _pair(o, first, old, new, o.event[near], known)
        if k >= 0:
            o.far_reader[word, k] = 0


@njit
def _pair(o: Any, place: Any, first: Any, second: Any, near: Any, known: Any) -> None:
    """Keep two accesses, as those of requests or as the event `near` of this tile."""
    if o.far_mark[place >> 2] & FLAG:  # only a store of a core to a flag is one
        other = o.far_event[first + second]
        if near[r.WRITE] == 0 or other[r.F_WRITE] == 0:
            return
    a = o.far_event[first, r.F_PC] if first else near[r.PUSHED]
    b = o.far_event[second, r.F_PC] if second else near[r.PUSHED]
    for i in range(o.far_pairs[0]):
        pair = o.far_pair[i]
        old = pair[r.FP_EVENT : r.FAR_PAIR]
        x = o.far_event[pair[r.FP_FIRST], r.F_PC] if pair[r.FP_FIRST] else old[r.PUSHED]
        y = o.far_event[pair[r.FP_SECOND], r.F_PC] if pair[r.FP_SECOND] else old[r.PUSHED]
        if a == x and b == y:
            return
    if o.far_pairs[0] < r.PAIRS:
        pair = o.far_pair[o.far_pairs[0]]
        pair[r.FP_PLACE], pair[r.FP_FIRST], pair[r.FP_SECOND] = place, first, second
        clocks.copy(pair, r.FP_EVENT, near, 0, r.EVENT)
        clocks.copy(o.far_pair_known[o.far_pairs[0]], 0, known, 0, o.far[0])
        o.far_pairs[0] += 1


# Looks


@njit
def answered(o: Any, c: Any, noc: Any, index: Any) -> None:
    """Core `c` learns from a counter of its NIU what has left, was answered, or has arrived."""
    kind = counted(index)
    if kind == RECEIVED:
        learn(o, c, o.value_known[r.HERE])
    elif kind >= 0:
        learn(o, c, o.answer[noc, kind])
    if kind == LEFT or kind == request.WRITE:
        learn(o, c, o.left[noc, _ALL_TAGS])
    elif TAGS <= kind < RECEIVED:
        learn(o, c, o.left[noc, kind - TAGS])
    elif kind <= LEFT_TAGS:
        learn(o, c, o.left[noc, LEFT_TAGS - kind])


@njit
def counter_at(address: Any) -> Any:
    """64 times the NoC and the number of the NIU's counter at an address, -1: none."""
    offset = address - mm.NOC0_BASE
    index = (offset % mm.NOC_SIZE - mm.NIU_COUNTERS) >> 2
    if mm.NOC0_BASE <= address < mm.OVERLAY_BASE and 0 <= index < 64:
        return np.int64(64 * (offset // mm.NOC_SIZE) + index)
    return np.int64(-1)


@njit
def counted(index: Any) -> Any:
    """What a counter of an NIU counts."""
    if index == niu.READ_ANSWERS:
        return np.int64(request.READ)
    if index == niu.ATOMIC_ANSWERS:
        return np.int64(request.ATOMIC)
    if index == niu.ACKS:
        return np.int64(request.WRITE)
    if index == niu.WRITES_SENT or index == niu.WRITES_SENT + 1:
        return np.int64(LEFT)
    if niu.OUTSTANDING <= index < niu.OUTGOING:
        return np.int64(TAGS + index - niu.OUTSTANDING)
    if niu.OUTGOING <= index < niu.OUTGOING + 16:
        return np.int64(LEFT_TAGS - (index - niu.OUTGOING))
    return np.int64(RECEIVED if index >= niu.SENT_ATOMIC_ANSWERS else NOTHING)


@njit
def passes(s: Any, o: Any, c: Any, word: Any, floor: Any, upto: Any) -> None:
    """Core `c` has read a word and gone on, because of its values of numbers floor + 1 to upto."""
    n = o.passes[0]
    if n:
        last = o.passed[(n - 1) % r.PASSED]
        same = last[CORE] == c and last[WORD] == word and last[PC] == o.look_step[c, 0, 0]
        if same and last[FLOOR] == last[UPTO] and o.clocks[c, c] <= last[CLOCK] + _TURN:
            n -= 1  # that read did not let the core go on
    one = o.passed[n % r.PASSED]
    one[CORE], one[CLOCK], one[WORD] = c, o.clocks[c, c], word
    one[PC], one[TEXT] = o.look_step[c, 0, 0], o.look_step[c, 0, 1]
    one[FLOOR], one[UPTO], one[TIME] = floor, upto, clocks.now(s)
    o.passes[0] = n + 1


@njit
def accesses(o: Any, who: Any, pc: Any) -> None:
    """Note the first access of an owner to L1 at each pc."""
    i = (pc * 5 + (who << 7)) % r.FIRST_ACCESSES
    for _ in range(8):
        one = o.first_access[i]
        if one[0] == who + 1 and one[1] == pc:
            return
        if one[0] == 0:
            one[0], one[1], one[2] = who + 1, pc, o.clocks[who, who]
            return
        i = (i + 1) % r.FIRST_ACCESSES
