"""`bhemu run` runs a program, with its plugins, and compares outputs; `bhemu check` reads it."""

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from types import CodeType
from typing import IO, TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from bhemu.cli import options, output
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK, BhemuError, InputError
from bhemu.jit import cache, host, interpreted
from bhemu.program import coordinates, files, schema
from bhemu.system import interrupts

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.launch import Launched, Result, RunResult
    from bhemu.machine.precompile import Watch
    from bhemu.machine.rounds import Rounds
    from bhemu.machine.saved import Snapshot
    from bhemu.why.check import Check
    from bhemu.why.findings import Finding

# Runs that begin before their code is compiled: interpreted, then taken to compiled code.
#
# Where the cache lacks something that a run needs, the process that a user has started interprets
# the run, with others beside it that compile (machine/precompile.py). When all is kept, it writes
# the state of the machine to an unnamed file, between two slices of time, and executes the command
# anew in its place: the same process with the same streams, so that output, Ctrl-C and exit code
# stay its own. The command then makes its machine in that state and runs on. A variable of the
# environment says so.

WAYS = ("beside", "wait")
VARIABLE = "BHEMU_RUN_GOES_ON"
_INTERRUPT = {signal.SIGINT}


class Start:
    """How the run of a command begins: interpreted, with compiled code, or where it was taken over.

    Create it before importing any compiled module. `wait`: the run is never interpreted.
    """

    def __init__(self, chosen: options.Settings, progress: output.Progress, *, wait: bool) -> None:
        self._program, self._progress = chosen.program, progress
        self._note = _own_note(os.environ.pop(VARIABLE, ""))
        self._goes_on = "state" in self._note
        begins = not wait and not self._goes_on and bool(sys.executable)
        begins &= chosen.program.kind != schema.SESSION  # what its host has read stays here
        self._may = begins and is_own_process() and not interpreted.always()
        if self._note:
            progress.go_on(self._note["began"])
        if self._may:
            interpreted.chosen = bool(self._note) or nothing_is_compiled()
        self._target: Launched | None = None
        self._watch: Watch | None = None

    def options(self) -> dict[str, Any]:
        """Arguments of launch(): the ELFs that were read by now, the state to begin in.

        Compiling begins beside this process, or the command begins anew to be interpreted, where
        something is not compiled that the run seems to need.
        """
        if self._goes_on:
            from bhemu.machine.saved import Snapshot

            with os.fdopen(self._note["state"], "rb") as file:  # what hand_over() has left
                file.seek(0)
                return {"begun": Snapshot.of_bytes(file.read(), Path("the run that was begun"))}
        if not self._may:
            return {}
        from bhemu.jit.build import is_there
        from bhemu.machine.precompile import ElfCache, Watch, needed

        elfs = ElfCache()
        with suppress(InputError):  # launch() raises it again
            entries = needed(self._program, elfs)
            if interpreted.chosen:
                self._watch = Watch(entry.path for entry in entries)
                self._progress.beside = self._watch.progress_text
            elif not all(map(is_there, entries)):
                self._execute({})
        return {"elfs": elfs}

    def launched(self, target: "Launched") -> None:
        """What is to run is there."""
        loop = target.machine.loop
        if self._watch is not None:
            self._target, loop.handover = target, self.hand_over
        if self._goes_on:
            loop.begun = self._note["memory"]
            with interrupts.later():  # the run, which begins now, ends by one that has come
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)

    def hand_over(self, rounds: "Rounds") -> None:
        """Run on in compiled code where that is due; returns where it is not, or not possible."""
        target, watch = self._target, self._watch
        if watch is None or target is None:
            return
        if watch.failed:
            self._stay("what it uses cannot be compiled")
            return
        if not watch.is_compiled(target.machine) or not rounds.is_whole:
            return
        rounds.settle()
        import tempfile  # takes milliseconds, which few runs need

        import numpy as np

        from bhemu.machine import saved
        from bhemu.program.input_files import Archive, UnreadableError

        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPT)  # until the command is there again
        try:
            interrupts.check()
            machine: Any = target.machine
            alone = machine.network is None  # its state, in the middle of a run
            state: Snapshot = saved.of_tile(machine) if alone else saved.of_machine(machine)
            held = io.BytesIO()
            np.savez(held, **state.held())
            data = held.getvalue()
            with Archive(data), tempfile.TemporaryFile() as file:
                file.write(data)
                file.flush()
                os.set_inheritable(file.fileno(), True)
                self._progress.say(f"running  clock {target.clock}: compiled from here on")
                self._execute({"state": file.fileno(), "memory": rounds.memory()})
        except (OSError, UnreadableError) as problem:
            self._stay(f"its state cannot be taken over: {problem}")
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)

    def _stay(self, why: str) -> None:
        self._watch = self._progress.beside = None
        if self._target is not None:
            self._target.machine.loop.handover = None
        self._progress.say(f"the run stays interpreted: {why}")

    def _execute(self, note: dict[str, Any]) -> None:
        """The command anew, in this process; returns where the system refuses."""
        self._progress.status("")
        sys.stdout.flush()
        text = json.dumps({"process": os.getpid(), "began": self._progress.began, **note})
        try:
            os.execve(sys.executable, sys.orig_argv, {**os.environ, VARIABLE: text})
        except OSError as problem:
            self._stay(problem.strerror or str(problem))


