"""What each word of the vector unit adds to errors: the sfpu kernel beside float64 and numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sfpu_kernel import DONE, OPS, OUT, TILE, bits, start
from test_sfpu import gelu, linear, scales, sigmoid

from bhemu.debug.shadow import SUM, TRUE, VECTOR, Floats, Packed, Place, Shadow
from bhemu.debug.shadow.numbers import INTEGER, SIGNED
from bhemu.tensix.insn import decode, disassemble


def followed(
    name: str,
    *inputs: npt.NDArray[np.generic],
    macro: int = 0,
    p0: float = 0,
    p1: float = 0,
) -> tuple[Floats, Floats, Shadow]:
    """Numbers of the output (part, datum), what came out as uint32, and the shadow."""
    data = [np.ascontiguousarray(a).view(np.uint32).ravel() for a in inputs]
    tile = start(OPS.index(name), [data[0].size // TILE, macro, bits(p0), bits(p1)], data)
    packed = Packed(OUT, 4 * data[0].size, 32)
    shadow = Shadow(tile, [packed])
    assert tile.run(DONE, timeout_s=120).reason == "until"
    got = np.frombuffer(tile.read(OUT, 4 * data[0].size), np.uint32)
    made = packed.numbers(8 * OUT + 32 * np.arange(data[0].size))
    return made, got, shadow


def named(made: Floats, shadow: Shadow) -> dict[str, float]:
    """The root mean square of what each word adds, relative to the exact numbers."""
    relative = np.abs(made[VECTOR : VECTOR + len(shadow.words)] / made[TRUE])
    return {
        disassemble(place.word): float(np.sqrt((own**2).mean()))
        for place, own in zip(shadow.words, relative, strict=False)
    }


# What the kernel computes if nothing is rounded; how far its formula is from the function.
FORMULAS = [
    ("reciprocal", scales(1e-30, 1e30), np.reciprocal, 0.0),
    ("approx_reciprocal", scales(1e-30, 1e30), np.reciprocal, 0.0),
    ("exp", linear(-80, 80), np.exp, 2.0**-23),
    ("log", linear(2, 1000), np.log, 2.0**-22),
    ("sqrt", scales(1e-20, 1e20), np.sqrt, 2.0**-24),
    ("sigmoid", linear(-30, 30), sigmoid, 2.0**-22),
    ("tanh", linear(-9, 9), np.tanh, 2.0**-21),
    ("gelu", linear(-3, 8), gelu, 2.0**-21),
]


@pytest.mark.parametrize(("name", "x", "function", "formula"), FORMULAS)
def test_the_exact_part_is_the_function(
    name: str, x: npt.NDArray[np.float32], function: np.ufunc, formula: float
) -> None:
    """And all parts together are what came out, to the last bit."""
    made, got, _ = followed(name, x)
    exact = function(x.astype(np.float64))
    assert np.isfinite(made).all()
    off = np.abs(made[TRUE] / np.where(exact == 0, 1, exact) - 1)[exact != 0]
    assert off.max() <= max(formula, 1e-12)
    values = got.view(np.float32).astype(np.float64)
    assert np.allclose(made.sum(axis=0), values, rtol=1e-12, atol=0)
    assert np.abs(values / made[TRUE] - 1).max() > 2.0**-25, "something is rounded"


def test_an_approximation_is_named_and_newton_steps_take_its_error_away() -> None:
    x = scales(1e-20, 1e20)
    made, _, shadow = followed("approx_reciprocal", x)
    words = named(made, shadow)
    (most,) = (word for word in words if words[word] > 2.0**-12)
    assert most.startswith("SFPARECIP")
    assert 2.0**-10 < words[most] < 2.0**-8, "7 bits"
    whole, _, shadow = followed("reciprocal", x)
    words = named(whole, shadow)
    assert max(words, key=words.__getitem__).startswith("SFPMAD")
    assert max(words.values()) < 2.0**-23


@pytest.mark.parametrize(
    ("name", "word", "off"),
    [("fp32_to_bf16", "SFP_STOCH_RND", 0.0), ("fp32_to_bf16_rne", "SFPAND", 2.0**-8)],
)
def test_rounding_to_bf16_is_named(name: str, word: str, off: float) -> None:
    """The constant that is added before bits are cut off is a part of what is computed."""
    x = linear(1, 1000)
    made, got, shadow = followed(name, x)
    values = got.view(np.float32).astype(np.float64)
    assert np.allclose(made[TRUE], x.astype(np.float64), rtol=off, atol=0)
    assert np.allclose(made.sum(axis=0), values, rtol=1e-12)
    words = named(made, shadow)
    assert max(words, key=words.__getitem__).startswith(word)
    assert 2.0**-11 < max(words.values()) < 2.0**-8


def stored(monkeypatch: pytest.MonkeyPatch, name: str, *inputs: Any) -> tuple[Any, Any, Shadow]:
    """Numbers of what SFPSTORE has put into Dst for one tile, its kinds, and the shadow."""
    found: dict[int, tuple[Floats, int]] = {}
    whole = Shadow.put

    def put(self: Shadow, at: Any, kind: int, made: Floats) -> None:
        whole(self, at, kind, made)
        if len(at) == 2:  # cells, not rows
            for k, cell in enumerate(16 * at[0] + at[1]):
                found[int(cell)] = made[:, k].copy(), kind

    monkeypatch.setattr(Shadow, "put", put)
    _, _, shadow = followed(name, *inputs)
    rows = shadow.storage(0, 64, 1)
    cells = [found[int(16 * row + column)] for row in rows for column in range(16)]
    return np.stack([made for made, _ in cells], axis=1), {kind for _, kind in cells}, shadow


def test_a_float_that_becomes_an_integer_loses_what_numpy_says(monkeypatch) -> None:
    x = linear(-70000, 70000)[::4]
    made, kinds, shadow = stored(monkeypatch, "fp32_to_uint16", x)
    assert kinds == {SIGNED}
    want = np.maximum(x, 0).astype(np.float64)
    assert np.allclose(made[TRUE], want)
    assert np.array_equal(made.sum(axis=0), np.minimum(np.floor(want + 0.5), 65535))
    assert {decode(place.word).name for place in shadow.words} == {"SFP_STOCH_RND"}


def test_a_shift_of_integers_loses_what_numpy_says(monkeypatch) -> None:
    x = np.arange(1, 1025, dtype=np.int32) * 1001
    made, _, shadow = stored(monkeypatch, "shift", x, np.full(1024, -5, np.int32))
    assert np.allclose(made[TRUE], x / 32)
    assert np.array_equal(made.sum(axis=0), x >> 5)
    assert {decode(place.word).name for place in shadow.words} == {"SFPSHFT"}


def test_sums_of_integers_lose_nothing(monkeypatch) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-(1 << 29), 1 << 29, 1024).astype(np.int32) for _ in range(2))
    made, kinds, shadow = stored(monkeypatch, "add_int32", x, y)
    assert kinds <= {INTEGER, SIGNED}
    assert np.array_equal(made[TRUE], (x + y).astype(np.float64))
    assert not made[SUM:].any() and not shadow.words


def test_what_a_macro_schedules_is_refused_by_name() -> None:
    made, _, shadow = followed("approx_reciprocal", scales(1, 2), macro=1)
    assert np.isnan(made[TRUE]).all()
    why = {text for text, _ in shadow.unfollowed}
    assert "SFPLOADMACRO and what it schedules" in why
    assert all(isinstance(place, Place) for _, place in shadow.unfollowed)


@pytest.mark.parametrize("name", ["relu", "max", "min", "leaky", "where", "eq"])
def test_what_only_chooses_loses_nothing(name: str) -> None:
    x = linear(-4, 4)
    more = {"max": 2, "min": 2, "where": 3}.get(name, 1) - 1
    made, got, _ = followed(name, x, *[linear(-3, 3)] * more, p0=0.125)
    assert np.array_equal(made.sum(axis=0), got.view(np.float32).astype(np.float64))
    assert not made[SUM:].any()
