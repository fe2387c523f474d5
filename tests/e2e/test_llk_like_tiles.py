"""Tiles of fewer faces, and of faces of fewer rows, through the llk-like kernels.

In L1 a tile is its faces one behind the other, a face of r rows r * 16 datums; in SrcA, SrcB and
Dst a face takes 16 rows whatever it has. Expected values are numpy's, operands exact.
"""

import numpy as np
import pytest
from llk_runner import (
    ADD_FACES,
    COPY,
    COPY_BY_ADD,
    MATMUL,
    MOVE_B,
    MUL_FACES,
    SUB_FACES,
    UNPACK_A,
    UNPACK_B_FACES,
    UNPACK_FACE_PAIRS,
    loaded,
    params,
    run,
)

from bhemu.program import tensor

RNG = np.random.default_rng(11)
SHAPES = [(faces, rows) for faces in (1, 2) for rows in (1, 2, 4, 8, 16)] + [(4, 8)]
# into, src, dst, out, 32-bit Dst
FORMATS = [
    ("bf16", "bf16", "bf16", "bf16", 0),
    ("fp16", "fp16", "fp16", "fp16", 0),
    ("bfp8", "bfp8", "bf16", "bfp8", 0),
    ("bfp4", "bfp8", "bf16", "bf16", 0),
    ("fp32", "tf32", "fp32", "fp32", 1),
    ("uint16", "uint16", "uint16", "uint16", 0),
]


def numbers(faces: int, rows: int, limit: int, *, signed: bool = True) -> np.ndarray:
    """Tiles of whole numbers, exact in every format here."""
    return RNG.integers(-limit if signed else 0, limit + 1, (faces, rows, 16)).astype(np.float32)


def sizes(shape: tuple[int, ...], into: str, out: str) -> dict[str, int]:
    """Parameters that follow from the shape of a tile."""
    bytes_in = tensor.encoded_size(shape, into, "raw")
    bytes_out = tensor.encoded_size(shape, out, "raw")
    names = {"faces": shape[0], "face_rows": shape[1], "in_bytes": bytes_in, "b_bytes": bytes_in}
    return names | {"out_bytes": bytes_out}


@pytest.mark.parametrize(("faces", "rows"), SHAPES)
@pytest.mark.parametrize(("into", "src", "dst", "out", "dst32"), FORMATS)
def test_datacopy(
    into: str, src: str, dst: str, out: str, dst32: int, faces: int, rows: int
) -> None:
    """One interface of the packer reads a face of one row, two read two, four read four."""
    x = numbers(faces, rows, 3, signed=into != "uint16")
    kind = {"unpack": UNPACK_A, "math": COPY_BY_ADD if dst32 else COPY}
    more = sizes(x.shape, into, out)
    got = run(loaded(), params(kind, into, src, dst, out, dst32=dst32, **more), _raw(x, into))
    assert got == _raw(x, out)


@pytest.mark.parametrize("rows", [3, 5, 7, 13, 15])
def test_any_number_of_rows(rows: int) -> None:
    """The last PACR of a face reads one to three rows (read_intf_sel 1, 3 or 7)."""
    x = numbers(2, rows, 16)
    chosen = params(
        {"unpack": UNPACK_A, "math": COPY}, *4 * ["bf16"], **sizes(x.shape, "bf16", "bf16")
    )
    assert run(loaded(), chosen, _raw(x, "bf16")) == _raw(x, "bf16")


@pytest.mark.parametrize("op", [ADD_FACES, SUB_FACES, MUL_FACES])
@pytest.mark.parametrize(("faces", "rows"), [(1, 16), (2, 16), (2, 8), (1, 4), (2, 1)])
@pytest.mark.parametrize("into", ["bf16", "fp16", "bfp8"])
def test_eltwise_binary(into: str, faces: int, rows: int, op: int) -> None:
    """Two faces at a time, three tiles."""
    a, b = (np.stack([numbers(faces, rows, 7) for _ in range(3)]) for _ in range(2))
    dst = "fp16" if into == "fp16" else "bf16"
    more = sizes(a.shape[1:], into, dst)
    kind = {"unpack": UNPACK_FACE_PAIRS, "math": op, "phases": 2 if op == MUL_FACES else 1}
    got = run(
        loaded(),
        params(kind, into, into, dst, dst, tiles=3, **more),
        *(b"".join(_raw(tile, into) for tile in m) for m in (a, b)),
    )
    want = {ADD_FACES: a + b, SUB_FACES: a - b, MUL_FACES: a * b}[op]
    assert np.array_equal(tensor.decode(got, a.shape, dst, "raw"), want)


@pytest.mark.parametrize("broadcast", [0, 1, 2, 3])
@pytest.mark.parametrize("faces", [1, 4])
@pytest.mark.parametrize(
    ("into", "src", "dst", "out", "dst32"),
    [*FORMATS, ("bf16", "bf16", "fp32", "fp32", 1), ("fp8_e5m2", "fp8_e5m2", "fp16", "fp16", 0)],
)
def test_moves_with_broadcast(
    into: str, src: str, dst: str, out: str, dst32: int, faces: int, broadcast: int
) -> None:
    """Each face of B as it is, its column 0, its row 0, or datum 0 in all places (MOVB2D, ISA)."""
    x = numbers(faces, 16, 3, signed=into != "uint16")
    kind = {"unpack": UNPACK_FACE_PAIRS, "math": MOVE_B}
    more = sizes(x.shape, into, out) | {"broadcast": broadcast, "dst32": dst32}
    other = np.zeros_like(x)
    chosen = params(kind, into, src, dst, out, **more)
    # bf16 becomes 32-bit datums of Dst for tt-llk's golden tests alone (bhemu/tensix/rules.py).
    got = run(loaded(reference="llk"), chosen, _raw(other, into), _raw(x, into))
    part = x[:, :1] if broadcast & 2 else x
    part = part[..., :1] if broadcast & 1 else part
    assert got == _raw(np.broadcast_to(part, x.shape), out)


@pytest.mark.parametrize("rows", [1, 4, 8, 16])
@pytest.mark.parametrize(("into", "dst32"), [("bf16", 0), ("bf16", 1), ("fp16", 0), ("bfp8", 0)])
def test_matmul(into: str, dst32: int, rows: int) -> None:
    """A of `rows` rows in two faces times B of 32 by 32: two output tiles, three products each."""
    a = RNG.integers(-2, 3, (2, 3, rows, 32)).astype(np.float32)
    b = RNG.integers(-2, 3, (2, 3, 32, 32)).astype(np.float32)
    want = np.einsum("tkij,tkjl->til", a, b)
    out = "fp32" if dst32 else "fp16" if into == "fp16" else "bf16"
    faces = a.reshape(6, rows, 2, 16).swapaxes(1, 2)
    more = sizes(faces.shape[1:], into, out) | {"in_bytes": tensor.encoded_size((32, 32), into)}
    kind = {"unpack": UNPACK_B_FACES, "math": MATMUL, "tiles": 2, "inner": 3}
    got = run(
        loaded(),
        params(kind, into, into, out, out, dst32=dst32, **more),
        tensor.encode(b.reshape(192, 32), into),
        b"".join(_raw(tile, into) for tile in faces),
    )
    tiles = tensor.decode(got, (2, 2, rows, 16), out, "raw")
    assert np.array_equal(tiles.swapaxes(1, 2).reshape(2, rows, 32), want)


def _raw(tile: np.ndarray, dtype: str) -> bytes:
    return tensor.encode(tile, dtype, "raw")
