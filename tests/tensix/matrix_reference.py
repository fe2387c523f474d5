"""Literal scalar model of the matrix unit's arithmetic on Python integers, one datum at a time.

It follows the text of the arithmetic contract (products, sums of products, accumulation, int8,
pooling) and shares nothing with the package.
"""

import random
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.machine import sentences
from bhemu.tensix.state import State
from bhemu.tensix.units import MODULES

assert MODULES

FP32, FP16, TF32, BF16, BFP8, INT32, UINT16, FP8, INT8, BFP2 = 0, 1, 4, 5, 6, 8, 9, 10, 14, 15
A, B = 0, 1


def rule(number: int) -> str:
    return sentences.RULES[number].rule


# Cells of Src and Dst


def high_row(row: int) -> int:
    return (row & 0x1F8) << 1 | row & 0x207


def enc_bf16(v: int) -> int:
    return v & 0x8000 | (v & 0x7F) << 8 | v >> 7 & 0xFF


def dec_bf16(c: int) -> int:
    return c & 0x8000 | (c & 0xFF) << 7 | c >> 8 & 0x7F


def masked(cell: int, fmt: int) -> int:
    if fmt in (FP16, FP8):
        return cell & 0x8FFFE000
    return cell if fmt == TF32 else cell & 0xFFFF0000


def is_zero(v19: int) -> bool:
    return v19 & 0x3FFFF < 0x400


def split(v19: int) -> tuple[int, int, int]:
    return v19 >> 18, v19 >> 10 & 255, v19 & 0x3FF


# Products


def bias_of(e8: bool, acc32: bool, phase: int) -> int:
    adj = -127 if e8 else 97 if acc32 else -15
    return adj - (5 if phase & 1 else 0) - (7 if phase & 2 else 0)


def product(a: int, b: int, adj: int, phase: int) -> tuple[int, int, int]:
    if is_zero(a) or is_zero(b):
        return 0, max(adj, 0), 0
    sa, ea, ma = split(a)
    sb, eb, mb = split(b)
    ma, mb = ma | 0x400, mb | 0x400
    ma = ma >> 1 & 31 if phase & 1 else ma >> 6
    mb = (mb & 15) << 3 if phase & 2 else mb >> 4
    return sa ^ sb, ea + eb + adj, ma * mb


def sum_of_products(terms: list[tuple[int, int, int]]) -> tuple[int, int, int]:
    e = max(x for _, x, _ in terms)
    if e <= 0:
        return 0, 0, 0
    total = 0
    for sign, x, m in terms:
        d = min(e - x, 30)
        t = (2 * m + (1 << d)) >> (d + 1)
        total += -t if sign else t
    return int(total < 0), e, abs(total) << 13


# Accumulate, normalise, round


def accumulate(terms: list[tuple[int, int, int]], dst: int, acc32: bool, e8: bool) -> int:
    """The new pattern (fp32 order) from two terms and the old pattern."""
    sign, xd = dst >> 31, dst >> 23 & 255
    md = dst & 0x7FFFFF | 1 << 23 if xd else 0
    top = max(terms[0][1], terms[1][1], xd)
    if top <= 0:
        return 0

    def shifted(m: int, d: int, s: int) -> int:
        if d == 0:
            return m
        return 0 if d >= 31 else (m + (1 << d - 1) - s) % (1 << 32) >> d

    md = shifted(md, top - xd, 0)
    if not acc32:
        md = md + 4096 & ~0x1FFF
    total = md
    for s, x, m in terms:
        t = shifted(m, top - x, s)
        if not acc32:
            t = t + 4096 - s & ~0x1FFF
        total += t if s == sign else -t
    total = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    if total < 0:
        total, sign = -total, sign ^ 1
    if total == 0:
        return 0
    shift = 24 - total.bit_length()
    top -= shift
    q = 0 if acc32 else 16 if e8 else 13
    n = shift - q
    total = total + (1 << -n - 1) >> -n if n < 0 else total << n
    total <<= q
    if total >> 24 & 1:
        top += 1
    if top <= 0:
        return 0
    if acc32 or e8:
        return sign << 31 | (255 << 23 if top >= 255 else top << 23 | total & 0x7FFFFF)
    return sign << 31 | (31 << 23 | 0x3FF << 13 if top >= 32 else top << 23 | total & 0x7FFFFF)


