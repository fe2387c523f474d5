"""Data-format codecs.

Values of patterns: "Floating-point bit patterns" (Blackhole ISA). Unpacker and packer rules of bfp
and fp8: UNPACR and PACR (ttsim).
"""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bhemu.errors import InputError
from bhemu.program.outputs import compare
from bhemu.program.tensor import DTYPES, FORMATS, Format, decode, encode

NUMBERS = [name for name in DTYPES if name != "raw"]
PLAIN = [name for name in NUMBERS if FORMATS[name].kind != "bfp"]
BFP = [name for name in NUMBERS if FORMATS[name].kind == "bfp"]


def one(value, dtype, convert="exact"):
    """The pattern of one value."""
    return int.from_bytes(encode([value], dtype, "raw", convert), "little")


def value_of(pattern, dtype):
    data = pattern.to_bytes(FORMATS[dtype].bits // 8, "little")
    return decode(data, (1,), dtype, "raw")[0]


def row(values, dtype, convert="exact"):
    """(shared exponent, datums) of one group of 16."""
    data = encode(np.pad(values, (0, 16 - len(values))), dtype, "raw", convert)
    bits = FORMATS[dtype].bits
    packed = int.from_bytes(data[16:], "little")
    return data[0], [packed >> (bits * i) & ((1 << bits) - 1) for i in range(len(values))]


def group(exponent, codes, dtype):
    """What a group with these datums decodes to."""
    bits = FORMATS[dtype].bits
    packed = sum(code << (bits * i) for i, code in enumerate(codes)).to_bytes(2 * bits, "little")
    data = bytes([exponent]) + bytes(15) + packed
    return decode(data, (16,), dtype, "raw")[: len(codes)].tolist()


@pytest.mark.parametrize("dtype", [d for d in PLAIN if FORMATS[d].bits < 32])
def test_every_pattern_survives_decoding_and_encoding(dtype):
    bits = FORMATS[dtype].bits
    patterns = np.arange(1 << bits, dtype=f"<u{bits // 8}")
    values = decode(patterns.tobytes(), patterns.shape, dtype, "raw")
    again = np.frombuffer(encode(values, dtype, "raw"), patterns.dtype)
    negative_zero = (1 << (bits - 1)) if dtype == "int8" else None
    assert [int(p) for p in patterns[again != patterns]] == [negative_zero][: dtype == "int8"]


def test_fp32_keeps_every_pattern():
    words = np.random.default_rng(2).integers(0, 2**32, 4096, dtype=np.uint32)
    words[:4] = 0x7F800001, 0xFFFFFFFF, 0x80000000, 0x00000001
    values = decode(words.tobytes(), (4096,), "fp32", "raw")
    assert encode(values, "fp32", "raw") == words.tobytes()


@pytest.mark.parametrize(
    ("dtype", "pattern", "value"),
    [
        ("fp16", 0x3C00, 1.0),
        ("fp16", 0x7C00, 65536.0),  # exponent 31 is ordinary
        ("fp16", 0xFFFF, -131008.0),
        ("fp16", 0x0001, 2.0**-24),
        ("bf16", 0x3F80, 1.0),
        ("bf16", 0xFF80, -np.inf),
        ("tf32", 0x3F802000, 1.0 + 2.0**-10),
        ("fp8_e5m2", 0x3C, 1.0),
        ("fp8_e5m2", 0x7C, 65536.0),
        ("fp8_e5m2", 0x7F, 131008.0),  # becomes fp16 0x7FFF
        ("fp8_e4m3", 0x38, 1.0),
        ("fp8_e4m3", 0x7E, 448.0),
        ("fp8_e4m3", 0xFF, -511.75),  # becomes fp16 exponent 23, mantissa all ones
        ("fp8_e4m3", 0x01, 2.0**-9),
        ("int32", 0x80000005, -5),
        ("int32", 0x7FFFFFFF, 2**31 - 1),
        ("int8", 0xFF, -127),
        ("uint8", 0xFF, 255),
        ("uint16", 0xFFFF, 65535),
    ],
)
def test_known_patterns(dtype, pattern, value):
    assert value_of(pattern, dtype) == value
    assert one(value, dtype) == pattern


def test_a_negative_zero_integer_reads_as_zero():
    assert value_of(0x80, "int8") == 0
    assert value_of(0x80000000, "int32") == 0


@pytest.mark.parametrize(
    ("dtype", "value", "nearest", "truncated"),
    [
        ("bf16", 1 + 2**-8, 0x3F80, 0x3F80),  # tie to even, down
        ("bf16", 1 + 3 * 2**-8, 0x3F82, 0x3F81),  # tie to even, up
        ("bf16", -(1 + 3 * 2**-8), 0xBF82, 0xBF81),
        ("bf16", 3.4e38, 0x7F80, 0x7F7F),
        ("bf16", 1e300, 0x7F80, 0x7F7F),
        ("bf16", -np.inf, 0xFF80, 0xFF80),
        ("bf16", 2.0**-134, 0x0000, 0x0000),  # half of the smallest denormal
        ("tf32", 1 + 2**-11 + 2**-20, 0x3F802000, 0x3F800000),
        ("fp32", 1 + 2**-24, 0x3F800000, 0x3F800000),
        ("fp16", 1 + 2**-11 + 2**-20, 0x3C01, 0x3C00),
        ("fp16", 131040.0, 0x7FFF, 0x7FFF),
        ("fp16", np.inf, 0x7FFF, 0x7FFF),
        ("fp16", 2.0**-15 + 2.0**-26, 0x0200, 0x0200),
        ("fp8_e5m2", 1.126, 0x3D, 0x3C),
        ("fp8_e5m2", 1.125, 0x3C, 0x3C),  # tie to even
        ("fp8_e4m3", 1e6, 0x7F, 0x7F),
        ("fp8_e4m3", -np.inf, 0xFF, 0xFF),
        ("int8", 2.5, 2, 2),
        ("int8", -3.5, 0x84, 0x83),
        ("int8", 1000, 127, 127),
        ("int8", -128, 0xFF, 0xFF),
        ("uint8", -0.75, 0, 0),
        ("uint16", 70000, 65535, 65535),
        ("int32", -(2.0**31), 0xFFFFFFFF, 0xFFFFFFFF),
    ],
)
def test_rounding_and_the_ends_of_the_range(dtype, value, nearest, truncated):
    assert one(value, dtype, "nearest") == nearest
    assert one(value, dtype, "truncate") == truncated
    if np.isfinite(value) or not FORMATS[dtype].ieee:
        with pytest.raises(InputError, match=f"is not exact in {dtype}"):
            one(value, dtype)


@given(st.floats(width=32, allow_nan=False), st.sampled_from(["bf16", "tf32"]))
def test_rounding_of_the_formats_with_8_exponent_bits(value, dtype):
    """Against integer rounding of the float32 pattern."""
    cut = 16 if dtype == "bf16" else 13
    word = struct.unpack("<I", struct.pack("<f", value))[0]
    shift = 16 if dtype == "bf16" else 0
    assert one(value, dtype, "truncate") == (word >> cut << cut) >> shift
    rounded = (word + (1 << (cut - 1)) - 1 + (word >> cut & 1)) >> cut << cut
    assert one(value, dtype, "nearest") == rounded >> shift


@given(st.floats(-65504, 65504), st.sampled_from(["nearest", "truncate"]))
def test_fp16_agrees_with_ieee_below_exponent_31(value, convert):
    nearest = np.float16(value)
    if convert == "truncate" and abs(float(nearest)) > abs(value):
        nearest = np.nextafter(nearest, np.float16(0))
    assert one(value, "fp16", convert) == int(np.copysign(nearest, value).view(np.uint16))


def test_nan_stays_nan_where_there_is_one():
    assert one(np.float32(np.nan), "bf16") == 0x7FC0
    payload = np.array([0x7F800001, 0xFF800001], np.uint32).view(np.float32)  # signalling
    assert encode(payload, "bf16", "raw", "truncate") == b"\xc0\x7f\xc0\xff"
    assert encode(np.array([np.nan]), "tf32", "raw") == b"\x00\x00\xc0\x7f"
    assert np.isnan(decode(b"\x01\x7f\x80\x7f", (2,), "bf16", "raw")).tolist() == [False, False]
    assert np.isnan(value_of(0x7F81, "bf16"))


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if not FORMATS[d].ieee])
@pytest.mark.parametrize("convert", ["exact", "nearest", "truncate"])
def test_nan_is_refused_elsewhere(dtype, convert):
    values = np.zeros((2, 16))
    values[1, 3] = np.nan
    with pytest.raises(InputError, match=rf"element \[1, 3\] is NaN, which {dtype} does not have"):
        encode(values, dtype, "rows", convert)


