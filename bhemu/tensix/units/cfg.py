"""Configuration unit, and the mover, which copies from L1 to Config and to L1."""

from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from bhemu.bits import choice, number
from bhemu.jit.intrinsics import l1_word
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config, in_flight, insn, mmio, spaces, state, thread
from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import WAKES_BY_BANK, Instruction, bits
from bhemu.tensix.rules import DONE, NCB, UB, UNSUPPORTED, error, refuse, undefined
from bhemu.tensix.spaces import Clause
from bhemu.tensix.state import WORD, l1_words

CFG_INDEX = error("CFG-INDEX", UB, "Config word {index} does not exist: there are 224 words in a bank", "the index is the Name_ADDR32 constant of a field outside the THREAD section")  # fmt: skip
CFG_ALIGN = error("CFG-ALIGN", NCB, "128-bit WRCFG to Config word {index} from GPR {gpr}: both must be multiples of 4", "align both, or use four 32-bit writes")  # fmt: skip
THREAD_INDEX = error("CFG-THREAD-INDEX", UB, "ThreadConfig value {index} does not exist: there are 68", "SETC16 takes the Name_ADDR32 constants of the THREAD section only")  # fmt: skip


_SCRATCHES = (cf.SCRATCH_SEC0_val, cf.SCRATCH_SEC1_val, cf.SCRATCH_SEC2_val)


@njit
def _rotate_right(value: Any, amount: Any) -> Any:
    return ((value >> amount) | (value << (-amount & 31))) & WORD


@njit
def _combine(operation: Any, old: Any, new: Any) -> Any:
    """Operations 0-3: or, and, exclusive or, add; 4-6 the same with `new` inverted, 7 subtract."""
    if operation == 3:
        return old + new
    if operation == 7:
        return old - new
    if operation & 4:
        new = new ^ WORD
    if operation & 3 == 0:
        return old | new
    if operation & 3 == 1:
        return old & new
    return old ^ new


def written(place: str, count: int = 1, keeps: str = "") -> Clause:
    """Words of Config, and what else changes with some of them."""
    found = spaces.config_word(place, count, keeps=keeps)
    for word, effects in config.EFFECTS.items():
        found |= effects.when(f"{place} == {word - word % count}")
    return found


class WRCFG(Instruction, opcode=0xB0, unit="cfg"):
    """Copy one or four GPRs to Config (WRCFG, Blackhole ISA)."""

    reads = spaces.gpr("gpr_address").unless("wr128b") | spaces.gpr("gpr_address & 0x3C", 4).when(
        "wr128b"
    )
    writes = written("cfg_reg").unless("wr128b") | written("cfg_reg & 0xFC", 4).when("wr128b")

    cfg_reg = bits(10, 0, insn.CONFIG_WORD)
    wr128b = bits(15, 15, choice("one GPR", "four GPRs to four words, both aligned"), mode=True)
    gpr_address = bits(21, 16, insn.GPR)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.cfg_reg >= config.CONFIG_WORDS:
            return refuse(s, CFG_INDEX, index=f.cfg_reg)
        b, who = config.bank(s, t), config.by_thread(s, t)
        if not f.wr128b:
            if s.timed[0]:
                in_flight.keep_config(s, t, b, f.cfg_reg, np.int64(1))
            config.write(s, b, f.cfg_reg, np.int64(s.gpr[t, f.gpr_address]), who)
            return DONE
        if (f.cfg_reg | f.gpr_address) & 3:
            status = undefined(s, CFG_ALIGN, index=f.cfg_reg, gpr=f.gpr_address)
            if status:
                return status
        if s.timed[0]:
            in_flight.keep_config(s, t, b, f.cfg_reg & 0xFC, np.int64(4))
        for i in range(4):
            value = np.int64(s.gpr[t, (f.gpr_address & 0x3C) + i])
            config.write(s, b, (f.cfg_reg & 0xFC) + i, value, who)
        return DONE


class RDCFG(Instruction, opcode=0xB1, unit="cfg"):
    """Copy one Config word to a GPR (RDCFG, Blackhole ISA)."""

    reads = spaces.config_word("cfg_reg")
    writes = spaces.gpr("gpr_address")

    cfg_reg = bits(10, 0, insn.CONFIG_WORD)
    gpr_address = bits(21, 16, insn.GPR)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.cfg_reg >= config.CONFIG_WORDS:
            return refuse(s, CFG_INDEX, index=f.cfg_reg)
        s.gpr[t, f.gpr_address] = s.cfg[config.bank(s, t), f.cfg_reg]
        return DONE


