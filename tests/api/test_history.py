"""Going back: every moment is that of the run forward, and runs go on from it as before."""

from pathlib import Path

import numpy as np
import pytest

import bhemu as package
from bhemu import Assert, InputError, Program, Tile
from bhemu.machine.history import Marks
from bhemu.machine.saved import HOSTS
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, EBREAK, PARK, RA, ZERO, addi, jal, jalr, li, sw
from bhemu.tensix.state import MEMBERS, POINTERS

ROOT = Path(package.__file__).parent.parent
APART = (*POINTERS, *HOSTS, "flush", "scratch", "quiet", "quiet_next")
COUNTER = 0x20000
# A counter in L1 that goes from 1 to 40.
LOOP = [*li(A1, COUNTER), addi(A0, ZERO, 0), addi(A0, A0, 1), sw(A0, A1, 0), jal(ZERO, -8)]


def state(tile: Tile) -> dict[str, np.ndarray]:
    arrays = tile.snapshot().arrays
    return {m.name: arrays[m.name] for m in MEMBERS if m.name not in APART}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert [name for name in one if not np.array_equal(one[name], other[name])] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("quantum", [7, 1000])
def test_goto_is_the_moment_of_a_run_forward(engine: str, quantum: int) -> None:
    program = Program.load(ROOT / "elfs" / "add1")
    tile = program.launch(engine=engine, quantum=quantum)
    tile.keep_history()
    end = tile.run()
    at_end = state(tile)
    for clock in (end.clock - 1, 1234, 0, 700):
        tile.history.goto(clock)
        fresh = program.launch(engine=engine, quantum=quantum)
        if clock:
            fresh.run("idle", limit=clock)
        same(state(tile), state(fresh))
    assert tile.run() == end
    same(state(tile), at_end)
    assert tile.check()[0].equal


@pytest.mark.parametrize("engine", ENGINES)
def test_reverse_continue_finds_each_stop_of_the_run_forward_in_reverse(tile, engine) -> None:
    mine = tile(*LOOP, engine=engine)
    history = mine.keep_history()
    mine.watch(f"{COUNTER:#x}")
    values = []
    while len(values) < 40:
        stop = mine.run()
        values.append((stop.clock, stop.change.before, stop.change.after))
    assert [after for _, _, after in values] == list(range(1, 41))
    for expected in reversed(values[:-1]):
        stop = history.reverse_continue()
        assert (stop.clock, stop.change.before, stop.change.after) == expected
        assert mine.read32(COUNTER) == expected[2]
    assert history.reverse_continue().reason == "step"
    assert mine.clock == history.first == 0
    assert mine.run().change.after == 1


def test_reverse_step_goes_back_by_instructions_of_a_core_and_words_of_a_thread() -> None:
    tile = Program.load(ROOT / "elfs" / "add1").launch()
    history = tile.keep_history()
    tile.run()
    core = tile.core["trisc1"]
    retired, executed = core.retired, int(tile.state.executed[1])
    places = []
    for n in (1, 4, 20):
        history.reverse_step(core, n)
        places.append((core.retired, core.pc))
    assert [count for count, _ in places] == [retired - 1, retired - 5, retired - 25]
    fresh = Program.load(ROOT / "elfs" / "add1").launch()
    fresh.run_to("trisc1", "main")
    for count, pc in reversed(places):
        fresh.step("trisc1", count - fresh.core["trisc1"].retired)
        assert fresh.core["trisc1"].pc == pc
    tile.run()
    history.reverse_tstep(1, 3)
    assert int(tile.state.executed[1]) == executed - 3


def test_reverse_next_goes_back_over_a_call(tile) -> None:
    # main: a0 = 5; call f; a0 += 1.   f: a0 += 2; ret
    mine = tile(addi(A0, ZERO, 5), jal(RA, 12), addi(A0, A0, 1), PARK, addi(A0, A0, 2), _ret())
    history = mine.keep_history()
    mine.step("trisc0", 5)
    core = mine.core["trisc0"]
    start = 0x10000
    assert (core.pc, int(core.regs[A0])) == (start + 12, 8)
    history.reverse_next(core)
    assert core.pc == start + 8
    history.reverse_next(core)
    assert (core.pc, int(core.regs[A0])) == (start + 4, 5)


def _ret() -> int:
    return jalr(ZERO, RA, 0)


def test_an_error_is_left_and_met_again(tile) -> None:
    mine = tile(addi(A0, ZERO, 1), addi(A0, A0, 1), EBREAK)
    history = mine.keep_history()
    with pytest.raises(Assert):
        mine.run()
    history.reverse_step(mine.core["trisc0"])
    assert mine.error is None
    assert int(mine.core["trisc0"].regs[A0]) == 1
    with pytest.raises(Assert):
        mine.run()


def test_what_the_host_changes_is_a_new_future(tile) -> None:
    mine = tile(*LOOP)
    history = mine.keep_history()
    mine.run("idle", limit=100)
    history.goto(50)
    mine.backend.engine.write_register(1, A0, 1000)
    mine.run("idle", limit=50)
    assert mine.read32(COUNTER) > 1000
    history.goto(49)
    assert mine.read32(COUNTER) < 50
    history.goto(80)
    assert mine.read32(COUNTER) > 1000
    history.goto(49)
    mine.run("idle", limit=100)  # the run goes on without the host
    assert mine.read32(COUNTER) < 1000
    history.goto(80)
    assert mine.read32(COUNTER) < 1000


def test_marks_stay_few_and_every_moment_can_be_reached(tile) -> None:
    mine = tile(*LOOP)
    history = mine.keep_history()
    history.marks._every = 2
    for _ in range(300):
        mine.run("idle", limit=10)
    assert len(history.marks.all) <= 65
    for clock in (2999, 1, 1502):
        assert history.goto(clock).clock == mine.clock == clock


def test_before_the_beginning(tile) -> None:
    mine = tile(*LOOP)
    with pytest.raises(InputError, match="no history"):
        _ = mine.history
    mine.run("idle", limit=10)
    history = mine.keep_history()
    assert mine.keep_history() is history
    with pytest.raises(InputError, match="begins at clock 10"):
        history.goto(5)
    with pytest.raises(InputError, match="lies before the history"):
        history.reverse_step(mine.core["trisc0"])
    assert history.reverse_continue().reason == "step"
    assert "clock 10 to 10" in repr(history)


def test_a_run_from_the_past_keeps_the_marks_that_no_host_has_touched() -> None:
    tile = Program.load(ROOT / "elfs" / "matmul").launch()
    tile.keep_history()
    tile.loop.observer = Marks(tile.loop, every=100)
    history = tile.keep_history()
    end = tile.run()
    marks = repr(history)
    middles = list(range(end.clock // 4, end.clock, end.clock // 8))
    prepared = []
    for middle in middles:
        history.goto(middle)
        prepared.append(bool(tile.state.src_prepared.any()))
        tile.run(limit=1)
        assert repr(history) == marks
    assert any(prepared), "cells were prepared for products, which publish_host_writes() forgets"


def test_a_core_is_named_as_in_step() -> None:
    tile = Program.load(Path(__file__).parents[2] / "elfs" / "add1").launch()
    history = tile.keep_history()
    tile.run(limit=600)
    after = tile.core["brisc"].retired
    history.reverse_step("brisc", 5)
    assert tile.core["brisc"].retired == after - 5
    history.reverse_next("brisc")
    with pytest.raises(package.UnknownName):
        history.reverse_step("brisk")
