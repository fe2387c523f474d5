"""Make the data of the programs of many tiles: copy_dram, add1_chip, matmul_mcast, all_gather.

python scripts/make_chip_data.py [--seed 1] [--out elfs]

Integers that every fidelity and bf16 hold exactly; expected outputs by numpy.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 100  # bf16 holds every integer up to 256
RING = 8


def integers(rows: int, columns: int, seed: int, largest: int = LARGEST) -> NDArray[np.int64]:
    """Integers of shape (rows, columns)."""
    return np.random.default_rng(seed).integers(-largest, largest + 1, (rows, columns))


def data(seed: int) -> dict[str, NDArray[np.int64]]:
    """Every file by its path below elfs, without .npy."""
    x, a, b = integers(128, 128, seed), integers(64, 128, seed, 1), integers(128, 64, seed + 1, 1)
    blocks = integers(RING, 512, seed, 1 << 20)
    return {
        "copy_dram/in": integers(256, 256, seed),
        "add1_chip/in": x,
        "add1_chip/expected": x + 1,
        "matmul_mcast/a": a,
        "matmul_mcast/b": b,
        "matmul_mcast/expected": a @ b,
        "all_gather/in": blocks,
        "all_gather/expected": np.tile(blocks, (RING, 1)),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "elfs")
    arguments = parser.parse_args()
    for name, values in data(arguments.seed).items():
        kind = np.int32 if name.startswith("all_gather") else np.float32
        np.save(arguments.out / f"{name}.npy", values.astype(kind))


if __name__ == "__main__":
    main()
