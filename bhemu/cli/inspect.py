"""Commands that look inside a tile: `bhemu dump`, `trace`, `step` and `gdb`."""

import atexit
import errno
import json
import os
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.arguments import did_you_mean
from bhemu.cli import options, output
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_LIMIT, EXIT_OK, BhemuError, InputError
from bhemu.program import files, recorded
from bhemu.program.coordinates import XY
from bhemu.program.coordinates import text as text_of
from bhemu.program.options import flag_of, given_in
from bhemu.system import interrupts
from bhemu.text import counted

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.debug.stepper import Stepper
    from bhemu.machine.saved import TileState
    from bhemu.machine.stop import Stop
    from bhemu.machine.word_text import TracedStore, TracedWord

_NAMED = 8  # files
_WRITES = "bhemu run PROGRAM --save STATE.npz writes one"
_FORMATS = ("bf16", "fp16", "fp32", "int32", "raw")


@click.command("dump")
@click.argument(
    "what", type=options.FilePath(), metavar="STATE.npz | PROGRAM.toml | FOLDER", required=False
)
@click.argument("names", nargs=-1, metavar="[NAME[:RANGE]]...")
@click.option(
    "--diff",
    "other",
    type=options.FilePath(),
    metavar="OTHER.npz",
    help="show only what differs from this state",
)
@click.option(
    "--format",
    "fmt",
    type=click.Choice(_FORMATS),
    help="how to show Dst (default bf16) and LReg lanes (default raw)",
)
@click.option("--all", "every", is_flag=True, help="also show rows that are all 0")
@click.option("--list", "listing", is_flag=True, help="list the names")
@options.run_options
@options.outside_option
@options.tile_option
def dump_command(what: str | None, names: tuple[str, ...], **values: Any) -> int:
    """Show the state of a tile: all but memory, or named parts.

    NAME is a name of --list, a member of the saved record, or a configuration field or part of its
    name. RANGE selects rows, registers, threads or addresses: dst:0-7, cfg:12, l1:0x40000-0x400ff.
    A program is run to its end first. --diff shows each value here -> in OTHER; the exit code is 1
    when anything differs.
    """
    if values["listing"]:
        from bhemu.tensix.views import NAMED

        for named in NAMED:
            output.say(f"{named.name:<15} {named.doc}{' (when named)' if named.bulky else ''}")
        return EXIT_OK
    if what is None:
        raise click.UsageError("name a STATE.npz or a program", click.get_current_context())
    from bhemu.debug import dump
    from bhemu.debug.decoded import View

    other = values["other"]
    chosen = dump.select(names, bulky=other is not None)
    theirs = None if other is None else _saved(Path(other), None)
    state, error, code = _state(what, values)
    error_code = code if error is None else error.exit_code  # that two states differ is no mistake
    view = View(values["fmt"] or "", values["every"])
    if theirs is not None:
        changes = list(dump.diff(state, theirs, chosen, view))
        code = code or (EXIT_DIFFERS if changes else EXIT_OK)
        lines = changes or [f"no difference to {other}"]
        report: dict[str, Any] = {"verdict": output.verdict_of(error_code), "differences": changes}
    elif values["as_json"]:
        lines, report = [], {"state": dump.as_dict(state, chosen, view)}
    else:
        lines, report = list(dump.text(state, chosen, view)), {}
    return output.report(report, code, lines, as_json=values["as_json"], error=error)


def _state(what: str, values: dict[str, Any]) -> "tuple[TileState, BhemuError | None, int]":
    """A saved state, or that of a program where it ended: with its error and exit code."""

    path = Path(what)
    if files.is_folder(path) or path.suffix == ".toml" or files.begins_with(path, recorded.MAGIC):
        chosen = options.settings({**values, "program": what, **dict.fromkeys(options.FLAGS, ())})
        target = options.launched(chosen)
        ended = target.finish_shown()
        target.save()
        state = target.tile.snapshot().tiles[target.tile.xy]
        return state, ended.error, EXIT_INTERRUPTED if ended.interrupted else EXIT_OK
    if files.is_file(path) and path.suffix != ".npz":
        raise InputError(f"{path}: neither .npz nor .toml", hint="bhemu run --save STATE.npz")
    flags = {name: flag_of(name, option) for name, option in given_in("flag").items()}
    for name, flag in {**flags, "save": "save"}.items():
        if values[name] is not None:
            raise click.UsageError(f"--{flag} goes with a program", click.get_current_context())
    return _saved(path, options.tile_of(values)), None, EXIT_OK


