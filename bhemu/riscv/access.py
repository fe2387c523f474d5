"""Loads and stores of a core, watched or not."""

from typing import Any

import numpy as np

from bhemu.devices import debug_port, queues
from bhemu.devices.bus import window
from bhemu.jit.intrinsics import call_access
from bhemu.jit.subset import njit
from bhemu.memmap import CORE_NAMES, INSTRN_BUF_BASE, INSTRN_BUF_END
from bhemu.riscv import csr as csr_file
from bhemu.riscv import semantics
from bhemu.riscv.formats import Load, Store
from bhemu.riscv.turn import FAULT, POLLS, WAITS, accessed, fail
from bhemu.tensix import unspecified
from bhemu.tensix.observe import WORDS_AND_STORES, record_store
from bhemu.tensix.rules import DONE, LOOK, UB, UNIMPLEMENTED, error
from bhemu.tensix.state import BLOCKED

# What instructions of a core do outside of it: device accesses, pushes, CSRs; for both engines.
#
# An access that must wait, or is refused, is refused before any effect and is executed again
# later.

_NCRISC = CORE_NAMES.index("ncrisc")
REFUSED = -1  # from `csr`

UNKNOWN_CSR = error("RV-CSR", UNIMPLEMENTED, "CSR {csr:#x} is not modelled (word {word:#010x})")
NCRISC_PUSH = error("PUSH-NCRISC", UB, "ncrisc cannot push Tensix words (.ttinsn {word:#010x})")


@njit
def _refused(s: Any, c: Any, status: Any) -> None:
    """The access did not take place: give the instruction back, and wait, stop or report."""
    s.fuel[c] += 1
    if s.status[0] > DONE:  # a stop while the threads ran
        s.stop_kind[c] = WAITS
    elif status > DONE:
        s.core_state[c] = BLOCKED
        s.core_wait[c] = status
        s.stop_kind[c] = WAITS
    else:
        s.status[0] = status
        s.status_core[0] = c
        s.status_thread[0] = -1
        s.stop_kind[c] = FAULT


@njit
def load(s: Any, c: Any, address: Any, size: Any) -> Any:
    """Status of a device load, its value in s.loaded; unless DONE it did not take place."""
    s.load_acted[0] = 0
    status = call_access(s.bus_read[0], s, c, np.int64(address), np.int64(size), np.int64(0))
    if status != DONE:
        _refused(s, c, status)
        return status
    s.acted[c] |= s.load_acted[0]
    # A core that repeats one device load and stores nothing gives up the rest of its turn.
    if s.stored[c] == 1 or s.pc[c] != s.poll_pc[c]:
        s.poll_pc[c] = s.pc[c]
        s.poll_count[c] = 0
        s.poll_began[c] = 1
        s.stored[c] = 2 * min(s.stored[c], 1)
    s.poll_count[c] += 1
    if s.poll_count[c] >= POLLS:
        s.poll_count[c] = 0
        s.turn_yield[0] = 1
        s.attention[0] |= LOOK
    return status


@njit
def store(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """Status of a device store; unless DONE it did not take place.

    A word for the instruction FIFO goes there at once, without a look for its window.
    """
    at, size, value = np.int64(address), np.int64(size), np.int64(value)
    if size == 4 and INSTRN_BUF_BASE <= at < INSTRN_BUF_END and c < _NCRISC:
        s.core_address[c] = np.uint32(at)
        s.detail[0], s.detail[1], s.detail[2], s.detail[3] = at, value, size, c  # window.ACCESS
        status = queues.push(s, c, at - INSTRN_BUF_BASE, value)
    else:
        status = call_access(s.bus_write[0], s, c, at, size, value)
        if s.trace[0] == WORDS_AND_STORES and status == DONE:
            record_store(s, c, at, value)
    if status != DONE:
        _refused(s, c, status)
    return status


@njit
def push(s: Any, c: Any, word: Any) -> Any:
    """Push a Tensix word of `.ttinsn`; False when it must be repeated or is refused."""
    if c == _NCRISC:
        fail(s, c, NCRISC_PUSH, word=word)
        return False
    status = queues.push(s, c, np.int64(0), word)
    if status == DONE:
        return True
    s.detail[0] = INSTRN_BUF_BASE
    _refused(s, c, status)
    return False


@njit
def csr(s: Any, c: Any, word: Any, a: Any) -> Any:
    """Execute a CSR instruction, counted, with `a` in rs1: the value for rd, or REFUSED."""
    s.acted[c] = 1
    writes = semantics.csr_writes(word)
    number = word >> 20 if writes != semantics.NONE else np.int64(0)
    if csr_file.shows_coprocessor(number):
        s.fuel[c] -= 1  # as in every access that lets the threads run
        status = window.offer(s, c)
        if status != DONE:
            _refused(s, c, status)
            return np.int64(REFUSED)
        s.fuel[c] += 1
    if csr_file.depends_on_doubt(s, number):
        s.fuel[c] -= 1
        _refused(s, c, unspecified.open_refused(s))
        return np.int64(REFUSED)
    old = csr_file.value(s, c, number)
    if old < 0:
        fail(s, c, UNKNOWN_CSR, word=word, csr=number)
        return np.int64(REFUSED)
    if writes:
        csr_file.store(s, c, number, semantics.csr_value(word, old, a))
    s.fuel[c] -= 1
    return old


# What the next instruction accesses, for watchpoints of the debug port; for both engines.

_LOAD, _STORE = Load.code(), Store.code()


@njit
def announce(s: Any, c: Any, word: Any, base: Any) -> None:
    """The word that core `c` executes next, with `base` in rs1."""
    low, size = word & 0x7F, semantics.size(word)
    if size > 0:
        at = accessed(word, base)
        debug_port.watch(s, c, at, size, low != _STORE, low != _LOAD)
