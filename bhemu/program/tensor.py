"""Layouts of tensors in L1 and files, and tensors in the memory of a tile or chip.

Layouts: "raw" and "rows" are the elements in row-major order as they are; "faces16" is 16x16 faces,
"tile32" 32x32 tiles, both row-major over the matrix of the last two axes; a tile is its four 16x16
faces top left, top right, bottom left, bottom right; a face is row-major. Leading axes count
slowest. A format with shared exponents (see codecs) keeps them per block: per tile with tile32, per
face with faces16, once for the whole tensor in other layouts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.program import codecs
from bhemu.program.codecs import FORMATS, Format, Words

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
    one_of("convert", convert, CONVERTS)
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
        raise InputError(f"{in_words(shape)} {dtype} {layout} is {size} bytes, not {len(data)}")
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
    edge = EDGE.get(one_of("layout", layout, LAYOUTS))
    count = math.prod(shape)
    if not count or any(n < 0 for n in shape):
        raise InputError(f"shape {in_words(shape)} holds no element")
    if edge is None:
        row = shape[-1] if layout == "rows" and shape else count
        if fmt.kind == "bfp" and row % codecs.GROUP:
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


def _check_exact(
    source: NDArray[Any], values: codecs.Floats, got: NDArray[Any], dtype: str
) -> None:
    held = codecs.widen(got)
    same = (held == values) | (np.isnan(values) & np.isnan(held))
    if same.all():
        return
    index = _first(~same)
    raise InputError(
        f"element {in_words(index)} = {source[index]} is not exact in {dtype}:"
        f" the nearest it holds is {got[index]}"
        f" ({int((~same).sum())} of {same.size} elements are inexact)",
        hint='convert = "nearest" or "truncate" accepts that',
    )


def number_text(value: float | int) -> str:
    """A value as messages show it."""
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _first(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def in_words(numbers: Sequence[int]) -> str:
    """A shape or index."""
    return "[" + ", ".join(str(n) for n in numbers) + "]"


def one_of(kind: str, name: str, allowed: tuple[str, ...]) -> str:
    """`name`, which must be allowed."""
    if name not in allowed:
        raise InputError(f"no {kind} {name!r}", hint=f"one of: {' '.join(allowed)}")
    return name


# A memory that tensors are read from and written to.


class Tensors:
    """A memory that holds tensors."""

    def read(self, at: Any, n: int) -> bytes:
        """`n` bytes."""
        raise NotImplementedError

    def write(self, at: Any, data: bytes | bytearray | memoryview) -> None:
        """Store bytes."""
        raise NotImplementedError

    def tensor(
        self, at: int | str, shape: Sequence[int], dtype: str, layout: str = "tile32"
    ) -> NDArray[Any]:
        """The tensor at an address, decoded (float32, or int32 for integer formats)."""
        shape = arguments.shape_of(shape)
        size = encoded_size(shape, dtype, layout)
        return decode(self.read(at, size), shape, dtype, layout)

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
