"""Front-end instructions: consumed by the MOP and REPLAY expanders, except NOP."""

from typing import Any

from bhemu.tensix import frontend
from bhemu.tensix.insn import WAKES_NOBODY, Instruction, bits
from bhemu.tensix.resources import EVERYTHING, NOTHING
from bhemu.tensix.status import DONE


class MOP(Instruction, opcode=frontend.MOP, unit="front", resources=EVERYTHING):
    """Expand the macro-operation held in the MOP configuration (MOPExpander, Blackhole ISA)."""

    zmask_lo16_or_loop_count = bits(15, 0)
    loop_count = bits(22, 16)
    mop_type = bits(23, mode=True)


class NOP(
    Instruction,
    opcode=frontend.NOP,
    unit="front",
    stall="all nine",
    wakes=WAKES_NOBODY,
    resources=NOTHING,
):
    """Occupy one slot of the wait gate (gpr-and-dma-instructions.md)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return DONE


class MOP_CFG(Instruction, opcode=frontend.MOP_CFG, unit="front", resources=NOTHING):
    """Set the upper half of the zero mask of the next MOP (MOPExpander, Blackhole ISA)."""

    zmask_hi16 = bits(15, 0)


class REPLAY(Instruction, opcode=frontend.REPLAY, unit="front", resources=EVERYTHING):
    """Record words into, or play words from, the replay buffer (REPLAY, Blackhole ISA)."""

    load_mode = bits(0, mode=True)
    execute_while_loading = bits(1, mode=True)
    len = bits(13, 4)
    start_idx = bits(23, 14)


class RESOURCEDECL(
    Instruction,
    opcode=frontend.RESOURCEDECL,
    unit="front",
    stall="never",
    oracle=False,
    uncertain=True,
    resources=NOTHING,
):
    """Declare resources to Auto TTSync (mop-and-replay-expanders.md)."""

    op_class = bits(3, 0)
    resources = bits(12, 4)
    linger_time = bits(23, 13)
