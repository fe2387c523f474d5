"""The command: a sample of tt-llk's own tests on the emulated tile, on all processors."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import output
from bhemu.cli.options import json_option
from bhemu.cli.output import Progress
from bhemu.errors import EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK

if TYPE_CHECKING:
    from llk_sweep.campaign import Campaign

_FINE = ("pass", "skip", "host")
_SHOWN = 20


class _Command(click.Command):
    """A command that ends with an exit code, as those of bhemu do; mistakes are one line."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Parse, run and leave."""
        given = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(given, *more, **{**extra, "standalone_mode": False})
        except Exception as problem:  # everything ends as one line and an exit code
            code = output.show(problem, as_json="--json" in given)
        sys.exit(code or 0)


@click.command("llk_sweep", cls=_Command)
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
def command(resume: bool, out: Path, as_json: bool, **values: Any) -> int:
    """Run a sample of tt-llk's tests, each file's share of it, in a seeded order.

    CHECKOUT is one of tt-llk or of tt-metal, prepared as for a card (docs/llk.md). Workers live to
    the end, and each kernel is compiled once. Exit code 1 when a test does not pass.
    """
    from llk_sweep.campaign import Campaign

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
