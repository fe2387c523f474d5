"""Tensors as they lie in L1: tile layouts, encoding, decoding, and comparing two of them.

Layouts: "raw" and "rows" are the elements in row-major order as they are; "faces16" is 16x16 faces,
"tile32" 32x32 tiles, both row-major over the matrix of the last two axes; a tile is its four 16x16
faces top left, top right, bottom left, bottom right; a face is row-major. Leading axes count
slowest. A format with shared exponents (see codecs) keeps them per block: per tile with tile32, per
face with faces16, once for the whole tensor otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bhemu.errors import InputError
from bhemu.program import codecs
from bhemu.program.codecs import FORMATS, Format, Words

LAYOUTS = ("raw", "rows", "faces16", "tile32")
CONVERTS = ("exact", "nearest", "truncate")
COMPARES = ("bits", "ulp", "close")

EDGE = {"tile32": 32, "faces16": 16}
_NO_ULP = 1 << 62
_EXPECT_HINT = 'save what the format holds, or compare by "ulp" or "close"'


def format_of(dtype: str) -> Format:
    """The format called `dtype`; InputError when there is none."""
    return FORMATS[_one_of("dtype", dtype, tuple(FORMATS))]


def encoded_size(shape: Sequence[int], dtype: str, layout: str = "tile32") -> int:
    """Bytes a tensor takes in L1; InputError when shape and layout do not go together."""
    fmt = format_of(dtype)
    blocks, datums = _block_shape(tuple(shape), fmt, layout)
    exponents = codecs.exponent_bytes(datums) if fmt.kind == "bfp" else 0
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
    _one_of("convert", convert, CONVERTS)
    source = np.atleast_1d(np.asarray(array))
    if fmt.kind == "raw":
        _block_shape(source.shape, fmt, layout)
        return source.astype(source.dtype.newbyteorder("<")).tobytes()
    blocks, _ = _block_shape(source.shape, fmt, layout)
    values = codecs.as_floats(source, fmt)
    if fmt.kind == "bfp":
        data = codecs.encode_bfp(_to_blocks(values, layout, blocks), fmt, convert)
    else:
        codes = _to_blocks(codecs.to_codes(source, values, fmt, convert), layout, blocks)
        data = codes.astype(codecs.STORAGE[fmt.bits]).tobytes()
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
    return codecs.from_codes(element_bits(data, shape, dtype, layout), fmt)


def element_bits(data: bytes, shape: Sequence[int], dtype: str, layout: str = "tile32") -> Words:
    """The bit pattern of every element, uint32 of `shape`.

    A bfp datum shows as the bf16 pattern of its value, so that one number stands for datum and
    exponent together. InputError when `data` is not exactly the tensor's size.
    """
    fmt = format_of(dtype)
    shape = tuple(shape)
    size = encoded_size(shape, dtype, layout)
    if len(data) != size:
        raise InputError(f"{_text(shape)} {dtype} {layout} is {size} bytes, not {len(data)}")
    blocks, datums = _block_shape(shape, fmt, layout)
    raw = np.frombuffer(data, dtype=np.uint8)
    if fmt.kind == "bfp":
        words = codecs.decode_bfp(raw.reshape(blocks, -1), datums, fmt)
    else:
        words = raw.view(codecs.STORAGE[fmt.bits]).astype(np.uint32)
    return _from_blocks(words, shape, layout)


def locate(index: Sequence[int], shape: Sequence[int], layout: str) -> dict[str, int]:
    """Names of an element's place: tile_row, tile_column, face, row and column inside the face.

    Faces of a tile count 0 top left, 1 top right, 2 bottom left, 3 bottom right; with faces16
    there is only tile (the face's row and column among all faces). Other layouts: row and column.
    """
    if len(shape) < 2:
        return {"column": int(index[-1])} if len(index) else {}
    row, column = int(index[-2]), int(index[-1])
    edge = EDGE.get(layout)
    if edge is None:
        return {"row": row, "column": column}
    place = {"tile_row": row // edge, "tile_column": column // edge}
    if layout == "tile32":
        place["face"] = (row % 32) // 16 * 2 + (column % 32) // 16
    return {**place, "row": row % 16, "column": column % 16}


# Layouts.


def bit_offset(
    index: tuple[int, ...], shape: Sequence[int], dtype: str, layout: str = "tile32"
) -> int:
    """Bits from the start of the tensor to the datum of an element (of bfp: sign and magnitude)."""
    fmt, shape = format_of(dtype), tuple(shape)
    blocks, datums = _block_shape(shape, fmt, layout)
    order = np.arange(blocks * datums, dtype=np.uint32).reshape(blocks, datums)
    block, number = divmod(int(_from_blocks(order, shape, layout)[index]), datums)
    exponents = codecs.exponent_bytes(datums) if fmt.kind == "bfp" else 0
    return 8 * (block * (exponents + datums * fmt.bits // 8) + exponents) + number * fmt.bits


def _block_shape(shape: tuple[int, ...], fmt: Format, layout: str) -> tuple[int, int]:
    """(number of blocks, datums per block): a block is what has its own exponent section."""
    edge = EDGE.get(_one_of("layout", layout, LAYOUTS))
    count = math.prod(shape)
    if not count or any(n < 0 for n in shape):
        raise InputError(f"shape {_text(shape)} holds no element")
    if edge is None:
        row = shape[-1] if layout == "rows" and shape else count
        if fmt.kind == "bfp" and row % codecs.GROUP:
            raise InputError(f"{fmt.name} needs rows of a multiple of 16 datums, not {row}")
        return 1, count
    if fmt.kind == "raw":
        raise InputError(f'dtype "raw" is bytes as they are: layout "{layout}" does not apply')
    if len(shape) < 2 or shape[-1] % edge or shape[-2] % edge:
        raise InputError(
            f"shape {_text(shape)} is not a whole number of {edge}x{edge} blocks, as {layout} is",
            hint="pad the tensor, or use layout rows",
        )
    return count // (edge * edge), edge * edge


def _split(shape: tuple[int, ...], layout: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(axes the matrix is cut into, their order in memory)."""
    rows, columns = shape[-2:]
    edge = EDGE[layout]
    if edge == 16:
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


# Comparison.


@dataclass(frozen=True)
class Mismatch:
    """One element that differs: where, both values, both bit patterns, and the distance.

    `place` is what `locate` says. `ulp` counts representable values in between (for bfp, those of
    bf16); None when one of the two is NaN.
    """

    index: tuple[int, ...]
    place: dict[str, int]
    expected: float | int
    got: float | int
    expected_bits: str
    got_bits: str
    ulp: int | None

    def __str__(self) -> str:
        place = dict(self.place)
        tile = (place.pop("tile_row", None), place.pop("tile_column", None))
        names = [] if tile[0] is None else [f"tile ({tile[0]},{tile[1]})"]
        names += [f"{name} {value}" for name, value in place.items()]
        distance = "NaN" if self.ulp is None else f"{self.ulp} ULP"
        return (
            f"{' '.join(names)} {_text(self.index)}: expected {_number(self.expected)}"
            f" ({self.expected_bits}), got {_number(self.got)} ({self.got_bits}), {distance}"
        )


@dataclass(frozen=True)
class Report:
    """The outcome of a comparison; `differing` of `total` elements are outside what `how` allows.

    `first` is the first one in row-major order, `worst` the one farthest off (in ULP; with "close"
    in absolute value).
    """

    name: str
    dtype: str
    layout: str
    how: str
    total: int
    differing: int
    first: Mismatch | None = None
    worst: Mismatch | None = None

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return self.differing == 0

    def as_dict(self) -> dict[str, object]:
        """The report as JSON-ready values; NaN and Inf, which JSON lacks, as text."""
        report = asdict(self)
        for mismatch in (report["first"], report["worst"]):
            for key in ("expected", "got") if mismatch else ():
                if not math.isfinite(mismatch[key]):
                    mismatch[key] = str(mismatch[key])
        return report

    def __str__(self) -> str:
        rule = f"{self.dtype} {self.layout}, compared by {self.how}"
        if self.first is None or self.worst is None:
            return f"{self.name}: all {self.total} elements agree ({rule})"
        lines = [f"{self.name}: {self.differing} of {self.total} elements differ ({rule})"]
        lines.append(f"  first: {self.first}")
        lines.append(f"  worst: {self.worst}")
        return "\n".join(lines)


def compare(
    expected: ArrayLike,
    got: ArrayLike | bytes,
    dtype: str,
    how: str = "bits",
    *,
    layout: str = "tile32",
    name: str = "output",
    max_ulp: int = 1,
    rtol: float = 0.05,
    atol: float = 0.05,
) -> Report:
    """Compare `got` (L1 bytes, or numbers) with the numbers `expected`, element by element.

    "bits": same pattern (every expected value must be exact in `dtype`). "ulp": at most `max_ulp`
    representable values apart from the expected value rounded to nearest. "close": within `atol` +
    `rtol` * |expected|. Two NaN agree except by bits. InputError for unequal shapes.
    """
    _one_of("compare", how, COMPARES)
    pair = _pair(np.atleast_1d(np.asarray(expected)), got, dtype, how=how, layout=layout, name=name)
    bad, distance = pair.outside(how, max_ulp, rtol, atol)
    report = Report(name, dtype, layout, how, bad.size, int(bad.sum()))
    if report.equal:
        return report
    first = pair.mismatch(int(np.argmax(bad)))
    worst = pair.mismatch(int(np.argmax(np.where(bad, distance, -1))))
    return replace(report, first=first, worst=worst)


def differing(
    expected: ArrayLike,
    got: bytes,
    dtype: str,
    how: str,
    layout: str,
    *,
    max_ulp: int,
    rtol: float,
    atol: float,
) -> NDArray[np.bool_]:
    """Which elements `compare` finds to differ, in the shape of `expected`."""
    wanted = np.atleast_1d(np.asarray(expected))
    pair = _pair(wanted, got, dtype, how=how, layout=layout, name="output")
    return pair.outside(how, max_ulp, rtol, atol)[0]


@dataclass(frozen=True)
class _Pair:
    """Expected and got, in that order, as float64 values and as patterns, all of one shape."""

    fmt: Format
    layout: str
    values: tuple[codecs.Floats, codecs.Floats]
    bits: tuple[Words, Words]
    ulp: NDArray[np.int64]

    def outside(
        self, how: str, max_ulp: int, rtol: float, atol: float
    ) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """(elements that differ, how far each is off)."""
        if how == "bits":
            return self.bits[0] != self.bits[1], self.ulp
        if how != "close":
            return self.ulp > max_ulp, self.ulp
        wanted, have = self.values
        bad: NDArray[np.bool_] = ~np.isclose(have, wanted, rtol=rtol, atol=atol, equal_nan=True)
        with np.errstate(invalid="ignore"):
            return bad, np.nan_to_num(np.abs(wanted - have), nan=np.inf)

    def mismatch(self, flat: int) -> Mismatch:
        shape = self.ulp.shape
        index = tuple(int(i) for i in np.unravel_index(flat, shape))
        digits = 4 if self.fmt.kind == "bfp" else self.fmt.bits // 4
        number = int if self.fmt.kind in ("int", "raw") else float
        expected, got = (number(side[index]) for side in self.values)
        want_bits, got_bits = (f"0x{int(side[index]):0{digits}X}" for side in self.bits)
        far = int(self.ulp[index])
        ulp = None if far == _NO_ULP else far
        place = locate(index, shape, self.layout)
        return Mismatch(index, place, expected, got, want_bits, got_bits, ulp)


def _pair(
    wanted: NDArray[Any], got: ArrayLike | bytes, dtype: str, *, how: str, layout: str, name: str
) -> _Pair:
    fmt = format_of(dtype)
    shape = (wanted.nbytes,) if fmt.kind == "raw" else wanted.shape
    try:
        data = encode(wanted, dtype, layout, "exact" if how == "bits" else "nearest")
    except InputError as error:
        raise InputError(f"{name}: expected {error.message}", hint=_EXPECT_HINT) from error
    if not isinstance(got, bytes):
        numbers = np.atleast_1d(np.asarray(got))
        if numbers.shape != wanted.shape:
            raise InputError(f"{name}: {_text(numbers.shape)}, expected {_text(wanted.shape)}")
        got = encode(numbers, dtype, layout)
    bits = (element_bits(data, shape, dtype, layout), element_bits(got, shape, dtype, layout))
    target = codecs.widen(decode(data, shape, dtype, layout))
    if how == "close" and fmt.kind != "raw":
        target = codecs.widen(wanted)
    values = (target, codecs.widen(decode(got, shape, dtype, layout)))
    return _Pair(fmt, layout, values, bits, _ulp(bits, values, fmt))


def _ulp(
    bits: tuple[Words, Words], values: tuple[codecs.Floats, codecs.Floats], fmt: Format
) -> NDArray[np.int64]:
    """Distance in representable values; 0 between two NaN, _NO_ULP between NaN and a number."""
    first, second = (_ordinal(words, fmt) for words in bits)
    nan = [np.isnan(v) for v in values]
    distance = np.where(nan[0] & nan[1], 0, np.abs(first - second))
    return np.where(nan[0] ^ nan[1], _NO_ULP, distance)


def _ordinal(words: Words, fmt: Format) -> NDArray[np.int64]:
    """Position of a pattern among the format's values in increasing order; 0 for both zeros."""
    if not fmt.signed:
        return words.astype(np.int64)
    width = 16 if fmt.kind == "bfp" else fmt.bits
    magnitude = (words & np.uint32((1 << (width - 1)) - 1)).astype(np.int64)
    magnitude >>= fmt.unused
    return np.where(words >> np.uint32(width - 1), -magnitude, magnitude)


# Messages.


def _check_exact(
    source: NDArray[Any], values: codecs.Floats, got: NDArray[Any], dtype: str
) -> None:
    held = codecs.widen(got)
    same = (held == values) | (np.isnan(values) & np.isnan(held))
    if same.all():
        return
    index = _first(~same)
    raise InputError(
        f"element {_text(index)} = {source[index]} is not exact in {dtype}:"
        f" the nearest it holds is {got[index]}"
        f" ({int((~same).sum())} of {same.size} elements are inexact)",
        hint='convert = "nearest" or "truncate" accepts that',
    )


def _number(value: float | int) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _first(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _text(numbers: Sequence[int]) -> str:
    return "[" + ", ".join(str(n) for n in numbers) + "]"


def _one_of(what: str, name: str, allowed: tuple[str, ...]) -> str:
    if name not in allowed:
        raise InputError(f"no {what} {name!r}", hint=f"one of: {' '.join(allowed)}")
    return name
