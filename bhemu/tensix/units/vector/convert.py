"""Vector unit (SFPU): exponent, mantissa, sign and format conversion."""

from bhemu.tensix.insn import Instruction, bits


class SFPDIVP2(Instruction, opcode=0x76, unit="vector", stall="B8"):
    """Add to or replace the exponent (SFPDIVP2, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(23, 12)


class SFPEXEXP(Instruction, opcode=0x77, unit="vector", stall="B8"):
    """Extract the exponent (SFPEXEXP, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)


class SFPEXMAN(Instruction, opcode=0x78, unit="vector", stall="B8"):
    """Extract the mantissa (SFPEXMAN, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)


class SFPSETEXP(Instruction, opcode=0x82, unit="vector", stall="B8"):
    """Replace the exponent (SFPSETEXP, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(19, 12)


class SFPSETMAN(Instruction, opcode=0x83, unit="vector", stall="B8"):
    """Replace the mantissa (SFPSETMAN, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(23, 12)


class SFPSETSGN(Instruction, opcode=0x89, unit="vector", stall="B8"):
    """Replace the sign (SFPSETSGN, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(12)


class SFPCAST(Instruction, opcode=0x90, unit="vector", stall="B8"):
    """Convert between integer and floating-point forms (SFPCAST, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)


class SFP_STOCH_RND(Instruction, opcode=0x8E, unit="vector", stall="B8"):
    """Round to a narrower format (SFPSTOCHRND, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)
    lreg_src_b = bits(15, 12)
    imm8_math = bits(20, 16)
    rnd_mode = bits(22, 21)
