"""`bhemu llk`: run tt-llk's own tests on the emulated tile."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import output
from bhemu.cli.options import json_option
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK

if TYPE_CHECKING:
    from bhemu.llk.campaign import Campaign

_STAND_IN = Path(__file__).parent.parent / "llk" / "stand_in"
_FINE = ("pass", "skip", "host")
_SHOWN = 20


@click.group("llk", invoke_without_command=True)
@click.option("--path", is_flag=True, help="print only the folder to put on PYTHONPATH")
@click.pass_context
def command(context: click.Context, path: bool) -> None:
    """Show how to run tt-llk's tests on an emulated tile, or run a sample of them.

    The tests import tt-exalens to reach a device. With the printed folder first on PYTHONPATH they
    import a stand-in of the same name, which runs an emulated tile.
    """
    if context.invoked_subcommand is not None:
        return
    if path:
        click.echo(_STAND_IN)
        return
    click.echo(
        "cd tt-llk/tests/python_tests\n"
        "PYTHONPATH=$(bhemu llk --path) pytest test_matmul.py\n"
        "options of the tile: BHEMU_LLK=reference=ttsim,ub=warn,quantum=100 (docs/llk.md)\n"
        "a sample of all tests on all processors: bhemu llk sweep CHECKOUT"
    )


@command.command("sweep")
@click.argument("checkout", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, metavar="[test_FILE.py ...]")
@click.option(
    "--sample", type=click.IntRange(1), default=600, show_default=True, help="tests of all files"
)
@click.option("--seed", type=int, default=1, show_default=True, help="of the choice of tests")
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="processes (default: one per processor)"
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="llk-results",
    show_default=True,
    metavar="FOLDER",
    help="records, and compiled kernels, which a later sweep takes",
)
@click.option("--resume", is_flag=True, help="keep the records that are there, run the rest")
@click.option(
    "--python", default=sys.executable, help="one with tt-llk's requirements (default: this one)"
)
@json_option
def sweep(resume: bool, out: Path, as_json: bool, **values: Any) -> int:
    """Run a sample of tt-llk's tests, each file's share of it, in a seeded order.

    CHECKOUT is one of tt-llk or of tt-metal, prepared as for a card (docs/llk.md). Workers live to
    the end, and each kernel is compiled once. Exit code 1 when a test does not pass.
    """
    from bhemu.llk.campaign import Campaign

    progress = Progress(as_json)
    campaign = Campaign(
        values["checkout"],
        out,
        values["sample"],
        files=values["files"],
        workers=values["workers"],
        seed=values["seed"],
        python=values["python"],
    )
    campaign.begin(resume=resume)
    interrupted = False

    def status(records: list[dict[str, Any]]) -> None:
        rate = len(records) / max(progress.seconds, 1e-9)
        progress.status(f"{len(records)} tests, {rate:.1f}/s: {_counted(records)}")

    try:
        campaign.run(status)
    except KeyboardInterrupt:
        interrupted = True
    progress.status("")
    return _report(campaign, out, interrupted, as_json)


def _counted(records: list[dict[str, Any]]) -> str:
    counts = Counter(record["outcome"] for record in records)
    return ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common())


def _report(campaign: "Campaign", out: Path, interrupted: bool, as_json: bool) -> int:
    records = campaign.finish()
    bad = [record for record in records if record["outcome"] not in _FINE]
    code = EXIT_INTERRUPTED if interrupted else EXIT_DIFFERS if bad else EXIT_OK
    if as_json:
        counts = Counter(record["outcome"] for record in records)
        shown = {"tests": len(records), "outcomes": counts, "results": str(out), "exit_code": code}
        output.say(json.dumps(shown, indent=2))
        return code
    groups: dict[tuple[str, str, str], list[str]] = {}
    for record in bad:
        text = str(record.get("text", "")).strip().split("\n")[0][:160]
        kind = record["outcome"], record.get("rule", record.get("type", "")), text
        groups.setdefault(kind, []).append(record["test"])
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    for (outcome, rule, text), tests in ranked[:_SHOWN]:
        output.say(f"{len(tests)} x {outcome}: {rule} {text}\n  pytest '{tests[0]}'")
    output.say(f"{len(records)} tests of {len(campaign.files)} files: {_counted(records)}")
    output.say(f"  {out}/runs.jsonl" + ("; interrupted: --resume goes on" if interrupted else ""))
    return code
