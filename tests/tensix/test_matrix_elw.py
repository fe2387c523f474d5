"""ELWADD, ELWSUB and ELWMUL against a literal model (ELWADD, ELWMUL, Wormhole ISA; ttsim)."""

import numpy as np
import pytest
from matrix_reference import (
    BF16,
    BFP2,
    BFP8,
    FP8,
    FP16,
    FP32,
    INT8,
    INT32,
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
    (TF32, INT32),
    (BFP2, UINT16),
    (FP32, BFP8),
    (FP16, FP16),
    (FP8, FP8),
]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("fmts", PAIRS)
@pytest.mark.parametrize("name", ["ELWADD", "ELWSUB"])
def test_sums(name: str, fmts: tuple[int, int], wide: bool) -> None:
    """Every broadcast, with and without the old Dst, four classes of operands."""
    for mode in (0, 1, 2, 3):
        for add_dst in (0, 1):
            s = filled(mode + 4 * add_dst, fmts[A], wide)
            s.src_fmt[B] = fmts[B]
            s.rwc[0] = (8, 40, 16, 0)
            model = Model(s)
            model.elw(name, 48, (8, 40), fmts, mode, add_dst=bool(add_dst), wide=wide)
            fields = {"instr_mod19": mode, "dest_accum_en": add_dst}
            assert run(s, name, dst=32, **fields) == rules.DONE
            model.check(s)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("fmts", PAIRS)
def test_products(fmts: tuple[int, int], wide: bool) -> None:
    for phase in (0, 1, 2, 3):
        for mode in range(4):
            s = filled(mode, fmts[A], wide)
            s.src_fmt[B] = fmts[B]
            s.rwc[0] = (16, 56, 0, phase)
            model = Model(s)
            model.elw("ELWMUL", 8, (16, 56), fmts, mode, phase, wide=wide)
            assert run(s, "ELWMUL", dst=8, instr_mod19=mode) == rules.DONE
            model.check(s)


@pytest.mark.parametrize("phase", [0, 1, 2, 3])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("fmt", [BF16, FP16])
def test_products_with_the_smallest_exponents(fmt: int, wide: bool, phase: int) -> None:
    """Sums of exponents around the one that gives 0, of MVMUL and of ELWMUL."""
    middle, other = (8, 15) if fmt == FP16 else (64, 127)
    s = filled(2, fmt, wide)
    exponents = np.array(
        [other - middle + 5 * (phase & 1) + 7 * (phase >> 1) + d for d in range(-3, 5)]
    )
    s.src[A] = s.src[A] & 0x807FFFFF | middle << 23
    s.src[B] = s.src[B] & 0x807FFFFF
    s.src[B] |= np.tile(exponents, 8).astype(np.uint32)[:, None] << 23
    s.dst_valid[:] = 0
    for name, rows in (("ELWMUL", range(4)), ("MVMUL", range(4))):
        for k in rows:
            s.rwc[0] = (0, 8 * k, 0, phase)
            model = Model(s)
            if name == "MVMUL":
                model.matmul(8 * k, 8, (0, 8 * k), (fmt, fmt), phase, wide)
            else:
                model.elw(name, 8 * k, (0, 8 * k), (fmt, fmt), 0, phase, wide=wide)
            assert run(s, name, dst=8 * k) == rules.DONE
            model.check(s)


@pytest.mark.parametrize("name", ["ELWADD", "ELWSUB", "ELWMUL"])
@pytest.mark.parametrize("fmt", [BF16, TF32, FP16])
@pytest.mark.parametrize("wide", [False, True])
def test_kept_denormals(name: str, fmt: int, wide: bool) -> None:
    """ALU_ACC_CTRL_Zero_Flag_disabled_src keeps SrcB data with exponent 0, and -0, as numbers."""
    for seed in (3, 7):
        s = filled(seed, fmt, wide)
        s.src[B, 0, 3, 4:] = 0
        s.src[B, 0, 4, 4:] = 0x80000000
        s.src[A, 1, 3:5, 8:] = 0
        s.cfg[0, 2] = 1
        model = Model(s)
        model.elw(name, 0, (0, 0), (fmt, fmt), 0, wide=wide, keep=True)
        assert run(s, name, dest_accum_en=int(name != "ELWMUL")) == rules.DONE
        model.check(s)


@pytest.mark.parametrize("fmt", [BF16, TF32, FP16])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", ["ELWADD", "ELWSUB"])
def test_a_kept_denormal_alone_is_zero(name: str, fmt: int, wide: bool) -> None:
    """A sum with exponent 0 is zero, also when rounding its mantissa would give exponent 1."""
    s = filled(0, fmt, wide)
    s.src[A], s.src[B], s.dst_valid[:] = 0, 0x7FE000, 0
    s.cfg[0, 2] = 1
    model = Model(s)
    model.elw(name, 0, (0, 0), (fmt, fmt), 0, wide=wide, keep=True)
    assert run(s, name, dest_accum_en=1) == rules.DONE
    model.check(s)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["ELWADD", "ELWSUB", "ELWMUL"])