def _saved(path: Path, xy: XY | None) -> "TileState":
    """The state of a tile in a file: of the one, or of one of several."""
    from bhemu.machine.saved import Snapshot

    if files.is_missing(path):
        # The saved states in the folder: the nearest name, else some
        states = sorted(p.name for p in path.parent.glob("*.npz")) if path.parent.is_dir() else []
        there = f"there are {', '.join(states[:_NAMED])}"
        hint = did_you_mean(path.name, states) or there if states else _WRITES
        raise InputError(f"{path}: no such file", hint=hint)
    saved = Snapshot.load(path)
    if saved.network is None and xy is not None:
        raise InputError(f"{path}: --tile goes with the state of a chip")
    if xy is None:
        xy = min(saved.tiles, key=lambda at: (at[1], at[0]))
    if xy not in saved.tiles:
        raise InputError(f"{path} has no tile {xy[0]},{xy[1]}", hint=text_of(sorted(saved.tiles)))
    return saved.tiles[xy]


@click.command("trace")
@options.program_options
@click.option(
    "--thread", type=options.Thread(), metavar="N", help="only words of thread N (1, or T1)"
)
@click.option("--limit-words", type=options.Count(1), metavar="N", help="stop after N words")
@click.option("--words", is_flag=True, help="words alone: no stores of cores, no meanings")
@click.option(
    "--perfetto",
    metavar="FILE.json",
    type=options.FilePath(path_type=Path),
    help="write Chrome trace events for ui.perfetto.dev instead of text, of all tiles of a chip",
)
@options.run_options
def trace_command(**values: Any) -> int:
    """Run a program and print each Tensix word that was executed.

    A line is number, thread, pc that pushed the word, MOP or REPLAY slot it came through, the word
    in assembly, function and source line, then what the operands stand for: of UNPACR and PACR
    the L1 addresses, formats and rows, and what set them. Stores of cores to devices (Config, GPRs,
    NIUs, streams, ...) stand between the words. With --json one object per line. Outputs are not
    compared; exit codes are those of run.
    """
    chosen = options.settings(values)
    if values["perfetto"] is not None:
        return _perfetto(chosen, values["perfetto"], values["limit_words"])
    target = options.launched(chosen)
    from bhemu.cli.summary import REASONS
    from bhemu.debug.trace import Tracer

    def show(word: "TracedWord | TracedStore") -> None:
        output.say(json.dumps(word.as_dict()) if chosen.as_json else word.as_text(chosen.verbose))

    tracer = Tracer(
        target.tile,
        chosen.program,
        show,
        thread=values["thread"],
        most=values["limit_words"],
        stores=None if values["words"] else show,
    )
    stop: Stop | None = None
    error: BhemuError | None = None
    try:
        stop = tracer.run()
        if not tracer.full:
            error = target.error_if_incomplete(stop)
    except BhemuError as problem:
        error = problem
    target.save()
    reason = "stopped by an error" if stop is None else REASONS.get(stop.reason, stop.reason)
    reason = "as many as were asked for" if tracer.full else reason
    target.progress.say(f"{counted(tracer.shown, 'word')}; {reason}")
    if error is None:
        interrupted = stop is not None and stop.reason == "interrupt"
        return EXIT_INTERRUPTED if interrupted else EXIT_OK
    if chosen.as_json:
        output.say(json.dumps({"verdict": output.verdict_of(error.exit_code), **error.as_dict()}))
        return error.exit_code
    return output.show(error, as_json=False)


def _perfetto(chosen: options.Settings, path: Path, most: int | None) -> int:
    """A run as Chrome trace events."""
    files.check_writable(path, "trace", chosen.program.files())
    target = options.launched(chosen)
    from bhemu.pictures.recording import MOST, Recorder, document

    recording = Recorder(target, words=most or MOST).run()
    trace = document(recording, chosen.program.name)
    files.write_whole(path, json.dumps(trace, separators=(",", ":")).encode(), "trace")
    events = trace["traceEvents"]
    target.progress.say(f"{path}: {len(events)} events, clock {target.clock}")
    interrupted = recording.stop is not None and recording.stop.reason == "interrupt"
    code = EXIT_INTERRUPTED if interrupted else EXIT_OK
    written = {"trace": str(path), "events": len(events), "clock": target.clock}
    return output.report(written, code, as_json=chosen.as_json, error=recording.error)


_REPEATED = ("step", "next", "tstep", "tnext", "s", "n", "ts", "tn", "reverse-step", "rs", "rn")


