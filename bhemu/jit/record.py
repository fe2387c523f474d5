"""Structured records in compiled code and in plain Python."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.jit import intrinsics
from bhemu.jit.subset import ByName, Compiled

# Structured records that compiled code works on: members, layout, and the views of one.

PAGE = 4096


class Member(NamedTuple):
    """One named array of a record: element type, shape and what it holds."""

    name: str
    dtype: type[np.generic]
    shape: tuple[int, ...]
    doc: str


_TYPES: dict[str, type[np.generic]] = {
    f"{kind}{8 * size}": np.dtype(f"{kind}{size}").type for kind in "ui" for size in (1, 2, 4, 8)
}
_MEMBER = re.compile(r"(\w+) (\w+)\[(.+?)\] (.+)")


def members(path: Path, sizes: Mapping[str, int]) -> tuple[Member, ...]:
    """The members that a file declares, a line each: NAME TYPE[SHAPE] what it holds.

    A shape holds numbers, and names of `sizes`; # begins a comment.
    """
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            declared = _MEMBER.fullmatch(line)
            assert declared is not None, line
            name, kind, shape, doc = declared.groups()
            numbers = (int(n) if n.isdigit() else sizes[n] for n in shape.split(", "))
            found.append(Member(name, _TYPES[kind], tuple(numbers), doc))
    return tuple(found)


def layout(members: tuple[Member, ...], mapped: tuple[str, ...] = ()) -> np.dtype[np.void]:
    """The structured type of a record; members that an engine maps begin at a page."""
    names, formats, offsets, at = [], [], [], 0
    for member in members:
        align = PAGE if member.name in mapped else 64
        at = (at + align - 1) & -align
        names.append(member.name)
        formats.append((member.dtype, member.shape))
        offsets.append(at)
        at += np.dtype(member.dtype).itemsize * math.prod(member.shape)
    size = (at + PAGE - 1) & -PAGE
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def offsets_of(dtype: np.dtype[np.void]) -> dict[str, int]:
    """Where each member begins."""
    assert dtype.fields is not None
    return {name: int(field[1]) for name, field in dtype.fields.items()}


class Record:
    """A record, page-aligned, with a NumPy view per member as attribute.

    `base` is its host address, `buffer` its bytes (uint8); the views are writable.  The same object
    is the record of interpreted code. `memory`: bytes that it is made in, all zero where it does
    not say else.
    """

    MEMBERS: ClassVar[tuple[Member, ...]]
    DTYPE: ClassVar[np.dtype[np.void]]

    def __init__(self, memory: npt.NDArray[np.uint8] | None = None) -> None:
        size = self.DTYPE.itemsize
        self._raw = np.zeros(size + PAGE, np.uint8) if memory is None else memory
        start = -self._raw.ctypes.data % PAGE
        self.buffer: npt.NDArray[np.uint8] = self._raw[start : start + size]
        self.base: int = self.buffer.ctypes.data
        self._record = np.frombuffer(self.buffer, self.DTYPE)[0]  # view() looks at each member
        intrinsics.records[self.base] = self

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        """The view of a member, which is made when it is first asked for."""
        try:
            view: npt.NDArray[Any] = self.__dict__["_record"][name]
        except (KeyError, ValueError):
            raise AttributeError(f"{type(self).__name__} has no member {name}") from None
        self.__dict__[name] = view
        return view

    def members(self) -> Iterator[tuple[Member, npt.NDArray[Any]]]:
        """(member, view) pairs in record order."""
        for member in self.MEMBERS:
            yield member, getattr(self, member.name)


# Functions of the compiled subset as plain Python, for looks at a record that nothing compiles.

_made: dict[int, Any] = {}


class _Module:
    """A module whose compiled functions are plain."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _plain_value(getattr(self._module, name))


def plain(function: Any) -> Callable[..., Any]:
    """A function of the subset, and all that it calls, as plain Python over a State."""
    original = function.py_func if isinstance(function, Compiled | ByName) else function
    key = id(original)
    if key not in _made:
        names: dict[str, Any] = {}
        of = original.__name__, original.__defaults__, original.__closure__
        made = FunctionType(original.__code__, names, *of)
        made.__kwdefaults__ = original.__kwdefaults__
        _made[key] = made  # before its names: functions may call each other
        for name, value in original.__globals__.items():
            if name in original.__code__.co_names or name == "__builtins__":
                names[name] = _plain_value(value)
    result: Callable[..., Any] = _made[key]
    return result


def _plain_value(value: Any) -> Any:
    if isinstance(value, ByName):
        return ByName(plain(value.py_func), plain(value.store))
    if isinstance(value, Compiled):
        return plain(value)
    if isinstance(value, ModuleType) and value.__name__.startswith("bhemu"):
        return _Module(value)
    return value
