"""What ends a run, words of L1, a callable, the clock or seconds; and why and where one ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bhemu import arguments
from bhemu.errors import InputError, Where
from bhemu.jit import Later
from bhemu.machine import resolve
from bhemu.machine.watchpoints import Change
from bhemu.memmap import L1_SIZE
from bhemu.noc.grid import XY
from bhemu.tensix.state import State

if TYPE_CHECKING:
    from bhemu.machine import error_text
    from bhemu.machine.rounds import Word
    from bhemu.machine.tile import Tile
else:
    error_text = Later("bhemu.machine.error_text")


@dataclass(frozen=True, repr=False)
class Stop:
    """Why a run ended: "until", "idle", "limit", "timeout", "breakpoint", "watchpoint", "step",
    "interrupt", of a chip "rounds" or "polling" too.

    `where` is the place of the core that stopped (None when no single core did), `clock` the
    tile's clock, `breakpoint` the number of the breakpoint that was reached, `change` what a
    watchpoint saw.
    """

    reason: str
    where: Where | None
    clock: int
    breakpoint: int | None = None
    change: Change | None = None

    def __repr__(self) -> str:
        number = "" if self.breakpoint is None else f" {self.breakpoint}"
        number += "" if self.change is None else f" ({self.change})"
        place = "" if self.where is None else f", {self.where}"
        return f"<Stop {self.reason}{number}, clock {self.clock}{place}>"


def now(s: State) -> int:
    """The clock, what the open turn has retired so far included: a limit counts from here.

    Another thread may ask while the tile runs, and get what is a turn old.
    """
    agent = int(s.agent[0])
    is_open = s.turn_open[0] and agent < len(s.left)
    return int(s.clock[0]) + (int(s.turn_given[0] - s.left[agent]) if is_open else 0)


def stop(tile: Tile, reason: str, number: int | None = None, change: Change | None = None) -> Stop:
    """The stop of a tile that stands now."""
    s = tile.state
    where = None if change is None else change.where
    if reason in ("step", "breakpoint") and s.turn_open[0]:
        where = error_text.where_core(tile, int(s.agent[0]))
    return Stop(reason, where, now(s), number, change)


At = int | str
UntilWord = tuple[At, int] | tuple[XY, At, int] | Mapping[str, Any]
Until = Callable[[Any], bool] | Sequence[UntilWord] | str | None

TILE_WORDS = 16  # of one tile, as its record has room for
_FORMS = (
    "words as in [(0x100, 0xD0E0)], of a tile as in [((1, 2), 0x100, 0xD0E0)], a callable,"
    ' "idle" or "polling"'
)


@dataclass(frozen=True)
class EndCondition:
    """How a program's runs end unless the call says differently.

    words: (tile, L1 address, value) that must all hold, none = until idle; clock: the machine's
    clock at which it is too late; timeout_s: of each run.
    """

    words: tuple[tuple[XY, int, int], ...] = ()
    clock: int | None = None
    timeout_s: float | None = None


def words(until: object, tile_at: Callable[[object], Tile]) -> list[Word]:
    """(tile, address, value) of each condition; at most TILE_WORDS of each tile.

    tile_at: the tile at a coordinate, None: the tile of a condition that names none.
    """
    if isinstance(until, str | bytes | Mapping):
        raise InputError(
            f'until = {until!r}: only "idle", "polling", words or a callable are known', hint=_FORMS
        )
    try:
        conditions = list(until)  # type: ignore[call-overload]
    except TypeError:
        raise InputError(f"until = {until!r} is no end condition", hint=_FORMS) from None
    found: list[Word] = []
    for xy, at, equals in map(_parts, conditions):
        tile = tile_at(xy)
        address = resolve.resolve(tile, at)  # type: ignore[arg-type]
        if address & 3 or not 0 <= address < L1_SIZE:
            raise InputError(f"until address {address:#x} is not an aligned word of L1")
        found.append((tile, address, arguments.word("until value", equals)))
    for count in Counter(tile.number for tile, _, _ in found).values():
        if count > TILE_WORDS:
            raise InputError(f"{count} until conditions, at most {TILE_WORDS} are possible")
    return found


def _parts(condition: object) -> tuple[object, object, object]:
    """(coordinate or None, address, value) of one condition, in any form."""
    if isinstance(condition, Mapping):
        if condition.keys() - {"tile"} != {"word", "equals"}:
            raise InputError(
                f"until condition {dict(condition)!r}: wants the keys word and equals, and may have"
                " tile"
            )
        return condition.get("tile"), condition["word"], condition["equals"]
    parts = condition if isinstance(condition, Sequence) and not isinstance(condition, str) else ()
    if len(parts) not in (2, 3):
        raise InputError(f"until condition {condition!r}: wants (address, value)", hint=_FORMS)
    xy, at, value = (None, *parts)[-3:]
    return xy, at, value
