"""Vector unit (SFPU): table look-ups."""

from bhemu.tensix.insn import Instruction, bits


class SFPLUT(Instruction, opcode=0x73, unit="vector", stall="B8"):
    """Piecewise linear function from an 8-bit table (SFPLUT, Blackhole ISA)."""

    instr_mod0 = bits(19, 16)
    lreg_ind = bits(23, 20)


class SFPLUTFP32(Instruction, opcode=0x95, unit="vector", stall="B8"):
    """Piecewise linear function from a 16- or 32-bit table (SFPLUTFP32, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
