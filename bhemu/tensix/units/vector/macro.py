"""SFPLOADMACRO, and the cycles in which its scheduled instructions execute.

At most one instruction per sub-unit; all read what the cycle began with.  The simple sub-unit, the
only one that changes condition codes, goes last.  What the ISA text leaves open is refused.
"""

from typing import Any

import numpy as np

from bhemu.bits import number
from bhemu.jit.intrinsics import call_entry
from bhemu.jit.subset import njit
from bhemu.tensix import insn, lanes, rules, spaces, unspecified
from bhemu.tensix.insn import WAKES, Instruction, bits
from bhemu.tensix.spaces import lreg
from bhemu.tensix.units import counters
from bhemu.tensix.units.vector import arith, loadstore, move, schedule, sfpu
from bhemu.tensix.units.vector.sfpu import ELSEWHERE, LOAD, MAD, ROUND, SIMPLE, STORE, VD, Sfpu

OPCODE = 0x93  # SFPLOADMACRO
RESERVED = 0x1C00  # its bits that must be 0
MAD_WRITES, BUSY, LOAD_ROW = 0, 1, 2  # of s.macro_last: what the last cycle left to the next
# of BUSY; the last: by a scheduled SFPSWAP, alone
_REGULAR_BUSY, _SCHEDULED_BUSY, _SWAPPING = 1, 2, 3
_LOAD = loadstore.SFPLOAD.opcode
_SWAP = move.SFPSWAP.opcode
_LUTFP32 = arith.SFPLUTFP32.opcode

_PORTS = rules.error("VECTOR-MACRO-ROUND", rules.UNSUPPORTED, "a simple instruction (to LReg[{simple}]) and a round instruction (to LReg[{round}]) in one cycle: exactly one of them may write LReg[16]", "change a delay or bit 6 of a byte of the macro sequence")  # fmt: skip
_TWO_CYCLES = rules.error("VECTOR-MACRO-BUSY", rules.UNSUPPORTED, "word {word:#010x} uses the simple or round sub-unit in the cycle after an SFPSWAP or a shuffling SFPSHFT2, which takes two", "leave that cycle idle, or schedule SFPNOP for it")  # fmt: skip
_SWAP_AND_MAD = rules.error("VECTOR-MACRO-SWAP", rules.UNSUPPORTED, "SFPSWAP in the same cycle as MAD instruction {word:#010x}", "schedule SFPNOP to the MAD sub-unit for that cycle")  # fmt: skip
_SWAP_AGAIN = rules.error("VECTOR-MACRO-SWAP-READ", rules.UNSUPPORTED, "LReg[{reg}] changes between the two cycles of an SFPSWAP that reads it twice", "write it a cycle earlier or later")  # fmt: skip
_SWAP_LOAD = rules.error("VECTOR-MACRO-SWAP-LOAD", rules.UNSUPPORTED, "LReg[{reg}] is loaded in the cycle in which a scheduled SFPSWAP writes it, and the ISA text gives no order", "load it a cycle earlier or later, or choose reference = \"llk\": the load wins, as tt-llk's maximum of columns expects")  # fmt: skip
_LOAD_WINS = rules.error("VECTOR-MACRO-LOAD-WINS", rules.UNSUPPORTED, "LReg[{reg}] is loaded in the cycle in which a scheduled SFPSWAP writes it: it holds what was loaded, as tt-llk's maximum of columns expects")  # fmt: skip
_TWO_DRAWS = rules.error("VECTOR-MACRO-PRNG", rules.UNSUPPORTED, "two instructions step the random state in one cycle, and the ISA text gives no order", "change a delay in the macro sequence")  # fmt: skip
_SAME_DATUM = rules.error("VECTOR-MACRO-DST", rules.UNSUPPORTED, "Dst rows {loaded} and {stored} are loaded and stored in one cycle, and the ISA text gives no order", "change the delay of the store in the macro sequence")  # fmt: skip
_HAZARD = rules.error("VECTOR-MACRO-HAZARD", rules.UNSUPPORTED, "word {word:#010x} reads LReg[{reg}] the cycle after a MAD instruction writes it, and the hardware does not notice", "insert SFPNOP between them")  # fmt: skip
_STALL = rules.error("VECTOR-MACRO-STALL", rules.UNSUPPORTED, "word {word:#010x} overwrites LReg[{reg}] the cycle after a MAD instruction: whether it stalls while scheduled instructions count cycles is not told", "insert SFPNOP, or let the sub-units count instructions (SFPCONFIG register 8)")  # fmt: skip


