"""What Unicorn calls for a core: memory hooks, registers, and instructions that it does not run."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bhemu.devices.debug_port import MODES
from bhemu.jit.intrinsics import l1_word, load_word, store_word
from bhemu.jit.record import PAGE
from bhemu.jit.subset import JIT, External, njit, signature
from bhemu.memmap import DEVICE_BASE, FAR_UNTIL, INSTRN_BUF_BASE, L1_SIZE
from bhemu.riscv import access, core_loop, l0_cache, semantics, turn
from bhemu.riscv.formats import Atomic, Csr, Fence, Load, Store
from bhemu.tensix.rules import DONE, STOP_FLUSH
from bhemu.tensix.state import OFFSET

# What the hooks ask of the engine: registers, stop, start.
#
# The engine library must be loaded into the process before these compile (engine.library).

REG_X0 = 1  # the engine's numbers, asserted by unicorn_core
REG_PC = 190
PROT_READ_WRITE, PROT_ALL = 3, 7
_SCRATCH = np.uint64(OFFSET["scratch"])
_FAR_UNTIL = np.uint64(FAR_UNTIL)

_reg_read: Any = External("uc_reg_read", signature("int32", "uint64", "int32", "uint64"))
_reg_write: Any = External("uc_reg_write", signature("int32", "uint64", "int32", "uint64"))
_emu_stop: Any = External("uc_emu_stop", signature("int32", "uint64"))
_emu_start: Any = External("uc_emu_start", signature("int32", *["uint64"] * 5))


@njit
def reg_read(s: Any, c: Any, reg: Any) -> Any:
    """Register `reg` of core `c`, as int64 0 .. 2^32-1."""
    s.scratch[0] = np.uint32(0)
    _reg_read(s.engine[c], np.int32(reg), s.host[0] + _SCRATCH)
    return np.int64(s.scratch[0])


@njit
def x_register(s: Any, c: Any, number: Any) -> Any:
    """x0-x31 of core `c` as reg_read gives it, straight from the engine where that is known."""
    if s.registers[c] != np.uint64(0):
        return load_word(np.int64(s.registers[c]) + 4 * number)
    return reg_read(s, c, REG_X0 + number)


@njit
def reg_write(s: Any, c: Any, reg: Any, value: Any) -> None:
    """Set register `reg` of core `c`."""
    s.scratch[0] = np.uint32(value & 0xFFFFFFFF)
    _reg_write(s.engine[c], np.int32(reg), s.host[0] + _SCRATCH)


@njit
def emu_stop(s: Any, c: Any) -> None:
    """Stop core `c` before its next instruction (see hooks.py for loads and stores)."""
    _emu_stop(s.engine[c])


if JIT:

    @njit
    def emu_start(s: Any, c: Any) -> Any:
        """Run core `c` from s.pc[c] until it stops; returns the engine's error number."""
        zero = np.uint64(0)
        return np.int64(_emu_start(s.engine[c], np.uint64(s.pc[c]), _FAR_UNTIL, zero, zero))

else:  # the engine's Python side raises what a hook has raised

    def emu_start(s: Any, c: Any) -> Any:
        """Interpreted twin."""
        return s.py.engine.emu_start(c, int(s.pc[c]))


@njit
def registers_from(s: Any, c: Any) -> None:
    """Copy x1-x31 of core `c` from its engine, if there is one yet, into the record."""
    if s.engine[c] == np.uint64(0):
        return
    for i in range(1, 32):
        s.regs[c, i] = np.uint32(x_register(s, c, i))


@njit
def registers_into(s: Any, c: Any) -> None:
    """Copy x1-x31 of core `c` from the record into its engine, if any, while it does not run."""
    if s.engine[c] == np.uint64(0):
        return
    for i in range(1, 32):
        if s.registers[c] != np.uint64(0):
            store_word(np.int64(s.registers[c]) + 4 * i, np.int64(s.regs[c, i]))
        else:
            reg_write(s, c, REG_X0 + i, np.int64(s.regs[c, i]))


# What happens around each RISC-V instruction of the Unicorn engine: counting, stops, traps.
#
# Compiled callbacks of the engine over the state record.  `on_code` runs before every instruction:
# counts, turn ends, breakpoints and CSRs are therefore exact whatever the engine's block
# partition.

_ILLEGAL_CAUSE = 2
_SYSTEM, _LOAD, _STORE, _AMO, _FENCE = (kind.code() for kind in (Csr, Load, Store, Atomic, Fence))
_CACHED = 16  # attention: loads and stores of L1 go through the L0 cache


