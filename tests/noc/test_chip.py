"""The chip as a host and as Python see it: coordinates, harvesting, memory, misuse, lifetime."""

import gc
import weakref

import noc_program as p
import pytest

from bhemu import Chip
from bhemu.devices.noc_map import COLUMNS, on_noc, tile_number
from bhemu.errors import BhemuError, InputError, UnknownName
from bhemu.noc.grid import Grid, tile_at
from bhemu.riscv.assembly import A0, A1, PARK, code, li, sw

OWN, OTHER = (1, 2), (3, 4)
HOME, AWAY = p.hi(OWN), p.hi(OTHER)
L1, FAR = 0x20000, 0x30000
DATA = bytes(range(64))
NODE, ENDPOINT, LOGICAL = 0x44, 0x48, 0x148


def test_140_tiles_that_exist_when_they_are_touched() -> None:
    chip = Chip()
    assert len(chip.tile) == 140
    assert list(chip.tile)[:2] == [(1, 2), (2, 2)]
    assert chip.tiles() == ()
    assert chip.tile[16, 11].xy == (16, 11)
    chip.tile[2, 3]
    assert [tile.xy for tile in chip.tiles()] == [(2, 3), (16, 11)]
    assert (3, 4) in chip.tile
    assert (8, 4) not in chip.tile
    assert repr(chip) == ("<Chip 140 Tensix tiles, 2 touched, 2 awake; 8 DRAM banks; clock 0>")


def test_numbers_of_tiles_go_row_by_row() -> None:
    assert [tile_number(*tile_at(t)) for t in range(140)] == list(range(140))
    assert [tile_at(t) for t in (0, 7, 13, 14, 139)] == [
        *((1, 2), (10, 2), (16, 2), (1, 3), (16, 11)),
    ]


@pytest.mark.parametrize(
    ("xy", "words"), [((1, 2), (0x10611081, 0x0061124F)), ((16, 11), (0x106112D0, 0x00611000))]
)
def test_who_a_tile_is(xy: tuple[int, int], words: tuple[int, int]) -> None:
    chip = Chip()
    assert tuple(chip.read32(*xy, base + NODE) for base in p.NIU) == words
    number = tile_number(*xy)
    assert chip.read32(*xy, p.NIU[0] + ENDPOINT) == 0x10000 | number
    assert chip.read32(*xy, p.NIU[1] + 0x800 + ENDPOINT) == 0x1010000 | number
    assert {chip.read32(*xy, base + LOGICAL) for base in p.NIU} == {xy[0] | xy[1] << 6}


def test_every_place_of_the_die_is_one_endpoint() -> None:
    places = Grid().places()
    assert sorted(place.physical for place in places) == sorted(
        # the second PCIe tile is not in use
        (x, y)
        for x in range(17)
        for y in range(12)
    )
    assert len({(p.kind, p.translated) for p in places}) == len(places)
    assert on_noc(1, (1, 2)) == (15, 9)


def test_harvested_columns_go_to_the_end_of_the_translated_ones() -> None:
    """Physical columns 2 and 16: the tile at (2, y) is physically at (3, y)."""
    chip = Chip(harvest=(2, 16))
    assert len(chip.tile) == 120
    assert list(chip.tile)[-1] == (14, 11)
    assert chip.read32(2, 5, p.NIU[0] + NODE) & 0xFFF == 3 | 5 << 6
    assert chip.read32(2, 5, p.NIU[0] + LOGICAL) == 2 | 5 << 6
    with pytest.raises(UnknownName, match="harvested"):
        chip.tile[15, 2]
    chip.write(2, 5, L1, DATA)
    for noc in (0, 1):  # software gives the same numbers on both
        words = p.send(p.WRITE, (L1, p.hi((2, 5))), (FAR, p.hi((14, 11))), 64, noc=noc)
        p.put(chip, (2, 5), words)
        chip.run()
        assert chip.read(14, 11, FAR, 64) == DATA
        chip.write(14, 11, FAR, bytes(64))
        chip.tile[2, 5].core["brisc"].hold()


