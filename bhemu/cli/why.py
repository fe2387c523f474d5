"""`bhemu why` says what is wrong with a run, `bhemu report` draws it on one HTML page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import output
from bhemu.cli.options import launched, program_options, run_options, settings
from bhemu.errors import EXIT_DIFFERS, EXIT_OK, BhemuError, InputError
from bhemu.program import files

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.launch import RunResult
    from bhemu.noc.grid import XY
    from bhemu.program.schema import Program
    from bhemu.why.check import Context
    from bhemu.why.findings import Finding
    from bhemu.why.saved_state import Told


@click.command("why")
@program_options
@click.argument("place", required=False)
@click.option("--local", default="brisc", metavar="CORE", help="whose local memory PLACE lies in")
@run_options
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
        target = launched(settings(values))
        (target.prepare_checks if values["place"] is None else target.keep_history)()
    except InputError as problem:
        if values["place"] is not None:
            raise
        return _refused(values["program"], problem, as_json=values["as_json"])
    ended = target.finish_shown()
    if (text := values["place"]) is not None:
        from bhemu.why.origin.outputs import links_of

        error = ended.error
        links = links_of(context(target, ended), target.tile, values["local"], text)
        shown: dict[str, Any] = {"place": text, "links": [link.as_dict() for link in links]}
        verdict = output.verdict_of(EXIT_OK if error is None else error.exit_code)
        lines = ("  " * link.depth + str(link) for link in links)
        return output.report(
            {"verdict": verdict, **shown}, EXIT_OK, lines, as_json=values["as_json"]
        )
    from bhemu.program import schema
    from bhemu.why import saved_state

    try:
        asked, found = findings(target, ended)
    except InputError as problem:  # an output that is not to be compared with what is expected
        return _refused(values["program"], problem, as_json=values["as_json"])
    told = None
    if target.chosen.program.kind == schema.SAVED_STATE:
        told = saved_state.told(target, found)
    return show(found, values["as_json"], ended.error, told, _nothing(asked), asked.notes)


def _refused(path: str | None, problem: InputError, *, as_json: bool) -> int:
    """Show a program that cannot be launched, as an error and with the line that is wrong."""
    from bhemu.program import toml

    problem.where = None if path is None else toml.place(Path(path), problem)
    if problem.where is None or not as_json:
        raise problem
    from bhemu.why.findings import of_refusal

    return output.show(
        problem, as_json=True, more={"findings": [of_refusal(problem, problem.where).as_dict()]}
    )


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
    if as_json:
        shown: dict[str, Any] = {"findings": [one.as_dict() for one in found]}
        shown |= {} if notes is None else {"notes": [one.as_dict() for one in notes]}
        shown |= told.as_dict() if told else {}
        verdict = output.verdict_of(error.exit_code if error else code, shown["findings"])
        return output.report({"verdict": verdict, **shown}, code, as_json=True)
    for one in found:
        for line in one.lines():
            output.say(line)
    if not found:
        output.say(nothing)
    for line in told.lines() if told else ():
        output.say(line)
    return code


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

    number = "1 pair" if len(notes) == 1 else f"{len(notes)} pairs"
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
        tiles = ", ".join(f"({x},{y})" for x, y in asked.cut[:4])
        text = f"order is followed up to a part of the run alone: {len(asked.cut)} tiles, {tiles}"
        click.echo(text, err=True)
    if asked.skipped:
        names = ",".join(asked.skipped)
        text = f"not asked, all that checks may do is done: bhemu run --check {names}"
        click.echo(text, err=True)


@click.command("report")
@program_options
@click.option(
    "-o", "--output", "path", required=True, metavar="FILE.html", type=click.Path(path_type=Path)
)
@run_options
def report_command(**values: Any) -> int:
    """Run a program and write a report of it, one HTML file.

    It needs no server and no network, and holds what bhemu why finds, with source excerpts, the
    wait-for graph, what cores, threads and the NoC did over time, the tiles, and where outputs
    differ. The program runs twice: once for the findings, once to be looked at on the way. Exit
    code 0 when nothing is wrong, else 1.
    """
    chosen = settings(values)
    files.check_writable(values["path"], "report", chosen.program.files())
    target = launched(chosen)
    target.prepare_checks()
    ended = target.finish_shown()
    asked, found = findings(target, ended)
    from bhemu.cli.summary import Target
    from bhemu.pictures.page import page
    from bhemu.pictures.recording import Origin, Recorder, origins
    from bhemu.program import schema
    from bhemu.why.check import outcome
    from bhemu.why.origin.outputs import links_of

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
    data = page(chosen.program.name, seen, recording, ended.error, found, causes)
    files.write_whole(values["path"], lambda file: file.write(data), "report")
    code, shown = EXIT_DIFFERS if found else EXIT_OK, [one.as_dict() for one in found]
    verdict = output.verdict_of(ended.error.exit_code if ended.error else code, shown)
    written = {"verdict": verdict, "report": str(values["path"]), "findings": shown}
    number = f"{len(found)} finding{'' if len(found) == 1 else 's'}"
    line = f"{values['path']}: {number if found else _nothing(asked)}"
    return output.report(written, code, [line], as_json=chosen.as_json)
