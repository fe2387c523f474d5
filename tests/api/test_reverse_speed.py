"""A step back in a run of 10^8 instructions takes less than 0.3 s, wherever it is taken."""

import os
import time

import pytest

from bhemu import Tile
from bhemu.program.schema import ENGINES
from bhemu.riscv.asm import A0, A1, A2, ZERO, addi, bne, code, li, lw, sw

LENGTH = 100_000_000
MOMENTS = (LENGTH, LENGTH - 1, 90_000_001, 50_000_000, 10_000_003, 1_000_000, 1000)
SECONDS = 0.3
START, COUNTER = 0x10000, 0x20000
# A counter in L1: add, store, load, repeat.
LOOP = [addi(A0, A0, 1), sw(A0, A1), lw(A2, A1), bne(A2, ZERO, -12)]


@pytest.mark.skipif(not os.environ.get("BHEMU_LONG"), reason="BHEMU_LONG is not set")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_back_in_a_long_run(engine: str) -> None:
    tile = Tile(engine=engine)
    tile.write(START, code(*li(A1, COUNTER), *LOOP))
    core = tile.core["trisc0"]
    core.set_reset_pc(START)
    core.release()
    tile.keep_history()
    tile.run("idle", limit=LENGTH)
    taken = {}
    for clock in MOMENTS:
        tile.history.goto(clock)
        retired = core.retired
        began = time.process_time()
        tile.history.reverse_step(core)
        taken[clock] = time.process_time() - began
        assert core.retired == retired - 1
    print(engine, {clock: round(seconds, 3) for clock, seconds in taken.items()})
    assert max(taken.values()) < SECONDS, taken
