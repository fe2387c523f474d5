"""Config words that one core leaves set and the core whose unit reads them never sets itself."""

from collections.abc import Iterable

from bhemu.errors import Where
from bhemu.memmap import TENSIX_CFG_BASE, TENSIX_CFG_END
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.why.ordering import effects
from bhemu.why.repair import words
from bhemu.why.repair.edits import Edit, Lines, Site

_REST = 4  # words that a core sets which configures a unit
_OFF = " = 0x0 instead of "  # in the text of an edit


def _word(address: object) -> int | None:
    if isinstance(address, int) and TENSIX_CFG_BASE <= address < TENSIX_CFG_END:
        return (address - TENSIX_CFG_BASE) // 4 % CONFIG_WORDS
    return None


def unset(sites: Iterable[Site], edit: Edit, lines: Lines) -> Where | None:
    """Where the core of the unit sets what is next to a field that an edit of another core clears.

    Whoever has left the field set, to put it back is up to the core that sets the rest there.
    """
    changed = [one for one in sites if (one.core, one.pc) == (edit.core, edit.at)]
    word = _word(changed[0].address) if len(changed) == 1 else None
    if word is None or _OFF not in edit.text:
        return None
    value = changed[0].values[0]
    places = [effects.CONFIG + 32 * word + bit for bit in range(32) if value >> bit & 1]
    threads = {effects.thread_of(place) for place in places}
    thread = threads.pop() if len(threads) == 1 else None
    if thread is None or thread + 1 == edit.core:
        return None
    own = [one for one in sites if one.core == thread + 1]
    if word in {_word(at) for one in own for at in words.places(one)}:
        return None
    rest = [(abs(near - word), one.first, one.pc) for one in own
            if (near := _word(one.address)) is not None]  # fmt: skip
    if len({far for far, _, _ in rest}) < _REST:
        return None
    return lines.where(thread + 1, min(rest)[2])
