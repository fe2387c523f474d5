"""Time-outs, Ctrl-C, clock limits and until words hold whatever a program does."""

import os
import signal
import threading
import time

import pytest
from amplifiers import AMPLIFIERS, START
from released import release

from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import PARK, addi, code, tt

QUANTA = (1000, 10_000_000)
LIMITS = (1, 1, 2, 3, 5, 64, 65, 1000, 16129, 3) if os.environ.get("BHEMU_LONG") else (1, 64, 16129)
SLACK = 0.2  # seconds of processor time that a run may go on for
STORE = tt("STOREIND", mem_hier_sel=1, size_sel=1, addr_reg_index=8, data_reg_index=9)
COUNT = tt("ADDDMAREG", op_b_is_const=1, op_b_reg_index=1, op_a_reg_index=9, result_reg_index=9)
TARGET = 0x8000


@pytest.fixture(autouse=True)
def _engines(both_engines: None) -> None:
    """Each engine has its own way to end a run."""


def amplified(name: str, quantum: int) -> Tile:
    """A tile that runs the amplifier, with everything compiled that it needs."""
    tile = Tile(quantum=quantum, ub="warn", livelock=0)
    tile.write(START, AMPLIFIERS[name])
    tile.core["trisc1"].set_reset_pc(START)
    tile.core["trisc1"].release()
    tile.run(timeout_s=0.01)
    return tile


@pytest.mark.parametrize("quantum", QUANTA)
@pytest.mark.parametrize("name", AMPLIFIERS)
def test_a_time_out_ends_a_run(name: str, quantum: int) -> None:
    """Measured in processor time: a busy machine may delay the end."""
    tile = amplified(name, quantum)
    begin = time.thread_time()
    assert tile.run(timeout_s=0.05).reason == "timeout"
    assert time.thread_time() - begin < 0.05 + SLACK


@pytest.mark.parametrize("name", AMPLIFIERS)
def test_ctrl_c_ends_a_run(name: str) -> None:
    tile = amplified(name, max(QUANTA))
    interrupt = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    begin = time.thread_time()
    interrupt.start()
    assert tile.run(timeout_s=60).reason == "interrupt"
    assert time.thread_time() - begin < 0.05 + SLACK


@pytest.mark.parametrize("quantum", QUANTA)
@pytest.mark.parametrize("name", AMPLIFIERS)
def test_a_limit_is_the_clock_of_the_stop(name: str, quantum: int) -> None:
    """To the word and the instruction, again and again."""
    tile = amplified(name, quantum)
    for limit in LIMITS:
        clock = tile.stop.clock if tile.stop is not None else 0
        stop = tile.run(limit=limit)
        assert (stop.reason, stop.clock - clock) == ("limit", limit)


@pytest.mark.parametrize("quantum", [1, 7, 1000])
@pytest.mark.parametrize("looks", [False, True])
def test_until_holds_after_the_tensix_word_that_makes_it_true(quantum: int, looks: bool) -> None:
    """Whether the word executes in the coprocessor's turn or within a look of a core."""
    tile = Tile(quantum=quantum)
    tile.state.gpr[0, 8] = TARGET // 16
    body = [COUNT, STORE, *[addi(0, 0, 0)] * looks]
    release(tile, trisc0=code(body * 100, PARK), trisc1=code([COUNT] * 500, PARK))
    for value in (1, 37, 38, 90):
        assert tile.run([(TARGET, value)]).reason == "until"
        assert int(tile.state.executed[0]) == 2 * value
    assert tile.run().reason == "idle"
    assert int(tile.state.executed[0]) == 200
