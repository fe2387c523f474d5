"""Matrix unit: opcodes that the ISA names without any text."""

from bhemu.tensix.insn import NO_TEXT, Instruction, Word, bits


class RAREB(Instruction, opcode=0x15, unit="matrix", **NO_TEXT):
    """Name only, no text (opcode table)."""


class _HaloMask(Word):
    """Fields by name only."""

    halo_mask = bits(0)
    reg_mask = bits(23, 1)


class SETASHRMH0(_HaloMask, Instruction, opcode=0x1A, unit="matrix", **NO_TEXT):
    """Name only, no text (opcode table)."""


class SETASHRMH1(_HaloMask, Instruction, opcode=0x1B, unit="matrix", **NO_TEXT):
    """Name only, no text (opcode table)."""


class SETASHRMV(Instruction, opcode=0x1C, unit="matrix", **NO_TEXT):
    """Name only, no text (opcode table)."""

    reg_mask2 = bits(23, 0)


class SETPKEDGOF(Instruction, opcode=0x1D, unit="matrix", **NO_TEXT):
    """Name only, no text (opcode table)."""

    x_start = bits(3, 0)
    x_end = bits(7, 4)
    y_start = bits(11, 8)
    y_end = bits(23, 12)


class SETASHRMH(_HaloMask, Instruction, opcode=0x1E, unit="matrix", **NO_TEXT):
    """Name only, no text (opcode table)."""


class SETIBRWC(Instruction, opcode=0x39, unit="matrix", **NO_TEXT):
    """Name only, no text (opcode table)."""

    set_inc_ctrl = bits(5, 0)
    rwc_bias = bits(17, 6)
    rwc_cr = bits(23, 18, mode=True)


class TBUFCMD(Instruction, opcode=0x4B, unit="matrix", **NO_TEXT):
    """Name only, no text (opcode table)."""
