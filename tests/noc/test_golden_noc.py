"""Programs on many tiles against the golden model: every byte of L1 and DRAM must be equal.

The images were made by a generator of the project's own and run on ttsim v1.10.0 (Blackhole); see
tests/golden/README.md. Their result does not depend on timing.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import golden_noc
import pytest

from bhemu.tensix.state import POINTERS

CASES = golden_noc.names()
INTERPRETED = ("own_tile", "token_ring", "atomics", "remote_niu", "mcast_noc1", "dram_len")
OWN = {*POINTERS, "detail", "leave_at", "look_left", "page_count", "scratch", "translated"}
"""Members that hold addresses, what remains of messages and looks at the time, or says what of the
code an engine has run itself."""
FENCE, NOP = 0x0FF0000F, 0x00000013
ROOT = Path(__file__).parents[2]


def test_the_golden_set_is_whole() -> None:
    assert len(CASES) == 28


@pytest.mark.usefixtures("both_engines")
@pytest.mark.parametrize("name", CASES)
def test_memory_equals_the_golden_model(name: str) -> None:
    case = golden_noc.load(name)
    assert golden_noc.differences(case, golden_noc.run(case)) == []


@pytest.mark.parametrize("quantum", [1, 100])
@pytest.mark.parametrize("name", CASES)
def test_the_schedule_does_not_change_the_result(name: str, quantum: int) -> None:
    case = golden_noc.load(name)
    dice = random.Random(f"{name} {quantum}")
    delays = {xy: (dice.randrange(40), dice.randrange(40)) for xy in case.tiles}
    assert golden_noc.differences(case, golden_noc.run(case, delays, quantum=quantum)) == []


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_late_delivery_does_not_change_the_result(name: str, seed: int) -> None:
    case = golden_noc.load(name)
    chip = golden_noc.run(case, delivery="late", seed=seed, quantum=50)
    assert golden_noc.differences(case, chip) == []


@pytest.mark.usefixtures("both_engines")
@pytest.mark.parametrize("name", CASES)
def test_data_caches_do_not_change_the_result(name: str) -> None:
    """Every poller has a fence, and what is loaded once more was behind one."""
    case = golden_noc.load(name)
    chip = golden_noc.run(case, quantum=50, l0="model")
    assert golden_noc.differences(case, chip) == []
    assert any(tile.state.l0_uses.any() for tile in chip.tiles())
    assert not any(tile.state.l0_stale.any() for tile in chip.tiles())


@pytest.mark.usefixtures("both_engines")
def test_pollers_without_fences_read_stale_words() -> None:
    """They get on when a hit happens to drop all lines."""
    case = golden_noc.load("token_ring")
    for image in (*case.before.values(), *case.after.values()):
        words = image.view("<u4")
        words[words == FENCE] = NOP
    for l0, stale in (("off", False), ("model", True)):
        chip = golden_noc.run(case, l0=l0)
        assert golden_noc.differences(case, chip) == []
        assert any(tile.state.l0_stale.any() for tile in chip.tiles()) == stale


@pytest.mark.usefixtures("both_engines")
@pytest.mark.parametrize("name", CASES)
def test_threads_change_neither_bytes_nor_clocks(name: str) -> None:
    case = golden_noc.load(name)
    one, two = (golden_noc.run(case, quantum=200, threads=n) for n in (1, 2))
    assert golden_noc.differences(case, two) == []
    assert (one.clock, one.round) == (two.clock, two.round)
    for a, b in zip(one.tiles(), two.tiles(), strict=True):
        for member, value in a.state.members():
            if member.name not in OWN:
                assert (value == getattr(b.state, member.name)).all(), (a, member.name)


def test_interpreted_code_gives_the_same() -> None:
    program = (
        "import golden_noc\n"
        f"for name in {INTERPRETED}:\n"
        "    case = golden_noc.load(name)\n"
        "    assert golden_noc.differences(case, golden_noc.run(case)) == [], name\n"
    )
    folders = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": folders, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
