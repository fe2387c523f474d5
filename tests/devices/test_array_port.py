"""The debug array port: raw Dst cells, and nothing else (Tile control, debug and status)."""

import pytest

from bhemu.errors import InputError
from bhemu.machine.tile import Tile

ENABLE, COMMAND, DATA = 0xFFB12060, 0xFFB12064, 0xFFB1206C
DST = 2 << 16


def tile(command: int, enable: int = 1) -> Tile:
    made = Tile()
    made.state.dst[:] = [
        [row * 16 + column & 0xFFFF for column in range(16)] for row in range(1024)
    ]
    made.write32(ENABLE, enable)
    made.write32(COMMAND, command)
    return made


@pytest.mark.parametrize("row", [0, 1, 511, 512, 1023])
@pytest.mark.parametrize("select", [0, 3, 7])
def test_two_cells_of_a_row_whatever_its_valid_flag(row: int, select: int) -> None:
    made = tile(DST | select << 12 | row)
    first = row * 16 + 2 * select
    assert made.read32(DATA) == first | first + 1 << 16
    made.state.dst_valid[row] = 0
    assert made.read32(DATA) == first | first + 1 << 16


@pytest.mark.parametrize(
    ("command", "enable"),
    [
        (DST | 1024, 1),
        (DST | 0xFFF, 1),
        (DST | 8 << 12, 1),
        (0, 1),  # SrcA
        (1 << 16, 1),  # SrcB
        (3 << 16, 1),
        (DST, 0),
        (DST, 3),
    ],
)
def test_what_is_no_cell_of_dst_is_refused(command: int, enable: int) -> None:
    with pytest.raises(InputError, match="the debug array port is read with array"):
        tile(command, enable).read32(DATA)