class SETC16(Instruction, opcode=0xB2, unit="cfg", wakes=WAKES_BY_BANK):
    """Write one ThreadConfig value of the issuing thread (SETC16, Blackhole ISA)."""

    writes = spaces.thread_word("setc16_reg") | spaces.UNPACKER

    setc16_value = bits(15, 0, number("the new value"))
    setc16_reg = bits(23, 16, number("word of ThreadConfig"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.setc16_reg >= config.THREAD_WORDS:
            return refuse(s, THREAD_INDEX, index=f.setc16_reg)
        config.write_thread(s, t, f.setc16_reg, f.setc16_value)
        return DONE


_RMWCIB = 0xB3  # the opcode for byte 0; the others follow


class _MaskedByte(Instruction, unit="cfg"):
    """A Config word, and the new value of some bits of one byte of it."""

    writes = written("cfg_reg_addr", keeps="mask != 255")

    cfg_reg_addr = bits(7, 0, insn.CONFIG_WORD)
    data = bits(15, 8, number("the new byte"))
    mask = bits(23, 16, number("the bits of the byte that change"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.cfg_reg_addr >= config.CONFIG_WORDS:
            return refuse(s, CFG_INDEX, index=f.cfg_reg_addr)
        b, who, shift = config.bank(s, t), config.by_thread(s, t), 8 * ((f.word >> 24) - _RMWCIB)
        config.modify(s, b, f.cfg_reg_addr, f.data << shift, f.mask << shift, who)
        return DONE


class RMWCIB0(_MaskedByte, opcode=_RMWCIB):
    """Replace masked bits of byte 0 of a Config word (RMWCIB, Blackhole ISA)."""


class RMWCIB1(_MaskedByte, opcode=_RMWCIB + 1):
    """Replace masked bits of byte 1 of a Config word (RMWCIB, Blackhole ISA)."""


class RMWCIB2(_MaskedByte, opcode=_RMWCIB + 2):
    """Replace masked bits of byte 2 of a Config word (RMWCIB, Blackhole ISA)."""


class RMWCIB3(_MaskedByte, opcode=_RMWCIB + 3):
    """Replace masked bits of byte 3 of a Config word (RMWCIB, Blackhole ISA)."""


class STREAMWRCFG(Instruction, opcode=0xB7, unit="cfg", oracle=False):
    """Copy a stream register to Config (STREAMWRCFG, Blackhole ISA)."""

    reads = spaces.STREAMS | spaces.thread_cfg("STREAM_ID_SYNC_*")
    writes = written("cfg_reg")

    cfg_reg = bits(10, 0, insn.CONFIG_WORD)
    stream_reg_addr = bits(20, 11, number("register of the stream"))
    stream_id_sel = bits(22, 21, insn.STREAM_SELECTOR)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.cfg_reg >= config.CONFIG_WORDS:
            return refuse(s, CFG_INDEX, index=f.cfg_reg)
        stream = thread.stream_index(s, t, f.stream_id_sel)
        status = mmio.stream_read(s, stream, f.stream_reg_addr)
        if status == DONE:
            who = config.by_thread(s, t)
            config.write(s, config.bank(s, t), f.cfg_reg, s.loaded[0], who)
        return status


class CFGSHIFTMASK(Instruction, opcode=0xB8, unit="cfg"):
    """Combine a Config word with a masked, rotated scratch word (CFGSHIFTMASK, Blackhole ISA)."""

    reads = spaces.config_word("cfg_reg") | spaces.cfg("SCRATCH_SEC*_val")
    writes = written("cfg_reg")

    cfg_reg = bits(7, 0, insn.CONFIG_WORD)
    scratch_sel = bits(
        9,
        8,
        choice({**{i: f"SCRATCH_SEC{i}_val" for i in range(3)}, 3: "that of the issuing thread"}),
    )
    right_cshift_amt = bits(14, 10, number("bits by which scratch word and mask rotate right"))
    mask_width = bits(19, 15, number("width of the mask, less one"))
    operation = bits(22, 20, mode=True).meaning("""new: the scratch word, masked and rotated
        0: old | new
        1: old & new
        2: old ^ new
        3: old + new
        4: old | ~new
        5: old & ~new
        6: old ^ ~new
        7: old - new""")
    disable_mask_on_old_val = bits(
        23, 23, choice("old: without the bits of the mask", "old: as it is"), mode=True
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.cfg_reg >= config.CONFIG_WORDS:
            return refuse(s, CFG_INDEX, index=f.cfg_reg)
        mask = (2 << f.mask_width) - 1
        scratch = config.get(s, 0, _SCRATCHES[t if f.scratch_sel == 3 else f.scratch_sel])
        new = _rotate_right(scratch & mask, f.right_cshift_amt)
        b = config.bank(s, t)
        old = np.int64(s.cfg[b, f.cfg_reg])
        if not f.disable_mask_on_old_val:
            old &= ~_rotate_right(mask, f.right_cshift_amt)
        new = _combine(f.operation, old, new) & WORD
        if s.timed[0]:
            in_flight.keep_config(s, t, b, f.cfg_reg, np.int64(1))
        config.write(s, b, f.cfg_reg, new, config.by_thread(s, t))
        return DONE


# Mover: bulk copies from L1 and fills with zero, to L1 and to the configuration space.
#
# XMOV takes its parameters from Config; the RISC-V cores give theirs to devices/registers.py.  A
# transfer is complete when the instruction or command is.


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
def move(s: Any, dst: Any, src: Any, count: Any, direction: Any, agent: Any) -> Any:
    """Transfer `count` units; all three in 16-byte units. DONE, or an error before any effect.

    agent: see config.by_thread.
    """
    dst, src = (dst << UNIT) & ADDRESS, (src << UNIT) & ADDRESS
    count = (count & COUNT) << UNIT
    copies = direction == L1_TO_L0 or direction == L1_TO_L1
    to_l1 = direction == L0_TO_L1 or direction == L1_TO_L1
    status = _l1_refused(s, src, count) if copies else np.int64(DONE)
    if status == 0 and to_l1:
        status = _l1_refused(s, dst, count)
    if status:
        return status
    if copies and to_l1 and src != dst and abs(src - dst) < count:
        return refuse(s, OVERLAP, source=src, target=dst, size=count)
    if not to_l1:  # what lies in no region is discarded
        if IRAM <= dst < IRAM_END:
            return refuse(s, INSTRUCTION_RAM, address=dst)
        if dst < CONFIG_SPACE and count and not config.writable((dst + count - 1) >> 2):
            return refuse(s, CONFIG_RANGE, offset=dst, size=count)
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

    last = bits(0, 0, choice("as the text has it"))
    mov_block_selection = bits(23, 23, choice("the mover"))

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
