"""Random walks of the address counters, probed by single UNPACRs and PACRs."""

from collections.abc import Sequence

import numpy as np

from bhemu.oracle.libttsim import Case
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import assemble
from random_programs.datapath import (
    COMPUTED,
    FILLED,
    FP32,
    INPUT,
    dump_dst,
    fill_dst,
    finish,
    image,
    packer,
    unpacker,
)
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step, step, steps_of
from random_programs.thread import Config, Thread

STEPS = 400
PACKED, DUMP = 0xC0000, 0x170000  # rows that the probes of thread 2 pack; Dst at the end
WORDS = 0x20000  # words of the array that the probes of thread 0 read
_X, _Y, _Z, _W = range(4)
_SIZES = (1 << 18, 1 << 13, 1 << 8, 1 << 8)  # ADCs, Blackhole ISA
_DIM, _FACE = 16, 4  # x dimension; y and z dimension
_STEP, _FACES = 1, 16  # rows of Dst that one Y1, one Z1 is
_ROWS = 400  # of 512 32-bit rows: room for the longest run
_EDGES = (0, 1, 7, 15, 16, 63, 255, 256, 1023, 4096, 8191, 0xFFFF)
UNPACKER, PACKER = 0, 2
Slot = tuple[int, int, int]  # engine, channel, dimension


class Walk:
    """The counters of one thread as the instructions leave them."""

    def __init__(self) -> None:
        self.value: dict[Slot, int] = {}
        self.carriage: dict[Slot, int] = {}

    def get(self, slot: Slot) -> int:
        """The counter."""
        return self.value.get(slot, 0)

    def set(self, slot: Slot, value: int) -> None:
        """Counter and carriage-return value."""
        self.value[slot] = self.carriage[slot] = value % _SIZES[slot[2]]

    def add(self, slot: Slot, value: int) -> None:
        """The counter only."""
        self.value[slot] = (self.get(slot) + value) % _SIZES[slot[2]]

    def advance(self, slot: Slot, value: int) -> None:
        """The carriage-return value, and the counter from it."""
        self.set(slot, self.carriage.get(slot, 0) + value)


def generate(seed: int, index: int) -> Plan:
    """A block on thread 0 that unpacks, a block on thread 2 that packs."""
    dice = Dice("adc", seed, index)
    unpacks, packs = Walk(), Walk()
    blocks = (
        tuple(_unpack_step(dice, unpacks) for _ in range(STEPS)),
        tuple(_pack_step(dice, packs) for _ in range(STEPS)),
    )
    probes = [one for block in blocks for one in block if one.key[0] in ("UNPACR", "PACR")]
    return Plan("adc", seed, index, blocks, _emit, 16 * len(probes), explain)


def _random(dice: Dice, walk: Walk) -> Step:
    """One instruction that changes counters."""
    engines = dice.between(1, 7)
    chosen = [e for e in range(3) if engines >> e & 1]
    kind = dice.below(8)
    if kind == 0:
        dimension, channel, value = dice.below(4), dice.below(2), dice.pick(_EDGES)
        for e in chosen:
            walk.set((e, channel, dimension), value)
        fields = {"dimension_index": dimension, "channel_index": channel, "value": value}
        return step("SETADC", cnt_set_mask=engines, **fields)
    if kind == 1:
        start, end = dice.below(32), dice.below(64)
        for e in chosen:
            walk.set((e, 0, _X), start)
            walk.set((e, 1, _X), end)
        return step("SETADCXX", cnt_set_mask=engines, x_start=start, x_end2=end)
    return _pair(dice, walk, engines, chosen)


