"""Zba: address generation (RISC-V unprivileged ISA, chapter "B")."""

from typing import Any

from bhemu.riscv.formats import Register
from bhemu.riscv.insn import MASK


class SH1ADD(Register, funct7=0x10, funct3=2):
    """rd = 2 * rs1 + rs2."""

    def execute(a: Any, b: Any) -> Any:
        return ((a << 1) + b) & MASK


class SH2ADD(Register, funct7=0x10, funct3=4):
    """rd = 4 * rs1 + rs2."""

    def execute(a: Any, b: Any) -> Any:
        return ((a << 2) + b) & MASK


class SH3ADD(Register, funct7=0x10, funct3=6):
    """rd = 8 * rs1 + rs2."""

    def execute(a: Any, b: Any) -> Any:
        return ((a << 3) + b) & MASK