def _own_note(text: str) -> dict[str, Any]:
    """What this process has left to itself when it executed its command anew; else nothing."""
    with suppress(ValueError, RecursionError):
        note = json.loads(text)
        if isinstance(note, dict) and note.get("process") == os.getpid():
            return note
    return {}


def is_own_process() -> bool:
    """Whether the command is what this process is for: no call of a test or a notebook."""
    return click.get_current_context().find_root().obj is True


def nothing_is_compiled() -> bool:
    """Whether not even the loop of any version is kept, as seen without importing it."""
    if host.carries():
        return False
    with os.scandir(cache.root()) as entries:  # up to the first: a folder may hold thousands
        names = (entry.name for entry in entries)
        return not any(n.startswith("tensix_entry-") and not n.endswith(".lock") for n in names)


# Plugins of `bhemu run`: files of Python whose functions a run calls (docs/plugins.md).

_HINT = "def install(machine): calls machine.on_word, on_pc or on_access (docs/plugins.md)"


def install(paths: Iterable[str], machine: Any, ended: ExitStack) -> None:
    """Run the `install` of each file; what it returns is called when `ended` is closed.

    InputError names file and line of what is wrong in one.
    """
    ended.enter_context(_not_left())
    for name in paths:
        names: dict[str, Any] = {"__name__": Path(name).stem, "__file__": name}
        code = _compiled(Path(name))
        _called(code, exec, code, names)
        function = names.get("install")
        if not callable(function):
            raise InputError(f"--plugin: {name} has no function install", hint=_HINT)
        end = _called(function, function, machine)
        if end is not None and not callable(end):
            hint = "return nothing, or a function that is called when the run has ended"
            raise InputError(f"--plugin: {name}: install returns {type(end).__name__}", hint=hint)
        if end is not None:
            ended.callback(_called, end, end)


@contextmanager
def _not_left() -> Iterator[None]:
    """InputError where a plugin ends the process, in whichever of its functions."""
    try:
        yield
    except SystemExit as problem:
        from bhemu.machine.callbacks import failure

        error = failure(problem, install)
        error.hint = "a plugin ends by a return: the run goes on, and its end is told"
        raise error from None


def _compiled(path: Path) -> CodeType:
    source = files.read_bytes(path, "SOURCE_BYTES", "--plugin")
    try:
        return compile(source, str(path), "exec")
    except (SyntaxError, ValueError) as problem:
        line = getattr(problem, "lineno", None) or 1
        text = f"{path}:{line}: {type(problem).__name__}: {getattr(problem, 'msg', problem)}"
        raise InputError(text, hint="correct the plugin") from None


