"""`.ttinsn`: a Tensix word in the instruction stream (PushTensixInstruction, Blackhole ISA)."""

from bhemu.riscv.formats import Pushed
from bhemu.riscv.insn import MASK


class TTINSN(Pushed):
    """Push the word rotated right by two; words whose low two bits are not both set."""

    @classmethod
    def pushed(cls, word: int) -> int:
        return word >> 2 | (word & 3) << 30

    @classmethod
    def assemble(cls, word: int) -> int:
        """The word that pushes a Tensix word."""
        return (word << 2 | word >> 30) & MASK
