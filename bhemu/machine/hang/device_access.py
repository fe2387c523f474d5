"""What a core's device access would give or change while nothing else moves, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bhemu.devices.bus.address_map import INERT, find
from bhemu.devices.bus.window import Effect, Window

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile


class Escape(Exception):  # noqa: N818 - an answer, not an error
    """The core may do something that others see, or that is not followed."""


class Waits(Exception):  # noqa: N818 - an answer, not an error
    """The access would wait for `condition`, a number of tensix.status.CONDITIONS."""

    def __init__(self, condition: int) -> None:
        super().__init__(condition)
        self.condition = condition


def is_clock(address: int) -> bool:
    """True for the registers that count time."""
    window = find(address)
    register = None if window is None else window.register(address - window.low)
    return register is not None and register.effect is Effect.CLOCK


def _effect(tile: Any, core: int, address: int, store: bool) -> tuple[Window, Effect]:
    """The window of an access that would be done, and what it does; raises Waits or Escape."""
    window = find(address)
    if window is None or window.refuses(store, core):
        raise Escape
    effect = window.effect(store, tile.state, core, address - window.low)
    if not isinstance(effect, Effect):
        raise Waits(effect)
    if effect is Effect.CHANGES:
        raise Escape
    return window, effect


def load(tile: Tile, core: int, address: int, size: int) -> int | None:
    """Value of a device load, None when it varies by itself; raises Waits or Escape."""
    _, effect = _effect(tile, core, address, False)
    if effect in (Effect.VARIES, Effect.CLOCK):
        return None
    s = tile.state
    if address & ~3 in INERT:  # a look must not count as an access
        value = int(s.inert[list(INERT).index(address & ~3)])
        return value >> 8 * (address & 3) & ((1 << 8 * size) - 1)
    before = int(s.core_address[core]), s.detail.copy(), int(s.loaded[0])
    status, value = tile.backend.read(address, size, core)
    s.core_address[core], s.detail[:], s.loaded[0] = before
    if status < 0:
        raise Escape
    if status > 0:
        raise Waits(status)
    return int(value)


def store(tile: Tile, core: int, address: int, value: int | None) -> None:
    """Nothing, for a device store that would change nothing; else raises Waits or Escape."""
    _, effect = _effect(tile, core, address, True)
    if effect is Effect.NONE:
        return
    if value is None or load(tile, core, address, 4) != value:
        raise Escape
