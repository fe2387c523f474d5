"""The state of a chip between its tiles: one structured record, as a tile's (tensix/state.py).

It holds the addresses of the tiles' records and of the pages of memory, so that compiled code finds
them; which tiles run, how far the round and its delivery have come, and what ends a run.
"""

import numpy as np

from bhemu.devices.noc_map import COORDINATES
from bhemu.jit.record import Member, Record, layout, offsets_of
from bhemu.jit.subset import signature
from bhemu.noc.grid import BANKS, ETHERNET_COLUMNS, TILES

_u8, _i64, _u32, _u64 = np.uint8, np.int64, np.uint32, np.uint64

# Memories behind endpoints, by number: the banks of DRAM, the host behind PCIe, ARC, Ethernet tiles
PCIE_MEMORY = BANKS
ARC_MEMORY = PCIE_MEMORY + 1
ETHERNET_MEMORY = ARC_MEMORY + 1
MEMORIES = ETHERNET_MEMORY + len(ETHERNET_COLUMNS)
MEMORY_SHIFT = 18
MEMORY_PAGE = 1 << MEMORY_SHIFT  # bytes of a page of memory
MEMORY_PAGES = (1 << 32) >> MEMORY_SHIFT
UNTIL_WORDS = 1024
DRAM_WATCHES, DRAM_WATCH_BYTES = 8, 64
BETWEEN, TILES_RUN, DELIVERY = range(3)  # phase of the round

MEMBERS = (
    Member("map", _u32, (2, 2, COORDINATES), "endpoints by coordinate (devices/noc_map.py)"),
    Member("tile", _u64, (TILES,), "address of the tile's record, 0 = not made yet"),
    Member("column", _i64, (TILES,), "physical coordinate of each tile: x"),
    Member("row", _i64, (TILES,), "and y"),
    Member("page", _u64, (MEMORIES, MEMORY_PAGES), "address of each page, 0 = not made yet"),
    Member("blank", _i64, (1,), "byte that memory without a page holds, -1 = make the page"),
    # tiles
    Member("awake", _i64, (TILES,), "1 = the tile takes part in the next round"),
    Member("due", _i64, (TILES,), "1 = the tile has not finished the open round"),
    Member("place", _i64, (TILES,), "which of the due tiles it is, to share them among threads"),
    Member("stopped", _i64, (TILES,), "status with which the tile stopped, 0 = none"),
    Member("asleep", _i64, (TILES,), "status with which the tile fell asleep: idle or deadlock"),
    Member("begun", _i64, (TILES,), "the tile's clock when the round began"),
    Member("skipping", _i64, (1,), "1 = tiles that only poll are left out of rounds"),
    Member("skip_from", _i64, (TILES,), "first round that the tile was left out of, -1 = none"),
    Member("skip_until", _i64, (TILES,), "the round in which it takes part again at the latest"),
    Member("skip_progress", _i64, (TILES,), "by how much each round moves its clock on"),
    Member("touched", _i64, (TILES,), "the last round in which something was delivered to it"),
    # the round
    Member("clock", _i64, (1,), "largest progress of a tile in each round, at least 1"),
    Member("round", _i64, (1,), "rounds completed"),
    Member("phase", _i64, (1,), "0 = between rounds, 1 = tiles run, 2 = requests are delivered"),
    Member("at", _i64, (2,), "delivery: tile, request of its queue"),
    Member("left", _i64, (TILES,), "requests of each tile that this delivery began with"),
    Member("late", _i64, (1,), "rounds by which a request may be held back, 0 = none"),
    Member("late_pc", _i64, (1,), "pc of the only requests that are held back, -1 = of all"),
    Member("seed", _i64, (1,), "which requests are held back, and how long"),
    Member("delivered", _i64, (1,), "requests delivered so far"),
    Member("wanted", _i64, (3,), "what Python must make: 0 tile, 1 page; which; which page"),
    Member("refused", _i64, (4,), "a refused request: tile, place in its queue, target, status"),
    # the end of a run
    Member("until_count", _i64, (1,), "until conditions set"),
    Member("until_tile", _i64, (UNTIL_WORDS,), "tiles whose L1 words are compared"),
    Member("until_address", _i64, (UNTIL_WORDS,), "their addresses"),
    Member("until_value", _u32, (UNTIL_WORDS,), "their values"),
    Member("until_own", _i64, (TILES,), "how many of them are of each tile"),
    Member("until_polling", _i64, (1,), "1: stop when every core that runs only polls"),
    Member("limit", _i64, (1,), "clock at which to stop, -1 = never"),
    # watchpoints on DRAM (noc/dram_watch.py)
    Member("dram_watch_count", _i64, (1,), "watchpoints on DRAM set"),
    Member("dram_watch", _i64, (DRAM_WATCHES, 6), "owner, number, bank, address, length, access"),
    Member("dram_seen", _u8, (DRAM_WATCHES, DRAM_WATCH_BYTES), "what was last seen there"),
    Member("dram_hit", _i64, (5,), "row + 1 (0 = none), 1 = read, tile, core, pc of the request"),
    Member("dram_before", _u8, (DRAM_WATCH_BYTES,), "what was there before the hit"),
    Member("dram_after", _u8, (DRAM_WATCH_BYTES,), "and after it"),
)
DTYPE = layout(MEMBERS)
OFFSET = offsets_of(DTYPE)
CHIP_STEP = signature("int64", DTYPE, "int64")  # run rounds, or one share of the tiles


class ChipState(Record):
    """A chip's record, with a view per member."""

    MEMBERS = MEMBERS
    DTYPE = DTYPE

    def __init__(self) -> None:
        super().__init__()
        self.limit[0] = -1
        self.begun[:] = self.skip_from[:] = self.touched[:] = -1
        self.skipping[0] = 1
