"""Zba and Zbb: addresses, basic bit manipulation (RISC-V unprivileged ISA, chapter "B")."""

from typing import Any

from bhemu.riscv.formats import Register, Shift, Unary
from bhemu.riscv.insn import MASK, SIGN

SH1ADD = Register.declare(
    "SH1ADD", "rd = 2 * rs1 + rs2.", lambda a, b: ((a << 1) + b) & MASK, funct7=0x10, funct3=2
)
SH2ADD = Register.declare(
    "SH2ADD", "rd = 4 * rs1 + rs2.", lambda a, b: ((a << 2) + b) & MASK, funct7=0x10, funct3=4
)
SH3ADD = Register.declare(
    "SH3ADD", "rd = 8 * rs1 + rs2.", lambda a, b: ((a << 3) + b) & MASK, funct7=0x10, funct3=6
)
ANDN = Register.declare(
    "ANDN", "rd = rs1 & ~rs2.", lambda a, b: a & (b ^ MASK), funct7=0x20, funct3=7
)
ORN = Register.declare(
    "ORN", "rd = rs1 | ~rs2.", lambda a, b: a | (b ^ MASK), funct7=0x20, funct3=6
)
XNOR = Register.declare(
    "XNOR", "rd = ~(rs1 ^ rs2).", lambda a, b: a ^ b ^ MASK, funct7=0x20, funct3=4
)


class CLZ(Unary, opcode=0x13, funct7=0x30, rs2=0, funct3=1):
    """rd = zeros before the first one of rs1, from the left."""

    def execute(a: Any) -> Any:
        n = 32
        while a:
            a >>= 1
            n -= 1
        return n


class CTZ(Unary, opcode=0x13, funct7=0x30, rs2=1, funct3=1):
    """rd = zeros before the first one of rs1, from the right."""

    def execute(a: Any) -> Any:
        n = 32
        while a:
            a = (a << 1) & MASK
            n -= 1
        return n


class CPOP(Unary, opcode=0x13, funct7=0x30, rs2=2, funct3=1):
    """rd = number of ones in rs1."""

    def execute(a: Any) -> Any:
        n = 0
        while a:
            a &= a - 1
            n += 1
        return n


class SEXT_B(Unary, opcode=0x13, funct7=0x30, rs2=4, funct3=1):
    """rd = low byte of rs1 with its sign."""

    def execute(a: Any) -> Any:
        return ((a & 0xFF ^ 0x80) - 0x80) & MASK


class SEXT_H(Unary, opcode=0x13, funct7=0x30, rs2=5, funct3=1):
    """rd = low 16 bits of rs1 with their sign."""

    def execute(a: Any) -> Any:
        return ((a & 0xFFFF ^ 0x8000) - 0x8000) & MASK


class ZEXT_H(Unary, opcode=0x33, funct7=0x04, rs2=0, funct3=4):
    """rd = low 16 bits of rs1."""

    def execute(a: Any) -> Any:
        return a & 0xFFFF


class ORC_B(Unary, opcode=0x13, funct7=0x14, rs2=7, funct3=5):
    """rd = rs1 with every byte that is not zero set to all ones."""

    def execute(a: Any) -> Any:
        a |= (a & 0xF0F0F0F0) >> 4
        a |= (a & 0x0C0C0C0C) >> 2
        a |= (a & 0x02020202) >> 1
        return (a & 0x01010101) * 0xFF


class REV8(Unary, opcode=0x13, funct7=0x34, rs2=24, funct3=5):
    """rd = bytes of rs1 in reverse."""

    def execute(a: Any) -> Any:
        return (a & 0xFF) << 24 | (a & 0xFF00) << 8 | (a & 0xFF0000) >> 8 | a >> 24


class MIN(Register, funct7=0x05, funct3=4):
    """rd = the smaller of rs1 and rs2, both signed."""

    def execute(a: Any, b: Any) -> Any:
        return a if a ^ SIGN < b ^ SIGN else b


class MINU(Register, funct7=0x05, funct3=5):
    """rd = the smaller of rs1 and rs2."""

    def execute(a: Any, b: Any) -> Any:
        return a if a < b else b


class MAX(Register, funct7=0x05, funct3=6):
    """rd = the larger of rs1 and rs2, both signed."""

    def execute(a: Any, b: Any) -> Any:
        return b if a ^ SIGN < b ^ SIGN else a


MAXU = Register.declare(
    "MAXU", "rd = the larger of rs1 and rs2.", lambda a, b: b if a < b else a, funct7=0x05, funct3=7
)


class ROL(Register, funct7=0x30, funct3=1):
    """rd = rs1 rotated left by the low 5 bits of rs2."""

    def execute(a: Any, b: Any) -> Any:
        b &= 31
        return (a << b | a >> (32 - b)) & MASK


class ROR(Register, funct7=0x30, funct3=5):
    """rd = rs1 rotated right by the low 5 bits of rs2."""

    def execute(a: Any, b: Any) -> Any:
        b &= 31
        return (a >> b | a << (32 - b)) & MASK


RORI = Shift.declare("RORI", "rd = rs1 rotated right.", ROR.execute, funct7=0x30, funct3=5)
