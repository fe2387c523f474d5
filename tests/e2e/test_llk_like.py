"""Kernels in the manner of tt-llk's families, under its harness, against independent references.

Expected values are computed with numpy from the operation's definition; operands are chosen so that
every intermediate result is exact in the formats in force.
"""

from collections.abc import Callable

import numpy as np
import pytest
from llk_runner import (
    ADD,
    COPY,
    COPY_TWO,
    MATMUL,
    MUL,
    NOTHING,
    PACK_UNTILIZE,
    REDUCE,
    SFPU_ABS,
    SFPU_ADD_TWO,
    SFPU_MAX_TWO,
    SFPU_MUL_TWO,
    SFPU_NEGATE,
    SFPU_SQUARE,
    SFPU_UINT16_TO_BF16,
    SFPU_WHERE_TWO,
    SUB,
    TRANSPOSE,
    UNPACK_A,
    UNPACK_A_EXCHANGED,
    UNPACK_A_THEN_B,
    UNPACK_A_TRANSPOSED,
    UNPACK_AB,
    UNPACK_REDUCE,
    UNPACK_TILIZE,
    UNPACK_TO_DST,
    UNPACK_UNTILIZE,
    loaded,
    params,
    run,
)
from llk_runner import TILIZE as MATH_TILIZE

from bhemu.program import tensor

TILE = (32, 32)
RNG = np.random.default_rng(7)


def small(lo: int = -16, hi: int = 16) -> np.ndarray:
    """A tile of integers, exact in every float format here."""
    return RNG.integers(lo, hi + 1, TILE).astype(np.float32)


def decoded(data: bytes, dtype: str) -> np.ndarray:
    return tensor.decode(data, TILE, dtype)


def family(dtype: str) -> str:
    """The 16-bit format of Dst that goes with a source format."""
    return "fp16" if dtype in ("fp16", "bfp8a", "fp8_e5m2") else "bf16"


@pytest.mark.parametrize(
    ("into", "out"),
    [
        *[("bf16", out) for out in ("bf16", "fp32", "bfp8")],
        *[("fp16", out) for out in ("bf16", "fp16", "fp32")],
        *[(into, out) for into in ("bfp8", "bfp4") for out in ("bf16", "fp32", "bfp8")],
    ],
)
def test_datacopy(into: str, out: str) -> None:
    """Unpack A, MOVA2D, pack: values come through exactly where both formats hold them."""
    x = small(-3, 3) if into == "bfp4" else small()
    chosen = params({"unpack": UNPACK_A, "math": COPY}, into, into, family(into), out)
    got = run(loaded(), chosen, tensor.encode(x, into))
    assert np.array_equal(decoded(got, out), x)


@pytest.mark.parametrize("into", ["bf16", "fp16", "bfp8"])
@pytest.mark.parametrize("kind", ["copy", "multiply", "matmul", "pool", "vector", "untilize"])
def test_16_bit_datums_in_high_halves(into: str, kind: str) -> None:
    """With bit 11 of DBG_FEATURE_DISABLE every unit finds 16-bit Dst in high halves (Dst, ISA)."""
    kinds = {
        "copy": {"unpack": UNPACK_A, "math": COPY},
        "multiply": {"unpack": UNPACK_AB, "math": MUL, "phases": 2},
        "matmul": {"unpack": UNPACK_AB, "math": MATMUL},
        "pool": {"unpack": UNPACK_REDUCE, "math": REDUCE},
        "vector": {"unpack": UNPACK_A, "math": COPY, "sfpu": SFPU_SQUARE},
        "untilize": {"unpack": UNPACK_A, "math": COPY, "pack": PACK_UNTILIZE},
    }
    dst = family(into)
    chosen = params(kinds[kind], into, into, dst, dst)
    a, b = (tensor.encode(small(-3, 3), into) for _ in range(2))
    plain, halves = loaded(), loaded()
    halves.write32(0xFFB12068, 1 << 11)
    want = run(plain, chosen, a, b)
    assert run(halves, chosen, a, b) == want
    assert not np.array_equal(halves.state.dst, plain.state.dst)


