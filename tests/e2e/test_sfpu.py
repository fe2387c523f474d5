"""The sfpu kernel: exact operations against numpy bit for bit, the others in ULP against float64.

Inputs cover the useful domain of each operation.  Where an intermediate result would be denormal
the vector unit has zero (SFPMAD, Blackhole ISA), so that accuracy ends there.
"""

import itertools
import os
import re
import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest
from sfpu_kernel import ELFS, IN, OPS, OUT, Words, bits, run, start

from bhemu.errors import Assert

Floats = npt.NDArray[np.float64]
N = 4096
SIGMOID_SCALE = 2 * np.sqrt(2 / np.pi)


def ulps(got: Words, exact: Floats) -> Floats:
    """Distance of fp32 patterns from exact values, in units of the last place of the exact one."""
    values = got.view(np.float32).astype(np.float64)
    spacing = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-126))) - 23)
    return np.abs(values - exact) / spacing


def sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def gelu(x: Floats) -> Floats:
    return x * sigmoid(SIGMOID_SCALE * (x + 0.044715 * x**3))


def linear(low: float, high: float) -> npt.NDArray[np.float32]:
    """N values between both, evenly and at random, the ends included."""
    even, rng = np.linspace(low, high, N // 2), np.random.default_rng(5)
    return np.concatenate([even, rng.uniform(low, high, N // 2)]).astype(np.float32)


def scales(low: float, high: float) -> npt.NDArray[np.float32]:
    """N positive values of all magnitudes between both."""
    return np.exp(linear(np.log(low), np.log(high)).astype(np.float64)).astype(np.float32)


# operation, inputs, exact function, most ULP, most mean ULP
ACCURACY = [
    ("exp", linear(-87, 88), np.exp, 1.0, 0.3),
    ("exp", linear(-1, 1), np.exp, 1.0, 0.3),
    ("log", scales(1e-37, 1e38), np.log, 1.0, 0.3),
    ("log", linear(0.5, 2), np.log, 1.0, 0.3),
    ("reciprocal", scales(1e-37, 1e30), np.reciprocal, 1.0, 0.3),
    ("reciprocal", -scales(1e-37, 1e30), np.reciprocal, 1.0, 0.3),
    ("sqrt", scales(1e-28, 3e38), np.sqrt, 1.0, 0.3),
    ("sigmoid", linear(-60, 60), sigmoid, 3.0, 0.5),
    ("tanh", linear(-10, 10), np.tanh, 4.0, 0.7),
    ("tanh", linear(-0.6, 0.6), np.tanh, 3.0, 0.5),
    ("gelu", linear(-3, 8), gelu, 4.0, 0.5),
    ("gelu", linear(-8, -3), gelu, 18.0, 2.5),
    ("approx_reciprocal", scales(1e-37, 8e37), np.reciprocal, 0.0056 * 2**24, 2.0**16),
]


@pytest.mark.parametrize(("name", "x", "exact", "most", "mean"), ACCURACY)
def test_accuracy(
    name: str, x: npt.NDArray[np.float32], exact: np.ufunc, most: float, mean: float
) -> None:
    error = ulps(run(name, x), exact(x.astype(np.float64)))
    print(f"{name} on {x.min():g} to {x.max():g}: {error.max():.3g} ULP, mean {error.mean():.3g}")
    assert error.max() <= most
    assert error.mean() <= mean
    assert error.max() > 0


def test_ends_of_exp() -> None:
    """Saturated at 88.72 and -87.3: no infinity, no denormal."""
    x = np.zeros(1024, np.float32)
    x[:4] = 89, 1e30, -88, -np.inf
    got = run("exp", x).view(np.float32)
    assert got[0] == got[1] > 3.3e38
    assert got[2] == got[3] < 1.3e-38
    assert got[4] == 1.0


def test_ends_of_gelu() -> None:
    """The correction of the argument makes no infinity and no NaN of a finite input."""
    x = np.zeros(1024, np.float32)
    x[:8] = 12, 100, 1e20, 3e38, -12, -100, -1e20, -3e38
    got = run("gelu", x).view(np.float32)
    assert np.array_equal(got[:4], x[:4])
    assert np.all(np.abs(got[4:7]) < 1e-16)
    assert np.all(np.isfinite(got))


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 6.0, 6.5, -6.5, 1e38, -1e38, np.inf, -np.inf)


def values() -> npt.NDArray[np.float32]:
    """Numbers of both signs, zeros, infinities; no denormals, no NaN."""
    rng = np.random.default_rng(9)
    x = (rng.standard_normal(2048) * np.exp(rng.uniform(-20, 20, 2048))).astype(np.float32)
    x[: len(SPECIAL)] = SPECIAL
    return x


def pattern(x: npt.NDArray[np.generic]) -> Words:
    return x.astype(np.float32).view(np.uint32)


def integers() -> npt.NDArray[np.int32]:
    rng = np.random.default_rng(4)
    x = rng.integers(-(1 << 31), 1 << 31, 2048).astype(np.int32) >> rng.integers(0, 31, 2048)
    x[:9] = 0, 1, -1, 2**31 - 1, -(2**31), 2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 64
    return x.astype(np.int32)


def test_relu() -> None:
    x = values()
    assert np.array_equal(run("relu", x), pattern(np.where(np.signbit(x), np.float32(0), x)))


def test_clamp() -> None:
    """relu6 is the clamp between 0 and 6."""
    x = values()
    x[1] = 0.0  # which of two equal zeros SFPSWAP keeps is another test's matter
    for low, high in ((0.0, 6.0), (-1.5, 2.25)):
        got = run("clamp", x, p0=low, p1=high)
        assert np.array_equal(got, pattern(np.clip(x, np.float32(low), np.float32(high))))


def test_leaky() -> None:
    """A product with a power of two is exact; -0 becomes +0, because SFPMUL adds +0."""
    x = values()
    want = np.where(np.signbit(x), x * np.float32(0.125) + np.float32(0), x)
    want[np.abs(want) < 2.0**-126] = 0
    assert np.array_equal(run("leaky", x, p0=0.125), pattern(want))


@pytest.mark.parametrize(
    ("name", "compare"),
    [
        *(("eq", np.equal), ("ne", np.not_equal), ("lt", np.less)),
        *(("gt", np.greater), ("le", np.less_equal), ("ge", np.greater_equal)),
    ],
)
def test_comparisons_with_zero(name: str, compare: np.ufunc) -> None:
    x = values()
    assert np.array_equal(run(name, x), pattern(compare(x, 0)))


def test_denormals_compare_as_zero() -> None:
    x = np.full(1024, 0x00012345, np.uint32)
    x[::2] |= 0x80000000
    for name, answer in (("eq", 1.0), ("ne", 0.0), ("lt", 0.0), ("gt", 0.0)):
        assert (run(name, x) == bits(answer)).all()


@pytest.mark.parametrize("macro", [0, 1])
def test_where(macro: int) -> None:
    """Any patterns at all; only all zeros is false."""
    rng = np.random.default_rng(7)
    a, b, c = (rng.integers(0, 1 << 32, 2048, dtype=np.uint32) for _ in range(3))
    a[rng.random(2048) < 0.5] = 0
    assert np.array_equal(run("where", a, b, c, macro=macro), np.where(a != 0, b, c))


@pytest.mark.parametrize(("name", "function"), [("max", np.maximum), ("min", np.minimum)])
def test_extrema(name: str, function: np.ufunc) -> None:
    a, b = values(), values()[::-1].copy()
    assert np.array_equal(run(name, a, b), pattern(function(a, b)))


def test_integer_sums_wrap() -> None:
    a, b = integers(), integers()[::-1].copy()
    want = (a.astype(np.int64) + b).astype(np.int32)
    assert np.array_equal(run("add_int32", a, b).view(np.int32), want)


def test_shifts() -> None:
    a, by = integers(), np.tile(np.arange(-31, 33, dtype=np.int32) % 64 - 32, 32)
    by = np.where(by == -32, -31, by).astype(np.int32)
    left = (a.astype(np.int64) << np.maximum(by, 0)).astype(np.int32)
    want = np.where(by >= 0, left, a >> np.maximum(-by, 0))
    assert np.array_equal(run("shift", a, by).view(np.int32), want)


def test_fp32_to_int32() -> None:
    x = values()
    x[12:20] = 2.0**31, -(2.0**31), 2.0**31 - 128, 0.99999994, -0.99999994, 3e9, -3e9, 12345.75
    inside = np.abs(x) < 2.0**31
    want = np.where(inside, np.trunc(np.where(inside, x, 0)), -(2.0**31)).astype(np.int32)
    assert np.array_equal(run("fp32_to_int32", x).view(np.int32), want)


def test_int32_to_fp32() -> None:
    x = integers()
    assert np.array_equal(run("int32_to_fp32", x), pattern(x))


def test_fp32_to_bf16() -> None:
    """Nearest: ties away from zero by SFPSTOCHRND, to even by integer sums."""
    x = values().view(np.uint32)
    x[12:2048:3] = x[12:2048:3] & 0xFFFF0000 | 0x8000
    finite = np.isfinite(x.view(np.float32))
    away = np.where(finite, x + np.uint32(0x8000), x) & np.uint32(0xFFFF0000)
    away[1] = 0  # SFPSTOCHRND drops the sign of zero
    assert np.array_equal(run("fp32_to_bf16", x), away)
    even = (x + np.uint32(0x7FFF) + (x >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
    assert np.array_equal(run("fp32_to_bf16_rne", x), even)


@pytest.mark.parametrize("macro", [0, 1])
def test_fp32_to_uint16(macro: int) -> None:
    x = values()
    x[12:18] = 65535.4, 65535.5, 1e6, 0.5, 0.49999997, 2.5
    want = np.floor(np.clip(x.astype(np.float64), 0, 65535) + 0.5).astype(np.uint32)
    assert np.array_equal(run("fp32_to_uint16", x, macro=macro), np.minimum(want, 65535))


SCHEDULES = [(1, 1), (3, 33), (8, 1000)]
if os.environ.get("BHEMU_LONG"):
    SCHEDULES = [*itertools.product((1, 3, 8), (1, 33, 1000))]


@pytest.mark.parametrize(("tiles", "quantum"), SCHEDULES)
def test_macros_give_what_single_instructions_give(tiles: int, quantum: int) -> None:
    """The same for any schedule: the stores arrive however the words are pushed."""
    x = np.random.default_rng(tiles).standard_normal(1024 * tiles).astype(np.float32)
    plain = run("approx_reciprocal", x)
    assert np.array_equal(run("approx_reciprocal", x, macro=1, quantum=quantum), plain)
    parts = run("where", x, plain, x[::-1].copy(), macro=1, quantum=quantum)
    assert np.array_equal(parts, run("where", x, plain, x[::-1].copy()))


def test_no_tiles() -> None:
    assert run("exp", np.zeros(0, np.float32)).size == 0


@pytest.mark.parametrize(
    ("op", "macro", "address"),
    [
        (len(OPS), 0, IN[0]),
        (0, 2, IN[0]),
        (0, 0, IN[0] + 8),
        (0, 0, OUT),
        (0, 1, IN[0]),  # exp has no form with macros
    ],
)
def test_a_bad_argument_stops_on_ebreak(op: int, macro: int, address: int) -> None:
    tile = start(op, [1, macro, 0, 0], [np.zeros(1024, np.uint32)])
    args = tile.core["trisc1"].images[0].address("runtime_args")
    tile.write32(args + 16, address)
    with pytest.raises(Assert):
        tile.run([(0x100, 0xD0E0)], timeout_s=60)


def test_the_command_prints_a_checked_answer() -> None:
    command = [sys.executable, "-m", "bhemu", "run", str(ELFS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2048 of 2048" in done.stdout


def test_the_data_is_what_the_script_makes() -> None:
    x, exact = np.load(ELFS / "in.npy"), np.load(ELFS / "exp64.npy")
    drawn = np.random.default_rng(1).uniform(-20, 20, (64, 32)).astype(np.float32)
    assert np.array_equal(x, drawn)
    again = np.exp(x.astype(np.float64))  # its last bit depends on the processor
    assert (np.abs(again - exact) <= np.spacing(exact)).all()
    assert np.array_equal(np.load(ELFS / "exp.npy"), exact.astype(np.float32))


def test_the_names_of_the_operations() -> None:
    """sfpu_kernel.OPS is the enumeration of firmware/sfpu/args.h."""
    text = (ELFS.parents[1] / "firmware/sfpu/args.h").read_text()
    assert tuple(n.lower() for n in re.findall(r"^    OP_(\w+)", text, re.M)) == OPS