def test_exact_names_the_first_element_in_the_order_of_the_matrix():
    values = np.zeros((32, 32), np.float32)
    values[0, 20] = 1 + 2**-9  # in the second face
    values[1, 0] = 1 + 2**-10  # earlier in memory
    with pytest.raises(InputError) as caught:
        encode(values, "bf16", "tile32")
    assert caught.value.message == (
        "element [0, 20] = 1.001953125 is not exact in bf16: the nearest it holds is 1.0"
        " (2 of 1024 elements are inexact)"
    )
    assert "nearest" in caught.value.hint


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros(4, complex), "cannot encode complex128 elements"),
        (np.array(["a"]), "cannot encode <U1 elements"),
        (np.array([2**60 + 1]), "integers beyond 2"),
    ],
)
def test_elements_that_are_no_usable_numbers(array, text):
    with pytest.raises(InputError, match=text):
        encode(array, "fp32", "raw")
    with pytest.raises(InputError, match="no convert 'round'"):
        encode([1.0], "fp32", "raw", "round")


def test_raw_is_the_bytes_of_the_array():
    values = np.arange(4, dtype=">u2")
    assert encode(values, "raw", "raw") == b"\0\0\1\0\2\0\3\0"
    assert decode(b"\1\2\xff", (3,), "raw", "raw").tolist() == [1, 2, 255]


