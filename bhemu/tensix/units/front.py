"""Front-end instructions: consumed by the MOP and REPLAY expanders, except NOP."""

from typing import Any

from bhemu.bits import choice, number
from bhemu.tensix import frontend, insn, spaces
from bhemu.tensix.insn import WAKES_NOBODY, Instruction, bits
from bhemu.tensix.rules import DONE


class MOP(Instruction, opcode=frontend.MOP, unit="front"):
    """Expand the macro-operation held in the MOP configuration (MOPExpander, Blackhole ISA)."""

    reads = spaces.SLOTS
    writes = spaces.SLOTS

    zmask_lo16_or_loop_count = bits(
        15,
        0,
        number(
            "template 0: low half of the zero mask, in which a set bit skips a step; template 1: 0"
        ),
    )
    loop_count = bits(22, 16, number("template 0: steps, less one; template 1: 0"))
    mop_type = bits(
        23,
        23,
        choice({0: "template 0: steps with a zero mask", 1: "template 1: two nested loops"}),
        mode=True,
    )


class NOP(
    Instruction,
    opcode=frontend.NOP,
    unit="front",
    stall="all nine",
    wakes=WAKES_NOBODY,
):
    """Occupy one slot of the wait gate (gpr-and-dma-instructions.md)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return DONE


class MOP_CFG(Instruction, opcode=frontend.MOP_CFG, unit="front"):
    """Set the upper half of the zero mask of the next MOP (MOPExpander, Blackhole ISA)."""

    writes = spaces.SLOTS

    zmask_hi16 = bits(15, 0, number("high half of the zero mask of the next MOP with template 0"))


class REPLAY(Instruction, opcode=frontend.REPLAY, unit="front"):
    """Record words into, or play words from, the replay buffer (REPLAY, Blackhole ISA)."""

    reads = spaces.SLOTS
    writes = spaces.SLOTS

    load_mode = bits(0, 0, choice({0: "plays", 1: "records"}), mode=True)
    execute_while_loading = bits(
        1,
        1,
        choice({0: "recorded words do not execute", 1: "recorded words execute, too"}),
        mode=True,
    )
    len = bits(13, 4, number("words; 0: all 32 of the buffer"))
    start_idx = bits(23, 14, number("first slot of the buffer"))


class RESOURCEDECL(
    Instruction,
    opcode=frontend.RESOURCEDECL,
    unit="front",
    stall="never",
    oracle=False,
    uncertain=True,
):
    """Declare resources to Auto TTSync (mop-and-replay-expanders.md)."""

    op_class = bits(3, 0, insn.IGNORED)
    resources = bits(12, 4, insn.IGNORED)
    linger_time = bits(23, 13, insn.IGNORED)
