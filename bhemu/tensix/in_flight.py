"""Words that units hold while they work on them: what the wait gate asks, and what it hands over.

In the usual form a word is complete when it has left the wait gate. In the timed form
(timing/loop.py) a unit takes the word, and executes it later as a whole. Each unit holds one word.
What the ISA samples when a unit begins (address and row counters, ThreadConfig) is kept with it.
A word of the scalar unit is complete at the gate: its thread issues nothing before; what its loads
give arrives later (answers.py). WRCFG and CFGSHIFTMASK write Config in their second cycle: for a
word of the same thread that a unit takes in that cycle the old words are kept. Sources: STALLWAIT,
ConfigurationUnit, CFGSHIFTMASK, Blackhole ISA; ScalarUnit, UNPACR_Regular (performance), WRCFG,
Wormhole ISA.
"""

from typing import Any

from bhemu.jit.subset import njit
from bhemu.tensix import answers, config
from bhemu.tensix.rules import condition
from bhemu.tensix.state import THREADS

NEVER = 1 << 60  # `agent_next` of an agent that sleeps until others do something
UNPACKER0, UNPACKER1, MATRIX, VECTOR, PACKER, MOVER = range(6)
NAMES = ("unpacker 0", "unpacker 1", "matrix unit", "vector unit", "packer", "mover")

WAIT_UNIT = tuple(
    condition(f"the {name} to take the next word (it works on one)") for name in NAMES
)
_IDLE = tuple(
    condition(f"the {name} to complete the thread's word (STALLWAIT C{bit})")
    for name, bit in zip(NAMES, (1, 2, 4, 11, 3, 9), strict=True)
)
WAIT_IDLE = _IDLE
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
def waits(s: Any, t: Any, conditions: Any) -> Any:
    """Condition number of the first unit of a STALLWAIT that has a word of thread `t`, or 0."""
    if conditions & _MEMORY:
        number = answers.waits(s, t)
        if number:
            return number
    for unit in range(MOVER):
        at_work = s.unit_thread[unit] == t + 1
        if s.unit_idle[unit] > s.clock[0] and s.unit_last[unit] == t:
            at_work = True
        if conditions & _BITS[unit] and at_work:
            return _IDLE[unit]
    if conditions & _BITS[MOVER] and s.unit_thread[MOVER]:  # of any thread
        return _IDLE[MOVER]
    if conditions & _CONFIG and writes_config(s):
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
def writes_config(s: Any) -> Any:
    """Whether the configuration unit is in the second cycle of a word of any thread."""
    for t in range(THREADS):
        if s.cfg_old_at[t, 2] and s.cfg_old_until[t] >= s.clock[0]:
            return True
    return False


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
    word, pc = s.gate_word[t], s.gate_pc[t]
    core, origin = s.gate_core[t], s.gate_from[t]
    s.gate_word[t], s.gate_pc[t] = s.unit_word[unit], s.unit_pc[unit]
    s.gate_core[t], s.gate_from[t] = s.unit_core[unit], s.unit_from[unit]
    s.unit_word[unit], s.unit_pc[unit] = word, pc
    s.unit_core[unit], s.unit_from[unit] = core, origin
    if engine >= 0:
        for i in range(THREADS):
            for channel in range(2):
                _exchange(s.unit_adc[unit, i, channel], s.adc[i, engine, channel])
                _exchange(s.unit_adc_cr[unit, i, channel], s.adc_cr[i, engine, channel])
            if engine < 2:
                row, context = s.unit_row[unit, i], s.unit_context[unit, i]
                s.unit_row[unit, i] = s.unpack_row[engine, i]
                s.unit_context[unit, i] = s.unpack_context[engine, i]
                s.unpack_row[engine, i], s.unpack_context[engine, i] = row, context
    else:
        _exchange(s.unit_rwc[unit], s.rwc[t])
        _exchange(s.unit_rwc_cr[unit], s.rwc_cr[t])
    _exchange(s.unit_thread_cfg[unit], s.thread_cfg[t])
