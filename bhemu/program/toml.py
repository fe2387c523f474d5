"""TOML files: read within limits and key by key; each mistake is named with its place and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from bhemu.arguments import did_you_mean
from bhemu.errors import InputError, Where
from bhemu.program import files

REQUIRED: Final[Any] = object()
D = TypeVar("D")  # of a default
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
    no path may leave it. `finish` refuses the keys that were not asked for.
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
                import difflib  # takes milliseconds, which few runs need

                near = difflib.get_close_matches(key, self._data, n=1)
                hint = f"is {near[0]} meant for it?" if near else ""
                self.fail(f"missing key {key}", hint=hint)
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

    def text(self, key: str, default: D = REQUIRED, choices: Sequence[str] = ()) -> str | D:
        """A string, one of `choices` when there are any."""
        value: str | D = self.take(key, default, (str,))
        if choices and value is not None and value not in choices:
            self.fail(f'{key} = "{value}"', hint=suggestion(str(value), choices))
        return value

    def integer(
        self, key: str, default: D = REQUIRED, *, lo: int = 0, hi: int = (1 << 63) - 1
    ) -> int | D:
        """An integer of `lo` to `hi`, both included."""
        value: Any = self.take(key, default, (int,))
        if value is not None and not lo <= value <= hi:
            self.fail(f"{key} = {value} is not within {lo}..{hi}")
        found: int | D = value
        return found

    def word(self, key: str, choices: Sequence[str], hi: int) -> int | str | None:
        """One of `choices`, or an integer of 0 to `hi`; None without."""
        if isinstance(self.take(key, None, (str, int)), int):
            return self.integer(key, hi=hi)
        return self.text(key, None, choices)

    def number(self, key: str, default: D) -> float | D:
        """A finite number, integer or not, of 0 or more."""
        value: Any = self.take(key, default, (int, float))
        if value is not None and not 0 <= value < float("inf"):
            self.fail(f"{key} = {value} is not a finite number of 0 or more")
        return default if value is None else float(value)

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        return bool(self.take(key, default, (bool,)))

    def shape(self, key: str) -> tuple[int, ...] | None:
        """A shape: an array of positive integers."""
        if (value := self.take(key, None, (list,))) is None:
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
        if (path := self.new_file(key)) is not None and files.is_folder(path):
            self.fail(f"{key}: {path} is a folder, not a file")
        if path is not None and (kind := files.special(path)):
            self.fail(f"{key}: {path} is {kind}, no regular file")
        if path is not None and not files.is_file(path):
            self.fail(f"{key}: no such file: {path}", hint=files.hint_for_missing(path))
        return path

    def new_file(self, key: str) -> Path | None:
        """The path of a file that can be written: its folder exists; None when absent."""
        if (name := self.text(key, None)) is None:
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
            yield Table(value, f"{self.origin}: [[{key}]] {number}", self.folder, self.inside)

    def finish(self) -> None:
        """Refuse the first key that was never asked for."""
        for key in self._data:
            if key not in self._asked:
                self.fail(f"unknown key {key}", hint=suggestion(key, [*dict.fromkeys(self._asked)]))


def _unquoted(key: str, value: object, kinds: Sequence[type]) -> str:
    """What to write instead of a number, array, true or false in quotes; "" for anything else."""
    if type(value) is not str:
        return ""
    text = value.strip()
    meant = (
        (int in kinds and is_number(text))
        or (bool in kinds and text in ("true", "false"))
        or (list in kinds and text[:1] == "[")
    )
    return f"drop the quotes: {key} = {text}" if meant else ""


def is_number(text: str) -> bool:
    """Whether a text is a number as TOML and the command line write it."""
    return _NUMBER.fullmatch(text.strip()) is not None


def suggestion(name: str, allowed: Sequence[str]) -> str:
    """The nearest of the allowed names, and all of them."""
    import difflib  # takes milliseconds, which few runs need

    near = difflib.get_close_matches(name, allowed, n=1)
    listed = f"allowed: {', '.join(allowed)}"
    return f"did you mean {near[0]}? {listed}" if near else listed


ELF = b"\x7fELF"
_ARCHIVE = b"PK\x03\x04"  # .npz
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'[^'\n]*'?"
    r"|\#[^\n]*"
    r"|[\[\]{}.=,\n]",
    re.DOTALL,
)


def read(path: Path, hint: str) -> dict[str, Any]:
    """What the file holds; InputError for one that is missing (with `hint`) or no TOML."""
    if files.is_missing(path):
        raise InputError(f"{path}: no such file", hint=hint)
    if files.begins_with(path, _ARCHIVE):
        raise InputError(f"{path}: not TOML, but an archive, as of a saved state", hint=hint)
    data = files.read_bytes(path, "PROGRAM_BYTES")
    try:
        text = data.decode("utf-8")
        check_depth(text, str(path))
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        is_elf = data.startswith(ELF)
        hint = f"run it on a core: --core trisc1={path}" if is_elf else hint
        what = "an ELF" if is_elf else f"no text, from byte {error.start} on"
        raise InputError(f"{path}: not TOML, but {what}", hint=hint) from error
    except ValueError as error:  # TOMLDecodeError
        raise InputError(f"{path}: not TOML: {error}") from error


def check_schema(top: Table, key: str, known: int) -> None:
    """InputError unless the file states, under `key`, the schema version that is known here."""
    if key not in top and not did_you_mean(key, top):
        top.fail(
            f"missing key {key}", hint=f"begin with {key} = {known}, the version of the schema"
        )
    version = top.integer(key, lo=1)
    if version != known:
        top.fail(f"{key} = {version}", hint=f"this is schema version {known}")


def check_depth(text: str, source: str) -> None:
    """InputError where brackets nest, or a dotted key is long, beyond the limit PROGRAM_DEPTH.

    The parser recurses for the first and takes the square of the length for the second.
    """
    most = files.limit("PROGRAM_DEPTH")
    depth = parts = 0
    for token in _TOKEN.finditer(text):
        first = token[0]
        if first == ".":
            parts += 1
        elif first in "[{":
            depth, parts = depth + 1, 0
        elif first in "]}":
            depth, parts = max(depth - 1, 0), 0
        elif first in "=,\n":
            parts = 0
        if depth > most or parts > most:
            files.check_limit("PROGRAM_DEPTH", max(depth, parts), f"{source}: nesting")


# The line of a PROGRAM.toml that an error is about.

_GROUP = re.compile(r"\[\[?([\w.]+)\]\]?(?: (\d+))?:? ")
_HEADER = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w-]+)\s*=")
_SAYS_LINE = re.compile(r"\(at line (\d+)")
_FILE = re.compile(r"[\w./+-]+\.(?:elf|npy|bin)\b")
_SAID = re.compile(r"'([^']*)'|\"([^\"]*)\"|([\w.:/-]+)")
_MISSING = re.compile(r"missing key ([\w-]+)")
_NO_TABLE = re.compile(r"(?:unknown key )?([\w-]+)(?: must be an array, not a table)?$")
_BESIDE = re.compile(r"([\w-]+) beside \[\[tile\]\]:")
_ORDER = (
    "bhemu", "name", "kind", "brisc", "ncrisc", "trisc0", "trisc1", "trisc2", "index", "tile", "at",
    "pages", "page", "core", "values", "file", "dtype", "layout", "shape", "dram", "convert",
    "expect", "compare", "until", "limit", "timeout_s",
)  # fmt: skip
"""Keys as they usually follow each other in a table."""


def place(path: Path, error: InputError) -> Where | None:
    """The file and line that an error about a program names; None where it names nothing of it."""
    path = path / "PROGRAM.toml" if files.is_folder(path) else path
    about = error.message.startswith((f"{path}: ", "["))
    if not about and path.suffix != ".toml":
        return None
    try:
        lines = files.read_bytes(path, "PROGRAM_BYTES").decode().splitlines()
    except (InputError, UnicodeDecodeError):
        return None  # what is no readable file, as the error itself may say
    if not lines:
        return None
    said = error.message.removeprefix(f"{path}: ")
    line = line_of(lines, said) if about else _of_output(lines, said)
    line = line_of_file(lines, said) if line is None else line
    return None if line is None else Where(file=path.name, line=line)


def _of_output(lines: list[str], message: str) -> int | None:
    """The format of the output that a message begins with: what is expected does not fit it."""
    name = message.partition(": ")[0]
    named = [
        n for n, text in enumerate(lines) if re.match(rf'\s*name\s*=\s*"{re.escape(name)}"', text)
    ]
    headers = [n for n in range(named[0] if named else 0) if _HEADER.match(lines[n])]
    if not headers or not _is_header_of(lines[headers[-1]], "output"):
        return None
    low = headers[-1]
    found = _key_lines(lines, low, _header_after(lines, low, len(lines)), "dtype")
    return None if found is None else found[0] + 1


def line_of(lines: list[str], message: str) -> int:
    """The line, from 1, that a message of a file is about: its tables by number, then its words."""
    if (at := _SAYS_LINE.search(message)) is not None:
        return int(at[1])
    low, high, prefix = 0, len(lines), ""
    top = _header_after(lines, -1, high)  # after the keys of the whole file
    while (group := _GROUP.match(message)) is not None:
        message = message[group.end() :]
        number = int(group[2] or 1)
        found = _table_lines(lines, low, high, prefix + group[1], number) or _key_lines(
            lines, low, high, group[1]
        )
        if found is not None:
            low, high = found
            prefix += f"{group[1]}."
    if (missing := _MISSING.match(message)) is not None:
        return _place_for(lines, low, high if prefix else top, missing[1])
    if (beside := _BESIDE.match(message)) is not None:
        own = _table_lines(lines, low, high, beside[1], 1)
        own = own or _key_lines(lines, low, high, beside[1])
        return low + 1 if own is None else own[0] + 1
    if (table := _NO_TABLE.match(message)) is not None:
        if headers := [n for n in range(low, high) if _is_header_of(lines[n], table[1])]:
            return headers[0] + 1
    file = line_of_file(lines[low:high], message) if " segment " in message else None
    if file is not None:
        return low + file
    return _line_of(lines, low, high if prefix else top, message)


def line_of_file(lines: list[str], message: str) -> int | None:
    """The line that names a file which a message is about; of an ELF that several cores have, of
    the core that it is not called after.
    """
    names = {Path(found).name for found in _FILE.findall(message)}
    found = [
        (n, Path(name).stem, key[1] if (key := _KEY.match(text)) else "")
        for n, text in enumerate(lines, 1)
        for name in _FILE.findall(text.partition("#")[0])
        if Path(name).name in names
    ]
    odd = [n for n, stem, key in found if not stem.endswith(key)]
    called = [n for n, stem, key in found if stem.endswith(key)]
    if odd and called:
        return odd[0]
    return found[0][0] if found else None


def line_of_key(path: Path, table: str, number: int, key: str) -> int:
    """The line of a key of a file's table, by its name and number; its header's without the key."""
    lines = path.read_text().splitlines()
    if (held := _table_lines(lines, 0, len(lines), table, number + 1)) is None:
        return 1
    found = _key_lines(lines, held[0], _header_after(lines, held[0], len(lines)), key)
    return (found or held)[0] + 1


def _place_for(lines: list[str], low: int, high: int, key: str) -> int:
    """Where a key that is missing would stand: the line of one like it, or of those before it."""
    own = range(low, _header_after(lines, low, high))
    keys = [(n, found[1]) for n in own if (found := _KEY.match(lines[n])) is not None]
    like = [n for n, one in keys if one.startswith(key)]
    before = _ORDER[: _ORDER.index(key)] if key in _ORDER else ()
    earlier = [n for n, one in keys if one in before]
    first = [n for n, _ in keys[:1]] if not _HEADER.match(lines[low]) else [low]
    return (like or earlier[-1:] or first or [low])[0] + 1


def _is_header_of(text: str, name: str) -> bool:
    found = _HEADER.match(text)
    return found is not None and found[1].rpartition(".")[2] == name


def _table_lines(
    lines: list[str], low: int, high: int, name: str, number: int
) -> tuple[int, int] | None:
    """Lines of the `number`-th table of a name and of the tables below it."""
    headers = [
        (n, found[1]) for n in range(low, high) if (found := _HEADER.match(lines[n])) is not None
    ]
    starts = [n for n, one in headers if one == name]
    if len(starts) < number:
        return None
    start = starts[number - 1]
    ends = [n for n, one in headers if n > start and not one.startswith(f"{name}.")]
    return start, ends[0] if ends else high


def _key_lines(lines: list[str], low: int, high: int, name: str) -> tuple[int, int] | None:
    """Lines of a key and its value."""
    keys = ((n, _KEY.match(lines[n])) for n in range(low, high))
    starts = [n for n, key in keys if key is not None and key[1] == name]
    if not starts:
        return None
    ends = (
        n for n in range(starts[0] + 1, high) if _KEY.match(lines[n]) or _HEADER.match(lines[n])
    )
    return starts[0], next(ends, high)


def _header_after(lines: list[str], low: int, high: int) -> int:
    """Where the next table begins, `high` without one."""
    return next((n for n in range(low + 1, high) if _HEADER.match(lines[n])), high)


def _line_of(lines: list[str], low: int, high: int, message: str) -> int:
    """Of some lines the one that has what a message names: a key, a value, a number, a file."""
    words = ["".join(found).rstrip(":") for found in _SAID.findall(message)]
    if words[:1] == ["two"]:  # of the same: the last of them
        values = [n for n in range(low, high) if f"{words[-2]} = {words[-1]}" in lines[n]]
        return (values or [low])[-1] + 1
    for exact in (f'"{found[0] or found[1]}"' for found in _SAID.findall(message) if not found[2]):
        for n in range(low, high):
            if exact in lines[n].partition("#")[0] and (exact != '""' or len(words) > 1):
                return n + 1
    for word in words:
        if (found := _key_lines(lines, low, high, word)) is not None:
            return found[0] + 1
    for word in (part for one in words for part in (one, one.rpartition("/")[2])):
        for n in range(low, high):
            code = lines[n].partition("#")[0].lower()
            if len(word) > 1 and word.lower() in code and not _HEADER.match(lines[n]):
                return n + 1
    return low + 1