def _pair(dice: Dice, walk: Walk, engines: int, chosen: Sequence[int]) -> Step:
    """SETADC, INCADC and ADDRCR of X and Y, or of Z and W, of both channels."""
    name = dice.pick(("SETADC", "INCADC", "ADDRCR"))
    first = dice.pick((_X, _Z))
    mask = 15 if name == "INCADC" else dice.between(1, 15)
    values = [dice.below(8) for _ in range(4)]
    change = {"SETADC": walk.set, "INCADC": walk.add, "ADDRCR": walk.advance}[name]
    for e in chosen:
        for i, value in enumerate(values):
            if mask >> i & 1:
                change((e, i >> 1, first + (i & 1)), value)
    fields = dict(zip(("ch0_x", "ch0_y", "ch1_x", "ch1_y"), values, strict=True))
    if name != "INCADC":
        fields["bit_mask"] = mask
    return step(name + ("XY" if first == _X else "ZW"), cnt_set_mask=engines, **fields)


def _put(walk: Walk, slot: Slot, value: int) -> int:
    """The word of a SETADC that a probe needs first."""
    walk.set(slot, value)
    engine, channel, dimension = slot
    fields = {"dimension_index": dimension, "channel_index": channel, "value": value}
    return assemble("SETADC", cnt_set_mask=1 << engine, **fields)


def _unpack_step(dice: Dice, walk: Walk) -> Step:
    """A change, or an UNPACR of what the counters select, brought into bounds."""
    if not dice.chance(4):
        return _random(dice, walk)
    u, words = UNPACKER, []
    x, y, z, w = (walk.get((u, 0, d)) for d in range(4))
    for dimension in (_W, _Z, _X, _Y):
        if x + _DIM * (y + _FACE * (z + _FACE * w)) >= WORDS - 64:
            words.append(_put(walk, (u, 0, dimension), dice.below(4)))
            x, y, z, w = (walk.get((u, 0, d)) for d in range(4))
    if x >= 0xFF00:  # SETADC holds 16 bits
        words.append(_put(walk, (u, 0, _X), 3))
        x = 3
    if not x <= walk.get((u, 1, _X)) < x + 64:
        words.append(_put(walk, (u, 1, _X), x + dice.below(48)))
    if walk.get((u, 1, _W)):
        words.append(_put(walk, (u, 1, _W), 0))
    for dimension in (_Y, _Z):
        if _STEP * walk.get((u, 1, _Y)) + _FACES * walk.get((u, 1, _Z)) >= _ROWS:
            words.append(_put(walk, (u, 1, dimension), dice.below(8)))
    mode = dice.below(256)
    for slot, shift in (((u, 0, _Z), 0), ((u, 0, _Y), 2), ((u, 1, _Z), 4), ((u, 1, _Y), 6)):
        walk.add(slot, mode >> shift & 3)
    words.append(assemble("UNPACR", last=1, ovrd_thread_id=1, addr_mode=mode))
    return steps_of(words, ("UNPACR", "counters", "0 -> 0 Dst"))


def _pack_step(dice: Dice, walk: Walk) -> Step:
    """A change, or a PACR of one row; Y and Z of the Dst side and Y of L1 are as they are."""
    if not dice.chance(4):
        return _random(dice, walk)
    words = [assemble("SETADCXX", cnt_set_mask=4, x_end2=15)]
    walk.set((PACKER, 0, _X), 0)
    walk.set((PACKER, 1, _X), 15)
    words.append(_put(walk, (PACKER, 1, _Z), 0))
    words.append(_put(walk, (PACKER, 1, _W), 0))
    mode = dice.below(4)
    _modes(walk, mode)
    words.append(assemble("PACR", last=1, read_intf_sel=1, addr_mode=mode))
    return steps_of(words, ("PACR", "counters", "0 -> 0"))


# ADDR_MOD_PACK sections: Y of Dst (increment, CR, clear), Y of L1, Z of Dst.
MODES = (
    ((1, 0, 0), (1, 0, 0), (0, 0)),
    ((2, 1, 0), (3, 0, 0), (1, 0)),
    ((0, 0, 1), (5, 0, 0), (1, 0)),
    ((15, 0, 0), (0, 0, 1), (0, 1)),
)


