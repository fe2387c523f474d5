"""A table of named values read key by key, so that every mistake is named with its place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, overload

from bhemu.errors import InputError
from bhemu.program import files

REQUIRED: Final = object()
_NUMBER = re.compile(r"0[xX][0-9a-fA-F_]{1,32}|0|[1-9][0-9_]{0,31}")
_MOST_BITS = 64  # of any integer that means something
_MOST_AXES, _LONGEST_AXIS = 32, 1 << 32
_OUTSIDE = "--allow-outside lets the program read and write anywhere"
_KIND_NAMES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "a table",
}


class Table:
    """The keys of one TOML table, or of one command line flag.

    `origin` names the place in messages, `folder` is what relative paths start from; with `inside`
    no path may leave it. `finish` refuses the keys nobody asked for.
    """

    def __init__(
        self, data: Mapping[str, Any], origin: str, folder: Path, inside: bool = False
    ) -> None:
        self._data = data
        self._asked: list[str] = []
        self.origin = origin
        self.folder, self.inside = folder, inside

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def fail(self, problem: str, hint: str = "") -> NoReturn:
        """Raise InputError at this place."""
        raise InputError(f"{self.origin}: {problem}", hint=hint)

    def take(self, key: str, default: Any, kinds: Sequence[type]) -> Any:
        """The value of `key`, of one of `kinds`; without a default it must be there."""
        self._asked.append(key)
        if key not in self._data:
            if default is REQUIRED:
                self.fail(f"missing key {key}")
            return default
        value = self._data[key]
        # type(), not isinstance: in Python true is an integer, in a program file it is a mistake.
        if type(value) not in kinds:
            wanted = " or ".join(_KIND_NAMES[kind] for kind in kinds)
            got = _KIND_NAMES.get(type(value), f"a {type(value).__name__}")
            self.fail(f"{key} must be {wanted}, not {got}", hint=_unquoted(key, value, kinds))
        if type(value) is int and value.bit_length() > _MOST_BITS:
            self.fail(f"{key} is an integer of {value.bit_length()} bits")
        return value

    @overload
    def text(self, key: str, default: str, choices: Sequence[str] = ()) -> str: ...
    @overload
    def text(self, key: str, default: None, choices: Sequence[str] = ()) -> str | None: ...
    @overload
    def text(self, key: str, *, choices: Sequence[str] = ()) -> str: ...
    def text(self, key: str, default: Any = REQUIRED, choices: Sequence[str] = ()) -> Any:
        """A string, one of `choices` when there are any."""
        value = self.take(key, default, (str,))
        if choices and value is not None and value not in choices:
            self.fail(f'{key} = "{value}"', hint=suggestion(value, choices))
        return value

    @overload
    def integer(self, key: str, default: int, *, lo: int = ..., hi: int = ...) -> int: ...
    @overload
    def integer(self, key: str, default: None, *, lo: int = ..., hi: int = ...) -> int | None: ...
    @overload
    def integer(self, key: str, *, lo: int = ..., hi: int = ...) -> int: ...
    def integer(
        self, key: str, default: Any = REQUIRED, *, lo: int = 0, hi: int = (1 << 63) - 1
    ) -> Any:
        """An integer of `lo` to `hi`, both included."""
        value = self.take(key, default, (int,))
        if value is not None and not lo <= value <= hi:
            self.fail(f"{key} = {value} is not within {lo}..{hi}")
        return value

    def word(self, key: str, default: Any, choices: Sequence[str], hi: int) -> int | str | None:
        """One of `choices`, or an integer of 0 to `hi`."""
        if isinstance(self.take(key, default, (str, int)), int):
            return self.integer(key, hi=hi)
        found: str | None = self.text(key, default, choices=choices)
        return found

    @overload
    def number(self, key: str, default: float) -> float: ...
    @overload
    def number(self, key: str, default: None) -> float | None: ...
    def number(self, key: str, default: float | None) -> float | None:
        """A finite number, integer or not, of 0 or more."""
        value = self.take(key, default, (int, float))
        if value is not None and not 0 <= value < float("inf"):
            self.fail(f"{key} = {value} is not a finite number of 0 or more")
        return None if value is None else float(value)

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        return bool(self.take(key, default, (bool,)))

    def shape(self, key: str) -> tuple[int, ...] | None:
        """A shape: an array of positive integers."""
        value = self.take(key, None, (list,))
        if value is None:
            return None
        few = len(value) <= _MOST_AXES and all(
            type(n) in (int, float) and abs(n) < _LONGEST_AXIS for n in value
        )
        if not value or not few or any(type(n) is not int or n < 1 for n in value):
            shown = value if few else f"an array of {len(value)} values"
            self.fail(f"{key} = {shown} is not a shape", hint="for example [64, 96]")
        return tuple(value)

    def file(self, key: str) -> Path | None:
        """The path of a file that exists, None when the key is absent."""
        path = self.new_file(key)
        if path is not None and files.is_folder(path):
            self.fail(f"{key}: {path} is a folder, not a file")
        if path is not None and not files.is_file(path):
            self.fail(f"{key}: no such file: {path}")
        return path

    def new_file(self, key: str) -> Path | None:
        """The path of a file that can be written: its folder exists; None when absent."""
        name = self.text(key, None)
        if name is None:
            return None
        if not name or "\0" in name:
            self.fail(f"{key}: no file has the name {name!r}")
        path = self.folder / name
        if not files.is_folder(path.parent):
            self.fail(f"{key}: no such folder: {path.parent}")
        if self.inside and not files.is_inside(path, self.folder):
            self.fail(f"{key}: {path} leaves the folder of the program", hint=_OUTSIDE)
        return path

    def table(self, key: str) -> Table:
        """The table under `key`, empty when absent."""
        value = self.take(key, {}, (dict,))
        return Table(value, f"{self.origin}: [{key}]", self.folder, self.inside)

    def tables(self, key: str) -> Iterator[Table]:
        """The tables of an array of tables, numbered from 1 in messages."""
        for number, value in enumerate(self.take(key, [], (list,)), start=1):
            if type(value) is not dict:
                self.fail(f"{key} must be an array of tables", hint=f"write [[{key}]]")
            origin = f"{self.origin}: [[{key}]] {number}"
            yield Table(value, origin, self.folder, self.inside)

    def finish(self) -> None:
        """Refuse the first key that was never asked for."""
        for key in self._data:
            if key not in self._asked:
                self.fail(f"unknown key {key}", hint=suggestion(key, [*dict.fromkeys(self._asked)]))


def _unquoted(key: str, value: object, kinds: Sequence[type]) -> str:
    """What to write instead of a number in quotes; "" for anything else."""
    if type(value) is not str or int not in kinds or not is_number(value):
        return ""
    return f"drop the quotes: {key} = {value.strip()}"


def is_number(text: str) -> bool:
    """Whether a text is a number as TOML and the command line write it."""
    return _NUMBER.fullmatch(text.strip()) is not None


def suggestion(name: str, allowed: Sequence[str]) -> str:
    """The nearest of the allowed names, and all of them."""
    near = difflib.get_close_matches(name, allowed, n=1)
    listed = f"allowed: {', '.join(allowed)}"
    return f"did you mean {near[0]}? {listed}" if near else listed
