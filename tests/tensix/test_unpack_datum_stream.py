"""Compressed tiles, RowSearch, upsampling, W dimension, digest: UNPACR_Regular, datum by datum.

The model below follows the functional model of the page line by line, with its fractions of bytes;
nothing in it comes from the code under test.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from test_unpack import fresh
from unit_runner import run
from unpack_model import BFP, BFP_A, BITS, Unpack, dst_cell, dst_cell_16, put, src_cell

from bhemu.jit.subset import JIT
from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix.state import State


@dataclass
class Odd:
    """What a tile descriptor and THCON_SEC_REG2 can ask for beyond `Unpack`."""

    case: Unpack
    search: int = 0
    compressed: int = 0
    rate: int = 0
    interleave: int = 0
    w_dim: int = 0
    digest: int = 0
    blobs: int = 0
    starts: tuple[int, ...] = (0,) * 8  # BlobsYStart

    def program(self, s: State) -> None:
        case = self.case
        case.program(s)
        first = case.section("REG0_TileDescriptor").word
        word = sum(start << 4 * i for i, start in enumerate(self.starts))
        s.cfg[0, first] |= np.uint32(self.blobs << 8)
        s.cfg[0, first + 2] = self.w_dim | (word & 0xFFFF) << 16
        s.cfg[0, first + 3] = word >> 16 | self.digest << 24
        if case.u == 0:
            of_contexts = cf.UNP0_BLOBS_Y_START_CNTX_01_blobs_y_start.word
            s.cfg[0, of_contexts + (case.k >> 1 & 1)] = word
        put(s, case.section(f"REG2_Disable_zero_compress_cntx{case.k}"), 1 - self.compressed)
        put(s, case.section("REG2_Upsample_rate"), self.rate)
        put(s, case.section("REG2_Upsample_and_interleave"), self.interleave)

    def operands(self) -> dict[str, int]:
        return self.case.operands() | {"row_search": self.search}

    def writes(self, l1: bytes) -> Iterator[tuple[int, int, int]]:
        """(target datum, raw datum, shared exponent), in order; zeros have the datum -1."""
        c = self.case
        x, y, z, w = c.x, c.y, c.z or 1, self.w_dim or 1
        size = Fraction(BITS[c.fmt], 8)
        address = (c.base + c.offset + 1 + self.digest) * 16
        table = address
        if self.compressed:
            rows = (self.blobs or y) * z * w
            address += ceil(Fraction(2 * (rows + 1), 16)) * 16
        exponents = Fraction(address)
        if c.fmt in (*BFP, *BFP_A) and c.forced < 0:
            address += ceil(Fraction(ceil(Fraction(x * y * z * w, 16)), 16)) * 16
        ax, ay, az, aw = c.counters
        end = ax + c.count - 1  # channel 1 X
        drop, keep = 0, 1 << 32
        if not self.compressed:
            first, number = self._row(x, y, z, (ax, ay, az, aw), end)
        else:
            if self.search and self.blobs:
                y = self.blobs
            table += 2 * (aw * z + az) * y
            entry = [
                int.from_bytes(l1[table + 2 * i : table + 2 * i + 2], "little") for i in range(300)
            ]
            first = entry[ay & 0xFF]
            if self.search:
                number = entry[(ax & 0xFF) + 1] - first
            elif ax == 0 and end == x - 1:
                number = entry[(ay & 0xFF) + 1] - first
            else:
                drop, keep, number = ax, end + 1 - ax, 1 << 32
        exponents += Fraction(first, 16)
        data, deltas = Fraction(address), Fraction(0)
        if not self.compressed:
            data += first * size
        else:
            data += first // 32 * (32 * size + 16)
            deltas = data + 32 * size + first % 32 * Fraction(1, 2)
            data += first % 32 * size
        out, i = c.first_cell(), 0
        while i < number and keep:
            v, shared = bits(l1, data, size), c.forced if c.forced >= 0 else l1[floor(exponents)]
            data, exponents, i, more = data + size, exponents + Fraction(1, 16), i + 1, 0
            if self.compressed:
                more = bits(l1, deltas, Fraction(1, 2))
                deltas += Fraction(1, 2)
                if deltas % 16 == 0:
                    data, deltas = data + 16, deltas + 32 * size
            if c.zeros:
                v, more = -1, 0
            for _ in range(more + 1):
                if drop:
                    drop, v = drop - 1, -1
                    continue
                for k in range(1 << self.rate):
                    if not (self.interleave and k):
                        yield out, v, shared
                    v, out = -1, out + 1
                keep -= 1
                if not keep:
                    break

    def _row(
        self, x: int, y: int, z: int, at: tuple[int, int, int, int], end: int
    ) -> tuple[int, int]:
        ax, ay, az, aw = at
        pos, row, last = ax, ay, end + 1
        if self.search and self.blobs:
            pos, row, after = self.starts[ay & 7] << 4, 0, (ax & 7) + 1
            last = x & 0x1F0 if after == self.blobs else self.starts[after] << 4
        elif self.search:
            pos, last = 0, end
        return ((aw * z + az) * y + row) * x + pos, last - pos


def bits(l1: bytes, address: Fraction, size: Fraction) -> int:
    at, count = int(address * 8), int(size * 8)
    return int.from_bytes(l1[at // 8 : at // 8 + 4], "little") >> at % 8 & (1 << count) - 1


def agree(s: State, odd: Odd) -> None:
    odd.program(s)
    c = odd.case
    src, dst, valid = s.src.copy(), s.dst.copy(), s.dst_valid.copy()
    for out, v, shared in odd.writes(s.l1.tobytes()):
        row, column = divmod(out, 16)
        if c.to_dst and c.out in (0, 4, 8):
            at = (row & 0x1F8) << 1 | row & 0x207
            cell = dst_cell(max(v, 0))
            dst[at, column], dst[at + 8, column], valid[at] = cell >> 16, cell & 0xFFFF, 1
            continue
        cell = 0 if v < 0 else src_cell(c.fmt, c.out, v, shared)
        if c.to_dst:
            dst[row, column], valid[row] = dst_cell_16(c.fmt, c.out, cell), 1
        elif row >= 0 and column >= c.shift:
            column -= c.shift
            if c.haloize and c.u == 0:
                row, column = row & ~15 | column, row & 15
            src[c.u, 0, row, column] = cell
    assert run(s, "UNPACR", **odd.operands()) == rules.DONE, odd
    assert np.array_equal(s.src, src), odd
    assert np.array_equal(s.dst, dst), odd
    assert np.array_equal(s.dst_valid, valid), odd


FORMATS = [(5, 5), (1, 1), (0, 4), (0, 5), (6, 6), (7, 7), (15, 15), (10, 10), (9, 9)]
TIMES = 6 if JIT else 2


@pytest.mark.parametrize(("fmt", "out"), FORMATS)
@pytest.mark.parametrize("u", [0, 1])
def test_upsampling(fmt: int, out: int, u: int) -> None:
    """1, 3 or 7 zeros, or untouched cells, behind every datum."""
    for rate in (1, 2, 3):
        rng = random.Random(fmt * 8 + rate)
        for interleave in (0, 1):
            case = Unpack(u=u, fmt=fmt, out=out, count=rng.randrange(1, 1024 >> rate), shift=0)
            agree(fresh(), Odd(case, rate=rate, interleave=interleave))
            agree(fresh(), Odd(replace(case, zeros=1), rate=rate, interleave=interleave))


@pytest.mark.parametrize(
    "change", [{"haloize": 1}, {"shift": 5}, {"dest": 56, "count": 8}, {"k": 1}]
)
def test_upsampling_with_transposition_shift_and_early_rows(change: dict[str, int]) -> None:
    agree(fresh(), Odd(replace(Unpack(count=200), **change), rate=1))


@pytest.mark.parametrize(("fmt", "out"), [(0, 0), (8, 8), (5, 5), (6, 6), (1, 1)])
def test_upsampling_to_dst(fmt: int, out: int) -> None:
    for interleave in (0, 1):
        case = Unpack(fmt=fmt, out=out, to_dst=1, count=150, dest=64 + 48)
        agree(fresh(), Odd(case, rate=2, interleave=interleave))


def test_dimension_w_and_digest_move_the_data() -> None:
    """W counts tiles; block floats have exponents of W times as many; DigestSize is in 16 bytes."""
    for fmt in (5, 6, 7):
        for w in (0, 1, 2, 3):
            case = Unpack(fmt=fmt, out=fmt, x=64, y=2, z=2, counters=(0, 1, 1, w // 2), count=64)
            agree(fresh(), Odd(case, w_dim=w, digest=3 * w))


@pytest.mark.parametrize(("fmt", "out"), FORMATS)
def test_row_search_without_blobs_takes_a_row_up_to_x(fmt: int, out: int) -> None:
    agree(fresh(), Odd(Unpack(fmt=fmt, out=out, x=64, y=4, counters=(0, 3, 1, 0), count=60), 1))


@pytest.mark.parametrize("u", [0, 1])
@pytest.mark.parametrize("x", [0, 1, 2])
def test_row_search_with_blobs(u: int, x: int) -> None:
    starts = (0, 2, 5, 0, 0, 0, 0, 0)
    case = Unpack(u=u, x=256, y=1, z=2, counters=(x, x, 1, 0), count=16)
    agree(fresh(), Odd(case, search=1, blobs=3, starts=starts))


def compress(s: State, odd: Odd, rng: random.Random) -> None:
    """A table of row starts; the stored datums and their zeros are what L1 holds."""
    at, start = (odd.case.base + 1 + odd.digest) * 16, 0
    for _ in range(260):
        s.l1[at : at + 2] = np.array([start], np.uint16).view(np.uint8)
        at, start = at + 2, start + rng.randrange(1, 9)


@pytest.mark.parametrize(("fmt", "out"), [f for f in FORMATS if f[0] != 15])
@pytest.mark.parametrize("u", [0, 1])
def test_compressed_rows(fmt: int, out: int, u: int) -> None:
    """A whole row, part of a row, and the row that the counters search."""
    rng = random.Random(fmt)
    for i in range(TIMES):
        y = rng.randrange(1, 9)
        case = Unpack(
            u=u, fmt=fmt, out=out, x=32, y=y, z=4, count=32, counters=(0, y - 1, i % 4, 0)
        )
        for change in (
            Odd(case),
            Odd(replace(case, count=7, counters=(9, 0, 1, 0))),
            Odd(replace(case, counters=(y - 1, y - 1, 1, 0)), search=1),
            Odd(replace(case, counters=(1, 1, 0, 0)), search=1, blobs=3),
            Odd(replace(case, zeros=1)),
            Odd(case, rate=1, digest=2),
        ):
            s = fresh(i)
            odd = replace(change, compressed=1)
            compress(s, odd, rng)
            agree(s, odd)


def test_a_compressed_tile_to_dst() -> None:
    s = fresh()
    odd = Odd(Unpack(fmt=0, out=0, to_dst=1, x=32, y=4, count=32), compressed=1)
    compress(s, odd, random.Random(0))
    agree(s, odd)


REFUSED = [
    ("UNPACR-TILEIZE-MODES", Odd(Unpack(stride=64), rate=1)),
    ("UNPACR-TILEIZE-MODES", Odd(Unpack(stride=64), compressed=1)),
    ("UNPACR-COMPRESSED-BFP2", Odd(Unpack(fmt=15, out=15), compressed=1)),
    ("UNPACR-STORED-L1", Odd(Unpack(base=0x17FFF, count=32), rate=1)),
    ("UNPACR-NOTHING", Odd(Unpack(counters=(9, 0, 0, 0), count=0), rate=1)),
    ("UNPACR-NOTHING", Odd(Unpack(count=1), search=1)),
    ("UNPACR-SET-START", Odd(Unpack(dest=80, count=16), rate=1)),
    ("UNPACR-SRCB-ROWS", Odd(Unpack(u=1, count=520), rate=1)),
    ("UNPACR-SRCA-SET", Odd(Unpack(count=136, override=0), rate=1)),
    ("UNPACR-ALIGN", Odd(Unpack(haloize=1, counters=(4, 0, 0, 0)), rate=1)),
    ("UNPACR-DST-ROWS", Odd(Unpack(fmt=8, out=8, to_dst=1, dest=64 + 1023 * 16, count=9), rate=1)),
    ("UNPACR-BFP-EXPONENT", Odd(Unpack(fmt=2, out=2, forced=32, count=16), rate=1)),
    ("UNPACR-NO-EXPONENTS", Odd(Unpack(fmt=7, out=7, count=16), rate=1)),
]


@pytest.mark.parametrize(("rule", "odd"), REFUSED)
def test_refused_before_any_effect(rule: str, odd: Odd) -> None:
    s = fresh()
    odd.program(s)
    if rule == "UNPACR-NO-EXPONENTS":
        s.cfg[0, 64] |= np.uint32(0x20)
    src, dst, counters = s.src.copy(), s.dst.copy(), s.adc.copy()
    number = run(s, "UNPACR", **odd.operands())
    assert sentences.RULES[number].rule == rule
    assert sentences.RULES[number].sentence(s.detail)
    assert np.array_equal(s.src, src) and np.array_equal(s.dst, dst)
    assert np.array_equal(s.adc, counters)
