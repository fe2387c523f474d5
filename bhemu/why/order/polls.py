"""Words of L1 by which cores tell each other how far they are, and what a look at one proves.

A word that counts proves no more than it must have reached for the code behind the load to go as it
did: of the values that cores have stored since the last one that the reader knows of, the first
with which the branch goes the same way. So the instructions from the load to the branch are
executed once more with other values.
"""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import call_access
from bhemu.jit.subset import njit
from bhemu.riscv import semantics
from bhemu.riscv.formats import Branch, Csr, Register, RegisterImmediate
from bhemu.riscv.isa import rv32i
from bhemu.tensix.state import CORES
from bhemu.why.order import clocks, shadow
from bhemu.why.order import record as r
from bhemu.why.order.words import SITE

_BRANCH, _REGISTER, _IMMEDIATE = Branch.code(), Register.code(), RegisterImmediate.code()
KNOWN, POLLS, ONE_OF_TWO, SPINS = 1, 2, 4, 8  # of a site
_STORED, _COUNTER = 1, 2  # marks
_REPEATS = 3  # loads of one place in a row that poll it, whatever the code
_ALL = -2  # what a look proves, beside the number of a store, -1 = none
_OTHERS = (*(cls.match & 0x7F for cls in (rv32i.LUI, rv32i.AUIPC, rv32i.FENCE)), Csr.code())


@njit
def site(s: Any, o: Any, pc: Any) -> Any:
    """What the code behind the load at `pc` does with its value."""
    if o.site[pc >> 2] == 0:
        call_access(o.ask[0], s, np.int64(SITE), np.int64(pc), np.int64(0), np.int64(0))
    return np.int64(o.site[pc >> 2])


@njit
def is_poll(s: Any, o: Any, c: Any, pc: Any, address: Any) -> Any:
    """Whether a load looks at one place of L1 until it changes."""
    kind, word = site(s, o, pc), address >> 2
    last = o.site_last[c, (pc >> 2) % r.SITES]
    if last[0] != pc or last[1] != address:
        last[0], last[1], last[2] = pc, address, 0
    last[2] += 1
    counts = kind & ONE_OF_TWO and o.marks[word] & _STORED
    polls = kind & POLLS or counts or last[2] > _REPEATS
    if not polls and kind & ONE_OF_TWO:
        o.marks[word] |= np.uint8(_COUNTER)
    return polls


@njit
def slot_of(o: Any, word: Any) -> Any:
    """The number of a polled word; what cores have stored there so far becomes known."""
    if o.slot[word] or o.slots[0] == r.SLOTS:
        return np.int64(o.slot[word]) - 1
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
    o.values[slot] += 1


@njit
def stored(s: Any, o: Any, c: Any, address: Any, size: Any, value: Any) -> None:
    """Core `c` has stored to L1; what is less than a word leaves no value that is known."""
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
def begins(s: Any, o: Any, c: Any, pc: Any, word: Any, address: Any) -> None:
    """Core `c` executes the load of a polled word next."""
    look = o.look[c]
    look[0], look[1], look[2] = 0, slot_of(o, address >> 2), word
    look[3], look[4] = 8 * (address & 3), 1 << (word >> 7 & 31) & ~1
    clocks.copy(o.look_regs[c], 0, s.regs[c], 0, 32)
    o.look_step[c, 0, 0], o.look_step[c, 0, 1] = pc, word


@njit
def goes_on(s: Any, o: Any, c: Any, pc: Any, word: Any) -> None:
    """A core that looks has executed an instruction behind the load."""
    look, opcode = o.look[c], word & 0x7F
    if look[0] < 0:
        return
    look[0] += 1
    o.look_step[c, look[0], 0], o.look_step[c, look[0], 1] = pc, word
    rs1, rs2, rd = word >> 15 & 31, word >> 20 & 31, word >> 7 & 31
    uses = (1 << rs1 | (1 << rs2 if opcode == _REGISTER or opcode == _BRANCH else 0)) & look[4]
    computes = opcode == _REGISTER or opcode == _IMMEDIATE
    if word & 3 != 3 or not (computes or opcode == _BRANCH or opcode in _OTHERS):
        _proves(o, c, np.int64(_ALL), np.int64(_ALL))
    elif opcode == _BRANCH:
        if uses:
            target = np.int64(s.pc[c])
            plain = _least(s, o, c, target, True)
            _proves(o, c, plain, _least(s, o, c, target, False))
    elif computes and uses:
        look[4] |= 1 << rd & ~1
    else:
        look[4] &= ~(1 << rd)
    if look[0] >= 0 and (look[4] == 0 or look[0] >= r.LOOK):
        _proves(o, c, np.int64(_ALL), np.int64(_ALL))


