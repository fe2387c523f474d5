"""What commands write on the terminal: lines, errors, progress."""

import contextlib
import errno
import gc
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

import click

from bhemu import errors
from bhemu.errors import BhemuError, InputError
from bhemu.riscv import EMULATOR, check_start
from bhemu.system import interrupts
from bhemu.text import printable, printable_lines

if TYPE_CHECKING:
    from bhemu.cli.summary import Target


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """`text` and a line feed on stdout or stderr; characters that do not print are escaped."""
    click.echo(printable_lines(str(text)), err=err, nl=nl)


def report(
    found: Mapping[str, object],
    code: int,
    lines: Iterable[object] = (),
    *,
    as_json: bool,
    error: BhemuError | None = None,
) -> int:
    """Print what a command found: its `lines`, or one JSON object with verdict and exit code.

    An `error` that ended the run is told too. Returns the exit code, which is then the error's.
    The verdict is that of the exit code and of `found["findings"]`, unless `found` has its own.
    """
    if error is not None and as_json:
        return show(error, as_json=True, more=found)
    for line in (document(found, code),) if as_json else lines:
        say(line)
    return code if error is None else show(error, as_json=False)


def document(found: Mapping[str, Any], code: int) -> str:
    """The JSON of a command: what it found, with the verdict and the exit code."""
    verdict = verdict_of(code, found.get("findings", ()))
    return json.dumps({"verdict": verdict, **found, "exit_code": code}, indent=2)


# The verdict: what the JSON of a command says of a program in a word (docs/verdicts.md).

_BUGS = (errors.EXIT_DIFFERS, errors.EXIT_NO_PROGRESS, errors.EXIT_GUEST, errors.EXIT_ASSERT)
BY_EXIT_CODE = {
    errors.EXIT_OK: "ok",
    **dict.fromkeys(_BUGS, "kernel bug"),
    errors.EXIT_INPUT: "bad input",
    **dict.fromkeys((errors.EXIT_NOT_MODELLED, errors.EXIT_INTERNAL), "not modelled"),
    **dict.fromkeys((errors.EXIT_LIMIT, errors.EXIT_INTERRUPTED), "limit"),
}
"""By the exit code of a run; the class of an error has one code (errors.py)."""
_CHECKS = ("error", "waiting", "unwritten", "contract", "origin", "cure")
BY_FINDING = {**dict.fromkeys(_CHECKS, "kernel bug"), "order": "race"}
"""By the class of a finding (`check`), where the run itself came to its end or to a fault."""


def verdict_of(code: int, findings: Iterable[Mapping[str, Any]] = ()) -> str:
    """The verdict of a run that ended with `code`, and of the findings of its JSON.

    Notes count where there is nothing else. A race is told before what it led to. A finding of
    waits decides over a limit, which is only where the wait was cut off.
    """
    verdict, shown = BY_EXIT_CODE[code], list(findings)
    some = [one for one in shown if one["severity"] != "note"] or shown
    told = {BY_FINDING[one["check"]] for one in some}
    if verdict == "limit" and any(one["check"] == "waiting" for one in some):
        verdict = "kernel bug"
    if verdict in ("ok", "kernel bug") and told:
        verdict = "race" if "race" in told else "kernel bug"
    return verdict


def worst_verdict(codes: Iterable[int]) -> str:
    """The verdict of several runs: what is wrong with a program counts first, then what is open."""
    found = {BY_EXIT_CODE.get(code, "not modelled") for code in codes}
    ranked = ("kernel bug", "bad input", "not modelled", "limit")
    return next((one for one in ranked if one in found), "ok")


# What a user sees of an error: one line, its place, a hint; as JSON on request; the exit code.

TRACEBACK = "BHEMU_TRACEBACK"
_muted: list[TextIO] = []
_MEMORY = "a tile takes about 500 MB of address space: ulimit -v"
_LOADER = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")


def show(problem: Exception, *, as_json: bool, more: Mapping[str, object] | None = None) -> int:
    """Report `problem` on stderr, or as one JSON object on stdout with `more`; its exit code."""
    if isinstance(problem, click.Abort):
        _tell("interrupted")
        return errors.EXIT_INTERRUPTED
    if isinstance(problem, click.ClickException):
        if isinstance(problem, click.exceptions.NoArgsIsHelpError):
            _tell(problem.format_message())
            return errors.EXIT_INPUT
        message = " ".join(problem.format_message().split())
        context = getattr(problem, "ctx", None)
        hint = "" if context is None else f"{context.command_path} --help"
        found = InputError(message, hint=hint).as_dict()
        if as_json and _wrote(document(found, errors.EXIT_INPUT)):
            return errors.EXIT_INPUT
        _tell(f"{_red('error:')} {printable(message)}" + (f"\n  hint: {hint}" if hint else ""))
        return errors.EXIT_INPUT
    error = problem if isinstance(problem, BhemuError) else _unexpected(problem)
    if as_json and _wrote(document({**(more or {}), **error.as_dict()}, error.exit_code)):
        return error.exit_code
    _tell("\n".join(lines(error)))
    return error.exit_code


def lines(error: BhemuError) -> list[str]:
    """The error in words, then the waits, the place and the hint."""
    rule = f"[{error.rule}] " if error.rule else ""
    text = [f"{_red('error:')} {rule}{error.message}"]
    if isinstance(error, errors.NoProgress):
        text += [printable(line) for line in error.waits]
    if error.where is not None and str(error.where):
        place = str(error.where)
        if error.where.core is None and place.startswith("("):  # a line of a file
            place = place.removeprefix("(").removesuffix(")")
        text.append(f"  at {printable(place)}")
    if error.hint:
        text.append(f"  hint: {error.hint}")
    return text


