"""Breakpoints, steps and traces of Tile: the schedule is that of one long run."""

import re

import numpy as np
import pytest

from bhemu import BhemuError, NoProgress, Program, Tile
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, bne, jal, li, lw, sw, tt

START = 0x10000
ADD1 = "elfs/add1"
SYNC = 0xFFE80004  # TTSync: a load waits until the thread has nothing left to do
LOOP = [addi(A0, A0, 1), addi(A1, ZERO, 3), bne(A0, A1, -8), PARK]


@pytest.fixture
def add1(request: pytest.FixtureRequest) -> Program:
    return Program.load(request.config.rootpath / ADD1)


def same(one: Tile, other: Tile) -> None:
    members = ("l1", "gpr", "dst", "retired", "executed", "round", "core_state", "pc", "op_count")
    for name in members:
        assert np.array_equal(getattr(one.state, name), getattr(other.state, name)), name
    assert one.clock == other.clock


def test_a_program_ends_where_it_says_and_is_checked(add1) -> None:
    tile = add1.launch(quantum=100)
    assert int(tile.state.quantum[0]) == 100
    assert tile.run().reason == "until"
    assert tile.read32(0x100) == 0xD0E0
    assert [result.equal for result in tile.check()] == [True]
    tile.write(0xC0000, b"\xff")
    assert not tile.check()[0].equal


def test_what_is_given_goes_before_what_the_program_says(image) -> None:
    program = image(addi(A0, A0, 1), jal(ZERO, -4))
    assert program.run.limit == 100_000
    tile = Program(**vars(program)).launch()
    assert tile.run(limit=500).clock == 500
    stop = tile.run()
    assert (stop.reason, stop.clock) == ("limit", 100_000)
    assert tile.run([(0, 0)], limit=5000).reason == "until"
    assert tile.run(limit=10).clock == tile.clock > 100_000


def test_a_breakpoint_stops_before_the_instruction_and_is_left_by_the_next_run(tile) -> None:
    mine = tile(*LOOP)
    number = mine.break_at("trisc0", START)
    for turn in range(3):
        stop = mine.run()
        assert (stop.reason, stop.breakpoint, stop.where.pc) == ("breakpoint", number, START)
        assert int(mine.core["trisc0"].regs[A0]) == turn
    assert [str(point) for point in mine.breakpoints] == ["breakpoint 1: trisc0 0x00010000 65536"]
    mine.delete(number)
    assert mine.breakpoints == ()
    assert mine.run().reason == "idle"
    assert mine.stop is not None
    assert mine.stop.reason == "idle"


def test_places_are_symbols_and_source_lines(add1) -> None:
    tile = add1.launch()
    tile.break_at("trisc1", "main")
    line = tile.break_at("trisc1", "math.c:24")
    assert tile.run().where.symbol == "main"
    stop = tile.run()
    assert (stop.breakpoint, stop.where.file, stop.where.line) == (line, "math.c", 24)
    tile.delete()
    assert tile.run_to("trisc2", "main").where.symbol == "main"
    assert tile.address("RISCV_DEBUG_REG_WALL_CLOCK_L") == tile.address("WALL_CLOCK_0")
    assert tile.core["trisc2"].address("main") == tile.core["trisc2"].pc


def test_steps_next_and_finish(add1) -> None:
    tile = add1.launch()
    tile.run_to("brisc", "main")
    before = tile.core["brisc"].retired
    assert tile.step("brisc", 3).reason == "step"
    assert tile.core["brisc"].retired == before + 3
    assert tile.next("brisc").reason in ("step", "breakpoint")
    free = add1.launch()
    tile.run()
    free.run()
    same(tile, free)


