"""Tensors in memory: codecs of data formats, layouts of tiles and rows.

Layouts: "raw" and "rows" are the elements in row-major order as they are. "faces16" is 16x16 faces,
"tile32" 32x32 tiles, both row-major over the matrix of the last two axes. A tile is its four 16x16
faces: top left, top right, bottom left, bottom right. A face is row-major. Leading axes count
slowest. A format with shared exponents (see codecs) keeps them per block: per tile with tile32, per
face with faces16, once for the whole tensor in other layouts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bhemu import arguments
from bhemu.errors import InputError

# Numbers to bit patterns and back, for every data format that can lie in L1.
#
# The formats follow "Floating-point bit patterns" (Blackhole ISA) and ttsim; all are little-
# endian. What differs from what numpy or IEEE 754 would do:
#
# - fp16, fp8: exponent 31 (e4m3: 15) is an ordinary exponent; there is no Inf and no NaN. The fp8
# pattern with all magnitude bits set reads as the fp16 pattern with all mantissa bits set. -
# int32, int8: sign and magnitude, not two's complement. A negative zero reads as 0. - uint8,
# uint16: plain unsigned. - tf32: 32 bits in L1, an fp32 whose low 13 bits are 0. - bfp8/4/2: sign
# and 7/3/1-bit magnitude with explicit leading bit; 16 consecutive datums share an   8-bit
# exponent (bias 127). Sign with magnitude 0 is -Inf. Small magnitudes under a small shared
# exponent wrap around on the hardware (exponent modulo 256): decoding shows that, encoding never
# produces it. The "a" variants have a 5-bit exponent (bias 15); sign with magnitude 0 is -65536.
# Per block of datums the exponents come first, one byte per 16 datums, zero-padded to 16 bytes;
# then the data, the first datum of a byte in its low bits.
#
# Denormals keep their value here although the coprocessor's arithmetic reads them as zero.


Kind = Literal["float", "fp8", "int", "bfp", "raw"]
Floats = NDArray[np.float64]
Words = NDArray[np.uint32]
STORAGE: Mapping[int, np.dtype[Any]] = {
    8: np.dtype("<u1"),
    16: np.dtype("<u2"),
    32: np.dtype("<u4"),
}


@dataclass(frozen=True)
class Format:
    """A data format: `bits` per datum in L1; the rest applies to the kinds that have it.

    One row of _FORMATS is all that a new format needs. ValueError for a row that the code below
    does not read.
    """

    name: str
    kind: Kind
    bits: int
    man: int = 0  # explicit mantissa bits; for bfp the magnitude bits
    bias: int = 127
    signed: bool = True

    def __post_init__(self) -> None:
        if not self._readable():
            raise ValueError(f"{self}: nothing in {__name__} reads such a format")

    def _readable(self) -> bool:
        if self.kind == "bfp":
            sizes = self.bits in (2, 4, 8) and self.man == self.bits - 1
            return sizes and self.signed and self.bias in (15, 127)
        if self.bits not in STORAGE:
            return False
        if self.kind in ("int", "raw"):
            return self.man == 0 and (self.kind == "int" or (self.bits, self.signed) == (8, False))
        if self.kind == "fp8":
            return self.bits == 8 and 0 < self.man < 7 and self.signed
        if self.kind == "float" and self.signed:
            if self.ieee:
                return 0 < self.man <= self.bits - 9
            return (self.bits, self.man, self.bias) == (16, 10, 15)
        return False  # an unknown kind

    @property
    def unused(self) -> int:
        """Low bits of a pattern that are always 0, in a format with an 8-bit exponent."""
        return self.bits - 9 - self.man if self.ieee else 0

    @property
    def ieee(self) -> bool:
        """Whether the all-ones exponent means Inf and NaN."""
        return self.kind == "float" and self.bias == 127

    @property
    def largest(self) -> float:
        """Largest finite value of a float format."""
        return (2 - 2.0**-self.man) * 2.0 ** (127 if self.ieee else 16)


_FORMATS = (
    Format("fp32", "float", 32, man=23),
    Format("tf32", "float", 32, man=10),
    Format("fp16", "float", 16, man=10, bias=15),
    Format("bf16", "float", 16, man=7),
    Format("fp8_e4m3", "fp8", 8, man=3, bias=7),
    Format("fp8_e5m2", "fp8", 8, man=2, bias=15),
    Format("bfp8", "bfp", 8, man=7),
    Format("bfp4", "bfp", 4, man=3),
    Format("bfp2", "bfp", 2, man=1),
    Format("bfp8a", "bfp", 8, man=7, bias=15),
    Format("bfp4a", "bfp", 4, man=3, bias=15),
    Format("bfp2a", "bfp", 2, man=1, bias=15),
    Format("int32", "int", 32),
    Format("int8", "int", 8),
    Format("uint8", "int", 8, signed=False),
    Format("uint16", "int", 16, signed=False),
    Format("raw", "raw", 8, signed=False),
)
FORMATS = {fmt.name: fmt for fmt in _FORMATS}
DTYPES = tuple(FORMATS)
GROUP = 16  # datums that share a bfp exponent


def widen(array: NDArray[Any]) -> Floats:
    """`array` as float64; a signalling NaN in it is data, not an error."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64)


