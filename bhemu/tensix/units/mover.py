"""Mover: bulk copies from L1 and fills with zero, to L1 and to the configuration space.

XMOV takes its parameters from Config; the RISC-V cores give theirs to devices/tdma.py.  A transfer
is complete when the instruction or command is.
"""

from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from bhemu.bits import choice
from bhemu.jit.intrinsics import l1_word
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config, spaces, state
from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.rules import DONE, UB, UNSUPPORTED, error, refuse
from bhemu.tensix.state import l1_words

L0_TO_L1, L1_TO_L0, L0_TO_L0, L1_TO_L1 = 0, 1, 2, 3  # "L0" as source means zeros (Mover, ISA)
UNIT = 4  # addresses and sizes count 16 bytes
ADDRESS = 0xFFFFFFFF
COUNT = 0xFFFF
CONFIG_SPACE = 0x10000
IRAM, IRAM_END = 0x40000, 0x50000  # the instruction RAM of Wormhole's ncrisc

OUTSIDE = error("MOVER-L1", UB, "the mover's {size:#x} bytes at L1 {address:#x} do not end within L1 (0x180000)", "addresses and sizes of the mover count 16 bytes")  # fmt: skip
OVERLAP = error("MOVER-OVERLAP", UB, "the mover copies {size:#x} bytes from {source:#x} to {target:#x}: the two ranges overlap", "copy to a place that does not overlap the source")  # fmt: skip
CONFIG_RANGE = error("MOVER-CONFIG", UNSUPPORTED, "the mover's {size:#x} bytes at offset {offset:#x} of the configuration space reach beyond Config", "Config[0], Config[1] and ConfigDualWrite are below 0xa80")  # fmt: skip
INSTRUCTION_RAM = error("MOVER-IRAM", UNSUPPORTED, "the mover's destination {address:#x} is ncrisc's instruction RAM, which Blackhole does not have", "ncrisc runs from L1")  # fmt: skip
XMOV_FIELDS = error("XMOV-FIELDS", UNSUPPORTED, "XMOV with last {last} and mov_block_selection {mov_block_selection}: the ISA text has 0 only", "clear both fields")  # fmt: skip


@njit
def _l1_refused(s: Any, address: Any, count: Any) -> Any:
    if address < L1_SIZE and address + count <= L1_SIZE:
        return DONE
    return refuse(s, OUTSIDE, address=address, size=count)


@njit
def _refused(s: Any, dst: Any, src: Any, count: Any, direction: Any) -> Any:
    copies = direction == L1_TO_L0 or direction == L1_TO_L1
    if copies:
        status = _l1_refused(s, src, count)
        if status:
            return status
    if direction == L1_TO_L0 or direction == L0_TO_L0:
        # Refusals of a destination that is no L1; what lies in no region is discarded.
        if IRAM <= dst < IRAM_END:
            return refuse(s, INSTRUCTION_RAM, address=dst)
        if dst < CONFIG_SPACE and count and not config.writable((dst + count - 1) >> 2):
            return refuse(s, CONFIG_RANGE, offset=dst, size=count)
        return DONE
    status = _l1_refused(s, dst, count)
    if status == 0 and copies and src != dst and abs(src - dst) < count:
        return refuse(s, OVERLAP, source=src, target=dst, size=count)
    return status


@njit
def move(s: Any, dst: Any, src: Any, count: Any, direction: Any, agent: Any) -> Any:
    """Transfer `count` units; all three in 16-byte units. DONE, or an error before any effect.

    agent: see config.by_thread.
    """
    dst, src = (dst << UNIT) & ADDRESS, (src << UNIT) & ADDRESS
    count = (count & COUNT) << UNIT
    status = _refused(s, dst, src, count, direction)
    if status:
        return status
    copies = direction == L1_TO_L0 or direction == L1_TO_L1
    to_l1 = direction == L0_TO_L1 or direction == L1_TO_L1
    for i in range(0, count, 4):
        word = l1_word(s, src + i) if copies else np.int64(0)
        if to_l1:
            l1_words(s)[(dst + i) >> 2] = np.uint32(word)
        elif dst < CONFIG_SPACE:
            config.write_mapped(s, (dst + i) >> 2, word, agent)
    if to_l1 and count:
        state.written(s, dst, count)
    return DONE


class XMOV(Instruction, opcode=0x40, unit="mover", oracle=False):
    """Start a transfer of the mover (XMOV, Wormhole ISA)."""

    reads = spaces.cfg("THCON_SEC0_REG6_*") | spaces.ALL_L1
    writes = spaces.ALL_L1 | spaces.CONFIG | reduce(or_, config.EFFECTS.values())

    last = bits(0, 0, choice({0: "as the text has it"}))
    mov_block_selection = bits(23, 23, choice({0: "the mover"}))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.last | f.mov_block_selection:
            chosen = f.mov_block_selection
            return refuse(s, XMOV_FIELDS, last=f.last, mov_block_selection=chosen)
        b = config.bank(s, t)
        return move(
            s,
            config.get(s, b, cf.THCON_SEC0_REG6_Destination_address),
            config.get(s, b, cf.THCON_SEC0_REG6_Source_address),
            config.get(s, b, cf.THCON_SEC0_REG6_Buffer_size),
            config.get(s, b, cf.THCON_SEC0_REG6_Transfer_direction),
            config.by_thread(s, t),
        )
