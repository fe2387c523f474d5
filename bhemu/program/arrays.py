"""Arrays in .npy and .npz files: size and shape are read and checked before the data."""

from __future__ import annotations

import io
import math
import zipfile
from typing import IO, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

_MOST_MEMBERS = 4096
_ENTRY = b"PK\x01\x02"  # every member of an archive has one
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


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
        header: Header = self._with(name, _header)
        return header

    def array(self, name: str, most: int) -> NDArray[Any]:
        """The member called `name`, of at most `most` bytes."""
        array: NDArray[Any] = self._with(name, lambda file: _read(file, most))
        return array

    def _with(self, name: str, use: Any) -> Any:
        if name not in self:
            raise UnreadableError(f"no array {name}")
        try:
            info = self._zip.getinfo(f"{name}.npy")
            if info.compress_type not in _METHODS:
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
