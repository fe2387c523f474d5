"""What happens around each RISC-V instruction: counting, stops, traps and device accesses.

Compiled callbacks of the engine over the state record.  `on_code` runs before every instruction:
counts, turn ends, breakpoints and CSRs are therefore exact whatever the engine's block partition.
A load or store that must wait is refused before any effect and is executed again later.
"""

from typing import Any

import numpy as np

from bhemu.devices import insn_fifo, own_thread
from bhemu.jit.calls import call_access, l1_word
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.riscv import csr_file, semantics
from bhemu.riscv.formats import Csr, Load, Store
from bhemu.riscv.isa import alignment_masks, rv32i
from bhemu.riscv.primitives import (
    REG_PC,
    REG_X0,
    emu_start,
    emu_stop,
    reg_read,
    reg_write,
    x_register,
)
from bhemu.riscv.refusals import (
    AMO,
    ASSERT,
    BREAKPOINT,
    FAULT,
    FLUSHES,
    LIMIT,
    NONE,
    PARKS,
    STORE,
    TURN_OVER,
    UNTIL,
    WAITS,
    atomic,
    fail,
    misaligned,
)
from bhemu.tensix.frontend import FIFO_FULL
from bhemu.tensix.loop import (
    STOP_ASSERT,
    STOP_BREAKPOINT,
    STOP_CODE_PAGE,
    STOP_ENGINE,
    STOP_FLUSH,
    STOP_LIMIT,
    STOP_STEP,
    STOP_UNTIL,
    until_holds,
)
from bhemu.tensix.state import ASSERTED, BLOCKED, FIFO_DEPTH, PAGE, PARKED, RUNNING
from bhemu.tensix.status import DONE, GUEST, UB, UNIMPLEMENTED, error

_ACCESS_ERRORS = (6, 7, 12, 13)  # the engine's errors for loads and stores it cannot map
_FETCH_UNMAPPED = 8
_FETCH_PROT = 14  # the engine's error for a page that is not executable yet
_ILLEGAL_CAUSE = 2
_PUSH = 0xFFE40000
_JUMP_SELF = rv32i.JAL.assemble(0, 0)
_EBREAK = rv32i.EBREAK.match
_SYSTEM, _LOAD = Csr.code(), Load.code()
_LOAD_MASKS = alignment_masks(Load)
_STORE_MASKS = alignment_masks(Store)
_POLLS = 8  # repeated device loads after which the turn of a polling core is over
_LOOK, _STORED = 1, 2  # attention: general; compare the until words after a store

ILLEGAL = error("RV-ILLEGAL", GUEST, "{word:#010x} is no instruction of these cores")
ECALL = error("RV-SYSTEM", GUEST, "{word:#010x} (ecall, wfi or xret) has no meaning on these cores")
UNKNOWN_CSR = error("RV-CSR", UNIMPLEMENTED, "CSR {csr:#x} is not modelled (word {word:#010x})")
READ_ONLY_CSR = error("RV-CSR-RO", GUEST, "write to the read-only CSR {csr:#x} (word {word:#010x})")
TRAP = error("RV-TRAP", GUEST, "trap with cause {cause} at {address:#010x}")
NCRISC_PUSH = error("PUSH-NCRISC", UB, "ncrisc cannot push Tensix words (.ttinsn {word:#010x})")


@njit
def _at_breakpoint(s: Any, c: Any, address: Any) -> Any:
    if s.breakpoint_skip[c]:
        s.breakpoint_skip[c] = 0
        return False
    for i in range(s.breakpoint_count[c]):
        if s.breakpoint[c, i] == np.uint32(address):
            return True
    return False


@njit
def _must_stop(s: Any, c: Any, address: Any) -> Any:
    """Stop kind when the core may not execute the instruction at `address` now, else NONE."""
    if s.status[0] != 0:
        return FAULT
    if s.attention[0] & _STORED:
        s.attention[0] &= ~_STORED
        if until_holds(s):
            return UNTIL
    if s.core_state[c] != RUNNING or s.turn_yield[0]:
        return TURN_OVER
    if s.flush[c]:
        return FLUSHES
    if s.fuel[c] <= 0:
        return LIMIT if s.fuel_given[c] < s.left[c] else TURN_OVER
    if s.breakpoint_count[c] and _at_breakpoint(s, c, address):
        return BREAKPOINT
    return NONE


@njit
def _wait_or_fail(s: Any, c: Any, status: Any) -> None:
    """The access did not take place: give the instruction back, stop, and wait or report."""
    s.fuel[c] += 1
    if status > DONE:
        s.core_state[c] = BLOCKED
        s.core_wait[c] = status
        s.stop_kind[c] = WAITS
    else:
        s.status[0] = status
        s.status_core[0] = c
        s.status_thread[0] = -1
        s.stop_kind[c] = FAULT
    emu_stop(s, c)


