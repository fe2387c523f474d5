"""Src banks: waiting, hand-over, release and implied formats (SrcASrcB, Wormhole ISA; ttsim)."""

from typing import Any

import pytest

from bhemu.jit.subset import JIT
from bhemu.machine import sentences
from bhemu.tensix import banks, rules
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.rules import counted
from bhemu.tensix.state import DTYPE, State

UNITS = [(SRCA, "SrcA", 0), (SRCB, "SrcB", 1)]


def view(s: State) -> Any:
    return s.buffer.view(DTYPE)[0] if JIT else s


def text(number: int) -> str:
    return sentences.CONDITIONS[number].text


@pytest.mark.parametrize(("which", "name", "unit"), UNITS)
@pytest.mark.parametrize("bank", [0, 1])
def test_conditions_name_the_bank_and_the_unit(which: int, name: str, unit: int, bank: int) -> None:
    s = State()
    s.matrix_bank[which] = s.unpack_bank[which] = bank
    valid = f"{name} bank {bank} to become valid (unpacker {unit} hands it over)"
    free = f"{name} bank {bank} to become free (the matrix unit releases it)"
    assert text(banks.matrix_ready(view(s), which)) == valid
    assert banks.matrix_free(view(s), which) == 0
    assert banks.unpack_ready(view(s), which) == 0
    s.src_valid[which, bank] = 1
    assert banks.matrix_ready(view(s), which) == 0
    assert text(banks.matrix_free(view(s), which)) == free
    assert text(banks.unpack_ready(view(s), which)) == free


@pytest.mark.parametrize("which", [SRCA, SRCB])
def test_two_banks_pass_round(which: int) -> None:
    """Unpack, unpack, then the unpacker waits; release one, and it may write that one again."""
    s = State()
    v, other = view(s), 1 - which
    assert banks.hand_over(v, which, 5) == rules.DONE
    assert (s.src_valid[which].tolist(), s.unpack_bank[which]) == ([1, 0], 1)
    assert banks.hand_over(v, which, 1) == rules.DONE
    assert (s.src_valid[which].tolist(), s.unpack_bank[which]) == ([1, 1], 0)
    assert s.src_fmt[which].tolist() == [5, 1]
    assert banks.unpack_ready(v, which) > 0
    assert banks.release(v, 0, 1 << which) == rules.DONE
    assert (s.src_valid[which].tolist(), s.matrix_bank[which]) == ([0, 1], 1)
    assert banks.unpack_ready(v, which) == 0
    assert not s.src_valid[other].any()
    assert s.matrix_bank[other] == s.unpack_bank[other] == 0


@pytest.mark.parametrize(("which", "name", "unit"), UNITS)
def test_release_of_a_bank_that_is_not_valid(which: int, name: str, unit: int) -> None:
    """NonContractualBehavior; the silicon flips all the same (SETRWC, Wormhole ISA)."""
    s = State()
    s.src_valid[1 - which, 0] = 1
    s.src_valid[which, 1] = 1
    before = s.src_valid.copy()
    number = int(banks.release(view(s), 0, 3))
    rule = sentences.RULES[number]
    assert (rule.rule, rule.category) == (f"{name.upper()}-NOT-VALID", rules.NCB)
    assert rule.sentence(s.detail) == f"clear_dvalid releases {name} bank 0, which is not valid"
    assert (s.src_valid == before).all()
    assert not s.matrix_bank.any()
    for mode in (1, 2):
        s.matrix_bank[:] = 0
        s.ub_mode[0] = mode
        assert banks.release(view(s), 0, 1 << which) == rules.DONE
        assert s.matrix_bank[which] == 1
        assert (s.src_valid == before).all()
        assert counted(s).get(number, 0) == mode


@pytest.mark.parametrize("which", [SRCA, SRCB])
def test_disabled_clear_still_flips(which: int) -> None:
    """CLR_DVALID_Src{A,B}_Disable of the thread: no clear, no check, but the bank changes."""
    s = State()
    s.thread_cfg[1, 7] = 1 << which
    assert banks.release(view(s), 1, 1 << which) == rules.DONE
    assert s.matrix_bank[which] == 1
    s.src_valid[which] = 1
    assert banks.release(view(s), 1, 1 << which) == rules.DONE
    assert s.matrix_bank[which] == 0
    assert s.src_valid[which].tolist() == [1, 1]
    assert banks.release(view(s), 0, 1 << which) == rules.DONE  # not disabled for thread 0
    assert s.src_valid[which].tolist() == [0, 1]


@pytest.mark.parametrize(("which", "name", "unit"), UNITS)
def test_hand_over_of_a_valid_bank(which: int, name: str, unit: int) -> None:
    s = State()
    s.src_valid[which, 0] = 1
    number = int(banks.hand_over(view(s), which, 5))
    rule = sentences.RULES[number]
    assert (rule.rule, rule.category) == (f"{name.upper()}-ALREADY-VALID", rules.NCB)
    assert s.src_fmt[which, 0] == 0
    assert s.unpack_bank[which] == 0
    s.ub_mode[0] = 2
    assert banks.hand_over(view(s), which, 5) == rules.DONE
    assert s.src_fmt[which, 0] == 5
    assert s.unpack_bank[which] == 1


def test_formats_are_implied_by_the_bank_unless_disabled() -> None:
    s = State()
    v = view(s)
    s.src_fmt[:] = ((1, 2), (3, 4))
    s.matrix_bank[:] = (1, 0)
    assert (banks.format_a(v, 0, SRCA), banks.format_a(v, 0, SRCB)) == (2, 3)
    assert banks.format_b(v, 0) == 3
    s.thread_cfg[0, 0] = 1  # CFG_STATE_ID: bank 1 of the configuration
    s.thread_cfg[0, 2] = s.thread_cfg[0, 3] = 1  # DISABLE_IMPLIED_SRC{A,B}_FMT
    s.cfg[1, 1] = 5 << 17 | 6 << 21  # ALU_FORMAT_SPEC_REG0_SrcA, REG1_SrcB
    assert (banks.format_a(v, 0, SRCA), banks.format_b(v, 0)) == (5, 6)
    s.cfg[1, 0] = 7 | 1 << 4  # REG_SrcA_val with its override
    assert (banks.format_a(v, 0, SRCB), banks.format_b(v, 0)) == (7, 6)