_MIRROR = rules.error("VECTOR-MACRO-MIRROR", rules.MISSING, "word {word:#010x}, SFPLUTFP32 with the destination in LReg[7], while instructions are scheduled: for which registers the next word stalls depends on a copy of its mode, Mod1Mirror, of which the ISA text does not give the place", "insert SFPNOP until nothing is scheduled")  # fmt: skip


@njit
def _effective(s: Any, unit: Any, word: Any, regular: Any) -> Any:
    """Word that sub-unit `unit` executes in this cycle; 0 when it idles or executes SFPNOP."""
    found = word if regular == unit else np.int64(0)
    if schedule.occupied(s, unit):
        found = s.macro_slot[unit, 0, schedule.WORD]
    return np.int64(0) if found >> 24 == schedule.NOP else found


@njit
def _destination(s: Any, unit: Any, word: Any) -> Any:
    return s.macro_slot[unit, 0, schedule.DEST] if schedule.occupied(s, unit) else (word >> 4) & 15


@njit
def _refused(s: Any, t: Any, word: Any, regular: Any) -> Any:
    """DONE, or why what meets in this cycle is refused."""
    simple = _effective(s, np.int64(SIMPLE), word, regular)
    rounding = _effective(s, np.int64(ROUND), word, regular)
    mad = _effective(s, np.int64(MAD), word, regular)
    if s.macro_last[BUSY] and (simple or rounding):
        return rules.refuse(s, _TWO_CYCLES, word=simple if simple else rounding)
    if mad and simple >> 24 == _SWAP:
        return rules.refuse(s, _SWAP_AND_MAD, word=mad)
    if simple and rounding:
        x = _destination(s, np.int64(SIMPLE), simple)
        y = _destination(s, np.int64(ROUND), rounding)
        if (x == lanes.BONUS) == (y == lanes.BONUS):
            return rules.refuse(s, _PORTS, simple=x, round=y)
        if schedule.draws(simple) and schedule.draws(rounding):
            return _TWO_DRAWS
    # DONE, or the error of a regular load and a scheduled store of common cells.
    opcode = word >> 24
    if not schedule.occupied(s, STORE) or (opcode != OPCODE and opcode != _LOAD):
        return rules.DONE
    slot = s.macro_slot[STORE, 0]
    load = loadstore.concrete_mode(s, t, (word >> 16) & 15)
    store = loadstore.concrete_mode(s, t, slot[schedule.MODE])
    row = counters.dst_row(s, t, word & 0x3FF)
    if load < 0 or store < 0 or not loadstore.collide(s, t, load, row, store, slot[schedule.ROW]):
        return rules.DONE
    return rules.refuse(s, _SAME_DATUM, loaded=row, stored=slot[schedule.ROW])


@njit
def load_macro(s: Any, t: Any, word: Any) -> Any:
    """The load of an SFPLOADMACRO; its Dst row is kept for the store that it may schedule."""
    if word & RESERVED:
        return rules.refuse(s, rules.RESERVED_BITS, bits=word & RESERVED)
    mode = loadstore.concrete_mode(s, t, (word >> 16) & 15)
    if mode < 0:
        return mode
    row, addr_mode = counters.dst_row(s, t, word & 0x3FF), (word >> 13) & 7
    status = counters.addr_mod_refused(s, t, addr_mode)
    if status != rules.DONE:
        return status
    if s.doubt[2]:
        status = unspecified.open_refused(s)
        if status != rules.DONE:
            return status
    loadstore.load_rows(s, t, mode, row, schedule.loaded(word))
    counters.apply_addr_mod_sfpu(s, t, addr_mode)
    s.macro_last[LOAD_ROW] = row
    return rules.DONE


