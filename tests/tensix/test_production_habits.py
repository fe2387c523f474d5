"""What production kernels do although a rule speaks against it, with reference "llk"."""

import numpy as np
import pytest
from matrix_reference import filled
from unit_runner import count, run

from bhemu.tensix import rules, semaphores
from bhemu.tensix.state import State
from bhemu.tensix.units.matrix import clear

BF16, BFP2 = 5, 15


@pytest.mark.parametrize("value", [0, 3, 14])
def test_a_post_beyond_the_maximum(value: int) -> None:
    """Max is for SEMWAIT alone; the value saturates at 15 (SEMPOST, Blackhole ISA)."""
    for llk in (1, 0):
        s = State()
        s.reference[0] = llk
        s.sem[3] = value
        s.sem_max[3] = value
        number = run(s, "SEMPOST", sem_sel=1 << 3)
        assert number == (rules.DONE if llk else semaphores.POST_FULL)
        assert int(s.sem[3]) == value + llk
        assert count(s, semaphores.POST_FULL) == llk


def test_a_post_beyond_15_stays_an_error() -> None:
    s = State()
    s.reference[0], s.sem[3] = 1, 15
    assert run(s, "SEMPOST", sem_sel=1 << 3) == semaphores.POST_FULL


def test_zeroacc_of_no_block() -> None:
    """Block 255 in the lower half: nothing is cleared (ZEROACC, Blackhole ISA)."""
    s = State()
    s.reference[0] = 1
    s.dst_valid[:] = 1
    assert run(s, "ZEROACC", where=255, clear_mode=1) == rules.DONE
    assert (s.dst_valid == 1).all()
    assert count(s, clear._BLOCK_RANGE) == 1


@pytest.mark.parametrize("name", ["MVMUL", "GAPOOL"])
@pytest.mark.parametrize("formats", [(BFP2, BF16), (BF16, BFP2), (BFP2, BFP2)])
def test_products_of_bfp2_are_those_of_bf16(name: str, formats: tuple[int, int]) -> None:
    """BFP2 is a bf16 style (MVMUL, Wormhole ISA)."""
    plain, bfp2 = filled(1, BF16, True), filled(1, BF16, True)
    bfp2.src_fmt[:] = np.array(formats)[:, None]
    for s in (plain, bfp2):
        fields = {"dst": 40, **({"instr_mod19": 1} if name == "GAPOOL" else {})}
        assert run(s, name, **fields) == rules.DONE
    assert np.array_equal(plain.dst, bfp2.dst)
