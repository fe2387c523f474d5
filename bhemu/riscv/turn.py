"""A core's turn, whichever engine runs it: its length, what may stop it, what a stop means."""

from typing import Any

import numpy as np

from bhemu.devices import debug_port
from bhemu.jit.subset import njit
from bhemu.memmap import INSTRN_BUF_BASE, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv import polling
from bhemu.riscv.formats import Atomic, Load
from bhemu.riscv.refusals import (
    ASSERT,
    BREAKPOINT,
    FAULT,
    FLUSHES,
    LIMIT,
    NONE,
    TRAP,
    TURN_OVER,
    UNTIL,
    WATCH,
    fail,
)
from bhemu.tensix import observe
from bhemu.tensix.frontend import FIFO_FULL
from bhemu.tensix.state import BLOCKED, FIFO_DEPTH, LOCAL_SIZE, OFFSET, RUNNING
from bhemu.tensix.stops import (
    INSTRUCTIONS,
    LOOK,
    STOP_ASSERT,
    STOP_BREAKPOINT,
    STOP_CODE_PAGE,
    STOP_ENGINE,
    STOP_FLUSH,
    STOP_LIMIT,
    STOP_STEP,
    STOP_TIME,
    STOP_UNTIL,
    STOP_WATCH,
)
from bhemu.tensix.thread import until_holds

_LOAD, _AMO = Load.code(), Atomic.code()
_LOCAL = OFFSET["local"]

STORED = 2  # attention, as LOOK: compare the until words after a store
REWRITTEN = 4  # attention: the Unicorn engine must look at the code again

# Why a slice ended by itself: an error of an access or a fetch, by the Unicorn engine's numbers.
LOAD_UNMAPPED, STORE_UNMAPPED, FETCH_UNMAPPED, FETCH_PROT = 6, 7, 8, 14
MISALIGNED_FETCH = 0  # cause of a trap
_ACCESS_ERRORS = (LOAD_UNMAPPED, STORE_UNMAPPED, 12, 13)


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
def must_stop(s: Any, c: Any, address: Any) -> Any:
    """Stop kind when the core may not execute the instruction at `address` now, else NONE."""
    if s.status[0] != 0:
        return FAULT
    if s.watch_count[0] and observe.changed(s):
        s.status_thread[0] = -1
        return WATCH
    if s.attention[0] & STORED:
        s.attention[0] &= ~STORED
        if until_holds(s):
            return UNTIL
    if s.core_state[c] != RUNNING or s.turn_yield[0]:
        return TURN_OVER
    if debug_port.watches(s, c) and debug_port.halts(s, c, address):
        return TURN_OVER
    if s.flush[c]:
        return FLUSHES
    if s.fuel[c] <= 0:
        return LIMIT if s.fuel_given[c] < s.left[c] else TURN_OVER
    if s.breakpoint_count[c] and _at_breakpoint(s, c, address):
        return BREAKPOINT
    if s.watch_count[0]:
        s.watch_pc[c] = np.uint32(address)
    return NONE


@njit
def watch_load(s: Any, c: Any, word: Any, base: Any) -> None:
    """Core `c` executes `word` next, with `base` in rs1: tell who watches what it loads."""
    kind, size = word & 0x7F, np.int64(4)
    at = base
    if kind == _LOAD:
        at = (base + (word >> 20) - ((word >> 31) << 12)) & 0xFFFFFFFF
        size = np.int64(1) << ((word >> 12) & 3)
    elif kind != _AMO:
        return
    if at < L1_SIZE:
        observe.loads(s, at, size)
    elif LOCAL_BASE <= at < LOCAL_BASE + LOCAL_SIZES[c]:
        observe.loads(s, _LOCAL + c * LOCAL_SIZE + at - LOCAL_BASE, size)


