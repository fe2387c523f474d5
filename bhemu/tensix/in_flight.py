"""Words that units hold while they work on them, and results that arrive after their word.

In the usual form a word is complete when it has left the wait gate. In the timed form
(timing/loop.py) a unit takes the word, and executes it later as a whole. Each unit holds one word.
What the ISA samples when a unit begins (address and row counters, ThreadConfig) is kept with it.
A word of the scalar unit is complete at the gate: its thread issues nothing before; what its loads
give arrives later (in_flight.py). WRCFG and CFGSHIFTMASK write Config in their second cycle: for a
word of the same thread that a unit takes in that cycle the old words are kept. Sources: STALLWAIT,
ConfigurationUnit, CFGSHIFTMASK, Blackhole ISA; ScalarUnit, UNPACR_Regular (performance), WRCFG,
Wormhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import l1_word
from bhemu.jit.subset import njit
from bhemu.tensix import config, mmio, state
from bhemu.tensix.rules import DONE, condition
from bhemu.tensix.state import ANSWERS, CORES, RUNNING, THREADS, UNITS, l1_words

# Results that arrive after their word is complete: what LOADIND, LOADREG and ATINCGET load.
#
# The scalar unit sends a request, and the thread goes on: the GPR is written at some later point.
# In the usual form it is at once; in the timed form requests wait here, in the order of the words.
# Sources: LOADIND, LOADREG, ATINCGET, Wormhole ISA.


# Columns of `s.answer`: cycle in which the GPR is written, 0 when it is; cycle in which an atomic
# reaches L1, 0 when it has; and what was asked
DUE, REACH, THREAD, KIND, REGISTER, ADDRESS, INCREMENT, MASK = range(8)
# Kinds: loads of 128, 32, 16 and 8 bits of L1, of a register, atomics
REGISTERS, ATOMIC = 4, 5

WAIT_MEMORY = condition("the results of the thread's loads by the scalar unit (STALLWAIT C0)")
WAIT_ROOM = condition("the scalar unit to send another request (results are on their way)")


@njit
def load_gprs(s: Any, t: Any, size: Any, register: Any, address: Any) -> None:
    """Load from L1; sizes 0 to 3: 128, 32, 16, 8 bits, of which the last two keep the others."""
    if size == 0:
        for k in range(4):
            s.gpr[t, (register & 0x3C) + k] = np.uint32(l1_word(s, (address & ~15) + 4 * k))
        return
    old, word = np.int64(s.gpr[t, register]), l1_word(s, address & ~3)
    if size == 2:
        word = (old & 0xFFFF0000) | ((word >> (8 * (address & 2))) & 0xFFFF)
    elif size == 3:
        word = (old & 0xFFFFFF00) | ((word >> (8 * (address & 3))) & 0xFF)
    s.gpr[t, register] = np.uint32(word)


@njit
def increment_word(s: Any, address: Any, old: Any, added: Any, mask: Any) -> None:
    """Add within the bits of `mask`; the others stay."""
    state.written(s, address, np.int64(4))
    l1_words(s)[address >> 2] = np.uint32(((old + added) & mask) | (old & ~mask))


@njit
def ask_memory(s: Any, t: Any, kind: Any, register: Any, address: Any) -> Any:
    """Place of a new request of thread `t`; the loop says when it arrives."""
    i = s.answer_last[0] % ANSWERS
    s.answer_last[0] += 1
    s.in_flight[t] += 1
    row = s.answer[i]
    row[DUE] = row[REACH] = row[INCREMENT] = row[MASK] = 0
    row[THREAD], row[KIND], row[REGISTER], row[ADDRESS] = t, kind, register, address
    return i


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
    increment_word(s, row[ADDRESS], old, row[INCREMENT], row[MASK])


@njit
def _deliver(s: Any, i: Any) -> Any:
    """The GPRs are written; DONE, or the error of a register that cannot be loaded any more."""
    row = s.answer[i]
    t, kind, register, address = row[THREAD], row[KIND], row[REGISTER], row[ADDRESS]
    row[DUE] = 0
    s.in_flight[t] -= 1
    if kind < REGISTERS:
        load_gprs(s, t, kind, register, address)
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


NEVER = 1 << 60  # `agent_next` of an agent that sleeps until others do something
UNPACKER0, UNPACKER1, MATRIX, VECTOR, PACKER, MOVER = range(6)
NAMES = ("unpacker 0", "unpacker 1", "matrix unit", "vector unit", "packer", "mover")

WAIT_UNIT = tuple(
    condition(f"the {name} to take the next word (it works on one)") for name in NAMES
)
WAIT_IDLE = tuple(
    condition(f"the {name} to complete the thread's word (STALLWAIT C{bit})")
    for name, bit in zip(NAMES, (1, 2, 4, 11, 3, 9), strict=True)
)
_WAIT_CONFIG = condition(
    "the configuration unit to complete the words of all threads (STALLWAIT C12)"
)
_MEMORY, _CONFIG = 1 << 0, 1 << 12  # of STALLWAIT
_BITS = (1 << 1, 1 << 2, 1 << 4, 1 << 11, 1 << 3, 1 << 9)  # of STALLWAIT, by unit
_ENGINE = (0, 1, -1, -1, 2, -1)  # whose address counters a unit uses


@njit
def ask_sleepers(s: Any) -> None:
    """What is outside of the tile may have changed it: each agent is asked in the next cycle.

    0: that cycle is none that the agent itself has found.
    """
    for agent in range(s.agent_next.size):
        if s.agent_next[agent] == NEVER:
            s.agent_next[agent] = 0


@njit
def ask_cores(s: Any) -> None:
    """As ask_sleepers, of cores that poll alone: a register that they load may have changed."""
    for agent in range(UNITS, UNITS + CORES):
        if s.agent_next[agent] == NEVER and s.core_state[agent - UNITS] == RUNNING:
            s.agent_next[agent] = 0


@njit
def waits(s: Any, t: Any, conditions: Any) -> Any:
    """Condition number of the first unit of a STALLWAIT that has a word of thread `t`, or 0."""
    if conditions & _MEMORY:
        for n in range(s.answer_first[0], s.answer_last[0]):
            row = s.answer[n % ANSWERS]
            if row[DUE] and row[THREAD] == t:
                return WAIT_MEMORY
    for unit in range(MOVER):
        at_work = s.unit_thread[unit] == t + 1
        if s.unit_idle[unit] > s.clock[0] and s.unit_last[unit] == t:
            at_work = True
        if conditions & _BITS[unit] and at_work:
            return WAIT_IDLE[unit]
    if conditions & _BITS[MOVER] and s.unit_thread[MOVER]:  # of any thread
        return WAIT_IDLE[MOVER]
    if conditions & _CONFIG:  # in the second cycle of a word of any thread
        for i in range(THREADS):
            if s.cfg_old_at[i, 2] and s.cfg_old_until[i] >= s.clock[0]:
                return _WAIT_CONFIG
    return 0


@njit
def keep_config(s: Any, t: Any, bank: Any, word: Any, count: Any) -> None:
    """Thread `t` is about to write `count` words of a bank of Config, in its second cycle.

    Words with an effect of their own are not kept: they change more than themselves.
    """
    s.cfg_old_at[t, 0], s.cfg_old_at[t, 1], s.cfg_old_at[t, 2] = bank, word, count
    s.cfg_old_until[t] = s.clock[0] + 1
    for i in range(count):
        s.cfg_old[t, i] = s.cfg[bank, word + i]
        if config.has_effect(word + i):
            s.cfg_old_at[t, 2] = 0


@njit
def exchange_config(s: Any, unit: Any) -> None:
    """Exchange the Config words that the unit's word saw for those that are there now."""
    bank, first = s.unit_cfg_at[unit, 0], s.unit_cfg_at[unit, 1]
    for i in range(s.unit_cfg_at[unit, 2]):
        old, word = s.unit_cfg[unit, i], first + i
        s.unit_cfg[unit, i] = s.cfg[bank, word]
        s.cfg[bank, word] = old
        if word >= config.SHARED:
            s.cfg[1 - bank, word] = old


