"""A program that is refused before anything of it runs: the line of its PROGRAM.toml."""

import re
from pathlib import Path

from bhemu.errors import InputError, Where
from bhemu.why.findings import Finding, place
from bhemu.why.likelihood import likely

_GROUP = re.compile(r"\[\[?([\w.]+)\]\]?(?: (\d+))?: ")
_HEADER = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w-]+)\s*=")
_SAYS_LINE = re.compile(r"\(at line (\d+)")
_TOKEN = re.compile(r"'([^']+)'|\"([^\"]+)\"|([\w.:/-]+)")


def refusal(path: Path, error: InputError) -> Finding | None:
    """What is wrong with the file, where the error is about it."""
    path = path / "PROGRAM.toml" if path.is_dir() else path
    if not error.message.startswith(f"{path}: "):
        return None
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    said = error.message.removeprefix(f"{path}: ")
    where = Where(file=path.name, line=line_of(lines, said))
    text = f"{path.name}:{where.line}: {said}"
    return Finding("error", "error", text, place(where, None), {}, (), error.hint, likely("assert"))


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
    return _named(lines, low, high if prefix else _first_table(lines), said)


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
    words = ["".join(found) for found in _TOKEN.findall(said)]
    if words[:1] == ["two"]:  # of the same: the last of them
        values = [n for n in range(low, high) if f"{words[-2]} = {words[-1]}" in lines[n]]
        return (values or [low])[-1] + 1
    for word in words:
        if (found := _key(lines, low, high, word)) is not None:
            return found[0] + 1
    for word in (part for one in words for part in (one, one.rpartition("/")[2])):
        for n in range(low, high):
            code = lines[n].partition("#")[0].lower()
            if len(word) > 1 and word.lower() in code and not _is_header(lines[n]):
                return n + 1
    return low + 1
