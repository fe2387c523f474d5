"""UNPACR with zero_write2: zeros to Src or Dst, whatever is read.

`stages` has checked the word and counts on afterwards.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest
from bhemu.tensix.rwc import SRC_ROWS
from bhemu.tensix.second_entries import UNPACK_ZEROS, second_entry
from bhemu.tensix.status import DONE
from bhemu.tensix.units.adc import X
from bhemu.tensix.units.unpack import output_address
from bhemu.tensix.units.unpack.formats import WIDE
from bhemu.tensix.units.unpack.modes import column_shift
from bhemu.tensix.units.unpack.output_address import FIRST_CELL
from bhemu.tensix.units.unpack.word import UnpackWord, mode_of_word


@njit(inline="always")  # one caller
def _clear(s: Any, m: Any, first: Any, count: Any) -> None:
    shift = column_shift(s, m)
    for at in range(first, first + count):
        row, column = at >> 4, at & 15
        if not m.to_dst:
            row, column = row & (SRC_ROWS - 1), column - shift
            if column < 0:
                continue
            if m.haloize and m.unpacker == 0:
                row, column = (row & ~15) | column, row & 15
            s.src[m.unpacker, s.unpack_bank[m.unpacker] & 1, row, column] = np.uint32(0)
        elif (WIDE >> m.out) & 1:
            dest.write32(s, row, column, np.int64(0))
        else:
            dest.write16(s, row, column, np.int64(0))


def _zeros(s: Any, t: Any, f: Any) -> Any:
    m = mode_of_word(s, t, f)
    first = output_address.first_cell(s, t, m)
    if m.unpacker == 0:
        first -= FIRST_CELL
    count = s.adc[m.counters, m.unpacker, 1, X] - s.adc[m.counters, m.unpacker, 0, X] + 1
    start = np.int64(0) if m.to_dst else np.int64(max(-first, 0))
    _clear(s, m, first + output_address.set_cells(s, t, m) + start, count - start)
    return DONE


zeros = second_entry(UNPACK_ZEROS, _zeros, UnpackWord)
