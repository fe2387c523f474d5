"""Whole rows at once against loops over single datums and against NumPy, bit for bit."""

import os
from collections.abc import Iterator
from ctypes import CFUNCTYPE, c_int64, c_void_p
from typing import Any

import numpy as np
import pytest
from datum_sums import add_sums_by_datum, sums_by_datum

from bhemu.jit import build
from bhemu.jit.subset import JIT, njit, signature
from bhemu.tensix.state import DTYPE, State
from bhemu.tensix.units.matrix import ABSENT, arithmetic, sixteen

pytestmark = pytest.mark.skipif(not JIT, reason="only compiled code has two forms")
PRODUCTS = 1_000_000 if os.environ.get("BHEMU_LONG") else 4096
LARGEST = 8 * 31 * 127  # of a sum of products
FIVE_BIT, EIGHT_BIT = arithmetic.FP16, arithmetic.BF16


@njit
def _sums(s: Any, row_a: Any, row_b: Any, phase: Any, rows: Any) -> Any:
    arithmetic.sums_by_row(s, np.int64(0), row_a, np.int64(1), row_b, phase, rows)
    return np.int64(0)


@njit
def _sums_by_datum(s: Any, row_a: Any, row_b: Any, phase: Any, rows: Any) -> Any:
    sums_by_datum(s, np.int64(0), row_a, np.int64(1), row_b, phase, rows)
    return np.int64(0)


@njit
def _add(s: Any, first: Any, rows: Any, bias: Any, five_bit: Any) -> Any:
    if five_bit:
        arithmetic.add_sums_by_row(s, FIVE_BIT, first, rows, np.int32(bias))
    else:
        arithmetic.add_sums_by_row(s, EIGHT_BIT, first, rows, np.int32(bias))
    return np.int64(0)


@njit
def _add_by_datum(s: Any, first: Any, rows: Any, bias: Any, five_bit: Any) -> Any:
    c = FIVE_BIT if five_bit else EIGHT_BIT
    add_sums_by_datum(s, c, first, rows, np.int32(bias))
    return np.int64(0)


def entry(function: Any) -> Any:
    kind = signature("int64", DTYPE, *["int64"] * 4)
    address = build.load(build.function(kind, function)).address
    return CFUNCTYPE(c_int64, c_void_p, *[c_int64] * 4)(address)


@pytest.fixture(scope="module")
def both() -> tuple[Any, Any, Any, Any]:
    return tuple(entry(each) for each in (_sums, _sums_by_datum, _add, _add_by_datum))  # type: ignore[return-value]


def sums_of(s: State, call: Any, *arguments: int) -> tuple[Any, Any]:
    s.term_exponent[:] = s.term_sum[:] = 0
    call(s.base, *arguments)
    return s.term_exponent.copy(), s.term_sum.copy()


