"""Going back on a tile of a chip: each moment is that of the run forward, of all tiles."""

import gc
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bhemu as package
from bhemu import Program
from bhemu.cli import main
from bhemu.launch import Launched
from bhemu.machine import history
from bhemu.machine.tile import Tile
from bhemu.program.schema import ENGINES, load_program

ROOT = Path(package.__file__).parent.parent
MCAST = ROOT / "elfs" / "matmul_mcast"
SEMAPHORE = re.compile(r"sem:1: (\w+ -> \w+), clock (\d+)")


def stepped(**options: object) -> Launched:
    launched = Launched(load_program(MCAST), (2, 2), **options)
    launched.keep_history()
    return launched


def l1(launched: Launched) -> list[np.ndarray]:
    return [tile.l1.copy() for tile in launched.machine.tiles()]


def script(*commands: str, program: Path = MCAST) -> str:
    args = ["step", "-q", str(program), "--tile", "2,2", "-x", "; ".join(commands)]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("engine", ENGINES)
def test_marks_on_the_way_change_nothing(engine, monkeypatch) -> None:
    monkeypatch.setattr(history, "SECONDS", 0.0)
    monkeypatch.setattr(history, "COSTS", 0)
    marked, plain = stepped(engine=engine), Launched(load_program(MCAST), engine=engine)
    assert marked.run() == plain.run()
    assert int(re.findall(r"(\d+) marks", repr(marked.tile.history))[0]) > 1
    assert all(np.array_equal(a, b) for a, b in zip(l1(marked), l1(plain), strict=True))
    end = marked.tile.clock
    for clock in (end - 100, end - 5000, end // 2 + marked.tile.history.first // 2):
        marked.tile.history.goto(clock)
        assert marked.tile.clock == clock
    marked.run()
    assert marked.tile.clock == end
    assert all(np.array_equal(a, b) for a, b in zip(l1(marked), l1(plain), strict=True))
    assert all(result.equal for result in marked.check())


def test_stops_come_in_reverse() -> None:
    shown = script("watch sem:1", *["continue"] * 3, *["reverse-continue"] * 3)
    post, get, *back = SEMAPHORE.findall(shown)
    assert (post[0], get[0]) == ("0x0 -> 0x1", "0x1 -> 0x0")
    assert back == [get, post]
    assert shown.index("the history begins here") > shown.rindex(f"clock {post[1]}")


def test_breakpoints_are_gone_back_to() -> None:
    shown = script("break pack.c:14 trisc2", "continue", "step 40 trisc2", "reverse-continue")
    assert shown.count("breakpoint 1 hit: trisc2") == 2


def test_instructions_words_and_moments() -> None:
    def at(*commands: str) -> list[str]:
        return script("tbreak main trisc2", "continue", *commands, "where").splitlines()[-8:]

    forward = at()
    assert at("step 9 trisc2", "reverse-step 9 trisc2") == forward
    assert at("core trisc2", "step 9", "next", "rn", "rs 9") == forward
    later = at("tstep 5 2")
    assert at("tstep 8 2", "reverse-tstep 3 2") == later
    assert at("tstep 8 2", "goto 14000", "tstep 5 2") == later != forward


def test_a_moment_has_the_clock_of_the_tile() -> None:
    launched = stepped()
    clock = launched.tile.stepping.run().clock
    assert clock == launched.tile.clock != launched.clock
    ended = launched.tile.l1.copy()
    assert launched.tile.history.goto(clock - 1000).clock == clock - 1000
    launched.tile.history.goto(clock)
    assert np.array_equal(launched.tile.l1, ended)
    launched.run()
    assert all(result.equal for result in launched.check())


def test_what_a_host_changes_in_the_tile_is_a_moment_too() -> None:
    launched = stepped()
    tile = launched.tile
    tile.run("idle", limit=3000)
    clock = tile.clock
    tile.write32(0x170000, 77)
    tile.run("idle", limit=3000)
    for moment, value in ((clock + 1000, 77), (clock - 500, 0), (clock, 77)):
        tile.history.goto(moment)
        assert (tile.clock, tile.read32(0x170000)) == (moment, value)


def test_a_chip_that_is_reset_has_no_past() -> None:
    launched = stepped()
    launched.run()
    launched.machine.reset()
    assert (launched.tile.history.first, launched.tile.clock) == (0, 0)


@pytest.mark.parametrize("name", ["all_gather", "matmul_mcast"])
def test_the_history_of_a_tile_of_a_chip_is_that_of_the_chip(name: str) -> None:
    plain = Program.load(ROOT / "elfs" / name).launch()
    plain.run()
    chip = Program.load(ROOT / "elfs" / name).launch()
    tile = chip.tiles()[0]
    past = tile.keep_history()
    assert tile.keep_history() is tile.history is past
    chip.run(limit=6000)
    clock = tile.clock
    past.reverse_step(tile.core["brisc"], 1)
    assert tile.clock < clock
    past.goto(clock - 500)
    stop = chip.run()
    assert (stop.reason, chip.clock) == ("until", plain.clock)
    assert all(result.equal for result in chip.check())
    for mine, theirs in zip(chip.tiles(), plain.tiles(), strict=True):
        assert np.array_equal(mine.l1, theirs.l1)


def test_the_history_of_a_tile_outlives_the_name_of_its_chip() -> None:
    def kept() -> Tile:
        chip = Program.load(ROOT / "elfs" / "add1_chip").launch(engine="compiled", threads=1)
        tile: Tile = chip.tile[1, 2]
        tile.keep_history()
        chip.run()
        return tile

    tile = kept()
    gc.collect()
    end = tile.clock
    tile.history.goto(end - 100)
    assert tile.clock == end - 100
