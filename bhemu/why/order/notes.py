"""Notes of what an observed tile does, in order: pushed words, stores to counters, requests, words
that move L1. Checks read them after the run (conflicts.Observed)."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.jit.subset import njit
from bhemu.riscv import turn
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config import CONFIG_WORDS, SHARED
from bhemu.tensix.state import THREADS
from bhemu.why.order import clocks
from bhemu.why.order import record as r

# What a note is of: 0 to 8, a word of a MOP's template; then
PUSHED, STORED, ASKED, UNPACKED, PACKED = range(9, 14)
STALE, DROPPED, ACCESSED = range(14, 17)  # of a core whose data cache has given old bytes
# Words of Config that set the format and the address, by unit
_FORMATS = (
    np.int64(cf.THCON_SEC0_REG0_TileDescriptor.word),
    np.int64(cf.THCON_SEC1_REG0_TileDescriptor.word),
    np.int64(cf.THCON_SEC0_REG1_Out_data_format.word),
)
_ADDRESSES = (
    np.int64(cf.THCON_SEC0_REG3_Base_address.word),
    np.int64(cf.THCON_SEC1_REG3_Base_address.word),
    np.int64(cf.THCON_SEC0_REG1_L1_Dest_addr.word),
)
_PACKER = 2  # of both, after two unpackers


@njit
def note(
    s: Any, o: Any, what: Any, t: Any, value: Any, pc: Any, c: Any, low: Any, high: Any
) -> Any:
    """The number of a new note; -1: there are too many."""
    i = np.int64(o.notes[0])
    if i == r.NOTES:
        return np.int64(-1)
    o.notes[0] += 1
    new = o.note[i]
    new[r.N_WHAT], new[r.N_THREAD], new[r.N_VALUE], new[r.N_PC] = what, t, value, pc
    new[r.N_CORE], new[r.N_TIME], new[r.N_LOW], new[r.N_HIGH] = c, clocks.now(s), low, high
    return i


@njit
def core(s: Any, o: Any, c: Any, pc: Any, word: Any, way: Any, address: Any, value: Any) -> None:
    """Core `c` has executed an instruction; way: 1 = a load, 2 = a store."""
    what, t, zero = np.int64(-1), c - 1, np.int64(0)
    if word & 3 != 3:
        what, value, t = np.int64(PUSHED), turn.pushed(word), max(t, zero)
    elif way & 2 and mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END:
        what, t = np.int64(PUSHED), t if c else (address - mm.INSTRN_BUF_BASE) >> 16
    elif way & 2 and mm.MOP_CFG_BASE <= address < mm.MOP_CFG_END:
        what = (address - mm.MOP_CFG_BASE) >> 2
    elif way & 2 and mm.OVERLAY_BASE <= address < mm.OVERLAY_END:
        note(s, o, np.int64(STORED), np.int64(-1), value, pc, c, address, zero)
    if what >= 0 and 0 <= t < THREADS:
        note(s, o, what, t, value, pc, c, zero, zero)


@njit
def cached(s: Any, o: Any, c: Any, pc: Any, drops: Any, address: Any) -> None:
    """Core `c` gets old bytes from its data cache, or accesses memory after that.

    drops: the instruction is a fence or an atomic, which empties the cache.
    """
    what, zero = np.int64(DROPPED if drops else ACCESSED), np.int64(0)
    if s.l0_stale[c, 0] != o.stale[c]:
        what, o.stale[c] = np.int64(STALE), s.l0_stale[c, 0]
    note(s, o, what, np.int64(-1), zero, pc, c, address, zero)


@njit
def moves(s: Any, o: Any, t: Any, at: Any) -> None:
    """An UNPACR or PACR of thread `t` moves the range `at`, as o.moving describes it."""
    unit, step = o.moving[r.M_UNIT], o.step
    what = np.int64(PACKED if unit == _PACKER else UNPACKED)
    i = note(s, o, what, t, step[2], step[0], step[3], o.range[at, 0], o.range[at, 1])
    if i >= 0:
        new = o.note[i]
        new[r.N_FORMAT], new[r.N_DATUMS] = o.moving[r.M_FORMAT], o.moving[r.M_DATUMS]
        clocks.copy(new, r.N_BY_FORMAT, o.set_by[_index(s, t, _FORMATS[unit])], 0, 6)
        clocks.copy(new, r.N_BY_ADDRESS, o.set_by[_index(s, t, _ADDRESSES[unit])], 0, 6)


@njit
def _index(s: Any, t: Any, word: Any) -> Any:
    """A word of Config among those of both banks."""
    return word if word >= SHARED else config.bank(s, t) * CONFIG_WORDS + word
