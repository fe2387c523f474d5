"""Block floating point output: one exponent byte and sixteen 8-, 4- or 2-bit datums per group.

Source: FloatBitPatterns and PACR, Blackhole ISA; rounding from ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.tensix.subset import njit


@njit
def assemble(bits: Any, values: Any, data: Any) -> Any:
    """Write the group of values[0:16] (uint32, s[15] e[14:7] m7) to data[0 : 2 * bits] (uint8).

    e is the exponent of 8 bits, or of 5 for bfp8a, bfp4a and bfp2a.  Returns the shared exponent,
    the largest of the 16; 255 counts as a number.  Magnitudes are
    rounded to 7 bits, half up, and truncated to bits - 1; a zero magnitude has no sign, because
    the sign alone means minus infinity.
    """
    shared = np.uint32(0)
    for j in range(16):
        shared = max(shared, (values[j] >> np.uint32(7)) & np.uint32(0xFF))
    for j in range(16):
        v = np.int64(values[j])
        e = (v >> 7) & 0xFF
        d: Any = min(np.int64(shared) - e, 8)
        m = v & 0x7F | (0x80 if e else 0)
        m = min((m + (1 << d)) >> (d + 1), 127) >> (8 - bits)
        values[j] = np.uint32(m | ((v >> 15) << (bits - 1) if m else 0))
    per_byte = 8 // bits
    for k in range(2 * bits):
        byte = np.int64(0)
        for j in range(per_byte):
            byte |= np.int64(values[k * per_byte + j]) << (bits * j)
        data[k] = np.uint8(byte)
    return shared
