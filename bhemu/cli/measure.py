"""What a run takes and executes: `bhemu profile` by the modelled times, `bhemu coverage`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from bhemu.cli import options, output
from bhemu.cli.options import Settings
from bhemu.cli.output import Progress
from bhemu.errors import EXIT_INTERRUPTED, EXIT_OK, BhemuError, InputError
from bhemu.program import files
from bhemu.program.options import ENGINES, given_in
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.debug.line_coverage import LineCoverage, Source
    from bhemu.debug.profile import MachineProfile
    from bhemu.debug.spans import Operation
    from bhemu.launch import RunResult
    from bhemu.machine.machine import Chip
    from bhemu.machine.tile import Tile
    from bhemu.program.schema import Program


@click.command("profile")
@options.program_options
@click.option("--lines", default=15, type=options.Count(0, 10_000), help="how many waits are shown")
@click.option(
    "--diff",
    "other",
    type=options.FilePath(),
    metavar="OTHER",
    help="compare with another program, or with what --json wrote: cycles by source line",
)
@click.option(
    "--perfetto",
    type=options.FilePath(),
    metavar="FILE.json",
    help="write Chrome trace events for ui.perfetto.dev: spans, counters, arrows",
)
@click.option(
    "--without",
    metavar="AGENT",
    help="what the run takes if all that this unit, core or thread does takes a cycle (default:"
    " the one that works most, but of a session)",
)
@click.option(
    "--html",
    "page",
    type=options.FilePath(),
    metavar="FILE.html",
    help="write a page: flame, timeline, links",
)
@options.run_options
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
    chosen = options.settings(values)
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
    if values["other"] is not None and ended.error is None and not ended.interrupted:
        return _compared(found, values, as_json=chosen.as_json)
    name = run.target.program.name
    if (gain := _without(run, values["without"], chosen, progress)) is not None:
        found["without"] = gain._asdict()
    code = EXIT_INTERRUPTED if progress.interrupted else EXIT_OK
    if chosen.as_json:
        report = {"program": name, **found}
        return output.report(report, code, as_json=True, error=ended.error)
    output.say(f"{name}: " + "\n".join(run.profile.lines(values["lines"])))
    if gain is not None:
        output.say(str(gain))
    if host is not None and host.differences:
        output.say(f"{host}; cycles of a wait for that are no figures")
    for number, one in enumerate(run.operations, start=1):
        output.say("\n".join(one.lines(number)))
    if ended.error is not None:
        raise ended.error
    return code


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
    if other.ended.interrupted:
        return None
    if other.ended.error is not None:
        raise other.ended.error
    cycles = other.profile.cycles
    return _Gain(agent, cycles, run.profile.cycles - cycles, run.profile.source_of(agent))


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
    if (host := machine.loop.host) is not None:
        # Those of a session, while it runs
        from bhemu.debug.spans import Operations
        from bhemu.hosts.naming import of_environment

        chip = cast("Chip", machine)
        found = Operations(chip, host, of_environment(chip).ran).found
    tile_created.append(count)  # of those that a host or a request makes
    try:
        ended = target.finish_shown()
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
        files.write_whole(path, data, "profile")
    if path := written.get("page"):
        files.write_whole(path, page(shown), "profile")
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
        chosen = options.settings({**values, "program": values["other"], "save": None})
        run = _run(chosen, Progress(chosen.quiet or chosen.as_json))
        if run.ended.interrupted:
            raise KeyboardInterrupt
        if run.ended.error is not None:
            raise run.ended.error
        other = run.profile.as_dict()
        lines = list(differing(now, other, values["lines"]))
    return output.report({"now": now, "other": other}, EXIT_OK, lines, as_json=as_json)


# `bhemu coverage`: which lines of kernels programs execute, or which instructions by mode.

_SECONDS = 600.0
_WHOSE = {"library": "all of bhemu's C library", "own": "all but bhemu's C library"}


@click.command("coverage")
@click.argument("programs", type=options.FilePath(), nargs=-1, required=True, metavar="PROGRAM...")
@click.option(
    "-o",
    "--lcov",
    "lcov",
    type=options.FilePath(),
    metavar="FILE.info",
    help="write an LCOV tracefile",
)
@click.option(
    "--html",
    "folder",
    type=options.FilePath(),
    metavar="FOLDER",
    help="write a page for each source, and a list",
)
@click.option("--opcodes", is_flag=True, help="show Tensix instructions by mode and format instead")
@options.outside_option
@options.json_option
@options.all_of(*options.flags("flag"))  # of a run, which hold for every program
@click.option("-q", "--quiet", is_flag=True, help="print only what went wrong")
def coverage_command(programs: tuple[str, ...], **values: Any) -> int:
    """Run programs and show which lines and branches of their kernels were executed.

    All cores of all tiles count, and all PROGRAMs, each a PROGRAM.toml or its folder, add up; so do
    sources that several of them share. The counts are exact. genhtml and editors read the file of
    -o. A program that ends with an error counts up to there, and its exit code is the command's.
    Outputs are not compared.

    --opcodes shows which Tensix instructions the programs execute, in which modes and formats; then
    a PROGRAM may also be an .npz case, or the file of a test suite (docs/kernel-coverage.md).
    """
    if values["opcodes"]:
        if values["lcov"] or values["folder"]:
            raise click.UsageError("--opcodes prints rows: leave -o and --html away")
        given = [name for name in given_in("flag") if values[name] is not None]
        if given:
            raise click.UsageError("--opcodes runs programs as they say: leave their options away")
        named = [Path(program) for program in programs]
        show_modes(named, as_json=values["as_json"], allow_outside=values["allow_outside"])
        return EXIT_OK
    return _lines(programs, values)


def _lines(names: Sequence[str], values: dict[str, Any]) -> int:
    """Run all, write what was asked for, print a table; the exit code."""
    from bhemu.program.cli_overrides import with_options
    from bhemu.program.schema import load_program

    outside = values["allow_outside"]
    loaded = [with_options(load_program(one, allow_outside=outside), values) for one in names]
    kept = [file for program in loaded for file in program.files()]
    if values["lcov"]:
        files.check_writable(Path(values["lcov"]), "-o", kept)
    progress = Progress(values["quiet"] or values["as_json"])
    if any(program.run.options.get("engine") == ENGINES[0] for program in loaded):
        progress.say("the compiled engine runs the cores: it counts what they execute")
    with progress.starting():
        from bhemu.debug import line_coverage
        from bhemu.pictures.html import write_pages

    total, told, error = line_coverage.LineCoverage(), list[dict[str, str]](), None
    for program in loaded:
        with line_coverage.watching() as tiles:
            told_as = values["as_json"], values["quiet"]
            target = options.launched(Settings(program, None, *told_as, verbose=False))
            stop, failure = ended = target.finish_shown()
        told.append({"program": program.name, "stop": "error" if stop is None else stop.reason})
        error = error or failure
        for one in tiles:
            total.add(one.coverage())
        if ended.interrupted:
            break
    for path, problem in sorted(total.without.items()):
        progress.say(f"warning: {path}: not counted: {problem}")
    line_coverage.check(total)
    if total.missing:
        progress.say(f"warning: sources that were not found: {', '.join(sorted(total.missing))}")
    if values["lcov"]:
        total.write(Path(values["lcov"]))
    if values["folder"]:
        write_pages(Path(values["folder"]), total, [program.name for program in loaded])
    code = EXIT_INTERRUPTED if ended.interrupted else EXIT_OK
    if values["as_json"]:
        report = {"programs": told, **_report(total)}
        return output.report(report, code, as_json=True, error=error)
    if not values["quiet"]:
        sums = line_coverage.sums
        rows = [(name, sums([source])) for name, source in sorted(total.sources.items())]
        output.say(f"{'lines':>14} {'branches':>14} {'functions':>14}  source")
        parts = _by_owner(total)
        if all(parts.values()):
            rows += [(_WHOSE[part], sums(found)) for part, found in parts.items()]
        else:
            rows.append(("all", sums(total.sources.values())))
        for name, counts in rows:
            cells = (
                f"{counts[f'{kind}_hit']} of {counts[kind]}" if counts[kind] else "-"
                for kind in ("lines", "branches", "functions")
            )
            output.say(f"{' '.join(f'{cell:>14}' for cell in cells)}  {printable(name)}")
    return code if error is None else output.show(error, as_json=False)


def _report(total: "LineCoverage") -> dict[str, Any]:
    """JSON-ready: the sums, and those of each source with the lines that were not executed."""
    from bhemu.debug.line_coverage import sums

    sources = {
        name: {
            **sums([source]),
            "not_executed": sorted(line for line, count in source.lines.items() if not count),
        }
        for name, source in sorted(total.sources.items())
    }
    parts = {name: sums(found) for name, found in _by_owner(total).items()}
    whole = {**sums(total.sources.values()), **parts}
    return {**whole, "sources": sources, "without_lines": total.without}


def _by_owner(total: "LineCoverage") -> "dict[str, list[Source]]":
    """The sources of the programs themselves, and those of bhemu's C library."""
    from bhemu.kernel import LIBRARY

    found: dict[str, list[Source]] = {"library": [], "own": []}
    for name, source in total.sources.items():
        of_library = Path(name).is_relative_to(LIBRARY.resolve())
        found["library" if of_library else "own"].append(source)
    return found


