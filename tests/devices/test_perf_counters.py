"""Performance counters are configured and stopped as firmware does at boot; nothing here counts."""

import pytest

from bhemu import Tile
from bhemu.errors import InputError, NotModelled
from bhemu.riscv.assembly import A0, A1, PARK, code, li, sw

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
    with pytest.raises(InputError, match="values of performance counters"):
        Tile().read32(COUNTERS + address)