def as_floats(source: NDArray[Any], fmt: Format) -> Floats:
    """`source` as float64, which holds every value of every format; no silent loss on the way."""
    if source.dtype.kind not in "biuf" or source.dtype.itemsize > 8:
        raise InputError(f"cannot encode {source.dtype} elements", hint="use float32 or int32")
    values = widen(source)
    if source.dtype.kind in "iu" and (np.abs(values) > 2.0**53).any():
        raise InputError("integers beyond 2^53 cannot be encoded")
    nan = np.isnan(values)
    if nan.any() and not fmt.ieee:
        index = np.argwhere(nan)[0].tolist()
        raise InputError(f"element {index} is NaN, which {fmt.name} does not have")
    return values


def to_codes(source: NDArray[Any], values: Floats, fmt: Format, convert: str) -> Words:
    """The pattern of every element of a format without shared exponents."""
    if fmt.kind == "int":
        top = 2.0 ** (fmt.bits - fmt.signed) - 1
        whole = np.trunc(values) if convert == "truncate" else np.rint(values)
        whole = np.clip(whole, -top if fmt.signed else 0, top)
        magnitude = np.abs(whole).astype(np.uint32)
        return np.where(whole < 0, magnitude | np.uint32(1 << (fmt.bits - 1)), magnitude)
    if fmt.kind == "fp8":
        ladder = _fp8_values(fmt)[:128].astype(np.float64)  # grows with the code
        size = np.abs(values)
        below = np.searchsorted(ladder, size, side="right") - 1
        above = np.minimum(below + 1, 127)
        middle = (ladder[below] + ladder[above]) / 2
        up = (size > middle) | ((size == middle) & (above % 2 == 0))
        code = below if convert == "truncate" else np.where(up, above, below)
        return (code | np.where(np.signbit(values), 0x80, 0)).astype(np.uint32)
    if fmt.man == 23 and source.dtype == np.float32:
        return np.ascontiguousarray(source).view(np.uint32)  # keeps every NaN payload
    # Values with the format's mantissa length; exact powers of two keep float64 exact
    exponent = np.maximum(np.frexp(values)[1] - 1, 1 - fmt.bias) - fmt.man
    scaled = np.ldexp(values, -exponent)
    whole = np.trunc(scaled) if convert == "truncate" else np.rint(scaled)
    rounded: Floats = np.ldexp(whole, exponent)
    to_inf = np.isinf(values) | (convert != "truncate")
    beyond = np.where(to_inf, np.inf, fmt.largest) if fmt.ieee else fmt.largest
    rounded = np.where(np.abs(rounded) > fmt.largest, np.copysign(beyond, values), rounded)
    words = rounded.astype(np.float32).view(np.uint32)
    if fmt.ieee:
        nan = np.isnan(values)
        if nan.any():
            # The payload cut to the format; a NaN must not become Inf by the cut
            with np.errstate(invalid="ignore"):
                kept = np.where(nan, source, 0).astype(np.float32).view(np.uint32)
            kept = kept & np.uint32(0xFFFF_FFFF << (23 - fmt.man) & 0xFFFF_FFFF)
            kept = np.where(kept & np.uint32(0x7F_FFFF), kept, kept | np.uint32(0x40_0000))
            words = np.where(nan, kept, words)
        return words >> np.uint32(32 - fmt.bits)
    magnitude = words & np.uint32(0x7FFF_FFFF)
    sign = words >> np.uint32(31) << np.uint32(15)
    small = np.abs(rounded) < 2.0**-14
    denormal = np.where(small, np.abs(rounded) * 2.0**24, 0).astype(np.uint32)
    normal = (magnitude - np.uint32(112 << 23)) >> np.uint32(13)
    return sign | np.where(small, denormal, normal)


