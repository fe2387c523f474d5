"""`bhemu dump` shows a state by names, `bhemu trace` the Tensix words that were executed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.arguments import did_you_mean
from bhemu.cli import options, output, verdicts
from bhemu.cli.output import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK, BhemuError, InputError
from bhemu.program import files, input_files
from bhemu.program.coordinates import XY
from bhemu.program.coordinates import text as text_of
from bhemu.program.options import given_in

if TYPE_CHECKING:
    from bhemu.debug.trace import Tracer
    from bhemu.machine.saved import TileState
    from bhemu.machine.stop import Stop
    from bhemu.machine.word_text import TracedStore, TracedWord


_NAMED = 8  # files
_FORMATS = ("bf16", "fp16", "fp32", "int32", "raw")


@click.command("dump")
@click.argument("what", metavar="STATE.npz | PROGRAM.toml | FOLDER", required=False)
@click.argument("names", nargs=-1, metavar="[NAME[:RANGE]]...")
@click.option("--diff", "other", metavar="OTHER.npz", help="show only what differs from this state")
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
        _list()
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
        report: dict[str, object] = {"verdict": verdicts.of(error_code), "differences": changes}
    elif values["as_json"]:
        lines, report = [], {"state": dump.as_dict(state, chosen, view)}
    else:
        lines, report = list(dump.text(state, chosen, view)), {}
    return output.report(report, code, lines, as_json=values["as_json"], error=error)


def _list() -> None:
    from bhemu.tensix.views import NAMED

    for named in NAMED:
        output.say(f"{named.name:<15} {named.doc}{' (when named)' if named.bulky else ''}")


def _state(what: str, values: dict[str, Any]) -> "tuple[TileState, BhemuError | None, int]":
    """A saved state, or that of a program where it ended: with its error and exit code."""

    path = Path(what)
    if files.is_folder(path) or path.suffix == ".toml" or input_files.is_session(path):
        return _run({**values, "program": what, **dict.fromkeys(options.FLAGS, ())})
    if files.is_file(path) and path.suffix != ".npz":
        raise InputError(f"{path}: neither .npz nor .toml", hint="bhemu run --save STATE.npz")
    flags = {name: option.flag or name for name, option in given_in("flag").items()}
    for name, flag in {**flags, "save": "save"}.items():
        if values[name] is not None:
            raise click.UsageError(f"--{flag} goes with a program", click.get_current_context())
    return _saved(path, options.tile_of(values)), None, EXIT_OK


def _saved(path: Path, xy: XY | None) -> "TileState":
    """The state of a tile in a file: of the one, or of one of several."""
    from bhemu.machine.saved import Snapshot

    if files.is_missing(path):
        raise InputError(f"{path}: no such file", hint=_near(path))
    saved = Snapshot.load(path)
    if saved.network is None and xy is not None:
        raise InputError(f"{path}: --tile goes with the state of a chip")
    if xy is None:
        xy = min(saved.tiles, key=lambda at: (at[1], at[0]))
    if xy not in saved.tiles:
        raise InputError(f"{path} has no tile {xy[0]},{xy[1]}", hint=text_of(sorted(saved.tiles)))
    return saved.tiles[xy]


def _near(path: Path) -> str:
    """The saved states in the folder of a file that is not there: the nearest name, else some."""
    states = sorted(one.name for one in path.parent.glob("*.npz")) if path.parent.is_dir() else []
    if not states:
        return "bhemu run PROGRAM --save STATE.npz writes one"
    mean = did_you_mean(path.name, states)
    return mean or f"there are {', '.join(states[:_NAMED])}"


def _run(values: dict[str, Any]) -> "tuple[TileState, BhemuError | None, int]":
    chosen = options.settings(values)
    progress = Progress(chosen.quiet or chosen.as_json)
    with progress.starting():
        from bhemu.cli.summary import Target

        chosen.check_save()
        target = Target(chosen, progress)
    with progress.running(target):
        ended = target.finish()
    target.save()
    state = target.tile.snapshot().tiles[target.tile.xy]
    return state, ended.error, EXIT_INTERRUPTED if ended.interrupted else EXIT_OK


# `bhemu trace`: the Tensix words that a program executes, in order, with where they come from.


@click.command("trace")
@options.program_options
@click.option(
    "--thread", type=options.Thread(), metavar="N", help="only words of thread N (1, or T1)"
)
@click.option("--limit-words", type=click.IntRange(1), metavar="N", help="stop after N words")
@click.option("--words", is_flag=True, help="words alone: no stores of cores, no meanings")
@click.option(
    "--perfetto",
    metavar="FILE.json",
    type=click.Path(path_type=Path),
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
    progress = Progress(chosen.quiet or chosen.as_json)
    if values["perfetto"] is not None:
        return _perfetto(chosen, progress, values["perfetto"], values["limit_words"])
    with progress.starting():
        from bhemu.cli.summary import Target
        from bhemu.debug.trace import Tracer

        chosen.check_save()
        target = Target(chosen, progress)

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
    return _finish(chosen, progress, tracer, stop, error)


def _perfetto(chosen: options.Settings, progress: Progress, path: Path, most: int | None) -> int:
    """A run as Chrome trace events."""
    files.check_writable(path, "trace", chosen.program.files())
    with progress.starting():
        from bhemu.cli.summary import Target
        from bhemu.pictures.recording import MOST, Recorder, document

        target = Target(chosen, progress)
    recording = Recorder(target, words=most or MOST).run()
    trace = document(recording, chosen.program.name)
    data = json.dumps(trace, separators=(",", ":")).encode()
    files.write_whole(path, lambda file: file.write(data), "trace")
    events = trace["traceEvents"]
    progress.say(f"{path}: {len(events)} events, clock {target.clock}")
    interrupted = recording.stop is not None and recording.stop.reason == "interrupt"
    code = EXIT_INTERRUPTED if interrupted else EXIT_OK
    written = {"trace": str(path), "events": len(events), "clock": target.clock}
    return output.report(written, code, as_json=chosen.as_json, error=recording.error)


def _finish(
    chosen: options.Settings,
    progress: Progress,
    tracer: "Tracer",
    stop: "Stop | None",
    error: BhemuError | None,
) -> int:
    from bhemu.cli.summary import REASONS

    reason = "stopped by an error" if stop is None else REASONS.get(stop.reason, stop.reason)
    reason = "as many as were asked for" if tracer.full else reason
    progress.say(f"{tracer.shown} word{'' if tracer.shown == 1 else 's'}; {reason}")
    if error is None:
        interrupted = stop is not None and stop.reason == "interrupt"
        return EXIT_INTERRUPTED if interrupted else EXIT_OK
    if chosen.as_json:
        verdict = verdicts.of(error.exit_code)
        output.say(json.dumps({"verdict": verdict, **error.as_dict()}))
        return error.exit_code
    return output.show(error, as_json=False)
