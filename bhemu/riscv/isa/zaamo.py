"""Zaamo: atomic memory operations on L1 (RISC-V unprivileged ISA, chapter "A").

lr.w and sc.w of Zalrsc are declared by name; the cores do not have them.
"""

from typing import Any

from bhemu.riscv.formats import Atomic
from bhemu.riscv.insn import SIGN

AMOADD_W = Atomic.declare(
    "AMOADD_W", "Add rs2.", lambda old, b: (old + b) & 0xFFFFFFFF, funct5=0x00
)
AMOSWAP_W = Atomic.declare("AMOSWAP_W", "Write rs2.", lambda old, b: b, funct5=0x01)


class LR_W(Atomic, funct5=0x02, rs2=0):
    """Load reserved: not on these cores."""

    text = "rd,(rs1)"
    note = "Zalrsc: not on these cores"


SC_W = Atomic.declare(
    "SC_W", "Store conditional: not on these cores.", funct5=0x03, note="Zalrsc: not on these cores"
)
AMOXOR_W = Atomic.declare("AMOXOR_W", "Exclusive or with rs2.", lambda old, b: old ^ b, funct5=0x04)
AMOOR_W = Atomic.declare("AMOOR_W", "Or with rs2.", lambda old, b: old | b, funct5=0x08)
AMOAND_W = Atomic.declare("AMOAND_W", "And with rs2.", lambda old, b: old & b, funct5=0x0C)


class AMOMIN_W(Atomic, funct5=0x10):
    """The smaller, both signed."""

    def execute(old: Any, b: Any) -> Any:
        return old if old ^ SIGN < b ^ SIGN else b


class AMOMAX_W(Atomic, funct5=0x14):
    """The larger, both signed."""

    def execute(old: Any, b: Any) -> Any:
        return b if old ^ SIGN < b ^ SIGN else old


AMOMINU_W = Atomic.declare(
    "AMOMINU_W", "The smaller.", lambda old, b: old if old < b else b, funct5=0x18
)
AMOMAXU_W = Atomic.declare(
    "AMOMAXU_W", "The larger.", lambda old, b: b if old < b else old, funct5=0x1C
)
