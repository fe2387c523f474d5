"""Polled words of L1: what the value that a core has read proves about other agents.

A count proves only what the branch after the load needs: the first value with which the branch goes
the same way, among the values stored since the last one that the reader knows of. To find it, the
instructions from the load to the branch are executed again with each of these values.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.devices import niu
from bhemu.jit.intrinsics import call_access
from bhemu.jit.subset import njit
from bhemu.riscv import formats, semantics
from bhemu.riscv.formats import Branch, IndirectJump, Jump, Load, Store
from bhemu.riscv.isa import decode, rv32i
from bhemu.riscv.isa.rv32i import TTINSN
from bhemu.why.order import clocks, requests, shadow
from bhemu.why.order import record as r
from bhemu.why.order.words import SITE

_BRANCH = Branch.code()
_REGISTER, _IMMEDIATE = formats.Register.code(), formats.RegisterImmediate.code()
KNOWN, POLLS, ONE_OF_TWO, SPINS = 1, 2, 4, 8  # of a site
DATA = 16  # no branch has looked at what the load has brought
_STORED, _COUNTER = 1, 2  # marks
_REPEATS = 3  # loads of one place in a row that poll it, whatever the code
AT_DATA = -2  # as a slot: the word has none
COUNTER_LOOK = -3  # as a slot: minus that, 64 times the NoC and the number of its counter
_ALL = -2  # what a look proves, beside the number of a store, -1 = none
_OTHERS = (*(cls.match & 0x7F for cls in (rv32i.LUI, rv32i.AUIPC, rv32i.FENCE)), formats.Csr.code())
# Columns of `look`: instructions since the load, -1: none; slot, word of the load, first bit, held,
# word of L1 that has no slot. Of `value`: value, -1 = a part; core, clock; of a request its column,
# clock, 1 + number of the request, that of value_known


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
    polls = kind & POLLS or counts or last[2] > _REPEATS
    if not polls and kind & ONE_OF_TWO:
        o.marks[word] |= np.uint8(_COUNTER)
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
                requests.passes(s, o, c, look[5])
                look[0] = -1
                return
            if look[1] <= COUNTER_LOOK:
                look[0] = look[0] if _is_answer(s, o, c, target) else -1
                proves_all(o, c)
                return
            plain = _least(s, o, c, target, True)
            if o.tiles[0] and look[1] >= 0:
                requests.passes(s, o, c, look[5])
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
def _is_answer(s: Any, o: Any, c: Any, target: Any) -> Any:
    """Whether the branch on a counter goes this way only if no answer is missing."""
    noc, index = (COUNTER_LOOK - o.look[c, 1]) >> 6, (COUNTER_LOOK - o.look[c, 1]) & 63
    if index == niu.ATOMIC_ANSWERS or index == niu.ACKS or index == niu.READ_ANSWERS:
        return _goes(s, o, c, np.int64(s.niu_counter[noc, index]) - 1 & 0xFFFFFFFF) != target
    if niu.OUTSTANDING <= index < niu.OUTGOING + 16:
        return _goes(s, o, c, np.int64(1)) != target
    return True


@njit
def arrives(o: Any, request: Any, adds: Any) -> None:
    """A request (o.arrival) changes a word; o.arrived is what came before it."""
    word, value, column = request[r.A_LOW] >> 2, request[r.A_VALUE], request[r.AGENT]
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
    clocks.copy(o.value_known[known], 0, o.arrived, r.OTHERS, r.FAR)
    if adds and count and newest[3]:
        held = requests.value_known(o, newest[4])
        clocks.raise_row(o.value_known[known], held, 0, o.far[0])
    elif adds and count:
        clocks.reach(o.value_known[known], shadow.own_column(o, newest[1]), newest[2])
    o.values_known[0] += 1
    _value(o, slot, value, column, o.arrived[column])
    one = o.value[slot, count % r.VALUES]
    one[3], one[4] = request[r.SENT], index


@njit
def _is_known(o: Any, c: Any, one: Any, plain: Any) -> Any:
    """Whether core `c` comes after the store of a value."""
    if one[3]:
        return one[2] <= o.clocks[c, one[1]]
    return one[1] == c or one[2] <= o.clocks[c, one[1] + (r.PLAIN if plain else 0)]


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
        if _is_known(o, c, one, plain):
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
        requests.answered(o, c, at >> 6, at & 63)
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
                requests.learn(o, c, requests.value_known(o, one[4]))
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
            requests.learn(o, c, requests.value_known(o, newest[4]))
    last = shadow.last_writer(o, word)
    if last and o.event[last, r.SENT] == 0:
        clocks.join_event(o, c, o.event[last])


# What the code around a load does with its value, in Python.

Memory = npt.NDArray[np.uint8]
_LOOK, _CLOSE = 8, 4  # instructions within which a polled word is compared, after another one
REACH = 4 * _LOOK
"""Bytes of code before and after a load that are looked at."""
_LEAVES = TTINSN | Store | Jump | IndirectJump
_ACTS = _LEAVES | formats.Atomic | formats.Csr | formats.NotModelled
_NO_REGISTER = -1


def _code(l1: Memory, first: int, end: int) -> Iterator[tuple[Any, int, list[int], int]]:
    """Class, word, registers read, register written of each instruction between two addresses."""
    for word in l1[first:end].view(np.uint32).tolist():
        cls: Any = decode(word)
        text = getattr(cls, "text", None) or ""
        read = [getattr(cls, name).get(word) for name in ("rs1", "rs2") if name in text]
        yield cls, word, read, cls.rd.get(word) if "rd" in text else _NO_REGISTER


def is_polled(l1: Memory, pc: int) -> bool:
    """Whether the load at `pc` polls a word: a branch uses the loaded value first.

    Or a value that is computed from it decides a branch back to the load, and the loop only waits.
    """
    return comparison(l1, pc) is not None or spin(l1, pc) is not None


def spin(l1: Memory, pc: int) -> tuple[int, int] | None:
    """First and last pc of the loop in which a load waits for its word; None if there is none.

    Such a loop only loads, computes and branches, and the load reads one place.
    """
    (_, load, _, _), *code = _code(l1, pc, pc + 4 * _LOOK)
    base, made = load >> 15 & 31, {load >> 7 & 31}

    def is_quiet(cls: Any, rd: int) -> bool:  # no effect outside, and the base register stays
        return cls is not None and not issubclass(cls, _ACTS) and (rd != base or not base)

    for at, (cls, word, read, rd) in enumerate(code, 1):
        if not is_quiet(cls, rd):
            return None
        decides = not made.isdisjoint(read)
        if issubclass(cls, Branch):
            end = pc + 4 * at
            head = end + int(cls.offset.get(word))
            if decides and max(pc - 4 * _LOOK, 0) <= head <= pc:
                before = all(is_quiet(one, rd) for one, _, _, rd in _code(l1, head, pc))
                return (head, end) if before else None
        else:
            made = made | {rd} if decides else made - {rd}
    return None


def is_one_of_two(l1: Memory, pc: int) -> bool:
    """Whether a branch first uses a value computed from two words, one of them loaded at `pc`.

    Cores wait so for a queue that has a counter of each side.
    """
    loaded: dict[int, set[int]] = {}  # by register, the loads that it is computed from
    for n, (cls, _, read, rd) in enumerate(_code(l1, pc - 4 * _CLOSE, pc + 4 * _LOOK)):
        if cls is None or issubclass(cls, _LEAVES):
            loaded = {}
            if n >= _CLOSE:
                return False
            continue
        made = {n} if issubclass(cls, Load) else set().union(*(loaded.get(r, ()) for r in read))
        if issubclass(cls, Branch) and n > _CLOSE:
            return _CLOSE in made and len(made) > 1
        if rd > 0:  # x0 keeps nothing
            loaded[rd] = made
    return False


def comparison(l1: Memory, pc: int) -> tuple[int, int] | None:
    """The first branch that compares a loaded word: its pc, and the other register."""
    (_, load, _, _), *code = _code(l1, pc, pc + 4 * _LOOK)
    loaded = load >> 7 & 31
    for at, (cls, word, read, _) in enumerate(code, 1):
        if cls is None or cls is TTINSN:
            return None
        if issubclass(cls, Branch):
            return (pc + 4 * at, read[1 - read.index(loaded)]) if loaded in read else None
        used = [getattr(cls, one).get(word) for one in ("rd", "rs1", "rs2")]
        if issubclass(cls, Store | Jump | IndirectJump) or loaded in used:
            return None
    return None
