"""A look of a core at a word that others change: the load, and what it has executed after it."""

from dataclasses import dataclass
from typing import Any

from bhemu.riscv.formats import (
    Branch,
    IndirectJump,
    Jump,
    Pushed,
    Store,
)
from bhemu.riscv.isa import decode
from order_walk.steps import Executed

_CLOSE = 12  # instructions between a load and the branch that looks at its value


@dataclass(frozen=True)
class Look:
    """The load, `step`, of a word, and all after it up to the branch that its value decides."""

    word: int
    step: Executed
    behind: list[Executed]
    count: int = 0  # values that the word has had by then

    def goes_on(self, step: Executed) -> bool | None:
        """The next instruction of the core; True: a branch on the value, None: none will come."""
        self.behind.append(step)
        cls: Any = decode(step.word)
        if cls is None or issubclass(cls, Store | Jump | IndirectJump | Pushed):
            return None
        held = self._held(0)
        if issubclass(cls, Branch) and _uses(cls, step.word) & set(held):
            return True
        return None if not held or len(self.behind) >= _CLOSE else False

    @property
    def ended(self) -> bool:
        """Whether the branch was taken."""
        return bool(_computed(decode(self.behind[-1].word), self.behind[-1], {}))

    def ends(self, value: int) -> bool:
        """Whether the branch would be taken with another value."""
        last = self.behind[-1]
        cls: Any = decode(last.word)
        return bool(_computed(cls, last, self._held(value)))

    def _held(self, value: int) -> dict[int, int]:
        """The registers that depend on the value, before the last instruction."""
        cls: Any = decode(self.step.word)
        access = self.step.access()
        part = 0 if access is None else 8 * (access.address & 3)
        held = {cls.rd.get(self.step.word): cls.loaded(value >> part)}
        for one in self.behind[:-1]:
            cls = decode(one.word)
            if cls is None or issubclass(cls, Branch | Store):
                continue
            rd = cls.rd.get(one.word)
            if _uses(cls, one.word) & set(held):
                held[rd] = _computed(cls, one, held)
            else:
                held.pop(rd, None)
        return held


def _uses(cls: Any, word: int) -> set[int]:
    """The registers that an instruction computes from."""
    fields = {"a": cls.rs1, "b": cls.rs2}
    return {fields[operand].get(word) for operand in cls.operands}


def _computed(cls: Any, step: Executed, held: dict[int, int]) -> int:
    """What it makes of its registers, some of which hold something else."""
    a, b = (
        held.get(n, int(step.regs[n])) for n in (cls.rs1.get(step.word), cls.rs2.get(step.word))
    )
    return int(cls.compute(step.word, step.pc, a, b))
