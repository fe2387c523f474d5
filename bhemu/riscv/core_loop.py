"""The compiled engine: the loop over a core's instructions."""

from typing import Any

import numpy as np

from bhemu.devices.debug_port import MODES
from bhemu.devices.noc_map import l1_end
from bhemu.jit.intrinsics import LOAD, STORE, l1_word
from bhemu.jit.record import PAGE
from bhemu.jit.subset import njit
from bhemu.memmap import DEVICE_BASE, DEVICE_SIZE, INSTRN_BUF_BASE, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv import access, l0_cache, semantics, turn
from bhemu.riscv.engine import TRANSLATED
from bhemu.riscv.formats import Atomic, Csr, Fence, Load, Store
from bhemu.riscv.semantics import JUMP_SELF, LEAVE
from bhemu.tensix.rules import DONE, LOOK
from bhemu.tensix.state import LOCAL_SIZE, OFFSET

# The cores' instructions as one compiled loop over the state record.
#
# The compiled engine is this loop; the Unicorn engine executes in it what is not worth translating
# yet (`run_slice`).
#
# `step` (semantics.py) does most; devices, pushes, CSRs, atomics and refusals are done here, with
# the pc and the fuel of the core put into the record before.

_LOAD, _STORE, _SYSTEM, _AMO, _FENCE = (kind.code() for kind in (Load, Store, Csr, Atomic, Fence))
_LOCAL = OFFSET["local"]
_PAGE_BITS = PAGE.bit_length() - 1
TRANSLATE = 255  # from `run_slice`: no error
_STOP = -1  # from `special`: see stop_kind; _STOP - n: error n of turn.py
_load_word = LOAD[4]
_store_byte, _store_half, _store_word = STORE[1], STORE[2], STORE[4]


@njit
def _rs1(s: Any, c: Any, word: Any) -> Any:
    return np.int64(s.regs[c, (word >> 15) & 31])


@njit
def _rs2(s: Any, c: Any, word: Any) -> Any:
    return np.int64(s.regs[c, (word >> 20) & 31])


@njit
def _set(s: Any, c: Any, word: Any, value: Any) -> None:
    rd = (word >> 7) & 31
    if rd:
        s.regs[c, rd] = np.uint32(value)


@njit
def _is_device(at: Any) -> Any:
    return DEVICE_BASE <= at < DEVICE_BASE + DEVICE_SIZE


@njit
def _load(s: Any, c: Any, pc: Any, word: Any, size: Any) -> Any:
    """A load from a device or through the L0 cache, or one that is refused."""
    base = _rs1(s, c, word)
    at = turn.accessed(word, base)
    if at & (size - 1):
        turn.misaligned(s, c, word, size - 1, base)
        return np.int64(_STOP)
    s.fuel[c] -= 1
    if at < l1_end(s):
        _set(s, c, word, semantics.loaded(word, l0_cache.load(s, c, at, size)))
        return pc + 4
    if not _is_device(at):
        return np.int64(_STOP - turn.LOAD_UNMAPPED)
    if access.load(s, c, at, size) != DONE:
        return np.int64(_STOP)
    _set(s, c, word, semantics.loaded(word, s.loaded[0]))
    return pc + 4


