"""What happens around each RISC-V instruction of the Unicorn engine: counting, stops, traps.

Compiled callbacks of the engine over the state record.  `on_code` runs before every instruction:
counts, turn ends, breakpoints and CSRs are therefore exact whatever the engine's block partition.
"""

from typing import Any

import numpy as np

from bhemu.devices import debug_port
from bhemu.devices.debug_port import MODES
from bhemu.jit.calls import l1_word
from bhemu.jit.record import PAGE
from bhemu.jit.subset import njit
from bhemu.memmap import INSTRN_BUF_BASE, L1_SIZE
from bhemu.riscv import access, core_loop, core_step, l0_cache, polling, semantics, watched_access
from bhemu.riscv.formats import Atomic, Csr, Fence, Load, Store
from bhemu.riscv.isa import rv32i
from bhemu.riscv.polling import LOOKING
from bhemu.riscv.primitives import (
    REG_PC,
    REG_X0,
    emu_start,
    emu_stop,
    reg_read,
    reg_write,
    registers_from,
    registers_into,
    x_register,
)
from bhemu.riscv.refusals import (
    ASSERT,
    ILLEGAL,
    LOAD_MASKS,
    NONE,
    PARKS,
    STORE_MASKS,
    SYSTEM,
    TRAP,
    atomic,
    fail,
    misaligned,
)
from bhemu.riscv.turn import (
    FETCH_PROT,
    FETCH_UNMAPPED,
    REWRITTEN,
    STORED,
    begin,
    end,
    must_stop,
    still_waits,
    watch_load,
)
from bhemu.tensix.rules import DONE
from bhemu.tensix.state import ASSERTED, PARKED
from bhemu.tensix.stops import STOP_FLUSH

_ILLEGAL_CAUSE = 2
_JUMP_SELF = rv32i.JAL.assemble(0, 0)
_EBREAK = rv32i.EBREAK.match
_SYSTEM, _LOAD, _STORE, _AMO, _FENCE = (kind.code() for kind in (Csr, Load, Store, Atomic, Fence))
_CACHED = 16  # attention: loads and stores of L1 go through the L0 cache


@njit
def _csr(s: Any, c: Any, address: Any, word: Any) -> None:
    """Execute a CSR instruction and step over it."""
    old = access.csr(s, c, word, x_register(s, c, (word >> 15) & 31))
    if old < 0:
        emu_stop(s, c)
        return
    rd = (word >> 7) & 31
    if rd:
        reg_write(s, c, REG_X0 + rd, old)
    reg_write(s, c, REG_PC, address + 4)


@njit
def _special(s: Any, c: Any, address: Any, word: Any) -> Any:
    """SYSTEM, AMO and `j .`: True when the engine must not execute the word itself."""
    if word & 0x7F == _AMO:
        at = x_register(s, c, (word >> 15) & 31)
        if atomic(s, c, word, at):
            emu_stop(s, c)
            return True
        _overwrites(s, address, at)
        return False
    if word & 0x7F == _SYSTEM and (word >> 12) & 7:
        _csr(s, c, address, word)
        return True
    if word == _JUMP_SELF:
        if not (debug_port.watches(s, c) and debug_port.parks(s, c, address)):
            s.core_state[c] = PARKED
        s.stop_kind[c] = PARKS
    elif word == _EBREAK and debug_port.breaks(s, c, address):
        s.fuel[c] -= 1
        s.stop_kind[c] = PARKS
    elif word == _EBREAK:
        s.core_state[c] = ASSERTED
        s.stop_kind[c] = ASSERT
    else:
        fail(s, c, SYSTEM, word=word)
    emu_stop(s, c)
    return True


@njit
def _misaligned_load(s: Any, c: Any, word: Any) -> Any:
    mask = (LOAD_MASKS >> (4 * ((word >> 12) & 7))) & 3
    base = x_register(s, c, (word >> 15) & 31)
    if (base + (word >> 20)) & mask:
        misaligned(s, c, word, mask, base)
        emu_stop(s, c)
        return True
    return False


@njit
def _overwrites(s: Any, address: Any, at: Any) -> None:
    """The engine goes on with what it has translated of a block, wherever that is overwritten."""
    if at > address and at ^ address < PAGE:
        s.attention[0] |= REWRITTEN


@njit
def _misaligned_store(s: Any, c: Any, address: Any, word: Any) -> Any:
    mask = (STORE_MASKS >> (4 * ((word >> 12) & 7))) & 3
    base = x_register(s, c, (word >> 15) & 31)
    offset = (word >> 25) << 5 | (word >> 7) & 31
    if (base + offset) & mask:
        misaligned(s, c, word, mask, base)
        emu_stop(s, c)
        return True
    s.stored[c] = 1
    if s.until_count[0]:
        s.attention[0] |= STORED
    _overwrites(s, address, base + offset - ((offset & 0x800) << 1))
    return False


@njit
def _cached(s: Any, c: Any, address: Any, word: Any) -> Any:
    """What the L0 cache has to do with a word: True for a load that gets other bytes than L1's."""
    if word & 0x7F == _FENCE and word >> 12 & 7 <= 1:
        l0_cache.drop(s, c)
        return False
    base = x_register(s, c, (word >> 15) & 31)
    if core_step.changed(word, np.int64(0), np.int64(0)) >= 0 and base < L1_SIZE and base & 3 == 0:
        l0_cache.drop(s, c)
    size = core_step.size(word)
    if size <= 0:
        return False
    at = core_step.address(word, base)
    if at >= L1_SIZE or at & (size - 1):
        return False
    if word & 0x7F == _STORE:
        l0_cache.stored(s, c, at)
        return False
    value, rd = l0_cache.load(s, c, at, size), (word >> 7) & 31
    if rd == 0 or value == l0_cache.from_l1(s, at, size):
        return False
    reg_write(s, c, REG_X0 + rd, core_step.loaded(word, value))
    reg_write(s, c, REG_PC, address + 4)
    return True


