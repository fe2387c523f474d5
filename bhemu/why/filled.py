"""A value of PROGRAM.toml with which a run is right whatever lies where nobody has written.

A run that is right only while such memory holds zeros may read it because it is told to read too
much: with one change of that value nothing unwritten counts any more.
"""

from bhemu.errors import Where
from bhemu.machine.tile import Tile
from bhemu.why.causes.perturb import Fill
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.likelihood import likely
from bhemu.why.repair.files import FileEdits
from bhemu.why.repair.trial import Trials

_WORK = 1_000_000_000  # as trials count it: some seconds
_NEAR = 1.4  # cost of a change that is not far-fetched


def cured(context: Context, found: list[Finding]) -> list[Finding]:
    """The findings and, of a run that is right by luck, the line of the value that is wrong."""
    fill: Fill | None = context.facts.get("unwritten")
    judged = any(spec.expect for spec in context.program.outputs)
    if fill is None or context.is_chip or not context.symptom.fine or not judged:
        return found

    def filled(tile: Tile) -> None:
        tile.state.buffer[fill.at] = fill.values

    trials = Trials(context.program, context.end, context.quantum, ground=filled)
    if context.program.path is None or trials.is_right():
        return found
    until, likeliest = trials.work.done + _WORK, None
    for one in FileEdits(trials, [], set()).every():
        if trials.work.done > until:
            break
        nearer = likeliest is None or one.cost < likeliest.cost
        if one.cost <= _NEAR and nearer and one.cures():
            likeliest = one
    context.work.done += trials.work.done
    if likeliest is None:
        return found
    where = Where(file="PROGRAM.toml", line=likeliest.line)
    told = "all outputs are as expected then, also with other bytes where nobody has written"
    text = f"PROGRAM.toml:{likeliest.line}: {likeliest.text}"
    kind = likely("nothing unwritten")
    cure = Finding("uninit", "error", text, place(where, None), {}, (told,), likeliest.text, kind)
    return [cure, *found]