def test_tensix_words_are_stepped_past_breakpoints_of_cores(tile) -> None:
    words = [tt("SEMINIT", sem_sel=1), addi(A0, ZERO, 1), tt("SEMINIT", sem_sel=2), *LOOP]
    mine = tile(*words)
    mine.break_at("trisc0", START + 4)
    assert mine.tstep(0).reason in ("step", "until")
    assert int(mine.state.executed[0]) == 1
    mine.tnext(0)
    assert int(mine.state.executed[0]) == 2
    mine.delete()
    free = tile(*words)
    mine.run()
    free.run()
    same(mine, free)


def test_a_core_that_parks_ends_its_steps(tile) -> None:
    mine = tile(addi(A0, A0, 1), PARK)
    assert mine.step("trisc0", 100).reason == "until"
    assert mine.core["trisc0"].state == "parked"


@pytest.mark.parametrize("many", [1, 7])
def test_a_trace_goes_on_where_the_last_one_ended(add1, many: int) -> None:
    tile, whole = add1.launch(), add1.launch().trace()
    parts = []
    while len(parts) < len(whole):
        words = tile.trace(many)
        assert len(words) == min(many, len(whole) - len(parts))
        parts += words
    assert parts == whole
    assert [word.number for word in whole] == list(range(len(whole)))
    free = add1.launch()
    free.run()
    if tile.stop != free.stop:
        tile.run()
    same(tile, free)


def test_single_words_come_in_the_order_of_one_run(add1) -> None:
    """Also where a stop cuts short the sweep that a push into a full FIFO set going."""
    whole, tile, rng = add1.launch().trace(), add1.launch(), np.random.default_rng(0)
    with tile.stepping.recording() as entries:
        for _ in range(60):
            tile.tstep(int(rng.integers(3)))
        tile.run()
    assert [entry[:2] for entry in entries] == [(word.thread, word.word) for word in whole]


def test_the_words_before_an_error_are_kept(tile) -> None:
    wait = tt("SEMWAIT", wait_sem_cond=1, sem_sel=2, stall_res=0x1FF)
    load = [li(A0, SYNC), lw(A1, A0), sw(A1, ZERO, 0x100), PARK]
    mine = tile(tt("SEMINIT", sem_sel=1), wait, tt("SEMGET", sem_sel=0), *load)
    with pytest.raises(NoProgress, match="thread T0 waits for semaphore 1 to become non-zero"):
        mine.trace()
    assert [word.text.split()[0] for word in mine.traced] == ["SEMINIT", "SEMWAIT"]
    assert mine.stop is None
    assert any("waits for" in line for line in mine.where())


def test_reset_forgets_the_program(add1) -> None:
    tile = add1.launch()
    tile.break_at("trisc1", "main")
    tile.run()
    tile.reset()
    assert tile.breakpoints == ()
    assert repr(tile) == repr(Tile())
    assert tile.run().reason == "idle"


@pytest.mark.usefixtures("both_engines")
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param([*li(A0, 0xFFE40000), lw(A1, A0)], id="of a core's access"),
        pytest.param([tt("GMPOOL"), *li(A0, 0xFFE80004), lw(A1, A0)], id="of a Tensix word"),
    ],
)
def test_devices_can_be_read_as_a_core_after_an_error(tile, fault: list[int]) -> None:
    """Nothing runs on, and the error stays what it was."""
    stopped = tile(li(A0, 0xFFE00000), addi(A1, ZERO, 77), sw(A1, A0, 8), fault, PARK)
    with pytest.raises(BhemuError) as caught:
        stopped.run()
    before = stopped.snapshot()
    assert stopped.core["trisc0"].read32(0xFFE00008) == 77
    assert stopped.core["trisc0"].read32(0xFFE80020) == 0
    stopped.core["trisc0"].write32(0xFFE0000C, 78)
    assert stopped.core["trisc0"].read32(0xFFE0000C) == 78
    assert stopped.tensix.gpr[0, 3] == 78
    assert [int(n) for n in stopped.state.executed] == [int(n) for n in before.executed]
    with pytest.raises(BhemuError, match=re.escape(caught.value.message)):
        stopped.run()
