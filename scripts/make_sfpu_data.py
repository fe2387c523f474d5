"""Make the input and expected output of elfs/sfpu: exponentials, by numpy in float64.

python scripts/make_sfpu_data.py [--tiles 2] [--seed 1] [--out elfs/sfpu]

Writes in.npy and exp.npy, float32 of shape (32 * tiles, 32), and exp64.npy, the same in float64 for
`bhemu numerics`.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent


def inputs(tiles: int, seed: int) -> NDArray[np.float32]:
    """Numbers between -20 and 20, shape (32 * tiles, 32)."""
    drawn = np.random.default_rng(seed).uniform(-20, 20, (32 * tiles, 32))
    return drawn.astype(np.float32)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiles", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "elfs/sfpu")
    arguments = parser.parse_args()
    x = inputs(arguments.tiles, arguments.seed)
    exact = np.exp(x.astype(np.float64))
    for name, values in {"in": x, "exp": exact.astype(np.float32), "exp64": exact}.items():
        np.save(arguments.out / f"{name}.npy", values)


if __name__ == "__main__":
    main()
