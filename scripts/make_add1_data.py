"""Make the input and the expected output of elfs/add1: y = x + scalar on bf16, computed by numpy.

python scripts/make_add1_data.py [--tiles 1] [--scalar 1.0] [--seed 1] [--out elfs/add1]

Writes in.npy and expected.npy, float32 of shape (32 * tiles, 32); every value is exact in bf16.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent

# Zeros, ones, denormals, the ends of the range, infinities, and values whose sum with 1.0 is cut.
EDGES = (
    *(0x0000, 0x8000, 0x3F80, 0xBF80, 0x0001, 0x807F, 0x0080, 0x8080),
    *(0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x3F81, 0x3F82, 0x3F83, 0xBF81),
    *(0x3B80, 0x3B7F, 0x3C00, 0xBC00, 0x4300, 0x4301, 0x4381, 0xC381),
)


def patterns(tiles: int, seed: int) -> NDArray[np.uint16]:
    """bf16 patterns of shape (32 * tiles, 32): edges first, then exponents around 1.0."""
    rng = np.random.default_rng(seed)
    count = 1024 * tiles
    sign, mantissa = rng.integers(0, 2, count), rng.integers(0, 128, count)
    exponent = rng.integers(112, 142, count)
    values = (sign << 15 | exponent << 7 | mantissa).astype(np.uint16)
    values[: len(EDGES)] = EDGES
    return values.reshape(32 * tiles, 32)


def widen(values: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The fp32 value of each bf16 pattern."""
    return (values.astype(np.uint32) << 16).view(np.float32)


def add_scalar(values: NDArray[np.uint16], scalar: float) -> NDArray[np.uint16]:
    """bf16 patterns of x + scalar: fp32 sum, then the low 16 bits are dropped.

    Denormals are zero on the way in and on the way out, a zero result is positive, and the packer
    turns NaN into +Inf (SFPADD, SFPSTORE and PACR, Blackhole ISA).
    """
    flushed = np.where(values & 0x7F80, values, values & 0x8000).astype(np.uint16)
    with np.errstate(all="ignore"):
        total = widen(flushed) + np.float32(scalar)
    result = (total.view(np.uint32) >> 16).astype(np.uint16)
    result[np.isnan(total)] = 0x7F80
    result[result & 0x7F80 == 0] = 0
    return result


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiles", type=int, default=1)
    parser.add_argument("--scalar", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "elfs/add1")
    arguments = parser.parse_args()
    values = patterns(arguments.tiles, arguments.seed)
    np.save(arguments.out / "in.npy", widen(values))
    np.save(arguments.out / "expected.npy", widen(add_scalar(values, arguments.scalar)))


if __name__ == "__main__":
    main()