@njit
def _scheduled(s: Any, t: Any, unit: Any) -> Any:
    """Execute what is due in sub-unit `unit`; an error shows this word instead of the regular."""
    slot, thread = s.macro_slot[unit, 0], s.macro_thread[0]
    word, status = slot[schedule.WORD], np.int64(rules.DONE)
    if unit == STORE:
        status = loadstore.concrete_mode(s, thread, slot[schedule.MODE])
        if status >= 0:
            row, reg = slot[schedule.ROW], slot[schedule.DEST]
            status = loadstore.store_rows(s, thread, status, row, reg)
    elif word >> 24 != schedule.NOP:
        s.macro_dest[0] = 1 + slot[schedule.DEST]
        s.stage_latency[0] = schedule.latency(word)
        status = call_entry(s.table[word >> 24], s, thread, np.uint32(word))
        s.macro_dest[0] = 0
    if status != rules.DONE:
        s.gate_word[t] = np.uint32(word)
    return status


@njit
def _regular(s: Any, t: Any, word: Any) -> Any:
    s.stage_latency[0] = schedule.latency(word)
    if word >> 24 == OPCODE:
        return load_macro(s, t, word)
    return call_entry(s.table[word >> 24], s, t, np.uint32(word))


@njit
def _load(s: Any, t: Any, word: Any, carried: Any) -> Any:
    """The regular `word` of the load sub-unit; `carried` writes are those of an ending SFPSWAP.

    Where both write an LReg, the ISA text gives no order; tt-llk's reduction of columns needs what
    was loaded.
    """
    load, met, opcode = s.stage_used[0], False, word >> 24
    status = _regular(s, t, word)
    if status != rules.DONE or s.stage_used[0] == load or (opcode != _LOAD and opcode != OPCODE):
        return status
    for k in range(carried):
        if lanes.overlap(s, k, load):
            if not rules.follows_llk(s):
                return rules.refuse(s, _SWAP_LOAD, reg=s.stage_reg[load])
            met = True
            lanes.yield_to(s, k, load)
    if met:
        rules.note_rule(s, _LOAD_WINS, reg=s.stage_reg[load])
    return rules.DONE


@njit
def run(s: Any, t: Any, word: Any) -> Any:
    """Execute what is due and the regular `word` (0: none), which a due instruction displaces."""
    regular = np.int64(LOAD) if word >> 24 == OPCODE else schedule.SUB_UNIT[word >> 24]
    if regular < LOAD and schedule.occupied(s, regular):
        word, regular = np.int64(0), np.int64(ELSEWHERE)
    status = _refused(s, t, word, regular)
    if status != rules.DONE:
        return status
    simple = _effective(s, np.int64(SIMPLE), word, regular)
    rounding = _effective(s, np.int64(ROUND), word, regular)
    carried = s.stage_used[0] if s.macro_last[BUSY] == _SWAPPING else np.int64(0)
    # Before anything executes: note what the next cycle must know.
    s.macro_last[MAD_WRITES] = schedule.writes(word) if regular == MAD else 0
    busy = schedule.two_cycles(simple) or schedule.two_cycles(rounding)
    kind = _SWAPPING if simple >> 24 == _SWAP and rounding == 0 else _SCHEDULED_BUSY
    own = regular == SIMPLE or regular == ROUND
    s.macro_last[BUSY] = (_REGULAR_BUSY if own else kind) if busy else 0
    for unit in (MAD, ROUND, STORE, LOAD, SIMPLE):
        if unit < LOAD and schedule.occupied(s, unit):
            status = _scheduled(s, t, np.int64(unit))
            s.macro_slot[unit, 0, schedule.KIND] = 0
        elif unit == regular:
            status = _load(s, t, word, carried) if unit == LOAD else _regular(s, t, word)
        if status != rules.DONE:
            return status
    if simple >> 24 == _SWAP:  # what it will read again must not be written
        for reg in ((simple >> 4) & 15, (simple >> 8) & 15):
            for k in range(s.stage_used[0]):
                if s.stage_reg[k] == reg and s.stage_left[k] == 1:
                    return rules.refuse(s, _SWAP_AGAIN, reg=reg)
    return rules.DONE