def _modes(walk: Walk, mode: int) -> None:
    for slot, (increment, carriage, clear) in (
        ((PACKER, 0, _Y), MODES[mode][0]),
        ((PACKER, 1, _Y), MODES[mode][1]),
        ((PACKER, 0, _Z), (MODES[mode][2][0], 0, MODES[mode][2][1])),
    ):
        if clear:
            walk.set(slot, 0)
        elif carriage:
            walk.advance(slot, increment)
        else:
            walk.add(slot, increment)


def _emit(blocks: Blocks) -> Case:
    threads = [Thread(i) for i in range(3)]
    first, middle, last = threads
    fill_dst(first, INPUT)
    _unpacks(first, blocks[0])
    first.signal(FILLED)
    middle.wait(FILLED)
    middle.signal(COMPUTED)
    last.wait(COMPUTED)
    _packs(last, blocks[1])
    last.push("SETC16", setc16_reg=tf.ADDR_MOD_PACK_SEC0_YsrcIncr.word)
    dump_dst(last, DUMP)
    for thread in threads:
        finish(thread)
    data = np.arange(WORDS, dtype=np.uint32) * np.uint32(0x00010081)
    regions = (("packed rows", PACKED, 0x80000), ("Dst", DUMP, 0x8000))
    return Case(image(threads, {INPUT: data.tobytes()}), regions=regions, name="adc")


def _unpacks(thread: Thread, block: Sequence[Step]) -> None:
    config = Config()
    unpacker(config, 0, FP32, FP32, INPUT, to_dst=True)
    config.words[cf.THCON_SEC0_REG0_TileDescriptor.word] = _DIM << 16 | 1 << 4
    config.words[cf.THCON_SEC0_REG0_TileDescriptor.word + 1] = _FACE << 16 | _FACE
    config.set(cf.THCON_SEC0_REG5_Tile_x_dim_cntx0, _DIM)
    config.set(cf.UNP0_ADDR_CTRL_XY_REG_1_Ystride, 64 * _STEP)
    config.set(cf.UNP0_ADDR_CTRL_ZW_REG_1_Zstride, 64 * _FACES)
    thread.configure(config)
    _start(thread)
    for one in block:
        for word in one.words:
            thread.push_word(word)


def _packs(thread: Thread, block: Sequence[Step]) -> None:
    config = Config()
    packer(config, FP32, FP32, PACKED, wide=True)
    config.set(cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride, 64 * 16)
    config.set(cf.PCK0_ADDR_CTRL_ZW_REG_0_Wstride, 64 * 48)
    config.set(cf.PCK0_ADDR_CTRL_XY_REG_1_Ystride, 64)
    thread.configure(config)
    for section, (y, target, z) in enumerate(MODES):
        names = dict(zip(("YsrcIncr", "YsrcCR", "YsrcClear"), y, strict=True))
        names |= dict(zip(("YdstIncr", "YdstCR", "YdstClear"), target, strict=True))
        names |= dict(zip(("ZsrcIncr", "ZsrcClear"), z, strict=True))
        prefix = f"ADDR_MOD_PACK_SEC{section}_"
        thread.setc16({getattr(tf, prefix + name): value for name, value in names.items()})
    _start(thread)
    for one in block:
        for word in one.words:
            thread.push_word(word)
    thread.sync()


def _start(thread: Thread) -> None:
    """All counters of the thread to 0."""
    thread.push("SETADCXY", bit_mask=15, cnt_set_mask=7)
    thread.push("SETADCZW", bit_mask=15, cnt_set_mask=7)


def explain(at: int) -> str:
    """The packed row, or the Dst cell, of an address."""
    if at >= DUMP:
        row, column = divmod((at - DUMP) // 2, 16)
        return f"Dst raw row {row} column {column}"
    return f"packed row {(at - PACKED) // 64} column {(at - PACKED) % 64 // 4}"
