"""A run that ends too early: by a word of [run] until that is only on the way to the last one."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bhemu.errors import Where
from bhemu.machine.tile import Tile
from bhemu.names import resolve
from bhemu.program.schema import Until
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.likelihood import likely
from bhemu.why.repair.edits import NOP
from bhemu.why.repair.toml_lines import TomlLines
from bhemu.why.repair.trial import Trials

ADVICE = "wait for every core before the word that ends the program"  # of who stores it
_NEAR = 0x80  # bytes around it in which other words may be the end


def wrong_end(context: Context, found: list[Finding]) -> list[Finding]:
    """The findings; a store that ends the program too early may be asked for too early.

    It is the end that is wrong where the program goes on from there to another word, at which all
    outputs are right, and never comes to that one without the store.
    """
    program = context.program
    early = [one for one in found if one.advice == ADVICE and one.culprit.get("pc")]
    if not early or context.is_chip or program.path is None or not program.outputs:
        return found
    for number, until in enumerate(program.run.until):
        for other in _words(context, number):
            trials = _ending(context, number, other)
            if trials.is_right() and not _ends_without(trials, early[0].culprit["pc"]):
                return [_finding(context, number, until, other, early[0]), *found]
    return found


def _ending(context: Context, number: int, *instead: Until) -> Trials:
    """The program with another word at the end, or none."""
    words = list(context.program.run.until)
    words[number : number + 1] = instead
    run = replace(context.program.run, until=tuple(words if instead else ()))
    return Trials(replace(context.program, run=run), context.end, context.quantum)


def _words(context: Context, number: int) -> Iterator[Until]:
    """Words next to the end that the program has changed when nothing happens any more."""
    until = context.program.run.until[number]
    trials = _ending(context, number)
    at = resolve(trials.tile, until.word)
    before = trials.begin().state.l1.view("<u4").copy()
    for other in range(max(at - _NEAR, 0), at + _NEAR, 4):
        held = trials.left_at(other)
        if other != at and held and held != np.uint32(before[other >> 2]):
            yield replace(until, word=other, equals=held)


def _ends_without(trials: Trials, pc: int) -> bool:
    """Whether the program comes to its end without the instruction at `pc`."""

    def without(tile: Tile) -> None:
        tile.state.l1.view("<u4")[pc >> 2] = NOP

    return trials.is_right(without)


def _finding(context: Context, number: int, until: Until, other: Until, early: Finding) -> Finding:
    assert context.program.path is not None
    line = TomlLines(context.program.path).inline("run", 0, "until", number)
    at = resolve(context.tile, until.word)
    text = f"the run is to end with word {other.word:#x} = {other.equals:#x}, not {at:#x}"
    told = (
        "with that end all outputs are as expected, and without the store it does not come to it",
        early.text,
    )
    return Finding(
        "repair", "error", f"PROGRAM.toml:{line}: {text}",
        place(Where(file="PROGRAM.toml", line=line), None), early.culprit, told, text,
        likely("limit"),
    )  # fmt: skip
