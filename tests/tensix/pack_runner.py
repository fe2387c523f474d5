"""Runs PACR, compiled or interpreted, on a state with edge cases in Dst."""

import numpy as np
from pack_model import Pack, Packer
from unit_runner import run

from bhemu.tensix.state import State

# Cells whose patterns are zeros, denormals, ties, range ends, Inf, NaN in some format.
EDGES = (0, 0x8000, 1, 0x8001, 0xFF, 0x80FF, 0x01FF, 0x7F00, 0x7FFF, 0xFFFF, 0x4070, 0x4071)
EDGES += (0x7F70, 0x7F6F, 0x7F8F, 0x7F90, 0x1F, 0x801F, 0x7FFE, 0x7FFF, 0xFFFE, 0x78, 0x79, 0x87)
LOW = (0, 0x8000, 0x7FFF, 0x8001, 0x1000, 0x0FFF, 0x1001, 0xFFFF)


def execute(s: State, t: int = 0, **fields: int) -> int:
    """Status of one PACR, its fields taken through its encoding."""
    return run(s, "PACR", t, **fields)


def fresh(seed: int = 1) -> State:
    """A state with random L1 and Dst; a quarter of Dst are edge cells, some rows invalid."""
    s = State()
    rng = np.random.default_rng(seed)
    s.l1[:] = rng.integers(0, 256, s.l1.size, dtype=np.uint8)
    s.dst[:] = rng.integers(0, 1 << 16, s.dst.shape, dtype=np.uint16)
    edge = rng.random(s.dst.shape) < 0.25
    high = np.arange(1024) & 8 == 0
    s.dst[edge & high[:, None]] = rng.choice(
        np.array(EDGES, np.uint16), (edge & high[:, None]).sum()
    )
    s.dst[edge & ~high[:, None]] = rng.choice(
        np.array(LOW, np.uint16), (edge & ~high[:, None]).sum()
    )
    s.dst_valid[:] = rng.random(1024) < 0.9
    return s


def setup(p: Pack, seed: int = 1) -> tuple[State, Packer]:
    s = fresh(seed)
    p.program(s)
    return s, Packer(bytearray(s.l1.tobytes()))
