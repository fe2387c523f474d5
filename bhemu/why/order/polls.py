"""Looks of cores at what others change: polled words of L1, counters of NIUs, values
that requests bring.

A count proves only what the branch after the load needs: the first value with which the branch goes
the same way, among the values stored since the last one that the reader knows of. To find it, the
instructions from the load to the branch are executed again with each of these values.

The plain order has columns for all tiles (record.COLUMNS): the owners of each tile, then the
sources of its writes by NoC, then channels of requests. Each column is an agent. An access of a
request is ordered by the column and clock of its agent; with accesses of other tiles in the plain
order. Python lets requests arrive at the end of each round (tiles.py).
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.devices import niu_request as request
from bhemu.jit.intrinsics import call_access, load_word
from bhemu.jit.subset import njit
from bhemu.riscv import formats, semantics
from bhemu.riscv.isa import rv32i
from bhemu.tensix.state import CORES, NOC_FIELDS, NOC_REQUESTS
from bhemu.why import order as r
from bhemu.why.order import clocks, shadow
from bhemu.why.order.words import SITE

_BRANCH = formats.Branch.code()
_REGISTER, _IMMEDIATE = formats.Register.code(), formats.RegisterImmediate.code()
KNOWN, POLLS, ONE_OF_TWO, SPINS = 1, 2, 4, 8  # of a site
DATA = 16  # no branch has looked at what the load has brought
_STORED, COUNTER = 1, 2  # marks
_REPEATS = 3  # loads of one place in a row that poll it, if a branch looks at them
AT_DATA = -2  # as a slot: the word has none
COUNTER_LOOK = -3  # as a slot: minus that, 64 times the NoC and the number of its counter
_ALL = -2  # what a look proves, beside the number of a store, -1 = none
_OTHERS = (*(cls.match & 0x7F for cls in (rv32i.LUI, rv32i.AUIPC, rv32i.FENCE)), formats.Csr.code())
# Columns of `look`: instructions since the load, -1: none; slot, word of the load, first bit, held,
# word of L1 that has no slot. Of `value`: value, -1 = a part; core, clock; of a request its column,
# clock, 1 + number of the request, that of value_known
_TURN = 32  # instructions of a core within one turn of a loop that polls
_ALL_TAGS = 16
# Kinds of requests, and which counter counts their answers
ANSWERS = (
    *((request.ATOMIC, niu.ATOMIC_ANSWERS), (request.WRITE, niu.ACKS)),
    (request.READ, niu.READ_ANSWERS),
)
_COUNTERS = tuple(counter for _, counter in ANSWERS)
TAGS = 3  # of `answer`, after the kinds of requests


@njit
def site(s: Any, o: Any, pc: Any) -> Any:
    """What the code after the load at `pc` does with the loaded value."""
    if o.site[pc >> 2] == 0:
        call_access(o.ask[0], s, np.int64(SITE), np.int64(pc), np.int64(0), np.int64(0))
    return np.int64(o.site[pc >> 2])


@njit
def is_poll(s: Any, o: Any, c: Any, pc: Any, address: Any) -> Any:
    """Whether a load reads one place of L1 until it changes."""
    kind, word = site(s, o, pc), address >> 2
    last = o.site_last[c, (pc >> 2) % r.SITES]
    if last[0] != pc or last[1] != address:
        last[0], last[1], last[2] = pc, address, 0
    last[2] += 1
    counts = kind & ONE_OF_TWO and o.marks[word] & _STORED
    polls = kind & POLLS or counts or (last[2] > _REPEATS and kind & DATA == 0)
    if not polls and kind & ONE_OF_TWO:
        o.marks[word] |= np.uint8(COUNTER)
    return polls


@njit
def slot_of(o: Any, word: Any) -> Any:
    """The slot of a polled word; a new slot gets the values that cores have stored there so far."""
    if o.slot[word]:
        return np.int64(o.slot[word]) - 1
    if o.slots[0] == r.SLOTS:  # what orders cores would not be known
        o.full[0] = 1
        return np.int64(-1)
    slot = o.slots[0]
    o.slots[0] += 1
    o.slot[word], o.slot_word[slot] = slot + 1, word
    first = max(o.logged[0] - r.LOG, 0)
    for i in range(first, o.logged[0]):
        entry = o.log[i % r.LOG]
        if entry[0] == word:
            _value(o, slot, entry[1], entry[2], entry[3])
    return slot


@njit
def _value(o: Any, slot: Any, value: Any, core: Any, clock: Any) -> None:
    i = o.values[slot] % r.VALUES
    o.value[slot, i, 0], o.value[slot, i, 1], o.value[slot, i, 2] = value, core, clock
    o.value[slot, i, 3] = 0
    o.values[slot] += 1


@njit
def stored(s: Any, o: Any, c: Any, address: Any, size: Any, value: Any) -> None:
    """Core `c` has stored to L1; a store of less than a word leaves no known value."""
    word, clock = address >> 2, o.clocks[c, c]
    value = value & 0xFFFFFFFF if size == 4 and address & 3 == 0 else np.int64(-1)
    entry = o.log[o.logged[0] % r.LOG]
    entry[0], entry[1], entry[2], entry[3] = word, value, c, clock
    entry[4], entry[5] = o.step[0], o.step[5]
    o.logged[0] += 1
    o.marks[word] |= np.uint8(_STORED)
    if o.slot[word]:
        _value(o, np.int64(o.slot[word]) - 1, value, c, clock)
        clocks.release(o, c, np.int64(clocks.POLLED | word))


@njit
def begins(s: Any, o: Any, c: Any, pc: Any, word: Any, address: Any, slot: Any) -> None:
    """Core `c` executes a load next whose value is followed; slot: or what stands for one."""
    look = o.look[c]
    if look[0] >= 0:  # a look whose value has decided nothing so far
        proves_all(o, c)
    look[0], look[1], look[2], look[5] = 0, slot, word, address >> 2
    look[3], look[4] = 8 * (address & 3), 1 << (word >> 7 & 31) & ~1
    clocks.copy(o.look_regs[c], 0, s.regs[c], 0, 32)
    o.look_step[c, 0, 0], o.look_step[c, 0, 1] = pc, word


@njit
def leaves_poll(s: Any, o: Any, c: Any, pc: Any, word: Any) -> None:
    """A core has executed an instruction after a load whose value is followed."""
    look, opcode = o.look[c], word & 0x7F
    if look[0] < 0:
        return
    look[0] += 1
    o.look_step[c, look[0], 0], o.look_step[c, look[0], 1] = pc, word
    rs1, rs2, rd = word >> 15 & 31, word >> 20 & 31, word >> 7 & 31
    uses = (1 << rs1 | (1 << rs2 if opcode == _REGISTER or opcode == _BRANCH else 0)) & look[4]
    computes = opcode == _REGISTER or opcode == _IMMEDIATE
    if word & 3 != 3 or not (computes or opcode == _BRANCH or opcode in _OTHERS):
        proves_all(o, c)
    elif opcode == _BRANCH:
        if uses:
            target = np.int64(s.pc[c])
            if look[1] == AT_DATA:
                passes(s, o, c, look[5], np.int64(-1))
                look[0] = -1
                return
            if look[1] <= COUNTER_LOOK:  # does it go this way only if no answer is missing?
                noc, index = (COUNTER_LOOK - look[1]) >> 6, (COUNTER_LOOK - look[1]) & 63
                counted, less = index in _COUNTERS, np.int64(1)
                if counted:
                    less = np.int64(s.niu_counter[noc, index]) - 1 & 0xFFFFFFFF
                counted = counted or niu.OUTSTANDING <= index < niu.OUTGOING + _ALL_TAGS
                look[0] = -1 if counted and _goes(s, o, c, less) == target else look[0]
                proves_all(o, c)
                return
            plain = _least(s, o, c, target, True)
            if look[1] >= 0:
                passes(s, o, c, look[5], o.values[look[1]] - 1 if plain == _ALL else plain)
            _proves(o, c, plain, _least(s, o, c, target, False))
    elif computes and uses:
        look[4] |= 1 << rd & ~1
    else:
        look[4] &= ~(1 << rd)
    if look[0] >= 0 and (look[4] == 0 or look[0] >= r.LOOK):
        proves_all(o, c)


@njit
def _goes(s: Any, o: Any, c: Any, value: Any) -> Any:
    """The pc after the branch if the load had given `value`."""
    n, word = o.look[c, 0], o.look[c, 2]
    clocks.copy(o.kept_regs, 0, s.regs[c], 0, 32)
    clocks.copy(s.regs[c], 0, o.look_regs[c], 0, 32)
    if word >> 7 & 31:
        s.regs[c, word >> 7 & 31] = np.uint32(semantics.loaded(word, value >> o.look[c, 3]))
    target = np.int64(0)
    for i in range(1, n + 1):
        pc, one = o.look_step[c, i, 0], o.look_step[c, i, 1]
        zero = np.int64(0)
        target = semantics.step(s, c, pc, one, zero, zero, zero, np.uint8(0))
    clocks.copy(s.regs[c], 0, o.kept_regs, 0, 32)
    return target


@njit
def arrives(o: Any, row: Any, adds: Any) -> None:
    """A request (o.arrival) changes a word; o.arrived is what came before it."""
    word, value, column = row[r.A_LOW] >> 2, row[r.A_VALUE], row[r.AGENT]
    slot = slot_of(o, word)
    if slot < 0:
        return
    count = o.values[slot]
    newest = o.value[slot, (count - 1) % r.VALUES]
    held = newest[0] if count else np.int64(o.first[word])
    o.far_flag[word] = 1
    if adds:
        value = (held + value) & 0xFFFFFFFF if held >= 0 else np.int64(-1)
    index = o.values_known[0]
    known = index % r.KNOWN_VALUES
    clocks.copy(o.value_known[known], 0, o.arrived, r.PLAIN, r.COLUMNS)
    if adds and count and newest[3]:
        held = value_known(o, newest[4])
        clocks.raise_row(o.value_known[known], held, 0, o.columns[0])
    elif adds and count:
        clocks.reach(o.value_known[known], o.mine[0] - r.PLAIN + newest[1], newest[2])
    o.values_known[0] += 1
    _value(o, slot, value, column, o.arrived[column])
    one = o.value[slot, count % r.VALUES]
    one[3], one[4] = row[r.SENT], index


@njit
def _least(s: Any, o: Any, c: Any, target: Any, plain: Any) -> Any:
    """The number of the first store with which the branch goes this way; -1: none, or _ALL."""
    slot = o.look[c, 1]
    word, count = o.slot_word[slot], o.values[slot]
    last = o.event[shadow.last_writer(o, word)]
    if count == 0:
        return np.int64(_ALL)
    newest = o.value[slot, (count - 1) % r.VALUES]
    if newest[3] == 0 and (last[r.AGENT] != newest[1] or last[r.CLOCK] > newest[2]):
        return np.int64(_ALL)
    first, floor = max(count - r.VALUES, 0), np.int64(-1)
    for n in range(first, count):
        one = o.value[slot, n % r.VALUES]
        if one[0] < 0:
            return np.int64(_ALL)
        by = one[1] + (o.mine[0] if plain and one[3] == 0 else 0)
        if (one[3] == 0 and one[1] == c) or one[2] <= o.clocks[c, by]:  # it comes after the store
            floor = np.int64(n)
    for n in range(max(floor, first - 1), count):
        value = o.value[slot, n % r.VALUES, 0] if n >= 0 else np.int64(o.first[word])
        if _goes(s, o, c, value) == target:
            return np.int64(n)
    return np.int64(_ALL)


@njit
def _proves(o: Any, c: Any, plain: Any, units: Any) -> None:
    """The core comes after the stores of the values that its branch needed."""
    slot, n = o.look[c, 1], o.look[c, 0]
    o.look[c, 0] = -1
    if slot == AT_DATA and n >= 0:
        o.site[o.look_step[c, 0, 0] >> 2] |= np.uint8(DATA)
    if slot <= COUNTER_LOOK and n >= 0:
        at = COUNTER_LOOK - slot
        answered(o, c, at >> 6, at & 63)
    if slot < 0:
        return
    last, word = o.values[slot] - 1, o.slot_word[slot]
    if (plain == _ALL or plain == last) and (units == _ALL or units == last):
        all_stores(o, c, word)
        return
    for order in range(2):
        which = units if order else plain
        which = last if which == _ALL else which
        if which >= 0:
            one = o.value[slot, which % r.VALUES]
            if one[3]:
                learn(o, c, value_known(o, one[4]))
                continue
            clocks.join_moment(o, c, one[1], one[2], order == 0, order == 1)
            clocks.acquired(o, c)


@njit
def proves_all(o: Any, c: Any) -> None:
    """A loaded value is no longer followed: its core comes after all stores to the word."""
    _proves(o, c, np.int64(_ALL), np.int64(_ALL))


@njit
def all_stores(o: Any, c: Any, word: Any) -> None:
    """Core `c` comes after all stores to a polled word, and after its last writer."""
    clocks.acquire(o, c, np.int64(clocks.POLLED | word))
    slot = np.int64(o.slot[word]) - 1
    if o.far_flag[word] and slot >= 0:
        newest = o.value[slot, (o.values[slot] - 1) % r.VALUES]
        if newest[3]:
            learn(o, c, value_known(o, newest[4]))
    last = shadow.last_writer(o, word)
    if last and o.event[last, r.SENT] == 0:
        clocks.join_event(o, c, o.event[last])


# Requests between tiles


@njit
def learn(o: Any, c: Any, known: Any) -> None:
    """Core `c` comes after everything in a row of columns of the plain order."""
    for k in range(CORES):
        clock = known[o.mine[0] - r.PLAIN + k]
        if clock > o.clocks[c, o.mine[0] + k]:
            clocks.join_moment(o, c, np.int64(k), clock, True, True)
    if clocks.raise_row(o.clocks[c, r.PLAIN :], known, 0, o.columns[0]):
        clocks.changed(o, c, True)


@njit
def value_known(o: Any, index: Any) -> Any:
    """What came before a value; all that other tiles have sent here if it is too old."""
    old = o.values_known[0] - index > r.KNOWN_VALUES
    return o.value_known[r.HERE if old else index % r.KNOWN_VALUES]


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
    clocks.copy(known, 0, o.clocks[c], 0, r.PLAIN + o.columns[0])
    o.sents[0] += 1
    o.sends[0] += 1
    if request.takes_data(row[request.CONTROL]):
        low, noc = row[request.LOCAL], row[request.NOC]
        one[r.S_VALUE] = np.int64(load_word(np.int64(s.host[0]) + (low & ~3)))
        column = r.OWNERS * o.tiles[0] + r.SOURCES * o.number[0] + noc
        left = o.left[noc, _ALL_TAGS]
        clocks.raise_row(left, known[r.PLAIN :], 0, o.columns[0])
        left[column] += 1
        clocks.raise_row(o.left[noc, request.transaction(row)], left, 0, o.columns[0])
        clocks.copy(o.arrival, 0, one, 0, r.EVENT)
        o.arrival[r.AGENT], o.arrival[r.CLOCK] = r.PLAIN + column, left[column]
        o.arrival[r.A_LOW], o.arrival[r.A_HIGH] = low, low + request.size(row)
        clocks.copy(o.arrived, 0, known, 0, r.PLAIN)
        clocks.copy(o.arrived, r.PLAIN, left, 0, o.columns[0])
        accesses(o)
    clocks.seen(o, c)  # what the core does from now on is not before the request


@njit
def accesses(o: Any) -> None:
    """A request accesses L1: o.arrival describes it, o.arrived came before it."""
    new = np.int64(o.events[0])
    o.events[0] += 1
    o.memo[0] = o.memo[1] = 0
    one = o.event[new]
    clocks.copy(one, 0, o.arrival, 0, r.EVENT)
    o.apart[0] = one[r.HOME] != o.number[0]
    clocks.copy(o.clocks[r.REQUEST], 0, o.arrived, 0, r.PLAIN + o.columns[0])
    agent, low, high = np.int64(r.REQUEST), o.arrival[r.A_LOW], o.arrival[r.A_HIGH]
    shadow.l1(o, agent, low, high, new, np.int64(one[r.WRITE]))
    shadow.make_room(o)


@njit
def answered(o: Any, c: Any, noc: Any, index: Any) -> None:
    """Core `c` learns from a counter of its NIU what has left, was answered, or has arrived."""
    tag, answer, left = index - niu.OUTSTANDING, o.answer[noc], o.left[noc]
    for kind, counter in ANSWERS:
        if index == counter:
            learn(o, c, answer[kind])
    if 0 <= tag < niu.OUTGOING - niu.OUTSTANDING:
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
def passes(s: Any, o: Any, c: Any, word: Any, needed: Any) -> None:
    """Core `c` has read a word on which it branches; needed: the number of the value."""
    pc, clock, last = o.look_step[c, 0, 0], o.clocks[c, c], o.passed[(o.passes[0] - 1) % r.PASSED]
    if last[0] != c or last[2] != word or last[3] != pc or clock > last[1] + _TURN:
        o.passes[0] += 1
    one = o.passed[(o.passes[0] - 1) % r.PASSED]
    one[0], one[1], one[2], one[3], one[4] = c, clock, word, pc, o.look_step[c, 0, 1]
    one[5], one[6] = clocks.now(s), needed
    o.marks[word] |= np.uint8(r.BRANCHED)
