"""Matrix unit: element-wise arithmetic."""

from bhemu.tensix.insn import Instruction, bits


class ELWADD(Instruction, opcode=0x28, unit="matrix", stall="B6"):
    """Element-wise sum of SrcA and SrcB (ELWADD, Wormhole ISA)."""

    dst = bits(9, 0)
    addr_mode = bits(16, 14)
    instr_mod19 = bits(20, 19)
    dest_accum_en = bits(21)
    clear_dvalid = bits(23, 22)


class ELWSUB(Instruction, opcode=0x30, unit="matrix", stall="B6"):
    """Element-wise difference of SrcA and SrcB (ELWSUB, Wormhole ISA)."""

    dst = bits(9, 0)
    addr_mode = bits(16, 14)
    instr_mod19 = bits(20, 19)
    dest_accum_en = bits(21)
    clear_dvalid = bits(23, 22)


class ELWMUL(Instruction, opcode=0x27, unit="matrix", stall="B6"):
    """Element-wise product of SrcA and SrcB added to Dst (ELWMUL, Wormhole ISA)."""

    dst = bits(9, 0)
    addr_mode = bits(16, 14)
    instr_mod19 = bits(20, 19)
    dest_accum_en = bits(21)
    clear_dvalid = bits(23, 22)