# Shared exponents.


def test_bfp_exponent_is_that_of_the_largest_and_magnitudes_are_relative():
    assert row([1.0, -0.5, 0.015625, 0.0], "bfp8") == (127, [64, 0x80 | 32, 1, 0])
    assert row([4.0, -7.0, 1.0], "bfp4") == (129, [4, 8 | 7, 1])
    assert row([2.0, -2.0, 0.0], "bfp2") == (128, [1, 3, 0])
    assert row([1.0, -0.5], "bfp8a") == (15, [64, 0x80 | 32])
    assert row([0.0, -0.0], "bfp8") == (0, [0, 0])


def test_low_bits_of_a_byte_hold_the_first_datum():
    data = encode(np.array([1.0, -0.5] + [0.0] * 14), "bfp4", "raw")
    assert data[16] == 0xA4


@pytest.mark.parametrize(
    ("values", "dtype", "nearest", "truncated"),
    [
        ([1.0, 1 / 128], "bfp8", [64, 0], [64, 0]),  # tie to even
        ([1.0, 3 / 128], "bfp8", [64, 2], [64, 1]),
        ([1.0, -1 / 256], "bfp8", [64, 0], [64, 0]),  # no sign without a magnitude
        ([1.999], "bfp8", [127], [127]),  # the largest one keeps its exponent
        ([1e30, 1.0], "bfp4", [6, 0], [6, 0]),
    ],
)
def test_bfp_rounding(values, dtype, nearest, truncated):
    assert row(values, dtype, "nearest")[1] == nearest
    assert row(values, dtype, "truncate")[1] == truncated
    with pytest.raises(InputError, match="is not exact"):
        row(values, dtype)


def test_bfp_decoding_as_the_unpacker_does():
    assert group(127, [0x40, 0xC0, 0x01, 0x7F, 0], "bfp8") == [1, -1, 2**-6, 127 / 64, 0]
    assert group(127, [0x80], "bfp8") == [-np.inf]
    assert group(127, [1, 9, 8], "bfp4") == [0.25, -0.25, -np.inf]
    assert group(15, [0x40, 0x80], "bfp8a") == [1, -65536]
    # exponent - leading zeros wraps at 256: 3 - 6 becomes 253
    assert group(3, [0x01], "bfp8") == [2.0 ** (253 - 127)]
    # only the low five bits of an "a" exponent count
    assert group(0xE0 | 15, [0x40], "bfp8a") == [1]


