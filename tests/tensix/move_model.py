"""A literal model of the moves between SrcA, SrcB and Dst, one datum at a time."""

import random
from typing import Any

import numpy as np

from bhemu.machine import sentences
from bhemu.tensix.state import State
from bhemu.tensix.units import MODULES

assert MODULES

FP32, FP16, BFP8A, BFP4A, TF32, BF16, BFP8, BFP4, INT32, UINT16, FP8, BFP2A = range(12)
INT8, BFP2 = 14, 15
FIVE_BIT = (FP16, FP8, BFP8A, BFP4A, BFP2A, INT8)
A, B = 0, 1
LLK = 1


def rule(number: int) -> str:
    return sentences.RULES[number].rule


EXPONENTS = (0, 0, 1, 15, 16, 31, 32, 126, 127, 254, 255)


def filled(seed: int, fmt: int) -> State:
    """Src cells of every class (zero, denormal, 5- and 8-bit exponents), random Dst and flags."""
    rng = random.Random(seed)
    s = State()

    def cell() -> int:
        exponent = rng.choice(EXPONENTS) if rng.random() < 0.7 else rng.randrange(256)
        mantissa = rng.choice((0, 1, 1023, rng.randrange(1024)))
        return rng.randrange(2) << 31 | exponent << 23 | mantissa << 13

    s.src[:] = np.array([cell() for _ in range(s.src.size)], np.uint32).reshape(s.src.shape)
    s.dst[:] = np.random.default_rng(seed).integers(0, 1 << 16, s.dst.shape, np.uint16)
    s.dst_valid[:] = [rng.randrange(2) for _ in range(1024)]
    s.src_valid[:] = 1
    s.src_fmt[:] = fmt
    s.matrix_bank[:] = (1, 0)
    return s


def high_row(row: int) -> int:
    return (row & 0x1F8) << 1 | row & 0x207


def bf16_cell(v: int) -> int:
    """s[15] m[14:8] e[7:0] of a 16-bit pattern."""
    return v & 0x8000 | (v & 0x7F) << 8 | v >> 7 & 0xFF


def bf16_of(c: int) -> int:
    return c & 0x8000 | (c & 0xFF) << 7 | c >> 8 & 0x7F


class Model:
    """Dst and Src as lists of integers, changed one datum at a time."""

    def __init__(self, s: State) -> None:
        self.dst: list[list[int]] = s.dst.tolist()
        self.valid: list[int] = s.dst_valid.tolist()
        self.src: list[Any] = s.src.tolist()

    def check(self, s: State) -> None:
        assert s.dst.tolist() == self.dst
        assert s.dst_valid.tolist() == self.valid
        assert s.src.tolist() == self.src

    def put(self, row: int, cells: list[int], fmt: int, low: int, wide: bool = False) -> None:
        """One row of flushed and masked Src cells into Dst."""
        high = high_row(row)
        readable = self.valid[high]
        wide &= fmt not in FIVE_BIT
        for col, v in enumerate(cells):
            if fmt == TF32 or (wide and not low):
                self.dst[high][col] = bf16_cell(v >> 16)
                self.dst[high + 8][col] = v & 0xFFFF | (bf16_cell(v >> 16) if low else 0)
            elif fmt in FIVE_BIT:
                self.dst[row][col] = v >> 31 << 15 | (v >> 13 & 1023) << 5 | v >> 23 & 31
            elif low:
                self.dst[high][col] *= readable
                self.dst[high + 8][col] = bf16_cell(v >> 16)
            else:
                self.dst[row][col] = bf16_cell(v >> 16)
        self.valid[high if fmt == TF32 or low or wide else row] = 1

    def get(self, row: int, fmt: int, in_32: bool, low: int) -> list[int]:
        """One row of Dst as Src cells."""
        r = high_row(row) if in_32 else row
        cells = []
        for col in range(16):
            c, lo = self.dst[r][col], self.dst[r + 8][col] if in_32 else 0
            if fmt in FIVE_BIT:
                v = c >> 15 << 31 | (c & 31) << 23 | (c >> 5 & 1023) << 13
            elif fmt == TF32:
                v = (bf16_of(c) << 16 | lo) & 0xFFFFE000
            else:
                v = bf16_of(lo if low else c) << 16
            cells.append(v if self.valid[r] else 0)
        return cells


def flushed(cells: list[int], keep: int) -> list[int]:
    return [v if v & 0x7F800000 or keep else 0 for v in cells]


def section(s: State, k: int) -> None:
    """ADDR_MOD section k: SrcA += 8, SrcB += 4, Dst += 16, fidelity += 1."""
    s.thread_cfg[0, 12 + k] = 8 | 4 << 8
    s.thread_cfg[0, 28 + k] = 16 | 1 << 13
