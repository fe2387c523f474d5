"""HTML pages: escaped text, tables, data; the pages of `bhemu coverage`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bhemu import __version__
from bhemu.debug.line_coverage import LineCoverage, Source, sums
from bhemu.errors import InputError
from bhemu.program import files
from bhemu.text import printable

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def text(value: object) -> str:
    """`value` as text of a page or of an attribute: markup and control characters escaped."""
    return escape(printable(str(value)))


def data(name: str, value: Any) -> str:
    """`value` as JSON for the page's script: JSON.parse(document.getElementById(name).textContent).

    No text in it can end the element.
    """
    written = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{text(name)}">{written}</script>'


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], name: str = "") -> str:
    """A table; numbers stand on the right, None is an empty cell."""
    return _table(heads, "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows), name)


def _table(heads: Sequence[str], rows: str, name: str = "") -> str:
    """A table whose rows are markup."""
    shown = "".join(f"<th>{text(head)}</th>" for head in heads)
    named = f' id="{text(name)}"' if name else ""
    return f"<table{named}><thead><tr>{shown}</tr></thead><tbody>{rows}</tbody></table>"


def scrolled(body: str, name: str = "") -> str:
    """`body` in a part of the page that scrolls by itself."""
    named = f' id="{text(name)}"' if name else ""
    return f'<div class="scroll"{named}>{body}</div>'


def quietly(*parts: object) -> str:
    """A line of less importance: the parts, then bhemu's version."""
    shown = "; ".join(text(part) for part in (*parts, f"bhemu {__version__}"))
    return f'<p class="quiet">{shown}</p>'


def _cell(value: object) -> str:
    if value is None:
        return "<td></td>"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'<td class="number">{value}</td>' if number else f"<td>{text(value)}</td>"


_STYLES = Path(__file__).parents[1] / "data" / "pages.css"
"""The style of every page, then those of pages of a kind, each after its name in a comment."""


def page(title: str, body: str, style: str = "", script: str = "") -> bytes:
    """The whole file; `body` is markup, whose texts went through `text`; style: a kind of page."""
    _, *parts = re.split(r"/\* (.+) \*/\n", _STYLES.read_text(encoding="utf-8"))
    styles = dict(zip(parts[::2], parts[1::2], strict=True))
    look = styles["every page"] + (styles[style] if style else "")
    code = f"<script>{script}</script>" if script else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{text(title)}</title><style>{look}</style></head>"
        f"<body><h1>{text(title)}</h1>{body}{code}</body></html>"
    ).encode()


_HEADS = ("source", "lines", "executed", "branch outcomes", "executed", "functions", "executed")


def write_pages(folder: Path, coverage: LineCoverage, programs: Sequence[str]) -> None:
    """Write index.html and a page for each source; InputError where that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        said = f"--html: {folder}: {problem.strerror}"
        raise InputError(said, hint=files.NAME_ANOTHER) from problem
    names = {name: _page_name(name) for name in sorted(coverage.sources)}
    for name, file in names.items():
        content = page(name, _source(name, coverage.sources[name]), "coverage")
        files.write_whole(folder / file, content, "--html")
    rows = "".join(
        _row(f'<a href="{text(file)}">{text(name)}</a>', sums([coverage.sources[name]]))
        for name, file in names.items()
    )
    rows += _row("all", sums(coverage.sources.values()))
    body = _table(_HEADS, rows) + quietly(f"programs: {', '.join(programs)}")
    files.write_whole(folder / "index.html", page("Coverage", body, "coverage"), "--html")


def _page_name(source: str) -> str:
    """A name of its own, that says which source it is about."""
    plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in Path(source).name)
    return f"{plain}.{hashlib.sha256(source.encode()).hexdigest()[:8]}.html"


def _row(name: str, counts: dict[str, int]) -> str:
    cells = "".join(f'<td class="number">{count}</td>' for count in counts.values())
    return f"<tr><td>{name}</td>{cells}</tr>"


def _source(name: str, source: Source) -> str:
    """The lines of a source with counts; where it cannot be read those that have code."""
    counts = sums([source])
    told = f"{counts['lines_hit']} of {counts['lines']} lines were executed"
    ways = f"{counts['branches_hit']} of {counts['branches']} branch outcomes"
    try:
        data = files.read_bytes(Path(name), "SOURCE_BYTES").decode("utf-8", errors="replace")
        lines = dict(enumerate(data.splitlines(), start=1))
    except InputError:
        lines = dict.fromkeys(sorted(source.lines), "(the source was not found)")
    table = _table(("line", "executed", "branches", ""), "".join(_lines(source, lines)))
    return f'{quietly(told, ways)}<p><a href="index.html">all sources</a></p>{table}'


def _lines(source: Source, lines: dict[int, str]) -> Iterator[str]:
    for number, line in lines.items():
        times = source.lines.get(number)
        pairs = source.outcomes(number)
        kind = "" if times is None else "hit" if times else "missed"
        if times and any(0 in pair for pair in pairs):
            kind = "partly"
        ways = ", ".join(f"{taken} taken {other} not" for taken, other in pairs)
        shown = "" if times is None else times
        cells = f'<td class="number">{number}</td><td class="number">{shown}</td><td>{ways}</td>'
        code = text(line.expandtabs(4)) or "&nbsp;"
        yield f'<tr class="{kind}">{cells}<td class="code">{code}</td></tr>'
