"""Straight-line programs of vector instructions: LRegs, lane masks and the condition stack."""

from collections.abc import Sequence

import numpy as np

from bhemu.oracle.libttsim import Case
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from random_programs import operands
from random_programs.datapath import (
    COMPUTED,
    FILLED,
    INPUT,
    OUTPUT,
    dump_dst,
    fill_dst,
    finish,
    image,
)
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step
from random_programs.thread import Config, Thread
from random_programs.units.vector_steps import Lanes, random_step

LREGS, MASKS = 8, 3  # slots of a block: its LRegs, then the lane mask after 0, 1 and 2 pops
SLOTS = LREGS + MASKS
BLOCKS = 256 // SLOTS  # a slot is 32 lanes of 32 bits; Dst has 256
SHORTEST, LONGEST, FEW = 50, 200, 3
_RAW = 4  # SFPLOAD and SFPSTORE mode: 32 bits as they are
_ONE = 10  # LReg10 is 1.0
_LANES, _DATUMS = 32, 8192
SOURCES = (None, 0, 1, 5, 6, 7, 9)  # ALU_FORMAT_SPEC_REG1_SrcB; None: SFPU_Fp32_enabled
INCREMENTS = (0, 2, 4, 6, 8, 16, 1022, 512)  # ADDR_MOD_DST_SEC0-7_DestIncr
_INCREMENT_FIELDS = tuple(getattr(tf, f"ADDR_MOD_DST_SEC{i}_DestIncr") for i in range(8))


def address(slot: int) -> int:
    """SFPLOAD or SFPSTORE address of a slot in 32-bit cells: 4 rows, even or odd columns."""
    return 4 * (slot >> 1) + 2 * (slot & 1)


def generate(seed: int, index: int) -> Plan:
    """23 independent blocks of 50 to 200 instructions each; every fourth program has short ones.

    A long block meets rare combinations of state; a short one shows what a later instruction of a
    long one would have overwritten.
    """
    dice = Dice("vector", seed, index)
    source = dice.pick(SOURCES)
    prng = dice.below(1 << 32)
    words = operands.mixed(dice, _DATUMS, operands.FP32, run=_LANES).astype(np.uint32)
    data = _at_slots(words)
    short = index % 4 == 3
    blocks = tuple(_block(dice, number, source, short) for number in range(BLOCKS))
    constants = operands.mixed(dice, 4 * BLOCKS, operands.FP32, run=4)

    def emit(chosen: Blocks) -> Case:
        return _emit(chosen, source, prng, [int(c) for c in constants], data.tobytes())

    return Plan("vector", seed, index, blocks, emit, _DATUMS, explain)


