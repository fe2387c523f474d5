"""Dst: encodings, addressing and valid flags (Dst, Blackhole ISA; Dst access in ttsim)."""

from typing import Any

import numpy as np
import pytest

from bhemu.jit.subset import JIT
from bhemu.tensix import dest
from bhemu.tensix.state import DTYPE, State


def view(s: State) -> Any:
    return s.buffer.view(DTYPE)[0] if JIT else s


def bf16_cell(sign: int, exponent: int, mantissa: int) -> int:
    """s[15] m[14:8] e[7:0]."""
    return sign << 15 | mantissa << 8 | exponent


def fp16_cell(sign: int, exponent: int, mantissa: int) -> int:
    """s[15] m[14:5] e[4:0]."""
    return sign << 15 | mantissa << 5 | exponent


PATTERNS = [*range(0, 0x10000, 7), 0x7F80, 0x7FFF, 0x8000, 0xFF80, 0xFFFF, 0x7C00, 0x03FF]


def test_bf16_cells_keep_every_field() -> None:
    for v in PATTERNS:
        want = bf16_cell(v >> 15, v >> 7 & 255, v & 127)
        assert dest.enc_bf16(v) == want
        assert dest.dec_bf16(want) == v


def test_fp16_cells_keep_every_field() -> None:
    for v in PATTERNS:
        want = fp16_cell(v >> 15, v >> 10 & 31, v & 1023)
        assert dest.enc_fp16(v) == want
        assert dest.dec_fp16(want) == v


def test_32_bit_cells_shuffle_only_the_high_half() -> None:
    for v in (0x3F800000, 0xBF812345, 0xFFFFFFFF, 0x80000001, 0x7F800000, 0x00010203):
        want = bf16_cell(v >> 31, v >> 23 & 255, v >> 16 & 127) << 16 | v & 0xFFFF
        assert dest.enc_32(v) == want
        assert dest.dec_32(want) == v


@pytest.mark.parametrize(
    ("row", "high"),
    [(0, 0), (7, 7), (8, 16), (15, 23), (16, 32), (255, 503), (256, 512), (511, 1015)],
)
def test_rows_of_32_bit_datums(row: int, high: int) -> None:
    assert dest.adj32(row) == high


def test_the_halves_of_512_rows_fill_dst_once() -> None:
    high = {int(dest.adj32(row)) for row in range(512)}
    assert high | {row + dest.LOW_HALF for row in high} == set(range(1024))


def test_16_bit_access_reads_zero_until_the_row_is_written() -> None:
    s = State()
    s.dst[5] = 0xABCD
    assert dest.read16(view(s), 5, 3) == 0xABCD
    dest.mark16(view(s), 5, 0)
    assert dest.valid16(view(s), 5) == 0
    assert dest.read16(view(s), 5, 3) == 0
    dest.put16(view(s), 5, 4, 0x1234)
    assert dest.read16(view(s), 5, 4) == 0
    dest.write16(view(s), 5, 3, 0x15678)
    assert [dest.read16(view(s), 5, c) for c in (3, 4, 5)] == [0x5678, 0x1234, 0xABCD]


def test_32_bit_access_uses_two_rows_and_the_flag_of_the_high_half() -> None:
    s = State()
    s.dst_valid[:] = 0
    s.dst_valid[16 + 8] = 1  # the low half's flag does not count
    dest.put32(view(s), 8, 2, 0x89ABCDEF)
    assert (int(s.dst[16, 2]), int(s.dst[24, 2])) == (0x89AB, 0xCDEF)
    assert dest.read32(view(s), 8, 2) == 0
    dest.write32(view(s), 8, 1, 0xFEDCBA98)
    assert dest.read32(view(s), 8, 2) == 0x89ABCDEF
    assert dest.read32(view(s), 8, 1) == 0xFEDCBA98
    assert np.flatnonzero(s.dst_valid).tolist() == [16, 24]
    s.dst_valid[dest.adj32(8)] = 0
    assert np.flatnonzero(s.dst_valid).tolist() == [24]
