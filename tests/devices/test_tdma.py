"""TDMA-RISC: mover commands, status and base of brisc and the TRISCs (TDMA-RISC, Wormhole ISA)."""

import random

import numpy as np
import pytest

from bhemu.errors import BhemuError, InputError
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, A2, PARK, RA, ZERO, addi, bne, code, jalr, li, lw, sw

TDMA = 0xFFB11000
SRC, DST, SIZE, DIRECTION, COMMAND, STATUS, BASE = 0x0, 0x4, 0x8, 0xC, 0x10, 0x14, 0x2C
CORES = ("brisc", "trisc0", "trisc1", "trisc2")
NOP = 0x80000089


def command(tile: Tile, word: int, *params: int, core: str = "brisc") -> None:
    """Store parameters, then the command, as `core`."""
    for i, value in enumerate(params):
        tile.core[core].write32(TDMA + 4 * i, value)
    tile.core[core].write32(TDMA + COMMAND, word)


def filled(seed: int) -> Tile:
    tile = Tile()
    tile.write(0, random.Random(seed).randbytes(0x4000))
    return tile


@pytest.mark.parametrize("core", CORES)
def test_a_copy_with_parameters(core: str) -> None:
    """Source, destination and size in 16-byte units, direction 3 (Mover command)."""
    tile = filled(1)
    mover_number = 1 << 8  # ignored: there is one mover
    command(tile, 0x40 | mover_number, 0x10, 0x300, 0xABCD0004, 3, core=core)
    assert tile.read(0x3000, 64) == tile.read(0x100, 64)
    assert tile.read(0x3040, 16) == filled(1).read(0x3040, 16)


def test_fills_with_zero_and_configuration() -> None:
    """Directions 0 and 2 fill with zero, 1 copies to Config; only two bits of it count."""
    tile = filled(2)
    command(tile, 0x40, 0, 0x100, 3, 0)
    assert tile.read(0x1000, 48) == bytes(48)
    assert tile.read(0x1030, 16) == filled(2).read(0x1030, 16)
    command(tile, 0x40, 0x20, 0x20, 2, 5)
    words = np.frombuffer(tile.read(0x200, 32), np.uint32)
    assert tile.tensix.cfg[0, 0x80:0x88].tolist() == words.tolist()
    command(tile, 0x40, 0, 0x21, 1, 2)
    assert tile.tensix.cfg[0, 0x80:0x88].tolist() == [*words[:4].tolist(), 0, 0, 0, 0]
    command(tile, 0x40, 0x20, 0x70 + 0x10, 1, 1)  # ConfigDualWrite word 64
    assert tile.tensix.cfg[:, 64:68].tolist() == [words[:4].tolist()] * 2


@pytest.mark.parametrize("index", range(4))
def test_compact_copies_use_the_base_of_the_core(index: int) -> None:
    """Bits: 15:8 source offset, 23:16 destination, 29:24 size, 30 to L1, 31 compact."""
    rng = random.Random(index)
    tile = filled(3)
    for i, core in enumerate(CORES):
        tile.core[core].write32(TDMA + BASE, 0x40 * (i + 1))
    core = tile.core[CORES[index]]
    for _ in range(20):
        offset, size = rng.randrange(16), rng.randrange(8)
        config, dst = rng.randrange(0x30), rng.randrange(0x10)
        src = (0x40 * (index + 1) + offset) * 16
        want = tile.read(src, 16 * size)
        core.write32(TDMA + COMMAND, 0xC0000040 | size << 24 | dst << 16 | offset << 8)
        assert tile.read(16 * dst, 16 * size) == want
        core.write32(TDMA + COMMAND, 0x80000040 | size << 24 | config << 16 | offset << 8)
        if not config <= 1 < config + size and not config <= 46 < config + size:
            bank = tile.tensix.cfg[0].tobytes()
            assert bank[16 * config : 16 * (config + size)] == want
        assert core.read32(TDMA + BASE) == 0x40 * (index + 1)


@pytest.mark.parametrize("wide", [0, 1])
def test_write_command(wide: int) -> None:
    """0x66: parameter 0 is a byte address, parameters 2 and 3 the data."""
    tile = filled(4)
    before = tile.read(0x800, 16)
    command(tile, 0x66 | 0x600 | wide << 8, 0x808, 9, 0x11223344, 0x55667788)
    data = (0x55667788 << 32 | 0x11223344).to_bytes(8, "little")
    assert tile.read(0x800, 16) == before[:8] + (data if wide else data[:4] + before[12:])


@pytest.mark.parametrize("word", [0x46, 0x80000046, NOP, 0x89])
def test_commands_without_effect(word: int) -> None:
    tile = filled(5)
    before = tile.read(0, 0x4000)
    command(tile, word, 1, 2, 3, 3)
    assert tile.read(0, 0x4000) == before


