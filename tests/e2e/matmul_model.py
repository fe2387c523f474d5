"""bf16 matmul as the matrix unit does it, bit for bit, on whole matrices by numpy.

The arithmetic of tests/tensix/matrix_reference.py for bf16 and a 16-bit Dst: per tile of K, per
fidelity phase and per half of the tile, sixteen products are added in two groups of eight to what
Dst holds, which is rounded to bf16. Shares nothing with the package.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Bf16 = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]


def _split(patterns: Bf16) -> tuple[Ints, Ints, Ints, Any]:
    """(sign, exponent, mantissa with leading bit in 11 bits, is zero)."""
    v = patterns.astype(np.int64)
    exponent = v >> 7 & 255
    return v >> 15, exponent, (v & 0x7F) << 3 | 0x400, exponent == 0


def _terms(a: Bf16, b: Bf16, phase: int) -> tuple[Ints, Ints, Ints]:
    """Products of a (SrcB, rows) and b (SrcA, columns): sign, exponent, magnitude."""
    sa, ea, ma, za = _split(b)
    sb, eb, mb, zb = _split(a)
    ma = ma >> 1 & 31 if phase & 1 else ma >> 6
    mb = (mb & 15) << 3 if phase & 2 else mb >> 4
    bias = -127 - (5 if phase & 1 else 0) - (7 if phase & 2 else 0)
    zero = za | zb
    return (
        np.where(zero, 0, sa ^ sb),
        np.where(zero, max(bias, 0), ea + eb + bias),
        np.where(zero, 0, ma * mb),
    )


def _sum(terms: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints, Ints]:
    """Eight products along the last axis as one term."""
    sign, exponent, m = terms
    top = exponent.max(-1)
    d = np.minimum(top[..., None] - exponent, 30)
    t = (2 * m + (1 << d)) >> (d + 1)
    total = np.where(sign == 1, -t, t).sum(-1)
    dead = top <= 0
    return (
        np.where(dead, 0, total < 0).astype(np.int64),
        np.where(dead, 0, top),
        np.where(dead, 0, np.abs(total) << 13),
    )


def _shifted(m: Ints, d: Ints, s: Ints) -> Ints:
    # d 0: as it is; far away: nothing
    moved = (m + (1 << np.maximum(d - 1, 0)) - s) % (1 << 32) >> np.minimum(d, 31)
    return np.where(d == 0, m, np.where(d >= 31, 0, moved))


def _accumulate(terms: list[tuple[Ints, Ints, Ints]], dst: Ints) -> Ints:
    """The new Dst, as fp32 patterns of bf16 values."""
    sign, xd = dst >> 31, dst >> 23 & 255
    md = np.where(xd > 0, dst & 0x7FFFFF | 1 << 23, 0)
    top = np.maximum(np.maximum(terms[0][1], terms[1][1]), xd)
    total = _shifted(md, top - xd, np.zeros_like(sign)) + 4096 & ~0x1FFF
    for s, x, m in terms:
        t = _shifted(m, top - x, s) + 4096 - s & ~0x1FFF
        total = total + np.where(s == sign, t, -t)
    total = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    sign = np.where(total < 0, sign ^ 1, sign)
    total = np.abs(total)
    length = np.frexp(total.astype(np.float64))[1].astype(np.int64)
    n = 24 - length - 16
    exponent = top - (24 - length)
    right = total + (1 << np.maximum(-n - 1, 0)) >> np.maximum(-n, 0)
    q = np.where(n < 0, right, total << np.maximum(n, 0)) << 16
    exponent = exponent + (q >> 24 & 1)
    value = sign << 31 | np.where(exponent >= 255, 255 << 23, exponent << 23 | q & 0x7FFFFF)
    return np.where((top <= 0) | (total == 0) | (exponent <= 0), 0, value)


def matmul(a: Bf16, b: Bf16, phases: int) -> Bf16:
    """a (m, k) times b (k, n), k a multiple of 32."""
    dst = np.zeros((a.shape[0], b.shape[1]), np.int64)
    columns = np.ascontiguousarray(b.T)
    for k in range(0, a.shape[1], 32):
        for phase in range(phases):
            for half in (k, k + 16):
                rows = a[:, None, half : half + 16]
                terms = _terms(rows, columns[None, :, half : half + 16], phase)
                low = _sum(tuple(t[..., :8] for t in terms))  # type: ignore[arg-type]
                high = _sum(tuple(t[..., 8:] for t in terms))  # type: ignore[arg-type]
                dst = _accumulate([low, high], dst)
    return (dst >> 16).astype(np.uint16)