def test_a_multicast_over_a_harvested_column_reaches_the_working_ones() -> None:
    chip = Chip(harvest=(2, 16))
    chip.write(*OWN, L1, DATA)
    box = p.box((1, 2), (3, 2))  # physically columns 1, 3, 4
    p.put(chip, OWN, p.send(p.WRITE | p.MULTICAST, (L1, HOME), (FAR, box), 64))
    chip.run()
    assert [tile.xy for tile in chip.tiles() if tile.read(FAR, 64) == DATA] == [(2, 2), (3, 2)]


def test_a_request_to_a_harvested_tile_is_refused() -> None:
    chip = Chip(harvest=(16,))
    p.put(chip, OWN, p.send(p.WRITE, (L1, HOME), (FAR, p.hi((16, 2))), 64))
    with pytest.raises(BhemuError, match="NOC-ENDPOINT") as caught:
        chip.run()
    assert "harvested Tensix tile (16,2)" in caught.value.message


def test_a_chip_with_seven_banks() -> None:
    chip = Chip(dram_banks=7)
    assert len(chip.dram) == 7
    with pytest.raises(UnknownName):
        chip.read(18, 21, 0, 4)


def test_a_host_reads_and_writes_every_kind_of_endpoint() -> None:
    chip = Chip()
    chip.write(*OTHER, L1, DATA)
    assert chip.read(*OTHER, L1, 64) == chip.tile[OTHER].read(L1, 64) == DATA
    chip.write32(*OTHER, 0xFFB48020, 7)
    assert chip.read(*OTHER, 0xFFB48020, 4) == b"\x07\0\0\0"
    chip.write(17, 13, 0x100, DATA)
    assert chip.read(0, 11, 0x100, 64, noc=0) == chip.dram[0].read(0x100, 64) == DATA
    assert chip.dram[0].pages == [0]
    assert (chip.read32(8, 0, 0x80030408) & 7) == 5
    assert chip.read32(20, 25, 0x7CC04) == chip.read32(1, 1, 0x7CC04) == 2
    assert chip.read32(21, 25, p.NIU[0] + LOGICAL) == 21 | 25 << 6
    chip.write32(20, 25, 0x1000, 0x55)
    assert chip.read32(20, 25, 0x1000) == 0x55


def test_telemetry_is_found_as_hosts_look_for_it() -> None:
    chip = Chip()
    arc = (8, 0)
    table, values = chip.read32(*arc, 0x80030434), chip.read32(*arc, 0x80030430)
    count = chip.read32(*arc, table + 4)
    found = {}
    for i in range(count):
        entry = chip.read32(*arc, table + 8 + 4 * i)
        found[entry & 0xFFFF] = chip.read32(*arc, values + 4 * (entry >> 16))
    assert found[14] == 1000
    assert found[28] == 0x12050000
    assert found[36] == 0xFF
    fewer = Chip(harvest=(16,), dram_banks=7)
    assert bin(fewer.read32(*arc, values + 4 * list(found).index(34))).count("1") == 13


@pytest.mark.parametrize(
    ("xy", "word"),
    [((8, 3), "L2CPU"), ((8, 2), "security"), ((8, 1), "router"), ((30, 30), "no tile")],
)
def test_other_endpoints_are_refused_with_their_coordinates(xy: tuple[int, int], word: str) -> None:
    with pytest.raises(InputError, match=word) as caught:
        Chip().read(*xy, 0, 4)
    assert f"({xy[0]},{xy[1]})" in str(caught.value)


