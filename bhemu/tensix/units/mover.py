"""Mover: bulk copies within L1."""

from bhemu.tensix.insn import Instruction, bits


class XMOV(Instruction, opcode=0x40, unit="mover", stall="B0,B4", oracle=False):
    """Start a transfer of the mover (XMOV, Wormhole ISA)."""

    last = bits(0)
    mov_block_selection = bits(23)
