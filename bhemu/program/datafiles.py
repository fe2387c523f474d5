"""Data a program brings along: arrays in files, pictures of L1, and values written as text."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bhemu.errors import InputError
from bhemu.memmap import L1_SIZE
from bhemu.program import arrays, files, limits, tensor
from bhemu.program.coordinates import TILE_VALUES
from bhemu.program.table import suggestion

_INTEGERS = {"u8": "<B", "u16": "<H", "u32": "<I", "i8": "<b", "i16": "<h", "i32": "<i"}
_FLOATS = {"f32": "fp32", "bf16": "bf16"}
_VALUE_HINT = f"one of {' '.join((*_INTEGERS, *_FLOATS))}, as in u32:4 or f32:1.0, or tile:index"
_PIECES = ("in_addr", "in_len", "in_data")


def encode_values(
    values: Sequence[object], origin: str, place: Mapping[str, int] | None = None
) -> bytes:
    """The bytes of values such as "u32:4" or "f32:1.0", one behind the other without padding.

    "tile:NAME" is a u32 that `place` gives (coordinates.TILE_VALUES), 0 without `place`. Integers
    are two's complement, in any of Python's notations; floats are rounded to nearest. All are
    little-endian, as the cores read them. InputError names the value that cannot be read.
    """
    known = dict.fromkeys(TILE_VALUES, 0) if place is None else place
    return b"".join(_encode_value(value, origin, known) for value in values)


def _encode_value(value: object, origin: str, place: Mapping[str, int]) -> bytes:
    kind, colon, text = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind == "tile" and colon:
        if text not in place:
            raise InputError(
                f"{origin}: {value!r} is not a value", hint=suggestion(text, tuple(place))
            )
        return struct.pack("<I", place[text])
    if not colon or kind not in {*_INTEGERS, *_FLOATS}:
        raise InputError(f"{origin}: {value!r} is not a value", hint=_VALUE_HINT)
    try:
        if kind in _INTEGERS:
            return struct.pack(_INTEGERS[kind], int(text, 0))
        number = float(text)
    except ValueError:
        raise InputError(f"{origin}: {value!r}: {text!r} is not a number") from None
    except struct.error:
        raise InputError(f"{origin}: {value!r} does not fit into {kind}") from None
    return tensor.encode([number], _FLOATS[kind], "raw", "nearest")


def read_array(path: Path, dtype: str, origin: str) -> NDArray[Any]:
    """The array in a .npy file; with dtype "raw" the bytes of any other file.

    InputError when the file is missing or damaged, is not .npy, or holds Python objects.
    """
    if path.suffix == ".npy":
        data = files.read_bytes(path, "ARRAY_BYTES", origin)
        try:
            return arrays.from_npy(data)
        except arrays.UnreadableError as error:
            raise InputError(f"{origin}: {path} is not a .npy array of numbers: {error}") from error
    if dtype == "raw":
        return np.frombuffer(files.read_bytes(path, "ARRAY_BYTES", origin), dtype=np.uint8)
    raise InputError(f"{origin}: {path} is not .npy", hint='dtype = "raw" takes any file as bytes')


def read_image(path: Path) -> NDArray[np.uint8]:
    """A picture of L1: uint8 of (1572864,), zero where the file says nothing.

    A .npz holds pieces: in_data is their bytes one behind the other, in_addr and in_len where each
    goes and how long it is. Any other file is the bytes of L1 from address 0. InputError when the
    file is missing or damaged, or does not fit.
    """
    l1 = np.zeros(L1_SIZE, dtype=np.uint8)
    if path.suffix != ".npz":
        l1_bytes = files.read_bytes(path, "ARRAY_BYTES")
        pieces = [(0, np.frombuffer(l1_bytes, dtype=np.uint8))]
    else:
        try:
            pieces = _pieces(path)
        except arrays.UnreadableError as error:
            raise InputError(f"{path}: not an .npz image: {error}") from error
    for address, data in pieces:
        if not 0 <= address <= L1_SIZE - len(data):
            raise InputError(
                f"{path}: {len(data)} bytes at 0x{address:X} are not inside L1 (0x0..0x{L1_SIZE:X})"
            )
        l1[address : address + len(data)] = data
    return l1


def _pieces(path: Path) -> list[tuple[int, NDArray[np.uint8]]]:
    with arrays.Archive(files.read_bytes(path, "ARCHIVE_BYTES")) as archive:
        missing = [name for name in _PIECES if name not in archive]
        if missing:
            raise InputError(
                f"{path}: no array {missing[0]}", hint=f"it needs {', '.join(_PIECES)}"
            )
        most = limits.limit("ARRAY_BYTES")
        addresses, lengths, data = (archive.array(name, most) for name in _PIECES)
    counted = all(part.dtype.kind in "iu" and part.ndim == 1 for part in (addresses, lengths))
    fits = counted and (lengths >= 0).all() and lengths.sum() == data.size
    if data.dtype != np.uint8 or not fits or addresses.shape != lengths.shape:
        raise InputError(f"{path}: in_addr and in_len do not describe the bytes of in_data")
    parts = np.split(data, np.cumsum(lengths)[:-1].astype(np.int64))
    return [(int(address), part) for address, part in zip(addresses, parts, strict=True)]
