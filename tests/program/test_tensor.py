"""Tile layouts, sizes, places and the comparison of tensors."""

import json

import numpy as np
import pytest

from bhemu.errors import InputError
from bhemu.program.outputs import compare
from bhemu.program.tensor import DTYPES, decode, element_bits, encode, encoded_size, locate

NUMBERS = [name for name in DTYPES if name != "raw"]


def test_tile32_is_four_faces_per_tile_tiles_row_major():
    matrix = np.arange(64 * 96, dtype=np.int32).reshape(64, 96)
    words = np.frombuffer(encode(matrix, "int32", "tile32"), "<i4").reshape(2, 3, 4, 16, 16)
    for tile_row, tile_column, face, r, c in [(0, 0, 0, 0, 0), (1, 2, 3, 15, 15), (0, 2, 1, 4, 7)]:
        row_ = 32 * tile_row + 16 * (face // 2) + r
        column = 32 * tile_column + 16 * (face % 2) + c
        assert words[tile_row, tile_column, face, r, c] == matrix[row_, column]
    # Second tile of the first row, second face: rows 0.., columns 48..
    assert words[0, 1, 1, 0].tolist() == matrix[0, 48:64].tolist()


def test_faces16_is_faces_row_major_and_rows_is_as_it_is():
    matrix = np.arange(32 * 48, dtype=np.int32).reshape(32, 48)
    faces = np.frombuffer(encode(matrix, "int32", "faces16"), "<i4").reshape(2, 3, 16, 16)
    assert (faces[1, 2] == matrix[16:, 32:]).all()
    assert encode(matrix, "int32", "rows") == encode(matrix, "int32", "raw") == matrix.tobytes()


@pytest.mark.parametrize("shape", [(64, 96), (3, 32, 64), (2, 2, 32, 32)])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_layout_and_format_gives_back_what_was_stored(dtype, shape):
    for layout in ("raw", "rows", "faces16", "tile32"):
        rng = np.random.default_rng(1)
        values = rng.integers(0, 2, shape) * (
            1.0 if dtype.startswith("u") else 1.0 - 2 * (rng.random(shape) < 0.5)
        )
        data = encode(values, dtype, layout)
        assert len(data) == encoded_size(shape, dtype, layout)
        assert np.array_equal(decode(data, shape, dtype, layout), values)


def test_leading_axes_count_slowest():
    stack = np.arange(2 * 32 * 32, dtype=np.int32).reshape(2, 32, 32)
    parts = b"".join(encode(matrix, "int32", "tile32") for matrix in stack)
    assert encode(stack, "int32", "tile32") == parts


@pytest.mark.parametrize(
    ("dtype", "layout", "size"),
    [
        ("fp32", "tile32", 4096),
        ("bf16", "tile32", 2048),
        ("bfp8", "tile32", 1088),
        ("bfp4", "tile32", 576),
        ("bfp2", "tile32", 320),
        ("bfp8", "faces16", 4 * (16 + 256)),
        ("bfp8a", "rows", 64 + 1024),
    ],
)
def test_sizes_of_a_32_by_32_tensor(dtype, layout, size):
    assert encoded_size((32, 32), dtype, layout) == size


def test_a_short_exponent_section_is_padded_to_16_bytes():
    data = encode(np.ones(32), "bfp8", "raw")
    assert data == b"\x7f\x7f" + bytes(14) + b"\x40" * 32


@pytest.mark.parametrize(
    ("shape", "dtype", "layout", "text"),
    [
        ((40, 64), "bf16", "tile32", "[40, 64] is not a whole number of 32x32 blocks"),
        ((1024,), "bf16", "tile32", "not a whole number"),
        ((32, 24), "bf16", "faces16", "16x16 blocks"),
        ((4, 24), "bfp8", "rows", "bfp8 needs rows of a multiple of 16 datums, not 24"),
        ((0, 32), "bf16", "rows", "holds no element"),
        ((32, 32), "bf17", "rows", "no dtype 'bf17'"),
        ((32, 32), "bf16", "tiles", "no layout 'tiles'"),
        ((1024,), "raw", "tile32", 'layout "tile32" does not apply'),
    ],
)
def test_shapes_formats_and_layouts_that_do_not_go_together(shape, dtype, layout, text):
    with pytest.raises(InputError) as caught:
        encoded_size(shape, dtype, layout)
    assert text in caught.value.message


def test_bytes_of_a_wrong_length():
    with pytest.raises(InputError, match=r"\[32, 32\] bf16 tile32 is 2048 bytes, not 2047"):
        decode(bytes(2047), (32, 32), "bf16")


def test_places_are_named_as_in_memory():
    assert locate((44, 20), (64, 64), "tile32") == {
        "tile_row": 1, "tile_column": 0, "face": 1, "row": 12, "column": 4,
    }  # fmt: skip
    assert locate((44, 20), (64, 64), "faces16") == {
        "tile_row": 2, "tile_column": 1, "row": 12, "column": 4,
    }  # fmt: skip
    assert locate((1, 44, 20), (2, 64, 64), "rows") == {"row": 44, "column": 20}
    assert locate((7,), (9,), "raw") == {"column": 7}


# Comparison.


def bf16_pair():
    wanted = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 251 + 1
    return wanted, bytearray(encode(wanted, "bf16"))


def test_equal_tensors():
    wanted, data = bf16_pair()
    report = compare(wanted, bytes(data), "bf16", name="c")
    assert report.equal
    assert str(report) == "c: all 4096 elements agree (bf16 tile32, compared by bits)"


def test_a_mismatch_names_its_place_and_both_values():
    wanted, data = bf16_pair()
    data[2 * 1024 * 2 + 2 * (256 + 12 * 16 + 4)] ^= 1  # tile (1,0), face 1, row 12, column 4
    data[2 * 1024 + 1] ^= 0x80  # tile (0,1), face 0, row 0, column 0
    report = compare(wanted, bytes(data), "bf16", name="c")
    assert (report.differing, report.total, report.equal) == (2, 4096, False)
    header, first = str(report).split("\n")
    assert header == "c: 2 of 4096 elements differ (bf16 tile32, compared by bits)"
    assert first == (
        "  first and worst: tile (0,1) face 0 row 0 column 0 [0, 32]:"
        " expected 33 (0x4204), got -33 (0xC204), 33800 ULP"
    )
    assert compare(wanted, decode(bytes(data), (64, 64), "bf16"), "bf16", name="c") == report


def test_worst_is_the_farthest_in_ulp():
    wanted = np.ones((32, 32), np.float32)
    got = wanted.copy()
    got[2, 3], got[30, 31], got[5, 5] = 1 + 2**-7, 0.5, np.nan
    by_bits = compare(wanted, got, "bf16")
    assert by_bits.first.index == (2, 3)
    assert by_bits.first.ulp == 1
    assert by_bits.worst.index == (5, 5)
    assert by_bits.worst.ulp is None
    assert "NaN" in str(by_bits)
    got[5, 5] = 1
    assert compare(wanted, got, "bf16").worst.index == (30, 31)


def test_ulp_and_close_allow_what_they_say():
    wanted = np.full((32, 32), 1 + 2**-9)  # between two bf16 values
    got = np.full((32, 32), 1 + 2**-7, np.float32)
    assert compare(wanted, got, "bf16", "ulp").equal
    assert compare(wanted, got, "bf16", "ulp", max_ulp=0).differing == 1024
    assert compare(wanted, got, "bf16", "close", rtol=0.006, atol=0).equal
    off = compare(wanted, got, "bf16", "close", rtol=0.005, atol=0)
    assert off.differing == 1024
    assert off.first.expected == 1 + 2**-9
    assert compare([0.0], [-0.0], "bf16", "ulp", layout="raw", max_ulp=0).equal
    assert not compare([0.0], [-0.0], "bf16", "bits", layout="raw").equal
    assert compare([np.nan], [np.nan], "bf16", "close", layout="raw").equal
    assert not compare([np.nan], [1.0], "bf16", "ulp", layout="raw", max_ulp=10**9).equal


@pytest.mark.parametrize(
    ("dtype", "a", "b", "ulp"),
    [
        ("int32", -1, 2, 3),
        ("uint8", 3, 250, 247),
        ("tf32", 1.0, 1 + 2**-10, 1),
        ("fp16", 0, 1, 0x3C00),
    ],
)
def test_ulp_counts_representable_values(dtype, a, b, ulp):
    assert compare([a], [b], dtype, layout="raw").first.ulp == ulp


def test_patterns_that_read_as_the_same_number_still_differ_by_bits():
    report = compare([0], b"\x80", "int8", layout="raw")
    assert (report.first.got_bits, report.first.ulp, report.first.got) == ("0x80", 0, 0)
    assert compare([0], b"\x80", "int8", "ulp", layout="raw").equal


def test_bfp_shows_the_bf16_pattern_of_a_datum():
    wanted = np.ones((32, 32))
    data = bytearray(encode(wanted, "bfp8"))
    data[64] = 0x60
    report = compare(wanted, bytes(data), "bfp8")
    assert (report.first.expected_bits, report.first.got_bits) == ("0x3F80", "0x3FC0")
    assert element_bits(bytes(data), (32, 32), "bfp8")[0, 0] == 0x3FC0


def test_raw_bytes_compare_by_byte():
    report = compare(np.array([1, 2], "<u2"), b"\1\0\2\1", "raw", layout="raw")
    assert (report.differing, report.first.index, report.first.got_bits) == (1, (3,), "0x01")


def test_an_expected_value_the_format_lacks_cannot_be_compared_by_bits():
    with pytest.raises(
        InputError, match=r"c: expected element \[0\] = 1\.001 is not exact"
    ) as caught:
        compare([1.001], [1.0], "bf16", layout="raw", name="c")
    assert "ulp" in caught.value.hint
    with pytest.raises(InputError, match=r"c: \[3\], expected \[2\]"):
        compare([1.0, 2.0], [1.0, 2.0, 3.0], "bf16", layout="raw", name="c")
    with pytest.raises(InputError, match="no compare 'pcc'"):
        compare([1.0], [1.0], "bf16", "pcc", layout="raw")


def test_the_report_is_json_even_with_nan():
    report = compare([1.0, 3.0], [np.nan, 3.0], "bf16", layout="raw", name="c")
    data = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert data["first"]["got"] == "nan"
    assert (data["differing"], data["how"], data["name"]) == (1, "bits", "c")
    assert compare([1.0], [1.0], "bf16", layout="raw").as_dict()["first"] is None
