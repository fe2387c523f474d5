"""Writes in.npy and expected.npy: python NAME_data.py."""

from pathlib import Path

import numpy as np


def expected(x):
    """What the kernel computes, exactly; `operation` in math.c does the same."""
    return np.maximum(x, 0)


def bf16(x):
    """The nearest bf16 values, as fp32: in DRAM tensors are bf16."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def stored(y):
    """What SFPSTORE keeps of fp32 values: their upper halves. SFP_STOCH_RND would round before."""
    return (np.asarray(y, np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


if __name__ == "__main__":
    folder = Path(__file__).parent
    x = bf16(np.random.default_rng(1).normal(0, 2, (64, 64)))  # 2x2 tiles of 32x32
    np.save(folder / "in.npy", x)
    np.save(folder / "expected.npy", stored(expected(x)))
