"""The vector unit beside itself in float64, lane by lane, word by word.

Arithmetic, roundings and approximations are followed as functions of real numbers; so are shifts
of integers, and floats whose bits count as integers. What a word adds to them is its own error.
An integer that becomes a float again, an exponent that is taken out of a number or put into it, a
sum that rounds to an integer by a great constant, and which of two numbers a condition selects
count as chosen: they carry no error on. Other words on bits are exact where their operands are,
else their result is not followed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu.debug.shadow import arithmetic, bitwise, movement
from bhemu.debug.shadow.lanes import After, Word

if TYPE_CHECKING:
    from bhemu.debug.shadow.run import Shadow

_Rule = Callable[[Word], After | None]
_RULES: dict[str, _Rule] = {**arithmetic.RULES, **bitwise.RULES, **movement.RULES}
# They change flags alone.
_NO_RESULT = ("SFPNOP", "SFPSETCC", "SFPENCC", "SFPPUSHC", "SFPPOPC", "SFPCOMPC")
_SCHEDULED = "SFPLOADMACRO and what it schedules"


def follow(shadow: "Shadow", cls: Any, t: int, word: int) -> After | None:
    """What a word of the vector unit does to the numbers."""
    if cls.name in _NO_RESULT:
        return None
    if cls.name == "SFPLOADMACRO":
        return scheduled(shadow, t, word)
    rule = _RULES.get(cls.name, Word.by_change)
    return rule(Word(shadow, t, word, cls.name, cls.operands(word)))


def scheduled(shadow: "Shadow", t: int, word: int) -> After:
    """A word while SFPLOADMACRO has instructions scheduled: what changes is not followed."""
    s = shadow.s
    lreg, dst, other = s.lreg.copy(), s.dst.copy(), shadow.other(t)

    def after() -> None:
        other()
        lanes, cells = s.lreg != lreg, s.dst != dst
        shadow.lose_lanes(lanes)
        shadow.lose_rows(np.flatnonzero(cells.any(axis=1)))
        if lanes.any() or cells.any():
            shadow.cannot(_SCHEDULED, t, word)

    return after
