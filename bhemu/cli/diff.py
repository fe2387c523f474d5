"""`bhemu diff`: the same program on bhemu and on a user's own libttsim.so."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from bhemu.cli import output, verdicts
from bhemu.cli.options import flag, json_option, outside_option
from bhemu.cli.output import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_OK
from bhemu.program.options import REFERENCES, given_in

if TYPE_CHECKING:
    from bhemu.oracle.libttsim import Library
    from bhemu.oracle.programs import Verdict
    from bhemu.sweeps.api import Question

    Command = Callable[..., Any]


def _time_options(command: "Command") -> "Command":
    """When things happen in bhemu's run."""
    for name, option in given_in("diff").items():
        command = flag(name, option)(command)
    return command


@click.command("diff")
@click.argument("program", required=False, metavar="[CASE.npz | PROGRAM.toml | FOLDER]")
@click.option("--ttsim", metavar="LIB", help="the libttsim.so of Blackhole; default: $BHEMU_TTSIM")
@click.option("--random", "unit", metavar="UNIT", help="compare random programs for this unit")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="of --random")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="first index")
@click.option(
    "--count", type=click.IntRange(1), default=10, show_default=True, help="how many programs"
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="stop after this many differences",
)
@click.option(
    "--reference",
    type=click.Choice(REFERENCES),
    default="ttsim",
    help="which reference bhemu follows where ttsim, tt-llk and the ISA text disagree",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="processes of --random (default: one per processor); results are the same",
)
@_time_options
@json_option
@outside_option
def diff_command(
    program: str | None,
    ttsim: str | None,
    unit: str | None,
    seed: int,
    first: int,
    count: int,
    most: int,
    reference: str,
    workers: int | None,
    as_json: bool,
    allow_outside: bool,
    **of_time: int | str | None,
) -> int:
    """Run a program on bhemu and on ttsim and compare L1.

    The exit code is 1 when L1 differs. CASE.npz is an L1 image: TRISC0-2 start at 0x10000, 0x20000,
    0x30000 and store 0xD0E0-0xD0E2 at 0x100-0x108. --random generates programs for a unit: front,
    scalar, config, sync, adc, matrix, vector, unpack, pack, copy or accept. It needs bhemu's source
    checkout. For a program that differs it names the first instruction after which the models
    differ, and shortens the program to the instructions that matter. With --late or --timing
    bhemu's run takes time, and ttsim's is as always: a program without races gives the same.
    """
    given = {name: value for name, value in of_time.items() if value is not None}
    if given and unit is not None:
        raise click.UsageError(f"--{min(given)} goes with a program, not with --random")
    if (program is None) == (unit is None):
        raise click.UsageError("name a program, or a unit with --random")
    progress = Progress(as_json)
    with progress.starting():
        from bhemu.oracle import programs
        from bhemu.oracle.libttsim import find
        from bhemu.sweeps.api import Question

        if unit is not None:
            programs.load("campaign")
        library = find(ttsim)
    if unit is None:
        assert program is not None
        with progress.waiting(lambda: "comparing both runs"):
            compared = _compare(library, reference, program, allow_outside, given)
        return _report(compared, as_json)
    asked = Question(library.path, reference, unit, seed, range(first, first + count))
    tally = _campaign(library, asked, most, workers, progress)
    code = EXIT_DIFFERS if tally.differences else EXIT_OK
    verdict = verdicts.NOT_MODELLED if tally.differences else verdicts.OK  # of models, no program
    return output.report(
        {"verdict": verdict, **tally.as_dict()}, code, tally.lines(), as_json=as_json
    )


def _campaign(
    library: "Library", asked: "Question", most: int, workers: int | None, progress: Progress
) -> "Tally":
    """Compare generated programs, in this process or in several."""

    done = 0

    def status(index: int) -> None:
        nonlocal done
        done += 1
        progress.status(f"{asked.unit} {index + 1} of {asked.indices.stop}")

    def begins() -> str:
        return "" if done else f"{asked.unit}: compiling, 0 of {len(asked.indices)} programs"

    with progress.waiting(begins):
        tally = _tally(library, asked, most, workers, status)
    progress.status("")
    return tally


def _tally(
    library: "Library",
    asked: "Question",
    most: int,
    workers: int | None,
    status: Callable[[int], None],
) -> "Tally":
    if workers == 1 or len(asked.indices) == 1:
        from bhemu.oracle import programs
        from bhemu.oracle.libttsim import Judge

        campaign = programs.load("campaign")
        judge = Judge(library, asked.reference)
        tally: Tally = campaign.run(judge, *asked[2:], stop_after=most, progress=status)
        return tally
    from bhemu.sweeps.api import run

    tally = run(asked, stop_after=most, workers=workers, progress=status)
    return tally


class Tally(Protocol):
    """What a campaign of generated programs found (tests/random_programs/campaign.py)."""

    differences: Sequence[object]

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""

    def lines(self) -> Iterator[str]:
        """The counts and the differences in words."""


def _compare(
    library: "Library",
    reference: str,
    program: str,
    allow_outside: bool,
    of_time: dict[str, int | str],
) -> "Verdict":
    from bhemu.oracle import programs
    from bhemu.oracle.libttsim import Judge
    from bhemu.program.schema import load_program

    path = Path(program)
    if path.suffix == ".npz":
        judge = Judge(library, reference, **of_time)
        return programs.compare_case(judge, programs.read_case(path))
    loaded = load_program(path, allow_outside=allow_outside)
    run = replace(loaded.run, options={**loaded.run.options, **of_time})
    loaded = replace(loaded, run=run)
    if not loaded.is_alone:
        from bhemu.oracle.programs import compare_chip

        return compare_chip(library, loaded)
    return programs.compare_program(library, loaded)


def _report(verdict: "Verdict", as_json: bool) -> int:
    from bhemu.oracle.libttsim import DIFFERENT

    code = EXIT_DIFFERS if verdict.verdict == DIFFERENT else EXIT_OK
    lines = [f"{verdict.name}: {verdict.verdict}", *(f"  {line}" for line in verdict.lines)]
    return output.report(verdict.as_dict(), code, lines, as_json=as_json)
