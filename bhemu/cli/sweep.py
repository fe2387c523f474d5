"""`bhemu sweep`: many runs of programs, on all processors or on a cluster."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import output
from bhemu.cli.options import Count, FilePath, json_option, outside_option
from bhemu.cli.output import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK
from bhemu.program import files

if TYPE_CHECKING:
    from bhemu.sweeps.api import Progress as Step
    from bhemu.sweeps.api import Results
    from bhemu.sweeps.spec import Plan

_SHOWN = 10  # groups of failures


@click.command("sweep")
@click.argument("sweep", type=FilePath(), metavar="SWEEP.toml | FOLDER")
@click.option(
    "--workers", type=Count(1), metavar="N", help="processes (default: one per processor)"
)
@click.option("--scheduler", metavar="URL", help="run on the workers of this Dask scheduler")
@click.option(
    "--out", type=FilePath(), metavar="FOLDER", help="where results go (default: beside SWEEP.toml)"
)
@click.option("--resume", is_flag=True, help="keep the results that are there, run the rest")
@click.option("--replace", is_flag=True, help="forget the results that are there")
@click.option(
    "--report", type=FilePath(), metavar="FILE.html", help="write a page with the results"
)
@click.option("--heat", metavar="X,Y", help="the two parameters of the page's heat map")
@click.option("--value", metavar="COLUMN", help="what the heat map shows (default: failed runs)")
@click.option("-q", "--quiet", is_flag=True, help="print only what went wrong")
@json_option
@outside_option
def sweep_command(sweep: str, quiet: bool, as_json: bool, **values: Any) -> int:
    """Run programs with many values of parameters.

    SWEEP.toml names programs, parameters, and flags of `bhemu run` that use them (docs/sweep.md).
    FOLDER gets runs.jsonl and runs.parquet: parameters, outcome, counters and digest of the outputs
    of each run, and the command that repeats it. Ctrl-C keeps what is done, --resume goes on. Exit
    code 0 when every run is ok, 1 when one is not.
    """
    progress = Progress(quiet or as_json)
    with progress.starting():
        from bhemu.sweeps import api
        from bhemu.sweeps.spec import Plan, load_sweep

        if values["resume"] and values["replace"]:
            raise click.UsageError("--resume keeps what --replace forgets: give one")
        chosen = load_sweep(sweep, allow_outside=values["allow_outside"])
        plan = Plan(chosen)
        view = api.view(plan, values["heat"], values["value"])
        report = None if values["report"] is None else Path(values["report"])
        if report is not None:
            files.check_writable(report, "--report", plan.files.values())
        beside = chosen.folder / f"{Path(chosen.origin).stem}-results"
        folder = beside if values["out"] is None else Path(values["out"])
        journal = api.Journal(folder, resume=values["resume"], replace=values["replace"])
    kept = sum(run.key in journal.done for run in plan.runs)
    with _progress(plan, kept, progress, quiet or as_json) as step:
        found = api.perform(
            plan, journal, workers=values["workers"], scheduler=values["scheduler"], progress=step
        )
    if report is not None:
        files.write_whole(report, api.page(found, view), "--report")
    return _report(found, folder, quiet, as_json)


@contextmanager
def _progress(plan: "Plan", kept: int, progress: Progress, quiet: bool) -> "Iterator[Step | None]":
    """On a terminal: how many runs are done and failed, the rate, and how long it will take.

    Without one: that none is done, until one is, because what they use may have to be compiled.
    """
    if quiet or not sys.stderr.isatty():
        begins = f"{plan.sweep.name}: 0 of {len(plan.runs) - kept} runs are done"
        ended = threading.Event()
        with progress.waiting(lambda: "" if ended.is_set() else begins):
            yield lambda row: ended.set()
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn(plan.sweep.name),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[failed]} not ok, {task.fields[rate]:.0f}/s, left"),
        bars.TimeRemainingColumn(elapsed_when_finished=True),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("runs", total=len(plan.runs), completed=kept, failed=0, rate=0.0)
        failed = 0

        def step(row: dict[str, Any]) -> None:
            nonlocal failed
            failed += row["outcome"] != "ok"
            shown.update(task, advance=1, failed=failed, rate=shown.tasks[0].speed or 0.0)

        yield step


def _report(found: "Results", folder: Path, quiet: bool, as_json: bool) -> int:
    code = EXIT_OK if set(found.counts) <= {"ok"} else EXIT_DIFFERS
    if not found.complete:
        code = EXIT_INTERRUPTED
    if as_json:
        codes = [row["exit_code"] or int(row["outcome"] != "ok") for row in found.rows]
        return output.report(
            {
                "verdict": output.worst_verdict([*codes, EXIT_OK if found.complete else code]),
                "sweep": found.plan.sweep.name,
                "runs": len(found.plan.runs),
                "done": len(found),
                "new": found.new,
                "seconds": found.seconds,
                "outcomes": dict(found.counts),
                "failures": [vars(one) for one in found.failures],
                "results": str(folder),
            },
            code,
            as_json=True,
        )
    for one in found.failures[:_SHOWN]:
        output.say(f"{one}\n  {one.command}")
    if len(found.failures) > _SHOWN:
        output.say(f"and {len(found.failures) - _SHOWN} kinds more")
    if quiet:
        return code
    counts = ", ".join(f"{n} {outcome}" for outcome, n in found.counts.items())
    output.say(f"{found.plan.sweep.name}: {len(found)} of {len(found.plan.runs)} runs: {counts}")
    if found.new:
        rate = found.new / max(found.seconds, 1e-9)
        output.say(f"  {found.new} now, in {found.seconds:.1f} s, {rate:.0f} runs/s")
    output.say(f"  {folder}/runs.jsonl" + (f", {folder}/runs.parquet" if found.whole else ""))
    if not found.whole:
        output.say("  no runs.parquet: pip install 'bhemu[sweep]'")
    if not found.complete:
        output.say("  interrupted: --resume goes on")
    return code
