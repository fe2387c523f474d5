"""UNPACR at the borders of its fields: tables of rows, blobs, datums that are the only bad one.

Source: UNPACR_Regular, FormatConversion, Wormhole ISA; the models are those of the other tests.
"""

import random
from dataclasses import replace

import numpy as np
import pytest
from test_unpack import agree as plain
from test_unpack import fresh
from test_unpack_bursts import doubtful, unpack
from test_unpack_datum_stream import Odd, agree, compress
from unit_runner import numbers, run
from unpack_model import BFP_A, BITS, Unpack

from bhemu.machine import sentences


@pytest.mark.parametrize("u", [0, 1])
@pytest.mark.parametrize("k", range(7))
def test_each_blob(u: int, k: int) -> None:
    """BlobsYStart has four bits of each of 8 blobs; the last one ends where the row does."""
    case = Unpack(u=u, x=256, y=1, counters=(k, k, 0, 0), count=16)
    agree(fresh(), Odd(case, search=1, blobs=7, starts=(1, 3, 4, 8, 9, 11, 14, 0)))


@pytest.mark.parametrize("rows", range(1, 17))
def test_the_data_follow_a_table_of_each_length(rows: int) -> None:
    """One entry more than rows, two bytes each, up to a multiple of 16 bytes."""
    rng = random.Random(rows)
    case = Unpack(x=32, y=rows, z=1, count=32, counters=(0, rows - 1, 0, 0))
    cases = [Odd(case), Odd(replace(case, z=3)), Odd(replace(case, z=3), w_dim=2)]
    if rows < 8:
        blobs = replace(case, y=2, z=5, counters=(0, 0, 1, 0))
        cases.append(Odd(blobs, blobs=rows, search=1))
    for odd in cases:
        s = fresh(rows)
        odd = replace(odd, compressed=1)
        compress(s, odd, rng)
        agree(s, odd)


@pytest.mark.parametrize("count", [0, -3])
def test_no_datums_of_a_compressed_row(count: int) -> None:
    s = fresh()
    odd = Odd(Unpack(x=32, y=4, counters=(9, 0, 0, 0), count=count), compressed=1)
    odd.program(s)
    compress(s, odd, random.Random(1))
    before = s.src.copy()
    number = run(s, "UNPACR", **odd.operands())
    assert sentences.RULES[number].rule == "UNPACR-NOTHING"
    assert np.array_equal(s.src, before)


@pytest.mark.parametrize("fmt", BFP_A)
@pytest.mark.parametrize("forced", [0, 32])
@pytest.mark.parametrize("fields", [{}, {"u": 1}, {"to_dst": 1}, {"stride": 0x40}])
def test_one_exponent_out_of_range(fmt: int, forced: int, fields: dict[str, int]) -> None:
    """Exponent 0 less a leading zero, or 32 less none, wherever the datum is: nothing is written.

    A magnitude of one bit has no leading zeros.
    """
    bits = BITS[fmt]
    if (fmt == 11 and forced == 0) or (bits < 8 and "stride" in fields):
        return
    s = fresh()
    for count in (16, 256):
        for bad in {0, 1, 15, count // 2, count - 1}:
            case = Unpack(fmt=fmt, out=fmt, count=count, z=1, forced=forced, **fields)
            case.program(s)
            s.l1[0x40010:0x40810] = 0
            row = 16 if "stride" in fields else count
            bit = 8 * (0x40010 + bad // row * 0x40) + bad % row * bits
            s.l1[bit >> 3] = (1 << bits - 2 if forced else 1) << (bit & 7)
            src, dst = s.src.copy(), s.dst.copy()
            number = run(s, "UNPACR", **case.operands())
            assert sentences.RULES[number].rule == "UNPACR-BFP-EXPONENT", (count, bad)
            assert np.array_equal(s.src, src) and np.array_equal(s.dst, dst)


@pytest.mark.parametrize("start", [14, 15, 16, 31])
@pytest.mark.parametrize("count", [15, 16, 17, 31, 33])
def test_a_burst_of_a_row_and_a_part(start: int, count: int) -> None:
    """More than 16 datums are written in bursts; those rows of one beyond a set are doubtful."""
    s = fresh()
    unpack(s, start, count)
    rows = range(start + 1, start + -(-count // 16))
    crossing = start % 4 and start % 16 + 4 > 16
    assert doubtful(s) == ({row for row in rows if crossing} if count > 16 else set())


@pytest.mark.parametrize(("fmt", "size"), [(5, 2), (0, 4), (6, 1), (10, 1)])
@pytest.mark.parametrize("first", [1, 3, 15, 17, 40])
def test_rows_of_a_tile_from_within_a_row_of_srcb(fmt: int, size: int, first: int) -> None:
    """Tileize_mode: where input rows end has nothing to do with where target rows end."""
    out = fmt or 4
    case = Unpack(u=1, fmt=fmt, out=out, stride=0x80, count=300, strides=(size, 0))
    plain(fresh(first), replace(case, channel1=(first, 0)))


@pytest.mark.parametrize("bit", range(8))
def test_upsampling_from_anywhere_but_the_start_of_a_set(bit: int) -> None:
    """More than a row of SrcA: the size of its bursts is not known."""
    s = fresh()
    odd = Odd(Unpack(dest=64 + (1 << bit), count=16), rate=1)
    odd.program(s)
    number = run(s, "UNPACR", **odd.operands())
    assert sentences.RULES[number].rule == "UNPACR-SET-START"
    assert numbers(s, number) == [(1 << bit) >> 4]


def test_a_table_of_rows_beyond_the_end_of_l1() -> None:
    s = fresh()
    odd = Odd(Unpack(base=0x17FFE, x=32, y=8, count=32, counters=(0, 8, 0, 0)), compressed=1)
    odd.program(s)
    number = run(s, "UNPACR", **odd.operands())
    assert sentences.RULES[number].rule == "UNPACR-STORED-L1"
    assert numbers(s, number)[1] == 0x17FFF0 + 2 * 10  # the entry behind that of row 8
