"""`bhemu profile`: where a card would spend the cycles of a program, by the modelled times."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from bhemu.cli import output
from bhemu.cli.options import Settings, program_options, run_options, settings
from bhemu.cli.output import Progress
from bhemu.errors import EXIT_INTERRUPTED, EXIT_OK, InputError
from bhemu.program import files

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.debug.profile import MachineProfile
    from bhemu.debug.spans import Operation
    from bhemu.launch import RunResult
    from bhemu.machine.machine import Chip
    from bhemu.machine.tile import Tile


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
@click.option(
    "--without",
    metavar="AGENT",
    help="what the run takes if all that this unit, core or thread does takes a cycle (default:"
    " the one that works most, but of a session)",
)
@click.option("--html", "page", metavar="FILE.html", help="write a page: flame, timeline, links")
@run_options
def profile_command(**values: Any) -> int:
    """Run a program in modelled time: where do the cycles go?

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
    run = _run(chosen, progress, spans=bool(written))
    ended, found = run.ended, run.profile.as_dict()
    if run.operations:
        found["operations"] = [one.as_dict() for one in run.operations]
    if (host := run.target.machine.loop.host) is not None:
        found["host"] = host.as_dict()
    if written:
        _write(written, run, progress)
    if values["other"] is not None and ended.error is None:
        return _compared(found, values, as_json=chosen.as_json)
    name = run.target.program.name
    gain = _without(run, values["without"], chosen, progress)
    if gain is not None:
        found["without"] = gain._asdict()
    if chosen.as_json:
        report = {"program": name, **found}
        return output.report(report, EXIT_OK, as_json=True, error=ended.error)
    output.say(f"{name}: " + "\n".join(run.profile.lines(values["lines"])))
    if gain is not None:
        output.say(str(gain))
    if host is not None and host.differences:
        output.say(f"{host}; cycles of a wait for that are no figures")
    for number, one in enumerate(run.operations, start=1):
        output.say("\n".join(one.lines(number)))
    if ended.error is not None:
        raise ended.error
    return EXIT_INTERRUPTED if ended.interrupted else EXIT_OK


class _Run(NamedTuple):
    """A program that has run in modelled time; what its host asked for, of a session."""

    target: "Target"
    ended: "RunResult"
    profile: "MachineProfile"
    operations: "list[Operation]"


class _Gain(NamedTuple):
    """What the run would take if all that an agent does took one cycle, of every tile."""

    agent: str
    cycles: int
    gained: int
    source: str  # where the least certain of the agent's figures is from

    def __str__(self) -> str:
        change = f"{-self.gained:+}" if self.gained else "as many"
        head = f"if all that {self.agent} does took one cycle: {self.cycles} cycles, {change}"
        return f"{head} (its figures: {self.source or 'none, it did nothing'})"


def _without(run: _Run, asked: str | None, chosen: Settings, progress: Progress) -> _Gain | None:
    """Run the program once more without the time of `asked`, else of the busiest agent."""
    from bhemu.debug.profile import AGENTS

    if asked is not None and asked not in AGENTS:
        raise InputError(f"--without: no agent is called {asked!r}", hint=", ".join(AGENTS))
    if run.ended.error is not None or run.ended.interrupted:
        return None
    of_session = run.target.machine.loop.host is not None
    busiest = None if of_session else run.profile.busiest
    if (agent := asked or busiest) is None:
        return None
    other = _run(chosen, progress, without=agent)
    if other.ended.error is not None:
        raise other.ended.error
    cycles = other.profile.cycles
    source = run.profile.source_of(agent)
    return _Gain(agent, cycles, run.profile.cycles - cycles, source)


def _run(chosen: Settings, progress: Progress, *, spans: bool = False, without: str = "") -> _Run:
    """Run a program and count where its cycles go; spans: keep what agents do when, too.

    without: the agent whose acts take one cycle each.
    """
    with progress.starting():
        from bhemu.cli.summary import Target
        from bhemu.debug.profile import AGENTS, MachineProfile
        from bhemu.debug.spans import begin
        from bhemu.machine.tile import tile_created
        from bhemu.timing.cycles import AT_ONCE

        chosen.check_save()
        target = Target(chosen, progress)
    machine = target.machine
    if machine.network is not None:
        machine.network.state.noc_counts[0] = 1

    def count(tile: "Tile") -> None:
        tile.state.spent[0] = 1
        if without:
            tile.state.late_slow[AGENTS.index(without)] = AT_ONCE
        if spans:
            begin(tile, max(len(target.tiles), 1))

    begun, found = machine.clock, list["Operation"]()
    for tile in machine.tiles_made():
        count(tile)
    if machine.loop.host is not None:
        # Those of a session, while it runs
        from bhemu.debug.spans import Operations
        from bhemu.hosts.naming import of_environment

        chip, host = cast("Chip", target.machine), target.machine.loop.host
        assert host is not None
        found = Operations(chip, host, of_environment(chip).ran).found
    tile_created.append(count)  # of those that a host or a request makes
    try:
        with progress.running(target):
            ended = target.finish()
    finally:
        tile_created.remove(count)
    if not without:
        target.save()
    return _Run(target, ended, MachineProfile(machine, begun), found)


def _write(written: dict[str, Path], run: _Run, progress: Progress) -> None:
    """Write trace events, a page, or both."""
    from bhemu.pictures.profiled import document, page, profiled

    shown = profiled(run.target.program.name, run.profile, run.target.machine, run.operations)
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
        run = _run(chosen, Progress(chosen.quiet or chosen.as_json))
        if run.ended.error is not None:
            raise run.ended.error
        other = run.profile.as_dict()
        lines = list(differing(now, other, values["lines"]))
    return output.report({"now": now, "other": other}, EXIT_OK, lines, as_json=as_json)
