"""Pages of HTML about what was executed: a list of sources, and each source with its counts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from bhemu.debug.line_coverage import LineCoverage, Source, sums
from bhemu.errors import InputError
from bhemu.pictures import html
from bhemu.program import files

_STYLE = """
td, th { padding: 0 .6rem; border: 0; } td.code { white-space: pre; }
tr.hit td.code { background: #2e7d3222; } tr.missed td.code { background: #c6282833; }
tr.partly td.code { background: #f9a82533; }
"""
_HEADS = ("lines", "executed", "branch outcomes", "executed", "functions", "executed")


def write_pages(folder: Path, coverage: LineCoverage, programs: Sequence[str]) -> None:
    """Write index.html and a page for each source; InputError where that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"--html: {folder}: {problem.strerror}") from problem
    names = {name: _page_name(name) for name in sorted(coverage.sources)}
    for name, file in names.items():
        _write(folder / file, html.page(name, _source(name, coverage.sources[name]), _STYLE))
    rows = "".join(
        _row(f'<a href="{html.text(file)}">{html.text(name)}</a>', sums([coverage.sources[name]]))
        for name, file in names.items()
    )
    rows += _row("all", sums(coverage.sources.values()))
    heads = "".join(f"<th>{head}</th>" for head in ("source", *_HEADS))
    body = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    body += html.quietly(f"programs: {', '.join(programs)}")
    _write(folder / "index.html", html.page("Coverage", body, _STYLE))


def _write(path: Path, page: bytes) -> None:
    files.write_whole(path, lambda file: file.write(page), "--html")


def _page_name(source: str) -> str:
    """A name of its own, that says which source it is about."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in Path(source).name)
    return f"{plain}.{digest}.html"


def _row(name: str, counts: dict[str, int]) -> str:
    cells = "".join(f'<td class="number">{count}</td>' for count in counts.values())
    return f"<tr><td>{name}</td>{cells}</tr>"


def _source(name: str, source: Source) -> str:
    """The lines of a source with counts; where it cannot be read those that have code."""
    counts = sums([source])
    told = f"{counts['lines_hit']} of {counts['lines']} lines were executed"
    ways = f"{counts['branches_hit']} of {counts['branches']} branch outcomes"
    heads = "".join(f"<th>{head}</th>" for head in ("line", "executed", "branches", ""))
    rows = "".join(_lines(source, _text(name, source)))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return f'{html.quietly(told, ways)}<p><a href="index.html">all sources</a></p>{table}'


def _text(name: str, source: Source) -> dict[int, str]:
    try:
        data = files.read_bytes(Path(name), "SOURCE_BYTES").decode("utf-8", errors="replace")
    except InputError:
        return dict.fromkeys(sorted(source.lines), "(the source was not found)")
    return dict(enumerate(data.splitlines(), start=1))


def _lines(source: Source, text: dict[int, str]) -> Iterator[str]:
    for number, line in text.items():
        times = source.lines.get(number)
        pairs = source.outcomes(number)
        kind = "" if times is None else "hit" if times else "missed"
        if times and any(0 in pair for pair in pairs):
            kind = "partly"
        ways = ", ".join(f"{taken} taken {other} not" for taken, other in pairs)
        shown = "" if times is None else times
        cells = f'<td class="number">{number}</td><td class="number">{shown}</td><td>{ways}</td>'
        code = html.text(line.expandtabs(4)) or "&nbsp;"
        yield f'<tr class="{kind}">{cells}<td class="code">{code}</td></tr>'
