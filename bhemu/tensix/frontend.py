"""The front end of a thread: instruction FIFO -> MOP expander -> REPLAY expander -> wait gate.

Sources: PushTensixInstruction, MOPExpander and REPLAY, Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE, IDLE, STOP_TIME, UB, condition, error, follows_llk, refuse
from bhemu.tensix.state import FIFO_DEPTH

FIFO_FULL = condition("room in the instruction FIFO")

MOP_PUSHED_BY_BRISC = error("MOP-BRISC", UB, "MOP and MOP_CFG pushed by BRISC skip the MOP expander and reach the wait gate unexpanded", "push them from the thread's own TRISC")  # fmt: skip
MOP_RESERVED = error("MOP-RESERVED", UB, "MOP template 1 with non-zero bits {bits:#x} in [22:0]")
MOP_COUNT = error("MOP-COUNT", UB, "MOP outer count {outer}, inner count {inner}: both must be 1 to {most}", "set MOP words; reference llk takes counts of 10 bits, as tt-llk's tests do")  # fmt: skip
MOP_STEPS = error("MOP-FLAGS", UB, "MOP template 0 with flag word {flags:#x}: only bits 0 and 1 exist")  # fmt: skip
REPLAY_RANGE = error("REPLAY-RANGE", UB, "REPLAY of {count} words from slot {slot}: 1 to 32 words, slots 0 to 31")  # fmt: skip
REPLAY_BITS = error("REPLAY-RESERVED", UB, "REPLAY with reserved bits {bits:#x}")
REPLAY_NESTED = error("REPLAY-NESTED", UB, "a played-back REPLAY reaches the wait gate", "a recording has swallowed a REPLAY: record fewer words, and do not begin a recording while one goes on")  # fmt: skip

# opcodes
MOP, NOP, MOP_CFG, REPLAY, RESOURCEDECL = 0x01, 0x02, 0x03, 0x04, 0x05
_BRISC = 0
# words of a MOP configuration, as bits: of template 0, whose zero mask has 32 bits; of template 1
_B, _A0, _HALO, _SKIP_A, _SKIP_B, _MASK_BITS = 1 << 2, 1 << 3, 7 << 4, 1 << 7, 1 << 8, 32
_START, _ENDS, _LOOP, _OTHER, _LAST, _LAST_OF_PASS = 1 << 2, 3 << 3, 1 << 5, 1 << 6, 1 << 7, 1 << 8
_SLOT = FIFO_DEPTH - 1
COUNT_MAX, LLK_COUNT_MAX = 127, 1023  # of template 1: in the ISA text, in tt-llk's tests
FROM_PUSH, FROM_MOP, FROM_REPLAY = 0, 1, 2  # gate_from; REPLAY adds the slot


@njit
def queued(s: Any, t: Any) -> Any:
    """Words in the FIFO of thread `t`."""
    return s.fifo_write[t] - s.fifo_read[t]


@njit
def expanding(s: Any, t: Any) -> Any:
    """True while the MOP expander or the replay buffer of thread `t` has words to give."""
    return s.mop_on[t] != 0 or s.play_left[t] > 0


@njit
def drained(s: Any, t: Any) -> Any:
    """True when no word of thread `t` is queued, expanding, at the wait gate or in a unit."""
    at_work = s.gate_full[t] != 0 or s.in_flight[t] != 0
    return queued(s, t) == 0 and not expanding(s, t) and not at_work


@njit
def mop_drained(s: Any, t: Any) -> Any:
    """True when no MOP of thread `t` waits in the FIFO or expands."""
    if s.mop_on[t]:
        return False
    for i in range(s.fifo_read[t], s.fifo_write[t]):
        if np.int64(s.fifo[t, i & _SLOT]) >> 24 == MOP:
            return False
    return True


@njit
def put(s: Any, t: Any, core: Any, word: Any, pc: Any) -> None:
    """Append a word; the caller has seen to it that there is room."""
    i = s.fifo_write[t] & _SLOT
    s.fifo[t, i] = np.uint32(word)
    s.fifo_pc[t, i] = np.uint32(pc)
    s.fifo_core[t, i] = core
    s.fifo_write[t] += 1


@njit
def _is_nop(word: Any) -> Any:
    return np.int64(word) >> 24 == NOP


@njit
def issued(words: Any, loops: Any, mask: Any, steps: Any) -> Any:
    """Bit i is set where a MOP of the configuration `words`, (9,) uint32, issues word i of it.

    `loops`: by template 1; else `steps` of template 0 with this zero mask.
    """
    outer, flags, inner = np.int64(words[0]), np.int64(words[1]), np.int64(words[1])
    if loops:
        alternate = not _is_nop(words[6])
        inner *= 2 if alternate else 1
        given = np.int64(_START | _ENDS | _LAST | (0 if outer == 1 else _LAST_OF_PASS))
        return given | (_LOOP if inner > 1 else 0) | (_OTHER if alternate and inner > 2 else 0)
    every = (np.int64(1) << min(steps, _MASK_BITS)) - 1
    skipped = mask & every
    given = np.int64(0)
    if steps > _MASK_BITS or skipped != every:
        given |= _A0 | (_HALO if flags & 2 else 0) | (_B if flags & 1 else 0)
    if skipped:
        given |= _SKIP_A | (_SKIP_B if flags & 1 else 0)
    return given


@njit
def _zmask_step(s: Any, t: Any) -> Any:
    """Next word of template 0, or -1 at the end; stage counts the words of one step."""
    while s.mop_outer[t] < s.mop_count[t]:
        flags, stage = np.int64(s.mop_live[t, 1]), s.mop_stage[t]
        s.mop_stage[t] = stage + 1
        if s.mop_mask[t] & 1:  # skipped: skip A, then skip B in two-source mode
            if stage == 0:
                return np.int64(s.mop_live[t, 7])
            if stage == 1 and flags & 1:
                return np.int64(s.mop_live[t, 8])
        else:  # A0, with halo A1 A2 A3, then B in two-source mode
            if stage == 0:
                return np.int64(s.mop_live[t, 3])
            if stage <= 3:
                if flags & 2:
                    return np.int64(s.mop_live[t, 3 + stage])
                s.mop_stage[t] = stage = 4
            if stage == 4:
                s.mop_stage[t] = 5
                if flags & 1:
                    return np.int64(s.mop_live[t, 2])
        s.mop_stage[t] = 0
        s.mop_outer[t] += 1
        s.mop_mask[t] >>= 1
    return np.int64(-1)


@njit
def _loops_step(s: Any, t: Any) -> Any:
    """Next word of template 1, or -1 at the end; stages: start, loop, end 0, end 1."""
    inner = np.int64(s.mop_live[t, 1])
    if not _is_nop(s.mop_live[t, 6]):
        inner *= 2
    while s.mop_outer[t] < np.int64(s.mop_live[t, 0]):
        stage = s.mop_stage[t]
        if stage == 0:
            s.mop_stage[t] = 1
            s.mop_inner[t] = 0
            if not _is_nop(s.mop_live[t, 2]):
                return np.int64(s.mop_live[t, 2])
        elif stage == 1:
            if s.mop_inner[t] < inner:
                # Word of one inner iteration of template 1; the last one of a pass is replaced
                j = s.mop_inner[t]
                s.mop_inner[t] = j + 1
                if j + 1 == inner:
                    last = s.mop_outer[t] + 1 == np.int64(s.mop_live[t, 0])
                    return np.int64(s.mop_live[t, 7 if last else 8])
                alternate = not _is_nop(s.mop_live[t, 6])
                return np.int64(s.mop_live[t, 6 if alternate and j & 1 else 5])
            s.mop_stage[t] = 2
        elif stage == 2:
            s.mop_stage[t] = 4 if _is_nop(s.mop_live[t, 3]) else 3
            if not _is_nop(s.mop_live[t, 3]):
                return np.int64(s.mop_live[t, 3])
        elif stage == 3:
            s.mop_stage[t] = 4
            if not _is_nop(s.mop_live[t, 4]):
                return np.int64(s.mop_live[t, 4])
        else:
            s.mop_stage[t] = 0
            s.mop_outer[t] += 1
    return np.int64(-1)


@njit
def _replay(s: Any, t: Any, word: Any) -> Any:
    """Start recording or playing; length 0 means the whole buffer."""
    n, slot = (word >> 4) & 0x3FF, (word >> 14) & 0x3FF
    n = 32 if n == 0 else n
    if word & 0xC:
        return refuse(s, REPLAY_BITS, bits=word & 0xC)
    if n > 32 or slot > 31:
        return refuse(s, REPLAY_RANGE, count=n, slot=slot)
    if word & 1:
        s.record_at[t], s.record_left[t], s.record_execute[t] = slot, n, (word >> 1) & 1
    else:
        s.play_at[t], s.play_left[t], s.play_pc[t] = slot, n, s.gate_pc[t]
    return DONE


@njit
def _take(s: Any, t: Any) -> Any:
    """Next word before the REPLAY expander, in gate_* fields; -1 none, -2 consumed, else error."""
    if s.mop_on[t]:
        word = _zmask_step(s, t) if s.mop_on[t] == 1 else _loops_step(s, t)
        if word < 0:
            s.mop_on[t] = 0
            return np.int64(-2)
        s.gate_pc[t], s.gate_core[t] = s.mop_pc[t], s.mop_core[t]
        s.gate_from[t] = FROM_MOP
        return word
    if queued(s, t) == 0:
        return np.int64(-1)
    i = s.fifo_read[t] & _SLOT
    word = np.int64(s.fifo[t, i])
    s.fifo_read[t] += 1
    s.gate_pc[t], s.gate_core[t] = s.fifo_pc[t, i], s.fifo_core[t, i]
    s.gate_from[t] = FROM_PUSH
    return word


@njit
def _expander(s: Any, t: Any, word: Any) -> Any:
    """The MOP expander's own words: MOP and MOP_CFG; BRISC's pushes must not hold any."""
    if s.gate_core[t] == _BRISC:
        return MOP_PUSHED_BY_BRISC
    if word >> 24 == MOP_CFG:
        s.mop_zmask_hi[t] = word & 0xFFFF
        return DONE
    # Latch the configuration; the template is in bit 23
    for i in range(9):
        s.mop_live[t, i] = s.mop_cfg[t, i]
    first, second = np.int64(s.mop_cfg[t, 0]), np.int64(s.mop_cfg[t, 1])
    s.mop_outer[t] = s.mop_inner[t] = s.mop_stage[t] = 0
    s.mop_pc[t], s.mop_core[t] = s.gate_pc[t], s.gate_core[t]
    if (word >> 23) & 1:
        if word & 0x7FFFFF:
            return refuse(s, MOP_RESERVED, bits=word & 0x7FFFFF)
        most = LLK_COUNT_MAX if follows_llk(s) else COUNT_MAX
        if first < 1 or first > most or second < 1 or second > most:
            return refuse(s, MOP_COUNT, outer=first, inner=second, most=most)
        s.mop_on[t] = 2
        return DONE
    if second > 3:
        return refuse(s, MOP_STEPS, flags=second)
    s.mop_mask[t] = (word & 0xFFFF) | (s.mop_zmask_hi[t] << 16)
    s.mop_count[t] = ((word >> 16) & 0x7F) + 1
    s.mop_on[t] = 1
    return DONE


@njit(forceinline=True)
def fetch(s: Any, t: Any) -> Any:
    """Bring the next word of thread `t` to the wait gate: DONE, IDLE (there is none) or error.

    STOP_TIME: a look is due (rules.py), because of words that the front end keeps for itself.
    """
    while True:
        if s.play_left[t] > 0:
            i = s.play_at[t]
            s.play_at[t] = (i + 1) & 31
            s.play_left[t] -= 1
            word = np.int64(s.replay[t, i])
            s.gate_word[t], s.gate_pc[t] = s.replay[t, i], s.replay_pc[t, i]
            s.gate_from[t] = FROM_REPLAY + i
            return REPLAY_NESTED if word >> 24 == REPLAY else DONE
        word = _take(s, t)
        if word == -1:
            return IDLE
        if word == -2:
            continue
        s.gate_word[t] = np.uint32(word)
        opcode = word >> 24
        if opcode > RESOURCEDECL and s.record_left[t] == 0:
            return DONE
        if s.gate_from[t] == FROM_PUSH and (opcode == MOP or opcode == MOP_CFG):
            status = _expander(s, t, word)
        elif s.record_left[t] > 0:
            i = s.record_at[t]
            s.replay[t, i], s.replay_pc[t, i] = np.uint32(word), s.gate_pc[t]
            s.record_at[t] = (i + 1) & 31
            s.record_left[t] -= 1
            if s.record_execute[t]:
                return DONE
            s.look_left[0] -= 1
            if s.look_left[0] <= 0:
                return STOP_TIME
            continue
        elif opcode == REPLAY:
            status = _replay(s, t, word)
        elif opcode == RESOURCEDECL:
            s.sync_declared[t] = 1  # for Auto TTSync (devices/bus/access_order.py)
            status = DONE
        else:
            return DONE
        if status != DONE:
            return status
        s.op_count[t, opcode] += 1  # consumed here, it never reaches the gate
        s.look_left[0] -= 1
        if s.look_left[0] <= 0:
            return STOP_TIME
