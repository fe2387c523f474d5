"""`bhemu run` runs a program, with its plugins, and compares outputs; `bhemu check` reads it."""

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from types import CodeType
from typing import IO, TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from bhemu.cli import handover, options, output
from bhemu.cli.output import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK, BhemuError, InputError
from bhemu.jit import interpreted
from bhemu.program import coordinates, files, schema

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.launch import Result, RunResult
    from bhemu.why.check import Check
    from bhemu.why.findings import Finding


# Plugins of `bhemu run`: files of Python whose functions a run calls (docs/plugins.md).


_HINT = "def install(machine): calls machine.on_word, on_pc or on_access (docs/plugins.md)"


def install(paths: Iterable[str], machine: Any, ended: ExitStack) -> None:
    """Run the `install` of each file; what it returns is called when `ended` is closed.

    InputError names file and line of what is wrong in one.
    """
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
    type=click.Choice(handover.WAYS),
    default=handover.WAYS[0],
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
    metavar="FILE",
    help="write each RISC-V instruction as spike does (- for standard output)",
)
@click.option(
    "--plugin",
    "plugins",
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
        values["engine"], interpreted.chosen = "compiled", handover.is_own_process()
    chosen = options.settings(values)
    progress = Progress(chosen.quiet or chosen.as_json)
    waits = values["compiling"] == "wait" or values["checks"] is not None  # checks run it often
    waits = waits or bool(values["plugins"])  # which no other process can go on with
    start = handover.Start(chosen, progress, wait=waits or values["gdb"] or logs)
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
        reason = getattr(problem, "strerror", None) or str(problem)
        raise InputError(f"--log-commits: {name} cannot be written: {reason}") from problem


def _run(target: "Target", checks: "list[Check] | None") -> int:
    from bhemu.cli import summary

    chosen, results = target.chosen, list["Result"]()
    stop, error = ended = target.finish_shown()
    if error is None and not ended.interrupted:
        try:
            results = target.check()
        except BhemuError as problem:
            error = problem
    target.save()
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
    target.prepare_checks()
    ended = target.finish_shown()
    from bhemu.cli.why import pairs, show
    from bhemu.why.checks import TOOLS, every

    names = dict.fromkeys(name for tool in tools for name in TOOLS[tool])
    found = _findings(target, ended, [every()[name] for name in names]) or []
    nothing = f"{', '.join(tools)}: nothing was found"
    if "races" in tools and "order" not in tools:
        notes = [one for one in found if (one.check, one.severity) == ("order", "note")]
        found = [one for one in found if one not in notes]
        nothing += f" but {pairs(notes, chosen.program)}" if notes else ""
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
    interpreted.chosen = handover.is_own_process()  # nothing runs that is worth compiling
    with Progress(quiet or as_json).starting():
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
