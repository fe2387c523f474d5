"""Writing cells to a source register: rows wrap, transposition, column shift."""

from typing import Any

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.tensix.rwc import SRC_ROWS
from bhemu.tensix.units.unpack.datums import to_cells
from bhemu.tensix.units.unpack.modes import column_shift

_SRC_CELLS = SRC_ROWS * 16


@njit
def to_src(s: Any, m: Any, src: Any, first: Any, start: Any, count: Any) -> None:
    """Write datums `start` to `count` of the Source in Mode `m`; datum 0 goes to cell `first`."""
    target = flat(s.src[m.unpacker, s.unpack_bank[m.unpacker] & 1])
    transposed = m.haloize and m.unpacker == 0
    shift = column_shift(s, m)
    done = start
    while done < count:
        at = (first + done) & (_SRC_CELLS - 1)
        n = min(count - done, _SRC_CELLS - at)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        cells = s.unpack_tmp[:n] if transposed or shift else target[at : at + n]
        to_cells(s, m, src, done, n, cells)
        if transposed or shift:
            for i in range(n):
                cell = at + i
                column = (cell & 15) - shift
                if column < 0:
                    continue
                row = cell >> 4
                if transposed:
                    row, column = (row & ~15) | column, row & 15
                target[16 * row + column] = cells[i]
        done += n
