"""What ends a run: words of L1, a callable, the clock, seconds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bhemu import arguments, names
from bhemu.errors import InputError
from bhemu.memmap import L1_SIZE
from bhemu.parts import TilePart

UntilWords = Sequence[tuple[int | str, int] | Mapping[str, Any]]
Until = Callable[[Any], bool] | UntilWords | str | None

_MOST_CONDITIONS = 16
_FORMS = 'pairs as in [(0x100, 0xD0E0)], a callable, or "idle"'


@dataclass(frozen=True)
class End:
    """How a program's runs end unless told otherwise.

    words: (L1 address, value) pairs that must all hold, none = until idle; clock: the tile's clock
    at which it is too late; timeout_s: of each run.
    """

    words: tuple[tuple[int, int], ...] = ()
    clock: int | None = None
    timeout_s: float | None = None


def _pair(condition: object) -> tuple[object, object]:
    """(address, value) of one condition, in either form."""
    if isinstance(condition, Mapping):
        if condition.keys() != {"word", "equals"}:
            raise InputError(f"until condition {dict(condition)!r}: wants the keys word and equals")
        return condition["word"], condition["equals"]
    if isinstance(condition, str) or not isinstance(condition, Sequence) or len(condition) != 2:
        raise InputError(f"until condition {condition!r}: wants (address, value)", hint=_FORMS)
    return condition[0], condition[1]


def words(tile: TilePart, until: object) -> list[tuple[int, int]]:
    """(address, value) of each condition."""
    if isinstance(until, str | bytes | Mapping):
        raise InputError(f'until = {until!r}: only "idle", words or a callable are known')
    try:
        conditions = list(until)  # type: ignore[call-overload]
    except TypeError:
        raise InputError(f"until = {until!r} is no end condition", hint=_FORMS) from None
    if len(conditions) > _MOST_CONDITIONS:
        raise InputError(
            f"{len(conditions)} until conditions, at most {_MOST_CONDITIONS} are possible"
        )
    found = []
    for at, equals in map(_pair, conditions):
        address = names.resolve(tile, at)  # type: ignore[arg-type]
        if address & 3 or not 0 <= address < L1_SIZE:
            raise InputError(f"until address {address:#x} is not an aligned word of L1")
        found.append((address, arguments.word("until value", equals)))
    return found


def put(tile: TilePart, until: Until) -> Callable[[Any], bool] | None:
    """Put word conditions into the record; a callable is returned, to be asked once per round."""
    s = tile.state
    s.until_count[0] = 0
    if callable(until):
        return until
    if until is None or until == "idle":
        return None
    conditions = words(tile, until)
    for i, (address, value) in enumerate(conditions):
        s.until_address[i], s.until_value[i] = address, value
    s.until_count[0] = len(conditions)
    return None
