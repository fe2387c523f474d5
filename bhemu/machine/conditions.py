"""What breakpoints and watchpoints ask beside their place: a condition, stops to ignore; hits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bhemu import arguments

Condition = Callable[[Any], object]  # asked with the tile


@dataclass
class Asked:
    """Of one breakpoint or watchpoint; `hits` counts the stops at which its condition held."""

    condition: Condition | None = None
    text: str = ""
    ignore: int = 0
    hits: int = 0

    def lines(self) -> list[str]:
        """As `info breakpoints` shows it."""
        shown = [f"  only if {self.text}"] if self.condition is not None else []
        shown += [f"  the next {self.ignore} are ignored"] if self.ignore else []
        return shown + ([f"  hit {self.hits} times"] if self.hits else [])


class Conditions:
    """The wishes by number."""

    def __init__(self) -> None:
        self._asked: dict[int, Asked] = {}
        self.counting = True  # False while the past runs again

    def of(self, number: int) -> Asked:
        """Those of a breakpoint, which are made now if there are none."""
        return self._asked.setdefault(number, Asked())

    def ask(self, number: int, condition: Condition | None, ignore: int, text: str = "") -> None:
        """Stop at `number` only if condition(tile), and not the first `ignore` times."""
        text = text or getattr(condition, "__name__", "")
        ignore = arguments.integer("ignore", ignore)
        self._asked[number] = Asked(condition, text, ignore, self.of(number).hits)

    def forget(self, number: int) -> None:
        """A breakpoint was deleted."""
        self._asked.pop(number, None)

    def stops(self, number: int, tile: object) -> bool:
        """Whether a run ends at breakpoint `number`, which was reached."""
        one = self.of(number)
        if one.condition is not None and not one.condition(tile):
            return False
        if not self.counting:
            return True
        one.hits += 1
        if one.ignore:
            one.ignore -= 1
            return False
        return True