# Element-wise terms


def elwmul_term(a: int, b: int, adj: int, phase: int, keep: bool) -> tuple[int, int, int]:
    sa, ea, ma = split(a)
    sb, eb, mb = split(b)
    ma, mb = ma | 0x400, mb | 0x400
    ma = ma >> 1 & 31 if phase & 1 else ma >> 6
    mb = (mb & 15) << 3 if phase & 2 else mb >> 4
    x = ea + eb + adj
    if is_zero(a) or (is_zero(b) and not keep) or x <= 0:
        return 0, max(adj, 0), 0
    return sa ^ sb, x, ma * mb << 13


def elwadd_term(a: int, b: int, acc32: bool, e8: bool, keep: bool) -> tuple[int, int, int]:
    a = 0 if is_zero(a) else a
    b = 0 if is_zero(b) and not keep else b
    if a & 0x3FFFF < b & 0x3FFFF:
        a, b = b, a
    sa, ea, ma = split(a)
    sb, eb, mb = split(b)
    ma, mb = ma | 0x400 if a else 0, mb | 0x400 if b else 0
    d = ea - eb
    if d:
        mb = mb + (1 << d - 1) >> d if d < 12 else 0
    m = ma + mb if sa == sb else ma - mb
    if acc32 and not e8:
        ea = ea + 112 if ea else 97
    return sa, ea, (m << 13) % (1 << 32)


# Integers


def int8_value(cell: int, mask: int = 0x3FF, keep: bool = False) -> int:
    if not cell & 0x7F800000 and not keep:
        return 0
    m = cell >> 13 & mask
    return -m if cell >> 31 else m


def int32_value(pattern: int) -> int:
    m = pattern & 0x7FFFFFFF
    return -m if pattern >> 31 else m


def int32_pattern(v: int) -> int:
    v = max(-0x7FFFFFFF, min(0x7FFFFFFF, v))
    return 1 << 31 | -v if v < 0 else v


