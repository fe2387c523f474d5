"""MVMUL and DOTPV against a literal model (MVMUL, Wormhole ISA; ttsim)."""

from collections.abc import Callable

import pytest
from matrix_reference import (
    BF16,
    BFP2,
    BFP8,
    FP8,
    FP16,
    FP32,
    INT8,
    TF32,
    UINT16,
    A,
    B,
    Model,
    filled,
    rule,
    section,
)
from unit_runner import run

from bhemu.machine import sentences
from bhemu.tensix import rules
from bhemu.tensix.state import State

PAIRS = [
    (BF16, BF16),
    (TF32, TF32),
    (TF32, BF16),
    (BFP8, UINT16),
    (FP32, TF32),
    (FP16, FP16),
    (FP8, FP8),
]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("fmts", PAIRS)
def test_mvmul(fmts: tuple[int, int], wide: bool) -> None:
    for phase in (0, 1, 2, 3):
        s = filled(phase + 4 * wide, fmts[A], wide)
        s.src_fmt[B] = fmts[B]
        s.rwc[0] = (16, 24, 32, phase)
        model = Model(s)
        model.matmul(8 + 32, 8, (16, 24), fmts, phase, wide)
        assert run(s, "MVMUL", dst=8) == rules.DONE
        model.check(s)


@pytest.mark.parametrize("seed", range(100, 112))
def test_mvmul_accumulates_four_phases(seed: int) -> None:
    """Fidelity and Dst of one instruction are seen by the next; the order of phases matters."""
    fmt, wide = (BF16, FP16, TF32)[seed % 3], bool(seed & 4)
    s = filled(seed, fmt, wide)
    s.thread_cfg[0, 28 + 2] = 1 << 13
    model = Model(s)
    for phase in range(4):
        model.matmul(16, 8, (0, 0), (fmt, fmt), phase, wide)
        assert run(s, "MVMUL", dst=16, addr_mode=2) == rules.DONE
    model.check(s)
    assert s.rwc[0].tolist() == [0, 0, 0, 0]


def test_zero_products_have_an_exponent() -> None:
    """5-bit exponents into fp32: a product with zero counts as exponent 97, so it shifts Dst."""
    s = filled(0, FP16, True)
    s.src[B] = 0
    s.dst_valid[:] = 1
    s.dst[0] = 74  # s 0, m 0, e 74: 23 below 97
    s.dst[8] = 0x8000
    model = Model(s)
    model.matmul(0, 8, (0, 0), (FP16, FP16), 0, True)
    assert run(s, "MVMUL") == rules.DONE
    model.check(s)
    assert s.dst[8].tolist() == [0] * 16  # half of the last bit is gone


@pytest.mark.parametrize("phase", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["MVMUL", "DOTPV"])
def test_int8(name: str, phase: int) -> None:
    s = filled(phase, INT8, True)
    s.rwc[0] = (48, 56, 0, phase)
    model = Model(s)
    model.matmul_int8(504, 8, (48, 56), phase)
    assert run(s, name, dst=504) == rules.DONE
    model.check(s)


def test_dotpv_is_mvmul() -> None:
    for extra in ({}, {"dest_accum_en": 1}, {"instr_mod19": 3}):
        s = filled(3, BF16, False)
        model = Model(s)
        model.matmul(0, 8, (0, 0), (BF16, BF16), 0, False)
        assert run(s, "DOTPV", **extra) == rules.DONE
        model.check(s)


def test_counters_banks_and_wrap() -> None:
    """addr_mode steps all counters; clear_dvalid releases and flips; Dst rows are modulo 1024."""
    s = filled(5, BF16, False)
    section(s, 5)
    s.rwc[0] = (0, 0, 1000, 1)
    s.thread_cfg[0, 1] = 24  # DEST_TARGET_REG_CFG_MATH_Offset
    model = Model(s)
    model.matmul(1024, 8, (0, 0), (BF16, BF16), 1, False)
    assert run(s, "MVMUL", dst=0, addr_mode=5, clear_dvalid=3) == rules.DONE
    model.check(s)
    assert s.rwc[0].tolist() == [16, 8, 1008, 2]
    assert s.matrix_bank.tolist() == [0, 1]
    assert s.src_valid.tolist() == [[1, 0], [0, 1]]


def test_configured_formats() -> None:
    """DISABLE_IMPLIED_SRC*_FMT: formats of the bank are ignored, the other Config bank counts."""
    s = filled(6, FP16, False)
    s.thread_cfg[0, 0] = 1
    s.thread_cfg[0, 2:4] = 1
    s.src_fmt[:] = BFP2
    s.cfg[1, 1] = FP16 << 17 | FP16 << 21
    model = Model(s)
    model.matmul(0, 8, (0, 0), (FP16, FP16), 0, False)
    assert run(s, "MVMUL") == rules.DONE
    model.check(s)


def changed_by_move(s: State) -> None:
    assert run(s, "MOVD2A", dst=0, src=0, instr_mod=2) == rules.DONE
    assert run(s, "MOVD2B", dst=4, src=0, instr_mod=2) == rules.DONE


def changed_by_copy(s: State) -> None:
    assert run(s, "MOVB2A", srcb=8, srca=4, instr_mod=2) == rules.DONE


