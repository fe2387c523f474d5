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
_FORMATS = tuple(
    np.int64(one.word)
    for one in (
        cf.THCON_SEC0_REG0_TileDescriptor,
        cf.THCON_SEC1_REG0_TileDescriptor,
        cf.THCON_SEC0_REG1_Out_data_format,
    )
)
_ADDRESSES = tuple(
    np.int64(one.word)
    for one in (
        cf.THCON_SEC0_REG3_Base_address,
        cf.THCON_SEC1_REG3_Base_address,
        cf.THCON_SEC0_REG1_L1_Dest_addr,
    )
)
_PACKER = 2  # of both, after two unpackers


@njit
def _note(s: Any, o: Any, what: Any, t: Any, value: Any, pc: Any, c: Any) -> Any:
    """The number of a new note; -1: there are too many."""
    i = np.int64(o.notes[0])
    if i == r.NOTES:
        return np.int64(-1)
    o.notes[0] += 1
    note = o.note[i]
    note[r.N_WHAT], note[r.N_THREAD], note[r.N_VALUE] = what, t, value
    note[r.N_PC], note[r.N_CORE], note[r.N_TIME] = pc, c, clocks.now(s)
    return i


@njit
def core(s: Any, o: Any, c: Any, pc: Any, word: Any, way: Any, address: Any, value: Any) -> None:
    """Core `c` has executed an instruction; way: 1 = a load, 2 = a store."""
    what, t = np.int64(-1), c - 1
    if word & 3 != 3:
        what, value, t = np.int64(PUSHED), turn.pushed(word), max(t, np.int64(0))
    elif way & 2 and mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END:
        what, t = np.int64(PUSHED), t if c else (address - mm.INSTRN_BUF_BASE) >> 16
    elif way & 2 and mm.MOP_CFG_BASE <= address < mm.MOP_CFG_END:
        what = (address - mm.MOP_CFG_BASE) >> 2
    elif way & 2 and mm.OVERLAY_BASE <= address < mm.OVERLAY_END:
        stores(s, o, c, np.int64(-1), address, value)
    if what >= 0 and 0 <= t < THREADS:
        _note(s, o, what, t, value, pc, c)


@njit
def stores(s: Any, o: Any, c: Any, t: Any, address: Any, value: Any) -> None:
    """Core `c`, or a word of thread `t`, stores to a register of a stream."""
    i = _note(s, o, np.int64(STORED), t, value, o.step[0], c)
    if i >= 0:
        o.note[i, r.N_LOW] = address


@njit
def asks(s: Any, o: Any, c: Any, reads: Any, low: Any, high: Any) -> None:
    """Core `c` has sent a request that moves bytes of its L1."""
    i = _note(s, o, np.int64(ASKED), np.int64(-1), reads, o.step[0], c)
    if i >= 0:
        o.note[i, r.N_LOW], o.note[i, r.N_HIGH] = low, high


@njit
def cached(s: Any, o: Any, c: Any, pc: Any, drops: Any, address: Any) -> None:
    """Core `c` gets old bytes from its data cache, or accesses memory after that.

    drops: the instruction is a fence or an atomic, which empties the cache.
    """
    what = np.int64(DROPPED if drops else ACCESSED)
    if s.l0_stale[c, 0] != o.stale[c]:
        what, o.stale[c] = np.int64(STALE), s.l0_stale[c, 0]
    i = _note(s, o, what, np.int64(-1), np.int64(0), pc, c)
    if i >= 0:
        o.note[i, r.N_LOW] = address


@njit
def moves(s: Any, o: Any, t: Any, at: Any) -> None:
    """An UNPACR or PACR of thread `t` moves the range `at`, as o.moving describes it."""
    unit = o.moving[r.M_UNIT]
    what = np.int64(PACKED if unit == _PACKER else UNPACKED)
    i = _note(s, o, what, t, o.step[2], o.step[0], o.step[3])
    if i >= 0:
        note = o.note[i]
        note[r.N_LOW], note[r.N_HIGH] = o.range[at, 0], o.range[at, 1]
        note[r.N_FORMAT], note[r.N_DATUMS] = o.moving[r.M_FORMAT], o.moving[r.M_DATUMS]
        clocks.copy(note, r.N_BY_FORMAT, o.set_by[_index(s, t, _FORMATS[unit])], 0, 6)
        clocks.copy(note, r.N_BY_ADDRESS, o.set_by[_index(s, t, _ADDRESSES[unit])], 0, 6)


@njit
def _index(s: Any, t: Any, word: Any) -> Any:
    """A word of Config among those of both banks."""
    return word if word >= SHARED else config.bank(s, t) * CONFIG_WORDS + word