class Model:
    """Dst and Src of a state as lists of integers, and the operations on them."""

    def __init__(self, s: State) -> None:
        self.dst: list[list[int]] = s.dst.tolist()
        self.valid: list[int] = s.dst_valid.tolist()
        self.src: list[Any] = s.src.tolist()
        self.bank: list[int] = s.matrix_bank.tolist()

    def check(self, s: State) -> None:
        assert s.dst_valid.tolist() == self.valid
        assert s.dst.tolist() == self.dst
        assert s.src.tolist() == self.src

    def a(self, row: int) -> list[int]:
        return list(self.src[A][self.bank[A]][row])

    def b(self, row: int) -> list[int]:
        return list(self.src[B][self.bank[B]][row])

    def read(self, row: int, col: int, wide: bool, e8: bool) -> int:
        r = high_row(row) if wide else row
        if not self.valid[r]:
            return 0
        c = self.dst[r][col]
        if wide:
            return dec_bf16(c) << 16 | self.dst[r + 8][col]
        if e8:
            return dec_bf16(c) << 16
        return c >> 15 << 31 | (c & 31) << 23 | (c >> 5 & 0x3FF) << 13

    def write(self, row: int, col: int, v: int, wide: bool, e8: bool) -> None:
        """Store a pattern; the row becomes valid after its last column."""
        r = high_row(row) if wide else row
        if wide or e8:
            self.dst[r][col] = enc_bf16(v >> 16)
        else:
            self.dst[r][col] = v >> 31 << 15 | (v >> 13 & 0x3FF) << 5 | v >> 23 & 31
        if wide:
            self.dst[r + 8][col] = v & 0xFFFF
        if col == 15:
            self.valid[r] = 1

    def matmul(
        self,
        first: int,
        rows: int,
        at: tuple[int, int],
        fmts: tuple[int, int],
        phase: int,
        wide: bool,
    ) -> None:
        e8 = fmts[A] not in (FP16, FP8)
        adj = bias_of(e8, wide, phase)
        columns = [
            [masked(self.a(at[A] + k)[j], fmts[A]) >> 13 for k in range(16)] for j in range(16)
        ]
        for r in range(rows):
            row = [masked(v, fmts[B]) >> 13 for v in self.b(at[B] + r)]
            for j in range(16):
                terms = [product(x, y, adj, phase) for x, y in zip(columns[j], row, strict=True)]
                pair = [sum_of_products(terms[:8]), sum_of_products(terms[8:])]
                old = self.read((first + r) % 1024, j, wide, e8)
                self.write((first + r) % 1024, j, accumulate(pair, old, wide, e8), wide, e8)

    def matmul_int8(self, first: int, rows: int, at: tuple[int, int], phase: int) -> None:
        mask_a, mask_b = 0x1F if phase & 1 else 0xE0, 0xF if phase & 2 else 0x3F0
        a = [[int8_value(v, mask_a) for v in self.a(at[A] + k)] for k in range(16)]
        for r in range(rows):
            b = [int8_value(v, mask_b) for v in self.b(at[B] + r)]
            for j in range(16):
                total = sum(b[k] * a[k][j] for k in range(16))
                total += int32_value(self.read(first + r, j, True, True))
                self.write(first + r, j, int32_pattern(total), True, True)

    def elw(
        self,
        op: str,
        first: int,
        at: tuple[int, int],
        fmts: tuple[int, int],
        mode: int,
        phase: int = 0,
        add_dst: bool = True,
        wide: bool = False,
        keep: bool = False,
    ) -> None:
        for r in range(8):
            a, b = self.a(at[A] + r), self.b(at[B] + (0 if mode & 2 else r))
            for j in range(16):
                x, y = a[j], b[0 if mode & 1 else j] ^ (1 << 31 if op == "ELWSUB" else 0)
                row = first + r
                if fmts[A] == INT8:
                    v = self._int8(op, x, y, phase, keep)
                    v += int32_value(self.read(row, j, True, True)) if add_dst else 0
                    self.write(row, j, int32_pattern(v), True, True)
                    continue
                e8 = fmts[A] not in (FP16, FP8)
                x, y = masked(x, fmts[A]) >> 13, masked(y, fmts[B]) >> 13
                if op == "ELWMUL":
                    term = elwmul_term(x, y, bias_of(e8, wide, phase), phase, keep)
                else:
                    term = elwadd_term(x, y, wide, e8, keep)
                old = self.read(row, j, wide, e8) if add_dst else 0
                new = accumulate([term, (0, 0, 0)], old, wide, e8)
                self.write(row, j, new, wide, e8)

    @staticmethod
    def _int8(op: str, x: int, y: int, phase: int, keep: bool) -> int:
        if op == "ELWMUL":
            mask_a, mask_b = 0x1F if phase & 1 else 0xE0, 0xF if phase & 2 else 0x3F0
            return int8_value(x, mask_a) * int8_value(y, mask_b, keep)
        return int8_value(x) + int8_value(y, keep=keep)

    def gmpool(self, row: int, at: int, fmt: int, wide: bool) -> None:
        def key(v: int) -> int:
            v ^= 0x7FFFFFFF if v >> 31 else 0
            return v - (1 << 32) if v >> 31 else v

        r = high_row(row) if wide else row
        for j in range(16):
            c, low = self.dst[r][j], self.dst[r + 8][j] if wide else 0
            if not self.valid[r]:
                c, low = 0xFFFF, 0xFFFF if wide else 0
            best = (dec_bf16(c) << 16 | low) & 0xFFFFE000
            for i in range(16):
                v = masked(self.a(at + i)[j], TF32 if fmt == TF32 else BF16)
                v = v if v & 0x7F800000 else 0
                best = v if key(v) > key(best) else best
            self.write(row, j, best, wide, True)
            for i in (1, 2, 3):
                self.write(row + i, j, 0, wide, True)