@njit
def stalls(s: Any, word: Any, counting: Any) -> Any:
    """1 when the hardware holds a regular vector word for a cycle, 0, or an error.

    `counting`: scheduled instructions count cycles, so that the number of stalls matters.
    """
    if word >> 24 == schedule.NOP:
        return np.int64(0)
    if word >> 24 == _LUTFP32 and word & VD:
        return rules.refuse(s, _MIRROR, word=word)
    if s.macro_last[BUSY] == _REGULAR_BUSY:
        return np.int64(1)
    pending = s.macro_last[MAD_WRITES]
    unseen = schedule.unseen_reads(word) & pending
    if unseen:
        return rules.refuse(s, _HAZARD, word=word, reg=_lowest(unseen))
    if schedule.reads(word) & pending:
        return np.int64(1)
    overwritten = schedule.overwrites(word) & pending
    if overwritten and counting:
        return rules.refuse(s, _STALL, word=word, reg=_lowest(overwritten))
    return np.int64(1 if overwritten else 0)


@njit
def _lowest(mask: Any) -> Any:
    for register in range(8):
        if (mask >> register) & 1:
            return np.int64(register)
    return np.int64(0)


# While anything is scheduled, every word of every thread comes here first (`s.route`).  A word of
# the thread that scheduled, or a vector word of any thread, takes one cycle; so do the stalls
# that the hardware inserts.  When that thread waits, uses the sync unit, or its core looks at the
# coprocessor, cycles pass until nothing moves any more: the signalled agent sees its stores.  How
# the words were pushed does not matter.  Source: SFPLOADMACRO, SFPMAD, SFPSWAP, Blackhole ISA.


_SYNC = 1 << 1  # stall class of the sync unit

_MIXED = rules.error("VECTOR-MACRO-KINDS", rules.UNSUPPORTED, "between two vector words only instructions that count cycles stay scheduled, after one that counted words: the ISA text does not tell whether that cycle counts", "give all sub-units the same kind of delay in SFPCONFIG register 8")  # fmt: skip


@njit
def _outstanding(s: Any, kind: Any) -> Any:
    """True when an instruction of this kind (0: any) is scheduled."""
    for unit in range(4):
        for delay in range(8):
            k = s.macro_slot[unit, delay, schedule.KIND]
            if k != 0 and (kind == 0 or k == kind):
                return True
    return False


@njit
def _live(s: Any) -> Any:
    """True while something is scheduled or a write is under way."""
    return s.stage_used[0] > 0 or _outstanding(s, np.int64(0))


@njit
def _cycle(s: Any, t: Any, word: Any, issued: Any) -> Any:
    """One cycle: the scheduled instructions that are due and the regular `word` (0: none)."""
    due = False
    for unit in range(4):
        due = due or s.macro_slot[unit, 0, schedule.KIND] == schedule.INSTRUCTIONS
    status = run(s, t, word)
    if status != rules.DONE:
        return status
    words = _outstanding(s, np.int64(schedule.INSTRUCTIONS))
    if not issued and due and not words and _outstanding(s, np.int64(schedule.CYCLES)):
        return _MIXED  # the kind of a cycle without a word is not told
    # All delays count when a vector word was issued, or in every cycle if words do not count.
    if issued or not words:
        for unit in range(4):
            for delay in range(7):
                for k in range(5):
                    s.macro_slot[unit, delay, k] = s.macro_slot[unit, delay + 1, k]
            s.macro_slot[unit, 7, schedule.KIND] = 0
    if word >> 24 == OPCODE:
        status = _schedule(s, t, word)
        if status != rules.DONE:
            return status
    return lanes.end_cycle(s)


