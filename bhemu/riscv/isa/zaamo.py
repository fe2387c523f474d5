"""Zaamo: atomic memory operations on L1 (RISC-V unprivileged ISA, chapter "A").

lr.w and sc.w of Zalrsc are declared by name; the cores do not have them.
"""

from typing import Any

from bhemu.riscv.formats import Atomic
from bhemu.riscv.insn import SIGN


class AMOADD_W(Atomic, funct5=0x00):
    """Add rs2."""

    def execute(old: Any, b: Any) -> Any:
        return (old + b) & 0xFFFFFFFF


class AMOSWAP_W(Atomic, funct5=0x01):
    """Write rs2."""

    def execute(old: Any, b: Any) -> Any:
        return b


class LR_W(Atomic, funct5=0x02, rs2=0):
    """Load reserved: not on these cores."""

    text = "rd,(rs1)"
    note = "Zalrsc: not on these cores"


class SC_W(Atomic, funct5=0x03):
    """Store conditional: not on these cores."""

    note = "Zalrsc: not on these cores"


class AMOXOR_W(Atomic, funct5=0x04):
    """Exclusive or with rs2."""

    def execute(old: Any, b: Any) -> Any:
        return old ^ b


class AMOOR_W(Atomic, funct5=0x08):
    """Or with rs2."""

    def execute(old: Any, b: Any) -> Any:
        return old | b


class AMOAND_W(Atomic, funct5=0x0C):
    """And with rs2."""

    def execute(old: Any, b: Any) -> Any:
        return old & b


class AMOMIN_W(Atomic, funct5=0x10):
    """The smaller, both signed."""

    def execute(old: Any, b: Any) -> Any:
        return old if old ^ SIGN < b ^ SIGN else b


class AMOMAX_W(Atomic, funct5=0x14):
    """The larger, both signed."""

    def execute(old: Any, b: Any) -> Any:
        return b if old ^ SIGN < b ^ SIGN else old


class AMOMINU_W(Atomic, funct5=0x18):
    """The smaller."""

    def execute(old: Any, b: Any) -> Any:
        return old if old < b else b


class AMOMAXU_W(Atomic, funct5=0x1C):
    """The larger."""

    def execute(old: Any, b: Any) -> Any:
        return b if old < b else old
