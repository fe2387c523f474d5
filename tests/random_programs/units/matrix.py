"""Matrix programs: products, element-wise operations, pools, moves and clears on a random Dst."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    SECOND,
    dump_dst,
    fill_dst,
    finish,
    image,
    start_unpackers,
    unpacker,
)
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step
from random_programs.thread import Config, Thread
from random_programs.units.counters import AddrMod, Counters, random_addr_mods
from random_programs.units.matrix_steps import Math, random_step
from random_programs.units.pack import dst_words
from random_programs.units.unpack_source import E4M3, FP8, INT8, UINT8, bits_of

PAIRS, LENGTH = 12, 16  # pairs of Src banks; instructions on each
ROOM = 0x1200  # bytes of an operand tile
KINDS: tuple[tuple[str, bool, tuple[tuple[int, int], ...]], ...] = (
    ("bf16", False, ((0, 5), (5, 5), (6, 6), (7, 7))),
    ("32-bit", True, ((0, 5), (5, 5), (6, 6), (7, 7), (0, 4), (0, 4))),
    ("fp16", False, ((1, 1), (1, 1), (0, 1), (FP8, FP8), (E4M3, E4M3))),
    ("32-bit", True, ((1, 1), (0, 1), (FP8, FP8), (E4M3, E4M3))),
    ("32-bit", True, ((INT8, INT8),)),
    ("32-bit", True, ((UINT8, UINT8),)),
    ("bf16", False, ((0, 5), (0, 4), (15, 15), (5, 5))),
)
"""Cells of Dst, ALU_ACC_CTRL_Fp32_enabled, and pairs (L1 as, Src as)."""
_OFFSETS = (0, 0, 64, 256, 512)  # DEST_TARGET_REG_CFG_MATH_Offset
_SHAPES = {0: operands.FP32, 1: operands.FP16, 5: operands.BF16}
_BFP = (6, 7, 15)


@dataclass(frozen=True)
class Setting:
    """What holds for a whole program."""

    wide: bool
    integer: bool
    unsigned: bool
    keep_denormals: bool
    offset: int
    mods: Sequence[AddrMod]


@dataclass(frozen=True)
class Pair:
    """Formats of SrcA and SrcB, how the banks are freed; `ones`: SrcB holds 1.0 for pooling."""

    a: tuple[int, int]
    b: tuple[int, int]
    release: int
    ones: bool


def generate(seed: int, index: int) -> Plan:
    """A block for each pair of Src banks."""
    dice = Dice("matrix", seed, index)
    kind, wide, formats = KINDS[index % len(KINDS)]
    integer = formats[0][0] in (INT8, UINT8)
    setting = Setting(
        wide=wide,
        integer=integer,
        unsigned=formats[0][0] == UINT8,
        keep_denormals=dice.chance(4),
        offset=dice.pick(_OFFSETS),
        mods=random_addr_mods(dice),
    )
    dst = _integers(dice) if integer else dst_words(dice, kind).tobytes()
    pairs = [_pair(dice, formats) for _ in range(PAIRS)]
    blocks = tuple(tuple(_steps(dice, setting, pair)) for pair in pairs)
    data = b"".join(_tile(dice, pair.a[0], ones=False) for pair in pairs)
    data += b"".join(_tile(dice, pair.b[0], ones=pair.ones) for pair in pairs)

    def emit(chosen: Blocks) -> Case:
        return _emit(chosen, setting, pairs, dst, data)

    return Plan("matrix", seed, index, blocks, emit, 16384, explain)


def _pair(dice: Dice, formats: Sequence[tuple[int, int]]) -> Pair:
    a, b = dice.pick(formats), dice.pick(formats)
    if a[1] in (1, FP8, E4M3, INT8, UINT8):
        b = a  # narrow exponents only with the same format
    ones = a[1] in (4, 5, 6, 7) and dice.chance(3)
    return Pair(a, (5, 5) if ones else b, dice.below(3), ones)


def _steps(dice: Dice, setting: Setting, pair: Pair) -> list[Step]:
    math = Math(
        a=pair.a[1],
        b=pair.b[1],
        wide=setting.wide,
        integer=setting.integer,
        keep_denormals=setting.keep_denormals,
        offset=setting.offset,
        mods=setting.mods,
        counters=Counters(),
        ones=pair.ones,
    )
    return [random_step(dice, math) for _ in range(LENGTH)]


def _integers(dice: Dice) -> bytes:
    """Sign and magnitude, small or close to the largest."""
    small = dice.array(8192, 1 << 16)
    large = 0x7FFFFFFF - dice.array(8192, 1 << 16)
    magnitude = np.where(dice.array(8192, 4) == 0, large, small)
    words = (magnitude | dice.array(8192, 2) << 31).astype(np.uint32)
    return bytes(words.tobytes())


def _tile(dice: Dice, code: int, *, ones: bool) -> bytes:
    """1024 datums of a format in ROOM bytes."""
    if ones:
        return np.full(ROOM // 2, 0x3F80, np.uint16).tobytes()
    if code in _SHAPES:
        shape = _SHAPES[code]
        size = shape.bits // 8
        # Infinities are rare so that they do not fill whole rows of Dst.
        names = tuple(operands.CLASSES) if dice.chance(3) else operands.FINITE
        patterns = operands.mixed(dice, ROOM // size, shape, names)
        return patterns.astype(np.uint32 if size == 4 else np.uint16).tobytes()
    data = dice.array(ROOM, 256)
    if code in _BFP:
        data[:64] = 118 + dice.array(64, 16)
    assert bits_of(code) <= 8
    return data.astype(np.uint8).tobytes()


def _emit(blocks: Blocks, setting: Setting, pairs: Sequence[Pair], dst: bytes, data: bytes) -> Case:
    threads = [Thread(i) for i in range(3)]
    feeder, mathematician, last = threads
    fill_dst(feeder, INPUT)
    feeder.signal(FILLED)
    mathematician.wait(FILLED)
    _set(mathematician, setting)
    mathematician.signal(FILLED + 0x100)
    feeder.wait(FILLED + 0x100)
    for number, (pair, block) in enumerate(zip(pairs, blocks, strict=True)):
        if block:
            _feed(feeder, pair, number)
            mathematician.push("STALLWAIT", stall_res=0x40, wait_res=0x180)
            for one in block:
                for word in one.words:
                    mathematician.push_word(word)
            _release(mathematician, pair.release, setting.integer)
    mathematician.signal(COMPUTED)
    last.wait(COMPUTED)
    dump_dst(last, OUTPUT)
    for thread in threads:
        finish(thread)
    regions = (("Dst", OUTPUT, 0x8000),)
    return Case(image(threads, {INPUT: dst, SECOND: data}), regions=regions, name="matrix")


def _set(thread: Thread, setting: Setting) -> None:
    config = Config().set(cf.ALU_ACC_CTRL_Fp32_enabled, int(setting.wide))
    config.set(cf.ALU_ACC_CTRL_INT8_math_enabled, int(setting.integer))
    config.set(cf.ALU_FORMAT_SPEC_REG0_SrcAUnsigned, int(setting.unsigned))
    config.set(cf.ALU_FORMAT_SPEC_REG0_SrcBUnsigned, int(setting.unsigned))
    config.set(cf.ALU_ACC_CTRL_Zero_Flag_disabled_src, int(setting.keep_denormals))
    thread.configure(config)
    for section, mod in enumerate(setting.mods):
        thread.setc16(mod.fields(section))
    thread.setc16({tf.DEST_TARGET_REG_CFG_MATH_Offset: setting.offset})
    thread.push("ZEROSRC", src_mask=3, bank_mask=1)
    thread.push("SETRWC", bit_mask=15)


def _feed(thread: Thread, pair: Pair, number: int) -> None:
    config = Config()
    for which, (source, target) in enumerate((pair.a, pair.b)):
        at = SECOND + ROOM * (number + PAIRS * which)
        unpacker(config, which, source, target, at)
        one = (cf.THCON_SEC0_REG1_Unp_LF8_4b_exp, cf.THCON_SEC1_REG1_Unp_LF8_4b_exp)[which]
        config.set(one, int(source == E4M3))
    # The dimensions give the size of the exponents' section: one tile.
    for descriptor in (cf.THCON_SEC0_REG0_TileDescriptor, cf.THCON_SEC1_REG0_TileDescriptor):
        config.words[descriptor.word + 1] = 1 << 16 | 4
    thread.configure(config)
    start_unpackers(thread, to_dst=False)
    for which in range(2):
        fields = {"last": 1, "ovrd_thread_id": 1, "set_dat_valid": 1}
        thread.push("UNPACR", unpack_block_selection=which, **fields)


def _release(thread: Thread, kind: int, integer: bool) -> None:
    """Free both banks: by SETRWC, by CLEARDVALID, or by an instruction that computes."""
    thread.push("SETRWC", bit_mask=15)
    if kind == 0:
        thread.push("SETRWC", clear_ab_vld=3)
    elif kind == 1:
        thread.push("CLEARDVALID", cleardvalid=3)
    else:
        thread.push("ELWADD", dest_accum_en=int(integer), clear_dvalid=3)


def explain(at: int) -> str:
    """Raw row and column of an address of the dump."""
    row, column = divmod((at - OUTPUT) // 2, 16)
    half = "low" if row & 8 else "high"
    wide = (row >> 4) << 3 | row & 7
    return f"Dst raw row {row} column {column} (32-bit row {wide}, {half} half)"
