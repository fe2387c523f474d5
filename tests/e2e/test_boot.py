"""The real tt-metal firmware boots to its DONE message, when its ELFs are at hand.

BHEMU_FIRMWARE_DIR names a folder with the five P100A firmware ELFs (brisc, ncrisc, trisc0-2), which
are not part of this repository.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from bhemu.machine.tile import Tile

FOLDER = os.environ.get("BHEMU_FIRMWARE_DIR")
STAGING = {"brisc": 0x82B0, "ncrisc": 0xA2B0, "trisc0": 0xC2B0, "trisc1": 0xD2B0, "trisc2": 0xE2B0}
BANKS = 0x112B0
GO_MESSAGE = 0x370
JUMP_TO_BRISC = 0x0410306F  # jal x0, 0x3840
PARAMETERS = {0xFFB12228: 0x5A40, 0xFFB1222C: 0x6040, 0xFFB12230: 0x6640, 0xFFB12238: 0x5440}
DRAM, L1_BANKS = 7, 110

pytestmark = pytest.mark.skipif(not FOLDER, reason="BHEMU_FIRMWARE_DIR is not set")


def bank_tables(tile: Tile) -> None:
    """u16 dram_xy[2][7], u16 l1_xy[2][110], then offsets, all zero."""
    xy = [
        (12 + 3 * (bank % 4) + noc) << 6 | (17 if bank < 4 else 18)
        for noc in range(2)
        for bank in range(DRAM)
    ]
    own = tile.xy[1] << 6 | tile.xy[0]
    tile.write(BANKS, np.array([*xy, *[own] * (2 * L1_BANKS)], "<u2").tobytes())


def booted(quantum: int, *, trace: bool = False) -> Tile:
    assert FOLDER is not None
    tile = Tile(quantum=quantum, livelock=0)  # afterwards it waits for its host
    for name, base in STAGING.items():
        tile.core[name].load_elf(Path(FOLDER) / f"{name}.elf", local=base)
    tile.write32(0, JUMP_TO_BRISC)
    tile.write(GO_MESSAGE, bytes([0, 0, 0, 0x40]))
    bank_tables(tile)
    for address, pc in PARAMETERS.items():
        tile.write32(address, pc)
    tile.write32(0xFFB121B0, 0x47000)
    tile.state.trace[0] = trace
    stop = tile.run([(GO_MESSAGE, 0)], limit=1_000_000, timeout_s=60)
    tile.drain_log()
    assert stop.reason == "until"
    return tile


@pytest.mark.parametrize("quantum", [1, 50, 1000])
def test_boot_reaches_done(quantum: int) -> None:
    tile = booted(quantum)
    assert tile.read32(0xFFB121B0) == 0
    assert {a: tile.read32(a) for a in PARAMETERS} == PARAMETERS
    assert tile.read(0x68, 4) in (bytes(4), bytes([0, 3, 0, 0]))
    tile.run(limit=50_000)
    assert tile.read(0x68, 4) == bytes(4)


def test_boot_presets_both_network_interfaces() -> None:
    tile = booted(1000)
    tile.run(limit=50_000)  # done is announced first
    own = tile.xy[1] << 6 | tile.xy[0]
    for base in (0xFFB20000, 0xFFB30000):
        preset = {0x04: 0, 0x08: own, 0x1004: 0, 0x1008: own, 0x180C: 4, 0x1810: 0, 0x1814: own}
        preset |= {0x81C: 0x2090, 0x810: 0, 0x814: own, 0x100: 1, 0x104: 1}
        assert {at: tile.read32(base + at) for at in preset} == preset
    local = tile.core["brisc"].read32
    assert [local(0xFFB00004) & 0xFFFF, local(0xFFB00008) & 0xFFFF] == [0x0202, 0x0101]


def test_boot_clears_what_firmware_clears() -> None:
    tile = booted(1000)
    tile.run(limit=50_000)
    assert not tile.state.gpr[1:].any()
    for n in range(32):
        assert tile.read32(0xFFB48020 + n * 0x1000) == 0
        assert tile.read32(0xFFB48028 + n * 0x1000) == 0
    assert list(tile.state.sem_max[:8]) == [0, 1, 1, 0, 0, 0, 0, 1]
    assert tile.read32(0xFFB12240) == 0