@njit
def pass_time(s: Any, t: Any) -> Any:
    """Let cycles without a word pass until nothing is due any more; DONE or an error."""
    status = np.int64(rules.DONE)
    while status == rules.DONE and _live(s):
        moving = s.stage_used[0] > 0 or not _outstanding(s, np.int64(schedule.INSTRUCTIONS))
        for unit in range(4):
            moving = moving or schedule.occupied(s, unit)
        if not moving:
            return status
        status = _cycle(s, t, np.int64(0), False)
    return status


@njit
def _schedule(s: Any, t: Any, word: Any) -> Any:
    """Schedule what the macro sequence says; the Dst row is that of the load just executed."""
    macro, loaded, misc = (word >> 22) & 3, schedule.loaded(word), np.int64(s.macro_misc[0])
    for unit in range(4):
        byte = (np.int64(s.macro_sequence[macro]) >> (8 * unit)) & 0xFF
        if byte & 7 == 0:  # nothing is forgotten either: against the ISA text, see docs/models.md
            continue
        instruction = schedule.selected(s, macro, np.int64(unit), byte & 7)
        if instruction < 0:
            return instruction
        slot = s.macro_slot[unit, (byte >> 3) & 7]
        if unit == STORE:
            mode = (word >> 16) & 15 if (misc >> (4 + macro)) & 1 else misc & 15
            row = s.macro_last[LOAD_ROW]
            schedule.store(s, slot, instruction, byte, loaded, row, mode)
        else:
            status = schedule.arithmetic(s, slot, instruction, byte, loaded)
            if status != rules.DONE:
                return status
        slot[schedule.KIND] = 1 + ((misc >> (8 + unit)) & 1)
    s.macro_thread[0] = t
    return rules.DONE


@njit
def _elsewhere(s: Any, t: Any, word: Any) -> Any:
    """A word of another unit while something is scheduled."""
    status = np.int64(rules.DONE)
    if t == s.macro_thread[0]:
        if s.stall[word >> 24] & _SYNC:
            status = pass_time(s, t)
        else:
            status = _cycle(s, t, np.int64(0), False)
    if status != rules.DONE:
        return status
    status = call_entry(s.table[word >> 24], s, t, np.uint32(word))
    if status > 0 and t == s.macro_thread[0]:
        passed = pass_time(s, t)
        status = status if passed == rules.DONE else passed
    return status


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
        word = (f.lreg_ind << 20) | (f.instr_mod0 << 16)
        word |= (f.sfpu_addr_mode << 13) | f.dest_reg_addr
        # The fields of an SFPLOADMACRO while nothing is scheduled: the load takes place at once
        status = load_macro(s, t, word)
        if status == rules.DONE:
            status = _schedule(s, t, word)
        if status == rules.DONE and _live(s):
            s.macro_last[MAD_WRITES] = s.macro_last[BUSY] = 0
            s.route[0] = OPCODE
        return status

    def route(s: Any, t: Any, word: Any) -> Any:
        # Any word while something is scheduled; a negative `t`: thread -1 - t waits.
        s.route[0] = 0  # calls from here reach their own entries
        status = np.int64(rules.DONE)
        if t < 0:
            if -1 - t == s.macro_thread[0]:
                status = pass_time(s, -1 - t)
        elif word >> 24 != OPCODE and schedule.SUB_UNIT[word >> 24] == ELSEWHERE:
            status = _elsewhere(s, t, word)
        else:  # after the stalls that the hardware inserts
            counting = _outstanding(s, np.int64(schedule.CYCLES))
            counting = counting and not _outstanding(s, np.int64(schedule.INSTRUCTIONS))
            status = stalls(s, word, counting)
            if status > 0:
                status = _cycle(s, t, np.int64(0), False)
            if status == rules.DONE:
                status = _cycle(s, t, word, True)
        s.stage_latency[0] = s.macro_dest[0] = 0
        s.route[0] = OPCODE if _live(s) else 0
        return status


assert SFPLOADMACRO.reserved == RESERVED