def encode_bfp(blocks: Floats, fmt: Format, convert: str) -> bytes:
    """Exponent section and data section of every block; the rule is the packer's but for rounding.

    The largest value of 16 sets the exponent (PACR, ttsim), so one that rounds up to twice the
    leading bit is held at the largest magnitude.
    """
    groups = blocks.reshape(len(blocks), -1, GROUP)
    infinite = np.isneginf(groups) & (fmt.bias == 127)
    size = np.where(infinite, 0.0, np.minimum(np.abs(groups), 2.0**200))
    exponents = np.where(size > 0, np.frexp(size)[1] - 1 + fmt.bias, 0).max(axis=2)
    exponents = np.clip(exponents, 0, 254 if fmt.bias == 127 else 31)
    scaled = np.ldexp(size, (fmt.bias + fmt.man - 1 - exponents)[..., None])
    whole = np.trunc(scaled) if convert == "truncate" else np.rint(scaled)
    magnitude = np.minimum(whole, 2**fmt.man - 1).astype(np.int64)
    # The unpacker subtracts the magnitude's leading zeros from the exponent: keep it above 0.
    leading_zeros = fmt.man - np.frexp(magnitude)[1]
    magnitude = np.where(leading_zeros < exponents[..., None], magnitude, 0)
    negative = infinite | ((magnitude > 0) & np.signbit(groups))
    datums = (magnitude | (negative.astype(np.int64) << fmt.man)).astype(np.uint8)
    exponents = np.where(magnitude.any(axis=2), exponents, 0).astype(np.uint8)
    padding = exponent_bytes(blocks.shape[1]) - exponents.shape[1]
    head = np.pad(exponents, ((0, 0), (0, padding)))
    datums = datums.reshape(len(blocks), -1)
    per_byte = 8 // fmt.bits
    parts = datums.reshape(len(datums), -1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(fmt.bits)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(parts << shifts, axis=2)
    return np.hstack([head, packed]).tobytes()


def exponent_bytes(datums: int) -> int:
    """Size of the exponent section of a block of `datums` datums."""
    return -(-datums // (GROUP * 16)) * 16


def from_codes(words: Words, fmt: Format) -> NDArray[Any]:
    """The number of every pattern of a format without shared exponents.

    Integers are int32, those that only uint32 holds uint32.
    """
    if fmt.kind == "raw":
        return words.astype(np.uint8)
    if fmt.kind == "fp8":
        known: NDArray[np.float32] = _fp8_values(fmt)[words]
        return known
    if fmt.kind == "int":
        if not fmt.signed:
            return words.astype(np.uint32 if fmt.bits == 32 else np.int32)
        top = np.uint32((1 << (fmt.bits - 1)) - 1)
        magnitude = (words & top).astype(np.int32)
        return np.where(words > top, -magnitude, magnitude)
    if fmt.ieee:
        return (words << np.uint32(32 - fmt.bits)).view(np.float32)
    exponent = (words >> 10 & 31).astype(np.int32)
    mantissa = (words & 0x3FF).astype(np.float32) + np.where(exponent > 0, 1024, 0)
    size = np.ldexp(mantissa, np.maximum(exponent, 1) - 25)
    values: NDArray[np.float32] = np.where(words >> 15, -size, size).astype(np.float32)
    return values


def _fp8_values(fmt: Format) -> NDArray[np.float32]:
    """Value of each of the 256 patterns, read as the unpacker does (UNPACR, ttsim)."""
    codes = np.arange(256)
    exponent, fraction = (codes & 0x7F) >> fmt.man, codes & ((1 << fmt.man) - 1)
    leading = np.where(exponent > 0, 1 << fmt.man, 0)
    size = np.ldexp(1.0 * (leading + fraction), np.maximum(exponent, 1) - fmt.bias - fmt.man)
    full = 2047.0 * 2.0 ** ((0x7F >> fmt.man) - fmt.bias - 10)
    size = np.where(codes & 0x7F == 0x7F, full, size)
    return np.where(codes & 0x80, -size, size).astype(np.float32)


def decode_bfp(blocks: NDArray[np.uint8], datums: int, fmt: Format) -> Words:
    """bf16 patterns of the datums of every block (UNPACR, ttsim; "a": Blackhole ISA)."""
    shared = blocks[:, : datums // GROUP].astype(np.int64).repeat(GROUP, axis=1)
    shifts = np.arange(8 // fmt.bits, dtype=np.uint8) * np.uint8(fmt.bits)
    packed = blocks[:, exponent_bytes(datums) :, None] >> shifts
    codes = packed.reshape(len(blocks), -1).astype(np.int64) & ((1 << fmt.bits) - 1)
    magnitude, sign = codes & ((1 << fmt.man) - 1), codes >> fmt.man
    length = np.frexp(magnitude)[1]
    if fmt.bias != 127:
        shared = (shared & 31) + 127 - fmt.bias
    exponent = (shared - (fmt.man - length)) & 0xFF
    fraction = (magnitude << (8 - length)) & 0x7F
    minus_nothing = 0x7F80 if fmt.bias == 127 else (127 + 16) << 7
    pattern = np.where(magnitude > 0, exponent << 7 | fraction, sign * minus_nothing)
    return (sign << 15 | pattern).astype(np.uint32)


LAYOUTS = ("raw", "rows", "faces16", "tile32")
CONVERTS = ("exact", "nearest", "truncate")

EDGE = {"tile32": 32, "faces16": 16}


def format_of(dtype: str) -> Format:
    """The format called `dtype`; InputError when there is none."""
    return FORMATS[one_of("dtype", dtype, tuple(FORMATS))]


def encoded_size(shape: Sequence[int], dtype: str, layout: str = "tile32") -> int:
    """Bytes a tensor takes in L1; InputError when shape and layout do not go together."""
    fmt = format_of(dtype)
    blocks, datums = _block_shape(tuple(shape), fmt, layout)
    exponents = exponent_bytes(datums) if fmt.kind == "bfp" else 0
    return blocks * (exponents + datums * fmt.bits // 8)


def encode(array: ArrayLike, dtype: str, layout: str = "tile32", convert: str = "exact") -> bytes:
    """The bytes of `array` (numbers, any shape the layout takes) in L1.

    `convert` says what to do with a value the format cannot hold: "exact" refuses it and names the
    first one, "nearest" rounds to nearest, ties to even, "truncate" rounds towards zero. Rounding
    never wraps: values beyond the range become Inf where the format has one and rounding to nearest
    reaches it, else the largest value. -0 becomes 0 in formats without it; NaN stays NaN or is
    refused. dtype "raw" writes the array's own bytes. Raises InputError.
    """
    fmt = format_of(dtype)
    one_of("convert", convert, CONVERTS)
    try:
        source = np.atleast_1d(np.asarray(array))
    except ValueError as error:  # rows of different lengths
        raise InputError(f"these values are no array: {error}") from None
    if fmt.kind == "raw":
        _block_shape(source.shape, fmt, layout)
        return source.astype(source.dtype.newbyteorder("<")).tobytes()
    blocks, _ = _block_shape(source.shape, fmt, layout)
    values = as_floats(source, fmt)
    if fmt.kind == "bfp":
        data = encode_bfp(_to_blocks(values, layout, blocks), fmt, convert)
    else:
        codes = _to_blocks(to_codes(source, values, fmt, convert), layout, blocks)
        data = codes.astype(STORAGE[fmt.bits]).tobytes()
    if convert == "exact":
        _check_exact(source, values, decode(data, source.shape, dtype, layout), dtype)
    return data


def decode(data: bytes, shape: Sequence[int], dtype: str, layout: str = "tile32") -> NDArray[Any]:
    """The tensor of `shape` held by the L1 bytes `data`.

    float32 for floating formats (exact for every pattern), int32 for integers (uint32 for unsigned
    ones of 32 bits), uint8 for "raw".
    InputError when `data` is not exactly the tensor's size.
    """
    fmt = format_of(dtype)
    if fmt.kind == "bfp":
        patterns = element_bits(data, shape, dtype, layout)
        return (patterns << np.uint32(16)).view(np.float32)
    return from_codes(element_bits(data, shape, dtype, layout), fmt)


def element_bits(data: bytes, shape: Sequence[int], dtype: str, layout: str = "tile32") -> Words:
    """The bit pattern of every element, uint32 of `shape`.

    A bfp datum shows as the bf16 pattern of its value, so that one number stands for datum and
    exponent together. InputError when `data` is not exactly the tensor's size.
    """
    fmt = format_of(dtype)
    shape = tuple(shape)
    size = encoded_size(shape, dtype, layout)
    if len(data) != size:
        raise InputError(f"{in_words(shape)} {dtype} {layout} is {size} bytes, not {len(data)}")
    blocks, datums = _block_shape(shape, fmt, layout)
    raw = np.frombuffer(data, dtype=np.uint8)
    if fmt.kind == "bfp":
        words = decode_bfp(raw.reshape(blocks, -1), datums, fmt)
    else:
        words = raw.view(STORAGE[fmt.bits]).astype(np.uint32)
    return _from_blocks(words, shape, layout)


def locate(index: Sequence[int], shape: Sequence[int], layout: str) -> dict[str, int]:
    """Names of an element's place: tile_row, tile_column, face, row and column inside the face.

    Faces of a tile count 0 top left, 1 top right, 2 bottom left, 3 bottom right; with faces16
    there is only tile (the face's row and column among all faces). Other layouts: row and column.
    """
    if len(shape) < 2:
        return {"column": int(index[-1])} if len(index) else {}
    row, column = int(index[-2]), int(index[-1])
    if (edge := EDGE.get(layout)) is None:
        return {"row": row, "column": column}
    place = {"tile_row": row // edge, "tile_column": column // edge}
    if layout == "tile32":
        place["face"] = (row % 32) // 16 * 2 + (column % 32) // 16
    return {**place, "row": row % 16, "column": column % 16}


def bit_offset(
    index: tuple[int, ...], shape: Sequence[int], dtype: str, layout: str = "tile32"
) -> int:
    """Bits from the start of the tensor to the datum of an element (of bfp: sign and magnitude)."""
    fmt, shape = format_of(dtype), tuple(shape)
    blocks, datums = _block_shape(shape, fmt, layout)
    order = np.arange(blocks * datums, dtype=np.uint32).reshape(blocks, datums)
    block, number = divmod(int(_from_blocks(order, shape, layout)[index]), datums)
    exponents = exponent_bytes(datums) if fmt.kind == "bfp" else 0
    return 8 * (block * (exponents + datums * fmt.bits // 8) + exponents) + number * fmt.bits


def _block_shape(shape: tuple[int, ...], fmt: Format, layout: str) -> tuple[int, int]:
    """(number of blocks, datums per block): a block is what has its own exponent section."""
    edge = EDGE.get(one_of("layout", layout, LAYOUTS))
    count = math.prod(shape)
    if not count or any(n < 0 for n in shape):
        raise InputError(f"shape {in_words(shape)} holds no element")
    if edge is None:
        row = shape[-1] if layout == "rows" and shape else count
        if fmt.kind == "bfp" and row % GROUP:
            raise InputError(f"{fmt.name} needs rows of a multiple of 16 datums, not {row}")
        return 1, count
    if fmt.kind == "raw":
        raise InputError(f'dtype "raw" is bytes as they are: layout "{layout}" does not apply')
    if len(shape) < 2 or shape[-1] % edge or shape[-2] % edge:
        raise InputError(
            f"shape {in_words(shape)} is not a whole number of {edge}x{edge} blocks, as {layout}"
            " is",
            hint="pad the tensor, or use layout rows",
        )
    return count // (edge * edge), edge * edge


def _split(shape: tuple[int, ...], layout: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(axes the matrix is cut into, their order in memory)."""
    rows, columns = shape[-2:]
    if EDGE[layout] == 16:
        return (-1, rows // 16, 16, columns // 16, 16), (0, 1, 3, 2, 4)
    return (-1, rows // 32, 2, 16, columns // 32, 2, 16), (0, 1, 4, 2, 5, 3, 6)


def _to_blocks(matrix: NDArray[Any], layout: str, blocks: int) -> NDArray[Any]:
    if layout not in EDGE:
        return matrix.reshape(blocks, -1)
    axes, order = _split(matrix.shape, layout)
    return matrix.reshape(axes).transpose(order).reshape(blocks, -1)


def _from_blocks(blocks: NDArray[Any], shape: tuple[int, ...], layout: str) -> NDArray[Any]:
    if layout not in EDGE:
        return blocks.reshape(shape)
    axes, order = _split(shape, layout)
    cut = (-1, *(axes[i] for i in order[1:]))
    return blocks.reshape(cut).transpose(np.argsort(order)).reshape(shape)


def _check_exact(source: NDArray[Any], values: Floats, got: NDArray[Any], dtype: str) -> None:
    held = widen(got)
    same = (held == values) | (np.isnan(values) & np.isnan(held))
    if same.all():
        return
    mask = ~same
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
    raise InputError(
        f"element {in_words(index)} = {source[index]} is not exact in {dtype}:"
        f" the nearest it holds is {got[index]}"
        f" ({int((~same).sum())} of {same.size} elements are inexact)",
        hint='convert = "nearest" or "truncate" accepts that',
    )


def number_text(value: float | int) -> str:
    """A value as messages show it."""
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def in_words(numbers: Sequence[int]) -> str:
    """A shape or index."""
    return "[" + ", ".join(str(n) for n in numbers) + "]"


def one_of(kind: str, name: str, allowed: tuple[str, ...]) -> str:
    """`name`, which must be allowed."""
    if not isinstance(name, str) or name not in allowed:
        raise InputError(f"no {kind} {name!r}", hint=f"one of: {' '.join(allowed)}")
    return name


class Tensors:
    """A memory that holds tensors."""

    read: Callable[[Any, int], bytes]
    write: Callable[[Any, bytes | bytearray | memoryview], None]

    def tensor(
        self, at: int | str, shape: Sequence[int], dtype: str, layout: str = "tile32"
    ) -> NDArray[Any]:
        """The tensor at an address, decoded (float32, or int32 for integer formats)."""
        shape = arguments.shape_of(shape)
        return decode(self.read(at, encoded_size(shape, dtype, layout)), shape, dtype, layout)

    def put_tensor(
        self,
        at: int | str,
        array: ArrayLike,
        dtype: str,
        layout: str = "tile32",
        convert: str = "exact",
    ) -> None:
        """Encode an array into the memory."""
        self.write(at, encode(array, dtype, layout, convert))
