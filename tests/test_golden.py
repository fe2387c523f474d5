"""Whole programs against the golden model: every byte of L1 must be equal.

The images were made by a generator of the project's own and run on ttsim v1.10.0 (Blackhole),
unchanged and with start-up delays of the threads; see tests/golden/README.md.
"""

import os
import subprocess
import sys
from pathlib import Path

import golden_case
import pytest

CASES = sorted(path.stem for path in golden_case.GOLDEN.glob("*.npz"))
INTERPRETED = ("gpr_cfg", "cfg_wide", "mop_loops", "mutex_count", "sfpu_basic", "copy_fp32_dst")


def test_the_golden_set_is_whole() -> None:
    assert len(CASES) == 60


@pytest.mark.usefixtures("all_engines")
@pytest.mark.parametrize("name", CASES)
def test_l1_equals_the_golden_model(name: str) -> None:
    case = golden_case.load(name)
    tile = golden_case.start(case)
    assert tile.run(golden_case.DONE, timeout_s=60).reason == "until"
    assert case.differences(tile.l1) == []


@pytest.mark.parametrize("name", ["sem_ring", "mutex_count", "copy_srcb_bf16"])
@pytest.mark.parametrize("quantum", [1, 7, 100])
def test_the_schedule_does_not_change_the_result(name: str, quantum: int) -> None:
    case = golden_case.load(name)
    tile = golden_case.start(case, quantum=quantum)
    assert tile.run(golden_case.DONE, timeout_s=60).reason == "until"
    assert case.differences(tile.l1) == []


@pytest.mark.usefixtures("both_engines")
@pytest.mark.parametrize("name", INTERPRETED)
def test_interpreted_code_gives_the_same_bytes_and_clock(name: str) -> None:
    program = (
        "import golden_case\n"
        f"case = golden_case.load({name!r})\n"
        "tile = golden_case.start(case)\n"
        "assert tile.run(golden_case.DONE, timeout_s=300).reason == 'until'\n"
        "assert case.differences(tile.l1) == []\n"
        "print(tile.clock)\n"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(golden_case.__file__).parent,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    tile = golden_case.start(golden_case.load(name))
    tile.run(golden_case.DONE)
    assert int(result.stdout) == tile.clock
