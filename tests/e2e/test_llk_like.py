"""Kernels in the manner of tt-llk's families, under its harness, against independent references.

Expected values are computed with numpy from the operation's definition; operands are chosen so that
every intermediate result is exact in the formats in force.
"""

import numpy as np
import pytest
from llk_runner import ADD, COPY, MUL, SUB, UNPACK_A, UNPACK_AB, loaded, params, run

from bhemu import tensor

TILE = (32, 32)
RNG = np.random.default_rng(7)


def small(lo: int = -16, hi: int = 16) -> np.ndarray:
    """A tile of integers, exact in every float format here."""
    return RNG.integers(lo, hi + 1, TILE).astype(np.float32)


def decoded(data: bytes, dtype: str) -> np.ndarray:
    return tensor.decode(data, TILE, dtype)


def family(dtype: str) -> str:
    """The 16-bit format of Dst that goes with a source format."""
    return "fp16" if dtype == "fp16" else "bf16"


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
