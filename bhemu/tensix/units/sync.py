"""Front-end instructions and the sync unit: MOP, REPLAY, NOP; semaphores, mutexes and waits."""

from typing import Any

import numpy as np

from bhemu.bits import choice, number
from bhemu.jit.subset import njit
from bhemu.tensix import config, frontend, insn, semaphores, spaces, thread
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import WAKES_BY_BANK, WAKES_NOBODY, Instruction, bits
from bhemu.tensix.rules import DONE, NCB, UB, condition, error, undefined
from bhemu.tensix.spaces import Kind


class MOP(Instruction, opcode=frontend.MOP, unit="front"):
    """Expand the macro-operation held in the MOP configuration (MOPExpander, Blackhole ISA)."""

    reads = spaces.SLOTS
    writes = spaces.SLOTS

    zmask_lo16_or_loop_count = bits(15, 0).meaning(
        "template 0: low half of the zero mask, in which a set bit skips a step; template 1: 0"
    )
    loop_count = bits(22, 16, number("template 0: steps, less one; template 1: 0"))
    mop_type = bits(23, 23, mode=True).meaning("""
        0: template 0: steps with a zero mask
        1: template 1: two nested loops""")


class NOP(Instruction, opcode=frontend.NOP, unit="front", stall="all nine", wakes=WAKES_NOBODY):
    """Occupy one slot of the wait gate (gpr-and-dma-instructions.md)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return DONE


class MOP_CFG(Instruction, opcode=frontend.MOP_CFG, unit="front"):
    """Set the upper half of the zero mask of the next MOP (MOPExpander, Blackhole ISA)."""

    writes = spaces.SLOTS

    zmask_hi16 = bits(15, 0, number("high half of the zero mask of the next MOP with template 0"))


class REPLAY(Instruction, opcode=frontend.REPLAY, unit="front"):
    """Record words into, or play words from, the replay buffer (REPLAY, Blackhole ISA)."""

    reads = spaces.SLOTS
    writes = spaces.SLOTS

    load_mode = bits(0, 0, choice("plays", "records"), mode=True)
    execute_while_loading = bits(
        1, 1, choice("recorded words do not execute", "recorded words execute, too"), mode=True
    )
    len = bits(13, 4, number("words; 0: all 32 of the buffer"))
    start_idx = bits(23, 14, number("first slot of the buffer"))


class RESOURCEDECL(
    Instruction,
    opcode=frontend.RESOURCEDECL,
    unit="front",
    stall="never",
    oracle=False,
    uncertain=True,
):
    """Declare resources to Auto TTSync (mop-and-replay-expanders.md)."""

    op_class = bits(3, 0, insn.IGNORED)
    resources = bits(12, 4, insn.IGNORED)
    linger_time = bits(23, 13, insn.IGNORED)


# Sync unit: semaphores, mutexes and the wait instructions.


MUTEXES = 0b11101  # Blackhole has mutexes 0, 2, 3 and 4

WAIT_MUTEX = condition("a mutex held by another thread")
WAIT_NO_MUTEX = condition("a mutex that does not exist (Blackhole has 0, 2, 3 and 4): for ever")

MUTEX_INDEX = error("MUTEX-INDEX", UB, "mutex_index {mutex} does not exist: Blackhole has mutexes 0, 2, 3 and 4", "use one of them")  # fmt: skip
MUTEX_TWICE = error("MUTEX-TWICE", NCB, "ATGETM of mutex {mutex} by thread {thread}, which holds it already", "release it with ATRELM first")  # fmt: skip
MUTEX_OWNER = error("MUTEX-OWNER", NCB, "ATRELM of mutex {mutex} by thread {thread}, which does not hold it", "acquire it with ATGETM first")  # fmt: skip
SEM_INIT = error("SEM-INIT", NCB, "SEMINIT with init_value {init_value} above max_value {max_value}", "give max_value at least init_value")  # fmt: skip
SEM_CONDITION = error("SEM-CONDITION", UB, "SEMWAIT with wait_sem_cond 0 waits for nothing that is defined", "set bit 0 (while zero) or bit 1 (while at the maximum)")  # fmt: skip


@njit
def _bad_mutex(s: Any, t: Any, mutex_index: Any) -> Any:
    if mutex_index < 5 and (MUTEXES >> mutex_index) & 1:
        return DONE
    if s.gate_blocked[t] == WAIT_NO_MUTEX:
        return WAIT_NO_MUTEX  # a retry: the rule is counted already
    status = undefined(s, MUTEX_INDEX, mutex=mutex_index)
    return status if status else WAIT_NO_MUTEX


@njit
def _acquiring(s: Any, t: Any, mutex_index: Any) -> Any:
    """True while an ATGETM of the mutex waits at the gate of thread `t`."""
    waits = s.gate_full[t] and s.gate_blocked[t] == WAIT_MUTEX
    return waits and np.int64(s.gate_word[t]) & 0xFFFF == mutex_index


class _Mutex(Instruction, unit="sync"):
    """One of the mutexes."""

    reads = spaces.mutex("mutex_index")
    writes = spaces.mutex("mutex_index")

    mutex_index = bits(15, 0, choice({i: f"mutex {i}" for i in range(5) if MUTEXES >> i & 1}))


class ATGETM(_Mutex, opcode=0xA0):
    """Acquire a mutex, waiting until no other thread holds it (ATGETM, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _bad_mutex(s, t, f.mutex_index)
        if status:
            return status
        holder = s.mutex[f.mutex_index & 7]
        if holder == t + 1:
            return undefined(s, MUTEX_TWICE, mutex=f.mutex_index, thread=t)
        chosen = s.mutex_next[f.mutex_index & 7]
        if holder or (chosen and chosen != t + 1):
            return WAIT_MUTEX
        s.mutex[f.mutex_index & 7] = t + 1
        s.mutex_next[f.mutex_index & 7] = 0
        s.mutex_core[f.mutex_index & 7] = s.gate_core[t]
        s.mutex_pc[f.mutex_index & 7] = s.gate_pc[t]
        return DONE


class ATRELM(_Mutex, opcode=0xA1):
    """Release a mutex (ATRELM, Wormhole ISA).

    When both other threads wait for it, the next one in cyclic order gets it.
    """

    writes = spaces.mutex("mutex_index", effect=Kind.RELEASES)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _bad_mutex(s, t, f.mutex_index)
        if status:
            return status
        if s.mutex[f.mutex_index & 7] != t + 1:
            return undefined(s, MUTEX_OWNER, mutex=f.mutex_index, thread=t)
        s.mutex[f.mutex_index & 7] = 0
        if _acquiring(s, (t + 1) % 3, f.mutex_index) and _acquiring(s, (t + 2) % 3, f.mutex_index):
            s.mutex_next[f.mutex_index & 7] = (t + 1) % 3 + 1
        return DONE


class STALLWAIT(Instruction, opcode=0xA2, unit="sync", stall="any", wakes=WAKES_BY_BANK):
    """Hold instruction classes until units and banks are ready (STALLWAIT, Blackhole ISA)."""

    reads = spaces.BANKS
    writes = spaces.LATCH

    wait_res = bits(12, 0, insn.CONDITIONS)
    stall_res = bits(23, 15, insn.BLOCKS)

    def execute(s: Any, t: Any, f: Any) -> Any:
        thread.stallwait(s, t, f.stall_res, f.wait_res)
        return DONE


class SEMINIT(Instruction, opcode=0xA3, unit="sync"):
    """Set value and maximum of the selected semaphores (SEMINIT, Blackhole ISA)."""

    writes = (
        spaces.sem("sem_sel", Kind.SETS_ABOVE_ZERO).when("init_value")
        | spaces.sem("sem_sel", Kind.SETS_BELOW_MAXIMUM).when("init_value < max_value")
        | spaces.sem("sem_sel")
    )

    sem_sel = bits(9, 2, insn.SEMAPHORES)
    init_value = bits(19, 16, number("value"))
    max_value = bits(23, 20, number("maximum"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.init_value > f.max_value:
            status = undefined(s, SEM_INIT, init_value=f.init_value, max_value=f.max_value)
            if status:
                return status
        for i in range(semaphores.COUNT):
            if (f.sem_sel >> i) & 1:
                s.sem[i] = f.init_value
                s.sem_max[i] = f.max_value
        return DONE


class SEMPOST(Instruction, opcode=0xA4, unit="sync"):
    """Increment the selected semaphores, up to 15 (SEMPOST, Blackhole ISA)."""

    reads = spaces.sem("sem_sel")
    writes = spaces.sem("sem_sel", Kind.POSTS)

    sem_sel = bits(9, 2, insn.SEMAPHORES)

    def execute(s: Any, t: Any, f: Any) -> Any:
        full = semaphores.first_full(s, f.sem_sel)
        if full >= 0:
            status = semaphores.posted_full(s, full, s.sem_max[full])
            if status:
                return status
        for i in range(semaphores.COUNT):
            if (f.sem_sel >> i) & 1:
                semaphores.post(s, i)
                semaphores.note(s, i, np.int64(0), t, s.gate_core[t], s.gate_pc[t])
        return DONE


class SEMGET(Instruction, opcode=0xA5, unit="sync"):
    """Decrement the selected semaphores, down to 0 (SEMGET, Blackhole ISA)."""

    reads = spaces.sem("sem_sel")
    writes = spaces.sem("sem_sel", Kind.TAKES)

    sem_sel = bits(9, 2, insn.SEMAPHORES)

    def execute(s: Any, t: Any, f: Any) -> Any:
        empty = semaphores.first_zero(s, f.sem_sel)
        if empty >= 0:
            status = undefined(s, semaphores.GET_EMPTY, semaphore=empty)
            if status:
                return status
        for i in range(semaphores.COUNT):
            if (f.sem_sel >> i) & 1:
                semaphores.get(s, i)
                semaphores.note(s, i, np.int64(1), t, s.gate_core[t], s.gate_pc[t])
        return DONE


class SEMWAIT(Instruction, opcode=0xA6, unit="sync", stall="any", wakes=WAKES_BY_BANK):
    """Hold instruction classes until semaphore conditions are met (SEMWAIT, Blackhole ISA)."""

    reads = spaces.sem("sem_sel")
    writes = spaces.LATCH

    wait_sem_cond = bits(1, 0, mode=True).meaning(
        choice(
            {1: "is above 0", 2: "is below its maximum", 3: "is above 0 and below its maximum"},
            about="what is waited for, of each semaphore that is selected",
        )
    )
    sem_sel = bits(9, 2, insn.SEMAPHORES)
    stall_res = bits(23, 15, insn.BLOCKS)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.wait_sem_cond == 0:
            return SEM_CONDITION
        thread.semwait(s, t, f.stall_res, f.wait_sem_cond, f.sem_sel)
        return DONE


class STREAMWAIT(Instruction, opcode=0xA7, unit="sync", stall="any", oracle=False):
    """Hold instruction classes until a stream register has a value (STREAMWAIT, Blackhole ISA)."""

    reads = spaces.STREAMS | spaces.thread_cfg("STREAMWAIT_*", "STREAM_ID_SYNC_*")
    writes = spaces.LATCH

    wait_stream_sel = bits(1, 0, insn.STREAM_SELECTOR)
    target_sel = bits(3, 3, mode=True).meaning("""what is waited for
        0: the phase of the stream
        1: the messages it has received""")
    target_value = bits(13, 4).meaning(
        "low 10 bits of the awaited value; the others are in STREAMWAIT_PHASE_HI_Val or "
        "STREAMWAIT_NUM_MSGS_HI_Val"
    )
    stall_res = bits(23, 15, insn.BLOCKS)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.target_sel == thread.PHASE:
            high = config.thread(s, t, tf.STREAMWAIT_PHASE_HI_Val)
        else:
            high = config.thread(s, t, tf.STREAMWAIT_NUM_MSGS_HI_Val)
        target = (high << 10) | f.target_value
        thread.streamwait(s, t, f.stall_res, f.target_sel, f.wait_stream_sel, target)
        return DONE
