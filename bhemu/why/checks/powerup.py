"""The check "powerup": counters and lanes that a program takes over as power-up leaves them."""

from typing import Any, NamedTuple

import numpy as np

from bhemu.machine.tile import Tile
from bhemu.tensix.state import DTYPE, OFFSET
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, outside_headers, place
from bhemu.why.unwritten.trials import NOTHING, STRIDE, Fill, Trials
from bhemu.why.unwritten.users import Users
from bhemu.why.work import tiles_of

_RWC = (8, 8, 8, 1)  # rows of SrcA, SrcB and Dst, fidelity phase
_OTHERS = "with others than those of power-up, as another kernel may leave them, it is another"


class _Kind(NamedTuple):
    """Members that a program may take over, and which words set them."""

    name: str
    setters: str
    members: tuple[tuple[str, Any], ...]  # and what they hold instead of what power-up leaves


_KINDS = (
    _Kind("the lanes that are on", "SFPENCC", (("cc", 0), ("cc_en", 1))),
    _Kind("the ADC counters", "SETADC, SETADCXY, SETADCXX, SETADCZW", (("adc", 1), ("adc_cr", 1))),
    _Kind("the RWC counters", "SETRWC", (("rwc", _RWC), ("rwc_cr", _RWC))),
)


def _put(tile: Tile) -> None:
    """Other counters and lanes than those of power-up."""
    for kind in _KINDS:
        for name, value in kind.members:
            getattr(tile.state, name)[...] = value


def _fill(kind: _Kind, launched: Any) -> Fill:
    """What a launch from other ones leaves as it was, on every tile."""
    at, values = [NOTHING.at], [NOTHING.values]
    for number, tile in enumerate(tiles_of(launched)):
        for name, value in kind.members:
            member = getattr(tile.state, name)
            other = np.broadcast_to(value, member.shape).reshape(-1)
            held = np.flatnonzero(member.reshape(-1) == other)
            at.append(number * STRIDE + OFFSET[name] + held * DTYPE[name].base.itemsize)
            values.append(other[held].astype(np.uint8))
    return Fill(np.concatenate(at), np.concatenate(values))


def run(context: Context) -> list[Finding]:
    """What decides the end and is as power-up leaves it; named is who uses it first."""
    trials, found = Trials(context), []
    launched = context.launch(engine="compiled", prepare=_put, **context.alone)
    for kind in _KINDS:
        fill = _fill(kind, launched)
        if fill.at.size and trials.differs(fill):
            by = Users(context, trials).reader(fill)
            text = f"{kind.name} decide the result, and nothing has set them"
            text += "" if by is None else f": {by.where}"
            who = {} if by is None else place(outside_headers(by.where), by.clock)
            advice = f"{kind.setters} before this"
            found.append(Finding("powerup", "warning", text, who, {}, (_OTHERS,), advice))
    return found


def applies(seen: Outcome) -> int:
    """To no run, unless it is asked for: a first kernel may rely on power-up."""
    return 0


CHECK = Check(
    "powerup",
    proves="lanes of the vector unit, ADC or RWC counters that nothing has set and that decide an"
    " output or how the program ends; named is the word that uses them first. `why` does not ask"
    " this: a first kernel may rely on power-up, which another one behind it may not",
    misses="Config and ThreadConfig; what decides nothing with the one other value that is tried",
    cost="5 runs, and the observed run of `races` where something decides",
    applies=applies,
    run=run,
)
