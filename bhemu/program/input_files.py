"""Arrays, pictures of L1 and typed values, read from files and from text."""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bhemu.errors import InputError
from bhemu.memmap import L1_SIZE
from bhemu.program import files, tensor
from bhemu.program.coordinates import TILE_VALUES
from bhemu.program.toml import suggestion

# Arrays in .npy and .npz files: size and shape are read and checked before the data.

T = TypeVar("T")
_MOST_MEMBERS = 4096
_ENTRY = b"PK\x01\x02"  # every member of an archive has one


class UnreadableError(ValueError):
    """The file holds no array of numbers; the text says why, in one line."""


class Header(NamedTuple):
    """What a .npy says before its data."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of the data."""
        return math.prod(self.shape) * self.dtype.itemsize


def from_npy(data: bytes) -> NDArray[Any]:
    """The array in the bytes of a .npy file; UnreadableError unless it holds all its numbers."""
    return _read(io.BytesIO(data), len(data))


class Archive:
    """The arrays of an .npz file; UnreadableError for everything wrong with it."""

    def __init__(self, data: bytes) -> None:
        if data[:6] == b"\x93NUMPY":
            raise UnreadableError("a single array")
        if data.count(_ENTRY) > _MOST_MEMBERS:
            raise UnreadableError(f"more than {_MOST_MEMBERS} members")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except Exception as error:  # the parser raises many unrelated types on damaged input
            raise UnreadableError(_reason(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._zip.namelist()

    def header(self, name: str) -> Header:
        """Shape and type of a member."""
        return self._with(name, _header)

    def array(self, name: str, most: int) -> NDArray[Any]:
        """The member called `name`, of at most `most` bytes."""
        return self._with(name, lambda file: _read(file, most))

    def _with(self, name: str, use: Callable[[IO[bytes]], T]) -> T:
        if name not in self:
            raise UnreadableError(f"no array {name}")
        try:
            info = self._zip.getinfo(f"{name}.npy")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise UnreadableError(f"{name} is packed by method {info.compress_type}")
            with self._zip.open(info) as file:
                return use(file)
        except UnreadableError as error:
            raise UnreadableError(f"{name}: {error}") from error
        except Exception as error:  # zlib.error, NotImplementedError, RuntimeError, ...
            raise UnreadableError(f"{name}: {_reason(error)}") from error


def _header(file: IO[bytes]) -> Header:
    """numpy evaluates the header as Python: a damaged one raises anything."""
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            header = Header(*np.lib.format.read_array_header_1_0(file))
        elif version == (2, 0):
            header = Header(*np.lib.format.read_array_header_2_0(file))
        else:
            raise UnreadableError(f"version {version[0]}.{version[1]} of the format")
    except Exception as error:
        raise UnreadableError(_reason(error)) from error
    if header.dtype.hasobject:
        raise UnreadableError("it holds Python objects")
    countable = all(0 <= n < 1 << 40 for n in header.shape) and len(header.shape) <= 32
    if not countable or not header.dtype.itemsize:
        raise UnreadableError("its shape holds no number of elements")
    return header


def _read(file: IO[bytes], most: int) -> NDArray[Any]:
    header = _header(file)
    if header.size > most:
        raise UnreadableError(f"{header.size} bytes stated, {most} possible")
    data = file.read(header.size)
    if len(data) != header.size:
        raise UnreadableError(f"{len(data)} bytes of data, {header.size} stated")
    file.read(1)  # at its end a member's checksum is compared
    array = np.ndarray(header.size // header.dtype.itemsize, header.dtype, data)
    return array.reshape(header.shape, order="F" if header.fortran else "C")


def _reason(error: Exception) -> str:
    text = str(error)
    return text.splitlines()[0] if text else type(error).__name__


_INTEGERS = {"u8": "<B", "u16": "<H", "u32": "<I", "i8": "<b", "i16": "<h", "i32": "<i"}
_FLOATS = {"f32": "fp32", "bf16": "bf16"}
_VALUE_HINT = f"one of {' '.join((*_INTEGERS, *_FLOATS))}, as in u32:4 or f32:1.0, or tile:index"
_PIECES = ("in_addr", "in_len", "in_data")


def encode_values(
    values: Sequence[object], origin: str, place: Mapping[str, int] | None = None
) -> bytes:
    """The bytes of values such as "u32:4" or "f32:1.0", in order and without padding.

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
            hint = suggestion(text, tuple(place))
            raise InputError(f"{origin}: {value!r} is not a value", hint=hint)
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
        try:
            return from_npy(files.read_bytes(path, "ARRAY_BYTES", origin))
        except UnreadableError as error:
            raise InputError(f"{origin}: {path} is not a .npy array of numbers: {error}") from error
    if dtype == "raw":
        return np.frombuffer(files.read_bytes(path, "ARRAY_BYTES", origin), dtype=np.uint8)
    raise InputError(f"{origin}: {path} is not .npy", hint='dtype = "raw" takes any file as bytes')


def read_image(path: Path) -> NDArray[np.uint8]:
    """A picture of L1: uint8 of (1572864,), zero where the file says nothing.

    A .npz holds pieces: in_data is their bytes in order, in_addr and in_len where each
    goes and how long it is. Any other file is the bytes of L1 from address 0. InputError when the
    file is missing or damaged, or does not fit.
    """
    l1 = np.zeros(L1_SIZE, dtype=np.uint8)
    if path.suffix != ".npz":
        pieces = [(0, np.frombuffer(files.read_bytes(path, "ARRAY_BYTES"), dtype=np.uint8))]
    else:
        try:
            with Archive(files.read_bytes(path, "ARCHIVE_BYTES")) as archive:
                if missing := [name for name in _PIECES if name not in archive]:
                    hint = f"it needs {', '.join(_PIECES)}"
                    raise InputError(f"{path}: no array {missing[0]}", hint=hint)
                most = files.limit("ARRAY_BYTES")
                addresses, lengths, data = (archive.array(name, most) for name in _PIECES)
            counted = all(
                part.dtype.kind in "iu" and part.ndim == 1 for part in (addresses, lengths)
            )
            fits = counted and (lengths >= 0).all() and lengths.sum() == data.size
            if data.dtype != np.uint8 or not fits or addresses.shape != lengths.shape:
                raise InputError(f"{path}: in_addr and in_len do not describe the bytes of in_data")
            parts = np.split(data, np.cumsum(lengths)[:-1].astype(np.int64))
            pieces = [(int(address), part) for address, part in zip(addresses, parts, strict=True)]
        except UnreadableError as error:
            raise InputError(f"{path}: not an .npz image: {error}") from error
    for address, data in pieces:
        if not 0 <= address <= L1_SIZE - len(data):
            raise InputError(
                f"{path}: {len(data)} bytes at 0x{address:X} are not inside L1 (0x0..0x{L1_SIZE:X})"
            )
        l1[address : address + len(data)] = data
    return l1
