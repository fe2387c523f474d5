"""Writing a PACR's datums to L1; where the next PACR goes on, and padding at the end of a tile."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import code_pages, formats
from bhemu.tensix.units.pack import bfp
from bhemu.tensix.units.pack.modes import late_by_chance
from bhemu.tensix.words import l1_halves, l1_words


@njit(forceinline=True)  # one caller
def store(s: Any, m: Any, n: Any, place: Any, values: Any) -> None:
    """Write values[0:n] (uint32 output datums) to the Place."""
    size, at = formats.datum_bits(m.out), place.data
    if formats.is_bfp(m.out):
        chance = late_by_chance(s, m)
        for group in range(n >> 4):
            start = at + 2 * size * group
            block = values[16 * group : 16 * group + 16]
            data = s.l1[start : start + 2 * size]
            if chance:
                shared = bfp.assemble_by_chance(s, size, block, data)
            else:
                shared = bfp.assemble(size, block, data)
            s.l1[place.exponent + group] = np.uint8(shared)
    elif size == 32:
        words = l1_words(s)[at >> 2 : (at >> 2) + n]
        for i in range(n):
            words[i] = values[i]
    elif size == 16:
        halves = l1_halves(s)[at >> 1 : (at >> 1) + n]
        for i in range(n):
            halves[i] = np.uint16(values[i])
    else:
        for i in range(n):
            s.l1[at + i] = np.uint8(values[i])


@njit
def advance(s: Any, m: Any, n: Any, place: Any, last: Any) -> None:
    """Go on behind the n datums; `last` fills up to 16 bytes with zeros and ends the tile."""
    s.pack_data[0] = place.data + (n * formats.datum_bits(m.out) >> 3)
    s.pack_exp[0] = place.exponent + (n >> 4)
    s.pack_open[0] = 1 - last
    code_pages.written(s, place.data, s.pack_data[0] - place.data + 15)
    code_pages.written(s, place.exponent, (n >> 4) + 15)
    if last:
        for at in range(s.pack_data[0], (s.pack_data[0] + 15) & ~15):
            s.l1[at] = np.uint8(0)
        if formats.is_bfp(m.out):
            for at in range(s.pack_exp[0], (s.pack_exp[0] + 15) & ~15):
                s.l1[at] = np.uint8(0)