# Operands

_MANTISSAS = (0, 1, 0x3FF, 0x200, 0x040, 0x3C0)
_FRACTIONS = (0, 1, 0x7FFFFF, 0x400000, 0x1000, 0x8000, 0x7FE000, 0x7F0000)


def operand(rng: random.Random, exponents: tuple[int, ...], limit: int) -> int:
    e = rng.choice(exponents) if rng.random() < 0.8 else rng.randrange(limit)
    m = rng.choice(_MANTISSAS) if rng.random() < 0.4 else rng.randrange(1024)
    if rng.random() < 0.1:
        e, m = 0, rng.choice((0, m))
    return rng.randrange(2) << 31 | e << 23 | m << 13


def exponent_classes(five_bit: bool) -> tuple[tuple[int, ...], ...]:
    """Close together, far apart, around overflow, around underflow."""
    if five_bit:
        return ((15, 16, 17), (1, 8, 16, 24), (28, 29, 30, 31), (0, 1, 2, 5))
    return ((126, 127, 128), (100, 115, 127, 140), (188, 191, 192, 254, 255), (0, 1, 60, 64, 68))


def int8_cell(rng: random.Random) -> int:
    m = rng.choice((0, 1, 127, 128, 255, 1023, rng.randrange(1024)))
    return rng.randrange(2) << 31 | (16 if m else 0) << 23 | m << 13


def dst_word(rng: random.Random, exponents: tuple[int, ...], limit: int) -> int:
    e = rng.choice(exponents) if rng.random() < 0.8 else rng.randrange(limit)
    m = rng.choice(_FRACTIONS) if rng.random() < 0.4 else rng.randrange(1 << 23)
    return rng.randrange(2) << 31 | e << 23 | m


def filled(seed: int, fmt: int, wide: bool) -> State:
    """A state with operands of one class in both Src and in Dst, and rows that are not valid."""
    s = State()
    s.src[:], s.dst[:], s.dst_valid[:] = _operands(seed, fmt, wide)
    s.src_valid[:] = 1
    s.src_fmt[:] = fmt
    s.matrix_bank[:] = (1, 0)
    s.cfg[0, 1] = int(wide) << 29 | int(fmt == INT8) << 31
    return s


@cache
def _operands(
    seed: int, fmt: int, wide: bool
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint16], list[int]]:
    """Contents of Src and Dst, and the flags of rows."""
    rng = random.Random(seed)
    five_bit = fmt in (FP16, FP8)
    limit = 32 if five_bit else 256
    near = exponent_classes(five_bit)[seed % 4]
    s = State()
    if fmt == INT8:
        cells = [int8_cell(rng) for _ in range(s.src.size)]
    else:
        cells = [operand(rng, near, limit) for _ in range(s.src.size)]
    src = np.array(cells, np.uint32).reshape(s.src.shape)
    shift = 112 if five_bit and wide else 0
    around = tuple(e + d + shift for e in near for d in (0, 3, 10) if e + d < limit)
    words = [dst_word(rng, around, 256 if wide else limit) for _ in range(512 * 16)]
    if fmt == INT8:
        words = [rng.choice((w, w & 0x8000FFFF, w | 0x7FFFF000)) for w in words]
    model = Model(s)
    for i, word in enumerate(words):
        if wide or fmt == INT8:
            model.write(i // 16, i % 16, word, True, True)
        else:
            model.write(i // 16, i % 16, word, False, not five_bit)
            model.write(i // 16 + 512, i % 16, word ^ 0x80000000, False, not five_bit)
    return src, np.array(model.dst, np.uint16), [int(rng.random() < 0.8) for _ in range(1024)]


def section(s: State, k: int) -> None:
    """ADDR_MOD section k: SrcA += 16, SrcB += 8, Dst += 8, fidelity += 1."""
    s.thread_cfg[0, 12 + k] = 16 | 8 << 8
    s.thread_cfg[0, 28 + k] = 8 | 1 << 13
