"""The L0 data cache of a core over L1, for both engines (MemoryOrdering and CSRs, Blackhole ISA).

Lines are filled by loads and are never told of what others write to L1. A store of the own core
drops its line, a fence or an atomic drops all. A hit drops all of them once in a while, unless the
core has set cfg0.DisLowCachePeriodicFlush; which hit does is what no source says, so a generator
decides, which begins with the tile's seed. Which line makes room is not known either: the one that
was used longest ago.
"""

import hashlib
from typing import Any

import numpy as np

from bhemu.jit.intrinsics import l1_word
from bhemu.jit.subset import njit
from bhemu.tensix.state import L0_LINE, L0_LINES

_DISABLED, _NO_PERIODIC_FLUSH = 1 << 3, 1 << 24  # of cfg0: DisLowCash, DisLowCachePeriodicFlush
_HITS = 128  # a hit drops all lines with a probability of one in so many: about 0.8 %
_ADDRESS, _USED = 0, 1  # places in l0_line; the address is one more than that, 0 = no line
_PMACFG = 0  # place of pmacfg0 in s.csr (csr.py); pmacfg1 is the next


def power_up(s: Any, seed: int, xy: tuple[int, int]) -> None:
    """Start the generators of a tile; none of them begins at zero, where it would stay."""
    begins, text = s.l0_random, "{} {} {}".format(seed, *xy)
    # A hash: numpy's generators take 10 ms to import.
    digest = hashlib.blake2b(text.encode(), digest_size=begins.nbytes).digest()
    begins[:] = np.maximum(np.frombuffer(digest, "<u4"), 1)


@njit
def drop(s: Any, c: Any) -> None:
    """Forget all lines of core `c`."""
    s.l0_line[c, :, _ADDRESS] = 0


@njit
def _ordered(s: Any, c: Any) -> Any:
    """True when loads and stores of the core behave as if after a fence."""
    return (s.csr[c, _PMACFG] | s.csr[c, _PMACFG + 1]) & np.uint32(1) != np.uint32(0)


@njit
def _holds(s: Any, c: Any, address: Any) -> Any:
    """The line that holds `address`, or -1."""
    for line in range(L0_LINES):
        if s.l0_line[c, line, _ADDRESS] == (address & -L0_LINE) + 1:
            return np.int64(line)
    return np.int64(-1)


@njit
def hits(s: Any, c: Any, address: Any, fill: Any) -> Any:
    """Whether a load in this cycle finds its line, `fill` cycles after the load that fills it."""
    if s.l0[0] == 0 or _ordered(s, c) or np.int64(s.cfg0[c]) & _DISABLED:
        return False
    line = _holds(s, c, address)
    return line >= 0 and s.clock[0] - s.l0_filled[c, line] >= fill


@njit
def stored(s: Any, c: Any, address: Any) -> None:
    """Core `c` stores to L1."""
    if _ordered(s, c):
        drop(s, c)
    line = _holds(s, c, address)
    if line >= 0:
        s.l0_line[c, line, _ADDRESS] = 0


@njit
def from_l1(s: Any, address: Any, size: Any) -> Any:
    """What L1 holds there, without sign."""
    value = l1_word(s, address) >> (8 * (address & 3))
    return value & ((1 << (8 * size)) - 1)


@njit
def load(s: Any, c: Any, address: Any, size: Any) -> Any:
    """What core `c` loads from an aligned address of L1, without sign."""
    if _ordered(s, c) or np.int64(s.cfg0[c]) & _DISABLED:
        drop(s, c)
    current = from_l1(s, address, size)
    if np.int64(s.cfg0[c]) & _DISABLED:
        return current
    line = _holds(s, c, address)
    s.l0_uses[c] += 1
    if line < 0:
        # Read the line from L1, in place of an empty one or of that which was used longest ago.
        line, begin = np.int64(0), address & -L0_LINE
        for other in range(L0_LINES):
            if s.l0_line[c, other, _ADDRESS] == 0:
                line = np.int64(other)
                break
            if s.l0_line[c, other, _USED] < s.l0_line[c, line, _USED]:
                line = np.int64(other)
        for i in range(L0_LINE // 4):
            s.l0_data[c, line, i] = np.uint32(l1_word(s, begin + 4 * i))
        s.l0_line[c, line, _ADDRESS], s.l0_filled[c, line] = begin + 1, s.clock[0]
        s.l0_line[c, line, _USED] = s.l0_uses[c]
        return current
    s.l0_line[c, line, _USED] = s.l0_uses[c]
    word = np.int64(s.l0_data[c, line, (address & (L0_LINE - 1)) >> 2])
    value = word >> (8 * (address & 3)) & ((1 << (8 * size)) - 1)
    if value != current:
        # Note that a load of the core gets other bytes than L1 holds.
        s.l0_stale[c, 0] += 1
        s.l0_stale[c, 1], s.l0_stale[c, 2] = address, np.int64(s.pc[c])
    if not np.int64(s.cfg0[c]) & _NO_PERIODIC_FLUSH:
        # Whether this hit drops all lines: 32 bits of an xorshift generator.
        x = np.int64(s.l0_random[c])
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        s.l0_random[c] = np.uint32(x)
        if x % _HITS == 0:
            drop(s, c)
    return value
