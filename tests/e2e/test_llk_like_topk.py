"""Top-k by the vector unit: bf16 values and their uint16 indices, sorted and merged in Dst.

The kernel is a bitonic network of SFPSWAP and SFPTRANSP in which LReg 4 to 7 follow LReg 0 to 3.
Which of several equal values comes first is the network's business: the indices must name the
values, each at most once.
"""

import numpy as np
import pytest
from llk_runner import (
    PACK_TOPK,
    SMALLEST_FIRST,
    TOPK,
    UNPACK_TOPK,
    loaded,
    params,
    run,
)

from bhemu.program import tensor

RNG = np.random.default_rng(17)
TILE = (32, 32)
K = 32


def values(kind: str, width: int) -> np.ndarray:
    """32 rows of `width` bf16 numbers."""
    shape = (32, width)
    if kind == "ties":
        return RNG.integers(-3, 4, shape).astype(np.float32)
    if kind == "signs":
        return RNG.permuted(np.resize([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf], shape), axis=1)
    patterns = RNG.permuted(np.tile(np.arange(width), (32, 1)), axis=1) * 97 % 0x7F00 + 0x80
    patterns |= RNG.integers(0, 2, shape) << 15
    return (patterns.astype(np.uint32) << np.uint32(16)).view(np.float32)


@pytest.mark.parametrize("flags", [0, SMALLEST_FIRST])
@pytest.mark.parametrize("kind", ["any", "ties", "signs"])
@pytest.mark.parametrize("tiles", [1, 2, 3, 4])
def test_topk(tiles: int, kind: str, flags: int) -> None:
    """The 32 greatest or least of each of 32 rows of up to four tiles, twice."""
    x = np.stack([values(kind, 32 * tiles) for _ in range(2)]).astype(np.float32)
    names = RNG.permuted(np.tile(np.arange(32 * tiles), (2, 32, 1)), axis=2)
    piles = [_tiles(x, "bf16"), _tiles(names, "uint16")]
    chosen = params(
        {"unpack": UNPACK_TOPK, "math": TOPK, "pack": PACK_TOPK, "tiles": 2},
        *4 * ["bf16"],
        inner=tiles,
        flags=flags,
    )
    got = run(loaded(), chosen, *piles)
    for i in range(2):
        best, at = _result(got[4096 * i : 4096 * (i + 1)])
        order = np.sort(x[i], axis=1)
        assert np.array_equal(best, order[:, :K] if flags else order[:, ::-1][:, :K])
        lookup = np.argsort(names[i], axis=1)  # column of each index
        assert np.array_equal(np.take_along_axis(x[i], np.take_along_axis(lookup, at, 1), 1), best)
        assert all(len(set(row)) == K for row in at.tolist())


def _tiles(matrices: np.ndarray, dtype: str) -> bytes:
    """Each matrix as its tiles from left to right."""
    return b"".join(
        tensor.encode(matrix[:, 32 * i : 32 * (i + 1)], dtype)
        for matrix in matrices
        for i in range(matrix.shape[1] // 32)
    )


def _result(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Values and indices by rows of the input; the kernel leaves them in columns."""
    best = tensor.decode(data[:2048], TILE, "bf16").T
    return best, tensor.decode(data[2048:], TILE, "uint16").T.astype(np.int64)
