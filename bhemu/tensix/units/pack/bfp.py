"""Block floating point output: one exponent byte and sixteen 8-, 4- or 2-bit datums per group.

Source: FloatBitPatterns and PACR, Blackhole ISA; rounding from ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import stochastic

u32 = np.uint32


@njit
def assemble(bits: Any, values: Any, data: Any) -> Any:
    """Write the group of values[0:16] (uint32, s[15] e[14:7] m7) to data[0 : 2 * bits] (uint8).

    e is the exponent of 8 bits, or of 5 for bfp8a, bfp4a and bfp2a.  Returns the shared exponent,
    the largest of the 16; 255 counts as a number.  Magnitudes are
    rounded to 7 bits, half up, and truncated to bits - 1; a zero magnitude has no sign, because
    the sign alone means minus infinity.
    """
    shared = _shared(values)
    cut, sign_at = u32(8 - bits), u32(bits - 1)
    for j in range(16):
        v = values[j]
        e = u32(u32(v >> u32(7)) & u32(0xFF))
        d = min(u32(shared - e), u32(8))
        m = u32(u32(v & u32(0x7F)) | (u32(0x80) if e else u32(0)))
        m = u32(u32(m + u32(u32(1) << d)) >> u32(d + u32(1)))
        m = u32(min(m, u32(127)) >> cut)
        values[j] = u32(m | (u32(u32(v >> u32(15)) << sign_at) if m else u32(0)))
    _write(bits, values, data)
    return shared


@njit
def assemble_by_chance(s: Any, bits: Any, values: Any, data: Any) -> Any:
    """As `assemble`, but magnitudes are rounded to 7 bits stochastically (stochastic.py)."""
    shared = _shared(values)
    for j in range(16):
        v = np.int64(values[j])
        e = v >> 7 & 0xFF
        d = min(np.int64(shared) - e, np.int64(15)) + 1
        m = v & 0x7F | (0x80 if e else 0)
        m = (m >> d) + stochastic.up(s, stochastic.LATE, m & ((1 << d) - 1), d)
        m = np.int64(min(m, 127)) >> (8 - bits)
        values[j] = u32(m | ((v >> 15 & 1) << (bits - 1) if m else 0))
    _write(bits, values, data)
    return shared


@njit
def _shared(values: Any) -> Any:
    shared = u32(0)
    for j in range(16):
        shared = max(shared, u32(u32(values[j] >> u32(7)) & u32(0xFF)))
    return shared


@njit
def _write(bits: Any, values: Any, data: Any) -> None:
    # The 16 datums of a group, the first of a byte lowest.
    if bits == 8:
        for j in range(16):
            data[j] = np.uint8(values[j])
    elif bits == 4:
        for k in range(8):
            data[k] = np.uint8(u32(values[2 * k] | u32(values[2 * k + 1] << u32(4))))
    else:
        for k in range(4):
            low = u32(values[4 * k] | u32(values[4 * k + 1] << u32(2)))
            high = u32(values[4 * k + 2] | u32(values[4 * k + 3] << u32(2)))
            data[k] = np.uint8(u32(low | u32(high << u32(4))))
