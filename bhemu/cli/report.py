"""`bhemu report`: a run in one HTML file, with what is wrong with it."""

from pathlib import Path
from typing import Any

import click

from bhemu.cli import output
from bhemu.cli.options import program_options, run_options, settings
from bhemu.cli.progress import Progress
from bhemu.cli.why import findings
from bhemu.errors import EXIT_DIFFERS, EXIT_OK
from bhemu.program import files


@click.command("report")
@program_options
@click.option(
    "-o", "--output", "path", required=True, metavar="FILE.html", type=click.Path(path_type=Path)
)
@run_options
def command(**values: Any) -> int:
    """Run a program and write a report of it, one HTML file that needs no server and no network.

    It holds what bhemu why finds, with source excerpts, who waits for whom, what cores, threads and
    the NoC did over time, the tiles, and where outputs differ. The program runs twice: once for
    the findings, once to be looked at on the way. Exit code 0 when nothing is wrong, else 1.
    """
    chosen = settings({**values, "as_json": False})
    files.check_writable(values["path"], "report", chosen.program.files())
    progress = Progress(chosen.quiet)
    with progress.starting():
        from bhemu.cli.target import Target

        target = Target(chosen, progress)
        if target.program.is_alone:
            target.keep_history()
    with progress.running(target):
        ended = target.finish()
    found = findings(target, progress, ended)
    from bhemu.pictures.page import page
    from bhemu.pictures.recording import Recorder

    seen = Target(chosen, progress)
    recording = Recorder(seen).run()
    data = page(chosen.program.name, seen, recording, ended.error, found)
    files.write_whole(values["path"], lambda file: file.write(data), "report")
    output.say(f"{values['path']}: {_counted(len(found))}")
    return EXIT_DIFFERS if found else EXIT_OK


def _counted(n: int) -> str:
    return "nothing is wrong" if not n else f"{n} finding{'' if n == 1 else 's'}"