@njit
def _goes(s: Any, o: Any, c: Any, value: Any) -> Any:
    """The pc behind the branch, had the load given another value."""
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
def _least(s: Any, o: Any, c: Any, target: Any, plain: Any) -> Any:
    """The number of the first store that ends the look so, -1: none was needed, or _ALL."""
    slot = o.look[c, 1]
    word, count = o.slot_word[slot], o.values[slot]
    last = o.event[shadow.last_writer(o, word)]
    if count == 0:
        return np.int64(_ALL)
    newest = o.value[slot, (count - 1) % r.VALUES]
    if last[r.AGENT] != newest[1] or last[r.CLOCK] > newest[2]:
        return np.int64(_ALL)
    first, floor = max(count - r.VALUES, 0), np.int64(-1)
    for n in range(first, count):
        one = o.value[slot, n % r.VALUES]
        if one[0] < 0:
            return np.int64(_ALL)
        known = o.plain[c, one[1]] if plain else o.clocks[c, one[1]]
        if one[1] == c or one[2] <= known:
            floor = np.int64(n)
    for n in range(max(floor, first - 1), count):
        value = o.value[slot, n % r.VALUES, 0] if n >= 0 else np.int64(o.first[word])
        if _goes(s, o, c, value) == target:
            return np.int64(n)
    return np.int64(_ALL)


@njit
def _first(o: Any, c: Any, n: Any) -> None:
    """The first look of a core that another core lets start, at a word."""
    slot, k = o.look[c, 1], o.firsts[0]
    if o.started[c, 0] == 0 or k == r.FIRSTS:
        return
    for i in range(k):
        if o.first_look[i, 0] == c and o.first_look[i, 1] == slot:
            return
    one, starter = o.first_look[k], o.started[c, 0] - 1
    one[0], one[1], one[2] = c, slot, n
    one[3], one[4], one[5] = starter, o.started[c, 1], o.plain[c, starter]
    for i in range(n + 1):
        clocks.copy(o.first_step[k, i], 0, o.look_step[c, i], 0, 2)
    clocks.copy(o.first_regs[k], 0, o.look_regs[c], 0, 32)
    o.firsts[0] += 1


@njit
def _proves(o: Any, c: Any, plain: Any, units: Any) -> None:
    """What wrote the value that a look needed is before the core that has looked."""
    slot, n = o.look[c, 1], o.look[c, 0]
    o.look[c, 0] = -1
    if slot < 0:
        return
    _first(o, c, n)
    last, word = o.values[slot] - 1, o.slot_word[slot]
    if (plain == _ALL or plain == last) and (units == _ALL or units == last):
        all_stores(o, c, word)
        return
    for order in range(2):
        which = units if order else plain
        which = last if which == _ALL else which
        if which >= 0:
            one = o.value[slot, which % r.VALUES]
            clocks.join_moment(o, c, one[1], one[2], order == 0, order == 1)
            clocks.acquired(o, c)


@njit
def proves_all(o: Any, c: Any) -> None:
    """A look is over whose value has decided nothing that is known."""
    _proves(o, c, np.int64(_ALL), np.int64(_ALL))


@njit
def all_stores(o: Any, c: Any, word: Any) -> None:
    """Whoever has stored to the word since it is polled, and who wrote it last, is before."""
    clocks.acquire(o, c, np.int64(clocks.POLLED | word))
    last = shadow.last_writer(o, word)
    if last == 0:
        return
    one = o.event[last]
    if one[r.AGENT] < CORES:
        clocks.join_moment(o, c, one[r.AGENT], one[r.CLOCK], True, True)
    else:
        clocks.join_agent(o, c, one[r.AGENT])
