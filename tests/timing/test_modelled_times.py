"""Modelled times: right programs stay right, and probes take what cards take."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from script_module import script

from bhemu import Tile
from bhemu.launch import Program
from bhemu.tensix.insn import instructions
from bhemu.timing import cycles

ROOT = Path(__file__).parents[2]
TILES = ("add1", "eltwise", "matmul", "reduce", "sfpu")
script("scripts/noc_probes.py")  # which make_timing.py imports
make_timing: Any = script("scripts/make_timing.py")
ANCHORS = tomllib.loads(make_timing.ANCHORS.read_text())["anchor"]
CHECKED = (("ADDDMAREG", 3), ("SFPMAD", 2), ("RDCFG", 3), ("rv_mul_dep", 1), ("rv_div", 1))


@pytest.mark.parametrize("name", TILES)
def test_a_right_program_is_right_and_repeats(name: str) -> None:
    clocks = set()
    for _ in range(2):
        tile = Program.load(ROOT / "elfs" / name).launch(timing="model")
        assert tile.run().reason == "until"
        assert [o.name for o in tile.check() if not o.equal] == []
        clocks.add(tile.clock)
    assert len(clocks) == 1


@pytest.mark.parametrize(("probe", "threads"), CHECKED)
def test_a_probe_takes_what_the_card_takes(probe: str, threads: int) -> None:
    card = next(a for a in ANCHORS if (a["probe"], a["threads"]) == (probe, threads))
    assert make_timing.slope(probe, threads) == pytest.approx(card["cycles"], rel=0.02)


def test_every_word_that_executes_has_a_figure_and_no_other() -> None:
    assert {cls.name for cls in instructions().values() if cls.execute} == cycles.FIGURES.keys()
    assert all(one.source and one.busy > 0 for one in cycles.FIGURES.values())


def test_what_is_called_measured_was_measured() -> None:
    """Each such word has an anchor in the published bursts."""
    measured = {
        cls.name
        for cls in instructions().values()
        if (one := cycles.of(cls)) and one.kind == cycles.MEASURED
    }
    assert measured <= {anchor["probe"] for anchor in ANCHORS}


def test_the_page_lists_the_figures() -> None:
    text = make_timing.PAGE.read_text()
    assert make_timing.figures() in text
    assert make_timing.noc_figures() in text
    assert make_timing.tiles() in text


def test_the_wall_clock_counts_cycles() -> None:
    """A division keeps its core for 33 cycles."""
    fast, slow = (make_timing.run(probe, 32, 1)[0] for probe in ("rv_addi_dep", "rv_div"))
    assert 30 < slow / fast < 34


@pytest.mark.parametrize(
    ("ring", "l0", "cycles"),
    [(1, "model", 2), (4, "model", 2), (5, "model", 8), (1, "off", 8)],
)
def test_a_load_that_hits_the_l0_cache_is_there_earlier(ring: int, l0: Any, cycles: int) -> None:
    """Four lines fit. A hit drops them all in 0.8 % of cases, so a few more cycles are right."""
    took = make_timing.run("rv_load_chase", 32, 1, ring, l0)[0] / (32 * make_timing.UNROLL)
    assert cycles <= took < 1.15 * cycles


def test_a_line_that_is_on_its_way_is_no_hit() -> None:
    """Loads of one line, one after the other, take the port of L1 each: as rv_load_indep."""
    hot, cold = (make_timing.run("rv_load_indep", 32, 1, l0=l0)[0] for l0 in ("model", "off"))
    assert hot == pytest.approx(cold, rel=0.02)


def test_a_tile_tells_its_timing() -> None:
    assert (Tile(timing="model").timing, Tile(timing="model").engine) == ("model", "compiled")
    assert Tile().timing == "off"
