"""A page of HTML in one file: no network, nothing from a file shown unescaped."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from bhemu import __version__
from bhemu.text import printable

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --bad: #c62828; --good: #2e7d32; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem; max-width: 110rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } code, pre, td.code { font-family: ui-monospace, monospace; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: left; }
th { position: sticky; top: 0; background: Canvas; } td.number { text-align: right; }
.scroll { overflow: auto; max-height: 32rem; } .quiet { opacity: .7; } .bad { color: var(--bad); }
@media (prefers-color-scheme: dark) { :root { --bad: #ef9a9a; --good: #a5d6a7; } }
"""


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
    shown = "".join(f"<th>{text(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    head = f"<thead><tr>{shown}</tr></thead>"
    named = f' id="{text(name)}"' if name else ""
    return f"<table{named}>{head}<tbody>{body}</tbody></table>"


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


def page(title: str, body: str, style: str = "", script: str = "") -> bytes:
    """The whole file; `body` is markup, whose texts went through `text`."""
    code = f"<script>{script}</script>" if script else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{text(title)}</title><style>{_STYLE}{style}</style></head>"
        f"<body><h1>{text(title)}</h1>{body}{code}</body></html>"
    ).encode()