@pytest.mark.parametrize(
    ("op", "phases"), [(ADD, 1), (SUB, 1), *((MUL, phases) for phases in (1, 2, 3, 4))]
)
@pytest.mark.parametrize("into", ["bf16", "fp16", "bfp8"])
def test_eltwise_binary(op: int, into: str, phases: int) -> None:
    a, b, dst = small(-7, 7), small(-7, 7), family(into)
    kind = {"unpack": UNPACK_AB, "math": op, "phases": phases}
    chosen = params(kind, into, into, dst, dst)
    got = run(loaded(), chosen, tensor.encode(a, into), tensor.encode(b, into))
    want = {ADD: a + b, SUB: a - b, MUL: a * b}[op]
    assert np.array_equal(decoded(got, dst), want)


@pytest.mark.parametrize("broadcast", [1, 2, 3])
@pytest.mark.parametrize("op", [ADD, SUB, MUL])
@pytest.mark.parametrize(
    ("into", "src", "dst"),
    [
        ("bf16", "bf16", "bf16"),
        ("fp16", "fp16", "fp16"),
        ("bfp8", "bfp8", "bf16"),
        ("bfp4", "bfp8", "bf16"),
        ("fp8_e5m2", "fp8_e5m2", "fp16"),
        ("fp32", "tf32", "fp32"),
        ("int8", "int8", "int32"),
    ],
)
def test_broadcast(into: str, src: str, dst: str, op: int, broadcast: int) -> None:
    """Datum 0 of each row of a face of B, row 0 of each eight rows, or both (ELWADD, ISA)."""
    a, b = small(-3, 3), small(-3, 3)
    wide = int(dst in ("fp32", "int32"))
    kind = {"unpack": UNPACK_AB, "math": op, "phases": 4 if op == MUL else 1}
    more = {"dst32": wide, "int8": int(into == "int8"), "broadcast": broadcast}
    chosen = params(kind, into, src, dst, dst, **more)
    got = run(loaded(), chosen, tensor.encode(a, into), tensor.encode(b, into))
    blocks = b.reshape(4, 8, 2, 16)
    blocks = blocks[..., :1] if broadcast & 1 else blocks
    blocks = blocks[:, :1] if broadcast & 2 else blocks
    spread = np.broadcast_to(blocks, (4, 8, 2, 16)).reshape(TILE)
    want = {ADD: a + spread, SUB: a - spread, MUL: a * spread}[op]
    assert np.array_equal(decoded(got, dst), want)


@pytest.mark.parametrize("phases", [1, 4])
@pytest.mark.parametrize(("into", "dst32"), [("bf16", 0), ("bf16", 1), ("fp16", 0), ("bfp8", 0)])
def test_matmul(into: str, dst32: int, phases: int) -> None:
    """Two output tiles, three products each: SrcA takes B, SrcB takes A (MVMUL, Blackhole ISA)."""
    a, b = RNG.integers(-2, 3, (2, 3, 32, 32)), RNG.integers(-2, 3, (2, 3, 32, 32))
    want = np.einsum("tkij,tkjl->til", a, b)
    dst = "fp32" if dst32 else family(into)
    kind = {"unpack": UNPACK_AB, "math": MATMUL, "phases": phases, "tiles": 2, "inner": 3}
    chosen = params(kind, into, into, dst, "fp32" if dst32 else dst, dst32=dst32)
    pile = [tensor.encode(m.reshape(192, 32).astype(np.float32), into) for m in (b, a)]
    got = run(loaded(), chosen, *pile)
    size = chosen.out_bytes
    for i in range(2):
        tile = decoded(got[i * size : (i + 1) * size], "fp32" if dst32 else dst)
        assert np.array_equal(tile, want[i])


@pytest.mark.parametrize("into", ["bf16", "fp16"])
def test_transposed(into: str) -> None:
    """Faces 0 2 1 3, each transposed on the way to SrcA (Haloize_mode)."""
    x = small()
    chosen = params({"unpack": UNPACK_A_TRANSPOSED, "math": COPY}, into, into, into, into)
    assert np.array_equal(decoded(run(loaded(), chosen, tensor.encode(x, into)), into), x.T)