# Tensix instructions by mode and format: of `bhemu explain --coverage` too.


def show_modes(
    runs: Sequence[Path], mnemonic: str | None = None, *, as_json: bool, allow_outside: bool
) -> None:
    """Print the modes that runs use, added up, of one instruction or of all."""
    from bhemu.debug import trace

    measured = [_measured(run, allow_outside) for run in runs]
    wanted = mnemonic and mnemonic.upper()
    rows = trace.merged(row for found, _ in measured for row in found)
    rows = [row for row in rows if wanted in (None, row["mnemonic"])]
    ended = ", ".join(end for _, end in measured)
    if as_json:
        output.report({"ended": ended, "rows": rows}, EXIT_OK, as_json=True)
        return
    for row in rows:
        row = {key: printable(one) if isinstance(one, str) else one for key, one in row.items()}
        fields = [f"{name}={value}" for name, value in row["fields"].items() if value]
        mode = " ".join([*fields, row["formats"]]).strip() or "plain"
        rule = f"  refused: {row['rule']}" if row["rule"] else ""
        output.say(f"{row['mnemonic']:<14} {row['count']:>9}  {mode}{rule}")
    names = {row["mnemonic"] for row in rows if row["count"]}
    counted = f"{len(names)} instructions in {len(rows)} modes"
    output.say(f"{counted}; the run ended: {ended}", err=True)


