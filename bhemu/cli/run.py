"""`bhemu run`: a program from its cores' reset to its end condition, and its outputs compared."""

import json
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import failure, output
from bhemu.cli.options import Settings, program_options, run_options, settings
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK, BhemuError

if TYPE_CHECKING:
    from bhemu.cli.target import Target
    from bhemu.machine.stop import Stop
    from bhemu.program.outputs import OutputResult


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
        from bhemu.cli.target import Target

        chosen.check_save()
        target = Target(chosen, progress)
    code = _run(target, chosen, progress)
    progress.say(f"{progress.seconds:.2f} s")
    return code


def _run(target: "Target", chosen: Settings, progress: Progress) -> int:
    stop: Stop | None = None
    results: list[OutputResult] = []
    error: BhemuError | None = None
    try:
        with progress.running(target):
            stop = target.run()
        error = target.unfinished(stop)
        if error is None and stop.reason != "interrupt":
            results = target.check()
    except BhemuError as problem:
        error = problem
    target.save()
    return _report(target, chosen, stop, results, error)


def _report(
    target: "Target",
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
        report = summary.as_dict(target, stop, results)
        if error is not None:
            return failure.show(error, as_json=True, more=report)
        output.say(json.dumps({**report, "exit_code": code}, indent=2))
        return code
    if chosen.quiet:
        shown = [str(result) for result in results if not result.equal]
    else:
        shown = summary.text(target, stop, results)
        shown += summary.opcodes(target.tile) if chosen.verbose else []
    for line in shown:
        output.say(line)
    return code if error is None else failure.show(error, as_json=False)