@pytest.mark.parametrize("dtype", BFP)
@settings(max_examples=25)
@given(st.data())
def test_what_bfp_encodes_decodes_close_and_never_wraps(dtype, data):
    man, bias = FORMATS[dtype].man, FORMATS[dtype].bias
    top = 2.0 ** (127 if bias == 127 else 16)
    numbers = st.floats(-top, top, width=32) | st.floats(-(2.0**-120), 2.0**-120, width=32)
    values = np.array(data.draw(st.lists(numbers, min_size=16, max_size=16)))
    got = decode(encode(values, dtype, "raw", "nearest"), (16,), dtype, "raw").astype(float)
    largest = np.abs(values).max()
    unit = 2.0 ** (np.floor(np.log2(largest)) - man + 1) if largest else 0.0
    flushed = 2.0 ** (1 - bias)  # what would wrap or be a denormal becomes 0
    assert (np.abs(got - values) <= max(unit, flushed)).all()
    assert np.array_equal(decode(encode(got, dtype, "raw"), (16,), dtype, "raw"), got)


@pytest.mark.parametrize(("dtype", "bias"), [("bfp8", 127), ("bfp8a", 15)])
def test_a_bfp_datum_keeps_an_exponent_above_zero_or_becomes_zero(dtype, bias):
    # exponent 6: five leading zeros leave exponent 1, six would leave 0, which reads as zero
    values = [2.0 ** (6 - bias), 2.0 ** (1 - bias), 2.0**-bias]
    assert row(values, dtype, "nearest") == (6, [64, 2, 0])


def test_the_only_infinity_of_bfp_is_the_negative_one():
    assert row([-np.inf, 1.0], "bfp8") == (127, [0x80, 64])
    assert row([np.inf, -np.inf], "bfp8a", "nearest") == (31, [127, 0xFF])
    assert row([np.inf], "bfp8", "nearest") == (254, [127])


@pytest.mark.parametrize(
    ("fmt", "value", "pattern"),
    [
        (Format("x", "int", 32, signed=False), 0xFFFFFFFE, 0xFFFFFFFE),
        (Format("x", "int", 32, signed=False), 0x80000000, 0x80000000),
        (Format("x", "int", 16), -3, 0x8003),
        (Format("x", "float", 32, man=12), -1.5, 0xBFC00000),
        (Format("x", "fp8", 8, man=4, bias=3), 2.0, 0x40),
    ],
)
def test_a_format_is_one_row(monkeypatch, fmt, value, pattern) -> None:
    monkeypatch.setitem(FORMATS, "x", fmt)
    assert one(value, "x") == pattern
    assert value_of(pattern, "x") == value
    other = pattern - (1 << fmt.unused)
    found = compare([value], other.to_bytes(fmt.bits // 8, "little"), "x", "ulp", layout="raw")
    assert found.equal, found


@pytest.mark.parametrize(
    "row",
    [
        {"kind": "twos", "bits": 32},
        {"kind": "int", "bits": 12},
        {"kind": "int", "bits": 64},
        {"kind": "int", "bits": 8, "man": 3},
        {"kind": "raw", "bits": 16, "signed": False},
        {"kind": "float", "bits": 16, "man": 9, "bias": 31},
        {"kind": "float", "bits": 16, "man": 8},
        {"kind": "float", "bits": 32, "man": 23, "signed": False},
        {"kind": "fp8", "bits": 16, "man": 7},
        {"kind": "bfp", "bits": 8, "man": 6},
        {"kind": "bfp", "bits": 8, "man": 7, "bias": 63},
    ],
)
def test_a_row_that_nothing_reads_is_refused(row) -> None:
    with pytest.raises(ValueError, match="reads such a format"):
        Format("x", **row)
