"""A core in time: when its next instruction can begin, and when its result is there.

One instruction begins in a cycle, in order; it waits for the registers that it reads. Figures: the
sets `riscvbench` of public measurements (one card, throughput of unrolled loops); docs/timing.md
lists them.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import debug_port, debug_regs, niu, noc_map
from bhemu.jit.intrinsics import l1_word
from bhemu.jit.subset import njit
from bhemu.riscv import l0_cache, semantics, turn
from bhemu.riscv.formats import Atomic, Branch, Load, Register, RegisterImmediate, Store
from bhemu.riscv.isa import rv32i
from bhemu.tensix import observe, state
from bhemu.tensix.frontend import put, queued
from bhemu.timing import draws
from bhemu.timing.cycles import PARTS

_LOAD, _STORE, _ATOMIC = Load.code(), Store.code(), Atomic.code()
_REGISTER, _BRANCH = Register.code(), Branch.code()
_UPPER = (rv32i.LUI.match & 0x7F, rv32i.AUIPC.match & 0x7F, rv32i.JAL.match & 0x7F)
_JUMP, _FENCE = rv32i.JALR.match & 0x7F, rv32i.FENCE.match & 0x7F


def _opcodes(*chosen: int) -> Any:
    """By opcode: 1 of these."""
    return np.isin(np.arange(128), chosen).astype(np.int64)


_NO_RS1 = _opcodes(*_UPPER, _FENCE)
_RS2 = _opcodes(_REGISTER, _STORE, _BRANCH, _ATOMIC)
_ALONE = _opcodes(*_UPPER, _JUMP, _REGISTER, _BRANCH, RegisterImmediate.code())
_M = rv32i.MUL.match >> 25  # funct7 of products and, with bit 14, of divisions

LOCAL_LOAD = 2  # cycles until the value: rv_load_stack 2.02
L0_LOAD = 2  # isa: BabyRISCV, load latency of L1 with L0 data cache hit
L1_LOAD = 8  # rv_load_chase 8.13
L1_LOAD_EVERY = 29  # sixteenths between two loads of L1: rv_load_indep 1.79
L1_STORE_EVERY = 85  # sixteenths between two stores to lines of L1: rv_store_spread 5.32
PORT_LOAD_EVERY = 11  # sixteenths, of all cores: rv_load_indep of three threads 2.18
PORT_STORE_EVERY = 48  # sixteenths, of all cores: rv_store_spread of three threads 9.02
_STORES, _LOADS = 0, 1  # ports
NOTHING, DONE, STORED = range(3)  # from `executes`
_NCRISC = mm.CORE_NAMES.index("ncrisc")
_LOCAL = state.OFFSET["local"]
DEVICE_LOAD = 8  # estimate: as a load of L1
MULTIPLY = 2  # rv_mul_dep 2.02
DIVIDE_FIRST, DIVIDE_BIT = 9, 18  # sixteenths: 14.04 at 12 bits of the dividend, 33.10 at 29
ATOMIC = 12  # isa: BabyRISCV, at least 12
STORES = 4  # estimate: stores to L1 that a core does not wait for
NUMBER = 8  # in `store_size`: the number of a store above its bytes


@njit
def target(s: Any, c: Any, word: Any) -> Any:
    """Address that a load, store or atomic names."""
    return turn.accessed(word, np.int64(s.regs[c, word >> 15 & 31]))


@njit
def _is_local(c: Any, address: Any) -> Any:
    return mm.LOCAL_BASE <= address < mm.LOCAL_BASE + mm.LOCAL_SIZES[c]


@njit
def word_at(s: Any, c: Any) -> Any:
    """The instruction at the pc of core `c`, 0 outside L1."""
    pc = np.int64(s.pc[c])
    return l1_word(s, pc) if pc < mm.L1_SIZE and pc & 3 == 0 else np.int64(0)


@njit
def ready(s: Any, c: Any, word: Any) -> Any:
    """The cycle in which the registers and ports that an instruction needs are there."""
    opcode, when = word & 0x7F, s.clock[0]
    if word & 3 != 3 or s.fresh[c]:
        return when
    if _NO_RS1[opcode] == 0:
        when = max(when, s.core_ready[c, word >> 15 & 31])
    if _RS2[opcode]:
        when = max(when, s.core_ready[c, word >> 20 & 31])
    if when > s.clock[0]:
        return when
    if opcode == _LOAD:
        address = target(s, c, word)
        if address < mm.L1_SIZE and not l0_cache.hits(s, c, address, np.int64(L1_LOAD)):
            when = max(when, s.core_load[c] // PARTS)
    if opcode == _STORE and target(s, c, word) < mm.L1_SIZE:
        when = max(when, (s.core_store[c] - STORES * L1_STORE_EVERY) // PARTS)
    return when


@njit
def tells(s: Any, c: Any, word: Any) -> Any:
    """Whether what waits for others is to be asked after an instruction: not after one of L1."""
    opcode = word & 0x7F
    if word & 3 != 3 or s.fresh[c]:
        return True
    if opcode == _LOAD or opcode == _STORE or opcode == _ATOMIC:
        address = target(s, c, word)
        return address >= mm.L1_SIZE and not _is_local(c, address)
    return _ALONE[opcode] == 0


@njit
def _leaves(s: Any, c: Any, address: Any, size: Any) -> None:
    """A store to L1 that is late: requests of its core to the NoC see what was there before."""
    if s.timed[0] != state.DRAWN or address + size > mm.L1_SIZE:
        return
    late = draws.late(s, np.int64(state.AGENTS) + c, np.int64(s.pc[c]), np.int64(draws.ANY))
    i, last = np.int64(0), np.int64(0)
    for k in range(state.STORE_QUEUE):
        last = max(last, s.store_due[c, k])
        if s.store_size[c, k] < s.store_size[c, i]:
            i = np.int64(k)  # the oldest
    if late == 0 and last <= s.clock[0]:
        return  # as nearly always
    s.store_at[c, i], s.store_size[c, i] = address, s.store_next[c] << NUMBER | size
    s.store_due[c, i] = max(last, s.clock[0] + late)  # stores arrive in order
    s.store_old[c, i] = 0
    for k in range(size):
        s.store_old[c, i] |= np.int64(s.l1[address + k]) << (8 * k)


@njit
def _drain(s: Any, c: Any) -> None:
    """All stores have left the store queue, as after that many more."""
    for i in range(state.STORE_QUEUE):
        drained = (s.store_size[c, i] >> NUMBER) + state.STORE_QUEUE
        s.store_next[c] = max(s.store_next[c], drained)


@njit
def _arrived(s: Any, c: Any, address: Any, reaches: Any) -> None:
    """What a load or atomic of L1 comes after has arrived: stores to what it reads, those before.

    reaches: it goes to L1, which takes the requests of a core in order: it comes after all stores
    that have left the store queue (MemoryOrdering: a load of the same region is a weaker case).
    """
    due = np.int64(0)
    for i in range(state.STORE_QUEUE):
        left = s.store_size[c, i] >> NUMBER <= s.store_next[c] - state.STORE_QUEUE
        if (reaches and left) or address >> 2 == s.store_at[c, i] >> 2:
            due = max(due, s.store_due[c, i])
    for i in range(state.STORE_QUEUE):
        if s.store_due[c, i] <= due:
            s.store_due[c, i] = 0


@njit
def take_port(s: Any, c: Any, cycle: Any) -> None:
    """A load of L1 by core `c` in a cycle takes its turn at the port."""
    start = max(s.core_load[c], cycle * PARTS, s.l1_port[_LOADS])
    s.core_load[c], s.l1_port[_LOADS] = start + L1_LOAD_EVERY, start + PORT_LOAD_EVERY


@njit
def begin(s: Any, c: Any, word: Any) -> Any:
    """An instruction begins: note when its result is there; cycles until the next may begin."""
    opcode, cycles, rd = word & 0x7F, np.int64(1), word >> 7 & 31
    if word & 3 != 3 or s.fresh[c]:
        return cycles
    result = np.int64(1)
    if opcode == _LOAD:
        address = target(s, c, word)
        result = np.int64(LOCAL_LOAD if _is_local(c, address) else DEVICE_LOAD)
        if address < mm.L1_SIZE:
            hit = l0_cache.hits(s, c, address, np.int64(L1_LOAD))
            _arrived(s, c, address, not hit)
            result = np.int64(L0_LOAD if hit else L1_LOAD)
            if not hit:  # the next load of L1 begins later
                take_port(s, c, s.clock[0])
    elif opcode == _FENCE:
        _drain(s, c)
    elif opcode == _ATOMIC:
        _drain(s, c)
        _arrived(s, c, target(s, c, word), True)
        result = np.int64(ATOMIC)
    elif opcode == _REGISTER and word >> 25 == _M:
        if word >> 14 & 1:
            # A division: its cycles grow with the significant bits of the dividend.
            value, bits = np.int64(s.regs[c, word >> 15 & 31]), np.int64(0)
            while value:
                value >>= 1
                bits += 1
            result = cycles = (DIVIDE_FIRST + DIVIDE_BIT * bits) // PARTS
        else:
            result = np.int64(MULTIPLY)
    elif opcode == _STORE:
        s.store_next[c] += 1
        address = target(s, c, word)
        if address < mm.L1_SIZE:
            _leaves(s, c, address, np.int64(1) << (word >> 12 & 3))
            line = (address >> 4) + 1
            if line != s.core_line[c]:
                start = max(s.core_store[c], s.clock[0] * PARTS, s.l1_port[_STORES])
                s.core_store[c] = start + L1_STORE_EVERY
                s.l1_port[_STORES] = start + PORT_STORE_EVERY
            s.core_line[c] = line
    if opcode != _STORE and opcode != _BRANCH and rd:
        s.core_ready[c, rd] = s.clock[0] + result
    return cycles


@njit
def is_looked_at(s: Any, c: Any) -> Any:
    """Whether somebody wants to see each instruction of core `c`."""
    if s.count_passes[0] == 0 or s.l0[0] or s.watch_count[0] or s.retired_limit[c] >= 0:
        return True
    return s.breakpoint_count[c] != 0 or debug_port.watches(s, c)


@njit
def _pushes(s: Any, c: Any, word: Any) -> Any:
    """Push the word of a `.ttinsn` where nothing is in its way."""
    pc, t = np.int64(s.pc[c]), max(c - 1, 0)
    if pc >= mm.L1_SIZE or pc & 3 or c == _NCRISC or debug_regs.controlled(s, t):
        return np.int64(NOTHING)
    if queued(s, t) >= state.FIFO_DEPTH or s.sweep_open[0]:
        return np.int64(NOTHING)
    put(s, t, c, turn.pushed(word), s.pc[c])
    s.stored[c], s.core_address[c] = 1, np.uint32(mm.INSTRN_BUF_BASE)
    s.pc[c] = np.uint32(pc + 4)
    return np.int64(DONE)


@njit
def executes(s: Any, c: Any, word: Any) -> Any:
    """Execute an instruction that stays within registers, L1 and local memory, as run_core would.

    Or push a word.

    NOTHING is done where it is none of these, or somebody looks at each instruction. STORED: until
    words may hold.
    """
    if s.core_state[c] != state.RUNNING or s.fresh[c] or is_looked_at(s, c):
        return np.int64(NOTHING)
    done = np.int64(DONE)
    if word & 3 != 3:
        done = _pushes(s, c, word)
    else:
        pc, end, none = np.int64(s.pc[c]), noc_map.l1_end(s), np.uint8(0)
        local, room = np.int64(_LOCAL + c * state.LOCAL_SIZE), np.int64(mm.LOCAL_SIZES[c])
        target = semantics.step(s, c, pc, word, local, room, end, none)
        if target < 0:
            return np.int64(NOTHING)
        s.pc[c] = np.uint32(target & 0xFFFFFFFF)
        done = np.int64(STORED) if target >= semantics.LEAVE else done
    if done != NOTHING:
        s.retired[c] += 1
        s.left[c] = 0
    return done


@njit
def give_up(s: Any, c: Any, word: Any) -> None:
    """The instruction that has begun waits for others: it begins anew, and gives no result yet."""
    opcode = word & 0x7F
    if opcode == _LOAD or opcode == _ATOMIC:
        s.core_ready[c, word >> 7 & 31] = 0
    elif opcode == _STORE:
        s.store_next[c] -= 1


@njit
def mark(s: Any, c: Any, word: Any) -> Any:
    """What the counter of an NIU that an instruction loads counts, 0: it loads none."""
    if word & 0x7F != _LOAD or s.fresh[c]:
        return np.int64(0)
    at = target(s, c, word) - mm.NOC0_BASE
    if at < 0 or at >= 2 * mm.NOC_SIZE:
        return np.int64(0)
    counter = ((at % mm.NOC_SIZE) - mm.NIU_COUNTERS) >> 2
    if counter == niu.READ_ANSWERS:
        return np.int64(observe.NOC_READ)
    if counter == niu.ACKS or niu.OUTSTANDING <= counter < niu.OUTGOING:
        return np.int64(observe.NOC_ACK)
    return np.int64(observe.NOC_ATOMIC if counter == niu.ATOMIC_ANSWERS else 0)