@click.command("step")
@options.program_options
@options.run_options
@click.option(
    "-x",
    "--execute",
    multiple=True,
    metavar="COMMANDS",
    help="run these commands, separated by ; (may be repeated)",
)
@click.option(
    "--source",
    type=options.FilePath(),
    multiple=True,
    metavar="FOLDER",
    help="look for source files here (may be repeated)",
)
def step_command(**values: Any) -> int:
    """Step through a program, at a prompt or from a script.

    At the prompt, help lists the commands. With -x, or with input from a pipe, commands run without
    a prompt. A mistake in a command then ends the session with exit code 2. An error of the program
    is shown and decides the exit code. With --json the lines that each command printed stand in one
    object.
    """
    chosen = options.settings(values)
    script, folders = values["execute"], tuple(Path(folder) for folder in values["source"])
    if chosen.as_json and not script and sys.stdin.isatty():
        raise click.UsageError("--json goes with -x, or with commands from a pipe")
    commands: list[dict[str, Any]] = []  # each with the lines that it printed

    def out(text: str) -> None:
        if chosen.as_json:
            commands[-1]["lines"] += text.splitlines()
        else:
            output.say(text)

    target = options.launched(chosen)
    from bhemu.debug.places import Sources
    from bhemu.debug.stepper import StateFiles, Stepper

    target.keep_history()
    program = target.part(target.tile.xy)
    states = StateFiles(tuple(target.program.files()))
    stepper = Stepper(target.tile, program, Sources(program, folders), out, states)
    if not script and sys.stdin.isatty():
        code = _interactive(stepper)
    else:
        lines = (part for text in script for part in text.split(";")) if script else sys.stdin
        code, error = _script(stepper, lines, commands, as_json=chosen.as_json)
        if chosen.as_json:
            found: dict[str, Any] = {"program": target.program.name, "clock": target.clock}
            found["commands"] = [one for one in commands if one["command"]]
            code = output.report(found, code, as_json=True, error=error)
    target.save()
    return code


def _script(
    stepper: "Stepper", lines: Iterable[str], commands: list[dict[str, Any]], *, as_json: bool
) -> tuple[int, BhemuError | None]:
    """Execute commands without a prompt: exit code of the last run that failed, with its error.

    As JSON errors are told at the end: those of the program, and the mistake that ends the script.
    """
    code, last = EXIT_OK, None
    for line in lines:
        commands.append({"command": line.strip(), "lines": []})
        try:
            if not stepper.execute(line):
                break
        except BhemuError as error:
            if isinstance(error, InputError):
                if as_json:
                    return error.exit_code, error
                raise
            code, last = error.exit_code, error
            if not as_json:
                output.show(error, as_json=False)
        else:
            reason = None if stepper.last is None else stepper.last.reason
            ends = {"limit": EXIT_LIMIT, "timeout": EXIT_LIMIT, "interrupt": EXIT_INTERRUPTED}
            code = ends.get(reason or "", code)
    return code, last if last is not None and last.exit_code == code else None


def _interactive(stepper: "Stepper") -> int:
    """Ask until quit or end of input; an empty line repeats the last step."""
    read = _reader(stepper)
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


# The prompt of `bhemu step`: line editing, Tab, and a history that outlives the session.

_KEPT = 2000  # lines of history


def _reader(stepper: "Stepper") -> Callable[[str], str]:
    """input(), with line editing, completion and history where the system has them."""
    try:
        import readline
    except ImportError:
        return input
    found: list[str] = []

    def complete(text: str, n: int) -> str | None:
        if n == 0:
            found[:] = stepper.completions(readline.get_line_buffer(), text)
        return found[n] if n < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t")
    readline.parse_and_bind("tab: complete")
    # Read the history, and write it when the process ends: in $BHEMU_HISTORY ("" for nowhere),
    # else in the user's state folder
    given, state = os.environ.get("BHEMU_HISTORY"), os.environ.get("XDG_STATE_HOME")
    home = Path(state) if state else Path.home() / ".local" / "state"
    path = home / "bhemu" / "step_history" if given is None else Path(given)
    with suppress(OSError):
        readline.read_history_file(path)

    def write() -> None:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.set_history_length(_KEPT)
            readline.write_history_file(path)

    atexit.register(write)
    return input


_HOST, _PORT = "127.0.0.1", 3333


@click.command("gdb")
@options.program_options
@options.run_options
@click.option(
    "--port",
    type=options.Count(0, 65535),
    default=_PORT,
    show_default=True,
    metavar="N",
    help="TCP port; 0 chooses a free one",
)
@click.option("--host", default=_HOST, show_default=True, help="the address to listen on")
@click.option(
    "--allow-save",
    metavar="FOLDER",
    type=options.FilePath(path_type=Path),
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
    chosen, folder = options.settings(values), values["allow_save"]
    if folder is not None and not files.is_folder(folder):
        raise InputError(f"--allow-save: {folder} is no folder", hint="make it first")
    with listener(values["host"], values["port"]) as listening:
        progress = output.Progress(chosen.quiet)
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
        text = f"cannot listen on {host}:{port}: {files.reason(problem)}"
        taken = getattr(problem, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
        address = "--host takes an address of this machine, as 127.0.0.1"
        raise InputError(
            text, hint="--port 0 chooses a free port" if taken else address
        ) from problem
