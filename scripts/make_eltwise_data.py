"""Make the inputs and expected outputs of elfs/eltwise: sums, differences, products, by numpy.

python scripts/make_eltwise_data.py [--tiles 2] [--seed 1] [--out elfs/eltwise]

Writes a.npy, b.npy, add.npy, sub.npy and mul.npy, and add_row.npy, add_column.npy and
add_scalar.npy with B broadcast; float32 of shape (32 * tiles, 32), all integers that bf16 holds
exactly.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent

LARGEST = 16  # of the operands: sums reach 32, products 256, the last integer before bf16 has gaps


def integers(tiles: int, seed: int) -> NDArray[np.int64]:
    """Integers of shape (32 * tiles, 32), -16 to 16."""
    return np.random.default_rng(seed).integers(-LARGEST, LARGEST + 1, (32 * tiles, 32))


def results(a: NDArray[np.int64], b: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """What each operation gives, by name."""
    return {"add": a + b, "sub": a - b, "mul": a * b}


def broadcast(b: NDArray[np.int64], how: str) -> NDArray[np.int64]:
    """In each 32x32 tile its first row, column or element everywhere; "none": as it is."""
    rows, columns = {"none": (32, 32), "row": (1, 32), "column": (32, 1), "scalar": (1, 1)}[how]
    tiles = b.reshape(-1, 32, 32)
    return np.broadcast_to(tiles[:, :rows, :columns], tiles.shape).reshape(b.shape)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiles", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "elfs/eltwise")
    arguments = parser.parse_args()
    a = integers(arguments.tiles, arguments.seed)
    b = integers(arguments.tiles, arguments.seed + 1)
    files = {"a": a, "b": b, **results(a, b)}
    files |= {f"add_{how}": a + broadcast(b, how) for how in ("row", "column", "scalar")}
    for name, values in files.items():
        np.save(arguments.out / f"{name}.npy", values.astype(np.float32))


if __name__ == "__main__":
    main()