def test_what_a_host_must_not() -> None:
    chip = Chip()
    for call in (
        *(lambda: chip.read(*OWN, 0x17FFF0, 32), lambda: chip.read(*OWN, 0xFFB48021, 4)),
        *(lambda: chip.write(*OWN, 0, "text"), lambda: chip.dram[0].write(0xFF000000, b"1")),  # type: ignore[arg-type]
        *(lambda: chip.run([(OWN, 2, 0)]), lambda: chip.run("never"), lambda: chip.run([1])),  # type: ignore[list-item]
        *(lambda: chip.step("brisc", tile=(0, 0)), lambda: chip.tile[OWN].step("brisc")),
        *(lambda: Chip(harvest=(8,)), lambda: Chip(harvest=COLUMNS), lambda: Chip(dram_banks=3)),
        *(lambda: Chip(delivery="soon"), lambda: Chip(threads=0), lambda: Chip(engine="fast")),
    ):
        with pytest.raises(InputError):
            call()


def test_a_run_ends_for_each_reason_and_says_so() -> None:
    chip = Chip()
    assert chip.run().reason == "idle"
    assert chip.idle
    p.put(chip, OWN, [*li(A1, FAR), *li(A0, 5), sw(A0, A1)], 0x0000006F | 1 << 7)  # jal ra, 0
    assert not chip.idle
    assert chip.run([(OWN, FAR, 5)]).reason == "until"
    assert chip.run(limit=5000).reason == "limit"
    assert chip.run(rounds=3).reason == "rounds"
    assert chip.run(lambda chip: chip.clock > 20_000).reason == "until"
    assert chip.run(timeout_s=0).reason == "timeout"
    assert chip.stop is not None
    assert chip.stop.clock == chip.clock


def test_a_breakpoint_names_tile_and_core_and_the_run_goes_on() -> None:
    chip = Chip()
    p.put(chip, OTHER, [*li(A1, FAR), *li(A0, 5), sw(A0, A1)])
    chip.tile[OTHER].break_at("brisc", 0x10)
    stop = chip.run()
    assert stop.reason == "breakpoint"
    assert stop.where is not None
    assert (stop.where.tile, stop.where.core, stop.where.pc) == (OTHER, "brisc", 0x10)
    assert chip.read32(*OTHER, FAR) == 0
    assert chip.run().reason == "idle"
    assert chip.read32(*OTHER, FAR) == 5


def test_an_error_stays_until_the_run_is_resumed() -> None:
    chip = Chip()
    chip.write(*OTHER, 0, code(0x00100073, [*li(A1, FAR), *li(A0, 5), sw(A0, A1)], PARK))  # ebreak
    chip.tile[OTHER].core["brisc"].release()
    p.put(chip, OWN, [*li(A1, FAR), *li(A0, 6), sw(A0, A1)])
    for _ in range(2):
        with pytest.raises(BhemuError, match="ebreak") as caught:
            chip.run()
        assert caught.value.where is not None
        assert caught.value.where.tile == OTHER
    assert chip.read32(*OWN, FAR) == 6  # the other tiles have finished their round
    with pytest.raises(BhemuError, match="ebreak"):
        chip.run(resume=True)  # it stands there still


def test_tiles_of_one_seed_hold_different_poison() -> None:
    chip = Chip(poison="random", seed=3)
    assert chip.read(*OWN, FAR, 64) != chip.read(*OTHER, FAR, 64)
    assert chip.read(*OWN, FAR, 64) == Chip(poison="random", seed=3).read(*OWN, FAR, 64)


def test_a_chip_that_nobody_holds_is_freed_at_once() -> None:
    gc.collect()
    gc.disable()
    try:
        chip = Chip()
        p.put(chip, OWN, p.send(p.WRITE, (L1, HOME), (FAR, AWAY), 64))
        chip.run()
        tile = chip.tile[OWN]
        seen = [weakref.ref(chip), weakref.ref(chip.network.state), weakref.ref(tile.state)]
        kept = weakref.ref(tile)
        del chip
        assert seen[0]() is None
        assert kept() is not None
        assert tile.read(0, 4) != b""
        del tile
        assert [reference() for reference in seen] == [None] * 3
    finally:
        gc.enable()
