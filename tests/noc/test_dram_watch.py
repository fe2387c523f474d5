"""Watchpoints on DRAM: every request that changes or reads the bytes stops the run, by name."""

from pathlib import Path

import pytest

from bhemu import Chip, Program, Tile
from bhemu.errors import InputError

ELFS = Path(__file__).resolve().parents[2] / "elfs"
OUT, IN, PAGE, BANKS = 0x200080, 0x100080, 2048, 8


def copy_dram(**options: object) -> tuple[Chip, Tile]:
    chip = Program.load(ELFS / "copy_dram").launch(**options)
    return chip, chip.tile[1, 2]


def changes_by_rounds(bank: int, at: int, n: int) -> list[tuple[int, bytes, bytes]]:
    """Every change of the bytes, looked for after each round: round, before, after."""
    chip, _ = copy_dram()
    found, before = [], chip.dram[bank].read(at, n)
    while chip.run(rounds=1).reason == "rounds":
        after = chip.dram[bank].read(at, n)
        if after != before:
            found.append((chip.round, before, after))
        before = after
    return found


@pytest.mark.parametrize("engine", ["unicorn", "compiled"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("bank", "at", "n"), [(3, OUT + 8, 4), (0, OUT + PAGE - 2, 7)])
def test_stops_where_looking_after_each_round_finds_a_change(
    engine: str, threads: int, bank: int, at: int, n: int
) -> None:
    wanted = changes_by_rounds(bank, at, n)
    chip, tile = copy_dram(engine=engine, threads=threads)
    number = tile.watch(f"dram:{bank}:{at:#x}:{n}")
    found = []
    while (stop := chip.run()).reason == "watchpoint":
        change = stop.change
        assert change is not None
        assert change.watchpoint.number == number
        assert stop.where == change.where
        assert change.where.core == "brisc"
        before, after = (x.to_bytes(n, "little") for x in (change.before, change.after))
        assert chip.dram[bank].read(at, n) == after, "it stands behind the request"
        if found and found[-1][0] == chip.round + 1:
            assert found[-1][2] == before, "another request of the same round"
            before = found.pop()[1]
        found.append((chip.round + 1, before, after))
    assert found == wanted
    assert found
    assert stop.reason == "until" or stop.reason == "idle"
    assert all(result.equal for result in chip.check())


def test_names_the_tile_whose_request_it_was() -> None:
    """Page p is in bank p % 8 and is written by tile p % 16 of the program."""
    for page in (0, 5, 11):
        chip, tile = copy_dram()
        tile.watch(f"dram:{page % BANKS}:{OUT + page // BANKS * PAGE:#x}:16")
        where = chip.run().where
        assert where is not None
        assert where.tile == (1 + page % 4, 2 + page // 4 % 4)


def test_a_read() -> None:
    chip, tile = copy_dram()
    tile.watch(f"dram:2:{IN + 4:#x}", access="r")
    stop = chip.run()
    assert stop.change is not None
    assert stop.change.read
    assert (
        stop.change.before
        == stop.change.after
        == int.from_bytes(chip.dram[2].read(IN + 4, 4), "little")
    )
    assert stop.change.where.core == "ncrisc"
    assert chip.run().reason != "watchpoint", "each page is read once"


def test_conditions_and_deleting() -> None:
    chip, tile = copy_dram()
    never = tile.watch(f"dram:3:{OUT:#x}", condition=lambda tile: False)
    second = tile.watch(f"dram:3:{OUT:#x}:64", ignore=1)
    wanted = changes_by_rounds(3, OUT, 64)
    assert len(wanted) == 1
    tile.delete(second)
    assert chip.run().reason != "watchpoint"
    assert [point.number for point in tile.watchpoints] == [never]


def test_what_a_host_writes_is_no_change() -> None:
    chip, tile = copy_dram()
    tile.watch("dram:7:0x300000:8", access="rw")
    chip.dram[7].write(0x300000, b"12345678")
    assert chip.run().reason != "watchpoint"


def test_two_tiles_have_their_own() -> None:
    chip, tile = copy_dram()
    other = chip.tile[4, 5]
    tile.watch(f"dram:0:{OUT:#x}")
    other.watch(f"dram:5:{OUT + 3 * PAGE:#x}:8")
    stop = chip.run()
    assert stop.change is not None
    assert stop.change.watchpoint in tile.watchpoints
    tile.delete()
    assert chip.run().reason == "watchpoint", "the other's is still there"
    other.delete()
    assert chip.run().reason != "watchpoint"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("dram:8:0", "banks 0 to 7"),
        ("dram:0", "no place in DRAM"),
        ("dram:0:x", "no place in DRAM"),
        ("dram:0:0:65", "1 to 64 bytes"),
        ("dram:0:0xFEFFFFFE:4", "ends at 0xff000000"),
    ],
)
def test_what_is_no_place(place: str, said: str) -> None:
    _, tile = copy_dram()
    with pytest.raises(InputError, match=said):
        tile.watch(place)


def test_a_bank_that_the_chip_does_not_have() -> None:
    tile = Chip(dram_banks=7).tile[1, 2]
    with pytest.raises(InputError, match="banks 0 to 6"):
        tile.watch("dram:7:0")
    assert tile.watchpoints == ()


def test_too_many_and_a_tile_alone() -> None:
    _, tile = copy_dram()
    for i in range(8):
        tile.watch(f"dram:0:{16 * i}")
    with pytest.raises(InputError, match="8 places of DRAM"):
        tile.watch("dram:0:0x1000")
    assert len(tile.watchpoints) == 8
    with pytest.raises(InputError, match="this tile is alone"):
        Tile().watch("dram:0:0")


def test_going_back_to_a_write() -> None:
    chip, tile = copy_dram()
    history = tile.keep_history()
    tile.stepping.run()
    ended = tile.clock
    tile.stepping.watch(tile.core["brisc"], f"dram:1:{OUT:#x}:4")
    stop = history.reverse_continue()
    assert stop.reason == "watchpoint"
    assert stop.change is not None
    assert stop.change.after == int.from_bytes(chip.dram[1].read(OUT, 4), "little")
    assert tile.clock < ended
