"""`bhemu dump`: named state of a saved file, or of a program where it ended, decoded."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import failure, output
from bhemu.cli.options import FLAGS, outside_option, run_options, settings, tile_of, tile_option
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK, BhemuError, InputError
from bhemu.program import files
from bhemu.program.coordinates import XY
from bhemu.program.coordinates import text as text_of
from bhemu.program.options import given_in

if TYPE_CHECKING:
    from bhemu.machine.saved_tile import TileState

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
@run_options
@outside_option
@tile_option
def command(what: str | None, names: tuple[str, ...], **values: Any) -> int:
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
    from bhemu.debug.view import View

    other = values["other"]
    chosen = dump.select(names, bulky=other is not None)
    theirs = None if other is None else _saved(Path(other), None)
    state, error, code = _state(what, values)
    view = View(values["fmt"] or "", values["every"])
    if theirs is not None:
        changes = list(dump.diff(state, theirs, chosen, view))
        code = code or (EXIT_DIFFERS if changes else EXIT_OK)
        lines = changes or [f"no difference to {other}"]
        report: dict[str, object] = {"differences": changes}
    elif values["as_json"]:
        lines, report = [], {"state": dump.as_dict(state, chosen, view)}
    else:
        lines, report = list(dump.text(state, chosen, view)), {}
    return _show(values["as_json"], lines, report, error, code)


def _list() -> None:
    from bhemu.tensix.views import NAMED

    for named in NAMED:
        output.say(f"{named.name:<15} {named.doc}{' (when named)' if named.bulky else ''}")


def _show(
    as_json: bool,
    lines: list[str],
    report: dict[str, object],
    error: BhemuError | None,
    code: int,
) -> int:
    if not as_json:
        for line in lines:
            output.say(line)
        return code if error is None else failure.show(error, as_json=False)
    if error is not None:
        return failure.show(error, as_json=True, more=report)
    output.say(json.dumps({**report, "exit_code": code}, indent=2))
    return code


def _state(what: str, values: dict[str, Any]) -> "tuple[TileState, BhemuError | None, int]":
    """A saved state, or that of a program where it ended: with its error and exit code."""

    path = Path(what)
    if files.is_folder(path) or path.suffix == ".toml":
        return _run({**values, "program": what, **dict.fromkeys(FLAGS, ())})
    if files.is_file(path) and path.suffix != ".npz":
        raise InputError(f"{path}: neither .npz nor .toml", hint="bhemu run --save STATE.npz")
    flags = {name: option.flag or name for name, option in given_in("flag").items()}
    for name, flag in {**flags, "save": "save"}.items():
        if values[name] is not None:
            raise click.UsageError(f"--{flag} goes with a program", click.get_current_context())
    return _saved(path, tile_of(values)), None, EXIT_OK


def _saved(path: Path, xy: XY | None) -> "TileState":
    """The state of a tile in a file: of the one, or of one of several."""
    from bhemu.machine.saved import Snapshot

    saved = Snapshot.load(path)
    if saved.network is None and xy is not None:
        raise InputError(f"{path}: --tile goes with the state of a chip")
    if xy is None:
        xy = min(saved.tiles, key=lambda at: (at[1], at[0]))
    if xy not in saved.tiles:
        raise InputError(f"{path} has no tile {xy[0]},{xy[1]}", hint=text_of(sorted(saved.tiles)))
    return saved.tiles[xy]


def _run(values: dict[str, Any]) -> "tuple[TileState, BhemuError | None, int]":
    chosen = settings(values)
    progress = Progress(chosen.quiet or chosen.as_json)
    with progress.starting():
        from bhemu.cli.target import Target

        chosen.check_save()
        target = Target(chosen, progress)
    with progress.running(target):
        ended = target.finish()
    target.save()
    state = target.tile.snapshot().tiles[target.tile.xy]
    return state, ended.error, EXIT_INTERRUPTED if ended.interrupted else EXIT_OK
