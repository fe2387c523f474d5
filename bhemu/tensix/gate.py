"""The wait gate: the wait instruction that each thread has latched, and what it holds back.

A wait instruction executes at once and leaves a latch with block bits and conditions; the thread
goes on until a word of a blocked class stands at the gate.  The latch is forgotten as soon as none
of its conditions is true (STALLWAIT, SEMWAIT, STREAMWAIT, Blackhole ISA).  Instructions execute
completely when they leave the gate, so conditions that ask whether a unit is busy (C0-C4, C9-C12)
are never true.  Some scalar instructions wait inside the unit: until they are done no other thread
may enter it (ScalarUnit, Wormhole ISA).
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config, semaphores, streams
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import STALL_ANY
from bhemu.tensix.status import condition

NONE, STALL, SEMAPHORE, STREAM = 0, 1, 2, 3  # values of `latch`

ALL_BLOCKS = 0x1FF
HOLD_NOP = 0x200  # set beside all nine block bits
DEFAULT_BLOCKS = 1 << 6  # B6, the matrix unit, stands for an empty block mask
DEFAULT_CONDITIONS = 0xF  # C0-C3 stand for an empty condition mask

SRCA_FREE, SRCB_FREE = 1 << 5, 1 << 6
SRCA_VALID, SRCB_VALID = 1 << 7, 1 << 8
SEM_ZERO, SEM_FULL = 1, 2
PHASE, MESSAGES = 0, 1  # condition index of STREAMWAIT; latched as a mask
SCALAR_UNIT = 1 << 5  # the block bit B5 marks the instructions of the scalar unit

WAIT_SRCA_FREE = condition("the SrcA bank of unpacker 0 to become free (STALLWAIT C5)")
WAIT_SRCB_FREE = condition("the SrcB bank of unpacker 1 to become free (STALLWAIT C6)")
WAIT_SRCA_VALID = condition("the SrcA bank of the matrix unit to become valid (STALLWAIT C7)")
WAIT_SRCB_VALID = condition("the SrcB bank of the matrix unit to become valid (STALLWAIT C8)")
WAIT_SEM_ZERO = condition("a semaphore to become non-zero (SEMWAIT C0)")
WAIT_SEM_FULL = condition("a semaphore to fall below its maximum (SEMWAIT C1)")
WAIT_PHASE = condition("an overlay stream to reach a phase (STREAMWAIT C0)")
WAIT_MESSAGES = condition("an overlay stream to receive messages (STREAMWAIT C1)")
WAIT_SCALAR = condition("the scalar unit, which an instruction of another thread occupies")


@njit
def _bank_wait(s: Any, conditions: Any) -> Any:
    if conditions & SRCA_FREE and s.src_valid[0, s.unpack_bank[0] & 1]:
        return WAIT_SRCA_FREE
    if conditions & SRCB_FREE and s.src_valid[1, s.unpack_bank[1] & 1]:
        return WAIT_SRCB_FREE
    if conditions & SRCA_VALID and not s.src_valid[0, s.matrix_bank[0] & 1]:
        return WAIT_SRCA_VALID
    if conditions & SRCB_VALID and not s.src_valid[1, s.matrix_bank[1] & 1]:
        return WAIT_SRCB_VALID
    return 0


@njit
def _semaphore_wait(s: Any, conditions: Any, selected: Any) -> Any:
    if conditions & SEM_ZERO and semaphores.first_zero(s, selected) >= 0:
        return WAIT_SEM_ZERO
    if conditions & SEM_FULL and semaphores.first_full(s, selected) >= 0:
        return WAIT_SEM_FULL
    return 0


@njit
def stream_index(s: Any, t: Any, selector: Any) -> Any:
    """Overlay stream (0-63) of `selector` (0-3) of thread `t`: STREAM_ID_SYNC_SEC[selector]."""
    if selector == 0:
        return config.thread(s, t, tf.STREAM_ID_SYNC_SEC0_BankSel)
    if selector == 1:
        return config.thread(s, t, tf.STREAM_ID_SYNC_SEC1_BankSel)
    if selector == 2:
        return config.thread(s, t, tf.STREAM_ID_SYNC_SEC2_BankSel)
    return config.thread(s, t, tf.STREAM_ID_SYNC_SEC3_BankSel)


@njit
def _stream_wait(s: Any, t: Any, conditions: Any, selector: Any, target: Any) -> Any:
    stream = stream_index(s, t, selector)
    if conditions == 1 << PHASE:
        return WAIT_PHASE if streams.phase(s, stream) < target else 0
    return WAIT_MESSAGES if streams.messages(s, stream) < target else 0


@njit
def poll(s: Any, t: Any) -> Any:
    """Condition number of the first true condition of the latch of thread `t`.

    0: no latch is in place (any more): one whose conditions are all false is forgotten.
    """
    if s.latch[t] == NONE:
        return 0
    if s.latch[t] == STALL:
        number = _bank_wait(s, s.latch_cond[t])
    elif s.latch[t] == SEMAPHORE:
        number = _semaphore_wait(s, s.latch_cond[t], s.latch_sem[t])
    else:
        number = _stream_wait(s, t, s.latch_cond[t], s.latch_stream[t], s.latch_target[t])
    if number == 0:
        forget(s, t)
    return number


@njit
def hold(s: Any, t: Any, opcode: Any) -> Any:
    """Condition number that holds a word of `opcode` (0-255) at the gate of thread `t`, or 0."""
    stall = s.stall[opcode & 0xFF]
    if s.latch[t] != NONE:
        number = poll(s, t)
        if stall & s.latch_block[t]:
            return number
    if s.thcon[0] and s.thcon[0] != t + 1 and stall & SCALAR_UNIT and stall != STALL_ANY:
        return WAIT_SCALAR
    return 0


@njit
def forget(s: Any, t: Any) -> None:
    """Remove the latch of thread `t`."""
    s.latch[t] = NONE
    s.latch_block[t] = s.latch_cond[t] = s.latch_sem[t] = 0
    s.latch_stream[t] = s.latch_target[t] = 0
    s.latch_word[t] = s.latch_pc[t] = np.uint32(0)


@njit
def _place(s: Any, t: Any, kind: Any, blocks: Any) -> None:
    if blocks == 0:
        blocks = DEFAULT_BLOCKS
    if blocks == ALL_BLOCKS:
        blocks |= HOLD_NOP
    s.latch[t], s.latch_block[t] = kind, blocks
    s.latch_word[t], s.latch_pc[t] = s.gate_word[t], s.gate_pc[t]


@njit
def stallwait(s: Any, t: Any, blocks: Any, conditions: Any) -> None:
    """Latch the STALLWAIT at the gate of thread `t`, unless none of its conditions is true."""
    if conditions == 0:
        conditions = DEFAULT_CONDITIONS
    if _bank_wait(s, conditions):
        _place(s, t, STALL, blocks)
        s.latch_cond[t], s.latch_sem[t] = conditions, 0


@njit
def semwait(s: Any, t: Any, blocks: Any, conditions: Any, selected: Any) -> None:
    """Latch the SEMWAIT at the gate of thread `t`, unless none of its conditions is true."""
    if _semaphore_wait(s, conditions, selected):
        _place(s, t, SEMAPHORE, blocks)
        s.latch_cond[t], s.latch_sem[t] = conditions, selected


@njit
def streamwait(s: Any, t: Any, blocks: Any, index: Any, selector: Any, target: Any) -> None:
    """Latch the STREAMWAIT at the gate of thread `t`, unless its condition is false already."""
    if _stream_wait(s, t, 1 << index, selector, target):
        _place(s, t, STREAM, blocks)
        s.latch_cond[t], s.latch_stream[t], s.latch_target[t] = 1 << index, selector, target


@njit
def occupy(s: Any, t: Any, number: Any) -> Any:
    """Keep the scalar unit for the word of thread `t` that waits inside it; returns `number`."""
    s.thcon[0] = t + 1
    return number


@njit
def vacate(s: Any) -> None:
    """The word that waited inside the scalar unit is done."""
    s.thcon[0] = 0
