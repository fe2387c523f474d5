"""What the chip's firmware leaves where hosts look: ARC's scratch and telemetry, Ethernet's status.

Only what hosts read when they open a chip; ARC and the Ethernet cores execute nothing. Sources:
tt-umd (ARC registers, telemetry tags, boot results of Ethernet tiles), values of an idle chip.
"""

from collections.abc import Iterator

from bhemu import memmap as mm
from bhemu.devices.noc_map import on_noc
from bhemu.noc.grid import ETHERNET_COLUMNS, Grid
from bhemu.noc.record import ARC_MEMORY, ETHERNET_MEMORY

_SCRATCH = 0x80030400
_BOOT_STATUS, _QUEUES, _VALUES_AT, _TABLE_AT = 0x08, 0x2C, 0x30, 0x34
_READY = 5
_TABLE, _VALUES, _CONTROL, _QUEUE = 0x10000100, 0x10000200, 0x10000300, 0x10000400
_QUEUE_SHAPE = 8 | 4 << 8  # entries of each, queues
_P150A, _P100A = 0x40, 0x43  # product, in the board's serial number
_BUNDLE = 18 << 24 | 5 << 16  # version of the firmware
_GDDR_TRAINED = 0b01
_ETHERNET_STATUS, _INIT_PASSED, _PORT_DOWN = 0x7CC00, 0xC0DEA000, 2
_ETHERNET_VERSION = 0x7CFBC
_SIZE = 17 << 12 | 12 << 19  # of a NoC, in NODE_ID
_LOGICAL_ROW, _FIRST_LOGICAL = 25, 20

Word = tuple[int, int, int]  # memory (record.py), address, value


def _telemetry(grid: Grid) -> dict[int, int]:
    """Values by tag."""
    product = _P150A if grid.banks == 8 else _P100A
    columns = sum(1 << i for i, x in enumerate(ETHERNET_COLUMNS) if x not in grid.harvested)
    return {
        1: product << 4,  # board, high and low word
        2: 1,
        3: 1,  # ASIC
        4: 0,
        11: 40 << 16,  # temperatures, in degrees with 16 bits of fraction
        13: 35 << 16,
        14: 1000,  # clocks in MHz: AI, AXI, ARC
        15: 900,
        16: 540,
        21: 0,  # Ethernet links that are up
        22: sum(_GDDR_TRAINED << 2 * bank for bank in range(grid.banks)),
        28: _BUNDLE,
        32: 1,  # heartbeat
        34: columns,  # enabled: columns of Tensix tiles, Ethernet tiles, GDDR
        35: (1 << 12) - 1,
        36: (1 << grid.banks) - 1,
        38: 1,  # use of the PCIe tiles, two bits each: the first is an endpoint
        52: 0,  # place of the ASIC on its board
        61: 0,
        62: 1,
    }


def _arc(grid: Grid) -> Iterator[Word]:
    pointers = {_BOOT_STATUS: _READY, _QUEUES: _CONTROL, _VALUES_AT: _VALUES, _TABLE_AT: _TABLE}
    for offset, value in pointers.items():
        yield ARC_MEMORY, _SCRATCH + offset, value
    yield ARC_MEMORY, _CONTROL, _QUEUE
    yield ARC_MEMORY, _CONTROL + 4, _QUEUE_SHAPE
    values = _telemetry(grid)
    yield ARC_MEMORY, _TABLE, 1  # version of the table
    yield ARC_MEMORY, _TABLE + 4, len(values)
    for i, (tag, value) in enumerate(values.items()):
        yield ARC_MEMORY, _TABLE + 8 + 4 * i, tag | i << 16
        yield ARC_MEMORY, _VALUES + 4 * i, value


def _ethernet() -> Iterator[Word]:
    for n, x in enumerate(ETHERNET_COLUMNS):
        memory = ETHERNET_MEMORY + n
        yield memory, _ETHERNET_STATUS, _INIT_PASSED
        yield memory, _ETHERNET_STATUS + 4, _PORT_DOWN
        yield memory, _ETHERNET_VERSION, 1 << 16 | 6 << 8
        yield memory, mm.DEBUG_BASE + mm.RISCV_DEBUG_REG_SOFT_RESET_0, mm.SOFT_RESET_ALL
        for noc, base in enumerate((mm.NOC0_BASE, mm.NOC1_BASE)):
            at = on_noc(noc, (x, 1))
            first = 0 if noc else 1 << 28
            yield memory, base + mm.NOC_NODE_ID, at[0] | at[1] << 6 | _SIZE | first
            yield memory, base + mm.NOC_ENDPOINT_ID, n | 0x0200 << 8 | noc << 24
            yield memory, base + mm.NIU_CFG_0, 1 << 14
            yield memory, base + mm.NOC_ID_LOGICAL, (_FIRST_LOGICAL + n) | _LOGICAL_ROW << 6


def words(grid: Grid) -> dict[tuple[int, int], int]:
    """Values by (memory, address)."""
    return {(memory, at): value for memory, at, value in (*_arc(grid), *_ethernet())}
