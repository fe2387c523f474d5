"""UNPACR_NOP: clearing banks, handing them over, doing nothing (UNPACR_NOP pages, Wormhole ISA)."""

import numpy as np
import pytest
from test_unpack import fresh
from unit_runner import run
from unpack_model import put, put_thread

from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.banks import STALE
from bhemu.tensix.rules import REFERENCE_LLK, counted
from bhemu.tensix.units.unpack.modes import UNPACR_NOP
from bhemu.tensix.unspecified import EXPONENT


@pytest.mark.parametrize(("u", "minus_infinity"), [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("valid", [0, 1])
def test_nop_clears_the_unpack_bank(u: int, minus_infinity: int, valid: int) -> None:
    s = fresh()
    s.unpack_bank[u] = 1
    put(s, getattr(cf, f"THCON_SEC{u}_REG2_Out_data_format"), 6)
    src = s.src.copy()
    src[u, 1] = 0xFFFFE000 if minus_infinity else 0
    word = {"unpack_pop": 1, "src_clr_val_ctrl": minus_infinity, "set_dvalid": valid}
    assert run(s, "UNPACR_NOP", unpacker_select=u, **word) == rules.DONE
    assert np.array_equal(s.src, src)
    assert (s.src_valid[u, 1], s.unpack_bank[u]) == (valid, 1 - valid)
    assert s.src_fmt[u, 1] == (6 if valid else 0)


@pytest.mark.parametrize(("stall", "waits_for"), [(0, "matrix"), (1, "unpack")])
def test_nop_waits(stall: int, waits_for: str) -> None:
    """stall_clr_cntrl 0 waits for the matrix bank, 1 for the unpack bank."""
    s = fresh()
    s.unpack_bank[0], s.matrix_bank[0] = 1, 0
    s.src_valid[0, 0 if waits_for == "matrix" else 1] = 1
    before = s.buffer.copy()
    number = run(s, "UNPACR_NOP", unpack_pop=1, stall_clr_cntrl=stall)
    assert "SrcA bank" in sentences.CONDITIONS[number].text
    assert np.array_equal(s.buffer, before)
    assert run(s, "UNPACR_NOP", unpack_pop=1, stall_clr_cntrl=1 - stall) == rules.DONE


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ("UNPACR-NOP-STREAM", {"unpack_pop": 0}),
        ("UNPACR-NOP-STREAM", {"unpack_pop": 3}),
        ("UNPACR-NOP-FIELDS", {"unpack_pop": 2, "set_dvalid": 1}),
        ("UNPACR-NOP-FIELDS", {"unpack_pop": 2, "src_clr_val_ctrl": 1}),
        ("UNPACR-NOP-FIELDS", {"unpack_pop": 3, "src_clr_val_ctrl": 1, "stall_clr_cntrl": 1}),
        ("UNPACR-NOP-BANKS", {"unpack_pop": 1, "bank_clr_ctrl": 1}),
        ("UNPACR-NOP-STREAM", {"unpack_pop": 1, "msg_clr_cnt": 1}),
        ("UNPACR-NOP-STREAM", {"unpack_pop": 1, "stream_id": 1}),
    ],
)
def test_nop_refused(rule: str, word: dict[str, int]) -> None:
    s = fresh()
    src = s.src.copy()
    assert sentences.RULES[run(s, "UNPACR_NOP", **word)].rule == rule
    assert np.array_equal(s.src, src)


@pytest.mark.parametrize("u", [0, 1])
@pytest.mark.parametrize(
    "word", [{"src_clr_val_ctrl": 2}, {"src_clr_val_ctrl": 3}, {"clr_to1_fmt_ctrl": 1}]
)
def test_what_is_cleared_to_an_unknown_value_is_in_doubt(u: int, word: dict[str, int]) -> None:
    """No source gives the bits of "one"; an unpack, or a clear to zero, ends the doubt."""
    s = fresh()
    src = s.src.copy()
    src[u, 0] = EXPONENT
    assert run(s, "UNPACR_NOP", unpack_pop=1, unpacker_select=u, **word) == rules.DONE
    assert np.array_equal(s.src, src) and s.doubt[:2].tolist() == [1, 1]
    assert [sentences.RULES[n].rule for n in counted(s)] == ["UNPACR-NOP-VALUE"]
    assert run(s, "UNPACR_NOP", unpack_pop=1, unpacker_select=u) == rules.DONE
    assert not s.src[u, 0].any()


