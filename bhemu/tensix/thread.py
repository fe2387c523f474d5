"""One thread's words: brought to the wait gate, held there, executed by the units, counted."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import call_entry, l1_word
from bhemu.jit.subset import njit
from bhemu.tensix import config, in_flight, mmio, observe, rules, semaphores
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.frontend import fetch
from bhemu.tensix.insn import STALL_ANY, WAKES, WAKES_BY_BANK, WAKES_NOBODY
from bhemu.tensix.observe import nearly_full, record_word
from bhemu.tensix.state import THREADS

# An opcode that has claimed every word: `s.route` names it, its entry takes the words of all.
#
# SFPLOADMACRO does so while instructions are scheduled, because time then matters to them.


@njit(forceinline=True)
def taker(s: Any, opcode: Any) -> Any:
    """Opcode whose entry takes a word: its own, unless one has claimed every word."""
    return s.route[0] if s.route[0] else opcode


@njit
def tell_waiting(s: Any, t: Any, status: Any) -> Any:
    """Tell the opcode that has claimed every word that thread `t` waits; `status` or an error.

    The thread is passed as -1 - t, which is no thread number: so the entry tells it from a word.
    """
    told = call_entry(s.table[s.route[0]], s, np.int64(-1 - t), np.uint32(0))
    return status if told == 0 else told


@njit
def time_passes(s: Any, t: Any) -> None:
    """As `tell_waiting`, for a thread that has no word at the gate; an error stops everything."""
    told = tell_waiting(s, np.int64(t), np.int64(0)) if s.route[0] else np.int64(0)
    if told != 0:
        rules.stop(s, t, told)


# The wait gate: the wait instruction that each thread has latched, and what it holds back.
#
# A wait instruction executes at once and leaves a latch with block bits and conditions; the thread
# goes on until a word of a blocked class stands at the gate.  The latch is forgotten as soon as
# none of its conditions is true (STALLWAIT, SEMWAIT, STREAMWAIT, Blackhole ISA).  Instructions
# execute completely when they leave the gate, so conditions that ask whether a unit is busy
# (C0-C4, C9-C12) are true in the timed form alone (in_flight.py).  Some scalar instructions wait
# inside the unit: until they are done no other thread may enter it (ScalarUnit, Wormhole ISA).

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

WAIT_SRCA_FREE = rules.condition("the SrcA bank of unpacker 0 to become free (STALLWAIT C5)")
WAIT_SRCB_FREE = rules.condition("the SrcB bank of unpacker 1 to become free (STALLWAIT C6)")
WAIT_SRCA_VALID = rules.condition("the SrcA bank of the matrix unit to become valid (STALLWAIT C7)")
WAIT_SRCB_VALID = rules.condition("the SrcB bank of the matrix unit to become valid (STALLWAIT C8)")
WAIT_SEM_ZERO = rules.condition("a semaphore to become non-zero (SEMWAIT C0)")
WAIT_SEM_FULL = rules.condition("a semaphore to fall below its maximum (SEMWAIT C1)")
WAIT_PHASE = rules.condition("an overlay stream to reach a phase (STREAMWAIT C0)")
WAIT_MESSAGES = rules.condition("an overlay stream to receive messages (STREAMWAIT C1)")
WAIT_SCALAR = rules.condition("the scalar unit, which an instruction of another thread occupies")


@njit
def _stall_wait(s: Any, t: Any, conditions: Any) -> Any:
    if conditions & SRCA_FREE and s.src_valid[0, s.unpack_bank[0] & 1]:
        return WAIT_SRCA_FREE
    if conditions & SRCB_FREE and s.src_valid[1, s.unpack_bank[1] & 1]:
        return WAIT_SRCB_FREE
    if conditions & SRCA_VALID and not s.src_valid[0, s.matrix_bank[0] & 1]:
        return WAIT_SRCA_VALID
    if conditions & SRCB_VALID and not s.src_valid[1, s.matrix_bank[1] & 1]:
        return WAIT_SRCB_VALID
    return in_flight.waits(s, t, conditions) if s.timed[0] else 0


@njit
def _semaphore_wait(s: Any, conditions: Any, selected: Any) -> Any:
    if conditions & SEM_ZERO and semaphores.first_zero(s, selected) >= 0:
        return WAIT_SEM_ZERO
    if conditions & SEM_FULL and semaphores.first_full(s, selected) >= 0:
        return WAIT_SEM_FULL
    return 0


_STREAM_IDS = (
    *(tf.STREAM_ID_SYNC_SEC0_BankSel, tf.STREAM_ID_SYNC_SEC1_BankSel),
    *(tf.STREAM_ID_SYNC_SEC2_BankSel, tf.STREAM_ID_SYNC_SEC3_BankSel),
)


@njit
def stream_index(s: Any, t: Any, selector: Any) -> Any:
    """Overlay stream (0-63) of `selector` (0-3) of thread `t`: STREAM_ID_SYNC_SEC[selector]."""
    return config.thread(s, t, _STREAM_IDS[selector & 3])


@njit
def _stream_wait(s: Any, t: Any, conditions: Any, selector: Any, target: Any) -> Any:
    stream = stream_index(s, t, selector)
    if conditions == 1 << PHASE:
        return WAIT_PHASE if mmio.phase(s, stream) < target else 0
    return WAIT_MESSAGES if mmio.messages(s, stream) < target else 0


@njit
def poll(s: Any, t: Any) -> Any:
    """Condition number of the first true condition of the latch of thread `t`.

    0: no latch is in place (any more): one whose conditions are all false is forgotten.
    """
    if s.latch[t] == NONE:
        return 0
    if s.latch[t] == STALL:
        number = _stall_wait(s, t, s.latch_cond[t])
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
    if _stall_wait(s, t, conditions):
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


# One thread's words: brought to the wait gate, executed by the units, counted.
#
# `step_thread` is exact word by word. Where nothing but words is at work (no wait is latched,
# nothing observes) `_run_plain_words` executes a run of them with its counts in registers; both
# give the same.

ALL_THREADS = 0b111  # the threads, as a mask


@njit
def until_holds(s: Any) -> Any:
    """True when every until condition holds."""
    if s.until_count[0] == 0:
        return False
    for i in range(s.until_count[0]):
        if l1_word(s, s.until_address[i]) != np.int64(s.until_value[i]):
            return False
    return True


@njit
def _bank_owners(s: Any) -> Any:
    """The owners of the Src banks, as one number."""
    valid = s.src_valid[0, 0] | s.src_valid[0, 1] << 1 | s.src_valid[1, 0] << 2
    units = s.unpack_bank[0] | s.unpack_bank[1] << 1 | s.matrix_bank[0] << 2
    return valid | s.src_valid[1, 1] << 3 | units << 4 | s.matrix_bank[1] << 7


@njit
def _may_end_wait(s: Any, kind: Any, banks: Any) -> Any:
    """True when a word may have ended a wait; `banks` = _bank_owners before it."""
    if s.route[0] or kind == WAKES:
        return True
    # A word that waits inside the scalar unit looks at L1, where the packer writes.
    return kind == WAKES_BY_BANK and (banks != _bank_owners(s) or s.thcon[0] != 0)


@njit(forceinline=True)
def _bring_to_gate(s: Any, t: Any) -> Any:
    """True when a word of thread `t` stands at the gate, which its front end brings there."""
    status = fetch(s, t)
    if status == rules.DONE or status == rules.STOP_TIME:
        return status == rules.DONE
    s.gate_blocked[t] = 0
    s.sweep_due[0] &= ~(1 << t)
    if status != rules.IDLE:
        rules.stop(s, t, status)
    elif s.latch[t] == 0 or poll(s, t) == 0:  # forgotten even while no word comes
        s.sweep_idle[0] |= 1 << t
    return False


@njit
def _stay_at_gate(s: Any, t: Any, status: Any) -> None:
    """The word at the gate did not execute: it waits, or `status` is an error."""
    s.gate_full[t] = 1
    s.gate_blocked[t] = max(status, 0)
    s.sweep_due[0] &= ~(1 << t)
    if status < 0:
        rules.stop(s, t, status)


@njit
def _count_words(s: Any, t: Any, n: Any) -> None:
    """`n` words have left the gate of thread `t`, and none stands there."""
    s.executed[t] += n
    s.clock[0] += n
    s.progress[0] += n
    s.sweep_left[0] -= n
    s.look_left[0] -= n


@njit
def _wake_threads(s: Any, t: Any, kind: Any) -> Any:
    """A word of thread `t` may have ended waits: True when another thread must be asked.

    A bank that changes hands ends no wait for a semaphore.
    """
    due = ALL_THREADS & ~s.sweep_idle[0]
    if kind == WAKES_BY_BANK:
        for other in range(THREADS):
            waits = s.gate_blocked[other]
            if waits == WAIT_SEM_ZERO or waits == WAIT_SEM_FULL:
                due &= ~(1 << other)
    s.sweep_due[0] |= due
    return s.sweep_due[0] & ~(1 << t) != 0


@njit
def _until_reached(s: Any) -> Any:
    """True when a word has written to L1 and every until condition holds."""
    if s.l1_written[0] == 0:
        return False
    s.l1_written[0] = 0
    return until_holds(s)


@njit
def _step_word(s: Any, t: Any) -> Any:
    """Execute the word at the gate, looked at from all sides; True when it has left."""
    word = s.gate_word[t]
    opcode = np.int64(word) >> 24
    status = hold(s, t, opcode)
    if status == rules.DONE and s.trace[0] and observe.log_ended(s):
        s.gate_full[t] = 1
        rules.stop(s, t, rules.STOP_STEP)
        return False
    if status == rules.DONE and s.word_break_count[0] and observe.stands(s, t, word):
        s.gate_full[t] = 1
        rules.stop(s, t, rules.STOP_BREAKPOINT)
        return False
    banks, kind = _bank_owners(s), s.wakes[opcode]
    if status == rules.DONE:
        status = call_entry(s.table[taker(s, opcode)], s, np.int64(t), word)
    elif s.route[0]:
        status = tell_waiting(s, t, status)
    if status != rules.DONE:
        _stay_at_gate(s, t, status)
        return False
    s.gate_full[t] = s.gate_blocked[t] = 0
    s.op_count[t, opcode] += 1
    _count_words(s, t, 1)
    if _may_end_wait(s, kind, banks) and _wake_threads(s, t, kind):
        s.sweep_left[0] = 0
    status = rules.STOP_UNTIL if _until_reached(s) else 0
    if s.watch_count[0] and observe.changed(s):
        status = rules.STOP_WATCH
    if s.trace[0]:
        record_word(s, t)
        if nearly_full(s) and status == 0:
            status = rules.STOP_LOG
    if status != 0:
        rules.stop(s, t, status)
    return True


@njit
def _may_wait(s: Any, t: Any) -> Any:
    """True when thread `t` may have to wait, or words are looked at by more than their unit."""
    return s.latch[t] | s.thcon[0] | s.route[0] != 0


@njit
def _run_plain_words(s: Any, t: Any) -> Any:
    """Execute words of thread `t` while all is plain; returns how many.

    Over with sweep_left or look_left, where the thread cannot go on, where another must be asked.
    """
    most = min(s.sweep_left[0], s.look_left[0])
    if s.executed_limit[t] >= 0:
        most = min(most, s.executed_limit[t] - s.executed[t])
    n, counted, asks = np.int64(0), np.int64(0), False
    alone = s.sweep_idle[0] | 1 << t == ALL_THREADS
    while n < most and _bring_to_gate(s, t):
        word = s.gate_word[t]
        opcode = np.int64(word) >> 24
        kind = s.wakes[opcode]
        if kind == WAKES:  # it may read the clock
            s.clock[0] += n - counted
            counted = n
        banks = _bank_owners(s) if kind == WAKES_BY_BANK and not alone else np.int64(0)
        status = call_entry(s.table[opcode], s, np.int64(t), word)
        if status != rules.DONE:
            _stay_at_gate(s, t, status)
            break
        n += 1
        s.op_count[t, opcode] += 1
        if kind == WAKES_NOBODY:
            continue
        asks = not alone and _may_end_wait(s, kind, banks) and _wake_threads(s, t, kind)
        if _until_reached(s):
            rules.stop(s, t, rules.STOP_UNTIL)
            break
        if asks or _may_wait(s, t):
            break
    s.clock[0] -= counted
    _count_words(s, t, n)
    if asks:
        s.sweep_left[0] = 0
    return n


@njit
def step_thread(s: Any, t: Any) -> Any:
    """Execute up to sweep_left words of thread `t`; returns how many.

    Ends after a word that may have ended another thread's wait, and where a look is due; sweep_due
    says which threads must be tried. Where no word can go on, sweep_due says so and gate_blocked
    what it waits for. status[0] is set when everything must stop.
    """
    n = np.int64(0)
    while s.sweep_left[0] > 0 and s.sweep_due[0] >> t & 1 and s.status[0] == 0:
        looked_at = s.trace[0] | s.watch_count[0] | s.word_break_count[0]
        if not (_may_wait(s, t) or s.gate_full[t] or looked_at):
            done = _run_plain_words(s, t)
            n += done
            if done > 0:
                continue
            if s.sweep_due[0] >> t & 1 == 0:
                return n
        if s.gate_full[t] == 0:
            if not _bring_to_gate(s, t):
                return n
            s.gate_full[t] = 1
        if s.look_left[0] <= 0:
            return n
        if s.executed[t] == s.executed_limit[t]:
            rules.stop(s, t, rules.STOP_STEP)
            return n
        n += 1 if _step_word(s, t) else 0
    return n
