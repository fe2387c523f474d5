"""Data format codes, the size of their datums in L1, and the conversions that units share.

Codes are the 4-bit values of the configuration's data format fields.  In L1 the 32-, 16- and 8-bit
formats are little-endian; block floating point (bfp) keeps one exponent byte per 16 datums in a
section of its own.  fp16 and fp8 have no Inf and no NaN: exponent 31 is an ordinary exponent.
Source: FloatBitPatterns, Blackhole ISA; unpacker and packer in ttsim's Tensix model.

The conversions take and give int64 or uint32 values alike, so that loops over datums can use them;
in compiled code the result must be stored or cast to uint32 to stay vectorised.
"""

from typing import Any

from bhemu.jit.subset import njit

FP32 = 0
FP16 = 1
BFP8A = 2
BFP4A = 3
TF32 = 4
BF16 = 5
BFP8 = 6
BFP4 = 7
INT32 = 8
UINT16 = 9
FP8 = 10
BFP2A = 11
INT8 = 14
BFP2 = 15

NAMES = {
    FP32: "fp32",
    FP16: "fp16",
    BFP8A: "bfp8a",
    BFP4A: "bfp4a",
    TF32: "tf32",
    BF16: "bf16",
    BFP8: "bfp8",
    BFP4: "bfp4",
    INT32: "int32",
    UINT16: "uint16",
    FP8: "fp8",
    BFP2A: "bfp2a",
    INT8: "int8",
    BFP2: "bfp2",
}

CODES = ", ".join(f"{code} {name}" for code, name in NAMES.items())  # for the hints of rules

# Codes as a bit set: formats that share exponents.
_BFP = 1 << BFP8A | 1 << BFP4A | 1 << BFP8 | 1 << BFP4 | 1 << BFP2A | 1 << BFP2

# Floats with 5-bit exponents, and the formats whose register datums have such an exponent field.
FIVE_BIT = 1 << FP16 | 1 << FP8 | 1 << BFP8A | 1 << BFP4A | 1 << BFP2A
FIVE_BIT_DATUMS = FIVE_BIT | 1 << INT8

# Bias of 8-bit exponents minus bias of 5-bit exponents, at the exponent of a 10-bit mantissa.
_REBIAS = 112 << 10


@njit
def datum_bits(fmt: Any) -> Any:
    """Bits of one datum in L1 (32, 16, 8, 4, 2) of format code `fmt`."""
    if fmt & 3 == 3:
        return 2 if fmt & 8 else 4
    return 32 >> (fmt & 3)


@njit
def is_bfp(fmt: Any) -> Any:
    """1 when format code `fmt` shares one exponent among 16 datums, else 0."""
    return (_BFP >> fmt) & 1


@njit(inline="always")
def flush_32(v: Any) -> Any:
    """An s e8 m23 pattern with a denormal replaced by zero of the same sign."""
    return v if v & 0x7F800000 else v & 0x80000000


@njit(inline="always")
def narrow_exponent(em: Any) -> Any:
    """Exponent and mantissa e8 m10 as e5 m10: below range 0, beyond it 0x7FFF, else truncated."""
    return min(max(em, _REBIAS) - _REBIAS, 0x7FFF)


@njit(inline="always")
def fp32_to_fp16(v: Any) -> Any:
    """The fp16 pattern of an fp32 pattern, truncating."""
    return ((v >> 16) & 0x8000) | narrow_exponent((v >> 13) & 0x3FFFF)


@njit(inline="always")
def fp16_cell(v: Any) -> Any:
    """Src cell of an fp16 pattern; the 5-bit exponent is kept as it is."""
    return ((v & 0x8000) << 16) | ((v & 0x7FFF) << 13)