@njit
def _special(s: Any, c: Any, address: Any, word: Any) -> Any:
    """SYSTEM, AMO and `j .`: True when the engine must not execute the word itself."""
    if word & 0x7F == _AMO:
        at = x_register(s, c, (word >> 15) & 31)
        if turn.atomic(s, c, word, at):
            emu_stop(s, c)
            return True
        _overwrites(s, address, at)
        return False
    if word & 0x7F == _SYSTEM and (word >> 12) & 7:
        # Execute a CSR instruction and step over it.
        old, rd = access.csr(s, c, word, x_register(s, c, (word >> 15) & 31)), (word >> 7) & 31
        if old < 0:
            emu_stop(s, c)
            return True
        if rd:
            reg_write(s, c, REG_X0 + rd, old)
        reg_write(s, c, REG_PC, address + 4)
        return True
    turn.stands(s, c, address, word)
    emu_stop(s, c)
    return True


@njit
def _overwrites(s: Any, address: Any, at: Any) -> None:
    """The engine goes on with what it has translated of a block, wherever that is overwritten."""
    if at > address and at ^ address < PAGE:
        s.attention[0] |= turn.REWRITTEN


@njit
def _cached(s: Any, c: Any, address: Any, word: Any) -> Any:
    """What the L0 cache has to do with a word: True for a load that gets other bytes than L1's."""
    if word & 0x7F == _FENCE and word >> 12 & 7 <= 1:
        l0_cache.drop(s, c)
        return False
    base = x_register(s, c, (word >> 15) & 31)
    if semantics.changed(word, np.int64(0), np.int64(0)) >= 0 and base < L1_SIZE and base & 3 == 0:
        l0_cache.drop(s, c)
    size = semantics.size(word)
    if size <= 0 or word & 0x7F == _AMO:
        return False
    at = turn.accessed(word, base)
    if at >= L1_SIZE or at & (size - 1):
        return False
    if word & 0x7F == _STORE:
        l0_cache.stored(s, c, at)
        return False
    value, rd = l0_cache.load(s, c, at, size), (word >> 7) & 31
    if rd == 0 or value == l0_cache.from_l1(s, at, size):
        return False
    reg_write(s, c, REG_X0 + rd, semantics.loaded(word, value))
    reg_write(s, c, REG_PC, address + 4)
    return True


@njit
def on_code(s: Any, address: Any) -> None:
    """Before every instruction that the engine can decode."""
    c = s.core[0]
    s.pc[c] = np.uint32(address)
    if s.fuel[c] <= 0 or s.attention[0] != 0:
        if s.attention[0] & turn.LOOKING:
            if turn.returns(s, c, address):
                registers_from(s, c)
            turn.look(s, c, address)
        if s.attention[0] & turn.REWRITTEN:  # begin a new block with this instruction
            s.attention[0] &= ~turn.REWRITTEN
            reg_write(s, c, REG_PC, address)
            return
        kind = turn.must_stop(s, c, address)
        if kind != turn.NONE:
            s.stop_kind[c] = kind
            emu_stop(s, c)
            return
        if s.watch_count[0]:
            word = l1_word(s, address)
            turn.watch_load(s, c, word, x_register(s, c, (word >> 15) & 31))
        if s.debug_port[c, MODES]:
            word = l1_word(s, address)
            access.announce(s, c, word, x_register(s, c, (word >> 15) & 31))
        if s.attention[0] & _CACHED and _cached(s, c, address, l1_word(s, address)):
            s.fuel[c] -= 1
            return
    word = l1_word(s, address)
    low = word & 0x7F
    if low == _LOAD or low == _STORE:
        loads = low == _LOAD
        mask = ((turn.LOAD_MASKS if loads else turn.STORE_MASKS) >> (4 * ((word >> 12) & 7))) & 3
        base = x_register(s, c, (word >> 15) & 31)
        at = turn.accessed(word, base)
        if at & mask:
            turn.misaligned(s, c, word, mask, base)
            emu_stop(s, c)
            return
        if not loads:
            s.stored[c] = 1
            if s.until_count[0]:
                s.attention[0] |= turn.STORED
            _overwrites(s, address, at)
    elif (low == _SYSTEM or low == _AMO or word == semantics.JUMP_SELF) and _special(
        s, c, address, word
    ):
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
                kind = turn.must_stop(s, c, address)
                if kind != turn.NONE:
                    s.stop_kind[c] = kind
                    emu_stop(s, c)
                    break
            s.fuel[c] -= 1
        if not access.push(s, c, turn.pushed(word)):
            emu_stop(s, c)
            break
        address += 4
        word = l1_word(s, address)
    if address != start + 4:
        reg_write(s, c, REG_PC, address)


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
        # In the engine until it must stop, or gets where nothing is translated yet.
        s.translated[c] = 1
        if s.l0[0]:
            s.attention[0] |= _CACHED
        error = emu_start(s, c)
        if error == 0 and s.stop_kind[c] == turn.NONE:
            error = turn.FETCH_UNMAPPED  # the pc is the address at which the engine always stops
        if error == turn.FETCH_PROT or error == turn.FETCH_UNMAPPED:
            s.pc[c] = np.uint32(reg_read(s, c, REG_PC))
        fetches = error == turn.FETCH_PROT and s.stop_kind[c] == turn.NONE
        if not fetches or core_loop.before_translation(s, c, np.int64(s.pc[c])) <= 0:
            return error


