"""Performance counters: configured and stopped at any time, counting in modelled time."""

import pytest

from bhemu import Tile
from bhemu.errors import InputError, NotModelled
from bhemu.memmap import PC_BUF_BASE, PC_BUF_TTSYNC_OFFSET
from bhemu.riscv.assembly import A0, A1, A2, PARK, ZERO, code, li, lw, sw, tt

COUNTERS = 0xFFB12000
BANKS = (0x000, 0x00C, 0x018, 0x030, 0x0F0)  # of INSTRN_THREAD, TDMA_UNPACK, FPU, L1, TDMA_PACK
ALL, MUX, VALUES = 0x03C, 0x218, range(0x100, 0x128, 4)


def test_every_bank_is_configured_and_stopped() -> None:
    """As tt-metal's BRISC does for tt-llk (tools/include/perf_counters/hw.h)."""
    tile = Tile()
    for bank in BANKS:
        tile.write32(COUNTERS + bank, 0xFFFFFFFF)
        tile.write32(COUNTERS + bank + 4, 0x1A << 8)
        assert tile.read32(COUNTERS + bank) == 0xFFFFFFFF
        assert tile.read32(COUNTERS + bank + 4) == 0x1A00
    tile.write32(COUNTERS + MUX, 3 << 4)
    assert tile.read32(COUNTERS + MUX) == 3 << 4
    for control in (*(bank + 8 for bank in BANKS), ALL):
        tile.write32(COUNTERS + control, 2)
        assert tile.read32(COUNTERS + control) == 2
        tile.write32(COUNTERS + control, 0)


@pytest.mark.parametrize("control", [*(bank + 8 for bank in BANKS), ALL])
@pytest.mark.parametrize(("value", "text"), [(1, "starts perf"), (3, "starts perf"), (4, "asks")])
def test_counting_is_refused(control: int, value: int, text: str) -> None:
    tile = Tile()
    with pytest.raises(InputError, match=text):
        tile.write32(COUNTERS + control, value)
    assert tile.read32(COUNTERS + control) == 0


def test_a_core_that_starts_them_is_named() -> None:
    tile = Tile()
    tile.write(0, code(li(A0, COUNTERS + ALL), li(A1, 1), sw(A1, A0), PARK))
    tile.core["brisc"].release()
    with pytest.raises(NotModelled, match="starts performance counters") as caught:
        tile.run()
    assert caught.value.rule == "PERF-COUNTERS"
    assert tile.core["brisc"].pc == 16


@pytest.mark.parametrize("address", VALUES)
def test_a_count_is_not_made_up(address: int) -> None:
    with pytest.raises(InputError, match="performance counter that is not modelled"):
        Tile().read32(COUNTERS + address)


FPU, THREAD = 0x018, 0x000
OUT_FPU, OUT_THREAD = 0x120, 0x100
WORDS = (tt("SFPNOP"),) * 20 + (tt("INCRWC"),) * 7


def counted(select: int, bank: int, out: int) -> tuple[int, int]:
    """(cycles, events) of a bank around WORDS of T0, which trisc0 pushes and waits for."""
    tile = Tile(timing="model")
    tile.write32(COUNTERS + bank + 4, select << 8)
    start = (li(A0, COUNTERS), li(A1, 1), sw(A1, A0, ALL), sw(ZERO, A0, ALL))
    stop = (li(A1, 2), sw(A1, A0, ALL), sw(ZERO, A0, ALL))
    drain = (li(A2, PC_BUF_BASE + PC_BUF_TTSYNC_OFFSET), lw(A2, A2, 0))
    tile.write(0x1000, code(*start, *WORDS, *drain, *stop, PARK))
    tile.core["trisc0"].set_reset_pc(0x1000)
    tile.core["trisc0"].release()
    assert tile.run().reason == "idle"
    before = tile.read32(COUNTERS + out), tile.read32(COUNTERS + out + 4)
    tile.run(limit=100)
    assert before == (tile.read32(COUNTERS + out), tile.read32(COUNTERS + out + 4))
    return before


def test_they_count_cycles_and_what_units_do() -> None:
    cycles, matrix = counted(0, FPU, OUT_FPU)
    assert cycles >= len(WORDS) and matrix == 7
    assert counted(1, FPU, OUT_FPU) == (cycles, 20)
    assert counted(256, THREAD, OUT_THREAD) == (cycles, 27)


def test_another_event_is_refused_in_modelled_time_too() -> None:
    tile = Tile(timing="model")
    tile.write32(COUNTERS + FPU + 4, 2 << 8)
    assert tile.read32(COUNTERS + OUT_FPU) == 0
    with pytest.raises(InputError, match="not modelled"):
        tile.read32(COUNTERS + OUT_FPU + 4)
    tile.write32(COUNTERS + FPU + 4, 1)  # mode 1: stops by itself
    with pytest.raises(InputError, match="starts performance counters"):
        tile.write32(COUNTERS + FPU + 8, 1)
