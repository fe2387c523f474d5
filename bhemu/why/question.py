"""The whole question, from a program to findings: for `bhemu why` and for Tile.why."""

from collections.abc import Callable
from typing import Any

from bhemu.errors import BhemuError, InputError, Limit, NoProgress
from bhemu.launch.session import Launched, RunResult
from bhemu.machine.hang.explore import livelock
from bhemu.machine.hang.graph import no_progress
from bhemu.machine.tile import Tile
from bhemu.program import schema
from bhemu.program.coordinates import XY
from bhemu.program.outputs import OutputResult
from bhemu.why import checks, saved_state
from bhemu.why import findings as explained
from bhemu.why.check import Context, outcome, unsaved
from bhemu.why.failures.arguments import overwritten_arguments
from bhemu.why.failures.bad_addresses import overwritten_address
from bhemu.why.failures.code_written import code_written
from bhemu.why.failures.counts import unreached
from bhemu.why.failures.ended_cores import ended_early, unread
from bhemu.why.failures.hand_over import apart, with_hand_over
from bhemu.why.failures.left_pages import left_pages
from bhemu.why.failures.limits import too_short
from bhemu.why.failures.overwritten import overwritten
from bhemu.why.failures.set_fields import setter
from bhemu.why.failures.unsent import unsent
from bhemu.why.findings import Finding, chain, followed, of_error, of_one_hang, of_output, place
from bhemu.why.kernel_lines import of_kernels
from bhemu.why.network import requests
from bhemu.why.outputs import misplaced, neighbours

_FOLLOWED = 2  # wrong outputs in L1 of a chip, each of which takes one more run
_BUDGET = 20_000  # instructions that are followed to prove a livelock


_TIMED = (
    "why and the checks follow runs in which words are complete at the gate: no late, no timing"
)


def context(
    target: Launched, ended: RunResult, say: Callable[[str], None] = lambda _: None
) -> Context:
    """What checks of a run work on; InputError for one with late words or modelled times."""
    if target.tile.state.timed[0]:
        raise InputError(_TIMED, hint="bhemu run --late SEED says whether the outputs hold")
    program = unsaved(target.program)
    machine = target.machine
    quantum = int(target.tile.state.quantum[0])
    seen = outcome(program, machine, ended.stop, _proved(target, ended))
    return Context(program, seen, quantum, say)


def _proved(target: Launched, ended: RunResult) -> BhemuError | None:
    """The error of a run; of one that came to its limit the hang that it was in by then."""
    if target.program.is_alone and isinstance(ended.error, Limit):
        if loops := livelock(target.tile, _BUDGET):
            return no_progress(target.tile, loops)
    return ended.error


def findings(asked: Context, target: Launched, error: BhemuError | None) -> list[Finding]:
    """Everything that is wrong with a run, in the order of the classes."""
    tile = target.tile if target.program.is_alone else None
    if isinstance(error, Limit):
        error = asked.symptom.error
    symptom = [] if error is None else [of_error(error, target.clock, tile)]
    if error is not None and error.where is not None:
        asked.touched.append((error.where, target.clock))
    if isinstance(error, NoProgress):
        symptom = [of_one_hang(symptom[0], _of_hang(asked, tile, error))]
    found = [*too_short(asked, error), *overwritten_arguments(asked)]
    if tile is not None:  # which is taken back in time by what comes now
        found += [*overwritten_address(asked, error), *setter(asked, error)]
        found += code_written(tile, asked.program)
    if error is None:
        for number, wrong in enumerate(asked.symptom.wrong):
            seen = tile or (_with_history(asked, wrong) if number < _FOLLOWED else None)
            symptom += _of_output(asked, seen, wrong)
        found += requests.left_out(asked)
    if asked.program.kind == schema.SAVED_STATE:  # which has no past that a check could look at
        found += saved_state.stacks(target)
    else:
        found = checks.findings(asked, checks.fitting(asked), found)
    if isinstance(error, NoProgress):
        symptom, found = [with_hand_over(symptom[0], error, found)], apart(error, found)
    return of_kernels(asked, checks.ordered(explained.of_formats([*symptom, *found])))


def _of_hang(asked: Context, tile: Tile | None, error: NoProgress) -> list[Finding]:
    """What is known of a hang besides who waits for whom."""
    found = [*ended_early(asked, error), *unread(asked, error)]
    found += [] if tile is None else overwritten(tile, error)
    return [*found, *unreached(asked, error), *unsent(asked, error), *left_pages(asked, error)]


def _of_output(asked: Context, tile: Tile | None, result: OutputResult) -> list[Finding]:
    """A wrong output, with who wrote it, or wrote elsewhere instead."""
    links = [] if tile is None else followed(tile, asked.program, result)
    asked.touched += [(link.where, link.clock) for link in links if link.where is not None]
    first, *others = of_output(tile, asked.program, result, links)
    first = neighbours.named(asked, tile, result, misplaced.named(asked, result, first))
    return [requests.named(asked, result, first), *others]


def _with_history(asked: Context, result: OutputResult) -> Tile | None:
    """The tile of a chip in whose L1 an output lies, behind one more run; None for one in DRAM."""
    if result.spec.tile is None:
        return None
    chip = asked.launch(engine="compiled", **asked.alone)
    tile: Tile = chip.tile[result.spec.tile]
    tile.keep_history()
    asked.finish(chip, limit=asked.most)
    return tile


def of_program(
    program: Any, where: str | None, core: str, quantum: int, xy: XY | None = None
) -> list[Finding]:
    """Run a program once more and tell what is wrong, or what made the place `where` what it is.

    xy: the tile on which `where` lies.
    """
    target = Launched(unsaved(program), xy, quantum=quantum)
    if target.program.is_alone or where is not None:
        target.keep_history()
    ended = target.finish()
    if where is None:
        return findings(context(target, ended), target, ended.error)
    links = chain(target.tile, target.program, core, where)
    made = next((link for link in links if link.where is not None), None)
    culprit = {} if made is None else place(made.where, made.clock, target.tile)
    evidence = tuple("  " * link.depth + str(link) for link in links[1:])
    return [Finding("place", "note", str(links[0]), culprit, {"place": where}, evidence, "")]
