"""What is wrong with a run: `bhemu why`, `report`, `numerics`; `diff`, the same run on ttsim."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bhemu.cli import options, output
from bhemu.errors import EXIT_DIFFERS, EXIT_OK, BhemuError, InputError
from bhemu.program import files
from bhemu.program.options import REFERENCES
from bhemu.text import counted

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.debug.numerics import TileError
    from bhemu.launch import RunResult
    from bhemu.noc.grid import XY
    from bhemu.oracle.libttsim import Difference, Library
    from bhemu.program.schema import OutputSpec, Program
    from bhemu.sweeps.api import Question
    from bhemu.why.chain import Link
    from bhemu.why.check import Context
    from bhemu.why.findings import Finding
    from bhemu.why.question import Told


@click.command("why")
@options.program_options
@click.argument("place", required=False)
@click.option("--local", default="brisc", metavar="CORE", help="whose local memory PLACE lies in")
@options.run_options
def why_command(**values: Any) -> int:
    """Run a program and tell what is wrong, or what made PLACE.

    PLACE is an element of an output (y[3,5]), an address or symbol with a length (0x20000:4), a
    Config field, or a part of the state (sem:1, gpr:0:5, dst:12); of a chip that of --tile, whose
    clock is shown. Each line is a cause of the one above it that stands further left: the last
    change of a place, and the agent and line that made it.
    Without a PLACE: the error or hang that ended the run, the first wrong element of each output,
    and what the checks find that fit (docs/why.md lists them; bhemu run --check runs any of them).
    Of a saved state, which has no past: the error or hang, and what stands in the state.
    Exit code 0 when nothing is wrong, 1 when something is; with a PLACE always 0. A program that
    cannot be launched ends with exit code 2, and with the line of PROGRAM.toml that is wrong.
    """
    try:
        return _why(values)
    except InputError as problem:  # a program that cannot be launched, an output not to be compared
        if values["place"] is not None:
            raise
        from bhemu.why.findings import of_refusal

        where = problem.where = options.place(values, problem)
        if where is None or not values["as_json"]:
            raise
        shown = [of_refusal(problem, where).as_dict()]
        return output.show(problem, as_json=True, more={"findings": shown})


def _why(values: dict[str, Any]) -> int:
    target = options.launched(options.settings(values))
    from bhemu.cli import summary

    (target.prepare_checks if values["place"] is None else target.keep_history)()
    ended = target.finish_shown()
    if ended.interrupted:
        return summary.interrupted(target, ended)
    if (text := values["place"]) is not None:
        from bhemu.why.origin import links_of

        with target.progress.looking():
            links = links_of(context(target, ended), target.tile, values["local"], text)
        verdict = output.verdict_of(EXIT_OK if ended.error is None else ended.error.exit_code)
        shown = {"verdict": verdict, "place": text, "links": [link.as_dict() for link in links]}
        lines = ("  " * link.depth + str(link) for link in links)
        return output.report(shown, EXIT_OK, lines, as_json=values["as_json"])
    from bhemu.program import schema
    from bhemu.why import question

    asked, found = findings(target, ended)
    told = None
    if target.chosen.program.kind == schema.SAVED_STATE:
        told = question.state_told(target, found)
    return show(found, values["as_json"], ended.error, told, _nothing(asked), asked.notes)


def context(target: "Target", ended: "RunResult") -> "Context":
    """What checks of this run work on."""
    from bhemu.hosts.naming import of_environment
    from bhemu.why import question

    checking = target.progress.checking
    return question.context(target, ended, checking, lambda chip: of_environment(chip).ran)


def show(
    found: "list[Finding]",
    as_json: bool,
    error: BhemuError | None,
    told: "Told | None" = None,
    nothing: str = "",
    notes: "Sequence[Finding] | None" = None,
) -> int:
    """Print findings, and what a saved state tells besides, or `nothing`; the exit code.

    `error`: what ended the run, for the verdict. notes: what JSON has beside the findings.
    """
    code = EXIT_DIFFERS if found else EXIT_OK
    if not as_json:
        lines = [line for one in found for line in one.lines()] if found else [nothing]
        return output.report({}, code, [*lines, *(told.lines() if told else ())], as_json=False)
    shown: dict[str, Any] = {"findings": [one.as_dict() for one in found]}
    shown |= {} if notes is None else {"notes": [one.as_dict() for one in notes]}
    shown |= told.as_dict() if told else {}
    verdict = output.verdict_of(error.exit_code if error else code, shown["findings"])
    return output.report({"verdict": verdict, **shown}, code, as_json=True)


def findings(target: "Target", ended: "RunResult") -> "tuple[Context, list[Finding]]":
    """Everything that is wrong with a run, the likeliest first; what it was asked of."""
    from bhemu.why import question

    def ask(program: "Program") -> "tuple[Context, list[Finding]]":
        on_time = type(target)(replace(target.chosen, program=program), target.progress)
        on_time.prepare_checks()
        run = on_time.finish_shown()
        asked = context(on_time, run)
        with target.progress.looking():
            return asked, question.findings(asked, on_time, run.error)

    if target.tile.state.timed[0]:
        asked, found = question.findings_when_late(target, ended, ask)
    else:
        asked = context(target, ended)
        with target.progress.looking():
            found = question.findings(asked, target, ended.error)
    tell_skipped(asked)
    if asked.notes and found:
        click.echo(pairs(asked.notes, target.program), err=True)
    return asked, found


def pairs(notes: "list[Finding]", program: "Program") -> str:
    """How many unordered accesses no late run has shown to matter, and the command for them."""
    from bhemu.why.witness import SEEN

    number = counted(len(notes), "pair")
    if len(notes) >= SEEN:  # a check shows no more of them
        number = f"{len(notes)} or more pairs"
    text = f"{number} of accesses that nothing orders, not seen to change the result"
    return f"{text}: bhemu check --tool order {program.path or 'PROGRAM'}"


def _nothing(asked: "Context") -> str:
    """What is said of a run of which nothing is known to be wrong, as far as was asked."""
    from bhemu.jit.interpreted import COMPILER
    from bhemu.jit.subset import JIT

    ended = "the run ended as it should, and no output differs"
    if asked.notes:
        return f"{ended}; {pairs(asked.notes, asked.program)}"
    if not JIT:
        return f"{ended}; the order of accesses is followed in compiled code alone: {COMPILER}"
    if asked.skipped or asked.cut:
        return f"{ended}; not all of the checks were asked to their end"
    return "nothing is wrong with this run: it ended, and no output differs"


def tell_skipped(asked: "Context") -> None:
    """Say on stderr, also where little is to be said, which checks were not asked."""
    if asked.cut:
        tiles = f"{len(asked.cut)} tiles, " + ", ".join(f"({x},{y})" for x, y in asked.cut[:4])
        click.echo(f"order is followed up to a part of the run alone: {tiles}", err=True)
    if asked.skipped:
        command = f"bhemu run --check {','.join(asked.skipped)}"
        click.echo(f"not asked, all that checks may do is done: {command}", err=True)


@click.command("report")
@options.program_options
@click.option(
    "-o",
    "--output",
    "path",
    required=True,
    metavar="FILE.html",
    type=options.FilePath(path_type=Path),
)
@options.run_options
def report_command(**values: Any) -> int:
    """Run a program and write a report of it, one HTML file.

    It needs no server and no network, and holds what bhemu why finds, with source excerpts, the
    wait-for graph, what cores, threads and the NoC did over time, the tiles, and where outputs
    differ. The program runs twice: once for the findings, once to be looked at on the way. Exit
    code 0 when nothing is wrong, else 1.
    """
    chosen = options.settings(values)
    files.check_writable(values["path"], "report", chosen.program.files())
    target = options.launched(chosen)
    target.prepare_checks()
    from bhemu.cli import summary
    from bhemu.cli.summary import Target

    ended = target.finish_shown()
    if ended.interrupted:
        return summary.interrupted(target, ended)
    asked, found = findings(target, ended)
    from bhemu.pictures.page import page
    from bhemu.pictures.recording import Origin, Recorder, origins
    from bhemu.program import schema
    from bhemu.why.check import outcome
    from bhemu.why.origin import links_of

    def launch(xy: "XY") -> Target:
        again = Target(replace(chosen, tile=xy), target.progress)
        again.keep_history()
        again.finish()
        return again

    seen = Target(chosen, target.progress)
    recording = Recorder(seen).run()
    causes: list[Origin] = []
    has_past = chosen.program.kind not in (schema.SAVED_STATE, schema.SESSION)
    if ended.error is None and has_past and not seen.tile.state.timed[0]:
        ran = outcome(seen.program, seen.machine, recording.stop, None)
        unasked = context(target, ended)
        with target.progress.looking():
            causes = origins(
                launch, ran.results, lambda name: links_of(unasked, target.tile, "brisc", name)
            )
    target.progress.check_interrupts()
    data = page(chosen.program.name, seen, recording, ended.error, found, causes)
    files.write_whole(values["path"], data, "report")
    code, shown = EXIT_DIFFERS if found else EXIT_OK, [one.as_dict() for one in found]
    verdict = output.verdict_of(ended.error.exit_code if ended.error else code, shown)
    written = {"verdict": verdict, "report": str(values["path"]), "findings": shown}
    line = f"{values['path']}: {counted(len(found), 'finding') if found else _nothing(asked)}"
    return output.report(written, code, [line], as_json=chosen.as_json)


# `bhemu numerics`: how exact outputs are; `bhemu diff`: a program on a user's libttsim.so too.


@click.command("numerics")
@options.program_options
@click.option(
    "--against",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="exact values (float64) of output NAME; default: its expected file (may be repeated)",
)
@click.option(
    "--tiles", type=options.Count(1), default=16, metavar="N", help="how many tiles to show"
)
@options.run_options
def numerics_command(**values: Any) -> int:
    """Run a program and compare its outputs with exact values.

    Shows how far each tile is off. Distances are in units of the last place (ULP) of the output's
    format and include rounding: 0.5 is the best a format can do. When an output holds a NaN or an
    infinity, the program runs again to find where the first one came from: the causes of it that
    bhemu why tells, as far as they are not finite either. Distances do not affect the exit code,
    which is that of run.
    """
    chosen = options.settings(values)
    exact = _exact(chosen.program, values["against"])
    target = options.launched(chosen)
    ended = target.finish_shown()
    target.save()
    if ended.error is not None:
        return output.show(ended.error, as_json=chosen.as_json)
    if ended.interrupted:
        from bhemu.cli import summary

        return summary.interrupted(target, ended)
    outputs = [_measure(target, spec, exact[spec.name]) for spec in chosen.program.outputs]
    target.progress.check_interrupts()
    if chosen.as_json:
        return output.report({"outputs": [one.found for one in outputs]}, EXIT_OK, as_json=True)
    for one in outputs:
        output.say(one.head)
        if one.tiles is not None:
            _table(one.spec, one.tiles, values["tiles"])
        for line in one.first:
            output.say(line)
    return EXIT_OK


def _exact(program: "Program", against: tuple[str, ...]) -> dict[str, Any]:
    """By name of the output what --against gives, else its expected file, None without any."""
    from bhemu.debug.numerics import read_exact
    from bhemu.program.toml import suggestion

    names = [spec.name for spec in program.outputs]
    if not names:
        raise InputError("the program has no output", hint="add [[output]] or --expect")
    files = {spec.name: spec.expect for spec in program.outputs}
    for text in against:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise InputError(f"--against {text}: not NAME=FILE.npy")
        if name not in files:
            hint = suggestion(name, names)
            raise InputError(f"--against {text}: no output is called {name!r}", hint=hint)
        files[name] = Path(path)
    return {
        spec.name: read_exact(file, spec.shape, spec.name) if (file := files[spec.name]) else None
        for spec in program.outputs
    }


class _Measured(NamedTuple):
    """An output: JSON-ready; the error of each tile, None without exact values; in words."""

    spec: "OutputSpec"
    found: dict[str, Any]
    tiles: "list[TileError] | None"
    head: str
    first: list[str]  # of the first NaN or infinity: where it is, its causes


def _measure(target: "Target", spec: "OutputSpec", exact: Any) -> _Measured:
    import numpy as np

    from bhemu.debug import numerics
    from bhemu.program import tensor

    _, data = target.machine.output(spec)
    got, fmt = tensor.decode(data, spec.shape, spec.dtype, spec.layout), tensor.FORMATS[spec.dtype]
    form = {"dtype": spec.dtype, "shape": list(spec.shape), "layout": spec.layout}
    found: dict[str, Any] = {"name": spec.name, **form, "max_ulp": None, "mean_ulp": None}
    count = found["not_finite"] = int((~np.isfinite(tensor.widen(got))).sum())
    first, said, tiles = None, list[str](), None
    if (index := numerics.first_not_finite(got)) is not None:
        links, note = _origin(target, numerics.element_name(spec.name, index))
        where = numerics.place(index, spec.shape, spec.layout)
        said = [f"{count} not finite; the first is {float(got[index])} at {where}"]
        said += [*("  " * link.depth + str(link) for link in links), *([note] if note else [])]
        place = tensor.locate(index, spec.shape, spec.layout)
        first = {"index": list(index), "place": place, "value": str(float(got[index]))}
        first["origin"] = {"links": [link.as_dict() for link in links], "note": note}
    found["first_not_finite"], found["tiles"] = first, None
    told = f"nothing to compare with: --against {spec.name}=FILE.npy gives the exact values"
    if exact is not None:
        tiles = numerics.by_tile(got, exact, fmt, spec.layout)
        most = max((tile.most for tile in tiles), default=0.0)
        mean = found["mean_ulp"] = numerics.mean(numerics.distances(got, exact, fmt))
        found["max_ulp"] = None if most == float("inf") else most
        found["tiles"] = [tile.as_dict() for tile in tiles]
        told = f"{most:.4g} ULP at most, {mean:.4g} on average"
    head = f"{spec.name}  {'x'.join(map(str, spec.shape))} {spec.dtype}  {told}"
    return _Measured(spec, found, tiles, head, said)


def _origin(target: "Target", element: str) -> "tuple[list[Link], str]":
    """The causes of an element, from another run: those that are not finite either; or a note."""
    from bhemu.why.origin import is_special, links_of

    again = type(target)(target.chosen, target.progress)
    again.keep_history()
    asked = context(again, again.finish())
    try:
        links = links_of(asked, again.tile, "brisc", element)
    except InputError as problem:
        return [], problem.message
    return [links[0], *filter(is_special, links[1:])], ""


def _table(spec: "OutputSpec", tiles: "list[TileError]", rows: int) -> None:
    from rich.console import Console
    from rich.table import Table

    from bhemu.debug.numerics import place

    table = Table(box=None, pad_edge=False)
    for name in ("max ULP", "mean", "not finite", "got", "exact"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("at", no_wrap=True)
    for tile in sorted(tiles, key=lambda tile: -tile.most)[:rows]:
        where = place(tile.index, spec.shape, spec.layout)
        cells = [f"{tile.most:.4g}", f"{tile.mean:.4g}", str(tile.infinite or "")]
        table.add_row(*cells, f"{tile.got:.9g}", f"{tile.exact:.9g}", where)
    Console(width=100, highlight=False).print(table)
    if len(tiles) > rows:
        output.say(f"{len(tiles) - rows} more tiles, none worse (--tiles {len(tiles)} shows all)")


@click.command("diff")
@click.argument(
    "program", type=options.FilePath(), required=False, metavar="[CASE.npz | PROGRAM.toml | FOLDER]"
)
@click.option(
    "--ttsim",
    type=options.FilePath(),
    metavar="LIB",
    help="the libttsim.so of Blackhole; default: $BHEMU_TTSIM",
)
@click.option("--random", "unit", metavar="UNIT", help="compare random programs for this unit")
@click.option("--seed", type=options.Count(0), default=0, show_default=True, help="of --random")
@click.option("--first", type=options.Count(0), default=0, show_default=True, help="first index")
@click.option(
    "--count", type=options.Count(1), default=10, show_default=True, help="how many programs"
)
@click.option(
    "--most",
    type=options.Count(1),
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
    type=options.Count(1),
    metavar="N",
    help="processes of --random (default: one per processor); results are the same",
)
@options.all_of(*reversed(options.flags("diff")))
@options.json_option
@options.outside_option
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
    progress = output.Progress(as_json)
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
        from bhemu.oracle.libttsim import DIFFERENT

        code = EXIT_DIFFERS if compared.verdict == DIFFERENT else EXIT_OK
        lines = [f"{compared.name}: {compared.verdict}", *(f"  {line}" for line in compared.lines)]
        return output.report(compared.as_dict(), code, lines, as_json=as_json)
    asked = Question(library.path, reference, unit, seed, range(first, first + count))
    tally = _campaign(library, asked, most, workers, progress)
    code = EXIT_DIFFERS if tally.differences else EXIT_OK
    verdict = "not modelled" if tally.differences else "ok"  # of models, no program
    return output.report(
        {"verdict": verdict, **tally.as_dict()}, code, tally.lines(), as_json=as_json
    )


def _campaign(
    library: "Library", asked: "Question", most: int, workers: int | None, progress: output.Progress
) -> Any:
    """Compare generated programs, in this process or in several: a Tally of random_programs."""
    done = 0

    def status(index: int) -> None:
        nonlocal done
        done += 1
        progress.status(f"{asked.unit} {index + 1} of {asked.indices.stop}")

    def begins() -> str:
        return "" if done else f"{asked.unit}: compiling, 0 of {len(asked.indices)} programs"

    with progress.waiting(begins):
        if workers == 1 or len(asked.indices) == 1:
            from bhemu.oracle import programs
            from bhemu.oracle.libttsim import Judge

            run, judge = programs.load("campaign").run, Judge(library, asked.reference)
            tally = run(judge, *asked[2:], stop_after=most, progress=status)
        else:
            from bhemu.sweeps import api

            tally = api.run(asked, stop_after=most, workers=workers, progress=status)
    progress.status("")
    return tally


def _compare(
    library: "Library",
    reference: str,
    program: str,
    allow_outside: bool,
    of_time: dict[str, int | str],
) -> "Difference":
    from bhemu.oracle import programs
    from bhemu.oracle.libttsim import Judge
    from bhemu.program.schema import load_program

    path = Path(program)
    if path.suffix == ".npz":
        judge = Judge(library, reference, **of_time)
        return programs.compare_case(judge, programs.read_case(path))
    loaded = load_program(path, allow_outside=allow_outside)
    loaded = replace(loaded, run=replace(loaded.run, options={**loaded.run.options, **of_time}))
    compare = programs.compare_program if loaded.is_alone else programs.compare_chip
    return compare(library, loaded)
