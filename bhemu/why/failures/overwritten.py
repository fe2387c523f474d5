"""A hang in which a word of L1 has held what is waited for, and was overwritten."""

from collections.abc import Iterator
from typing import Any

from bhemu.errors import BhemuError, InputError, NoProgress
from bhemu.machine.tile import Tile
from bhemu.machine.watching import spans
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.isa import decode
from bhemu.why.causes.chain import Chain
from bhemu.why.findings import Finding, in_words, place
from bhemu.why.likelihood import likely
from bhemu.why.ordering.recorder import comparison
from bhemu.why.repair.waits import Waits, waits_of


def _goes_on(tile: Tile, waits: Waits, poller: int, address: int, values: tuple[int, int]) -> bool:
    """Whether a core's wait ends by neither of two values, as its branch compares them."""
    for core, at, pc in waits.loads:
        compared = comparison(tile, pc)
        if (core, at) != (poller, address):
            continue
        if compared is None:
            return values[1] == values[0] + 1  # it counts, and what is left of that is waited for
        branch, other = compared
        word = int(tile.state.l1.view("<u4")[branch >> 2])
        cls: Any = decode(word)
        held = int(tile.core[CORE_NAMES[poller]].regs[other]) if other else 0
        first = cls.rs2.get(word) == other
        pairs = [(one, held) if first else (held, one) for one in values]
        if len({bool(cls.execute(*pair)) for pair in pairs}) == 1:
            return True
    return False


def overwritten(tile: Tile, error: BhemuError | None) -> Iterator[Finding]:
    """Who overwrote it; `tile` stands in the hang, with its history."""
    if not isinstance(error, NoProgress) or tile.loop.observer is None:
        return
    waits = waits_of(error, tile)
    hang = tile.clock
    for poller, address, values in tuple(waits.wanted):
        name = f"{address:#x}:4"
        try:
            last = Chain(tile).last_change(name, spans(tile, "brisc", name))
            clock = tile.clock
        except InputError:
            continue
        finally:
            tile.history.to(hang)
        if last is None or last.before not in values or not last.before:
            continue
        if poller >= 0 and last.where.core == CORE_NAMES[poller]:
            continue  # it has seen what it waited for, and waits for the next
        if _goes_on(tile, waits, poller, address, (last.before, last.after)):
            continue
        waiter = "the program" if poller < 0 else CORE_NAMES[poller]
        text = (
            f"L1 {address:#x} held {last.before:#x}, which {waiter} waits for, until"
            f" {last.where.core} overwrote it with {last.after:#x}"
        )
        who = place(last.where, clock, tile)
        unit = last.where.thread is not None  # then its address is wrong, which others have set
        yield Finding("hang", "error", text, who, {"place": f"L1 {address:#x}"},
                      (f"the last change of it: {in_words(who)}",),
                      "leave the word to the core that it belongs to",
                      likely("other" if unit else "overwritten"))  # fmt: skip
