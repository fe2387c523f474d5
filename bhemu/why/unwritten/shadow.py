"""Bytes of a tile's record that a run uses before it writes them; the last writer of each word.

A byte is fresh until it is used or written. Places are offsets in the record of the tile.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.jit.subset import njit
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.frontend import FROM_MOP, FROM_REPLAY
from bhemu.tensix.state import DTYPE, LOCAL_SIZE, OFFSET, THREADS
from bhemu.why.order import record as r

_L1, _LOCAL, _CFG, _GPR, _DST = (OFFSET[name] for name in ("l1", "local", "cfg", "gpr", "dst"))
_SEM, _SENT, _STREAM, _MOP, _REPLAY, _VALID = (
    OFFSET[name] for name in ("sem", "mailbox_write", "stream", "mop_cfg", "replay", "dst_valid")
)
_OF_THREAD, _OF_MOP, _OF_REPLAY = (
    DTYPE[name].itemsize // THREADS for name in ("gpr", "mop_cfg", "replay")
)
_STREAM_END = mm.OVERLAY_BASE + DTYPE["stream"].itemsize
_ROW = 32  # bytes of a row of Dst
_SEMAPHORE = 8  # bytes
_PROBES = 16
_DST_WINDOW = 0x8000


@njit
def _actor(o: Any) -> Any:
    """1 + the number of the actor of the present access; 0: there are too many actors."""
    step = o.step
    i = (step[0] * 5 + (step[2] * 0x9E3779B1 >> 9) + step[4]) % r.ACTORS
    for _ in range(_PROBES):
        one = o.actor[i]
        same = one[6] > 0
        for k in range(5):
            same = same and one[k] == step[k]
        if one[6] == 0:
            for k in range(6):
                one[k] = step[k]
        if same or one[6] == 0:
            one[6] = step[5] + 1
            return i + 1
        i = (i + 1) % r.ACTORS
    return np.int64(0)


@njit
def _within(block: Any, low: Any, high: Any) -> Any:
    """The bytes of a block that are within a range, as bits."""
    first, last = max(low - r.BLOCK * block, 0), min(high - r.BLOCK * block, r.BLOCK)
    mask = np.int64(-1) << np.int64(first)
    if last < r.BLOCK:
        mask &= (np.int64(1) << np.int64(last)) - 1
    return mask


@njit
def uses(o: Any, low: Any, high: Any) -> None:
    """The bytes `low` to `high` are used."""
    for block in range(low // r.BLOCK, (high + r.BLOCK - 1) // r.BLOCK):
        hit = o.fresh[block] & _within(block, low, high)
        if hit:
            who = _actor(o)
            o.fresh[block] &= ~hit
            for k in range(r.BLOCK // 4):
                word = r.BLOCK // 4 * block + k
                if hit >> 4 * k & 15 and o.user[word] == 0:
                    o.user[word] = who


@njit
def makes(o: Any, low: Any, high: Any, whole: Any) -> None:
    """The bytes are written; whole: nothing of their old value is left."""
    who = _actor(o)
    for word in range(low >> 2, (high + 3) >> 2):
        o.maker[word] = who
    for block in range(low // r.BLOCK, (high + r.BLOCK - 1) // r.BLOCK if whole else 0):
        o.fresh[block] &= ~_within(block, low, high)


@njit
def brought(o: Any, low: Any, high: Any) -> None:
    """A request has brought the bytes `low` to `high` of L1."""
    high = min(high, mm.L1_SIZE)
    for word in range(_L1 + low >> 2, (_L1 + high + 3) >> 2):
        o.maker[word] = 0
    for block in range((_L1 + low) // r.BLOCK, (_L1 + high + r.BLOCK - 1) // r.BLOCK):
        o.fresh[block] &= ~_within(np.int64(block), np.int64(_L1 + low), np.int64(_L1 + high))


@njit
def l1(o: Any, low: Any, high: Any, write: Any) -> None:
    """A range of L1 is read or written."""
    high = min(high, mm.L1_SIZE)
    if low < high and write:
        makes(o, np.int64(_L1 + low), np.int64(_L1 + high), np.int64(1))
    elif low < high:
        uses(o, np.int64(_L1 + low), np.int64(_L1 + high))


@njit
def row(o: Any, number: Any, write: Any) -> None:
    """A row of Dst is read or written."""
    low, flag = np.int64(_DST + _ROW * number), np.int64(_VALID + 8 * number)
    if write:
        makes(o, low, low + _ROW, np.int64(1))
        makes(o, flag, flag + 8, np.int64(1))
    else:
        uses(o, low, low + _ROW)
        uses(o, flag, flag + 8)


@njit
def config_word(o: Any, word: Any, gpr: Any) -> None:
    """Some bits of a word of Config have changed; gpr: they are copied from it, -1: from none."""
    low = np.int64(_CFG + 4 * word)
    makes(o, low, low + 4, np.int64(0))
    o.set_by[word] = o.maker[low >> 2]
    if gpr >= 0 and o.maker[(_GPR >> 2) + gpr]:
        o.set_by[word] = o.maker[(_GPR >> 2) + gpr]


@njit
def reads_of(s: Any, o: Any, t: Any, i: Any) -> None:
    """A word of thread `t` uses its declared reads, and the slot or template that gave the word."""
    for k in range(r.TOUCHED):
        one = o.touched[i, 0, k]
        if one[1] == 0:
            break
        uses(o, one[0] + t * one[2], one[0] + t * one[2] + one[1])
    slot = s.gate_from[t] - FROM_REPLAY
    if slot >= 0 and s.replay_pc[t, slot] == 0:  # nobody has recorded it
        low = np.int64(_REPLAY + _OF_REPLAY * t + 4 * slot)
        uses(o, low, low + 4)
    elif s.gate_from[t] == FROM_MOP:
        low = np.int64(_MOP + _OF_MOP * t)
        uses(o, low, low + _OF_MOP)


@njit
def writes_of(o: Any, t: Any, i: Any) -> None:
    """A word of thread `t` makes its declared writes."""
    for k in range(r.TOUCHED):
        one = o.touched[i, 1, k]
        if one[1] == 0:
            break
        makes(o, one[0] + t * one[2], one[0] + t * one[2] + one[1], one[3])


@njit
def _place(c: Any, write: Any, address: Any) -> Any:
    """The place of an address of core `c` in the record, -1: none."""
    if address < mm.L1_SIZE:
        return np.int64(_L1 + address)
    if mm.LOCAL_BASE <= address < mm.LOCAL_BASE + mm.LOCAL_SIZES[0]:
        return np.int64(_LOCAL + LOCAL_SIZE * c + address - mm.LOCAL_BASE)
    if mm.TENSIX_CFG_BASE <= address < mm.TENSIX_CFG_BASE + 8 * CONFIG_WORDS:
        return np.int64(_CFG + address - mm.TENSIX_CFG_BASE)
    if mm.GPR_BASE <= address < mm.GPR_END:
        return np.int64(_GPR + address - mm.GPR_BASE + (_OF_THREAD * (c - 1) if c else 0))
    if mm.OVERLAY_BASE <= address < _STREAM_END:
        return np.int64(_STREAM + address - mm.OVERLAY_BASE)
    if mm.MOP_CFG_BASE <= address < mm.MOP_CFG_END and 1 <= c <= THREADS:
        return np.int64(_MOP + _OF_MOP * (c - 1) + address - mm.MOP_CFG_BASE)
    semaphore = (address - mm.PC_BUF_BASE - mm.PC_BUF_SEMAPHORES_OFFSET) >> 2
    if 0 <= semaphore < 8 and c:
        return np.int64(_SEM + _SEMAPHORE * semaphore)
    if mm.MAILBOX_BASE <= address < mm.MAILBOX_END and c < 4:
        other = (address - mm.MAILBOX_BASE) >> 12
        return np.int64(_SENT + 8 * (4 * c + other if write else 4 * other + c))
    return np.int64(-1)


@njit
def access(o: Any, c: Any, reads: Any, writes: Any, address: Any, size: Any) -> None:
    """A load, a store, or both, of core `c`."""
    if mm.DST_WINDOW_BASE <= address < mm.DST_WINDOW_BASE + _DST_WINDOW:
        if reads:
            row(o, (address - mm.DST_WINDOW_BASE) // _ROW, np.int64(0))
        return
    low = _place(c, np.int64(0), address) if reads else np.int64(-1)
    if low >= 0:
        uses(o, low, low + size)
    low = _place(c, np.int64(1), address) if writes else np.int64(-1)
    if low >= 0:  # of what counts, a store leaves something
        counts = mm.PC_BUF_BASE <= address < mm.MAILBOX_END
        counts = counts or mm.OVERLAY_BASE <= address < _STREAM_END
        makes(o, low, low + size, np.int64(0 if counts else 1))
