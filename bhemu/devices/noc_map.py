"""What a chip tells its tiles of the NoC: which endpoint a coordinate means, as one table.

The table has a word for each coordinate: [with translation, without][NoC][y, x]. Its address is in
the record (`noc_map`, 0 without a chip); noc/grid.py fills it.
"""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import load_word
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE

COORDINATES = 1 << 12  # y << 6 | x
WIDTH, HEIGHT = 17, 12  # of both NoCs
COLUMNS = (*range(1, 8), *range(10, 17))  # of Tensix tiles
ROWS = range(2, 12)
TILES = len(COLUMNS) * len(ROWS)

# What answers at endpoints that are no Tensix tile
DRAM_SIZE = 0xFF000000  # of a bank; the tile's own registers follow
ETHERNET_L1_SIZE = 0x80000
ETHERNET_TYPE = 2  # in the upper half of NOC_ENDPOINT_ID
PCIE_HOST, PCIE_SIZE = 1 << 60, 1 << 32  # the host's memory, which begins at bit 60

# Kinds of endpoints. Those of MEMORIES are plain bytes to the NoC; at SECURITY nothing answers.
# TENSIX is any tile whose cores run: Ethernet tiles too where they do, numbered after the others.
NOTHING, TENSIX, DRAM, PCIE, ARC, ETHERNET, L2CPU, SECURITY, ROUTER, HARVESTED = range(10)
KIND_NAMES = (
    *("no tile", "Tensix tile", "DRAM bank", "PCIe tile", "ARC tile", "Ethernet tile"),
    *("L2CPU tile", "security tile", "router-only tile", "harvested Tensix tile"),
)
MEMORIES = (DRAM, PCIE, ARC, ETHERNET)


def tile_number(x: int, y: int) -> int:
    """Index of a Tensix tile by its coordinate."""
    return len(COLUMNS) * (y - ROWS[0]) + COLUMNS.index(x)


def on_noc(noc: int, xy: tuple[int, int]) -> tuple[int, int]:
    """A physical coordinate as this NoC counts it."""
    return xy if noc == 0 else (WIDTH - 1 - xy[0], HEIGHT - 1 - xy[1])


def endpoint(kind: int, index: int, x: int, y: int) -> int:
    """The word of an endpoint: what it is, which, and its coordinate on this NoC."""
    return kind | index << 4 | x << 12 | y << 18


@njit
def kind(word: Any) -> Any:
    """What the endpoint is."""
    return word & 15


@njit
def index(word: Any) -> Any:
    """Which of its kind: tile 0-139, 140-153 with Ethernet; bank, channel."""
    return (word >> 4) & 0xFF


@njit
def place(word: Any) -> Any:
    """Its coordinate on this NoC, y << 6 | x."""
    return (word >> 12) & 0xFFF


@njit
def look_up(s: Any, noc: Any, coordinate: Any, physical: Any) -> Any:
    """The endpoint at a coordinate that software gave."""
    row = 2 * physical + noc
    return load_word(np.int64(s.noc_map[0]) + 4 * (row * COORDINATES + (coordinate & 0xFFF)))


@njit
def l1_end(s: Any) -> Any:
    """First address after L1 of a tile with cores."""
    ethernet = s.niu_endpoint[0] >> 16 & 0xFF == ETHERNET_TYPE
    return np.int64(ETHERNET_L1_SIZE if ethernet else L1_SIZE)
