"""Why a place of a chip's tile holds what it holds; breakpoints and watchpoints of that tile."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bhemu as package
from bhemu.cli import main
from bhemu.launch import Launched
from bhemu.machine.history import History
from bhemu.program.schema import ENGINES, load_program
from bhemu.why.chain import links_behind

MCAST = Path(package.__file__).parent.parent / "elfs" / "matmul_mcast"
PAGE = 0x30880  # of a buffer of tile (2,2), which tile (1,2) fills by multicasts


def ran(engine: str | None = None) -> tuple[Launched, History]:
    launched = Launched(load_program(MCAST), (2, 2), engine=engine)
    launched.keep_history()
    launched.run()
    assert isinstance(launched.tile.history, History)
    return launched, launched.tile.history


@pytest.mark.parametrize("engine", ENGINES)
def test_a_semaphore_of_a_tile(engine) -> None:
    launched, _ = ran(engine)
    links = links_behind(launched.tile, launched.part((2, 2)), "brisc", "sem:1")
    said = [(one.where.tile, one.where.decoded.split()[0]) for one in links if one.where]
    assert said[:2] == [((2, 2), "SEMGET"), ((2, 2), "SEMPOST")]
    assert said[-1] == ((2, 2), "SEMINIT")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_came_over_the_noc_names_its_sender(engine) -> None:
    launched, _ = ran(engine)
    (link,) = links_behind(launched.tile, launched.part((2, 2)), "brisc", f"{PAGE:#x}")
    assert (link.where.tile, link.where.core) == ((1, 2), "ncrisc")
    assert link.where.file is not None
    assert link.text == "it came over the NoC"


def test_every_moment_is_that_of_the_run_forward() -> None:
    launched, past = ran()
    chip, tile = launched.machine, launched.tile
    ended = {one.xy: one.l1.copy() for one in launched.tiles}
    end, clock = chip.clock, int(tile.state.clock[0])
    with past.replaying():
        for part in (3, 2):
            past.to(clock * part // 4)
            assert int(tile.state.clock[0]) - clock * part // 4 in range(-1000, 1)
    chip.run()
    assert chip.clock == end
    assert all(np.array_equal(one.l1, ended[one.xy]) for one in launched.tiles)


def test_words_and_watches_of_a_tile_stop_the_chip() -> None:
    plain, stopped = (Launched(load_program(MCAST), (2, 2)) for _ in range(2))
    plain.run()
    number = stopped.tile.break_word("PACR", 2, condition=lambda tile: tile.state.sem[1] > 0)
    stopped.tile.watch("mutex:0", access="rw")
    stops = 0
    while (stop := stopped.tile.run()).reason == "breakpoint":
        assert (stop.breakpoint, stop.where.tile) == (number, (2, 2))
        stops += 1
    assert stops == plain.tile.state.op_count[2, 0x41] > 0
    assert stop.reason == "until"
    assert stopped.clock == plain.clock
    assert (stopped.tile.l1 == plain.tile.l1).all()


def test_the_command() -> None:
    args = ["why", "-q", str(MCAST), "--tile", "2,2", f"{PAGE:#x}", "--json"]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    (link,) = json.loads(result.stdout)["links"]
    assert link["where"]["tile"] == [1, 2]
    in_dram = CliRunner().invoke(main, ["why", "-q", str(MCAST), "C[0,0]", "--json"])
    assert in_dram.exit_code == 0
    first, second, *_ = json.loads(in_dram.stdout)["links"]
    assert first["where"]["core"] == "brisc"  # the request that wrote it
    assert "PACR" in second["where"]["decoded"]
