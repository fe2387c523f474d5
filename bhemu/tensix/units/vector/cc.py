"""Vector unit (SFPU): condition codes and comparisons."""

from typing import Any

from bhemu.tensix import lanes
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE


class SFPSETCC(Instruction, opcode=0x7B, unit="vector", stall="B8"):
    """Set the condition codes from a comparison with zero (SFPSETCC, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(12)


class SFPENCC(Instruction, opcode=0x8A, unit="vector", stall="B8"):
    """Enable, disable and set the condition codes (SFPENCC, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    imm12_math = bits(13, 12)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, imm12_math: Any) -> Any:
        status = lanes.claim_none(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 == 0:
            if imm12_math:
                return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
            lanes.set_flags(s, 1)
        elif instr_mod1 == 10:
            lanes.set_flags(s, (imm12_math >> 1) & 1)
            s.cc_en[0] = imm12_math & 1
        else:
            return refuse(s, lanes.MODE_UNIMPLEMENTED, instr_mod1, 0)
        return DONE


class SFPPUSHC(Instruction, opcode=0x87, unit="vector", stall="B8"):
    """Push the condition codes (SFPPUSHC, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)


class SFPPOPC(Instruction, opcode=0x88, unit="vector", stall="B8"):
    """Pop the condition codes (SFPPOPC, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)


class SFPCOMPC(Instruction, opcode=0x8B, unit="vector", stall="B8"):
    """Complement the condition codes (SFPCOMPC, Blackhole ISA)."""

    lreg_dest = bits(7, 4)


class SFPLE(Instruction, opcode=0x96, unit="vector", stall="B8"):
    """Compare less or equal (SFPLE, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)


class SFPGT(Instruction, opcode=0x97, unit="vector", stall="B8"):
    """Compare greater (SFPGT, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
