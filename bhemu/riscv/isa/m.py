"""M: multiplication and division (RISC-V unprivileged ISA, chapter "M")."""

from typing import Any

from bhemu.riscv.formats import Register
from bhemu.riscv.insn import MASK, SIGN


class MUL(Register, funct7=0x01, funct3=0):
    """rd = low half of rs1 * rs2."""

    def execute(a: Any, b: Any) -> Any:
        return ((a ^ SIGN) - SIGN) * ((b ^ SIGN) - SIGN) & MASK


class MULH(Register, funct7=0x01, funct3=1):
    """rd = high half of rs1 * rs2, both signed."""

    def execute(a: Any, b: Any) -> Any:
        return ((a ^ SIGN) - SIGN) * ((b ^ SIGN) - SIGN) >> 32 & MASK


class MULHSU(Register, funct7=0x01, funct3=2):
    """rd = high half of rs1 * rs2, rs1 signed."""

    def execute(a: Any, b: Any) -> Any:
        return ((a ^ SIGN) - SIGN) * b >> 32 & MASK


class MULHU(Register, funct7=0x01, funct3=3):
    """rd = high half of rs1 * rs2, in halves of rs2 so that no product exceeds 48 bits."""

    def execute(a: Any, b: Any) -> Any:
        return (a * (b >> 16) + (a * (b & 0xFFFF) >> 16)) >> 16


class DIV(Register, funct7=0x01, funct3=4):
    """rd = rs1 / rs2, both signed, rounded towards zero; -1 for a division by zero."""

    def execute(a: Any, b: Any) -> Any:
        if b == 0:
            return MASK
        quotient = abs((a ^ SIGN) - SIGN) // abs((b ^ SIGN) - SIGN)
        return (-quotient if (a ^ b) & SIGN else quotient) & MASK


class DIVU(Register, funct7=0x01, funct3=5):
    """rd = rs1 / rs2; all ones for a division by zero."""

    def execute(a: Any, b: Any) -> Any:
        return MASK if b == 0 else a // b


class REM(Register, funct7=0x01, funct3=6):
    """rd = remainder of rs1 / rs2, with the sign of rs1; rs1 for a division by zero."""

    def execute(a: Any, b: Any) -> Any:
        if b == 0:
            return a
        remainder = abs((a ^ SIGN) - SIGN) % abs((b ^ SIGN) - SIGN)
        return (-remainder if a & SIGN else remainder) & MASK


class REMU(Register, funct7=0x01, funct3=7):
    """rd = remainder of rs1 / rs2; rs1 for a division by zero."""

    def execute(a: Any, b: Any) -> Any:
        return a if b == 0 else a % b