@pytest.mark.parametrize("into", ["bf16", "fp16"])
def test_tilize(into: str) -> None:
    """32 row-major rows of 32 datums become four faces."""
    x = small()
    chosen = params({"unpack": UNPACK_TILIZE, "math": MATH_TILIZE}, into, into, into, into)
    assert np.array_equal(decoded(run(loaded(), chosen, tensor.encode(x, into, "rows")), into), x)


@pytest.mark.parametrize("into", ["bf16", "fp16", "bfp8"])
def test_untilize_row_by_row(into: str) -> None:
    """Bursts over the boundary of 16 rows of SrcA, of which only the first row is read."""
    x, out = small(), family(into)
    chosen = params({"unpack": UNPACK_UNTILIZE, "math": COPY}, into, into, out, out, tiles=2)
    y = small()
    got = run(loaded(), chosen, tensor.encode(x, into) + tensor.encode(y, into))
    for i, tile in enumerate((x, y)):
        rows = got[i * chosen.out_bytes : (i + 1) * chosen.out_bytes]
        assert np.array_equal(tensor.decode(rows, TILE, out, "rows"), tile)


@pytest.mark.parametrize(("into", "out"), [("bf16", "bf16"), ("fp16", "fp16"), ("bf16", "fp32")])
def test_pack_untilize(into: str, out: str) -> None:
    """Four faces become row-major rows (strided access of the packer)."""
    x = small()
    kind = {"unpack": UNPACK_A, "math": COPY, "pack": PACK_UNTILIZE}
    got = run(loaded(), params(kind, into, into, into, out), tensor.encode(x, into))
    assert np.array_equal(tensor.decode(got, TILE, out, "rows"), x)


@pytest.mark.parametrize("into", ["bf16", "fp16"])
def test_unpack_untilize(into: str) -> None:
    """A tile read as row-major rows and packed as faces, then the other way round."""
    x = small()
    one = params({"unpack": UNPACK_TILIZE, "math": MATH_TILIZE}, into, into, into, into)
    tiled = run(loaded(), one, tensor.encode(x, into, "rows"))
    two = params({"unpack": UNPACK_A, "math": COPY, "pack": PACK_UNTILIZE}, into, into, into, into)
    assert run(loaded(), two, tiled) == tensor.encode(x, into, "rows")


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (SFPU_ABS, np.abs),
        (SFPU_NEGATE, np.negative),
        (SFPU_SQUARE, np.square),
    ],
)
@pytest.mark.parametrize("into", ["bf16", "fp16"])
def test_sfpu_unary(into: str, op: int, function: Callable[[np.ndarray], np.ndarray]) -> None:
    x = small(1, 15) * np.where(RNG.integers(0, 2, TILE) == 1, 1, -1)
    chosen = params({"unpack": UNPACK_A, "math": COPY, "sfpu": op}, into, into, into, into)
    got = decoded(run(loaded(), chosen, tensor.encode(x.astype(np.float32), into)), into)
    assert np.array_equal(got, function(x))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("into", "maximum"),
    [
        ("bf16", 0),
        ("fp16", 0),
        ("bfp8", 0),
        ("bf16", 4),
        ("fp16", 4),
        ("bfp8a", 4),
        ("fp8_e5m2", 4),
    ],
)
def test_reduce(into: str, maximum: int, axis: int) -> None:
    """Columns or rows into row 0 of the upper faces: GAPOOL with a scaler of 1, GMPOOL."""
    x = np.abs(small(1, 4))
    ones = tensor.encode(np.ones(TILE, np.float32), into)
    kind = {"unpack": UNPACK_REDUCE, "math": REDUCE, "reduce": axis | maximum}
    dst = family(into)
    got = decoded(
        run(loaded(), params(kind, into, into, dst, dst), tensor.encode(x, into), ones), dst
    )
    assert np.array_equal(got[0], x.max(axis) if maximum else x.sum(axis))