def _at_slots(words: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> "np.typing.NDArray[np.uint32]":
    """Tile data (row-major, 512 rows of 16) in which slot s, lane l holds words[32 * s + l]."""
    rows = np.zeros((512, 16), np.uint32)
    for slot in range(256):
        values = words[_LANES * slot : _LANES * (slot + 1)].reshape(4, 8)
        rows[4 * (slot >> 1) : 4 * (slot >> 1) + 4, slot & 1 :: 2] = values
        if slot % SLOTS >= LREGS and slot < BLOCKS * SLOTS:
            rows[4 * (slot >> 1) : 4 * (slot >> 1) + 4, slot & 1 :: 2] = 0
    return rows


def _block(dice: Dice, number: int, source: int | None, short: bool) -> tuple[Step, ...]:
    lanes = Lanes(own=[address(SLOTS * number + k) for k in range(LREGS)], source=source)
    length = dice.between(1, FEW) if short else dice.between(SHORTEST, LONGEST)
    return tuple(random_step(dice, lanes) for _ in range(length))


def depth(block: Sequence[Step]) -> int:
    """Entries that a block leaves on the condition stack."""
    change = {"SFPPUSHC": 1, "SFPPOPC": -1}
    return sum(change.get(one.key[0], 0) for one in block)


def _emit(blocks: Blocks, source: int | None, prng: int, constants: list[int], data: bytes) -> Case:
    threads = [Thread(i) for i in range(3)]
    _feed(threads[0], prng)
    _compute(threads[1], blocks, source, constants)
    threads[2].wait(COMPUTED)
    dump_dst(threads[2], OUTPUT)
    for thread in threads:
        finish(thread)
    regions = (("Dst", OUTPUT, 4 * _DATUMS),)
    return Case(image(threads, {INPUT: data}), regions=regions, name="vector")


def _feed(thread: Thread, prng: int) -> None:
    config = Config().set(cf.PRNG_SEED_Seed_Val, prng)
    thread.configure(config)
    fill_dst(thread, INPUT)
    thread.signal(FILLED)


def _compute(thread: Thread, blocks: Blocks, source: int | None, constants: list[int]) -> None:
    thread.wait(FILLED)
    config = Config().set(cf.ALU_ACC_CTRL_SFPU_Fp32_enabled, int(source is None))
    config.set(cf.ALU_FORMAT_SPEC_REG1_SrcB, source or 0)
    thread.configure(config)
    thread.setc16(dict(zip(_INCREMENT_FIELDS, INCREMENTS, strict=True)))
    for number, block in enumerate(blocks):
        _begin(thread, number, constants[4 * number : 4 * number + 4])
        for one in block:
            for word in one.words:
                thread.push_word(word)
        _end(thread, number, depth(block))
    thread.signal(COMPUTED)


def _begin(thread: Thread, number: int, constants: list[int]) -> None:
    """All lanes on, no lane configuration, LReg11-14 set, LReg0-7 from the block's slots."""
    thread.push("SETRWC", bit_mask=15)
    thread.push("SFPENCC", instr_mod1=10, imm12_math=3)
    thread.push("SFPCONFIG", config_dest=15, instr_mod1=1)
    for register, value in zip(range(11, 15), constants, strict=True):
        thread.push("SFPLOADI", lreg_ind=0, instr_mod0=10, imm16=value & 0xFFFF)
        thread.push("SFPLOADI", lreg_ind=0, instr_mod0=8, imm16=value >> 16)
        thread.push("SFPCONFIG", config_dest=register)
    for k in range(LREGS):
        where = address(SLOTS * number + k)
        thread.push("SFPLOAD", lreg_ind=k, instr_mod0=_RAW, dest_reg_addr=where)


def _end(thread: Thread, number: int, pops: int) -> None:
    """Store 1.0 under the lane masks, empty the stack, store LReg0-7."""
    thread.push("SETRWC", bit_mask=15)
    for k in range(MASKS):
        if k <= pops:
            where = address(SLOTS * number + LREGS + k)
            thread.push("SFPSTORE", lreg_ind=_ONE, instr_mod0=_RAW, dest_reg_addr=where)
        if k < pops:
            thread.push("SFPPOPC")
    for _ in range(pops - MASKS):
        thread.push("SFPPOPC")
    thread.push("SFPENCC", instr_mod1=10, imm12_math=3)
    for k in range(LREGS):
        where = address(SLOTS * number + k)
        thread.push("SFPSTORE", lreg_ind=k, instr_mod0=_RAW, dest_reg_addr=where)


def explain(at: int) -> str:
    """Block, register and lane of an address of the dump."""
    cell = (at - OUTPUT) // 2
    raw, column = divmod(cell, 16)
    row = (raw >> 4) << 3 | raw & 7
    slot = 2 * (row >> 2) + (column & 1)
    block, k = divmod(slot, SLOTS)
    what = f"LReg{k}" if k < LREGS else f"lane mask after {k - LREGS} pops"
    half = "low" if raw & 8 else "high"
    return f"block {block} {what} lane {8 * (row & 3) + column // 2} ({half} half)"