def test_int8(name: str, mode: int, keep: bool) -> None:
    phases = range(4) if name == "ELWMUL" else [0]
    for phase in phases:
        for add_dst in (True,) if name == "ELWMUL" else (False, True):
            s = filled(phase, INT8, False)
            s.src_fmt[B] = BFP2 if keep else INT8
            s.src[B, 0, 1, :3] &= 0x807FFFFF
            s.cfg[0, 2] = keep
            s.rwc[0, 3] = phase
            model = Model(s)
            model.elw(name, 16, (0, 0), (INT8, INT8), mode, phase, add_dst, keep=keep)
            accumulate = int(add_dst and name != "ELWMUL")
            fields = {"instr_mod19": mode, "dest_accum_en": accumulate}
            assert run(s, name, dst=16, **fields) == rules.DONE
            model.check(s)


@pytest.mark.parametrize("name", ["ELWADD", "ELWSUB", "ELWMUL"])
def test_counters_and_banks(name: str) -> None:
    s = filled(1, BF16, False)
    section(s, 7)
    s.thread_cfg[0, 7] = 2  # CLR_DVALID_SrcB_Disable: the bank stays valid
    model = Model(s)
    model.elw(name, 1016, (0, 0), (BF16, BF16), 0, add_dst=name == "ELWMUL")
    assert run(s, name, dst=1016, addr_mode=7, clear_dvalid=2) == rules.DONE
    model.check(s)
    assert s.rwc[0].tolist() == [16, 8, 8, 1]
    assert s.matrix_bank.tolist() == [1, 1]
    assert s.src_valid.tolist() == [[1, 1], [1, 1]]


def refused(s: State, name: str, **fields: int) -> str:
    """Rule of a refused instruction that changes nothing."""
    model, counters = Model(s), s.rwc.tolist()
    number = run(s, name, clear_dvalid=3, **fields)
    model.check(s)
    assert s.rwc.tolist() == counters
    assert s.src_valid.all()
    return rule(number)


@pytest.mark.parametrize("name", ["ELWADD", "ELWSUB", "ELWMUL"])
def test_refused(name: str) -> None:
    s = filled(0, BF16, False)
    assert refused(s, name, dst=4) == "FPU-DST-FIELD"
    s.rwc[0] = (4, 0, 0, 0)
    assert refused(s, name) == "FPU-SRC-ROW"
    s.rwc[0] = (0, 9, 0, 0)
    assert refused(s, name) == "FPU-SRC-ROW"
    s.rwc[0] = (0, 0, 3, 0)
    assert refused(s, name) == "FPU-DST-ROW"
    s.rwc[0] = (0, 0, 8, 0)
    assert refused(s, name, dst=1016) == "FPU-DST-ROW"  # not modulo 1024
    s.rwc[0] = 0
    s.thread_cfg[0, 47 + 2] = 1  # ADDR_MOD_BIAS_SEC2
    assert refused(s, name, addr_mode=2) == "ADDR-MOD-BIAS"
    s.cfg[0, 0] = 1 << 4
    assert refused(s, name) == "FPU-OVERRIDE"
    for pair, number in (
        ((INT32, BF16), "FPU-FORMATS"),
        ((BF16, FP16), "FPU-FORMATS"),
        ((FP16, FP8), "FPU-FIVE-BIT"),
    ):
        s = filled(0, BF16, False)
        s.src_fmt[A], s.src_fmt[B] = pair
        assert refused(s, name) == number, pair
    s = filled(0, INT8, False)
    s.src_fmt[B] = BF16
    assert refused(s, name) == "FPU-INT8-FORMATS"


@pytest.mark.parametrize("name", ["ELWADD", "ELWSUB"])
def test_phase_must_be_zero(name: str) -> None:
    s = filled(0, BF16, False)
    s.rwc[0, 3] = 2
    assert refused(s, name) == "ELW-PHASE"


def test_elwmul_always_accumulates() -> None:
    """dest_accum_en is an error by default; tolerated, it has no effect (ELWMUL, Wormhole ISA)."""
    s = filled(0, BF16, False)
    assert refused(s, "ELWMUL", dest_accum_en=1) == "ELWMUL-ACCUM"
    s.ub_mode[0] = 1
    model = Model(s)
    model.elw("ELWMUL", 0, (0, 0), (BF16, BF16), 0)
    assert run(s, "ELWMUL", dest_accum_en=1) == rules.DONE
    model.check(s)


@pytest.mark.parametrize("name", ["ELWADD", "ELWSUB", "ELWMUL"])
def test_blocks(name: str) -> None:
    s = filled(0, BF16, False)
    s.src_valid[B, 0] = 0
    model = Model(s)
    number = run(s, name, addr_mode=1, clear_dvalid=1)
    assert sentences.CONDITIONS[number].text.startswith("SrcB bank 0")
    model.check(s)


@pytest.mark.parametrize("which", [A, B])
@pytest.mark.parametrize("fmt", [FP16, INT8])
def test_exponent_beyond_five_bits(fmt: int, which: int) -> None:
    """Of a broadcast operand only the cells that are used are looked at."""
    s = filled(2, fmt, False)
    s.src[which, s.matrix_bank[which], 7, 15] = 0x40000000
    s.src[1 - which, s.matrix_bank[1 - which], 7, 15] = 0x08002000  # 1 or, as fp16, not zero
    for mode in (1, 2):
        if which == B:
            assert run(s, "ELWMUL", instr_mod19=mode) == rules.DONE
            assert not s.doubt.any()
    assert run(s, "ELWMUL") == rules.DONE
    assert s.doubt[0] == 1  # and who reads such a result is refused: test_doubt.py