def test_status_and_registers_that_read_zero() -> None:
    """Mover idle, queue empty with four free entries, parameter queue empty."""
    tile = filled(6)
    command(tile, 0x40, 1, 9, 3, 3)
    brisc = tile.core["brisc"]
    assert brisc.read32(TDMA + STATUS) == 0x428
    brisc.write32(TDMA + STATUS, 5)
    assert brisc.read32(TDMA + STATUS) == 0x428
    assert [brisc.read32(TDMA + at) for at in (SRC, DST, SIZE, DIRECTION, COMMAND)] == [0] * 5


def test_clock_gating_registers_keep_their_bits() -> None:
    """UnpackRegAddrRaw = value & 0xffffff7f, Scaler2Raw = value & 0x01ff007f."""
    tile = Tile()
    for at, kept in ((0x24, 0xFFFFFF7F), (0x28, 0x01FF007F)):
        tile.core["trisc2"].write32(TDMA + at, 0xFFFFFFFF)
        assert tile.core["brisc"].read32(TDMA + at) == kept


def test_the_block_belongs_to_brisc_and_the_triscs() -> None:
    """Unmapped for ncrisc and the NoC (memory map, BabyRISCV, Blackhole ISA)."""
    tile = Tile()
    with pytest.raises(InputError, match="no access"):
        tile.read32(TDMA + STATUS)
    with pytest.raises(InputError, match="no access"):
        tile.write32(TDMA + 0x24, 0x3F)
    for verb in ("read32", "write32"):
        with pytest.raises(BhemuError, match="no access"):
            getattr(tile.core["ncrisc"], verb)(TDMA + BASE, *([1] if verb == "write32" else []))


@pytest.mark.parametrize("at", [0x18, 0x1C, 0x20, 0x30, 0x34, 0x38, 0x3C, 0x118, 0x13C, 0x400])
def test_sideband_registers_are_refused_by_name(at: int) -> None:
    tile = Tile()
    with pytest.raises(BhemuError, match=f"{TDMA + at:#010x} is not modelled"):
        tile.core["brisc"].read32(TDMA + at)
    with pytest.raises(BhemuError, match=f"{TDMA + at:#010x} is not modelled"):
        tile.core["brisc"].write32(TDMA + at, 1)


@pytest.mark.parametrize(
    ("word", "params", "text"),
    [
        (0x41, (), "command 0x00000041 is undefined"),
        (0x800000FF, (), "command 0x800000ff is undefined"),
        (0x66, (0, 0, 1, 1), "command 0x00000066 is undefined"),
        (0x80000666, (0, 0, 1, 1), "command 0x80000666 is undefined"),
        (0x666, (0x180000, 0, 1, 1), "no aligned place in L1"),
        (0x666, (2, 0, 1, 1), "no aligned place in L1"),
        (0x766, (4, 0, 1, 1), "no aligned place in L1"),
        (0x40, (0x18000, 0, 1, 3), "0x10 bytes at L1 0x180000 do not end within L1"),
        (0x40, (0, 1, 2, 3), "overlap"),
        (0x40, (0, 0xA8, 1, 1), "reach beyond Config"),
        (0x40, (0, 0x4000, 1, 2), "instruction RAM"),
    ],
)
def test_refused_commands(word: int, params: tuple[int, ...], text: str) -> None:
    tile = filled(7)
    before = tile.read(0, 0x4000)
    with pytest.raises(BhemuError, match=text):
        command(tile, word, *params)
    assert tile.read(0, 0x4000) == before
    assert not tile.tensix.cfg.any()


def test_a_program_moves_code_and_waits_as_firmware_does() -> None:
    """wait_tdma_movers_done: poll until (STATUS & 9) == 8; then the moved code runs."""
    tile = Tile()
    target, source, start = 0x11000, 0x12000, 0x10000
    for at, value in ((target, 1), (source, 2)):
        body = code(li(A0, value), li(A1, 0x4000 + 4 * value), sw(A0, A1), jalr(ZERO, RA))
        tile.write(at, body.ljust(64, b"\0"))
    call = [*li(A1, target), jalr(RA, A1)]
    setup = [*li(A1, TDMA)]
    for at, value in ((SRC, source // 16), (DST, target // 16), (SIZE, 4), (DIRECTION, 3)):
        setup += [*li(A0, value), sw(A0, A1, at)]
    setup += [*li(A0, 0x40), sw(A0, A1, COMMAND)]
    andi = 9 << 20 | A0 << 15 | 7 << 12 | A0 << 7 | 0x13
    wait = [addi(A2, ZERO, 8), lw(A0, A1, STATUS), andi, bne(A0, A2, -8)]
    tile.write(start, code(call, setup, wait, call, PARK))
    tile.core["trisc1"].set_reset_pc(start)
    tile.core["trisc1"].release()
    assert tile.run().reason == "idle"
    assert [tile.read32(0x4004), tile.read32(0x4008)] == [1, 2]


def test_reset_clears_parameters_and_bases() -> None:
    tile = Tile()
    tile.core["brisc"].write32(TDMA + BASE, 7)
    tile.core["brisc"].write32(TDMA + SRC, 7)
    tile.reset()
    assert tile.core["brisc"].read32(TDMA + BASE) == 0
    assert not tile.state.tdma_param.any()
