"""Results that arrive after their word is complete: what LOADIND, LOADREG and ATINCGET load.

The scalar unit sends a request, and the thread goes on: the GPR is written at some later point. In
the usual form it is at once; in the timed form requests wait here, in the order of the words.
Sources: LOADIND, LOADREG, ATINCGET, Wormhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import l1_word
from bhemu.jit.subset import njit
from bhemu.tensix import mmio, state
from bhemu.tensix.rules import DONE, condition
from bhemu.tensix.state import ANSWERS, l1_words

# Columns of `s.answer`: cycle in which the GPR is written, 0 when it is; cycle in which an atomic
# reaches L1, 0 when it has; and what was asked
DUE, REACH, THREAD, KIND, REGISTER, ADDRESS, INCREMENT, MASK = range(8)
# Kinds: loads of 128, 32, 16 and 8 bits of L1, of a register, atomics
REGISTERS, ATOMIC = 4, 5

WAIT_MEMORY = condition("the results of the thread's loads by the scalar unit (STALLWAIT C0)")
WAIT_ROOM = condition("the scalar unit to send another request (results are on their way)")


@njit
def merged(old: Any, word: Any, address: Any, size: Any) -> Any:
    """The GPR `old` once 32, 16 or 8 bits (`size` 1 to 3) of a word of L1 are loaded into it."""
    if size == 1:
        return np.uint32(word)
    if size == 2:
        return np.uint32((old & 0xFFFF0000) | ((word >> (8 * (address & 2))) & 0xFFFF))
    return np.uint32((old & 0xFFFFFF00) | ((word >> (8 * (address & 3))) & 0xFF))


@njit
def increment(s: Any, address: Any, old: Any, added: Any, mask: Any) -> None:
    """Add within the bits of `mask`; the others stay."""
    state.written(s, address, np.int64(4))
    l1_words(s)[address >> 2] = np.uint32(((old + added) & mask) | (old & ~mask))


@njit
def ask(s: Any, t: Any, kind: Any, register: Any, address: Any) -> Any:
    """Place of a new request of thread `t`; the loop says when it arrives."""
    i = s.answer_last[0] % ANSWERS
    s.answer_last[0] += 1
    s.in_flight[t] += 1
    row = s.answer[i]
    row[DUE] = row[REACH] = row[INCREMENT] = row[MASK] = 0
    row[THREAD], row[KIND], row[REGISTER], row[ADDRESS] = t, kind, register, address
    return i


@njit
def is_full(s: Any) -> Any:
    """Whether no other request can be kept."""
    return s.answer_last[0] - s.answer_first[0] >= ANSWERS


@njit
def arrives(s: Any, due: Any, reach: Any) -> None:
    """When the last request arrives, and reaches L1; none does before an earlier one."""
    last = s.answer_last[0] - 1
    row = s.answer[last % ANSWERS]
    row[DUE], row[REACH] = due, reach if row[KIND] == ATOMIC else 0
    for n in range(s.answer_first[0], last):
        before = s.answer[n % ANSWERS]
        if before[DUE]:
            row[DUE] = max(row[DUE], before[DUE])
            row[REACH] = max(row[REACH], max(before[REACH], before[DUE])) if row[REACH] else 0


@njit
def waits(s: Any, t: Any) -> Any:
    """Condition number while a request of thread `t` is under way, or 0."""
    for n in range(s.answer_first[0], s.answer_last[0]):
        row = s.answer[n % ANSWERS]
        if row[DUE] and row[THREAD] == t:
            return WAIT_MEMORY
    return 0


@njit
def next_due(s: Any, never: Any) -> Any:
    """The cycle in which the next request arrives, or `never`."""
    first = np.int64(never)
    for n in range(s.answer_first[0], s.answer_last[0]):
        row = s.answer[n % ANSWERS]
        if row[DUE]:
            first = min(first, row[REACH] if row[REACH] else row[DUE])
    return first


@njit
def _reach(s: Any, i: Any) -> None:
    """An atomic reaches L1."""
    row = s.answer[i]
    row[REACH] = 0
    old = l1_word(s, row[ADDRESS])
    s.answer_value[i, 0] = np.uint32(old)
    increment(s, row[ADDRESS], old, row[INCREMENT], row[MASK])


@njit
def _deliver(s: Any, i: Any) -> Any:
    """The GPRs are written; DONE, or the error of a register that cannot be loaded any more."""
    row = s.answer[i]
    t, kind, register, address = row[THREAD], row[KIND], row[REGISTER], row[ADDRESS]
    row[DUE] = 0
    s.in_flight[t] -= 1
    if kind == 0:
        for k in range(4):
            s.gpr[t, (register & 0x3C) + k] = np.uint32(l1_word(s, (address & ~15) + 4 * k))
    elif kind < REGISTERS:
        old = np.int64(s.gpr[t, register])
        s.gpr[t, register] = merged(old, l1_word(s, address & ~3), address, kind)
    elif kind == REGISTERS:
        status = mmio.load(s, address)
        if status != DONE:
            return status
        s.gpr[t, register] = np.uint32(s.loaded[0])
    else:
        s.gpr[t, register] = s.answer_value[i, 0]
    return np.int64(DONE)


@njit
def arrive(s: Any, i: Any, cycle: Any) -> Any:
    """What is due of request `i` happens: 1 for some of it, 0 for none; or an error."""
    row, some = s.answer[i], np.int64(0)
    if row[REACH] and row[REACH] <= cycle:
        _reach(s, i)
        some = np.int64(1)
    if row[DUE] and row[REACH] == 0 and row[DUE] <= cycle:
        status = _deliver(s, i)
        some = np.int64(1) if status == DONE else status
    return some


@njit
def leave(s: Any) -> None:
    """Forget the first requests, as far as they have arrived."""
    while s.answer_first[0] < s.answer_last[0] and s.answer[s.answer_first[0] % ANSWERS, DUE] == 0:
        s.answer_first[0] += 1


@njit
def settle(s: Any, address: Any) -> None:
    """The scalar unit is about to write the 16 bytes around `address` of L1.

    What it has asked of them before comes first: no text says that its own requests overtake.
    """
    for n in range(s.answer_first[0], s.answer_last[0]):
        i = n % ANSWERS
        row = s.answer[i]
        if row[DUE] and row[ADDRESS] >> 4 == address >> 4:
            if row[KIND] == ATOMIC:
                if row[REACH]:
                    _reach(s, i)
            elif row[KIND] != REGISTERS:
                _deliver(s, i)


@njit
def settle_registers(s: Any) -> Any:
    """As `settle`, of registers, before the scalar unit stores to one; DONE or an error."""
    for n in range(s.answer_first[0], s.answer_last[0]):
        i = n % ANSWERS
        if s.answer[i, DUE] and s.answer[i, KIND] == REGISTERS:
            status = _deliver(s, i)
            if status != DONE:
                return status
    return np.int64(DONE)
