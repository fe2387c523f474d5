"""The debug daisychain: DebugDaisychain (Wormhole ISA), positions of signals as in tt-exalens."""

import pytest
from devices.debug_port_user import START, Port

from bhemu.devices.debug_port import SAMPLES
from bhemu.errors import InputError
from bhemu.machine.sentences import RULES
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.assembly import A0, EBREAK, PARK, addi

CONTROL, DATA = 0xFFB12054, 0xFFB1205C
TARGET, WRITING = 0xFFB12048, 0xFFB12050
SIGNALS = dict(zip(CORE_NAMES, (10, 12, 14, 16, 24), strict=True))  # group A of each core
RWC, ADC, CORES = 3, 6, 7


def group(tile: Tile, chain: int, signal: int) -> int:
    """All 128 bits, as one number."""
    value = 0
    for part in range(4):
        tile.write32(CONTROL, 1 << 29 | part << 25 | chain << 16 | signal)
        value |= tile.read32(DATA) << 32 * part
    return value


@pytest.mark.parametrize("core", CORE_NAMES)
def test_where_a_core_stands(core: str) -> None:
    tile = Tile()
    tile.state.pc[CORE_NAMES.index(core)] = 0x12344
    first, second = (group(tile, CORES, SIGNALS[core] + i) for i in range(2))
    assert first == 0x12344 | 1 << 31 | 0x12344 << 64
    assert second == 0x12344 << 32 | 1 << 63 | 1 << 103


def test_whoever_looks_there_debugs() -> None:
    at = Port(addi(A0, A0, 1), EBREAK, PARK, used=False)
    group(at.tile, CORES, 14)
    at.run()
    assert (at.core.state, at.core.pc) == ("halted", START + 8)


def test_row_counters() -> None:
    tile = Tile()
    rwc, back = tile.state.rwc, tile.state.rwc_cr
    rwc[0], rwc[1], rwc[2] = (0x3F, 1, 0x2A5, 1), (2, 3, 4, 2), (5, 6, 7, 3)
    back[0, :3], back[1, :3], back[2, :3] = (8, 9, 10), (11, 12, 13), (14, 15, 0x3FF)
    a, b, c = (group(tile, RWC, signal) for signal in (2, 3, 4))

    def field(value: int, at: int, size: int = 6) -> int:
        return value >> at & (1 << size) - 1

    assert [field(a, at) for at in (0, 10, 24, 30, 40, 50)] == [0x3F, 8, 2, 11, 5, 14]
    assert [field(a, at) for at in (60, 70, 84, 90, 100, 110)] == [1, 9, 3, 12, 6, 15]
    assert field(a, 120, 8) | field(b, 0, 2) << 8 == 0x2A5
    assert [field(b, at, 10) for at in (2, 12, 22, 32, 42)] == [10, 4, 13, 7, 0x3FF]
    assert [field(c, at, 2) for at in (60, 62, 64)] == [1, 2, 3]


@pytest.mark.parametrize("signal", range(6))
def test_address_counters(signal: int) -> None:
    tile = Tile()
    thread, unit, channel = (2 if signal >= 4 else 0), signal >> 1, signal & 1
    tile.state.adc[thread, unit, channel] = 0x3FFFF, 0x1234, 0xFE, 1
    tile.state.adc_cr[thread, unit, channel] = 2, 0x1FFF, 3, 0xAB
    fields = ((0, 0x3FFFF), (18, 2), (64, 0x1234), (80, 0x1FFF))
    fields += ((96, 0xFE), (104, 3), (112, 1), (120, 0xAB))
    assert group(tile, ADC, signal) == sum(value << at for at, value in fields)


def test_a_trigger_writes_a_sample_to_l1() -> None:
    tile = Tile()
    tile.state.pc[0] = 0x40
    sample = group(tile, CORES, 11).to_bytes(16, "little")
    tile.write32(WRITING, 0xF)
    tile.write32(TARGET, 0x1000 >> 4)
    for mode, places in ((0, (0x1000, 0x1000)), (1, (0x1000, 0x1010))):
        for place in places:
            tile.write(0x1000, bytes(32))
            tile.write32(WRITING, mode)
            tile.write32(WRITING, mode | 1 << 12)
            assert tile.read(place, 16) == sample
            tile.write(place, bytes(16))
            tile.write32(WRITING, mode | 1 << 12)
            assert tile.read(place, 16) == bytes(16), "a trigger that does not rise"


def test_what_is_not_modelled_is_refused() -> None:
    tile = Tile()
    for chain, signal in ((CORES, 18), (CORES, 26), (RWC, 5), (ADC, 6), (1, 0)):
        with pytest.raises(InputError, match=f"signals {signal} of debug daisychain {chain}"):
            group(tile, chain, signal)
        with pytest.raises(InputError, match="not modelled"):
            tile.write32(WRITING, 1 << 12)
    for value in (4 | 1 << 12, 2 | 1 << 12):
        with pytest.raises(InputError, match=RULES[SAMPLES].sentence([value])):
            tile.write32(WRITING, value)
    tile.write32(CONTROL, CORES << 16 | 11)
    with pytest.raises(InputError):
        tile.read32(DATA)
