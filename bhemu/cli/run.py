"""`bhemu run`: a program from its cores' reset to its end condition, and its outputs compared."""

import json
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import failure, output
from bhemu.cli.options import Settings, program_options, run_options, settings
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK, BhemuError, Limit, NoProgress

if TYPE_CHECKING:
    from bhemu.machine.stop import Stop
    from bhemu.program.outputs import OutputResult
    from bhemu.tile import Tile


@click.command("run")
@program_options
@run_options
def command(**values: Any) -> int:
    """Run a program and compare its outputs.

    PROGRAM.toml says what to load, set, feed, run and compare; the flags add to it or stand alone.
    """
    chosen = settings(values)
    progress = Progress(chosen.quiet or chosen.as_json)
    with progress.starting():
        from bhemu.launch import launch

        chosen.check_save()
        tile = launch(chosen.program, quantum=chosen.quantum, progress=progress)
    code = _run(tile, chosen, progress)
    progress.say(f"{progress.seconds:.2f} s")
    return code


def _run(tile: "Tile", chosen: Settings, progress: Progress) -> int:
    from bhemu.launch import check, run

    stop: Stop | None = None
    results: list[OutputResult] = []
    error: BhemuError | None = None
    try:
        with progress.running(tile):
            stop = run(tile, chosen.program)
        error = unfinished(tile, chosen, stop)
        if error is None and stop.reason != "interrupt":
            results = check(tile, chosen.program)
    except BhemuError as problem:
        error = problem
    if chosen.save is not None:
        tile.snapshot().save(chosen.save)
    return _report(tile, chosen, stop, results, error)


def _report(
    tile: "Tile",
    chosen: Settings,
    stop: "Stop | None",
    results: "list[OutputResult]",
    error: BhemuError | None,
) -> int:
    from bhemu.cli import summary

    code = EXIT_OK if all(result.equal for result in results) else EXIT_DIFFERS
    if stop is not None and stop.reason == "interrupt":
        code = EXIT_INTERRUPTED
    if chosen.as_json:
        report = summary.as_dict(tile, chosen.program, stop, results)
        if error is not None:
            return failure.show(error, as_json=True, more=report)
        output.say(json.dumps({**report, "exit_code": code}, indent=2))
        return code
    if chosen.quiet:
        shown = [str(result) for result in results if not result.equal]
    else:
        shown = summary.text(tile, chosen.program, stop, results)
        shown += summary.opcodes(tile) if chosen.verbose else []
    for line in shown:
        output.say(line)
    return code if error is None else failure.show(error, as_json=False)


def unfinished(tile: "Tile", chosen: Settings, stop: "Stop") -> BhemuError | None:
    """The error of a run that ended before its end condition, None when it did not."""
    wanted = _unmet(tile, chosen)
    before = f" before {wanted}" if wanted else ""
    core = next((c for c in tile.core.values() if c.state == "running"), None)
    where = None if core is None else core.where()
    hint = "raise it, or look where it is with bhemu step"
    if stop.reason == "limit":
        text = f"the clock limit of {chosen.program.run.limit} was reached{before}"
        return Limit(text, rule="LIMIT", where=where, hint=hint)
    if stop.reason == "timeout":
        text = f"the time-out of {chosen.program.run.timeout_s} s was reached{before}"
        return Limit(text, category="Timeout", rule="TIMEOUT", where=where, hint=hint)
    if stop.reason == "idle" and wanted:
        parked = next((c for c in tile.core.values() if c.state == "parked"), None)
        return NoProgress(
            f"everything is idle or parked{before}",
            rule="IDLE",
            where=None if parked is None else parked.where(),
            hint="did every core start? see the counts of retired instructions",
        )
    return None


def _unmet(tile: "Tile", chosen: Settings) -> str:
    from bhemu.launch import until_words, word_name

    words = until_words(tile, chosen.program) or []
    unmet = [(at, want, tile.read32(at)) for at, want in words if tile.read32(at) != want]
    return " and ".join(
        f"{word_name(chosen.program, at)} was {want:#x} (it is {got:#x})" for at, want, got in unmet
    )