@pytest.mark.parametrize("u", [0, 1])
def test_nop_clears_both_banks_once_both_are_free(u: int) -> None:
    """tt-llk's custom matmul relies on it; the text has it wait for one bank only."""
    s = fresh()
    s.reference[0] = REFERENCE_LLK
    word = {"unpack_pop": 1, "bank_clr_ctrl": 1, "unpacker_select": u}
    for bank in (0, 1):
        s.src_valid[u, :] = 0
        s.src_valid[u, bank] = 1
        before = s.buffer.copy()
        number = run(s, "UNPACR_NOP", **word)
        text = sentences.CONDITIONS[number].text
        assert text.startswith(f"Src{'AB'[u]} bank {bank} to become free")
        assert np.array_equal(s.buffer, before)
    s.src_valid[:] = 0
    src, bank = s.src.copy(), int(s.unpack_bank[u])
    src[u] = 0
    s.src_prepared[:] = 7
    assert run(s, "UNPACR_NOP", **word) == rules.DONE
    assert np.array_equal(s.src, src)
    assert s.src_prepared[u].tolist() == [STALE, STALE]
    assert s.src_prepared[1 - u].tolist() == [7, 7]
    assert (s.unpack_bank[u], s.src_valid.any()) == (bank, False)


@pytest.mark.parametrize("more", ["src_clr_val_ctrl", "stall_clr_cntrl", "set_dvalid"])
def test_nop_of_both_banks_takes_no_other_mode(more: str) -> None:
    s = fresh()
    s.reference[0] = REFERENCE_LLK
    number = run(s, "UNPACR_NOP", **{"unpack_pop": 1, "bank_clr_ctrl": 1, more: 1})
    assert sentences.RULES[number].rule == "UNPACR-NOP-BANKS"


def test_nop_handing_over_a_valid_bank_is_refused_before_any_effect() -> None:
    s = fresh()
    s.src_valid[0, 0], s.matrix_bank[0] = 1, 1
    src = s.src.copy()
    number = run(s, "UNPACR_NOP", unpack_pop=1, set_dvalid=1)
    assert sentences.RULES[number].rule == "SRCA-ALREADY-VALID"
    assert np.array_equal(s.src, src)
    put_thread(s, 0, tf.SRCB_SET_Base, 1)
    number = run(s, "UNPACR_NOP", unpack_pop=1, set_dvalid=1, unpacker_select=1)
    assert sentences.RULES[number].rule == "UNPACR-SRCB-BASE"


@pytest.mark.parametrize("u", [0, 1])
def test_nop_hands_a_bank_over_as_it_is(u: int) -> None:
    """0x7 gives the unpack bank to the matrix unit without waiting (UNPACR_NOP_SETDVALID)."""
    s = fresh()
    s.src_valid[u, 1], s.matrix_bank[u] = 1, 1
    put(s, getattr(cf, f"THCON_SEC{u}_REG2_Out_data_format"), 7)
    src = s.src.copy()
    word = UNPACR_NOP.assemble(unpack_pop=3, src_clr_val_ctrl=1, unpacker_select=u)
    assert word & 0x7FFFFF == 0x7
    assert run(s, "UNPACR_NOP", **UNPACR_NOP.operands(word)) == rules.DONE
    assert np.array_equal(s.src, src)
    assert (s.src_valid[u, 0], s.unpack_bank[u], s.src_fmt[u, 0]) == (1, 1, 7)


def test_nop_that_does_nothing() -> None:
    """unpack_pop 2 occupies the unpacker for one cycle; it waits for nothing."""
    s = fresh()
    s.src_valid[:] = 1
    before = s.buffer.copy()
    assert run(s, "UNPACR_NOP", unpack_pop=2) == rules.DONE
    assert np.array_equal(s.buffer, before)
