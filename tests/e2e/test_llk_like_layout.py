"""Blocks of tiles side by side, to and from row-major order, in the ways of the llk-like kernels.

Pack-untilize writes a row of every tile of the block in turn, dense where two tiles of two faces
share the packer's four interfaces; the fast kinds move up to four tiles at a time. Every datum of
every layout is the operand's own, so results are compared as bytes.
"""

import numpy as np
import pytest
from llk_runner import (
    COPY_BLOCK,
    FAST_TILIZE,
    FAST_UNTILIZE,
    PACK_BLOCK_DENSE,
    PACK_BLOCK_UNTILIZE,
    PACK_FAST_TILIZE,
    PACK_FAST_UNTILIZE,
    UNPACK_A,
    UNPACK_A_ONLY,
    UNPACK_FAST_TILIZE,
    loaded,
    params,
    run,
)

from bhemu.program import tensor

RNG = np.random.default_rng(13)


def block(width: int, faces: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two blocks as tiles (block, tile, face, row, column) and as matrices (block, row, column)."""
    tiles = RNG.integers(-16, 17, (2, width, faces, rows, 16)).astype(np.float32)
    if faces < 4:
        return tiles, tiles.transpose(0, 3, 1, 2, 4).reshape(2, rows, -1)
    pairs = tiles.reshape(2, width, 2, 2, rows, 16)
    return tiles, pairs.transpose(0, 2, 4, 1, 3, 5).reshape(2, 2 * rows, -1)


@pytest.mark.parametrize("width", [1, 2, 3, 8])
@pytest.mark.parametrize(("faces", "rows"), [(4, 16), (2, 16), (1, 16), (2, 4), (1, 1)])
@pytest.mark.parametrize(
    ("into", "out"), [("bf16", "bf16"), ("fp16", "fp16"), ("bf16", "fp32"), ("uint16", "uint16")]
)
def test_pack_untilize(into: str, out: str, faces: int, rows: int, width: int) -> None:
    """One or two interfaces; a row of the block ends the packer's tile, then L1_Dest_addr moves."""
    tiles, matrix = block(width, faces, rows)
    tiles, matrix = (np.abs(m) if into == "uint16" else m for m in (tiles, matrix))
    more = _sizes(tiles, into, out)
    kind = {"unpack": UNPACK_A, "math": COPY_BLOCK, "pack": PACK_BLOCK_UNTILIZE, "tiles": 2}
    chosen = params(kind, into, into, into, out, inner=width, width=width, **more)
    got = run(loaded(), chosen, tensor.encode(tiles, into, "raw"))
    assert got == tensor.encode(matrix, out, "raw")


@pytest.mark.parametrize("width", [2, 4, 8])
@pytest.mark.parametrize("out", ["bf16", "fp32"])
def test_pack_untilize_dense(out: str, width: int) -> None:
    """Four interfaces read a row of two tiles of two faces each."""
    tiles, matrix = block(width, 2, 16)
    more = _sizes(tiles, "bf16", out)
    kind = {"unpack": UNPACK_A, "math": COPY_BLOCK, "pack": PACK_BLOCK_DENSE, "tiles": 2}
    chosen = params(kind, "bf16", "bf16", "bf16", out, inner=width, width=width, **more)
    got = run(loaded(), chosen, tensor.encode(tiles, "bf16", "raw"))
    assert got == tensor.encode(matrix, out, "raw")


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("into", "src", "out"),
    [
        ("bf16", "bf16", "bf16"),
        ("bf16", "bf16", "bfp8"),
        ("fp16", "fp16", "fp16"),
        ("fp32", "bf16", "bf16"),
    ],
)
def test_fast_tilize(into: str, src: str, out: str, width: int) -> None:
    """A row of the block per UNPACR, eight of them per bank of SrcA; strided reads make faces."""
    matrix = RNG.integers(-16, 17, (2, 32, 32 * width)).astype(np.float32)
    kind = {"unpack": UNPACK_FAST_TILIZE, "math": FAST_TILIZE, "pack": PACK_FAST_TILIZE, "tiles": 2}
    more = {"in_bytes": matrix[0].size * (4 if into == "fp32" else 2), "width": width}
    got = run(
        loaded(), params(kind, into, src, src, out, **more), tensor.encode(matrix, into, "raw")
    )
    assert got == b"".join(tensor.encode(half, out) for half in matrix)


@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize(
    ("into", "src", "dst", "out", "dst32"),
    [
        ("bf16", "bf16", "bf16", "bf16", 0),
        ("bfp8", "bfp8", "bf16", "bf16", 0),
        ("fp16", "fp16", "fp16", "fp16", 0),
        ("bf16", "bf16", "fp32", "fp32", 1),
        ("fp32", "tf32", "fp32", "fp32", 1),
    ],
)
def test_fast_untilize(into: str, src: str, dst: str, out: str, dst32: int, width: int) -> None:
    """Upper faces in one strip of Dst, lower ones in another; 64 datums per PACR, a tail of 32."""
    matrix = RNG.integers(-16, 17, (2, 32, 32 * width)).astype(np.float32)
    # 32-bit Dst is filled by sums with SrcB, which the other unpacking leaves alone.
    unpack = UNPACK_A if dst32 else UNPACK_A_ONLY
    kind = {"unpack": unpack, "math": FAST_UNTILIZE, "pack": PACK_FAST_UNTILIZE, "tiles": 2}
    chosen = params(kind, into, src, dst, out, inner=width, width=width, dst32=dst32)
    got = run(loaded(), chosen, b"".join(tensor.encode(half, into) for half in matrix))
    assert got == tensor.encode(matrix, out, "raw")


def _sizes(tiles: np.ndarray, into: str, out: str) -> dict[str, int]:
    shape = tiles.shape[2:]
    return {
        "faces": shape[0],
        "face_rows": shape[1],
        "in_bytes": tensor.encoded_size(shape, into, "raw"),
        "out_bytes": tensor.encoded_size(shape, out, "raw"),
    }
