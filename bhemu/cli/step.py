"""`bhemu step` steps through a program at a prompt or from a script, `bhemu gdb` under gdb."""

import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bhemu.cli import output
from bhemu.cli.options import Settings, program_options, run_options, settings
from bhemu.cli.output import Progress, reader
from bhemu.errors import EXIT_INTERRUPTED, EXIT_LIMIT, EXIT_OK, BhemuError, InputError
from bhemu.program import files
from bhemu.system import interrupts

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.debug.stepper import Stepper


_REPEATED = ("step", "next", "tstep", "tnext", "s", "n", "ts", "tn", "reverse-step", "rs", "rn")


@click.command("step")
@program_options
@run_options
@click.option(
    "-x",
    "--execute",
    multiple=True,
    metavar="COMMANDS",
    help="run these commands, separated by ; (may be repeated)",
)
@click.option(
    "--source", multiple=True, metavar="FOLDER", help="look for source files here (may be repeated)"
)
def step_command(**values: Any) -> int:
    """Step through a program, at a prompt or from a script.

    At the prompt, help lists the commands. With -x, or with input from a pipe, commands run without
    a prompt. A mistake in a command then ends the session with exit code 2. An error of the program
    is shown and decides the exit code. With --json the lines that each command printed stand in one
    object.
    """
    chosen = settings(values)
    script, folders = values["execute"], tuple(Path(folder) for folder in values["source"])
    if chosen.as_json and not script and sys.stdin.isatty():
        raise click.UsageError("--json goes with -x, or with commands from a pipe")
    commands: list[_Command] = []
    out = (lambda text: commands[-1].lines.extend(text.splitlines())) if chosen.as_json else None
    target, stepper = _open(chosen, folders, out or output.say)
    lines = (part for text in script for part in text.split(";")) if script else sys.stdin
    if chosen.as_json:
        code = _json(target, stepper, lines, commands)
    elif not script and sys.stdin.isatty():
        code = _interactive(stepper)
    else:
        code = _script(stepper, lines, lambda error: output.show(error, as_json=False))
    target.save()
    return code


class _Command(NamedTuple):
    """A command of a script and the lines that it printed."""

    command: str
    lines: list[str]


def _open(
    chosen: Settings, folders: tuple[Path, ...], out: Callable[[str], None]
) -> "tuple[Target, Stepper]":
    progress = Progress(chosen.quiet or chosen.as_json)
    with progress.starting():
        from bhemu.cli.summary import Target
        from bhemu.debug.breakpoints import StateFiles
        from bhemu.debug.places import Sources
        from bhemu.debug.stepper import Stepper

        chosen.check_save()
        target = Target(chosen, progress)
        target.keep_history()
    program = target.of_tile()
    sources = Sources(program, folders)
    states = StateFiles(tuple(target.program.files()))
    return target, Stepper(target.tile, program, sources, out, states)


def _script(
    stepper: "Stepper",
    lines: Iterable[str],
    tell: Callable[[BhemuError], object],
    begin: Callable[[str], None] = lambda line: None,
) -> int:
    """Execute commands without a prompt; exit code of the last run that failed.

    `begin` is called before each command, `tell` with each error of the program.
    """
    code = EXIT_OK
    for line in lines:
        begin(line)
        try:
            if not stepper.execute(line):
                break
        except InputError:
            raise
        except BhemuError as error:
            tell(error)
            code = error.exit_code
        else:
            reason = None if stepper.last is None else stepper.last.reason
            ends = {"limit": EXIT_LIMIT, "timeout": EXIT_LIMIT, "interrupt": EXIT_INTERRUPTED}
            code = ends.get(reason or "", code)
    return code


def _json(
    target: "Target", stepper: "Stepper", lines: Iterable[str], commands: list[_Command]
) -> int:
    """Execute commands; print what each printed, where the program stands, its last error."""
    errors: list[BhemuError] = []
    try:
        code = _script(
            stepper, lines, errors.append, lambda line: commands.append(_Command(line.strip(), []))
        )
    except InputError as problem:
        errors, code = [problem], problem.exit_code
    last = errors[-1] if errors and errors[-1].exit_code == code else None
    found = {"program": target.program.name, "clock": target.clock}
    found["commands"] = [one._asdict() for one in commands if one.command]
    return output.report(found, code, as_json=True, error=last)


def _interactive(stepper: "Stepper") -> int:
    """Ask until quit or end of input; an empty line repeats the last step."""
    read = reader(stepper)
    stepper.show()
    last = ""
    while True:
        try:
            line = read(stepper.prompt).strip() or last
            going = stepper.execute(line)
            last = line if line.split()[:1] and line.split()[0] in _REPEATED else ""
        except EOFError:
            output.say()
            return EXIT_OK
        except KeyboardInterrupt:
            interrupts.done()
            output.say()
            continue
        except BhemuError as error:
            output.show(error, as_json=False)
            continue
        if not going:
            return EXIT_OK


# `bhemu gdb`: a program under gdb, which attaches over the remote protocol.

_HOST, _PORT = "127.0.0.1", 3333


@click.command("gdb")
@program_options
@run_options
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    metavar="N",
    help="TCP port; 0 chooses a free one",
)
@click.option("--host", default=_HOST, show_default=True, help="the address to listen on")
@click.option(
    "--allow-save",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="let monitor save and load touch FILE.npz there; else they are refused",
)
@click.option("--once", is_flag=True, help="end when the first debugger leaves")
def gdb_command(**values: Any) -> int:
    """Launch a program and wait for gdb, its five cores as threads.

    Nothing has been executed yet when gdb attaches. It reads the ELFs' symbols by itself. monitor
    takes every command of `bhemu step`, save and load only with --allow-save; reverse-step and
    reverse-continue go back. Of a chip it shows the tile of --tile, which the others run along
    with. The server ends when gdb kills the program, or with Ctrl-C.
    """
    chosen, folder = settings(values), values["allow_save"]
    if folder is not None and not files.is_folder(folder):
        raise InputError(f"--allow-save: {folder} is no folder", hint="make it first")
    with listener(values["host"], values["port"]) as listening:
        progress = Progress(chosen.quiet)
        with progress.starting():
            from bhemu.cli.summary import Target

            launched = Target(chosen, progress)
        serve_gdb(launched, listening, values["once"], folder)
    launched.save()
    return EXIT_OK


def serve_gdb(
    launched: "Target",
    listening: socket.socket,
    once: bool,
    folder: Path | None = None,
    *,
    err: bool = False,
) -> bool:
    """Print the line for gdb, to standard error with `err`, and serve it; True when it kills."""
    from bhemu.hosts.gdb_server import serve
    from bhemu.hosts.gdb_target import Target as Debugged

    target = Debugged(launched, folder)
    host, port = listening.getsockname()[:2]
    output.say(f"waiting for gdb: gdb-multiarch -ex 'target remote {host}:{port}'", err=err)
    return serve(target, listening, once)


def listener(host: str = _HOST, port: int | None = None) -> socket.socket:
    """The socket that gdb connects to, by default at port 3333, else at a free one.

    InputError where it cannot be had.
    """
    if port is None:
        with suppress(OSError):
            return socket.create_server((host, _PORT))
    try:
        return socket.create_server((host, port or 0))
    except (OSError, UnicodeError) as problem:
        text = getattr(problem, "strerror", None) or str(problem)
        raise InputError(
            f"cannot listen on {host}:{port}: {text}", hint="--port 0 chooses a free port"
        ) from problem
