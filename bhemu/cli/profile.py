"""`bhemu profile`: where a card would spend the cycles of a program, by the modelled times."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import output
from bhemu.cli.options import Settings, program_options, run_options, settings
from bhemu.cli.output import Progress
from bhemu.errors import EXIT_INTERRUPTED, EXIT_OK, InputError
from bhemu.program import files

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.debug.profile import ChipProfile, Profile


@click.command("profile")
@program_options
@click.option(
    "--lines", default=15, type=click.IntRange(0, 10_000), help="how many waits are shown"
)
@click.option(
    "--diff",
    "other",
    metavar="OTHER",
    help="compare with another program, or with what --json wrote: cycles by source line",
)
@click.option(
    "--perfetto",
    metavar="FILE.json",
    help="write Chrome trace events for ui.perfetto.dev: spans, counters, arrows",
)
@click.option("--html", "page", metavar="FILE.html", help="write a page: flame, timeline, links")
@run_options
def profile_command(**values: Any) -> int:
    """Run a program in modelled time and show where the cycles go.

    For each core, thread and unit: the cycles in which it works, and what it waits for most; then
    the longest waits by source line; of a chip also the transfers. docs/timing.md has the figures,
    their sources and the error against cards. A run that does not end as the program says is an
    error, as of `bhemu run`.
    """
    if values["late"] is not None or values["timing"] == "off":
        raise InputError("profile runs with modelled times: leave --late and --timing away")
    values["timing"] = "model"
    chosen = settings(values)
    written = {name: Path(values[name]) for name in ("perfetto", "page") if values[name]}
    for path in written.values():
        files.check_writable(path, "profile", chosen.program.files())
    progress = Progress(chosen.quiet or chosen.as_json)
    target, begun = _launched(chosen, progress, spans=bool(written))
    with progress.running(target):
        ended = target.finish()
    target.save()
    found = _profiled(target, begun)
    if written:
        _write(written, target, found, progress)
    if values["other"] is not None and ended.error is None:
        return _compared(found.as_dict(), values, as_json=chosen.as_json)
    if chosen.as_json:
        return output.report(
            {"program": target.program.name, **found.as_dict()},
            EXIT_OK,
            as_json=True,
            error=ended.error,
        )
    output.say(f"{target.program.name}: " + "\n".join(found.lines(values["lines"])))
    if ended.error is not None:
        raise ended.error
    return EXIT_INTERRUPTED if ended.interrupted else EXIT_OK


def _launched(chosen: Settings, progress: Progress, *, spans: bool) -> "tuple[Target, int]":
    """The program on its machine, whose cycles are counted from now on; its clock.

    spans: keep what its agents do when, too.
    """
    with progress.starting():
        from bhemu.cli.summary import Target

        chosen.check_save()
        target = Target(chosen, progress)
        for tile in target.tiles:
            tile.state.spent[0] = 1
        if target.machine.network is not None:
            target.machine.network.state.noc_counts[0] = 1
        if spans:
            from bhemu.debug.spans import begin

            begin(target.tiles)
    return target, target.machine.clock


def _profiled(target: "Target", begun: int) -> "Profile | ChipProfile":
    from bhemu.debug.profile import ChipProfile, Profile
    from bhemu.machine.tile import Tile

    machine = target.machine
    return Profile(target.tile) if isinstance(machine, Tile) else ChipProfile(machine, begun)


def _write(
    written: dict[str, Path],
    target: "Target",
    found: "Profile | ChipProfile",
    progress: Progress,
) -> None:
    """Write trace events, a page, or both."""
    from bhemu.pictures.profiled import document, page, profiled

    shown = profiled(target.program.name, found, target.machine)
    if path := written.get("perfetto"):
        data = json.dumps(document(shown), separators=(",", ":")).encode()
        files.write_whole(path, lambda file: file.write(data), "profile")
    if path := written.get("page"):
        made = page(shown)
        files.write_whole(path, lambda file: file.write(made), "profile")
    progress.say(f"written: {', '.join(map(str, written.values()))}")


def _compared(now: dict[str, Any], values: dict[str, Any], *, as_json: bool) -> int:
    """Show what differs from another profile; exit code 0."""
    from bhemu.debug.profile import differing

    path = Path(values["other"])
    if path.suffix == ".json":
        try:
            other = json.loads(files.read_bytes(path, "COVERAGE_BYTES"))
            lines = list(differing(now, other, values["lines"]))
        except (ValueError, LookupError, TypeError) as problem:
            hint = "bhemu profile PROGRAM --json writes one"
            raise InputError(f"{path}: no profile: {problem!r}", hint=hint) from problem
    else:
        chosen = settings({**values, "program": values["other"], "save": None})
        progress = Progress(chosen.quiet or chosen.as_json)
        target, begun = _launched(chosen, progress, spans=False)
        with progress.running(target):
            ended = target.finish()
        if ended.error is not None:
            raise ended.error
        other = _profiled(target, begun).as_dict()
        lines = list(differing(now, other, values["lines"]))
    if as_json:
        output.say(json.dumps({"now": now, "other": other}, indent=2))
    else:
        output.say("\n".join(lines))
    return EXIT_OK