@pytest.mark.parametrize("out", ["fp32", "bf16", "bfp8"])
def test_typecast_by_the_packer(out: str) -> None:
    """fp32 in L1, tf32 in SrcA, 32-bit Dst, packed to another format: integers survive all."""
    x, dst = small(), "bf16" if out == "bf16" else "fp32"
    chosen = params({"unpack": UNPACK_A, "math": COPY}, "fp32", "tf32", dst, out, dst32=1)
    assert np.array_equal(decoded(run(loaded(), chosen, tensor.encode(x, "fp32")), out), x)


def test_maximum_of_int8() -> None:
    """Columns of 8-bit integers into 32-bit Dst; a scale of 1 is any number but 0 (GMPOOL, ISA)."""
    x = RNG.integers(-127, 128, TILE)
    kind = {"unpack": UNPACK_REDUCE, "math": REDUCE, "reduce": 4}
    chosen = params(kind, "int8", "int8", "int32", "int32", dst32=1, int8=1)
    ones = tensor.encode(np.ones(TILE, int), "int8")
    got = decoded(run(loaded(), chosen, tensor.encode(x, "int8"), ones), "int32")
    assert np.array_equal(got[0], x.max(0))


def test_typecast_by_the_vector_unit() -> None:
    """uint16 through SrcA and Dst as raw bits, SFPCAST to fp32, stored as bf16."""
    x = RNG.integers(0, 257, TILE)
    kind = {"unpack": UNPACK_A, "math": COPY, "sfpu": SFPU_UINT16_TO_BF16}
    got = run(
        loaded(), params(kind, "uint16", "uint16", "bf16", "bf16"), tensor.encode(x, "uint16")
    )
    assert np.array_equal(decoded(got, "bf16"), x)