@njit
def _csr(s: Any, c: Any, address: Any, word: Any) -> None:
    """Execute a CSR instruction and step over it."""
    writes = semantics.csr_writes(word)
    number = word >> 20 if writes != semantics.NONE else np.int64(0)
    if csr_file.shows_coprocessor(number):
        status = own_thread.offer(s, c)
        if status != DONE:
            s.fuel[c] -= 1
            _wait_or_fail(s, c, status)
            return
    old = csr_file.value(s, c, number)
    if old < 0:
        fail(s, c, UNKNOWN_CSR, word=word, csr=number)
        return
    if writes:
        new = semantics.csr_value(word, old, x_register(s, c, (word >> 15) & 31))
        if not csr_file.store(s, c, number, new):
            fail(s, c, READ_ONLY_CSR, word=word, csr=number)
            return
    rd = (word >> 7) & 31
    if rd:
        reg_write(s, c, REG_X0 + rd, old)
    reg_write(s, c, REG_PC, address + 4)
    s.fuel[c] -= 1


@njit
def _special(s: Any, c: Any, address: Any, word: Any) -> Any:
    """SYSTEM, AMO and `j .`: True when the engine must not execute the word itself."""
    if word == _JUMP_SELF:
        s.core_state[c] = PARKED
        s.stop_kind[c] = PARKS
        emu_stop(s, c)
    elif word == _EBREAK:
        s.core_state[c] = ASSERTED
        s.stop_kind[c] = ASSERT
        emu_stop(s, c)
    elif word & 0x7F == AMO:
        return atomic(s, c, word)
    elif (word >> 12) & 7:
        _csr(s, c, address, word)
    else:
        fail(s, c, ECALL, word=word)
    return True


@njit
def on_code(s: Any, address: Any) -> None:
    """Before every instruction that the engine can decode."""
    c = s.core[0]
    s.pc[c] = np.uint32(address)
    if s.fuel[c] <= 0 or s.attention[0] != 0:
        kind = _must_stop(s, c, address)
        if kind != NONE:
            s.stop_kind[c] = kind
            emu_stop(s, c)
            return
    word = l1_word(s, address)
    low = word & 0x7F
    if low == _LOAD:
        mask = (_LOAD_MASKS >> (4 * ((word >> 12) & 7))) & 3
        if (x_register(s, c, (word >> 15) & 31) + (word >> 20)) & mask:
            misaligned(s, c, word, mask)
            return
    elif low == STORE:
        mask = (_STORE_MASKS >> (4 * ((word >> 12) & 7))) & 3
        if (x_register(s, c, (word >> 15) & 31) + (word >> 7)) & mask:
            misaligned(s, c, word, mask)
            return
        s.stored[c] = 1
        if s.until_count[0]:
            s.attention[0] |= _STORED
    elif (low == _SYSTEM or low == AMO or word == _JUMP_SELF) and _special(s, c, address, word):
        return
    s.fuel[c] -= 1


@njit
def _ttinsn(s: Any, c: Any, address: Any) -> None:
    """Push the run of `.ttinsn` words that begins at `address`; on_code has counted the first."""
    start, thread = address, max(c - 1, 0)
    s.stored[c] = 1
    s.core_address[c] = np.uint32(_PUSH)
    word = l1_word(s, address)
    while word & 3 != 3 and address < L1_SIZE:
        if address != start:
            s.pc[c] = np.uint32(address)
            if address & (PAGE - 1) == 0:
                break  # the engine asks whether the next page may be executed
            if s.fuel[c] <= 0 or s.attention[0] != 0:
                kind = _must_stop(s, c, address)
                if kind != NONE:
                    s.stop_kind[c] = kind
                    emu_stop(s, c)
                    break
            s.fuel[c] -= 1
        tensix = (word >> 2) | ((word & 3) << 30)
        if c == 4:
            fail(s, c, NCRISC_PUSH, word=tensix)
            break
        status = insn_fifo.push(s, c, thread, tensix)
        if status != DONE:
            s.detail[0] = _PUSH
            _wait_or_fail(s, c, status)
            break
        address += 4
        word = l1_word(s, address)
    if address != start + 4:
        reg_write(s, c, REG_PC, address)


@njit
def on_trap(s: Any, cause: Any) -> None:
    """A word the engine does not execute: `.ttinsn`, Zba and Zbb, or none of ours."""
    c = s.core[0]
    address = reg_read(s, c, REG_PC) - 4
    word = l1_word(s, address)
    if cause != _ILLEGAL_CAUSE:
        fail(s, c, TRAP, address=address, cause=cause)
    elif word & 3 != 3:
        _ttinsn(s, c, address)
    else:
        a = x_register(s, c, (word >> 15) & 31)
        b = x_register(s, c, (word >> 20) & 31)
        result = semantics.bit_manipulation(word, a, b)
        rd = (word >> 7) & 31
        if result < 0:
            s.fuel[c] += 1
            fail(s, c, ILLEGAL, word=word)
        elif rd:
            reg_write(s, c, REG_X0 + rd, result)


