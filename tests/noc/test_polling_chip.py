"""`run("polling")`: a chip stops where nothing can change that no host writes, and nowhere else."""

import pytest

from bhemu import Chip
from bhemu.errors import InputError
from bhemu.riscv.assembly import A0, A1, A2, T0, ZERO, addi, branch, code, jal, li, lw, sw

FLAG, DONE = 0x20000, 0x20004
WALL_CLOCK = 0xFFB121F0
SOFT_RESET, BRISC = 0xFFB121B0, 0x47000
BEQ, BNE = 0, 1
TILES = ((1, 2), (16, 11))


def wait_then_store(polled: int) -> bytes:
    """Wait until the word is not 0, store 1 at DONE, wait for ever for the flag to become 0."""
    return code(
        *(li(A0, polled), li(A1, DONE), li(A2, 1)),
        *(lw(T0, A0), branch(BEQ, T0, ZERO, -4), sw(A2, A1)),
        *(lw(T0, A0), branch(BNE, T0, ZERO, -4), jal(0, 0)),
    )


def started(*programs: bytes) -> Chip:
    chip = Chip(livelock=0)
    for xy, program in zip(TILES, programs, strict=False):
        chip.write(*xy, 0, program)
        chip.write32(*xy, SOFT_RESET, BRISC)
    return chip


def test_a_chip_that_only_polls_stops_and_goes_on_when_a_host_writes() -> None:
    chip = started(wait_then_store(FLAG), wait_then_store(FLAG))
    assert chip.run("polling", rounds=100).reason == "polling"
    assert chip.round < 10
    assert not chip.idle, "the cores run"
    chip.write32(*TILES[1], FLAG, 1)
    assert chip.run("polling", rounds=100).reason == "polling"
    assert [chip.read32(*xy, DONE) for xy in TILES] == [0, 1]
    chip.write32(*TILES[1], FLAG, 0)
    chip.write32(*TILES[0], FLAG, 1)
    chip.run("polling", rounds=100)
    assert [chip.read32(*xy, DONE) for xy in TILES] == [1, 1]
    assert chip.tile[TILES[1]].core["brisc"].state == "parked"


def test_what_more_rounds_would_change_is_counts_alone() -> None:
    chip = started(wait_then_store(FLAG), wait_then_store(FLAG))
    chip.run("polling", rounds=100)
    before = [chip.read(*xy, 0, 0x30000) for xy in TILES]
    chip.run(rounds=500)
    assert [chip.read(*xy, 0, 0x30000) for xy in TILES] == before
    assert chip.round > 500
    chip.write32(*TILES[0], FLAG, 1)
    chip.run(rounds=5)
    assert chip.read32(*TILES[0], DONE) == 1


def test_a_core_that_works_keeps_the_chip_running() -> None:
    counting = code(li(A0, DONE), [addi(A1, A1, 1), sw(A1, A0), jal(0, -8)])
    chip = started(wait_then_store(FLAG), counting)
    assert chip.run("polling", rounds=20).reason == "rounds"
    assert chip.round == 20


def test_a_core_that_polls_the_time_keeps_the_chip_running() -> None:
    chip = started(wait_then_store(FLAG), code(li(A0, WALL_CLOCK), lw(T0, A0), jal(0, -4)))
    assert chip.run("polling", rounds=20).reason == "rounds"


def test_a_chip_whose_cores_are_held_is_idle() -> None:
    assert Chip().run("polling").reason == "idle"


def test_other_words_are_refused() -> None:
    with pytest.raises(InputError, match="until = 'poling': only"):
        Chip().run("poling")


def test_a_standstill_says_what_a_tile_waits_for() -> None:
    chip = started(wait_then_store(FLAG), wait_then_store(FLAG))
    chip.run("polling", rounds=100)
    error = chip.standstill(TILES[1])
    assert "tile (16,11) waits" in error.message
    assert "(16,11) brisc waits for L1 word 0x20000 to change" in str(error)
    assert "(1,2)" not in str(error)
    with pytest.raises(InputError, match="is no Tensix tile"):
        chip.standstill((17, 12))
