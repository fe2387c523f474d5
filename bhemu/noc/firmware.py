"""The chip's firmware as hosts meet it: what it leaves where they look, messages that ARC answers.

Only what hosts read when they open a chip; ARC and the Ethernet cores execute nothing. Sources:
tt-umd (ARC registers, telemetry tags, boot results of Ethernet tiles, message queue, codes), values
of an idle chip.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bhemu import memmap as mm
from bhemu.devices.noc_map import on_noc
from bhemu.errors import NotModelled
from bhemu.noc.grid import CHIPS_A_BOARD, ETHERNET_COLUMNS, Grid
from bhemu.noc.record import ARC_MEMORY, ETHERNET_MEMORY

if TYPE_CHECKING:
    from bhemu.noc.network import Network

# What firmware leaves: ARC's scratch and telemetry, Ethernet's status.

_SCRATCH = 0x80030400
_BOOT_STATUS, _QUEUES, _VALUES_AT, _TABLE_AT = 0x08, 0x2C, 0x30, 0x34
_READY = 5
_TABLE, _VALUES, _CONTROL, _QUEUE = 0x10000100, 0x10000200, 0x10000300, 0x10000400
_QUEUE_SHAPE = 8 | 4 << 8  # entries of each, queues
_P150A, _P100A, _P300 = 0x40, 0x43, 0x44  # product, in the board's serial number
_BUNDLE = 18 << 24 | 5 << 16  # version of the firmware
_GDDR_TRAINED = 0b01
_ETHERNET_STATUS, _INIT_PASSED, _PORT_UP, _PORT_DOWN = 0x7CC00, 0xC0DEA000, 1, 2
_ETHERNET_TILES = (1 << 12) - 1  # that work, by channel
_TRAINED = 2
_LIVE_LINK = 0x7CE04  # 1 = the receiver's link is up
_ABOUT_OWN, _ABOUT_OTHER = 0x7CFC0, 0x7CFE0  # what each end of a link is
_ETHERNET_VERSION = 0x7CFBC
_SIZE = 17 << 12 | 12 << 19  # of a NoC, in NODE_ID
_LOGICAL_ROW, _FIRST_LOGICAL = 25, 20

Word = tuple[int, int, int]  # memory (record.py), address, value


def _board(grid: Grid, number: int) -> tuple[int, int]:
    """The two words of the board's number, of a chip."""
    product = _P150A if grid.banks == 8 else _P100A
    return (product if grid.chips == 1 else _P300) << 4, 1 + number // CHIPS_A_BOARD


def _arc(grid: Grid) -> Iterator[Word]:
    pointers = {_BOOT_STATUS: _READY, _QUEUES: _CONTROL, _VALUES_AT: _VALUES, _TABLE_AT: _TABLE}
    for offset, value in pointers.items():
        yield ARC_MEMORY, _SCRATCH + offset, value
    yield ARC_MEMORY, _CONTROL, _QUEUE
    yield ARC_MEMORY, _CONTROL + 4, _QUEUE_SHAPE
    number, on_board = grid.number, grid.number % CHIPS_A_BOARD
    board, serial = _board(grid, number)
    columns = sum(1 << i for i, x in enumerate(ETHERNET_COLUMNS) if x not in grid.harvested)
    values = {
        1: board,  # high and low word
        2: serial,
        3: 1 + number,  # ASIC
        4: 0,
        11: 40 << 16,  # temperatures, in degrees with 16 bits of fraction
        13: 35 << 16,
        14: 1000,  # clocks in MHz: AI, AXI, ARC
        15: 900,
        16: 540,
        21: _ETHERNET_TILES if grid.chips > 1 else 0,  # Ethernet tiles that are alive
        22: sum(_GDDR_TRAINED << 2 * bank for bank in range(grid.banks)),
        28: _BUNDLE,
        32: 1,  # heartbeat
        34: columns,  # enabled: columns of Tensix tiles, Ethernet tiles, GDDR
        35: _ETHERNET_TILES,
        36: (1 << grid.banks) - 1,
        38: 1 << 2 * on_board,  # use of the PCIe tiles, two bits each: one is an endpoint
        52: on_board,  # place of the ASIC on its board
        61: 0,
        62: 1 + number,
    }
    yield ARC_MEMORY, _TABLE, 1  # version of the table
    yield ARC_MEMORY, _TABLE + 4, len(values)
    for i, (tag, value) in enumerate(values.items()):
        yield ARC_MEMORY, _TABLE + 8 + 4 * i, tag | i << 16
        yield ARC_MEMORY, _VALUES + 4 * i, value


