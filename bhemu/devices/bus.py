"""Devices that live in Python: the Peripheral protocol and the bus that finds them by address."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from bhemu.errors import Internal


class Peripheral(Protocol):
    """A device window; offsets are bytes from its base, values are unsigned, sizes 1, 2 or 4."""

    def read(self, core: int, offset: int, size: int) -> int:
        """Load; raises a BhemuError for what it does not model."""

    def write(self, core: int, offset: int, size: int, value: int) -> None:
        """Store; raises a BhemuError for what it does not model, before any effect."""

    def reset(self) -> None:
        """Back to power-up."""

    def state(self) -> object:
        """Everything that a snapshot must keep."""

    def load_state(self, state: object) -> None:
        """Take back what `state` gave."""


@dataclass(frozen=True)
class Window:
    """Address range [low, high) of one peripheral."""

    low: int
    high: int
    name: str
    peripheral: Peripheral


class Bus:
    """Address ranges and their peripherals; overlaps are rejected when attached."""

    def __init__(self) -> None:
        self._windows: list[Window] = []

    def attach(self, low: int, size: int, name: str, peripheral: Peripheral) -> None:
        """Give [low, low + size) to `peripheral`."""
        for window in self._windows:
            if low < window.high and window.low < low + size:
                raise Internal(f"window {name} at {low:#x} overlaps {window.name}")
        self._windows.append(Window(low, low + size, name, peripheral))

    def find(self, address: int) -> Window | None:
        """The window that holds `address`."""
        return next((w for w in self._windows if w.low <= address < w.high), None)

    def windows(self) -> Iterable[Window]:
        """All windows, in the order they were attached."""
        return tuple(self._windows)
