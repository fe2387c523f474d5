"""The line of a PROGRAM.toml that an error is about."""

import re
from pathlib import Path

from bhemu.errors import InputError, Where
from bhemu.program.files import read_bytes

_GROUP = re.compile(r"\[\[?([\w.]+)\]\]?(?: (\d+))?:? ")
_HEADER = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w-]+)\s*=")
_SAYS_LINE = re.compile(r"\(at line (\d+)")
_SEGMENT = " segment "  # of an ELF
_FILE = re.compile(r"[\w./+-]+\.(?:elf|npy|bin)\b")
_TOKEN = re.compile(r"'([^']*)'|\"([^\"]*)\"|([\w.:/-]+)")
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
    path = path / "PROGRAM.toml" if path.is_dir() else path
    about = error.message.startswith((f"{path}: ", "["))
    if not about and path.suffix != ".toml":
        return None
    try:
        lines = read_bytes(path, "PROGRAM_BYTES").decode().splitlines()
    except (InputError, UnicodeDecodeError):
        return None  # what is no readable file, as the error itself may say
    if not lines:
        return None
    said = error.message.removeprefix(f"{path}: ")
    line = line_of(lines, said) if about else _of_output(lines, said)
    line = line_of_file(lines, said) if line is None else line
    return None if line is None else Where(file=path.name, line=line)


def _of_output(lines: list[str], said: str) -> int | None:
    """The format of the output that a message begins with: what is expected does not fit it."""
    name = said.partition(": ")[0]
    named = [
        n for n, text in enumerate(lines) if re.match(rf'\s*name\s*=\s*"{re.escape(name)}"', text)
    ]
    headers = [n for n in range(named[0] if named else 0) if _is_header(lines[n])]
    if not headers or not _is_header_of(lines[headers[-1]], "output"):
        return None
    low = headers[-1]
    high = next((n for n in range(low + 1, len(lines)) if _is_header(lines[n])), len(lines))
    found = _key(lines, low, high, "dtype")
    return None if found is None else found[0] + 1


def line_of(lines: list[str], said: str) -> int:
    """The line, from 1, that a message of a file is about: its tables by number, then its words."""
    if (at := _SAYS_LINE.search(said)) is not None:
        return int(at[1])
    low, high, prefix = 0, len(lines), ""
    while (group := _GROUP.match(said)) is not None:
        said = said[group.end() :]
        number = int(group[2] or 1)
        found = _table(lines, low, high, prefix + group[1], number) or _key(
            lines, low, high, group[1]
        )
        if found is not None:
            low, high = found
            prefix += f"{group[1]}."
    if (missing := _MISSING.match(said)) is not None:
        return _place_for(lines, low, high if prefix else _first_table(lines), missing[1])
    if (beside := _BESIDE.match(said)) is not None:
        own = _table(lines, low, high, beside[1], 1) or _key(lines, low, high, beside[1])
        return low + 1 if own is None else own[0] + 1
    if (table := _NO_TABLE.match(said)) is not None:
        headers = [n for n in range(low, high) if _is_header_of(lines[n], table[1])]
        if headers:
            return headers[0] + 1
    file = line_of_file(lines[low:high], said) if _SEGMENT in said else None
    if file is not None:
        return low + file
    return _named(lines, low, high if prefix else _first_table(lines), said)


def line_of_file(lines: list[str], said: str) -> int | None:
    """The line that names a file which a message is about; of an ELF that several cores have, of
    the core that it is not called after.
    """
    names = {Path(found).name for found in _FILE.findall(said)}
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


def _place_for(lines: list[str], low: int, high: int, key: str) -> int:
    """Where a key that is missing would stand: the line of one like it, or of those before it."""
    below = (n for n in range(low + 1, high) if _is_header(lines[n]))
    own = range(low, next(below, high))
    keys = [(n, found[1]) for n in own if (found := _KEY.match(lines[n])) is not None]
    like = [n for n, one in keys if one.startswith(key)]
    before = _ORDER[: _ORDER.index(key)] if key in _ORDER else ()
    earlier = [n for n, one in keys if one in before]
    first = [n for n, _ in keys[:1]] if not _is_header(lines[low]) else [low]
    return (like or earlier[-1:] or first or [low])[0] + 1


def _is_header_of(text: str, name: str) -> bool:
    found = _HEADER.match(text)
    return found is not None and found[1].rpartition(".")[2] == name


def _table(lines: list[str], low: int, high: int, name: str, number: int) -> tuple[int, int] | None:
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


def _key(lines: list[str], low: int, high: int, name: str) -> tuple[int, int] | None:
    """Lines of a key and its value."""
    starts = [n for n in range(low, high) if _starts(lines[n], name)]
    if not starts:
        return None
    ends = (n for n in range(starts[0] + 1, high) if _KEY.match(lines[n]) or _is_header(lines[n]))
    return starts[0], next(ends, high)


def _starts(text: str, name: str) -> bool:
    found = _KEY.match(text)
    return found is not None and found[1] == name


def _is_header(text: str) -> bool:
    return _HEADER.match(text) is not None


def _first_table(lines: list[str]) -> int:
    return next((n for n, text in enumerate(lines) if _is_header(text)), len(lines))


def _named(lines: list[str], low: int, high: int, said: str) -> int:
    """Of some lines the one that has what a message names: a key, a value, a number, a file."""
    words = ["".join(found).rstrip(":") for found in _TOKEN.findall(said)]
    if words[:1] == ["two"]:  # of the same: the last of them
        values = [n for n in range(low, high) if f"{words[-2]} = {words[-1]}" in lines[n]]
        return (values or [low])[-1] + 1
    for exact in (f'"{found[0] or found[1]}"' for found in _TOKEN.findall(said) if not found[2]):
        for n in range(low, high):
            if exact in lines[n].partition("#")[0] and (exact != '""' or len(words) > 1):
                return n + 1
    for word in words:
        if (found := _key(lines, low, high, word)) is not None:
            return found[0] + 1
    for word in (part for one in words for part in (one, one.rpartition("/")[2])):
        for n in range(low, high):
            code = lines[n].partition("#")[0].lower()
            if len(word) > 1 and word.lower() in code and not _is_header(lines[n]):
                return n + 1
    return low + 1
