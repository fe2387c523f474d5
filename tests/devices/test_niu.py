"""NoC interface units: what firmware stores, reads and polls (NIU Memory Map, Blackhole ISA)."""

import pytest

from bhemu.errors import InputError, NotModelled, Undefined
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, A2, PARK, addi, code, lbu, li, lw, sw

NIU = (0xFFB20000, 0xFFB30000)
both = pytest.mark.parametrize("base", NIU)


def tile_with(program: bytes) -> Tile:
    tile = Tile()
    tile.write(0, program)
    tile.core["brisc"].release()
    return tile


@both
@pytest.mark.parametrize("xy", [(1, 2), (16, 11), (0, 0)])
def test_own_coordinates(base: int, xy: tuple[int, int]) -> None:
    """NOC_ID_LOGICAL holds the tile's coordinate on both NoCs; NODE_ID counts NoC 1 backwards."""
    tile, (x, y) = Tile(xy=xy), xy
    assert tile.read32(base + 0x148) == x | y << 6
    node = tile.read32(base + 0x44)
    physical = (x, y) if base == NIU[0] else (16 - x, 11 - y)
    assert (node & 63, node >> 6 & 63) == physical
    assert (node >> 12 & 127, node >> 19 & 127) == (17, 12)
    assert node >> 28 & 1 == (base == NIU[0])
    assert tile.read32(base + 0x1844) == node


@both
def test_command_buffers_are_four_sets_of_registers(base: int) -> None:
    tile = Tile()
    places = [base + 0x800 * i + r for i in range(4) for r in range(0, 0x30, 4)]
    for n, at in enumerate(places):
        tile.write32(at, 0x1000 + n)
    assert [tile.read32(at) for at in places] == [0x1000 + n for n in range(len(places))]
    other = NIU[base == NIU[0]]
    assert all(tile.read32(other + at - base) == 0 for at in places)
    tile.reset()
    assert all(tile.read32(at) == 0 for at in places)


def test_the_upper_half_of_packet_tag_reads_zero() -> None:
    tile = Tile()
    tile.write32(NIU[0] + 0x18, 0xFFFF3C00)
    assert tile.read32(NIU[0] + 0x18) == 0x3C00


@both
def test_configuration_is_storage_and_counters_stand_at_zero(base: int) -> None:
    tile = Tile()
    for at, value in ((0x100, 0xFFFEE001), (0x100, 0x8001), (0x104, 0xFFF80001), (0x104, 0)):
        tile.write32(base + at, value)
        assert tile.read32(base + at) == value
    for at in (0x108, 0x10C, 0x110, 0x114, 0x148):
        tile.write32(base + at, 0x5A000000 + at)
        assert tile.read32(base + at) == 0x5A000000 + at
    assert all(tile.read32(base + 0x200 + 4 * n) == 0 for n in range(62))
    tile.write32(base + 0x60, 0xFFFF)
    for at, word in ((0x60, "write-only"), (0x14C, "not modelled"), (0x300, "not modelled")):
        with pytest.raises(InputError, match=word):
            tile.read32(base + at)
    for at, word in ((0x200, "read-only"), (0x44, "read-only"), (0x48, "read-only")):
        with pytest.raises(InputError, match=word):
            tile.write32(base + at, 0)


@both
def test_clearing_the_outstanding_counters_takes_a_mask_of_ids(base: int) -> None:
    tile = Tile()
    tile.state.niu_counter[:, 16:32] = 7
    tile.write32(base + 0x60, 1 << 3 | 1 << 15)
    left = [tile.read32(base + 0x240 + 4 * i) for i in range(16)]
    assert left == [0 if i in (3, 15) else 7 for i in range(16)]
    other = int(base == NIU[0])
    assert set(tile.state.niu_counter[other, 16:32]) == {7}


def test_a_transfer_is_refused_by_name_before_any_effect() -> None:
    program = [
        li(A1, NIU[0] + 0x800),
        li(A0, 0x40000),
        sw(A0, A1),
        li(A0, 0x2090),
        sw(A0, A1, 0x1C),
    ]
    tile = tile_with(code(*program, lw(A2, A1, 0x40), addi(A0, 0, 1), sw(A0, A1, 0x40), PARK))
    with pytest.raises(NotModelled) as caught:
        tile.run()
    assert caught.value.rule == "NOC-TRANSFER"
    for part in ("0xffb20840", "0x2090", "0x40000"):
        assert part in caught.value.message
    assert tile.core["brisc"].regs[A2] == 0


def test_a_store_without_the_start_bit_starts_nothing() -> None:
    tile = tile_with(code(li(A1, NIU[1]), sw(0, A1, 0x40), lw(A0, A1, 0x40), PARK))
    assert tile.run().reason == "idle"
    assert tile.core["brisc"].regs[A0] == 0


@both
def test_only_words_are_accessed(base: int) -> None:
    with pytest.raises(Undefined, match="MMIO-LOAD-SIZE"):
        tile_with(code(li(A1, base), lbu(A0, A1), PARK)).run()
    with pytest.raises(Undefined, match="MMIO-STORE-SIZE"):
        tile_with(code(li(A1, base), sw(A0, A1, 0, 0), PARK)).run()