def _unexpected(problem: Exception) -> BhemuError:
    if os.environ.get(TRACEBACK):
        traceback.print_exception(problem, file=sys.stderr)
    if _is_memory(problem):
        return errors.Limit("there is not enough memory", rule="MEMORY", hint=_MEMORY)
    if isinstance(problem, FileNotFoundError) and problem.filename is None and not _is_somewhere():
        return InputError("the current folder is gone", hint="cd to one that exists")
    if isinstance(problem, OSError) and problem.filename is not None:
        return InputError(f"{problem.filename}: {problem.strerror}", hint="is that file meant?")
    return errors.Internal(
        f"{type(problem).__name__}: {problem}",
        hint=f"a defect of bhemu; {TRACEBACK}=1 shows the traceback",
    )


def _is_somewhere() -> bool:
    """Whether the current folder exists still."""
    with contextlib.suppress(OSError):
        return bool(os.getcwd())
    return False


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


# What is said while a user waits: on a terminal one status line, elsewhere a line now and then.

_PERIOD = 0.25  # seconds between two status lines
_SILENT = 2.0  # after so many seconds of waiting a line is said where there is no terminal
_COMPILING = "compiling what the program uses, once for this version (a minute or more)"


class Progress:
    """Lines on stderr; `quiet` silences them. Call the object as Tile's `progress`."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._check = ""
        self._interrupts = interrupts.count()
        self.began = self._said = time.monotonic()
        self.beside: Callable[[], str] | None = None  # what compiles beside an interpreted run
        self._status = not quiet and sys.stderr.isatty()

    def __call__(self, name: str, seconds: float) -> None:
        """Something was compiled for the first time."""
        from bhemu.jit import cache

        kept = f"not kept: {cache.problem[0]}" if cache.problem else "kept for next time"
        self.say(f"compiled {name} in {seconds:.1f} s ({kept})")

    def go_on(self, began: float) -> None:
        """The command began at that time.monotonic(), in another process."""
        self.began = self._said = began

    def say(self, text: str) -> None:
        """One line, unless quiet."""
        if not self._quiet:
            self.status("")
            say(text, err=True)
            self._said = time.monotonic()

    def status(self, text: str) -> None:
        """On a terminal, one line that the next one replaces; "" clears it."""
        if self._status:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    @property
    def seconds(self) -> float:
        """Since the object was made."""
        return time.monotonic() - self.began

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Around imports and launch; says so when the core itself must be compiled."""
        if "numba" not in sys.modules:
            check_start(EMULATOR)
        # What is imported and loaded now stays: collecting it costs a tenth of the start.
        gc.disable()
        try:
            with self.waiting(lambda: "starting", says=False):
                begin = time.monotonic()
                from bhemu.jit import build, interpreted

                interpreted.tell = self.say
                said: list[str] = []

                def compiling(name: str) -> None:
                    interrupts.check()  # the compiler swallows a Ctrl-C
                    if not said:
                        gc.enable()
                        self.say(_COMPILING)
                    said.append(name)

                build.before_compiling.append(compiling)
                try:
                    yield
                finally:
                    build.before_compiling.remove(compiling)
        finally:
            gc.enable()
        interrupts.check()
        if said:
            self("the core", time.monotonic() - begin)

    def running(self, target: "Target") -> contextlib.AbstractContextManager[None]:
        """On a terminal, show the clock while `target` runs, or what has to be compiled for it."""
        return self.waiting(lambda: f"running  clock {target.clock}", says=False)

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """On a terminal, show how long the present check has taken; `checking` says which it is.

        KeyboardInterrupt where Ctrl-C has ended a run of a check: what was found is not whole.
        """
        with self.waiting(lambda: self._check, says=False):
            yield
        self.check_interrupts()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C has ended a run since the command began."""
        return interrupts.count() > self._interrupts

    def check_interrupts(self) -> None:
        """KeyboardInterrupt where Ctrl-C has ended a run since the command began."""
        if self.interrupted:
            raise KeyboardInterrupt

    def checking(self, text: str) -> None:
        """A check begins; `text` names it. KeyboardInterrupt as of `looking`."""
        self.check_interrupts()
        self._check = text
        self.say(f"{text}, after {self.seconds:.1f} s")

    @contextlib.contextmanager
    def waiting(self, doing: Callable[[], str], *, says: bool = True) -> Iterator[None]:
        """Show what is compiled, else what is done; without a terminal, say it now and then.

        doing: "" where there is nothing to say any more. says: False where without a terminal only
        what is compiled is to be said.
        """
        if self._quiet:
            yield
            return
        over = threading.Event()
        line = threading.Thread(target=self._show, args=(doing, says, over), daemon=True)
        line.start()
        try:
            yield
        finally:
            over.set()
            line.join()
            self.status("")

    def _show(self, doing: Callable[[], str], says: bool, over: threading.Event) -> None:
        while not over.wait(_PERIOD):
            # What is being compiled and how much of it is done, if that is imported
            outlook = getattr(sys.modules.get("bhemu.jit.build"), "outlook", None)
            name, done, known = ("", 0, 0) if outlook is None else outlook()
            compiled = f"compiling {name}: {done} of {known} parts are done" if name else ""
            beside, text = self.beside, compiled or doing()
            if beside is not None:
                text = compiled = f"{text}: {beside()}"
            if self._status and text and (compiled or self.seconds > _PERIOD * 2):
                self.status(f"{text}  {self.seconds:.1f} s")
            elif (compiled or (says and text)) and time.monotonic() - self._said > _SILENT:
                self.say(f"{text}, after {self.seconds:.0f} s")
