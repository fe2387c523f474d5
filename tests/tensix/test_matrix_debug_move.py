"""MOVA2D of one row, and MOVDBGA2D (MOVA2D, MOVDBGA2D, Wormhole ISA), against a literal model.

The golden model knows eight rows only; one row is the page's `Move8Rows == false`.
"""

import numpy as np
import pytest
from move_model import BF16, BFP8, FP16, INT8, TF32, A, Model, filled, flushed, rule
from unit_runner import numbers, run

from bhemu.tensix import rules
from bhemu.tensix.rules import counted

BOTH = ["MOVA2D", "MOVDBGA2D"]
EIGHT = 2  # instr_mod


def section(s: object, k: int) -> None:
    """ADDR_MOD section k: SrcA += 8, Dst += 16."""
    s.thread_cfg[0, 12 + k], s.thread_cfg[0, 28 + k] = 8, 16  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(("fmt", "low"), [(BF16, 0), (BF16, 1), (BFP8, 0), (TF32, 0), (FP16, 0)])
@pytest.mark.parametrize("keep", [0, 1])
def test_one_row_needs_no_alignment(name: str, fmt: int, low: int, keep: int) -> None:
    for row in (0, 3, 7, 21, 50):
        s = filled(row, fmt)
        s.cfg[0, 2] = keep
        s.rwc[0] = (16, 3, 40, 0)
        section(s, 6)
        model = Model(s)
        model.put(9 + 40, flushed(model.src[A][1][(row + 16) % 64], keep), fmt, low)
        fields = {"dst": 9, "src": row, "addr_mode": 6, "dest_32b_lo": low}
        assert run(s, name, **fields) == rules.DONE
        model.check(s)
        assert s.rwc[0].tolist() == [24, 3, 56, 0]


@pytest.mark.parametrize("valid", [0, 1])
def test_movdbga2d_does_not_wait(valid: int) -> None:
    """With DISABLE_IMPLIED_SRCA_FMT, as the page recommends, whoever owns the bank."""
    s = filled(1, INT8)
    s.src_valid[A] = valid
    s.thread_cfg[0, 2] = 1
    s.cfg[0, 1] = TF32 << 17  # ALU_FORMAT_SPEC_REG0_SrcA
    model = Model(s)
    for i in range(8):
        model.put(16 + i, flushed(model.src[A][1][8 + i], 0), TF32, 0)
    assert run(s, "MOVDBGA2D", dst=16, src=8, instr_mod=EIGHT) == rules.DONE
    model.check(s)


def test_movdbga2d_takes_the_format_of_a_valid_bank() -> None:
    s = filled(2, FP16)
    model = Model(s)
    for i in range(8):
        model.put(i, flushed(model.src[A][1][i], 0), FP16, 0)
    assert run(s, "MOVDBGA2D", instr_mod=EIGHT) == rules.DONE
    model.check(s)


@pytest.mark.parametrize("llk", [False, True])
def test_movdbga2d_without_format(llk: bool) -> None:
    """A bank that is not valid implies SFPU_DEST_FMT_Base; tt-llk's dumps read such a bank."""
    s = filled(3, INT8)
    s.src_valid[A, 1] = 0
    s.thread_cfg[0, 4] = FP16 << 1  # SFPU_DEST_FMT_Base
    model = Model(s)
    number = run(s, "MOVDBGA2D", instr_mod=EIGHT)
    assert rule(number) == "MOVDBGA2D-FORMAT"
    model.check(s)
    (s.reference if llk else s.ub_mode)[0] = 1
    for i in range(8):
        model.put(i, flushed(model.src[A][1][i], 0), FP16, 0)
    assert run(s, "MOVDBGA2D", instr_mod=EIGHT) == rules.DONE
    model.check(s)
    assert counted(s) == {number: 1}


@pytest.mark.parametrize(
    ("fields", "name", "detail"),
    [
        ({"instr_mod": 1}, "MOV-MODE", [1]),
        ({"instr_mod": EIGHT, "dst": 4}, "MOV-DST-ROW", [4, 8]),
        ({"instr_mod": EIGHT, "src": 4}, "MOV-SRC-ROW", [4, 8]),
        ({"addr_mode": 7}, "ADDR-MOD-BIAS", [7, 1]),
        ({"dest_32b_lo": 1}, "MOV-FP16-LOW", [FP16]),
    ],
)
@pytest.mark.parametrize("mnemonic", BOTH)
def test_refused_before_any_effect(
    mnemonic: str, fields: dict[str, int], name: str, detail: list[int]
) -> None:
    s = filled(4, FP16)
    s.thread_cfg[0, 47 + 7] = 1  # ADDR_MOD_BIAS_SEC7_BiasIncr
    before = s.buffer.copy()
    assert rule(run(s, mnemonic, **fields)) == name
    assert numbers(s, name) == detail
    s.detail[:] = 0
    assert np.array_equal(s.buffer, before)


@pytest.mark.parametrize("mode", [0, EIGHT])
@pytest.mark.parametrize("low", [0, 1])
def test_movdbga2d_is_mova2d_when_the_bank_is_valid(mode: int, low: int) -> None:
    """In each format, refusals included."""
    for fmt in range(16):
        states = [filled(3, fmt), filled(3, fmt)]
        fields = {"dst": 16, "src": 24, "instr_mod": mode, "dest_32b_lo": low}
        numbers = [run(s, name, **fields) for s, name in zip(states, BOTH, strict=True)]
        assert numbers[0] == numbers[1]
        for member in ("dst", "dst_valid", "rwc", "src"):
            assert np.array_equal(*(getattr(s, member) for s in states)), member
