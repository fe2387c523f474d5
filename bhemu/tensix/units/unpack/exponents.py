"""UNPACR of block floats with 5-bit exponents (bfp8a, bfp4a, bfp2a): are they in range?

Everything is converted once, to look at the exponents before any effect; `stages` writes it.
"""

from typing import Any

import numpy as np

from bhemu.tensix.quirks import refuse
from bhemu.tensix.second_entries import UNPACK_EXPONENTS, second_entry
from bhemu.tensix.status import DONE, UB, error
from bhemu.tensix.units.adc import X
from bhemu.tensix.units.unpack import input_address
from bhemu.tensix.units.unpack.datums import PIECE, to_cells
from bhemu.tensix.units.unpack.word import UnpackWord, mode_of_word

EXPONENT = error(
    "UNPACR-BFP-EXPONENT",
    UB,
    "unpacker {unpacker}: an exponent of format {fmt}, less the leading zeros of its datum, is "
    "not in 0 to 31",
    "5-bit block floating point (bfp8a, bfp4a, bfp2a) has exponents from 0 to 31",
)


def _exponents_refused(s: Any, t: Any, f: Any) -> Any:
    m = mode_of_word(s, t, f)
    count = s.adc[m.counters, m.unpacker, 1, X] - s.adc[m.counters, m.unpacker, 0, X] + 1
    src = input_address.source(s, t, m)
    done = np.int64(0)
    while done < count:
        n = min(count - done, PIECE)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        if to_cells(s, m, src, done, n, s.unpack_tmp[:n]):
            return refuse(s, EXPONENT, unpacker=m.unpacker, fmt=m.fmt)
        done += n
    return DONE


exponents_refused = second_entry(UNPACK_EXPONENTS, _exponents_refused, UnpackWord)
