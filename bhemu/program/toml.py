"""A user's TOML files: read under limits, and of a schema version that is known."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from bhemu.errors import InputError
from bhemu.program import files, limits
from bhemu.program.table import Table

ELF = b"\x7fELF"
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
    data = files.read_bytes(path, "PROGRAM_BYTES")
    try:
        text = data.decode("utf-8")
        check_depth(text, str(path))
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        is_elf = data.startswith(ELF)
        hint = f"run it on a core: --core trisc1={path}" if is_elf else "bhemu new writes one"
        what = "an ELF" if is_elf else f"no text, from byte {error.start} on"
        raise InputError(f"{path}: not TOML, but {what}", hint=hint) from error
    except ValueError as error:  # TOMLDecodeError
        raise InputError(f"{path}: not TOML: {error}") from error


def check_schema(top: Table, key: str, known: int) -> None:
    """InputError unless the file states, under `key`, the schema version that is known here."""
    version = top.integer(key, lo=1)
    if version != known:
        top.fail(f"{key} = {version}", hint=f"this is schema version {known}")


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