def _measured(path: Path, allow_outside: bool) -> tuple[list[dict[str, Any]], str]:
    """(rows of debug.coverage, what ended the run) of a program, case or file of a test suite.

    A PROGRAM.toml or folder and an .npz case are run; any other file is what processes with
    $BHEMU_COVERAGE wrote. InputError when it cannot be read.
    """
    from bhemu.debug import trace

    if path.suffix not in (".toml", ".npz") and not files.is_folder(path):
        try:
            rows = trace.read(path)
            if not all(isinstance(row["fields"], dict) for row in rows):
                raise ValueError("fields is no object")
            return rows, "a file of a test suite"
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            hint = "a PROGRAM.toml, its folder, an .npz case, or what $BHEMU_COVERAGE named"
            raise InputError(f"{path}: no coverage: {error}", hint=hint) from error
    from bhemu.launch import launch
    from bhemu.program.schema import load_program

    if path.suffix == ".npz":
        program = _case(path)
    else:
        program = load_program(path, allow_outside=allow_outside)
    with trace.noting() as noted:
        machine = launch(program)
        try:
            ended = machine.run().reason
            if ended == "interrupt":
                raise KeyboardInterrupt
        except BhemuError as problem:
            ended = f"{problem.rule}: {problem.message}"
    return list(trace.rows(noted)), ended


def _case(path: Path) -> "Program":
    """A case: an image of L1 that TRISC0-2 run from fixed addresses until their words are set."""
    from bhemu.oracle.libttsim import DONE, TRISC_STARTS
    from bhemu.program.schema import CoreSpec, Program, RunSpec, Until

    return Program(
        name=path.stem,
        kind="image",
        cores={name: CoreSpec(name, pc=pc) for name, pc in TRISC_STARTS.items()},
        image=path,
        run=RunSpec(until=tuple(Until(*word) for word in DONE), timeout_s=_SECONDS),
    )
