"""What a user sees of an error: one line, its place, a hint; as JSON on request; the exit code."""

import errno
import json
import os
import sys
import traceback
from collections.abc import Mapping
from typing import TextIO

import click

from bhemu.errors import (
    EXIT_INPUT,
    EXIT_INTERRUPTED,
    BhemuError,
    InputError,
    Internal,
    Limit,
    NoProgress,
)
from bhemu.text import printable

TRACEBACK = "BHEMU_TRACEBACK"
_muted: list[TextIO] = []
_MEMORY = "a tile takes about 500 MB of address space: ulimit -v"
_LOADER = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")


def show(problem: Exception, *, as_json: bool, more: Mapping[str, object] | None = None) -> int:
    """Report `problem` on stderr, or as one JSON object on stdout with `more`; its exit code."""
    if isinstance(problem, click.Abort):
        _tell("interrupted")
        return EXIT_INTERRUPTED
    if isinstance(problem, click.ClickException):
        return _usage(problem, as_json)
    error = problem if isinstance(problem, BhemuError) else _unexpected(problem)
    if as_json and _wrote(json.dumps({**(more or {}), **error.as_dict()}, indent=2)):
        return error.exit_code
    _tell("\n".join(lines(error)))
    return error.exit_code


def lines(error: BhemuError) -> list[str]:
    """The error in words, then who waits for whom, the place and the hint."""
    rule = f"[{error.rule}] " if error.rule else ""
    text = [f"{_red('error:')} {rule}{error.message}"]
    if isinstance(error, NoProgress):
        text += [printable(line) for line in error.waits]
    if error.where is not None and str(error.where):
        place = str(error.where)
        if error.where.core is None and place.startswith("("):  # a line of a file
            place = place.removeprefix("(").removesuffix(")")
        text.append(f"  at {printable(place)}")
    if error.hint:
        text.append(f"  hint: {error.hint}")
    return text


def _usage(problem: click.ClickException, as_json: bool) -> int:
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        _tell(problem.format_message())
        return EXIT_INPUT
    message = " ".join(problem.format_message().split())
    context = getattr(problem, "ctx", None)
    hint = "" if context is None else f"{context.command_path} --help"
    if as_json:
        report = {"error": "InputError", "category": "InputError", "rule": "", "message": message}
        more = {"where": {}, "hint": hint, "exit_code": EXIT_INPUT}
        if _wrote(json.dumps({**report, **more}, indent=2)):
            return EXIT_INPUT
    _tell(f"{_red('error:')} {printable(message)}" + (f"\n  hint: {hint}" if hint else ""))
    return EXIT_INPUT


def _unexpected(problem: Exception) -> BhemuError:
    if os.environ.get(TRACEBACK):
        traceback.print_exception(problem, file=sys.stderr)
    if _is_memory(problem):
        return Limit("there is not enough memory", rule="MEMORY", hint=_MEMORY)
    if isinstance(problem, OSError) and problem.filename is not None:
        return InputError(f"{problem.filename}: {problem.strerror}", hint="is that file meant?")
    return Internal(
        f"{type(problem).__name__}: {problem}",
        hint=f"a defect of bhemu; {TRACEBACK}=1 shows the traceback",
    )


def _is_memory(problem: BaseException | None) -> bool:
    """Whether memory ran out: said by Python, by the system, or by the loader of a library."""
    while problem is not None:
        text = str(problem)
        if isinstance(problem, MemoryError) or getattr(problem, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(problem, ImportError | OSError) and any(part in text for part in _LOADER):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def _wrote(text: str) -> bool:
    """Write to stdout; False where that cannot be written."""
    if sys.stdout in _muted:
        return False
    try:
        click.echo(text)
        sys.stdout.flush()
    except OSError:
        mute(sys.stdout)
        return False
    return True


def _tell(text: str) -> None:
    """Write to stderr; where that cannot be written, the exit code alone remains."""
    try:
        click.echo(text, err=True)
    except OSError:
        mute(sys.stderr)


def mute(stream: TextIO) -> None:
    """Let everything that is still to be written to a stream of the process vanish."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    _muted.append(stream)


def _red(text: str) -> str:
    if os.environ.get("NO_COLOR") or not sys.stderr.isatty():
        return text
    return click.style(text, fg="red", bold=True)
