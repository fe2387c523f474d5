"""A look of a core at a word that others change, followed step by step."""

from dataclasses import dataclass
from typing import Any

from bhemu.riscv.formats import Branch, IndirectJump, Jump, Pushed, Store
from bhemu.riscv.isa import decode
from bhemu.why.order import looks
from bhemu.why.walk import Instruction

_CLOSE = 12  # instructions between a load and the branch that looks at its value


@dataclass(frozen=True)
class Look(looks.Look):
    """A load of such a word, and what its core has executed behind it."""

    count: int = 0  # values that the word has had by then

    def goes_on(self, step: Instruction) -> bool | None:
        """The next instruction of the core; True: a branch on the value, None: none will come."""
        self.behind.append(step)
        cls: Any = decode(step.word)
        if cls is None or issubclass(cls, Store | Jump | IndirectJump | Pushed):
            return None
        held = self._held(0)
        if issubclass(cls, Branch) and looks._uses(cls, step.word) & set(held):
            return True
        return None if not held or len(self.behind) >= _CLOSE else False
