"""Vector unit (SFPU): integer and bit operations."""

from bhemu.tensix.insn import Instruction, bits


class SFPIADD(Instruction, opcode=0x79, unit="vector", stall="B8"):
    """Integer addition and subtraction (SFPIADD, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(23, 12)


class SFPSHFT(Instruction, opcode=0x7A, unit="vector", stall="B8"):
    """Shift lanes by a register or immediate (SFPSHFT, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(23, 12)


class SFPAND(Instruction, opcode=0x7E, unit="vector", stall="B8"):
    """Bitwise and (SFPAND, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(15, 12)


class SFPOR(Instruction, opcode=0x7F, unit="vector", stall="B8"):
    """Bitwise or (SFPOR, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(15, 12)


class SFPNOT(Instruction, opcode=0x80, unit="vector", stall="B8"):
    """Bitwise complement (SFPNOT, Blackhole ISA)."""

    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)


class SFPXOR(Instruction, opcode=0x8D, unit="vector", stall="B8"):
    """Bitwise exclusive-or (SFPXOR, Blackhole ISA)."""

    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)


class SFPLZ(Instruction, opcode=0x81, unit="vector", stall="B8"):
    """Count leading zeros (SFPLZ, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)


class SFPABS(Instruction, opcode=0x7D, unit="vector", stall="B8"):
    """Absolute value (SFPABS, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)


class SFPMUL24(Instruction, opcode=0x98, unit="vector", stall="B8"):
    """Multiply 24-bit integers (SFPMUL24, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)
    lreg_src_b = bits(15, 12)
    lreg_src_a = bits(19, 16)
