"""The execution units: importing this package declares all instructions."""

import types

from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.units import cfg, counters, memory, scalar, sync
from bhemu.tensix.units.matrix import clear, matmul, move, pool
from bhemu.tensix.units.pack import pacr
from bhemu.tensix.units.unpack import modes, unpacr
from bhemu.tensix.units.vector import arith, convert, integer, loadstore, macro, schedule
from bhemu.tensix.units.vector import move as vector_move

MODULES = (
    *(cfg, counters, memory, scalar, sync, unpacr, modes, pacr),
    *(clear, matmul, move, pool),
    *(arith, convert, integer, loadstore, macro, schedule, vector_move),
)

# Instructions that the ISA only names, with fields (* of the mode) from an opcode table.
_NAMED = """
0x0C matrix MOVDBGB2D dst 10 0, movb2d_instr_mod* 13 11, addr_mode 16 14, src 22 17, \
dest_32b_lo* 23 23: Copy SrcB to Dst through the debug path (opcode table).
0x14 matrix TRNSPSRCA: Transpose SrcA (name only, no text) (opcode table).
0x15 matrix RAREB: Name only, no text (opcode table).
0x1A matrix SETASHRMH0 halo_mask 0 0, reg_mask 23 1: Name only, no text (opcode table).
0x1B matrix SETASHRMH1 halo_mask 0 0, reg_mask 23 1: Name only, no text (opcode table).
0x1C matrix SETASHRMV reg_mask2 23 0: Name only, no text (opcode table).
0x1D matrix SETPKEDGOF x_start 3 0, x_end 7 4, y_start 11 8, y_end 23 12: Name only, no text \
(opcode table).
0x1E matrix SETASHRMH halo_mask 0 0, reg_mask 23 1: Name only, no text (opcode table).
0x39 matrix SETIBRWC set_inc_ctrl 5 0, rwc_bias 17 6, rwc_cr* 23 18: Name only, no text \
(opcode table).
0x44 adc RSTDMA: Reset of the DMA (name only, no text) (stallwait-conditions.md).
0x4A pack PACR_SETREG last 0 0, flush* 1 1, stream_id 7 2, addr_sel 9 8, disable_stall 11 10, \
unused 21 12, mode_sel 22 22, push 23 23: Write a register from the packer (PACR_SETREG, \
Wormhole ISA).
0x4B matrix TBUFCMD: Name only, no text (opcode table).
"""
_OTHER_WORD = "the only text is Wormhole's, whose fields are others: Blackhole's word has no value"
for _line in _NAMED.strip().splitlines():
    _head, _, _meaning = _line.partition(": ")
    _opcode, _unit, _name, *_fields = _head.split(" ", 3)
    _members: dict[str, object] = {"__doc__": _meaning, "__module__": __name__}
    for _field, _hi, _lo in (one.split() for part in _fields for one in part.split(", ")):
        _members[_field.rstrip("*")] = bits(int(_hi), int(_lo), mode=_field.endswith("*"))
    types.new_class(
        _name,
        (Instruction,),
        {"opcode": int(_opcode, 16), "unit": _unit, "oracle": False, "uncertain": True}
        | {"refused": _OTHER_WORD if _unit == "pack" else "no text in the ISA"},
        lambda space, members=_members: space.update(members),
    )
