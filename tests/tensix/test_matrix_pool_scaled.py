"""GMPOOL with 5-bit exponents, integers and scales, against the ISA's model (GMPOOL, Wormhole ISA).

The reference is written from the text's functional model, datum by datum; ttsim refuses all of it.
"""

import random
from typing import NamedTuple

import numpy as np
import pytest
from matrix_reference import BF16, BFP8, FP8, FP16, INT8, TF32, A, B, filled, rule
from unit_runner import run

from bhemu.tensix import rules
from bhemu.tensix.state import State


class Datum(NamedTuple):
    """As in the text: one sign bit, nine bits of exponent, ten of magnitude or mantissa."""

    sign: int
    exponent: int
    man: int

    def comparable(self) -> int:
        return (-1 if self.sign else 1) * ((self.exponent << 10) + self.man)


def read_and_scale(cell: int, scale: int, style: str) -> Datum:
    own, by, man = cell >> 23 & 0xFF, scale >> 23 & 0xFF, cell >> 13 & 0x3FF
    if by == 0:
        return Datum(1, 511, 1023)
    if own == 0:
        return Datum(0, 0, 0)
    if style == "INT8":
        return Datum(cell >> 31, 0, man)
    if style == "FP16":
        return Datum(cell >> 31, (own & 31) + (by & 31), man)
    return Datum(cell >> 31, own + by, man & 0x3F8 if style == "BF16" else man)


def read_dst(v: int, style: str) -> Datum:
    if style == "INT32":
        return Datum(v >> 31, (v >> 10 & 0x3F) + ((v >> 24 & 7) << 6), v & 0x3FF)
    if style == "FP16":
        return Datum(v >> 31, (v >> 16 & 31) + 15, v >> 21 & 0x3FF)
    man = (v >> 24 & 0x7F) << 3
    return Datum(v >> 31, (v >> 16 & 0xFF) + 127, man + (v >> 13 & 7 if style == "TF32" else 0))


def write_dst(d: Datum, style: str) -> int:
    if style == "INT32":
        return d.sign << 31 | (d.exponent & 7) << 10 | d.man
    if style == "FP16":
        packed = d.man << 21 | (d.exponent - 15 & 31) << 16
        return d.sign << 31 | packed if d.exponent & 0x3F else 0
    if d.exponent == 0:
        return 0
    x = d.sign << 31 | (d.man & 0x3F8) << 21 | (d.exponent - 127 & 0xFF) << 16
    return x + ((d.man & 7) << 13) if style == "TF32" else x


def expected(s: State, row: int, styles: tuple[str, str], wide: bool) -> list[int]:
    """Row `row` of Dst afterwards, as 32 bits; SrcA bank 1 from row 16 on, SrcB bank 0 row 24."""
    src, dst = styles
    result = []
    for j in range(16):
        at = (row & 0x1F8) << 1 | row & 0x207 if wide else row
        value = int(s.dst[at, j]) << 16 | (int(s.dst[at + 8, j]) if wide else 0)
        if not s.dst_valid[at]:
            value = 0xFFFFFFFF
        best = read_dst(value, dst)
        for i in range(16):
            x = read_and_scale(int(s.src[A, 1, 16 + i, j]), int(s.src[B, 0, 24, i]), src)
            if x.comparable() >= best.comparable():
                best = x
        result.append(write_dst(best, dst))
    return result


# SrcA and SrcB formats, styles of SrcA and Dst, 32-bit Dst, exponents of the scales
CASES = {
    "fp16": (FP16, FP16, "FP16", "FP16", False, (15,)),
    "fp16 scaled": (FP16, FP16, "FP16", "FP16", False, (13, 15, 18)),
    "fp8": (FP8, FP16, "FP16", "FP16", False, (15, 0)),
    "int8": (INT8, BF16, "INT8", "INT32", True, (127,)),
    "int8 with zeros": (INT8, INT8, "INT8", "INT32", True, (16, 0)),
    "bf16 scaled": (BF16, BF16, "BF16", "BF16", False, (120, 127, 130, 0)),
    "bf16 into tf32": (BFP8, BF16, "BF16", "TF32", True, (125, 127)),
    "tf32 scaled": (TF32, BF16, "TF32", "TF32", True, (127, 128, 255)),
}


