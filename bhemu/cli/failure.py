"""What a user sees of an error: one line, its place, a hint; as JSON on request; the exit code."""

import json
import os
import sys
import traceback
from collections.abc import Mapping

import click

from bhemu.errors import EXIT_INPUT, EXIT_INTERRUPTED, BhemuError, Internal, NoProgress

TRACEBACK = "BHEMU_TRACEBACK"


def show(problem: Exception, *, as_json: bool, more: Mapping[str, object] | None = None) -> int:
    """Report `problem` on stderr, or as one JSON object on stdout with `more`; its exit code."""
    if isinstance(problem, click.Abort):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    if isinstance(problem, click.ClickException):
        return _usage(problem, as_json)
    error = problem if isinstance(problem, BhemuError) else _unexpected(problem)
    if as_json:
        click.echo(json.dumps({**(more or {}), **error.as_dict()}, indent=2))
    else:
        click.echo("\n".join(lines(error)), err=True)
    return error.exit_code


def lines(error: BhemuError) -> list[str]:
    """The error in words, then who waits for whom, the place and the hint."""
    rule = f"[{error.rule}] " if error.rule else ""
    text = [f"{_red('error:')} {rule}{error.message}"]
    if isinstance(error, NoProgress) and error.graph is not None:
        text += [line for line in str(error.graph).splitlines() if line.strip()]
    if error.where is not None and str(error.where):
        text.append(f"  at {error.where}")
    if error.hint:
        text.append(f"  hint: {error.hint}")
    return text


def _usage(problem: click.ClickException, as_json: bool) -> int:
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        click.echo(problem.format_message(), err=True)
        return EXIT_INPUT
    message = " ".join(problem.format_message().split())
    context = getattr(problem, "ctx", None)
    hint = "" if context is None else f"{context.command_path} --help"
    if as_json:
        report = {"error": "InputError", "category": "InputError", "rule": "", "message": message}
        more = {"where": {}, "hint": hint, "exit_code": EXIT_INPUT}
        click.echo(json.dumps({**report, **more}, indent=2))
    else:
        click.echo(f"{_red('error:')} {message}", err=True)
        if hint:
            click.echo(f"  hint: {hint}", err=True)
    return EXIT_INPUT


def _unexpected(problem: Exception) -> Internal:
    if os.environ.get(TRACEBACK):
        traceback.print_exception(problem, file=sys.stderr)
    return Internal(
        f"{type(problem).__name__}: {problem}",
        hint=f"a defect of bhemu; {TRACEBACK}=1 shows the traceback",
    )


def _red(text: str) -> str:
    if os.environ.get("NO_COLOR") or not sys.stderr.isatty():
        return text
    return click.style(text, fg="red", bold=True)
