"""What is wrong with a run in which words, cores and requests take time.

The checks follow runs in which a word is complete at its gate. So the same program runs again
without late and timing. If both end differently, the reason is an unordered access, or the program
reads clocks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bhemu.errors import InputError, Limit
from bhemu.launch import Launched, RunResult
from bhemu.program.schema import Program
from bhemu.text import joined
from bhemu.why.check import Context, Outcome, outcome
from bhemu.why.checks import ordered
from bhemu.why.findings import Finding, of_error

OF_TIME = ("late", "timing")
_NOTHING = (
    "the same program ends differently when nothing is late, and no accesses without an order were"
    " found: it reads a clock or a counter, or they are where the check does not look"
)
_SOME = (
    "the same program ends differently when nothing is late: it reads a clock or a counter, or one"
    " of the pairs of accesses that nothing orders decides it, none of which a late run has shown"
)


def with_times(program: Program, times: Mapping[str, Any]) -> Program:
    """The program with `times` as its options late and timing."""

    def without(options: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in options.items() if name not in OF_TIME}

    chip = program.chip and replace(program.chip, options=without(program.chip.options))
    run = replace(program.run, options={**without(program.run.options), **times})
    return replace(program, run=run, chip=chip)


def findings(
    late: Launched, ended: RunResult, ask: Callable[[Program], tuple[Context, list[Finding]]]
) -> tuple[Context, list[Finding]]:
    """The findings of a run in which words take time, and of the same run without that.

    ask: runs a program and returns its context and findings. Unordered accesses that no late run of
    their own has shown stay notes: what makes this run end differently may be something else.
    """
    if late.machine.loop.host is not None:
        text = "the host of a session waits in each read of a late run, so that none is looked into"
        raise InputError(text, hint="bhemu why SESSION without --late and --timing")
    asked, found = ask(with_times(late.program, {}))
    seen = outcome(asked.program, late.machine, ended.stop, ended.error)
    if seen.same(asked.symptom):
        return asked, found
    cut = any(isinstance(one.error, Limit) for one in (seen, asked.symptom))  # it may only be late
    known = cut or any(one.check == "order" for one in found)
    symptom = [_marked(one, late, asked, known) for one in _symptom(late, seen)]
    return asked, ordered([*symptom, *found])


def _symptom(late: Launched, seen: Outcome) -> Iterator[Finding]:
    if seen.error is not None:
        yield of_error(seen.error, late.clock, late.tile if late.program.is_alone else None)
        return
    for result in seen.wrong:
        text, victim = joined(str(result.report)), {"output": result.spec.name}
        yield Finding("output", "error", text, {}, victim, (), "")


def _marked(found: Finding, late: Launched, asked: Context, known: bool) -> Finding:
    """The finding, with the options of its run, and the end of the run without them.

    known: another finding tells the reason, or it cannot be found.
    """
    given = {name: value for name, value in late.program.options.items() if name in OF_TIME}
    times = " ".join(f"--{name} {value}" for name, value in given.items())
    fine = "as expected" if asked.symptom.fine else f"in {asked.symptom.ending or 'other bytes'}"
    told = f"without {times} the program ends {fine}"
    text = _NOTHING
    if asked.notes:
        program = late.program.path or "PROGRAM"
        text = f"{_SOME} ({len(asked.notes)}): bhemu check --tool order {program}"
    more = () if known else (text,)
    return replace(
        found, text=f"with {times}: {found.text}", evidence=(*found.evidence, told, *more)
    )