@njit
def _overwritten(s: Any, c: Any, at: Any) -> None:
    """The core has stored to L1: the other engine drops its code when it may hold some of it.

    From then on it executes the page of this store, because it notices its own.
    """
    if s.translate_after[0] and s.code_page[at // PAGE] & np.uint8(1 << c):
        s.flush[c] = 1
        s.page_count[c, s.pc[c] // PAGE] = TRANSLATED
        s.attention[0] |= LOOK


@njit
def store(s: Any, c: Any, pc: Any, word: Any) -> Any:
    """A store to a device or beside the L0 cache, or one that is refused."""
    base, size = _rs1(s, c, word), semantics.size(word)
    at = turn.accessed(word, base)
    if size > 0 and at & (size - 1):
        turn.misaligned(s, c, word, size - 1, base)
        return np.int64(_STOP)
    s.stored[c] = 1
    if size <= 0:
        turn.fail(s, c, turn.ILLEGAL, word=word)
        return np.int64(_STOP)
    if s.until_count[0]:
        s.attention[0] |= turn.STORED
    s.fuel[c] -= 1
    value = _rs2(s, c, word) & ((1 << (8 * size)) - 1)
    if at < l1_end(s):
        if s.l0[0]:
            l0_cache.stored(s, c, at)
        if size == 4:
            _store_word(s, at, value)
        elif size == 2:
            _store_half(s, at, value)
        else:
            _store_byte(s, at, value)
        _overwritten(s, c, at)
        return pc + 4
    if not _is_device(at):
        return np.int64(_STOP - turn.STORE_UNMAPPED)
    return pc + 4 if access.store(s, c, at, size, value) == DONE else np.int64(_STOP)


@njit
def special(s: Any, c: Any, pc: Any, word: Any) -> Any:
    """Execute a word that `step` has left, no store: the next pc, < 0 when the slice ends."""
    low = word & 0x7F
    if word & 3 != 3:  # push the run of `.ttinsn` words that begins here; the pc after it
        s.stored[c] = 1
        s.core_address[c] = np.uint32(INSTRN_BUF_BASE)
        while True:
            s.fuel[c] -= 1
            if not access.push(s, c, turn.pushed(word)):
                return np.int64(_STOP)
            pc += 4
            if s.fuel[c] <= 0 or s.attention[0] != 0 or pc & (PAGE - 1) == 0:
                return pc
            word = l1_word(s, pc)
            if word & 3 == 3:
                return pc
            s.pc[c] = np.uint32(pc)
    if low == _LOAD:
        size = semantics.size(word)
        if size > 0:
            return _load(s, c, pc, word, size)
    elif low == _SYSTEM:
        if (word >> 12) & 7:
            old = access.csr(s, c, word, _rs1(s, c, word))
            if old < 0:
                return np.int64(_STOP)
            _set(s, c, word, old)
            return pc + 4
        turn.stands(s, c, pc, word)
        return np.int64(_STOP)
    elif low == _AMO:
        at = _rs1(s, c, word)
        if turn.atomic(s, c, word, at):
            return np.int64(_STOP)
        old = _load_word(s, at)
        new = semantics.changed(word, old, _rs2(s, c, word))
        if new < 0:
            turn.fail(s, c, turn.ILLEGAL, word=word)
            return np.int64(_STOP)
        s.fuel[c] -= 1
        l0_cache.drop(s, c)
        _store_word(s, at, new)
        _overwritten(s, c, at)
        _set(s, c, word, old)
        return pc + 4
    elif low == _FENCE and word >> 12 & 7 <= 1:
        s.fuel[c] -= 1
        l0_cache.drop(s, c)
        return pc + 4
    elif word == JUMP_SELF:
        turn.stands(s, c, pc, word)
        return np.int64(_STOP)
    if semantics.jumps(word) > 0:  # its target is misaligned
        s.fuel[c] -= 1
        turn.fail(s, c, turn.TRAP, address=pc, cause=np.int64(turn.MISALIGNED_FETCH))
    else:
        turn.fail(s, c, turn.ILLEGAL, word=word)
    return np.int64(_STOP)


@njit
def no_code(c: Any, pc: Any) -> Any:
    """The error of a fetch outside of L1, or of a page of L1 that the engine must allow."""
    local = LOCAL_BASE <= pc < LOCAL_BASE + LOCAL_SIZES[c]
    return np.int64(
        turn.FETCH_PROT if pc < L1_SIZE or local or _is_device(pc) else turn.FETCH_UNMAPPED
    )


@njit
def fetches(s: Any, c: Any, pc: Any) -> Any:
    """0 when the word at `pc` may be executed, else the error; notes the page as code."""
    if pc < l1_end(s):
        s.code_page[pc // PAGE] |= np.uint8(1 << c)
        return np.int64(0)
    return no_code(c, pc) if pc >= L1_SIZE else np.int64(turn.FETCH_UNMAPPED)


@njit
def stop(s: Any, c: Any, pc: Any) -> Any:
    """Stop kind before the instruction at `pc`; without translated code a flush is done here."""
    if s.attention[0] & turn.LOOKING:
        turn.look(s, c, pc)
    kind = turn.must_stop(s, c, pc)
    if kind == turn.FLUSHES and (s.translate_after[0] == 0 or s.translated[c] == 0):
        s.flush[c] = 0
        kind = turn.must_stop(s, c, pc)
    if kind == turn.NONE:
        s.attention[0] = turn.watchful(s, c) | (s.attention[0] & turn.LOOKING)
        word = l1_word(s, pc)
        if s.watch_count[0]:
            turn.watch_load(s, c, word, _rs1(s, c, word))
        if s.debug_port[c, MODES]:
            access.announce(s, c, word, _rs1(s, c, word))
    return kind


@njit
def before_translation(s: Any, c: Any, pc: Any) -> Any:
    """Instructions that core `c` may execute in the page of `pc` before it is translated."""
    if s.translate_after[0] == 0 or pc >= L1_SIZE:
        return np.int64(0)
    return s.translate_after[0] - s.page_count[c, pc // PAGE]


@njit
def _room(s: Any, c: Any, pc: Any, translates: Any) -> Any:
    """Instructions that may be executed in the page of `pc`; less than 0: why none, negated."""
    if translates:
        most = before_translation(s, c, pc)
        return most if most > 0 else np.int64(-TRANSLATE)
    error = fetches(s, c, pc)
    return np.int64(1 << 62) if error == 0 else -error


@njit
def run_slice(s: Any, c: Any) -> Any:
    """Run core `c` from its pc until it must stop; 0, or the error that ended it.

    TRANSLATE: it has come to a page that the other engine translates.
    """
    local, room = np.int64(_LOCAL + c * LOCAL_SIZE), np.int64(LOCAL_SIZES[c])
    pc, word, l1 = np.int64(s.pc[c]), np.int64(0), np.int64(0 if s.l0[0] else l1_end(s))
    translates = s.translate_after[0] != 0
    code = np.uint8(1 << c if translates else 0)
    while True:
        s.pc[c] = np.uint32(pc)
        most = _room(s, c, pc, translates)
        if most < 0:
            return -most
        if s.fuel[c] <= 0 or s.attention[0] != 0:
            kind = stop(s, c, pc)
            if kind != turn.NONE:
                s.stop_kind[c] = kind
                return np.int64(0)
        given, page, target = s.fuel[c], pc >> _PAGE_BITS, pc
        fuel = given
        last = fuel - 1 if s.attention[0] != 0 else max(fuel - most, np.int64(0))
        while fuel > last and pc >> _PAGE_BITS == page:
            word = l1_word(s, pc)
            target = semantics.step(s, c, pc, word, local, room, l1, code)
            if target < 0 or target >= LEAVE:
                break
            pc = target
            fuel -= 1
        s.fuel[c] = fuel
        if target < 0:
            s.pc[c] = np.uint32(pc)
            is_store = word & 0x7F == _STORE
            pc = store(s, c, pc, word) if is_store else special(s, c, pc, word)
        elif target >= LEAVE:
            pc = target - LEAVE
            s.fuel[c] -= 1
            s.attention[0] |= turn.STORED
        if translates:
            s.page_count[c, page] += given - s.fuel[c] + 1
        if pc < 0:
            return _STOP - pc


def run_core(s: Any, c: Any) -> Any:
    """STEP entry: run or resume the turn of core `c`; 0 = the turn is over."""
    if not turn.opens(s, c):
        return np.int64(0)
    error = run_slice(s, c) if turn.starts(s, c) else np.int64(0)
    return turn.end(s, c, error, np.int64(s.pc[c]))