def boot_results(grid: Grid, n: int) -> dict[int, int]:
    """What firmware has left in L1 of Ethernet tile `n`: words by address."""
    found = {
        _ETHERNET_STATUS: _INIT_PASSED,
        _ETHERNET_STATUS + 4: _PORT_DOWN,
        _ETHERNET_VERSION: 1 << 16 | 6 << 8,
    }
    if n not in grid.links:
        return found
    found |= {_ETHERNET_STATUS + 4: _PORT_UP, _ETHERNET_STATUS + 8: _TRAINED, _LIVE_LINK: 1}
    for base, (chip, channel) in ((_ABOUT_OWN, (grid.number, n)), (_ABOUT_OTHER, grid.links[n])):
        # Place on the board, channel as the die and as software counts it; board; ASIC.
        found[base] = (chip % CHIPS_A_BOARD) << 8 | channel << 16 | channel << 24
        found[base + 4], found[base + 8] = _board(grid, chip)
        found[base + 24] = 1 + chip
    return found


def _ethernet() -> Iterator[Word]:
    for n, x in enumerate(ETHERNET_COLUMNS):
        memory = ETHERNET_MEMORY + n
        yield from ((memory, place, value) for place, value in boot_results(Grid(), n).items())
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


# Messages that ARC answers. A queue is a header of 32 bytes, its requests, its answers.

_BELL, _TRIGGER = 0x80030100, 1 << 16
_QUEUES_AT = 0x8003042C
_HEADER, _ENTRY, _WORDS = 32, 32, 8
_REQUESTS_WRITTEN, _REQUESTS_READ, _ANSWERS_WRITTEN = 0x00, 0x10, 0x14
# What firmware answers with 0 and which changes nothing that is modelled
_PLAIN = frozenset(
    {
        *(0x11, 0x21, 0x51, 0x52, 0x53, 0x54),  # nop, power, PCIe index, busy, idle
        *(0x56, 0x90, 0xA0, 0xA3),  # reset, test, states
        *(0xB6, 0xB7, 0xBA, 0xBC, 0xC1, 0xC7),  # GDDR reset, date, RISC-V reset, timers, PCIe log
    }
)
_ANSWERS = {0x34: 1000, 0x57: 0}  # AI clock in MHz, harvesting


def written(network: Network, address: int) -> None:
    """The host has written a word of ARC: where that rings, requests are answered.

    Pointers of a queue count to twice its length.
    """
    if address != _BELL or not _word(network, _BELL) & _TRIGGER:
        return
    control = _word(network, _QUEUES_AT)
    first, shape = _word(network, control), _word(network, control + 4)
    entries, queues = shape & 0xFF, shape >> 8 & 0xFF
    for number in range(queues):
        queue = first + number * (_HEADER + 2 * entries * _ENTRY)
        wanted, done = (_word(network, queue + at) for at in (_REQUESTS_WRITTEN, _REQUESTS_READ))
        answered = _word(network, queue + _ANSWERS_WRITTEN)
        for _ in range((wanted - done) % (2 * entries)):
            code = _word(network, queue + _HEADER + done % entries * _ENTRY) & 0xFF
            if code not in _PLAIN and code not in _ANSWERS:
                raise NotModelled(f"ARC message {code:#x}", rule="ARC-MESSAGE")
            at = queue + _HEADER + (entries + answered % entries) * _ENTRY
            # The answer's word 0 is the result, 0 = done; word 1 the value that was asked for.
            _store(network, at, [0, _ANSWERS.get(code, 0), *[0] * (_WORDS - 2)])
            done, answered = (done + 1) % (2 * entries), (answered + 1) % (2 * entries)
        _store(network, queue + _REQUESTS_READ, [done])
        _store(network, queue + _ANSWERS_WRITTEN, [answered])
    _store(network, _BELL, [_word(network, _BELL) & ~_TRIGGER])


def _word(network: Network, address: int) -> int:
    return int.from_bytes(network.read(ARC_MEMORY, address, 4), "little")


def _store(network: Network, address: int, words: list[int]) -> None:
    network.write(ARC_MEMORY, address, np.array(words, "<u4").view(np.uint8))
