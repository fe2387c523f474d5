"""`bhemu trace`: the Tensix words that a program executes, in order, with where they come from."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import failure, output
from bhemu.cli.options import Settings, program_options, run_options, settings
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_INTERRUPTED, EXIT_OK, BhemuError
from bhemu.program import files

if TYPE_CHECKING:
    from bhemu.debug.trace import Tracer
    from bhemu.machine.stop import Stop
    from bhemu.machine.word_text import TracedStore, TracedWord


@click.command("trace")
@program_options
@click.option("--thread", type=click.IntRange(0, 2), metavar="N", help="only words of thread N")
@click.option("--limit-words", type=click.IntRange(1), metavar="N", help="stop after N words")
@click.option("--words", is_flag=True, help="words alone: no stores of cores, no meanings")
@click.option(
    "--perfetto",
    metavar="FILE.json",
    type=click.Path(path_type=Path),
    help="write Chrome trace events for ui.perfetto.dev instead of text, of all tiles of a chip",
)
@run_options
def command(**values: Any) -> int:
    """Run a program and print every Tensix word as it was executed.

    A line is number, thread, pc that pushed the word, MOP or REPLAY slot it came through, the word
    in assembly, function and source line, then what the operands stand for: of UNPACR and PACR
    the L1 addresses, formats and rows, and who set them. Stores of cores to devices (Config, GPRs,
    NIUs, streams, ...) stand between the words. With --json one object per line. Outputs are not
    compared; exit codes are those of run.
    """
    chosen = settings(values)
    progress = Progress(chosen.quiet or chosen.as_json)
    if values["perfetto"] is not None:
        return _perfetto(chosen, progress, values["perfetto"], values["limit_words"])
    with progress.starting():
        from bhemu.cli.target import Target
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
            error = target.unfinished(stop)
    except BhemuError as problem:
        error = problem
    target.save()
    return _finish(chosen, progress, tracer, stop, error)


def _perfetto(chosen: Settings, progress: Progress, path: Path, most: int | None) -> int:
    """A run as Chrome trace events."""
    files.check_writable(path, "trace", chosen.program.files())
    with progress.starting():
        from bhemu.cli.target import Target
        from bhemu.pictures import perfetto
        from bhemu.pictures.recording import Recorder

        target = Target(chosen, progress)
    recording = Recorder(target, words=most or perfetto.MOST).run()
    document = perfetto.document(recording, chosen.program.name)
    data = json.dumps(document, separators=(",", ":")).encode()
    files.write_whole(path, lambda file: file.write(data), "trace")
    events = document["traceEvents"]
    progress.say(f"{path}: {len(events)} events, clock {target.clock}")
    if recording.error is not None:
        return failure.show(recording.error, as_json=chosen.as_json)
    interrupted = recording.stop is not None and recording.stop.reason == "interrupt"
    return EXIT_INTERRUPTED if interrupted else EXIT_OK


def _finish(
    chosen: Settings,
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
        output.say(json.dumps(error.as_dict()))
        return error.exit_code
    return failure.show(error, as_json=False)
