"""Vector unit (SFPU): recorded macros."""

from bhemu.tensix.insn import Instruction, bits


class SFPLOADMACRO(Instruction, opcode=0x93, unit="vector", stall="B8", oracle=False):
    """Load and schedule a recorded macro (SFPLOADMACRO, Blackhole ISA)."""

    dest_reg_addr = bits(9, 0)
    sfpu_addr_mode = bits(15, 13)
    instr_mod0 = bits(19, 16)
    lreg_ind = bits(23, 20)