@njit
def _poll(s: Any, c: Any) -> None:
    """A core that repeats one device load and stores nothing gives up the rest of its turn."""
    if s.stored[c] == 1 or s.pc[c] != s.poll_pc[c]:
        s.poll_pc[c] = s.pc[c]
        s.poll_count[c] = 0
        s.stored[c] = 2 * min(s.stored[c], 1)
    s.poll_count[c] += 1
    if s.poll_count[c] >= _POLLS:
        s.poll_count[c] = 0
        s.turn_yield[0] = 1
        s.attention[0] |= _LOOK


@njit
def on_load(s: Any, address: Any, size: Any) -> Any:
    """A device load; returns the value, or anything when it must be repeated."""
    c = s.core[0]
    status = call_access(s.bus_read[0], s, c, np.int64(address), np.int64(size), np.int64(0))
    if status != DONE:
        _wait_or_fail(s, c, status)
    else:
        _poll(s, c)
    return s.loaded[0]


@njit
def on_store(s: Any, address: Any, size: Any, value: Any) -> None:
    """A device store; refused before any effect when it must wait."""
    c = s.core[0]
    at, size, value = np.int64(address), np.int64(size), np.int64(value)
    status = call_access(s.bus_write[0], s, c, at, size, value)
    if status != DONE:
        _wait_or_fail(s, c, status)


@njit
def _still_waits(s: Any, c: Any) -> Any:
    """A full FIFO that nobody has emptied: repeating the push would change nothing."""
    if s.core_wait[c] != FIFO_FULL:
        return False
    t = (np.int64(s.core_address[c]) - _PUSH) >> 16 if c == 0 else c - 1
    return s.fifo_write[t] - s.fifo_read[t] >= FIFO_DEPTH


@njit
def _clear_registers(s: Any, c: Any) -> None:
    s.fresh[c] = 0
    for i in range(1, 32):
        reg_write(s, c, REG_X0 + i, 0)


@njit
def _outcome(s: Any, c: Any, engine_error: Any) -> Any:
    """Status of a slice that ended: 0 the turn is over or waits, else why everything stops."""
    status = s.status[0]
    if status != 0:
        if status > 0:
            s.status[0] = 0
        return status
    kind = s.stop_kind[c]
    if kind == NONE:
        if engine_error == _FETCH_PROT:
            s.pc[c] = np.uint32(reg_read(s, c, REG_PC))
            return np.int64(STOP_CODE_PAGE)
        if engine_error in _ACCESS_ERRORS:
            s.fuel[c] += 1  # the load or store did not retire
        elif engine_error == _FETCH_UNMAPPED:
            s.pc[c] = np.uint32(reg_read(s, c, REG_PC))
        s.detail[0] = engine_error
        return np.int64(STOP_ENGINE)
    if kind == LIMIT:
        clock_limit = s.limit[0] >= 0 and _clock(s, c) >= s.limit[0]
        return np.int64(STOP_LIMIT if clock_limit else STOP_STEP)
    if kind == FLUSHES:
        return np.int64(STOP_FLUSH)
    if kind == BREAKPOINT:
        return np.int64(STOP_BREAKPOINT)
    if kind == ASSERT:
        return np.int64(STOP_ASSERT)
    if kind == UNTIL:
        return np.int64(STOP_UNTIL)
    return np.int64(0)


@njit
def _clock(s: Any, c: Any) -> Any:
    """The clock as far as the turn of core `c` has come."""
    return s.clock[0] + s.turn_given[0] - s.left[c] + s.fuel_given[c] - s.fuel[c]


@njit
def _fuel(s: Any, c: Any) -> Any:
    """Instructions of the next slice: the rest of the turn, up to a step or clock limit."""
    fuel = s.left[c]
    if s.retired_limit[c] >= 0:
        fuel = min(fuel, s.retired_limit[c] - s.retired[c])
    if s.limit[0] >= 0:
        fuel = min(fuel, max(s.limit[0] - _clock(s, c), 0))
    return fuel


@njit
def run_core(s: Any, c: Any) -> Any:
    """Run or resume the turn of core `c`; 0 = the turn is over."""
    s.core[0] = c
    if s.core_state[c] == BLOCKED:
        if _still_waits(s, c):
            return np.int64(0)
        s.core_state[c] = RUNNING
    if s.flush[c] and s.translated[c]:
        return np.int64(STOP_FLUSH)
    s.flush[c] = 0
    s.translated[c] = 1
    if s.fresh[c]:
        _clear_registers(s, c)
    s.stop_kind[c] = NONE
    s.attention[0] = _LOOK if s.breakpoint_count[c] or s.turn_yield[0] else 0
    fuel = _fuel(s, c)
    s.fuel[c] = s.fuel_given[c] = fuel
    status = _outcome(s, c, emu_start(s, c))
    used = fuel - s.fuel[c]
    s.fuel[c] = s.fuel_given[c] = 0
    s.left[c] -= used
    s.retired[c] += used
    return status