@njit
def take(s: Any, unit: Any, t: Any) -> None:
    """Unit `unit` takes the word at the gate of thread `t`, with what it sees there."""
    s.unit_thread[unit] = t + 1
    s.unit_word[unit], s.unit_pc[unit] = s.gate_word[t], s.gate_pc[t]
    s.unit_core[unit], s.unit_from[unit] = s.gate_core[t], s.gate_from[t]
    s.in_flight[t] += 1
    engine = _ENGINE[unit]
    if engine >= 0:
        for i in range(THREADS):
            s.unit_adc[unit, i] = s.adc[i, engine]
            s.unit_adc_cr[unit, i] = s.adc_cr[i, engine]
            if engine < 2:
                s.unit_row[unit, i] = s.unpack_row[engine, i]
                s.unit_context[unit, i] = s.unpack_context[engine, i]
    else:
        s.unit_rwc[unit], s.unit_rwc_cr[unit] = s.rwc[t], s.rwc_cr[t]
    s.unit_thread_cfg[unit] = s.thread_cfg[t]
    s.unit_cfg_at[unit, 2] = 0
    if s.cfg_old_at[t, 2] and s.cfg_old_until[t] == s.clock[0] and unit != MOVER:
        s.unit_cfg[unit], s.unit_cfg_at[unit] = s.cfg_old[t], s.cfg_old_at[t]


@njit
def free(s: Any, unit: Any) -> None:
    """The word is complete."""
    s.in_flight[s.unit_thread[unit] - 1] -= 1
    s.unit_thread[unit] = 0


@njit
def _exchange(a: Any, b: Any) -> None:
    for i in range(a.size):
        a[i], b[i] = b[i], a[i]


@njit
def exchange(s: Any, unit: Any) -> None:
    """Exchange what the unit's word saw at the gate, and the word, for what is there now."""
    t, engine = s.unit_thread[unit] - 1, _ENGINE[unit]
    s.gate_word[t], s.unit_word[unit] = s.unit_word[unit], s.gate_word[t]
    s.gate_pc[t], s.unit_pc[unit] = s.unit_pc[unit], s.gate_pc[t]
    s.gate_core[t], s.unit_core[unit] = s.unit_core[unit], s.gate_core[t]
    s.gate_from[t], s.unit_from[unit] = s.unit_from[unit], s.gate_from[t]
    if engine >= 0:
        for i in range(THREADS):
            for channel in range(2):
                _exchange(s.unit_adc[unit, i, channel], s.adc[i, engine, channel])
                _exchange(s.unit_adc_cr[unit, i, channel], s.adc_cr[i, engine, channel])
            if engine < 2:
                row, context = s.unit_row[unit, i], s.unit_context[unit, i]
                s.unit_row[unit, i], s.unpack_row[engine, i] = s.unpack_row[engine, i], row
                s.unit_context[unit, i] = s.unpack_context[engine, i]
                s.unpack_context[engine, i] = context
    else:
        _exchange(s.unit_rwc[unit], s.rwc[t])
        _exchange(s.unit_rwc_cr[unit], s.rwc_cr[t])
    _exchange(s.unit_thread_cfg[unit], s.thread_cfg[t])
