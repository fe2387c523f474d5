"""A step back in a run of 10^8 instructions takes less than 0.3 s, wherever it is taken."""

import os
import time

import pytest

from bhemu import Chip, Tile
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, A2, ZERO, addi, bne, code, li, lw, sw

LENGTH = 100_000_000
MOMENTS = (LENGTH, LENGTH - 1, 90_000_001, 50_000_000, 10_000_003, 1_000_000, 1000)
SECONDS = 0.3
START, COUNTER = 0x10000, 0x20000
# A counter in L1: add, store, load, repeat.
LOOP = [addi(A0, A0, 1), sw(A0, A1), lw(A2, A1), bne(A2, ZERO, -12)]
needs_long = pytest.mark.skipif(not os.environ.get("BHEMU_LONG"), reason="BHEMU_LONG is not set")


def release(tile: Tile) -> None:
    tile.write(START, code(*li(A1, COUNTER), *LOOP))
    core = tile.core["trisc0"]
    core.set_reset_pc(START)
    core.release()


def demand_speed(tile: Tile, moments: tuple[int, ...]) -> None:
    core, taken = tile.core["trisc0"], {}
    for clock in moments:
        tile.history.goto(clock)
        retired = core.retired
        began = time.process_time()
        tile.history.reverse_step(core)
        taken[clock] = time.process_time() - began
        assert core.retired == retired - 1
    print({clock: round(seconds, 3) for clock, seconds in taken.items()})
    assert max(taken.values()) < SECONDS, taken


@needs_long
@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_back_in_a_long_run(engine: str) -> None:
    tile = Tile(engine=engine)
    release(tile)
    tile.keep_history()
    tile.run("idle", limit=LENGTH)
    demand_speed(tile, MOMENTS)


@needs_long
@pytest.mark.parametrize(
    ("engine", "tiles"), [*((e, n) for e in ENGINES for n in (2, 16)), ("compiled", 64)]
)
def test_a_step_back_in_a_long_run_of_a_chip(engine: str, tiles: int) -> None:
    """10^8 instructions of all tiles together."""
    chip = Chip(engine=engine)
    for n in range(tiles):
        release(chip.tile[1 + n % 7, 2 + n // 7])
    tile = chip.tile[2, 2]
    tile.keep_history()
    tile.stepping.run("idle", limit=LENGTH // tiles)
    demand_speed(tile, tuple(moment // tiles for moment in MOMENTS))
