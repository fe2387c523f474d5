"""Which loads and scheduled stores of one cycle meet in Dst, against the sets of their cells.

SFPLOAD and SFPSTORE take four rows from row & ~3 on, the even or the odd columns by bit 1 of the
row; a 32-bit datum lies in two rows of the storage, eight apart (SFPLOAD, Dst; Blackhole ISA).
"""

import pytest
from matrix_reference import high_row
from sfpu_runner import fresh
from test_vector_loadstore import FP32_ENABLED, LLK, WIDE_LOADS, WIDE_STORES

from bhemu.jit.subset import JIT
from bhemu.tensix.state import DTYPE
from bhemu.tensix.units.vector.loadstore import collide

MODES = (1, 2, 3, 4, 6, 7, 9, 12, 14)
ROWS = (0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24)


def cells(
    mode: int, row: int, wide_modes: tuple[int, ...], high_half: bool
) -> set[tuple[int, int]]:
    """(row of the storage, whether odd columns) of every cell that an access touches."""
    found = set()
    for r in range(row & ~3, (row & ~3) + 4):
        wide = mode in wide_modes
        first = high_row(r) if wide or (high_half and mode == 2) else r
        found.add((first, row >> 1 & 1))
        if wide:
            found.add((first + 8, row >> 1 & 1))
    return found


@pytest.mark.parametrize("high_half", [False, True])
def test_they_meet_when_they_share_a_cell(high_half: bool) -> None:
    s = fresh(0)
    s.cfg[:, 1] = FP32_ENABLED if high_half else 0
    s.reference[0] = LLK if high_half else 0
    record = s.buffer.view(DTYPE)[0] if JIT else s
    met = 0
    for load in MODES:
        for store in MODES:
            for one in ROWS:
                for other in ROWS:
                    want = bool(
                        cells(load, one, WIDE_LOADS, high_half)
                        & cells(store, other, WIDE_STORES, high_half)
                    )
                    assert bool(collide(record, 0, load, one, store, other)) == want, (
                        (load, one),
                        (store, other),
                    )
                    met += want
    assert 500 < met < len(MODES) ** 2 * len(ROWS) ** 2 / 2
