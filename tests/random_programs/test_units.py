"""The generators: the same program every time, legal on bhemu, cut anywhere, no value repeated."""

import hashlib

import numpy as np
import pytest

from bhemu.errors import InputError
from bhemu.oracle.libttsim import BOTH_REFUSE, DIFFERENT, EQUAL, Emulator, Pair
from random_programs import operands
from random_programs.dice import Dice
from random_programs.units import UNITS, generate

RUNNABLE = [unit for unit in UNITS if unit != "accept"]
# Programs of different kinds: formats, widths and lengths follow the index.
KINDS = {"matrix": 7, "vector": 4, "unpack": 3, "pack": 3, "copy": 3}


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator()


def digest(unit: str, seed: int, index: int) -> str:
    return hashlib.sha256(generate(unit, seed, index).case().image).hexdigest()


@pytest.mark.parametrize("unit", UNITS)
def test_a_program_depends_on_unit_seed_and_index_only(unit: str) -> None:
    first = digest(unit, 5, 2)
    assert digest(unit, 5, 2) == first
    assert digest(unit, 5, 3) != first
    assert digest(unit, 6, 2) != first


def test_random_choices_are_those_of_every_machine() -> None:
    """Raw words of PCG64, which numpy promises to keep."""
    dice = Dice("scalar", 1, 2)
    assert [dice.below(1000) for _ in range(6)] == [783, 966, 934, 473, 683, 22]


@pytest.mark.parametrize("unit", RUNNABLE)
def test_every_program_runs_on_bhemu(unit: str, emulator: Emulator) -> None:
    for index in range(KINDS.get(unit, 1)):
        plan = generate(unit, 7, index)
        outcome = emulator.run(plan.case())
        assert outcome.done, f"{plan.name}: {outcome}"
        assert plan.results > 100


@pytest.mark.parametrize("unit", RUNNABLE)
def test_a_program_cut_anywhere_still_ends(unit: str, emulator: Emulator) -> None:
    plan = generate(unit, 8, 0)
    for part in (0, 1, plan.length // 3, plan.length - 1):
        outcome = emulator.run(plan.emit(plan.cut(part)))
        assert outcome.done, f"{plan.name} cut after {part}: {outcome}"


@pytest.mark.parametrize("unit", RUNNABLE)
def test_the_instructions_leave_a_mark(unit: str, emulator: Emulator) -> None:
    """A dump that did not depend on the instructions would compare nothing."""
    plan = generate(unit, 9, 0)
    full, empty = (emulator.run(plan.emit(plan.cut(n))).l1 for n in (plan.length, 0))
    assert full is not None
    assert empty is not None
    code_end = 0x40000
    assert np.count_nonzero(full[code_end:] != empty[code_end:]) > 200


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(InputError, match="there are no programs for 'math'"):
        generate("math", 0, 0)


def test_cutting_and_positions_agree() -> None:
    plan = generate("vector", 0, 0)
    position = len(plan.blocks[0]) + 1
    number, step = plan.step_at(position)
    assert (number, step) == (1, plan.blocks[1][1])
    cut = plan.cut(position)
    assert list(cut[0]) == list(plan.blocks[0])
    assert list(cut[1]) == [plan.blocks[1][0]]
    assert not any(cut[2:])


@pytest.mark.parametrize("shape", [operands.FP32, operands.FP16, operands.BF16, operands.E4M3])
@pytest.mark.parametrize("name", operands.CLASSES)
def test_operand_classes_stay_in_their_format(name: str, shape: operands.Shape) -> None:
    values = operands.CLASSES[name](Dice("x", 0, 0), 500, shape)
    assert values.min() >= 0
    assert values.max() < 1 << shape.bits
    exponent = values >> shape.mantissa & (1 << shape.exponent) - 1
    if name == "denormals":
        assert not exponent.any()
    if name == "infinities and NaN":
        assert (exponent == (1 << shape.exponent) - 1).all()


def test_a_changed_word_is_a_difference(emulator: Emulator) -> None:
    plan = generate("vector", 1, 3)
    ours = emulator.run(plan.case())
    assert ours.l1 is not None
    changed = ours.l1.copy()
    at = 0x100000 + 0x40
    changed[at] ^= 1
    other = type(ours)("done", changed)
    pair = Pair(bhemu=ours, ttsim=other)
    assert pair.verdict == DIFFERENT
    assert pair.words.tolist() == [at]
    assert "LReg0 lane" in plan.explain(at)
    assert Pair(bhemu=ours, ttsim=ours).verdict == EQUAL
    failed = type(ours)("error", category="UndefinedBehavior")
    assert Pair(bhemu=failed, ttsim=failed).verdict == BOTH_REFUSE
    assert Pair(bhemu=failed, ttsim=ours).verdict == DIFFERENT
