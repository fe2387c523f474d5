"""What a TOML file must not hold before a parser is asked: nesting that only costs time."""

from __future__ import annotations

import re

from bhemu import limits

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'[^'\n]*'?"
    r"|\#[^\n]*"
    r"|[\[\]{}.=,\n]",
    re.DOTALL,
)


def check_depth(text: str, what: str) -> None:
    """InputError where brackets nest, or a dotted key is long, beyond the limit PROGRAM_DEPTH.

    The parser recurses for the first and takes the square of the length for the second.
    """
    most = limits.limit("PROGRAM_DEPTH")
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
            limits.check("PROGRAM_DEPTH", max(depth, parts), f"{what}: nesting")
