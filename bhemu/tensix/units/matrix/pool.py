"""Matrix unit: pooling and the legacy convolution group."""

from bhemu.tensix.insn import Instruction, bits


class GMPOOL(Instruction, opcode=0x33, unit="matrix", stall="B6"):
    """Column maxima of SrcA and Dst (GMPOOL, Wormhole ISA)."""

    dst = bits(9, 0)
    max_pool_index_en = bits(14)
    pool_addr_mode = bits(17, 15)
    instr_mod19 = bits(19)
    clear_dvalid = bits(23, 22)


class GAPOOL(Instruction, opcode=0x34, unit="matrix", stall="B6"):
    """Matrix product of four SrcB rows with SrcA (GAPOOL, Wormhole ISA)."""

    dst = bits(9, 0)
    max_pool_index_en = bits(14)
    pool_addr_mode = bits(17, 15)
    instr_mod19 = bits(19)
    clear_dvalid = bits(23, 22)


class CONV3S1(Instruction, opcode=0x22, unit="matrix", stall="B6", oracle=False, uncertain=True):
    """Legacy convolution: adds zero to Dst (specialty-fpu-operations.md)."""

    dst = bits(13, 0)
    addr_mode = bits(16, 14)
    rotate_weights = bits(21, 17)
    clear_dvalid = bits(23, 22)


class CONV3S2(Instruction, opcode=0x23, unit="matrix", stall="B6", oracle=False, uncertain=True):
    """Legacy convolution: adds zero to Dst (specialty-fpu-operations.md)."""

    dst = bits(13, 0)
    addr_mode = bits(16, 14)
    rotate_weights = bits(21, 17)
    clear_dvalid = bits(23, 22)


class MPOOL3S1(Instruction, opcode=0x24, unit="matrix", stall="B6", oracle=False, uncertain=True):
    """Legacy max pool: maximum of Dst and zero (specialty-fpu-operations.md)."""

    dst = bits(13, 0)
    index_en = bits(14)
    pool_addr_mode = bits(21, 15)
    clear_dvalid = bits(23, 22)


class APOOL3S1(Instruction, opcode=0x25, unit="matrix", stall="B6", oracle=False, uncertain=True):
    """Legacy average pool: adds zero to Dst (specialty-fpu-operations.md)."""

    dst = bits(13, 0)
    index_en = bits(14)
    pool_addr_mode = bits(21, 15)
    clear_dvalid = bits(23, 22)


class MPOOL3S2(Instruction, opcode=0x31, unit="matrix", stall="B6", oracle=False, uncertain=True):
    """Legacy max pool: maximum of Dst and zero (specialty-fpu-operations.md)."""

    dst = bits(13, 0)
    index_en = bits(14)
    pool_addr_mode = bits(21, 15)
    clear_dvalid = bits(23, 22)


class APOOL3S2(Instruction, opcode=0x32, unit="matrix", stall="B6", oracle=False, uncertain=True):
    """Legacy average pool: adds zero to Dst (specialty-fpu-operations.md)."""

    dst = bits(13, 0)
    index_en = bits(14)
    pool_addr_mode = bits(21, 15)
    clear_dvalid = bits(23, 22)


class MFCONV3S1(Instruction, opcode=0x3A, unit="matrix", stall="B6", oracle=False, uncertain=True):
    """Legacy convolution: adds zero to Dst (stallwait-conditions.md)."""

    dst = bits(13, 0)
    addr_mode = bits(16, 14)
    rotate_weights = bits(21, 17)
    clear_dvalid = bits(23, 22)