def test_every_product_and_distance(both: tuple[Any, ...]) -> None:
    """Exhaustive: slices of SrcA and SrcB with their signs, distances from 0 to beyond the last."""
    s = State()
    a = np.concatenate([np.arange(-31, 32) * 2, [0]])
    b = np.concatenate([np.arange(-127, 128), [0]])
    s.src_exponent[:] = 0
    for distance in (*range(17), 127, 128, 255, 256, 508, 2000):
        # k = 0 has the larger exponent and no product, k = 1 is shifted; k = 8 and 9 the same.
        s.src_exponent[0, 0] = -distance
        s.src_exponent[0, 0, [0, 8]] = 0
        expected = (2 * abs(a[:, None] * b // 2) + (1 << min(distance, 20))) >> (
            min(distance, 20) + 1
        )
        expected *= np.sign(a[:, None] * b)
        for columns in range(0, 64, 16):
            s.src_slice[0, 0] = 0
            s.src_slice[0, 0, 0, [1, 9]] = a[columns : columns + 16]
            for rows in range(0, 256, 64):
                s.src_slice[1, 1] = 0
                s.src_slice[1, 1, 0, :, 1] = s.src_slice[1, 1, 0, :, 9] = b[rows : rows + 64]
                for row in range(0, 64, 8):
                    exponents, found = sums_of(s, both[0], 0, row, 0, 8)
                    assert not exponents.any()
                    want = expected[columns : columns + 16, rows + row : rows + row + 8].T
                    assert (found.reshape(2, 8, 16) == want).all(), distance


def random_banks(s: State, r: Any) -> None:
    """Banks as the matrix unit prepares them: near and far exponents, zeros, extreme mantissas."""
    spread = int(r.choice([1, 4, 16, 60, 254]))
    for which in (0, 1):
        e = r.integers(1, 256 - spread) + r.integers(0, spread + 1, (64, 16))
        m = 1024 + r.integers(0, 1024, (64, 16))
        m = np.where(r.random((64, 16)) < 0.2, 2047, m)
        sign = np.where(r.random((64, 16)) < r.choice([0, 0.5]), -1, 1)
        some = r.random((64, 16)) >= r.choice([0, 0.1, 0.9])
        slices = ((m >> 4) & 0x7F, (m << 3) & 0x78) if which else ((m >> 5) & 0x3E, m & 0x3E)
        s.src_exponent[which, which] = np.where(some, e, ABSENT)
        for i, magnitude in enumerate(slices):
            s.src_slice[which, which, i] = np.where(some, sign * magnitude, 0)


def steps(r: Any) -> Iterator[tuple[int, int, int, int]]:
    """(SrcA row, SrcB row, phase, rows) of the products of one pair of banks."""
    for row_a in range(0, 64, 16):
        for phase in range(4):
            for _ in range(8):
                yield row_a, int(r.integers(0, 64)), phase, int(r.choice([4, 8, 8, 8]))


def test_random_products(both: tuple[Any, ...]) -> None:
    """Products and what they leave in Dst, one after the other, in both forms."""
    sums, sums_by_datum, add, add_by_datum = both
    s, r = State(), np.random.default_rng(1)
    for _ in range(PRODUCTS // 128):
        random_banks(s, r)
        five_bit = int(r.integers(0, 4) == 0)
        s.dst[:] = r.integers(0, 1 << 16, s.dst.shape)
        for row_a, row_b, phase, rows in steps(r):
            want = sums_of(s, sums_by_datum, row_a, row_b, phase, rows)
            found = sums_of(s, sums, row_a, row_b, phase, rows)
            assert all((x == y).all() for x, y in zip(want, found, strict=True))
            bias = (-15 if five_bit else -127) - 5 * (phase & 1) - 7 * (phase >> 1)
            first = int(r.integers(0, 8)) * 8
            dst, valid = s.dst.copy(), r.integers(0, 2, 1024)
            s.dst_valid[:] = valid
            add_by_datum(s.base, first, rows, bias, five_bit)
            expected = s.dst.copy()
            s.dst[:], s.dst_valid[:] = dst, valid
            add(s.base, first, rows, bias, five_bit)
            assert (s.dst == expected).all()
            assert s.dst_valid[first : first + rows].all()


@pytest.mark.parametrize("cell", [EIGHT_BIT, FIVE_BIT])
@pytest.mark.parametrize("term", [0, 1])
def test_every_sum_and_distance(both: tuple[Any, ...], cell: Any, term: int) -> None:
    """Exhaustive: a sum of products shifted by 0-33 against the other, and next to each Dst."""
    s, five_bit = State(), cell is FIVE_BIT
    values = np.resize(np.arange(-LARGEST, LARGEST + 1), 128 * 493)
    top = 24 if five_bit else 130
    for distance in range(18):
        for at in range(0, len(values), 1024):
            part = values[at : at + 1024]
            cells = (part * 40503 + distance & 0xFF00 | top - (part & 31) & 0xFF).astype(np.uint16)
            expected = cells.copy()
            exponents = np.full((2, len(part)), top - distance)
            exponents[1 - term] = top if distance & 1 else 0
            sums = np.zeros((2, len(part)), np.int64)
            sums[term] = part
            sums[1 - term] = np.where(part & 2, part // 3, 0)
            sixteen.plain_accumulate(expected, 0xFFFF, (exponents, sums), 0, 0, cell)
            for i in range(0, len(part), 128):
                s.term_exponent[:] = exponents[:, i : i + 128]
                s.term_sum[:] = sums[:, i : i + 128]
                s.dst[:8] = cells[i : i + 128].reshape(8, 16)
                s.dst_valid[:8] = 1
                both[2](s.base, 0, 8, 0, five_bit)
                assert (s.dst[:8].ravel() == expected[i : i + 128]).all(), (distance, at + i)


def test_numpy_says_the_same(both: tuple[Any, ...]) -> None:
    s, r = State(), np.random.default_rng(2)
    for _ in range(8):
        random_banks(s, r)
        for row_a, row_b, phase, rows in steps(r):
            want = sums_of(s, both[1], row_a, row_b, phase, rows)
            s.term_exponent[:] = s.term_sum[:] = 0
            sixteen.plain_sums(s, 0, row_a, 1, row_b, phase, rows)
            found = s.term_exponent, s.term_sum
            assert all((x == y).all() for x, y in zip(want, found, strict=True))
