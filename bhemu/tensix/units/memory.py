"""Scalar unit (ThCon): loads, stores and atomics on L1."""

from bhemu.tensix.insn import Instruction, bits


class LOADIND(Instruction, opcode=0x49, unit="scalar", stall="B0,B5", oracle=False):
    """Load GPRs from L1 (LOADIND, Wormhole ISA)."""

    addr_reg_index = bits(5, 0)
    data_reg_index = bits(11, 6)
    auto_inc_spec = bits(13, 12)
    offset_half_reg = bits(20, 14)
    size_sel = bits(23, 22)


class STOREIND(Instruction, opcode=0x66, unit="scalar", stall="B0,B5", oracle=False):
    """Store GPRs to L1, MMIO or Src (STOREIND, Wormhole ISA)."""

    addr_reg_index = bits(5, 0)
    data_reg_index = bits(11, 6)
    auto_inc_spec = bits(13, 12)
    offset_half_reg = bits(20, 14)
    reg_size_sel = bits(21)
    size_sel = bits(22)
    mem_hier_sel = bits(23)


class ATINCGET(
    Instruction, opcode=0x61, unit="scalar", stall="B0,B5", oracle=False, uncertain=True
):
    """Atomically increment a word of L1 and fetch the old value (ATINCGET, Wormhole ISA)."""

    addr_reg_index = bits(5, 0)
    data_reg_index = bits(11, 6)
    sel32b = bits(13, 12)
    wrap_val = bits(22, 14)
    mem_hier_sel = bits(23)


class ATINCGETPTR(
    Instruction, opcode=0x62, unit="scalar", stall="B0,B5", oracle=False, uncertain=True
):
    """Atomically advance a FIFO pointer in L1 (ATINCGETPTR, Wormhole ISA)."""

    addr_reg_index = bits(5, 0)
    data_reg_index = bits(11, 6)
    sel32b = bits(13, 12)
    wrap_val = bits(17, 14)
    incr_val = bits(21, 18)
    no_incr = bits(22)
    mem_hier_sel = bits(23)


class ATSWAP(Instruction, opcode=0x63, unit="scalar", stall="B0,B5", oracle=False, uncertain=True):
    """Atomically replace half-words of L1 (ATSWAP, Wormhole ISA)."""

    addr_reg_index = bits(5, 0)
    data_reg_index = bits(13, 6)
    swap_mask = bits(22, 14)
    mem_hier_sel = bits(23)


class ATCAS(Instruction, opcode=0x64, unit="scalar", stall="B0,B5", oracle=False, uncertain=True):
    """Atomically compare and swap a word of L1 (ATCAS, Wormhole ISA)."""

    addr_reg_index = bits(5, 0)
    data_reg_index = bits(11, 6)
    sel32b = bits(13, 12)
    cmp_val = bits(17, 14)
    swap_val = bits(22, 18)
    mem_hier_sel = bits(23)