def changed_by_transpose(s: State) -> None:
    s.rwc[0, B] = 16
    assert run(s, "TRNSPSRCB") == rules.DONE


def changed_by_zerosrc(s: State) -> None:
    assert run(s, "ZEROSRC", src_mask=2, write_mode=1) == rules.DONE


def changed_format(s: State) -> None:
    s.src_fmt[:] = TF32


@pytest.mark.parametrize(
    "change",
    [
        changed_by_move,
        changed_by_copy,
        changed_by_transpose,
        changed_by_zerosrc,
        changed_format,
    ],
)
def test_prepared_operands_follow_the_bank(change: Callable[[State], None]) -> None:
    """What a product prepared is not used again once cells or formats have changed."""
    s = filled(8, BF16, False)
    s.rwc[0, B] = 16 if change is changed_by_transpose else 0
    assert run(s, "MVMUL", dst=64) == rules.DONE
    change(s)
    fmt = int(s.src_fmt[A, 1])
    model = Model(s)
    model.matmul(72, 8, (0, int(s.rwc[0, B])), (fmt, fmt), 0, False)
    before = s.dst.copy()
    assert run(s, "MVMUL", dst=72) == rules.DONE
    model.check(s)
    assert (s.dst[72:80] != before[72:80]).any()


def test_prepared_operands_follow_the_unpacker() -> None:
    """A bank that an unpacker has written and handed over is prepared again."""
    s = filled(9, BF16, False)
    assert run(s, "MVMUL", clear_dvalid=1) == rules.DONE
    s.unpack_bank[A] = 1
    assert run(s, "UNPACR_NOP", unpack_pop=1, stall_clr_cntrl=1, set_dvalid=1) == rules.DONE
    s.matrix_bank[A] = 1
    assert s.src_valid[A, 1]
    model = Model(s)
    model.matmul(8, 8, (0, 0), (FP32, BF16), 0, False)
    assert run(s, "MVMUL", dst=8) == rules.DONE
    model.check(s)


def refused(s: State, name: str = "MVMUL", **fields: int) -> str:
    """Rule of a refused instruction that changes nothing architectural."""
    members = {m.name: v.copy() for m, v in s.members() if m.doc.find("prepared") < 0}
    number = run(s, name, **fields)
    for key in ("dst", "dst_valid", "src", "src_valid", "matrix_bank", "rwc", "rwc_cr"):
        assert (getattr(s, key) == members[key]).all(), key
    return rule(number)


def test_blocks_until_both_banks_are_valid() -> None:
    for which, name in ((A, "SrcA bank 1"), (B, "SrcB bank 0")):
        s = filled(0, BF16, False)
        s.src_valid[which, s.matrix_bank[which]] = 0
        model = Model(s)
        number = run(s, "MVMUL", addr_mode=1, clear_dvalid=3)
        assert number > 0
        assert sentences.CONDITIONS[number].text.startswith(name)
        model.check(s)
        assert s.matrix_bank.tolist() == [1, 0]


def test_refused_fields_and_rows() -> None:
    s = filled(0, BF16, False)
    assert refused(s, instr_mod19=1) == "MVMUL-MODE"
    assert refused(s, dst=4) == "FPU-DST-FIELD"
    assert refused(s, "DOTPV", dst=1) == "FPU-DST-FIELD"
    s.rwc[0] = (8, 0, 0, 0)
    assert refused(s) == "FPU-SRC-ROW"
    s.rwc[0] = (0, 4, 0, 0)
    assert refused(s) == "FPU-SRC-ROW"
    s.rwc[0] = (0, 0, 4, 0)
    assert refused(s) == "MATMUL-DST-ROW"
    s.rwc[0] = 0
    s.thread_cfg[0, 47 + 3] = 1  # ADDR_MOD_BIAS_SEC3
    assert refused(s, addr_mode=3) == "ADDR-MOD-BIAS"


def test_refused_configuration() -> None:
    s = filled(0, BF16, False)
    s.cfg[0, 0] = 1 << 4
    assert refused(s) == "FPU-OVERRIDE"
    for pair, number in (
        ((BF16, FP16), "FPU-FORMATS"),
        ((UINT16, BF16), "FPU-FORMATS"),
        ((FP16, BF16), "FPU-FIVE-BIT"),
        ((FP8, FP16), "FPU-FIVE-BIT"),
    ):
        s = filled(0, BF16, False)
        s.src_fmt[A], s.src_fmt[B] = pair
        assert refused(s) == number, pair
    s = filled(0, INT8, True)
    s.src_fmt[B] = BFP2
    assert refused(s) == "FPU-INT8-FORMATS"


@pytest.mark.parametrize(("which", "row"), [(A, 31), (B, 15)])
@pytest.mark.parametrize("fmt", [FP16, INT8])
def test_exponent_beyond_five_bits(fmt: int, which: int, row: int) -> None:
    """Only cells that take part are looked at."""
    s = filled(2, fmt, fmt == INT8)
    s.src[which, s.matrix_bank[which], row, 5] = 0x10000000
    assert run(s, "MVMUL") == rules.DONE
    assert not s.doubt.any()
    s.rwc[0] = (16, 8, 0, 0)
    assert run(s, "MVMUL") == rules.DONE
    assert s.doubt[0] == 1  # and who reads such a result is refused: test_doubt.py
