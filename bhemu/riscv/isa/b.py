"""Zba and Zbb: addresses, basic bit manipulation (RISC-V unprivileged ISA, chapter "B")."""

from typing import Any

from bhemu.riscv.formats import Register, Shift, Unary
from bhemu.riscv.insn import MASK

_TWO = """
    sh1add 0x10 2; ((a << 1) + b) & MASK; rd = 2 * rs1 + rs2.
    sh2add 0x10 4; ((a << 2) + b) & MASK; rd = 4 * rs1 + rs2.
    sh3add 0x10 6; ((a << 3) + b) & MASK; rd = 8 * rs1 + rs2.
    andn 0x20 7; a & (b ^ MASK); rd = rs1 & ~rs2.
    orn 0x20 6; a | (b ^ MASK); rd = rs1 | ~rs2.
    xnor 0x20 4; a ^ b ^ MASK; rd = ~(rs1 ^ rs2).
    min 0x05 4; a if a ^ SIGN < b ^ SIGN else b; rd = the smaller of rs1 and rs2, both signed.
    minu 0x05 5; a if a < b else b; rd = the smaller of rs1 and rs2.
    max 0x05 6; b if a ^ SIGN < b ^ SIGN else a; rd = the larger of rs1 and rs2, both signed.
    maxu 0x05 7; b if a < b else a; rd = the larger of rs1 and rs2.
"""
_ONE = """
    sext.b 0x30 4 1; ((a & 0xFF ^ 0x80) - 0x80) & MASK; rd = low byte of rs1 with its sign.
    sext.h 0x30 5 1; ((a & 0xFFFF ^ 0x8000) - 0x8000) & MASK; \
rd = low 16 bits of rs1 with their sign.
    zext.h 0x04 0 4 opcode=0x33; a & 0xFFFF; rd = low 16 bits of rs1.
"""
globals().update({**Register.listed(_TWO), **Unary.listed(_ONE)})


class CLZ(Unary, funct7=0x30, rs2=0, funct3=1):
    """rd = zeros before the first one of rs1, from the left."""

    def execute(a: Any) -> Any:
        n = 32
        while a:
            a >>= 1
            n -= 1
        return n


class CTZ(Unary, funct7=0x30, rs2=1, funct3=1):
    """rd = zeros before the first one of rs1, from the right."""

    def execute(a: Any) -> Any:
        n = 32
        while a:
            a = (a << 1) & MASK
            n -= 1
        return n


class CPOP(Unary, funct7=0x30, rs2=2, funct3=1):
    """rd = number of ones in rs1."""

    def execute(a: Any) -> Any:
        n = 0
        while a:
            a &= a - 1
            n += 1
        return n


class ORC_B(Unary, funct7=0x14, rs2=7, funct3=5):
    """rd = rs1 with every byte that is not zero set to all ones."""

    def execute(a: Any) -> Any:
        a |= (a & 0xF0F0F0F0) >> 4
        a |= (a & 0x0C0C0C0C) >> 2
        a |= (a & 0x02020202) >> 1
        return (a & 0x01010101) * 0xFF


class REV8(Unary, funct7=0x34, rs2=24, funct3=5):
    """rd = bytes of rs1 in reverse."""

    def execute(a: Any) -> Any:
        return (a & 0xFF) << 24 | (a & 0xFF00) << 8 | (a & 0xFF0000) >> 8 | a >> 24


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


globals().update(Shift.listed("rori 0x30 5; ror; rd = rs1 rotated right."))