def operands(case: str, seed: int) -> State:
    """Random operands of a case; the scales' mantissas and signs are noise."""
    a, b, style, _, wide, exponents = CASES[case]
    rng = random.Random(f"{case} {seed}")
    s = filled(seed, FP16 if style == "FP16" else a, wide)
    s.src_fmt[A], s.src_fmt[B] = a, b
    s.rwc[0] = (16, 24, 8, 0)
    for i in range(16):
        noise = rng.randrange(1 << 10) << 13 | rng.randrange(2) << 31
        s.src[B, 0, 24, i] = np.uint32(rng.choice(exponents) << 23 | noise)
    if style == "INT8":
        s.cfg[0, 1] |= np.uint32(1 << 31)
        magnitudes = [rng.choice((0, rng.randrange(256))) for _ in range(256)]
        s.src[A, 1, 16:32] = np.array(
            [(16 << 23 | m << 13 | rng.randrange(2) << 31) if m else 0 for m in magnitudes]
        ).reshape(16, 16)
    if rng.random() < 0.4:
        s.src[A, 1, 16:32] |= np.uint32(0x80000000)
    s.dst_valid[:] = rng.randrange(2)
    return s


@pytest.mark.parametrize("case", CASES)
def test_maxima(case: str) -> None:
    for seed in range(12):
        s = operands(case, seed)
        wide = CASES[case][4]
        want = expected(s, 12, CASES[case][2:4], wide)
        assert run(s, "GMPOOL", dst=4, instr_mod19=1) == rules.DONE
        for i in range(4):
            row = 12 + i
            at = (row & 0x1F8) << 1 | row & 0x207 if wide else row
            assert s.dst_valid[at] == 1
            got = s.dst[at].astype(np.int64) << 16 | (s.dst[at + 8] if wide else 0)
            assert got.tolist() == (want if i == 0 else 16 * [0]), (case, seed, i)


def test_minus_zero_of_dst_stays_among_negative_integers() -> None:
    """Zeros of SrcA replace it, numbers below do not."""
    s = operands("int8", 0)
    s.dst_valid[:] = 1
    s.dst[:] = 0
    s.dst[(12 & 0x1F8) << 1 | 12 & 7] = 0x8000
    s.src[A, 1, 16:32] = 0x80000000 | 16 << 23 | 5 << 13
    s.src[A, 1, 20, 3] = 0
    assert run(s, "GMPOOL", dst=4, instr_mod19=1) == rules.DONE
    got = s.dst[(12 & 0x1F8) << 1 | 12 & 7].tolist()
    assert got == [0 if j == 3 else 0x8000 for j in range(16)]


def test_scales_of_one_are_the_fast_way() -> None:
    """A scale with other mantissa bits is 1.0 all the same."""
    for fmt, wide in ((BF16, False), (BF16, True), (TF32, True)):
        for seed in range(6):
            plain, noisy = (filled(seed, fmt, wide) for _ in range(2))
            for s, mantissa in ((plain, 0), (noisy, 0x7F0000)):
                s.src[B] = 0x3F800000 | mantissa
                s.src_fmt[B] = BF16
                assert run(s, "GMPOOL", dst=4, instr_mod19=1) == rules.DONE
            assert np.array_equal(plain.dst, noisy.dst)
            assert np.array_equal(plain.dst_valid, noisy.dst_valid)


def test_refused() -> None:
    """5-bit exponents into 32-bit Dst: the text's biases contradict its table."""
    s = filled(0, FP16, True)
    assert rule(run(s, "GMPOOL", instr_mod19=1)) == "GMPOOL-FP16-WIDE"