def run_core(s: Any, c: Any) -> Any:
    """STEP entry: run or resume the turn of core `c`; 0 = the turn is over."""
    s.core[0] = c
    if turn.still_waits(s, c):
        return np.int64(0)
    if s.flush[c] and s.translated[c]:
        return np.int64(STOP_FLUSH)
    s.flush[c] = 0
    if turn.clear_registers(s, c):
        registers_into(s, c)
    error = np.int64(0)
    if turn.begin(s, c):
        if turn.due(s, c):
            registers_from(s, c)
            turn.polling_begin(s, c)
        error = _slice(s, c)
    return turn.end(s, c, error, np.int64(s.pc[c]))


# Where the engine keeps x0-x31 of a core in memory, found by looking for values put there.
#
# A load or store is checked for alignment before it executes, which needs its base register;
# asking the engine costs more than the rest of the hook.  The registers lie at a fixed distance
# from the engine's CPU object, the address of which stands in the engine's handle.  Both places
# are found once for every version of the engine and proved for each core; where they cannot be (no
# /proc), the engine is asked.

UNKNOWN = 0
_HANDLE_BYTES = 1024  # of the engine's handle that are searched for addresses
_CPU_BYTES = 1 << 16  # of each object that is searched for the registers
_PROBES = (0x9E3779B9, 0x85EBCA6B)  # odd multipliers: two sets of 31 distinct values


def _read(address: int, size: int) -> bytes:
    """Bytes of this process, none when they cannot be read; never faults."""
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            return os.pread(memory.fileno(), size, address)
    except (OSError, OverflowError):
        return b""


def _put(uc: Any, probe: int) -> bytes:
    """Set x1-x31 to 31 distinct values (probe 0: to 0); the bytes they have in memory."""
    values = [(i * probe) & 0xFFFFFFFF for i in range(1, 32)]
    for i, value in enumerate(values, 1):
        uc.reg_write(REG_X0 + i, value)
    return np.array(values, "<u4").tobytes()


def _pointer(address: int) -> int:
    return int.from_bytes(_read(address, 8), "little")


def _candidates(handle: int, wanted: bytes) -> Iterator[tuple[int, int]]:
    """(place in the handle, distance of x0 from the address found there)."""
    for place in range(0, _HANDLE_BYTES, 8):
        body = _read(_pointer(handle + place), _CPU_BYTES)
        at = body.find(wanted)
        if at >= 4:
            yield place, at - 4


Layout = list[tuple[int, int]]  # place of an address in the handle, distance of x0 from there


def search(cores: Iterable[tuple[Any, int]]) -> Layout:
    """Places and distances that hold for several cores: (engine, handle) of each.

    One core alone is not enough: an address of another object may lie near the registers by chance.
    """
    found = [set(_candidates(handle, _put(uc, _PROBES[0]))) for uc, handle in cores]
    return sorted(set.intersection(*found), key=lambda pair: pair[1])


def locate(uc: Any, handle: int, layout: Layout) -> int:
    """Host address of x0 of a core whose registers may be overwritten, or UNKNOWN."""
    for place, distance in layout:
        address = _pointer(handle + place) + distance
        if all(_put(uc, probe) == _read(address + 4, 31 * 4) for probe in _PROBES):
            _put(uc, 0)
            return address
    _put(uc, 0)
    return UNKNOWN


# The engine's C callbacks around the hooks (their signatures are the engine's).


def code(engine: Any, address: Any, size: Any, s: Any) -> None:
    """UC_HOOK_CODE."""
    on_code(s, np.int64(address))


def trap(engine: Any, cause: Any, s: Any) -> None:
    """UC_HOOK_INTR: a word the engine does not execute: `.ttinsn`, Zba and Zbb, or none of ours."""
    c, cause = s.core[0], np.int64(cause)
    address = reg_read(s, c, REG_PC) - 4
    word = l1_word(s, address)
    if cause != _ILLEGAL_CAUSE:
        turn.fail(s, c, turn.TRAP, address=address, cause=cause)
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
            turn.fail(s, c, turn.ILLEGAL, word=word)
            emu_stop(s, c)
        elif rd:
            reg_write(s, c, REG_X0 + rd, result)


def load(engine: Any, offset: Any, size: Any, s: Any) -> Any:
    """Read callback of the device region: the value, or anything when it must be repeated."""
    if access.load(s, s.core[0], np.int64(offset) + DEVICE_BASE, np.int64(size)) != DONE:
        emu_stop(s, s.core[0])
    return np.uint64(s.loaded[0])


def store(engine: Any, offset: Any, size: Any, value: Any, s: Any) -> None:
    """Write callback of the device region: refused before any effect when it must wait."""
    address = np.int64(offset) + DEVICE_BASE
    if access.store(s, s.core[0], address, np.int64(size), np.int64(value)) != DONE:
        emu_stop(s, s.core[0])
