"""GMPOOL and GAPOOL against a literal model (GMPOOL, GAPOOL, Wormhole ISA; ttsim)."""

import numpy as np
import pytest
from matrix_reference import (
    BF16,
    BFP2,
    BFP8,
    FP16,
    FP32,
    INT8,
    TF32,
    A,
    B,
    Model,
    filled,
    rule,
    section,
)
from unit_runner import numbers, run

from bhemu.machine import sentences
from bhemu.tensix import rules
from bhemu.tensix.state import State


def pooling(seed: int, fmt: int, wide: bool) -> State:
    """Random operands (infinities and NaN patterns among them) and 1.0 in SrcB."""
    s = filled(seed, fmt, wide)
    s.src[B] = 0x3F800000
    s.src_fmt[B] = BF16
    return s


@pytest.mark.parametrize("fmt", [FP32, TF32, BF16, BFP8, BFP2])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("valid", [0, 1])
def test_gmpool(fmt: int, wide: bool, valid: int) -> None:
    for seed in range(8):
        s = pooling(seed, fmt, wide)
        if seed & 1:
            s.src[A] |= np.uint32(0x80000000)  # all negative
        s.dst_valid[:] = valid
        s.rwc[0] = (32, 8, 16, 2)
        model = Model(s)
        model.gmpool(20, 32, fmt, wide)
        assert run(s, "GMPOOL", dst=4, instr_mod19=1) == rules.DONE
        model.check(s)


@pytest.mark.parametrize("row", range(0, 64, 8))
def test_the_row_of_scales(row: int) -> None:
    """GMPOOL scales by the first of the block's rows of SrcB, no other."""
    s = pooling(1, BF16, False)
    s.src[B] = 0x40000000
    s.src[B, 0, row] = 0x3F800000
    s.rwc[0, B] = row
    model = Model(s)
    model.gmpool(0, 0, BF16, False)
    assert run(s, "GMPOOL", instr_mod19=1) == rules.DONE
    model.check(s)


def test_gmpool_counters() -> None:
    s = pooling(0, BF16, False)
    section(s, 4)
    assert run(s, "GMPOOL", instr_mod19=1, pool_addr_mode=4, clear_dvalid=1) == rules.DONE
    assert s.rwc[0].tolist() == [16, 8, 8, 1]
    assert s.matrix_bank.tolist() == [0, 0]


@pytest.mark.parametrize("phase", [0, 1, 2, 3])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("fmt", [BF16, TF32, FP16])
def test_gapool(fmt: int, wide: bool, phase: int) -> None:
    """Four rows of SrcB, into four rows of Dst."""
    s = filled(phase, fmt, wide)
    s.rwc[0] = (48, 40, 0, phase)
    model = Model(s)
    model.matmul(12, 4, (48, 40), (fmt, fmt), phase, wide)
    assert run(s, "GAPOOL", dst=12, instr_mod19=1) == rules.DONE
    model.check(s)


def test_gapool_int8() -> None:
    s = filled(1, INT8, False)
    s.src[B, 0, 4, 0] = 0x70000000  # beyond the four rows
    model = Model(s)
    model.matmul_int8(4, 4, (0, 0), 0)
    assert run(s, "GAPOOL", dst=4, instr_mod19=1) == rules.DONE
    model.check(s)


def refused(s: State, name: str, **fields: int) -> str:
    model, counters = Model(s), s.rwc.tolist()
    number = run(s, name, **{"instr_mod19": 1, "clear_dvalid": 3, **fields})
    model.check(s)
    assert s.rwc.tolist() == counters
    assert s.src_valid.all()
    return rule(number)


@pytest.mark.parametrize("name", ["GMPOOL", "GAPOOL"])
def test_refused(name: str) -> None:
    s = pooling(0, BF16, False)
    assert refused(s, name, instr_mod19=0) == "POOL-MODE"
    assert refused(s, name, max_pool_index_en=1) == "POOL-MODE"
    assert refused(s, name, dst=2) == "FPU-DST-FIELD"
    s.rwc[0] = (8, 0, 0, 0)
    assert refused(s, name) == "FPU-SRC-ROW"
    s.rwc[0] = (0, 4, 0, 0)
    assert refused(s, name) == "FPU-SRC-ROW"
    s.rwc[0] = (0, 0, 2, 0)
    assert refused(s, name) == ("FPU-DST-ROW" if name == "GMPOOL" else "MATMUL-DST-ROW")
    s.rwc[0] = 0
    s.thread_cfg[0, 47] = 1 << 4  # ADDR_MOD_BIAS_SEC0
    assert refused(s, name) == "ADDR-MOD-BIAS"
    s.cfg[0, 0] = 1 << 4
    assert refused(s, name) == "FPU-OVERRIDE"


def test_gmpool_refused() -> None:
    s = pooling(0, BF16, False)
    s.rwc[0] = (0, 0, 4, 0)
    assert refused(s, "GMPOOL", dst=1020) == "FPU-DST-ROW"  # not modulo 1024
    s.rwc[0] = 0
    for fmt in (FP16, INT8):
        s = pooling(0, BF16, False)
        s.src_fmt[A] = fmt
        assert refused(s, "GMPOOL") == "GMPOOL-FORMATS"
        assert numbers(s, "GMPOOL-FORMATS") == [fmt, BF16]
    s.src_fmt[A] = BF16
    s.cfg[0, 1] = 1 << 31
    assert refused(s, "GMPOOL") == "GMPOOL-FORMATS"


@pytest.mark.parametrize("name", ["GMPOOL", "GAPOOL"])
def test_blocks(name: str) -> None:
    s = pooling(0, BF16, False)
    s.src_valid[A, 1] = 0
    model = Model(s)
    number = run(s, name, instr_mod19=1, clear_dvalid=2)
    assert sentences.CONDITIONS[number].text.startswith("SrcA bank 1")
    model.check(s)
