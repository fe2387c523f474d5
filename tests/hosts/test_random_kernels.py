"""Random programs for tt-metal's kernel API: what a seed gives, how outputs are compared."""

import re
from pathlib import Path

import numpy as np
import pytest
from script_module import script

COMPUTE = script("scripts/stock_ttnn/compute_kernels.py")
DATAFLOW = script("scripts/stock_ttnn/dataflow_kernels.py")
PROGRAMS = script("scripts/stock_ttnn/random_kernels.py")
SEEDS = range(300)


@pytest.mark.parametrize("vector", [False, True])
def test_a_compute_program_packs_what_it_says(vector: bool) -> None:
    for seed in SEEDS:
        program = COMPUTE.make(seed, vector=vector)
        text = program.source()
        pushed = re.findall(rf"cb_push_back\({COMPUTE.OUT}, (\d+)\)", text)
        assert program.made == sum(map(int, pushed)) > 0, seed
        assert text.count("tile_regs_acquire") == text.count("tile_regs_release")
        assert ("sfpu" in text) == vector
        assert text == COMPUTE.make(seed, vector=vector).source()


def test_a_compute_program_reads_no_tile_that_is_not_there() -> None:
    for seed in SEEDS:
        program = COMPUTE.make(seed, vector=True)
        for name, x, y, i, j in re.findall(
            r"(\w+_tiles\w*)\((\d+), (\d+), (\d+), (\d+), \d\)", program.source()
        ):
            assert int(i) < program.tiles[int(x)], (seed, name)
            assert int(j) < program.tiles[int(y)], (seed, name)
            assert not {int(x), int(y)} & program.direct, (seed, name)


def test_kernels_of_a_dataflow_program_meet_after_every_step() -> None:
    for seed in SEEDS:
        program = DATAFLOW.make(seed)
        meetings = [f"step({n});" for n in range(1, program.areas + 1)]
        for kernel in DATAFLOW.KERNELS:
            assert re.findall(r"^  (step\(\d+\);)$", program.source(kernel), re.M) == meetings


def test_a_dataflow_program_stays_in_the_area_of_its_step() -> None:
    """What is written to the next area would depend on who comes first."""
    for seed in SEEDS:
        program = DATAFLOW.make(seed)
        for kernel in DATAFLOW.KERNELS:
            for a, size in re.findall(r"base \+ (\d+)\)?\)?, (\d+)\);", program.source(kernel)):
                assert int(a) % DATAFLOW.AREA + int(size) <= DATAFLOW.AREA, (seed, kernel)


def test_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        np.save(folder / "matrix-1.npy", np.array([1.0, np.nan], np.float32))
    assert PROGRAMS.main(["compare", str(one), str(other)]) == 0
    np.save(other / "matrix-1.npy", np.array([1.0, 2.0], np.float32))
    assert PROGRAMS.main(["compare", str(one), str(other)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "1 equal, 0 differ; outputs 1, 1"
    assert said[1].startswith("matrix-1: 1 of 2, first (1,): nan, 2.0")
    assert PROGRAMS.main(["run", "scalar"]) == 2
