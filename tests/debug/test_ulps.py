"""ULP of outputs against exact values, by tile."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from bhemu.debug import numerics
from bhemu.errors import InputError
from bhemu.program import tensor

FP32, BF16 = tensor.FORMATS["fp32"], tensor.FORMATS["bf16"]


@pytest.mark.parametrize(("name", "digits", "lowest"), [("fp32", 23, -126), ("bf16", 7, -126)])
def test_spacing_is_that_of_the_neighbouring_value(name: str, digits: int, lowest: int) -> None:
    """Counted on patterns: the next one above is one spacing away."""
    fmt = tensor.FORMATS[name]
    x = np.array([1.0, 1.5, 2.0, 3.999, 1e-30, 1e30, 2.0**lowest, 2.0 ** (lowest - 3), 0.0])
    for value, unit in zip(x, numerics.spacing(x, fmt), strict=True):
        exponent = max(np.floor(np.log2(value)) if value else lowest, lowest)
        assert Fraction(unit) == Fraction(2) ** int(exponent - digits)


def test_distances() -> None:
    exact = np.array([1.0, 1.0, np.inf, np.nan, 1.0, 0.0, -np.inf])
    got = np.array([1.0, 1 + 2.0**-22, np.inf, np.nan, np.nan, -0.0, np.inf], np.float32)
    expected = [0, 2, 0, 0, np.inf, 0, np.inf]
    assert numerics.distances(got, exact, FP32).tolist() == expected


def test_integers_count_in_ones() -> None:
    got, exact = np.array([3, -4]), np.array([2.5, -6.0])
    assert numerics.distances(got, exact, tensor.FORMATS["int32"]).tolist() == [0.5, 2.0]


def test_bfp_counts_in_steps_of_the_shared_exponent() -> None:
    """The greatest of 16 decides: 6 digits after its leading one for bfp8."""
    exact = np.full((1, 32), 1.0)
    exact[0, 3] = 8.0
    unit = numerics.spacing(exact, tensor.FORMATS["bfp8"])
    assert unit[0, :16].tolist() == [8 / 64] * 16
    assert unit[0, 16:].tolist() == [1 / 64] * 16


def test_tiles_are_measured_one_by_one() -> None:
    exact = np.ones((64, 96))
    got = exact.copy()
    got[40, 70] += 2.0**-6
    got[5, 2] = np.inf
    found = numerics.by_tile(got.astype(np.float32), exact, BF16, "tile32")
    assert len(found) == 6
    worst = found[5]
    assert worst.tile == {"tile_row": 1, "tile_column": 2}
    assert (worst.most, worst.index, worst.infinite) == (2.0, (40, 70), 0)
    assert worst.mean == 2.0 / 1024
    assert (found[0].most, found[0].infinite, found[0].mean) == (np.inf, 1, 0.0)
    assert found[1].most == 0.0


@pytest.mark.parametrize("layout", ["rows", "raw"])
def test_without_tiles_the_whole_is_one(layout: str) -> None:
    exact = np.ones((3, 5))
    found = numerics.by_tile(exact.astype(np.float32) * 2, exact, FP32, layout)
    assert [(one.tile, one.most, one.index) for one in found] == [({}, 2.0**23, (0, 0))]


def test_leading_axes_are_kept() -> None:
    exact = np.zeros((2, 32, 32))
    got = exact.astype(np.float32)
    got[1, 4, 7] = 1
    found = numerics.by_tile(got, exact, FP32, "tile32")
    assert [one.most > 0 for one in found] == [False, True]
    assert found[1].index == (1, 4, 7)


def test_the_first_that_is_not_finite() -> None:
    x = np.zeros((4, 4), np.float32)
    assert numerics.first_not_finite(x) is None
    x[2, 1], x[3, 0] = -np.inf, np.nan
    assert numerics.first_not_finite(x) == (2, 1)


def test_places() -> None:
    assert numerics.place((40, 5), (64, 32), "tile32") == "tile (1, 0), face 0, row 8, column 5"
    assert numerics.place((4, 5), (64, 32), "rows") == "row 4, column 5"


def test_exact_values_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with pytest.raises(InputError, match="cannot be read"):
        numerics.read_exact(path, (2, 2), "C")
    np.save(path, np.zeros((2, 3)))
    with pytest.raises(InputError, match=r"shape \(2, 3\), the output \(2, 2\)"):
        numerics.read_exact(path, (2, 2), "C")
    np.save(path, np.array([["a", "b"]]))
    with pytest.raises(InputError, match="not numbers"):
        numerics.read_exact(path, (1, 2), "C")
    np.save(path, np.arange(4).reshape(2, 2))
    assert numerics.read_exact(path, (2, 2), "C").tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_an_element_is_found_in_memory() -> None:
    """Its bytes in the encoded tensor are where `datum` says."""
    from bhemu.debug.numerics import datum
    from bhemu.program.schema import OutputSpec

    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    for dtype, layout in (("fp32", "tile32"), ("bf16", "tile32"), ("uint16", "faces16")):
        values = x % 256 if dtype == "bf16" else x
        data = tensor.encode(values, dtype, layout, "nearest")
        bits = tensor.element_bits(data, x.shape, dtype, layout)
        spec = OutputSpec("C", 0x100, dtype, layout, x.shape)
        memory = np.frombuffer(data, np.uint32)
        for index in ((0, 0), (1, 17), (33, 5), (63, 31)):
            address, mask = datum(0x100, spec, index)
            word = int(memory[(address - 0x100) >> 2]) & mask
            assert word >> 8 * (address & 3) == bits[index]


@pytest.mark.parametrize(
    ("dtype", "layout"), [("bfp8", "tile32"), ("bfp4", "tile32"), ("bfp2", "faces16")]
)
def test_a_datum_with_a_shared_exponent_is_found_in_memory(dtype: str, layout: str) -> None:
    """Clearing the bits that `datum` names makes this element zero and no other one different."""
    from bhemu.debug.numerics import datum
    from bhemu.program.schema import OutputSpec

    shape = (64, 32)
    data = tensor.encode(np.full(shape, 1.5, np.float32), dtype, layout, "nearest")
    before = tensor.decode(data, shape, dtype, layout)
    spec = OutputSpec("C", 0x100, dtype, layout, shape)
    for index in ((0, 0), (1, 17), (33, 5), (63, 31)):
        memory = np.frombuffer(data, np.uint32).copy()
        address, mask = datum(0x100, spec, index)
        memory[(address - 0x100) >> 2] &= ~np.uint32(mask)
        after = tensor.decode(memory.tobytes(), shape, dtype, layout)
        assert [tuple(at) for at in np.argwhere(after != before).tolist()] == [index]
        assert after[index] == 0


@pytest.mark.parametrize("name", tensor.DTYPES)
@pytest.mark.parametrize(
    "exact",
    [[1.0, 2.0, 3.0, 4.0], [1.7e308, -1.7e308, 1.7e308, 0.0], [np.nan, np.inf, 5e-324, 0.0]],
)
def test_no_bit_pattern_of_an_output_makes_numpy_complain(name: str, exact: list[float]) -> None:
    """A signalling NaN and values near the ends of both formats; warnings are errors here."""
    words = np.array([0x7F800001, 0x7F7FFFFF, 0x00000001, 0xFF800000], np.uint32)
    got, wanted = np.tile(words.view(np.float32), (4, 8)), np.tile(exact, (4, 8))
    (found,) = numerics.by_tile(got, wanted, tensor.FORMATS[name], "raw")
    assert found.infinite > 0
    assert numerics.first_not_finite(got) == (0, 0)


def test_at_an_exact_zero_the_unit_is_that_of_its_tile() -> None:
    exact = np.zeros((64, 32))
    exact[3, 4] = 4.0
    got = exact + 2.0**-5
    far = numerics.distances(got, exact, tensor.FORMATS["bf16"])
    assert far[:32] == pytest.approx(1.0)
    assert far[32:] == pytest.approx(1.0), "a tile of zeros has the unit of the whole"
    assert numerics.distances(np.full(3, 2.0**-7), np.zeros(3), BF16).tolist() == [1.0] * 3
