"""A look of a core at a word that others change: the load, and what it has executed behind it."""

from dataclasses import dataclass
from typing import Any

from bhemu.riscv.formats import Branch, Register, RegisterImmediate, Shift, Store, Unary, Upper
from bhemu.riscv.isa import decode
from bhemu.why.walk import Instruction

_COMPUTING = (Register, RegisterImmediate, Shift, Unary, Upper)  # from registers to one of them


@dataclass(frozen=True)
class Look:
    """The load, `step`, of a word, and all behind it up to the branch that its value decides."""

    word: int
    step: Instruction
    behind: list[Instruction]

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


def executed(steps: Any, registers: Any, core: int) -> tuple[Instruction, list[Instruction]]:
    """The load and what is behind it, of pcs and words that an observed core has executed.

    registers: before the load.
    """
    regs, found = registers.copy(), []
    for pc, word in steps.tolist():
        found.append(Instruction(0, core, pc, word, regs.copy()))
        cls: Any = decode(word)
        if len(found) > 1 and issubclass(cls, _COMPUTING) and (rd := word >> 7 & 31):
            regs[rd] = cls.computed(word, pc, regs.tolist()) & 0xFFFFFFFF
    return found[0], found[1:]


def _uses(cls: Any, word: int) -> set[int]:
    """The registers that an instruction computes from."""
    fields = {"a": cls.rs1, "b": cls.rs2}
    return {fields[operand].get(word) for operand in cls.operands}


def _computed(cls: Any, step: Instruction, held: dict[int, int]) -> int:
    """What it makes of its registers, some of which hold something else."""
    a, b = (
        held.get(n, int(step.regs[n])) for n in (cls.rs1.get(step.word), cls.rs2.get(step.word))
    )
    return int(cls.compute(step.word, step.pc, a, b))
