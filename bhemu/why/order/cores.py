"""The engine of the cores in an observed run: single instructions, and the places they access."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.jit.intrinsics import call_access, call_step, l1_word
from bhemu.jit.subset import njit
from bhemu.riscv import turn
from bhemu.riscv.assembly import SP
from bhemu.riscv.formats import Atomic, Branch, Fence, Load, Register, RegisterImmediate, Store
from bhemu.riscv.isa import rv32i
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.rules import STOP_STEP, STOP_TIME
from bhemu.tensix.state import CORES, RESET, THREADS
from bhemu.timing.core import word_at
from bhemu.why import order as r
from bhemu.why.order import clocks, polls, shadow, words

_ATOMIC, _FENCE = Atomic.code(), Fence.code()
_LOADS, _STORES = (Load.code(), _ATOMIC), (Store.code(), _ATOMIC)
_SLICE = 1 << 14  # instructions between looks at the time
_RESETS = mm.DEBUG_BASE + mm.RISCV_DEBUG_REG_SOFT_RESET_0
_DST_WINDOW = 0x8000
_READS, _WRITES = 1, 2
_QUIET = 64  # instructions that are looked at together
_BRANCH = Branch.code()
_DROPS = (_FENCE, _ATOMIC)
_DEEP = 1 << 20  # bytes that no stack has
_COMPUTES = (Register.code(), RegisterImmediate.code(), rv32i.LUI.match & 0x7F)


@njit
def _before(s: Any, o: Any, c: Any, pc: Any, word: Any, way: Any, address: Any) -> None:
    """Keep what is needed of the state before an instruction."""
    pushes = way & _WRITES and mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END
    if way and s.fresh[c] == 0:  # note the first time that sp is below the end of the data
        sp, one = np.int64(s.regs[c, SP]), o.stack[c]
        if mm.LOCAL_BASE <= sp <= mm.LOCAL_BASE + mm.LOCAL_SIZES[0]:
            one[r.S_START] = max(one[r.S_START], sp)
        known = one[r.S_START] > one[r.S_END]  # else its ELF counts the stack among the data
        near = sp >= mm.LOCAL_BASE or one[r.S_START] - sp < _DEEP
        if one[r.S_PC] == 0 and known and sp < one[r.S_END] and near:
            one[r.S_PC], one[r.S_SP], one[r.S_TIME] = pc, sp, clocks.now(s)
    if word & 3 != 3 or pushes:
        t = c - 1 if c else (address - mm.INSTRN_BUF_BASE) >> 16 if pushes else np.int64(0)
        if t < THREADS:
            clocks.pushes(o, c, t, s.fifo_write[t])
    elif way & _WRITES and mm.TENSIX_CFG_BASE <= address < mm.TENSIX_CFG_END:
        words.keep_config(s, o)
    elif way & _READS and address < mm.L1_SIZE:
        if polls.is_poll(s, o, c, pc, address):
            polls.slot_of(o, address >> 2)
        slot = np.int64(o.slot[address >> 2]) - 1
        if way == _READS and slot >= 0:
            polls.begins(s, o, c, pc, word, address, slot)
        elif way == _READS and polls.site(s, o, pc) & polls.DATA == 0:
            polls.begins(s, o, c, pc, word, address, np.int64(polls.AT_DATA))
    elif o.tiles[0] and way == _READS:
        counter = polls.counter_at(address)
        if counter >= 0:
            polls.begins(s, o, c, pc, word, address, polls.COUNTER_LOOK - counter)


@njit
def _touches(s: Any, o: Any, agent: Any, way: Any, low: Any, high: Any) -> None:
    """A load or store of places other than L1."""
    for write in range(2):
        if way >> write & 1:
            one = shadow.event(s, o, agent, np.int64(write))
            for cell in range(low, high):
                shadow.place(o, agent, np.int64(cell), one, np.int64(write))


@njit
def _gpr(s: Any, o: Any, c: Any, way: Any, address: Any) -> None:
    """A core accesses a GPR; by a poll of it the core may wait for its thread."""
    index = (address - mm.GPR_BASE >> 2) + (0 if c == 0 else 64 * (c - 1))
    agent, cell = np.int64(c), np.int64(r.GPRS + 2 * index)
    if way == _READS and polls.site(s, o, o.step[0]) & polls.SPINS:
        if o.polled_gpr[index] == 0 and o.writer[cell]:
            clocks.join_agent(o, agent, o.event[o.writer[cell], 0])
        o.polled_gpr[index] = 1
        clocks.acquire(o, agent, np.int64(clocks.GPR | index))
        return
    _touches(s, o, agent, way, cell, cell + 2)


@njit
def _pcbuf(s: Any, o: Any, c: Any, way: Any, offset: Any, value: Any) -> None:
    agent = np.int64(c)
    if c == 0 or offset < mm.PC_BUF_TTSYNC_OFFSET:
        name = np.int64(clocks.PCBUF | (offset >> 16 if c == 0 else c - 1))
        if way & _READS:
            clocks.acquire(o, agent, name)
        else:
            clocks.release(o, agent, name)
    elif mm.PC_BUF_SEMAPHORES_OFFSET <= offset < mm.PC_BUF_SEMAPHORES_END_OFFSET:
        i = offset - mm.PC_BUF_SEMAPHORES_OFFSET >> 2
        if way & _READS:
            clocks.sem_seen(o, agent, i)
        else:
            clocks.sem_change(o, agent, i, value & 1)
    elif way & _READS:
        if offset == mm.PC_BUF_TTSYNC_OFFSET:
            t = c - 1
            clocks.join_agent(o, agent, r.ISSUE + t)
            for unit in range(r.UNITS):
                clocks.join_agent(o, agent, r.UNIT + t * r.UNITS + unit)
        elif offset == mm.PC_BUF_MOP_SYNC_OFFSET:
            clocks.reach(o.clocks[c], r.ISSUE + c - 1, o.mop[c - 1, 1])
            clocks.reach(o.clocks[c], o.mine[0] + r.ISSUE + c - 1, o.mop[c - 1, 1])
        clocks.join_agent(o, agent, r.STORES + c)
        clocks.changed(o, agent, True)


@njit
def _device(s: Any, o: Any, c: Any, way: Any, address: Any, sent: Any) -> None:
    """Any other register: its reader comes after its writer. A store to NOC_CMD_CTRL may send a
    request; that moves bytes of L1, or is like any other store.

    sent: the requests of the tile that were under way before.
    """
    agent, name = np.int64(c), address & ~3
    is_noc = mm.NOC0_BASE <= address < mm.OVERLAY_BASE and way & _WRITES
    sends = is_noc and address % mm.NOC_CMD_BUF_OFFSET == mm.NOC_CMD_CTRL
    if sends and s.noc_requests[0] > sent:
        row = s.noc_request[s.noc_requests[0] - 1]
        if o.tiles[0]:
            polls.sends(s, o, c, row)
        reads = row[request.CONTROL] & 3 == request.READ
        if reads or request.takes_data(row[request.CONTROL]):
            low, high = row[request.LOCAL], row[request.LOCAL] + request.size(row)
            what, zero = np.int64(shadow.ASKED), np.int64(-1)
            shadow.note(s, o, what, zero, np.int64(reads), o.step[0], c, low, high)
            return
    if mm.MAILBOX_BASE <= address < mm.MAILBOX_END:
        other = address - mm.MAILBOX_BASE >> 12
        name = np.int64(clocks.MAILBOX | min(c, other) << 8 | max(c, other))
    if way & _READS:
        clocks.acquire(o, agent, name)
        counter = polls.counter_at(address)
        if counter >= 0:
            o.counter_seen[c, counter >> 6, counter & 63] = o.clocks[c, c]
    if way & _WRITES:
        clocks.join_agent(o, agent, r.STORES + c)
        clocks.release(o, agent, name)


@njit
def _access(
    s: Any, o: Any, c: Any, word: Any, way: Any, address: Any, value: Any, sent: Any
) -> None:
    """A core has executed a load, store or atomic."""
    agent = np.int64(c)
    size = np.int64(4) if word & 0x7F == _ATOMIC else np.int64(1) << (word >> 12 & 3)
    if mm.LOCAL_BASE <= address < mm.LOCAL_BASE + mm.LOCAL_SIZES[0]:
        return
    if address < mm.L1_SIZE:
        if way & _READS and o.slot[address >> 2]:
            o.poll[c, 0], o.poll[c, 1] = o.step[0], address >> 2
            if way & _WRITES:  # an atomic, whose value is not followed
                polls.all_stores(o, c, address >> 2)
            elif o.far_flag[address >> 2] and polls.site(s, o, o.step[0]) & polls.POLLS == 0:
                shadow.l1_access(s, o, agent, address, address + size, np.int64(0))
        elif way & _READS:
            shadow.l1_access(s, o, agent, address, address + size, np.int64(0))
        if way & _WRITES:
            shadow.l1_access(s, o, agent, address, address + size, np.int64(1))
            polls.stored(s, o, c, address, size, np.int64(-1) if way & _READS else value)
    elif mm.PC_BUF_BASE <= address < mm.PC_BUF_END:
        _pcbuf(s, o, c, way, address - mm.PC_BUF_BASE, value)
    elif mm.TENSIX_CFG_BASE <= address < mm.TENSIX_CFG_END:
        if way & _READS:
            clocks.join_agent(o, c, r.STORES + c)
        else:
            stores, word = clocks.stores(o, c), (address - mm.TENSIX_CFG_BASE) >> 2
            one = shadow.event(s, o, stores, np.int64(1))
            words.config_changes(s, o, stores, one, np.int64(-1))
            if size == 4 and word < 2 * CONFIG_WORDS:
                shadow.config_stored(o, stores, word, value, one)
    elif mm.GPR_BASE <= address < mm.GPR_END:
        _gpr(s, o, c, way, address)
    elif mm.DST_WINDOW_BASE <= address < mm.DST_WINDOW_BASE + _DST_WINDOW:
        row = r.DST + (address - mm.DST_WINDOW_BASE) // 32
        _touches(s, o, agent, way, row, row + 1)
    else:
        _device(s, o, c, way, address, sent)
        if way & _WRITES and mm.MOP_CFG_BASE <= address < mm.MOP_CFG_END:
            t, k = c - 1, address - mm.MOP_CFG_BASE >> 2  # the template of its MOPs
            if o.mop_cfg[t, k] != s.mop_cfg[t, k]:
                o.mop_cfg[t, k] = s.mop_cfg[t, k]
                low = r.TEMPLATES + r.TEMPLATE * t + k
                _touches(s, o, agent, np.int64(_WRITES), low, low + 1)
        if address == _RESETS and way & _WRITES:
            for other in range(CORES):
                if o.core_reset[other] and s.core_state[other] != RESET:
                    clocks.starts(o, np.int64(c), np.int64(other))
                    o.core_reset[other] = 0


@njit
def _some(s: Any, o: Any, c: Any, most: Any) -> Any:
    """Run an instruction of core `c`, or up to `most` that only compute, of which the last one may
    be a branch; why the engine stopped."""
    if o.core_reset[c]:  # the one that released it from outside knows what this tile has done
        for agent in range(r.AGENTS):
            clocks.join_agent(o, c, np.int64(agent))
        o.core_reset[c] = 0
    pc = np.int64(s.pc[c])
    if not 0 <= pc < mm.L1_SIZE or o.own[pc >> 2] >> c & 1 == 0:
        call_access(o.ask[0], s, np.int64(words.LEAVES), c, np.int64(o.last_pc[c]), pc)
    retired, n, looked = s.retired[c], np.int64(0), o.look[c, 0]
    computes = looked < 0 and pc & 3 == 0 and pc < mm.L1_SIZE - 4 * _QUIET
    while computes and n < min(_QUIET, most):
        opcode = l1_word(s, pc + 4 * n) & 0x7F
        computes = opcode in _COMPUTES
        n += np.int64(computes or opcode == _BRANCH)
    if n > 1:
        s.retired_limit[c] = retired + n
        status = call_step(o.run_core[0], s, c)
        clocks.acts(o, c, s.retired[c] - retired)
        o.last_pc[c] = pc + 4 * (s.retired[c] - retired - 1)
        return status
    word = word_at(s, c)
    way = np.int64((word & 0x7F in _LOADS) * _READS | (word & 0x7F in _STORES) * _WRITES)
    base = np.int64(0 if s.fresh[c] else s.regs[c, word >> 15 & 31])
    address = turn.accessed(word, base) if way else np.int64(0)
    value, sent = np.int64(s.regs[c, word >> 20 & 31]), s.noc_requests[0]
    _before(s, o, c, pc, word, way, address)
    s.retired_limit[c] = retired + 1
    status = call_step(o.run_core[0], s, c)
    if s.retired[c] == retired:
        o.look[c, 0] = -1 if looked < 0 else o.look[c, 0]
        return status
    o.last_pc[c] = pc
    if o.look[c, 0] >= 0 and o.look_step[c, 0, 0] != pc:
        polls.leaves_poll(s, o, c, pc, word)
    clocks.acts(o, c, 1)
    pushes = way & _WRITES and mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END
    if way and not pushes:
        shadow.steps(s, o, pc, pc, word, np.int64(c), np.int64(-1))
        _access(s, o, c, word, way, address, value, sent)
        shadow.make_room(o)
    shadow.noted(s, o, c, pc, word, way, address, value)
    if s.l0_stale[c, 0] and (way or word & 0x7F == _FENCE):
        shadow.cached(s, o, c, pc, word & 0x7F in _DROPS, address)
    for other in range(CORES):
        if s.core_state[other] == RESET:
            o.core_reset[other] = 1
    return status


def observed_core(s: Any, c: Any) -> Any:
    """STEP: run or resume the turn of core `c`, one instruction at a time; 0 = it is over."""
    o = r.at(s.profile_table[r.ADDRESS])
    if o.full[0]:
        return call_step(o.run_core[0], s, c)
    limit = s.retired_limit[c]
    for _ in range(_SLICE):
        retired = s.retired[c]
        if 0 <= limit <= retired:
            return call_step(o.run_core[0], s, c)
        status = _some(s, o, c, limit - retired if limit >= 0 else np.int64(_QUIET))
        s.retired_limit[c] = limit
        if status != STOP_STEP or s.retired[c] == retired:
            return status
        if 0 <= limit <= s.retired[c]:
            return status
    return np.int64(STOP_TIME)


def ended(s: Any, outputs: Any) -> Any:
    """STEP: the host reads the words that end the program (o.ranges[0] ranges), then the outputs.

    outputs: how many ranges these are, after the others.
    """
    o = r.at(s.profile_table[r.ADDRESS])
    last, host = np.int64(0), np.int64(r.HOST)
    for k in range(o.ranges[0]):
        seen = shadow.last_writer(o, o.range[k, 0] >> 2)
        if seen:
            clocks.join_event(o, host, o.event[seen])
            last = max(last, seen)
    if last:
        clocks.acts(o, host, 1)
        clocks.copy(o.step, 0, o.event[last], r.PC, 6)
        for k in range(o.ranges[0], o.ranges[0] + outputs):
            shadow.l1_access(s, o, host, o.range[k, 0], o.range[k, 1], np.int64(0))
    return last


ACCESSES, SETS, ADDS, REGISTER = range(4)  # what a request does


def arrives(s: Any, does: Any) -> Any:
    """STEP: a request reaches this tile: o.arrival describes it, o.arrived came before it."""
    o = r.at(s.profile_table[r.ADDRESS])
    if does == REGISTER:
        held = clocks.named(o, o.arrival[r.A_LOW] & ~3)
        clocks.raise_row(held, o.arrived, r.PLAIN, r.PLAIN + o.columns[0])
    else:
        if does != ACCESSES:
            polls.arrives(o, o.arrival, does == ADDS)
        polls.accesses(o)
    return np.int64(0)
