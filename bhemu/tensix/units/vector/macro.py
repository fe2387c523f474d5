"""Vector unit (SFPU): SFPLOADMACRO and the cycles in which its scheduled instructions execute.

While anything is scheduled, every word of every thread comes here first (`s.route`).  A word of the
thread that scheduled, or a vector word of any thread, takes one cycle; so do the stalls that the
hardware inserts.  When that thread waits, uses the sync unit, or its core looks at the coprocessor,
cycles pass until nothing moves any more: the signalled agent sees its stores.  How the words
were pushed does not matter.  Source: SFPLOADMACRO, SFPMAD, SFPSWAP, Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.bits import number
from bhemu.jit.intrinsics import call_entry
from bhemu.jit.subset import njit
from bhemu.tensix import insn, lanes, spaces
from bhemu.tensix.insn import WAKES, Instruction, bits
from bhemu.tensix.rules import DONE, UNSUPPORTED, error
from bhemu.tensix.spaces import lreg
from bhemu.tensix.units.vector import cycle, schedule, sfpu
from bhemu.tensix.units.vector.cycle import OPCODE
from bhemu.tensix.units.vector.schedule import CYCLES, INSTRUCTIONS, KIND
from bhemu.tensix.units.vector.sfpu import ELSEWHERE, STORE, Sfpu

_SYNC = 1 << 1  # stall class of the sync unit

_MIXED = error("VECTOR-MACRO-KINDS", UNSUPPORTED, "between two vector words only instructions that count cycles stay scheduled, after one that counted words: the ISA text does not tell whether that cycle counts", "give all sub-units the same kind of delay in SFPCONFIG register 8")  # fmt: skip


@njit
def _outstanding(s: Any, kind: Any) -> Any:
    """True when an instruction of this kind (0: any) is scheduled."""
    for unit in range(4):
        for delay in range(8):
            k = s.macro_slot[unit, delay, KIND]
            if k != 0 and (kind == 0 or k == kind):
                return True
    return False


@njit
def _live(s: Any) -> Any:
    """True while something is scheduled or a write is under way."""
    return s.stage_used[0] > 0 or _outstanding(s, np.int64(0))


@njit
def _count_down(s: Any, issued: Any) -> None:
    """All delays count when a vector word was issued, or in every cycle if words do not count."""
    if not issued and _outstanding(s, np.int64(INSTRUCTIONS)):
        return
    for unit in range(4):
        for delay in range(7):
            for k in range(5):
                s.macro_slot[unit, delay, k] = s.macro_slot[unit, delay + 1, k]
        s.macro_slot[unit, 7, KIND] = 0


@njit
def _counts(s: Any, due: Any) -> Any:
    """False when the kind of a cycle without a word is not told (see VECTOR-MACRO-KINDS)."""
    if not due or not _outstanding(s, np.int64(CYCLES)):
        return True
    return _outstanding(s, np.int64(INSTRUCTIONS))


@njit
def _cycle(s: Any, t: Any, word: Any, issued: Any) -> Any:
    """One cycle: the scheduled instructions that are due and the regular `word` (0: none)."""
    due = False
    for unit in range(4):
        due = due or s.macro_slot[unit, 0, KIND] == INSTRUCTIONS
    status = cycle.run(s, t, word)
    if status != DONE:
        return status
    if not issued and not _counts(s, due):
        return _MIXED
    _count_down(s, issued)
    if word >> 24 == OPCODE:
        status = _schedule(s, t, word)
        if status != DONE:
            return status
    return lanes.end_cycle(s)


@njit
def pass_time(s: Any, t: Any) -> Any:
    """Let cycles without a word pass until nothing is due any more; DONE or an error."""
    status = np.int64(DONE)
    while status == DONE and _live(s):
        moving = s.stage_used[0] > 0 or not _outstanding(s, np.int64(INSTRUCTIONS))
        for unit in range(4):
            moving = moving or schedule.occupied(s, unit, 0)
        if not moving:
            return status
        status = _cycle(s, t, np.int64(0), False)
    return status


@njit
def _schedule_unit(s: Any, unit: Any, word: Any, row: Any) -> Any:
    macro, loaded = (word >> 22) & 3, schedule.loaded(word)
    byte = (np.int64(s.macro_sequence[macro]) >> (8 * unit)) & 0xFF
    delay, misc = (byte >> 3) & 7, np.int64(s.macro_misc[0])
    if byte & 7 == 0:  # nothing is forgotten either: against the ISA text, see docs/models.md
        return DONE
    instruction = schedule.selected(s, macro, unit, byte & 7)
    if instruction < 0:
        return instruction
    slot = s.macro_slot[unit, delay]
    if unit == STORE:
        mode = (word >> 16) & 15 if (misc >> (4 + macro)) & 1 else misc & 15
        schedule.store(s, slot, instruction, byte, loaded, row, mode)
    else:
        status = schedule.arithmetic(s, slot, instruction, byte, loaded)
        if status != DONE:
            return status
    slot[KIND] = 1 + ((misc >> (8 + unit)) & 1)
    return DONE


@njit
def _schedule(s: Any, t: Any, word: Any) -> Any:
    """Schedule what the macro sequence says; the Dst row is that of the load just executed."""
    for unit in range(4):
        status = _schedule_unit(s, np.int64(unit), word, s.macro_last[cycle.LOAD_ROW])
        if status != DONE:
            return status
    s.macro_thread[0] = t
    return DONE


@njit
def _begin(s: Any, t: Any, word: Any) -> Any:
    """The fields of an SFPLOADMACRO while nothing is scheduled: the load takes place at once."""
    status = cycle.load_macro(s, t, word)
    if status == DONE:
        status = _schedule(s, t, word)
    if status == DONE and _live(s):
        s.macro_last[cycle.MAD_WRITES] = s.macro_last[cycle.BUSY] = 0
        s.route[0] = OPCODE
    return status


@njit
def _elsewhere(s: Any, t: Any, word: Any) -> Any:
    """A word of another unit while something is scheduled."""
    status = np.int64(DONE)
    if t == s.macro_thread[0]:
        if s.stall[word >> 24] & _SYNC:
            status = pass_time(s, t)
        else:
            status = _cycle(s, t, np.int64(0), False)
    if status != DONE:
        return status
    status = call_entry(s.table[word >> 24], s, t, np.uint32(word))
    if status > 0 and t == s.macro_thread[0]:
        passed = pass_time(s, t)
        status = status if passed == DONE else passed
    return status


@njit
def _vector_word(s: Any, t: Any, word: Any) -> Any:
    """A vector word while something is scheduled, after the stalls that the hardware inserts."""
    counting = _outstanding(s, np.int64(CYCLES)) and not _outstanding(s, np.int64(INSTRUCTIONS))
    stall = cycle.stalls(s, word, counting)
    if stall < 0:
        return stall
    if stall > 0:
        status = _cycle(s, t, np.int64(0), False)
        if status != DONE:
            return status
    return _cycle(s, t, word, True)


class SFPLOADMACRO(
    Instruction, opcode=OPCODE, unit="vector", oracle=False, wakes=WAKES, facts=Sfpu(ELSEWHERE)
):
    """Load and schedule up to four instructions (SFPLOADMACRO, Blackhole ISA)."""

    reads = spaces.ALL_DST | sfpu.DST_ACCESS | spaces.MACRO | spaces.SCHEDULE
    writes = lreg("(dest_reg_addr & 1) * 4 + (lreg_ind & 3)") | spaces.RWC | spaces.SCHEDULE

    dest_reg_addr = bits(9, 0, number("as in SFPLOAD; bit 0: bit 2 of the LReg that is loaded"))
    sfpu_addr_mode = bits(15, 13, insn.ADDR_MOD)
    instr_mod0 = bits(19, 16, sfpu.LOADED, mode=True)
    lreg_ind = bits(
        23, 20, number("macro sequence [3:2], low bits of the LReg that is loaded [1:0]")
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        word = (
            (f.lreg_ind << 20) | (f.instr_mod0 << 16) | (f.sfpu_addr_mode << 13) | f.dest_reg_addr
        )
        return _begin(s, t, word)

    def route(s: Any, t: Any, word: Any) -> Any:
        # Any word while something is scheduled; a negative `t`: thread -1 - t waits.
        s.route[0] = 0  # calls from here reach their own entries
        status = np.int64(DONE)
        if t < 0:
            if -1 - t == s.macro_thread[0]:
                status = pass_time(s, -1 - t)
        elif word >> 24 != OPCODE and schedule.SUB_UNIT[word >> 24] == ELSEWHERE:
            status = _elsewhere(s, t, word)
        else:
            status = _vector_word(s, t, word)
        s.stage_latency[0] = s.macro_dest[0] = 0
        s.route[0] = OPCODE if _live(s) else 0
        return status


assert SFPLOADMACRO.reserved == cycle.RESERVED
