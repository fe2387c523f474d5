"""Make the inputs and the expected output of elfs/matmul: C = A @ B on small integers, by numpy.

python scripts/make_matmul_data.py [--m 2] [--k 3] [--n 2] [--seed 1] [--out elfs/matmul]

Sizes are in 32x32 tiles.  Writes a.npy, b.npy and expected.npy, float32, row-major matrices.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent

LARGEST = 3  # of the elements; few enough bits for every fidelity to be exact
EXACT = 256  # bf16 holds every integer up to here


def integers(rows: int, columns: int, seed: int) -> NDArray[np.int64]:
    """Integers of shape (rows, columns), -3 to 3, half of them 0, so that sums stay small."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-LARGEST, LARGEST + 1, (rows, columns))
    return np.where(rng.integers(0, 2, (rows, columns)), values, 0)


def product(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """A @ B; ValueError unless bf16 holds every sum of products on the way, in any order."""
    largest = np.abs(a) @ np.abs(b)
    if largest.max() > EXACT:
        raise ValueError(f"sums may reach {largest.max()}, more than {EXACT}: use a smaller k")
    return a @ b


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--m", type=int, default=2)
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--n", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "elfs/matmul")
    arguments = parser.parse_args()
    a = integers(32 * arguments.m, 32 * arguments.k, arguments.seed)
    b = integers(32 * arguments.k, 32 * arguments.n, arguments.seed + 1)
    for name, values in (("a", a), ("b", b), ("expected", product(a, b))):
        np.save(arguments.out / f"{name}.npy", values.astype(np.float32))


if __name__ == "__main__":
    main()