@njit
def on_code(s: Any, address: Any) -> None:
    """Before every instruction that the engine can decode."""
    c = s.core[0]
    s.pc[c] = np.uint32(address)
    if s.fuel[c] <= 0 or s.attention[0] != 0:
        if s.attention[0] & LOOKING:
            if polling.returns(s, c, address):
                registers_from(s, c)
            polling.look(s, c, address)
        if s.attention[0] & REWRITTEN:  # begin a new block with this instruction
            s.attention[0] &= ~REWRITTEN
            reg_write(s, c, REG_PC, address)
            return
        kind = must_stop(s, c, address)
        if kind != NONE:
            s.stop_kind[c] = kind
            emu_stop(s, c)
            return
        if s.watch_count[0]:
            word = l1_word(s, address)
            watch_load(s, c, word, x_register(s, c, (word >> 15) & 31))
        if s.debug_port[c, MODES]:
            word = l1_word(s, address)
            watched_access.announce(s, c, word, x_register(s, c, (word >> 15) & 31))
        if s.attention[0] & _CACHED and _cached(s, c, address, l1_word(s, address)):
            s.fuel[c] -= 1
            return
    word = l1_word(s, address)
    low = word & 0x7F
    if low == _LOAD:
        if _misaligned_load(s, c, word):
            return
    elif low == _STORE:
        if _misaligned_store(s, c, address, word):
            return
    elif (low == _SYSTEM or low == _AMO or word == _JUMP_SELF) and _special(s, c, address, word):
        return
    s.fuel[c] -= 1


@njit
def _ttinsn(s: Any, c: Any, address: Any) -> None:
    """Push the run of `.ttinsn` words that begins at `address`; on_code has counted the first."""
    start = address
    s.stored[c] = 1
    s.core_address[c] = np.uint32(INSTRN_BUF_BASE)
    word = l1_word(s, address)
    while word & 3 != 3 and address < L1_SIZE:
        if address != start:
            s.pc[c] = np.uint32(address)
            if address & (PAGE - 1) == 0:
                break  # the engine asks whether the next page may be executed
            if s.fuel[c] <= 0 or s.attention[0] != 0:
                kind = must_stop(s, c, address)
                if kind != NONE:
                    s.stop_kind[c] = kind
                    emu_stop(s, c)
                    break
            s.fuel[c] -= 1
        if not access.push(s, c, (word >> 2) | ((word & 3) << 30)):
            emu_stop(s, c)
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
        emu_stop(s, c)
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
            emu_stop(s, c)
        elif rd:
            reg_write(s, c, REG_X0 + rd, result)


@njit
def on_load(s: Any, address: Any, size: Any) -> Any:
    """A device load; returns the value, or anything when it must be repeated."""
    c = s.core[0]
    if access.load(s, c, address, size) != DONE:
        emu_stop(s, c)
    return s.loaded[0]


@njit
def on_store(s: Any, address: Any, size: Any, value: Any) -> None:
    """A device store; refused before any effect when it must wait."""
    c = s.core[0]
    if access.store(s, c, address, size, value) != DONE:
        emu_stop(s, c)


@njit
def _clear_registers(s: Any, c: Any) -> None:
    s.fresh[c] = 0
    l0_cache.drop(s, c)
    for i in range(32):
        s.regs[c, i] = np.uint32(0)
    registers_into(s, c)


@njit
def _translated_slice(s: Any, c: Any) -> Any:
    """Run core `c` in the engine until it must stop, or gets where nothing is translated yet."""
    s.translated[c] = 1
    if s.l0[0]:
        s.attention[0] |= _CACHED
    error = emu_start(s, c)
    if error == 0 and s.stop_kind[c] == NONE:
        return np.int64(FETCH_UNMAPPED)  # the pc is the address at which the engine always stops
    return error


@njit
def _slice(s: Any, c: Any) -> Any:
    """Run core `c` until it must stop; 0, or the error that ended it.

    A page of code is executed in the loop of core_loop.py until it is worth translating.
    """
    while True:
        if core_loop.before_translation(s, c, np.int64(s.pc[c])) > 0:
            registers_from(s, c)
            error = core_loop.run_slice(s, c)
            registers_into(s, c)
            if error != core_loop.TRANSLATE:
                return error
        if s.engine[c] == np.uint64(0):
            return core_loop.no_code(c, np.int64(s.pc[c]))
        error = _translated_slice(s, c)
        if error == FETCH_PROT or error == FETCH_UNMAPPED:
            s.pc[c] = np.uint32(reg_read(s, c, REG_PC))
        fetches = error == FETCH_PROT and s.stop_kind[c] == NONE
        if not fetches or core_loop.before_translation(s, c, np.int64(s.pc[c])) <= 0:
            return error


@njit
def run_core(s: Any, c: Any) -> Any:
    """Run or resume the turn of core `c`; 0 = the turn is over."""
    s.core[0] = c
    if still_waits(s, c):
        return np.int64(0)
    if s.flush[c] and s.translated[c]:
        return np.int64(STOP_FLUSH)
    s.flush[c] = 0
    if s.fresh[c]:
        _clear_registers(s, c)
    error = np.int64(0)
    if begin(s, c):
        if polling.due(s, c):
            registers_from(s, c)
            polling.begin(s, c)
        error = _slice(s, c)
    return end(s, c, error, np.int64(s.pc[c]))