def _called(function: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns; the error of what it raises, in `function` or below."""
    try:
        return call(*arguments)
    except Exception as problem:
        from bhemu.machine.callbacks import failure

        raise failure(problem, function) from None


@click.command("run")
@options.program_options
@options.run_options
@click.option(
    "--compile",
    "compiling",
    type=click.Choice(WAYS),
    default=WAYS[0],
    help="begin interpreted and compile beside it, or wait for it (default: beside)",
)
@click.option(
    "--check",
    "checks",
    metavar="NAME,...|all",
    help="then look for what else is wrong, by more runs (docs/why.md lists the checks)",
)
@click.option(
    "--gdb",
    is_flag=True,
    help="stop before the first instruction, for gdb; run on when it detaches",
)
@click.option(
    "--log-commits",
    type=options.FilePath(),
    metavar="FILE",
    help="write each RISC-V instruction as spike does (- for standard output)",
)
@click.option(
    "--plugin",
    "plugins",
    type=options.FilePath(),
    multiple=True,
    metavar="FILE.py",
    help="let functions of FILE.py look at words, instructions, accesses (docs/plugins.md)",
)
def run_command(**values: Any) -> int:
    """Run a program and compare its outputs.

    PROGRAM.toml says what to load, set, feed, run and compare; the flags add to it or stand alone.
    Exit codes: 0 ok, 1 an output differs, others are errors (docs/verdicts.md).
    """
    logs = values["log_commits"] is not None
    if logs:
        if values["engine"] == "unicorn":
            raise click.UsageError("--log-commits looks at --engine compiled")
        if values["plugins"]:
            raise click.UsageError("--log-commits and --plugin look at the cores in one way each")
        values["engine"], interpreted.chosen = "compiled", is_own_process()
    chosen = options.settings(values)
    progress = output.Progress(chosen.quiet or chosen.as_json)
    waits = values["compiling"] == "wait" or values["checks"] is not None  # checks run it often
    waits = waits or bool(values["plugins"])  # which no other process can go on with
    start = Start(chosen, progress, wait=waits or values["gdb"] or logs)
    with progress.starting():
        from bhemu.cli.summary import Target

        chosen.check_save()
        checks = None
        if values["checks"] is not None:
            from bhemu.why.checks import named

            checks = named(values["checks"])
            if chosen.program.kind == schema.SAVED_STATE:
                raise InputError("--check: checks begin at a launch, and a saved state has none")
        target = Target(chosen, progress, **start.options())
        start.launched(target)
        if checks is not None:
            from bhemu.why.question import refuse_timed

            refuse_timed(target)
            target.prepare_checks()
    with ExitStack() as opened:
        if values["plugins"]:
            install(values["plugins"], target.machine, opened)
        if logs:
            from bhemu.debug.trace import CommitLog

            CommitLog(target.tile, opened.enter_context(_opened(values["log_commits"])))
        if values["gdb"]:
            from bhemu.cli.inspect import listener, serve_gdb

            if serve_gdb(target, opened.enter_context(listener()), once=True, err=True):
                return EXIT_OK
        code = _run(target, checks)
    progress.say(f"{progress.seconds:.2f} s")
    return code


def _opened(name: str) -> AbstractContextManager[IO[str]]:
    """A text file to write, or standard output for -."""
    try:
        return nullcontext(sys.stdout) if name == "-" else open(name, "w", encoding="ascii")
    except (OSError, ValueError) as problem:
        text = f"--log-commits: {name} cannot be written: {files.reason(problem)}"
        raise InputError(text, hint=files.NAME_ANOTHER) from problem


def _run(target: "Target", checks: "list[Check] | None") -> int:
    from bhemu.cli import summary

    chosen, results = target.chosen, list["Result"]()
    stop, error = ended = target.finish_shown()
    if error is None and not ended.interrupted:
        try:
            results = target.check()
        except BhemuError as problem:
            error = problem
    try:
        target.save()
    except BhemuError as problem:  # of the run nothing is lost with it
        if error is not None:
            for line in output.lines(problem):
                output.say(line, err=True)
        error = error or problem
    code = EXIT_OK if all(result.equal for result in results) else EXIT_DIFFERS
    if ended.interrupted:
        code, checks = EXIT_INTERRUPTED, None
    report, lines = {}, list[str]()  # before checks move the tile about
    if chosen.as_json:
        report = summary.as_dict(target, stop, results)
    elif chosen.quiet:
        lines = [str(result) for result in results if not result.equal]
    else:
        lines = summary.text(target, stop, results)
        lines += summary.opcodes(target.tile) if chosen.verbose else []
    for line in lines:
        output.say(line)
    found = _findings(target, ended._replace(error=error), checks)
    code = code or (EXIT_DIFFERS if found else EXIT_OK)
    if found is not None:
        report["findings"] = [one.as_dict() for one in found]
    told = [line for one in found or () for line in one.lines()]
    if found == [] and not chosen.quiet:
        told = ["the checks found nothing"]
    return output.report(report, code, told, as_json=chosen.as_json, error=error)


def _findings(
    target: "Target", ended: "RunResult", checks: "list[Check] | None"
) -> "list[Finding] | None":
    """What the checks find; None where none was asked for."""
    if checks is None:
        return None
    from bhemu.cli.why import context, tell_skipped
    from bhemu.why.checks import findings
    from bhemu.why.question import of_kernels

    asked = context(target, ended)
    with target.progress.looking():
        found = of_kernels(asked, findings(asked, checks))
    tell_skipped(asked)
    return found


_TOOLS = ("races", "init", "bounds", "order")


def _tools(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str]:
    """The names of --tool."""
    names = [] if value is None else [name.strip() for name in value.split(",")]
    for name in names:
        if name not in _TOOLS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(_TOOLS)}")
    return names


def _complete_tools(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The names of --tool that begin so, after those that are there."""
    before, comma, begun = incomplete.rpartition(",")
    names = (name for name in _TOOLS if name.startswith(begun))
    return [CompletionItem(f"{before}{comma}{name}") for name in names]


def _tool(tools: list[str], chosen: options.Settings) -> int:
    """Run a program and what belongs to tools; print its findings as `bhemu why` does."""
    if chosen.program.kind == schema.SAVED_STATE:
        raise InputError("--tool: checks begin at a launch, and a saved state has none")
    target = options.launched(chosen)
    from bhemu.cli import summary
    from bhemu.why.question import refuse_timed

    refuse_timed(target)
    target.prepare_checks()
    ended = target.finish_shown()
    if ended.interrupted:
        return summary.interrupted(target, ended)
    from bhemu.cli.why import pairs, show
    from bhemu.why.checks import TOOLS, every

    names = dict.fromkeys(name for tool in tools for name in TOOLS[tool])
    found = _findings(target, ended, [every()[name] for name in names]) or []
    nothing = f"{', '.join(tools)}: nothing was found"
    if "races" in tools and "order" not in tools:
        notes = [one for one in found if (one.check, one.severity) == ("order", "note")]
        found = [one for one in found if one not in notes]
        nothing += f" but {pairs(notes, chosen.program)}" if notes else ""
    nothing += "; the run itself has failed (bhemu why)" if ended.error else ""
    return show(found, chosen.as_json, ended.error, nothing=nothing)


@click.command("check")
@options.program_options
@options.json_option
@click.option("-q", "--quiet", is_flag=True, help="print only what is wrong")
@click.option(
    "--tool",
    "tools",
    metavar="NAME,...",
    callback=_tools,
    shell_complete=_complete_tools,
    help=f"run the program, and look for this alone: {', '.join(_TOOLS)} (docs/why.md)",
)
def check_command(as_json: bool, quiet: bool, tools: list[str], **flags: Any) -> int:
    """Check a program without running it.

    Shows where everything would be placed, and checks the file itself, the ELFs, their placement
    and overlaps, the symbols and values of [[set]], that inputs convert exactly, the expected
    files, the address ranges of outputs, and the end condition. The first mistake ends the check
    with exit code 2. What is allowed but probably unintended is a warning.

    With --tool the program runs, and the checks of `bhemu why` that have this name elsewhere look
    at it: races and order at accesses that nothing orders (races tells only those that a late run
    has shown to matter), init at values that nothing has written, bounds at pages, formats, stacks
    and jumps. Exit code 1 when something is found.
    """
    program = options.program_of(flags)
    if tools:
        return _tool(tools, options.Settings(program, None, as_json, quiet, verbose=False))
    interpreted.chosen = is_own_process()  # nothing runs that is worth compiling
    with output.Progress(quiet or as_json).starting():
        from bhemu.debug import plan
        from bhemu.launch import Launched

        plan.check_expected(program)
        launched = Launched(program, boot=False)
        report = plan.report(launched)
    if as_json:
        return output.report(report, EXIT_OK, as_json=True)
    if not quiet:
        parts = [part.line(with_tiles=bool(program.tiles)) for part in plan.parts(launched)]
        firmware = program.firmware is not None
        lines = [f"{report['program']}: kind {report['kind']}, nothing wrong", *parts]
        for tiles in report["tiles"]:
            on = "" if len(report["tiles"]) == 1 else f"{coordinates.text(tiles['at'])} "
            for name, core in tiles["cores"].items():
                if firmware:
                    lines.append(f"{on}{name:<7} started by the firmware")
                    continue
                released = "released by bhemu" if core["release"] else "released by another core"
                at = core["start"]
                where = "where that one says" if at is None else f"at 0x{at:08X}"
                lines.append(f"{on}{name:<7} {released}, starts {where}")
        output.say("\n".join([*lines, report["end"]]))
    for text in report["warnings"]:
        output.say(f"warning: {text}", err=True)
    return EXIT_OK