@njit
def still_waits(s: Any, c: Any) -> Any:
    """A full FIFO that nobody has emptied: repeating the push would change nothing."""
    if s.core_state[c] != BLOCKED:
        return False
    if s.core_wait[c] == FIFO_FULL:
        t = (np.int64(s.core_address[c]) - INSTRN_BUF_BASE) >> 16 if c == 0 else c - 1
        if s.fifo_write[t] - s.fifo_read[t] >= FIFO_DEPTH:
            return True
    s.core_state[c] = RUNNING
    return False


@njit
def _clock(s: Any, c: Any) -> Any:
    """The clock as far as the turn of core `c` has come."""
    return s.clock[0] + s.turn_given[0] - s.left[c] + s.fuel_given[c] - s.fuel[c]


@njit
def _fuel(s: Any, c: Any) -> Any:
    """Instructions of the next slice: the rest of the turn, up to a step, a clock limit, a look."""
    fuel = min(s.left[c], INSTRUCTIONS * s.look_every[0])
    if s.retired_limit[c] >= 0:
        fuel = min(fuel, s.retired_limit[c] - s.retired[c])
    if s.limit[0] >= 0:
        fuel = min(fuel, max(s.limit[0] - _clock(s, c), 0))
    return fuel


@njit
def watchful(s: Any, c: Any) -> Any:
    """The attention that a slice of core `c` begins with."""
    if s.breakpoint_count[c] or s.turn_yield[0] or s.watch_count[0] or debug_port.watches(s, c):
        return LOOK
    return 0


@njit
def begin(s: Any, c: Any) -> Any:
    """Open a slice: fuel, attention; False when the core cannot start, as `end` will tell."""
    s.stop_kind[c] = NONE
    s.attention[0] = watchful(s, c)
    s.fuel[c] = s.fuel_given[c] = _fuel(s, c)
    if s.pc[c] & np.uint32(3):
        fail(s, c, TRAP, address=np.int64(s.pc[c]), cause=np.int64(MISALIGNED_FETCH))
        return False
    return True


@njit
def end(s: Any, c: Any, error: Any, pc: Any) -> Any:
    """Close a slice that ended, by itself with `error` at `pc` if no stop kind says why.

    Returns 0 when the turn is over or waits, else why everything stops.
    """
    if error == FETCH_PROT or error == FETCH_UNMAPPED:
        s.pc[c] = np.uint32(pc)
    elif error in _ACCESS_ERRORS:
        s.fuel[c] += 1  # the load or store did not retire
    polling.end(s, c)
    status = _outcome(s, c, error)
    used = s.fuel_given[c] - s.fuel[c]
    s.fuel[c] = s.fuel_given[c] = 0
    s.left[c] -= used
    s.retired[c] += used
    return status


@njit
def _outcome(s: Any, c: Any, error: Any) -> Any:
    """Status of a slice that ended: 0 the turn is over or waits, else why everything stops."""
    status = s.status[0]
    if status != 0:
        if status > 0:
            s.status[0] = 0
        return status
    kind = s.stop_kind[c]
    if kind == NONE and error == FETCH_PROT:
        return np.int64(STOP_CODE_PAGE)
    if kind == NONE:
        s.detail[0] = error
        return np.int64(STOP_ENGINE)
    if kind == LIMIT:
        if s.limit[0] >= 0 and _clock(s, c) >= s.limit[0]:
            return np.int64(STOP_LIMIT)
        retired = s.retired[c] + s.fuel_given[c] - s.fuel[c]
        stepped = 0 <= s.retired_limit[c] <= retired
        return np.int64(STOP_STEP if stepped else STOP_TIME)
    if kind == FLUSHES:
        return np.int64(STOP_FLUSH)
    if kind == BREAKPOINT:
        return np.int64(STOP_BREAKPOINT)
    if kind == ASSERT:
        return np.int64(STOP_ASSERT)
    if kind == UNTIL:
        return np.int64(STOP_UNTIL)
    if kind == WATCH:
        return np.int64(STOP_WATCH)
    return np.int64(0)
