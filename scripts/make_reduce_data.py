"""Make the input and the expected outputs of elfs/reduce: sums, maxima and means, by numpy.

python scripts/make_reduce_data.py [--m 2] [--n 2] [--seed 1] [--out elfs/reduce]

Sizes are in 32x32 tiles.  Writes in.npy and one file for each operation and dimension, float32,
row-major matrices; all values that bf16 holds exactly.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent

EXACT = 256  # bf16 holds every integer up to here
AXES = {"row": 1, "column": 0, "scalar": None}


def integers(m: int, n: int, seed: int) -> NDArray[np.int64]:
    """Integers of shape (32 * m, 32 * n), -1 to 1, so that sums stay small."""
    return np.random.default_rng(seed).integers(-1, 2, (32 * m, 32 * n))


def reduced(values: NDArray[np.int64], op: str, dim: str) -> NDArray[np.float64]:
    """Output tiles of `op` (sum, max, mean) over `dim`; ValueError if bf16 cannot hold them.

    Row: (32 * m, 32), results in column 0; column: (32, 32 * n), in row 0; scalar: (32, 32).
    """
    rows, columns = values.shape
    shape = {"row": (rows, 32), "column": (32, columns), "scalar": (32, 32)}[dim]
    result = np.asarray({"sum": np.sum, "max": np.max, "mean": np.mean}[op](values, axis=AXES[dim]))
    total = np.abs(values.sum(axis=AXES[dim]))
    if op != "max" and total.max() > EXACT:
        raise ValueError(f"a sum reaches {total.max()}, more than {EXACT}: use fewer tiles")
    out = np.zeros(shape)
    out[:, 0] = result if dim == "row" else 0
    out[0, :] = result if dim == "column" else out[0, :]
    out[0, 0] = result if dim == "scalar" else out[0, 0]
    return out


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--m", type=int, default=2)
    parser.add_argument("--n", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "elfs/reduce")
    arguments = parser.parse_args()
    values = integers(arguments.m, arguments.n, arguments.seed)
    np.save(arguments.out / "in.npy", values.astype(np.float32))
    for dim in AXES:
        for op in ("sum", "max", "mean"):
            out = reduced(values, op, dim).astype(np.float32)
            np.save(arguments.out / f"{op}_{dim}.npy", out)


if __name__ == "__main__":
    main()
