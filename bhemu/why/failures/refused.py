"""A program that is refused before anything of it runs: the line of its PROGRAM.toml."""

from bhemu.errors import InputError, Where
from bhemu.why.findings import Finding, likely, place


def refusal(error: InputError, where: Where) -> Finding:
    """What is wrong with the file, at a line of it."""
    text = f"{where.file}:{where.line}: {error.message}"
    return Finding("error", "error", text, place(where, None), {}, (), error.hint, likely("assert"))