@pytest.mark.parametrize("into", ["bf16", "fp16"])
def test_sums_in_dst(into: str) -> None:
    """dest_accum_en: three pairs of tiles add up to one, in two output tiles."""
    a, b = RNG.integers(-7, 8, (2, 2, 3, 32, 32)).astype(np.float32)
    for op, sign in ((ADD, 1), (SUB, -1)):
        kind = {"unpack": UNPACK_AB, "math": op, "tiles": 2, "inner": 3, "accumulate": 1}
        chosen = params(kind, into, into, into, into)
        pile = [tensor.encode(m.reshape(192, 32), into) for m in (a, b)]
        got = run(loaded(), chosen, *pile)
        for i in range(2):
            tile = decoded(got[i * chosen.out_bytes : (i + 1) * chosen.out_bytes], into)
            assert np.array_equal(tile, (a[i] + sign * b[i]).sum(0))


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (SFPU_ADD_TWO, np.add),
        (SFPU_MUL_TWO, np.multiply),
        (SFPU_MAX_TWO, np.maximum),
        (SFPU_WHERE_TWO, lambda a, b: np.where(np.signbit(a), b, a)),
    ],
)
@pytest.mark.parametrize(
    ("into", "src"), [("bf16", "bf16"), ("fp16", "fp16"), ("bfp8", "bfp8"), ("fp32", "tf32")]
)
def test_sfpu_binary(
    into: str, src: str, op: int, function: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> None:
    """Two tiles of Dst, one behind the other, become one."""
    a, b = small(-7, 7), small(-7, 7)
    dst = "fp32" if into == "fp32" else family(into)
    kind = {"unpack": UNPACK_A_THEN_B, "math": COPY_TWO, "sfpu": op}
    chosen = params(kind, into, src, dst, dst, dst32=int(dst == "fp32"))
    got = run(loaded(), chosen, tensor.encode(a, into), tensor.encode(b, into))
    assert np.array_equal(decoded(got, dst), function(a, b))


@pytest.mark.parametrize("into", ["bf16", "fp16", "bfp8"])
def test_transposed_in_dst(into: str) -> None:
    """Faces 0 2 1 3, each transposed by MOVD2B, TRNSPSRCB and MOVB2D."""
    x, dst = small(), family(into)
    chosen = params({"unpack": UNPACK_A_EXCHANGED, "math": TRANSPOSE}, into, into, dst, dst)
    assert np.array_equal(decoded(run(loaded(), chosen, tensor.encode(x, into)), dst), x.T)


@pytest.mark.parametrize("dtype", ["fp32", "int32"])
def test_32_bit_datums_by_way_of_dst_alone(dtype: str) -> None:
    """The unpacker writes Dst; every bit comes through."""
    x = RNG.integers(-(1 << 30), 1 << 30, TILE)
    if dtype == "fp32":
        x = (x / 3).astype(np.float32)
    kind = {"unpack": UNPACK_TO_DST, "math": NOTHING}
    chosen = params(kind, dtype, dtype, dtype, dtype, dst32=1)
    data = tensor.encode(x, dtype)
    assert run(loaded(), chosen, data) == data


@pytest.mark.parametrize("out", ["bf16", "fp32"])
def test_sums_in_l1(out: str) -> None:
    """Four output tiles are added to one another by the packer."""
    x = RNG.integers(-16, 17, (4, 32, 32)).astype(np.float32)
    kind = {"unpack": UNPACK_A, "math": COPY, "tiles": 4, "l1_acc": 1}
    chosen = params(kind, "bf16", "bf16", "bf16", out)
    got = run(loaded(), chosen, tensor.encode(x.reshape(128, 32), "bf16"))
    assert np.array_equal(decoded(got, out), x.sum(0))


def test_int32_sums_in_l1() -> None:
    """Products of 8-bit integers, three output tiles added to one another."""
    a, b = RNG.integers(-127, 128, (2, 3, 32, 32))
    kind = {"unpack": UNPACK_AB, "math": MUL, "phases": 4, "tiles": 3, "l1_acc": 1}
    chosen = params(kind, "int8", "int8", "int32", "int32", dst32=1, int8=1)
    got = run(loaded(), chosen, *(tensor.encode(m.reshape(96, 32), "int8") for m in (a, b)))
    assert np.array_equal(decoded(got, "int32"), (a * b).sum(0))


@pytest.mark.parametrize(
    ("mode", "threshold", "function"),
    [
        (1, 0, lambda x: np.maximum(x, 0)),
        (2, 0x40A0, lambda x: np.where(x <= 5, 0, x)),
        (3, 0x40A0, lambda x: np.clip(x, 0, 5)),
    ],
)
@pytest.mark.parametrize("out", ["bf16", "fp32"])
def test_pack_relu(
    out: str, mode: int, threshold: int, function: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Zero below 0, zero up to a threshold, and between 0 and a threshold (ReLU, packers)."""
    x = small()
    kind = {"unpack": UNPACK_A, "math": COPY, "relu": mode | threshold << 16}
    got = run(loaded(), params(kind, "bf16", "bf16", "bf16", out), tensor.encode(x, "bf16"))
    assert np.array_equal(decoded(got, out), function(x))


@pytest.mark.parametrize("op", [ADD, MUL, MATMUL])
def test_int8(op: int) -> None:
    """8-bit integers, sign and magnitude, into 32-bit Dst, exactly."""
    a, b = RNG.integers(-127, 128, TILE), RNG.integers(-127, 128, TILE)
    kind = {"unpack": UNPACK_AB, "math": op, "phases": 1 if op == ADD else 4}
    chosen = params(kind, "int8", "int8", "int32", "int32", dst32=1, int8=1)
    operands = (b, a) if op == MATMUL else (a, b)
    got = run(loaded(), chosen, *(tensor.encode(m, "int8") for m in operands))
    want = {ADD: a + b, MUL: a * b, MATMUL: a @ b}[op]
    assert np.array_equal(decoded(got, "int32"), want)


@pytest.mark.parametrize("dtype", ["uint16", "fp8_e5m2", "bfp8a", "bfp4a", "bfp2a", "bfp2"])
def test_datacopy_of_rarer_formats(dtype: str) -> None:
    """What the format holds comes back, byte for byte."""
    dst = {"uint16": "uint16", "bfp2": "bf16"}.get(dtype, "fp16")
    x = RNG.integers(0, 1 << 16, TILE) if dtype == "uint16" else small(-1, 1)
    data = tensor.encode(x, dtype)
    chosen = params({"unpack": UNPACK_A, "math": COPY}, dtype, dtype, dst, dtype)
    assert run(loaded(), chosen, data) == data
