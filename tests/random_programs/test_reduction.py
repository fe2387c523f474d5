"""Bisection and reduction, on models that differ where a program holds chosen steps."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bhemu.oracle.libttsim import DIFFERENT, Case, Outcome, Pair
from random_programs.plan import Blocks, Plan, step
from random_programs.reduction import first, study

STEPS = [step("SETDMAREG", reg_index_16b=i, payload_sig_sel=0) for i in range(12)]


def plan(sizes: tuple[int, ...]) -> Plan:
    """Blocks of different steps; its case is the words in order."""
    rest = iter(STEPS)
    blocks = tuple(tuple(next(rest) for _ in range(size)) for size in sizes)

    def emit(chosen: Blocks) -> Case:
        words = [word for block in chosen for one in block for word in one.words]
        return Case(np.array(words, np.uint32).tobytes(), {})

    return Plan("scalar", 0, 0, blocks, emit, 1)


def judge(*needed: int) -> Any:
    """Two models that agree until a program holds all the `needed` steps."""

    def pair(case: Case) -> Pair:
        words = set(np.frombuffer(case.image, np.uint32).tolist())
        wrong = all(STEPS[i].words[0] in words for i in needed)
        ours, theirs = np.zeros(8, np.uint8), np.full(8, wrong, np.uint8)
        return Pair(bhemu=Outcome("done", ours), ttsim=Outcome("done", theirs))

    return SimpleNamespace(pair=pair)


@pytest.mark.parametrize(
    ("needed", "position", "shortest"),
    [
        ((9,), 9, (9,)),
        ((6, 9), 9, (6, 9)),  # both in the second block
        ((2, 9), 9, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)),  # an earlier block is needed: all is kept
        ((0,), 0, (0,)),
    ],
)
def test_the_step_and_the_shortest_program(
    needed: tuple[int, ...], position: int, shortest: tuple[int, ...]
) -> None:
    both, program = judge(*needed), plan((5, 7))
    pair = both.pair(program.case())
    assert pair.verdict == DIFFERENT
    assert first(both, program) == position
    found = study(both, program, pair)
    assert found.step == f"block {position // 5}: {STEPS[position]}"
    assert found.program == tuple(str(STEPS[i]) for i in shortest)
    assert study(both, program, pair, minimise=False).program == ()


def test_models_that_always_or_never_differ_have_no_first_step() -> None:
    assert first(judge(), plan((5, 7))) is None
    assert first(judge(11), plan((5,))) is None
