"""`bhemu why`: what is wrong with a run, and what made a place what it is, back to its causes."""

import json
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import output
from bhemu.cli.options import Settings, program_options, run_options, settings
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_OK, BhemuError

if TYPE_CHECKING:
    from bhemu.tile import Tile
    from bhemu.why.findings import Finding


@click.command("why")
@program_options
@click.argument("place", required=False)
@click.option("--local", default="brisc", metavar="CORE", help="whose local memory PLACE lies in")
@run_options
def command(**values: Any) -> int:
    """Run a program and tell what is wrong, or what made PLACE what it is at the end.

    PLACE is an element of an output (y[3,5]), an address or symbol with a length (0x20000:4), a
    Config field, or a part of the state (sem:1, gpr:0:5, dst:12). Each line is a cause of the one
    above it that stands further left: the last change of a place, who made it, from which line.
    Without a PLACE: the error or hang that ended the run, and the first wrong element of each
    output. Exit code 0 when nothing is wrong, 1 when something is; with a PLACE always 0.
    """
    chosen = settings(values)
    progress = Progress(chosen.quiet or chosen.as_json)
    with progress.starting():
        from bhemu.cli.target import Target

        target = Target(chosen, progress, one_tile=True)
        tile = target.tile
        tile.keep_history()
    error: BhemuError | None = None
    try:
        with progress.running(target):
            stop = target.run()
        error = target.unfinished(stop)
    except BhemuError as problem:
        error = problem
    if values["place"] is not None:
        return _place(tile, chosen, values["local"], values["place"])
    findings = _findings(tile, chosen, error)
    if chosen.as_json:
        output.say(json.dumps({"findings": [one.as_dict() for one in findings]}, indent=2))
    else:
        for one in findings:
            for line in one.lines():
                output.say(line)
        if not findings:
            output.say("nothing is wrong with this run: it ended, and no output differs")
    return EXIT_DIFFERS if findings else EXIT_OK


def _place(tile: "Tile", chosen: Settings, core: str, text: str) -> int:
    from bhemu.why.findings import chain

    links = chain(tile, chosen.program, core, text)
    if chosen.as_json:
        shown = {"place": text, "links": [link.as_dict() for link in links]}
        output.say(json.dumps(shown, indent=2))
    else:
        for link in links:
            output.say("  " * link.depth + str(link))
    return EXIT_OK


def _findings(tile: "Tile", chosen: Settings, error: BhemuError | None) -> "list[Finding]":
    from bhemu.why.findings import of_error, of_output

    if error is not None:
        return [of_error(error, tile.clock)]
    wrong = [result for result in tile.check() if not result.equal]
    return [of_output(tile, chosen.program, result) for result in wrong]
