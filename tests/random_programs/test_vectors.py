"""Golden vectors: programs of the generators, and what ttsim v1.10.0 made of them."""

from pathlib import Path

import numpy as np
import pytest

from bhemu.oracle.libttsim import DIFFERENT, Emulator, Outcome, Pair
from random_programs import vectors
from random_programs.divergences import match
from random_programs.units import UNITS, generate

FOLDER = Path(__file__).parents[1] / "vectors"
MOST_BYTES = 6 << 20


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator()


def test_every_unit_has_a_file_with_provenance() -> None:
    assert {path.stem for path in FOLDER.glob("*.npz")} == set(UNITS) == set(vectors.CHOICES)
    assert sum(path.stat().st_size for path in FOLDER.glob("*.npz")) < MOST_BYTES
    for unit in UNITS:
        meta, programs = vectors.load(FOLDER / f"{unit}.npz")
        assert programs
        assert meta["provenance"].keys() == {"model", "date", "generator", "unit", "seed"}
        assert meta["provenance"]["model"].startswith("ttsim v")


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != "accept"])
def test_l1_equals_what_ttsim_left(unit: str, emulator: Emulator) -> None:
    _, programs = vectors.load(FOLDER / f"{unit}.npz")
    for vector in programs:
        plan = generate(unit, vectors.SEED, vector.index)
        case = plan.case()
        assert vectors.digest(case.image) == vector.image, "generator changed: make vectors"
        outcome = emulator.run(case)
        assert outcome.l1 is not None, f"{plan.name}: {outcome}"
        expected = vector.expected(case.image)
        assert vectors.digest(expected) == vector.digest
        wrong = np.flatnonzero(outcome.l1 != expected)[:4]
        assert wrong.size == 0, (plan.name, [plan.explain(int(at)) for at in wrong])


def test_what_ttsim_accepts_and_refuses(emulator: Emulator) -> None:
    """bhemu runs what ttsim runs, with the same L1; it may run what ttsim has not done."""
    _, programs = vectors.load(FOLDER / "accept.npz")
    wrong = []
    for vector in programs:
        plan = generate("accept", vectors.SEED, vector.index)
        outcome = emulator.run(plan.case(), seconds=20)
        theirs = Outcome(vector.outcome["kind"], category=vector.outcome["category"])
        step = plan.blocks[0][0]
        if theirs.done:
            same = outcome.l1 is not None and vectors.digest(outcome.l1) == vector.digest
        else:
            pair = Pair(bhemu=outcome, ttsim=theirs)
            known = match(pair, step.key[0], "ttsim")
            same = pair.verdict != DIFFERENT or known is not None
        if not same:
            wrong.append(f"{step}: bhemu {outcome}, ttsim {theirs}")
    assert wrong == []


def test_the_choice_of_programs_is_that_of_the_files() -> None:
    for unit in ("sync", "config"):
        _, programs = vectors.load(FOLDER / f"{unit}.npz")
        plans = list(vectors.chosen(unit))
        assert [plan.index for plan in plans] == [vector.index for vector in programs]
