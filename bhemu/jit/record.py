"""Structured records that compiled code works on: members, layout, and the views of one."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.jit import address

PAGE = 4096


class Member(NamedTuple):
    """One named array of a record: element type, shape and what it holds."""

    name: str
    dtype: type[np.generic]
    shape: tuple[int, ...]
    doc: str


def layout(members: tuple[Member, ...], mapped: tuple[str, ...] = ()) -> np.dtype[np.void]:
    """The structured type of a record; members that an engine maps begin at a page."""
    names, formats, offsets, at = [], [], [], 0
    for member in members:
        align = PAGE if member.name in mapped else 64
        at = (at + align - 1) & -align
        names.append(member.name)
        formats.append((member.dtype, member.shape))
        offsets.append(at)
        at += int(np.dtype(member.dtype).itemsize * np.prod(member.shape))
    size = (at + PAGE - 1) & -PAGE
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def offsets_of(dtype: np.dtype[np.void]) -> dict[str, int]:
    """Where each member begins."""
    assert dtype.fields is not None
    return {name: int(field[1]) for name, field in dtype.fields.items()}


class Record:
    """A record, page-aligned, with a NumPy view per member as attribute.

    `base` is its host address, `buffer` its bytes (uint8); the views are writable.  The same object
    is the record of interpreted code.
    """

    MEMBERS: ClassVar[tuple[Member, ...]]
    DTYPE: ClassVar[np.dtype[np.void]]

    def __init__(self) -> None:
        size = self.DTYPE.itemsize
        self._raw = np.zeros(size + PAGE, np.uint8)
        start = -self._raw.ctypes.data % PAGE
        self.buffer: npt.NDArray[np.uint8] = self._raw[start : start + size]
        self.base: int = self.buffer.ctypes.data
        record = self.buffer.view(self.DTYPE)
        for member in self.MEMBERS:
            setattr(self, member.name, record[member.name][0])
        address.records[self.base] = self

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        raise AttributeError(f"{type(self).__name__} has no member {name}")

    def members(self) -> Iterator[tuple[Member, npt.NDArray[Any]]]:
        """(member, view) pairs in record order."""
        for member in self.MEMBERS:
            yield member, getattr(self, member.name)
