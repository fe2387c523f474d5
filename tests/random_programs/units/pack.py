"""Packs a Dst of chosen values: every format pair, ReLU, edge masks, L1 accumulation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu.oracle.libttsim import Case
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from random_programs import operands
from random_programs.datapath import FILLED, INPUT, fill_dst, finish, image, packer
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step, step
from random_programs.thread import Config, Thread

VARIANTS = 24
AREA, ROOM = 0xA0000, 0x8000  # packed output of a variant: where and how many bytes
WIDE = (
    *((0, 0), (0, 1), (0, 6), (0, 7), (0, 15), (1, 1), (1, 10), (5, 5)),
    *((6, 6), (6, 7), (8, 8), (9, 9), (14, 14)),
)
"""Pairs (Dst as, L1 as) from 32-bit cells that ttsim accepts."""
HALF = ((1, 0), (1, 1), (1, 5), (1, 10), (2, 6))
"""Pairs from 16-bit cells that hold fp16."""
BRAIN = (
    *((5, 0), (5, 5), (5, 6), (5, 7), (5, 15), (6, 0), (6, 5), (6, 6), (6, 7)),
    *((9, 9), (1, 10)),
)
"""Pairs from 16-bit cells that hold bf16; (1, 10) with Round_10b_mant."""
KINDS = (("32-bit", WIDE), ("fp16", HALF), ("bf16", BRAIN))
_RELU = (0, 1, 2, 5, 6, 8)  # Dst formats with a ReLU
_ACCUMULATE = {0: operands.FP32, 1: operands.FP16, 5: operands.BF16}
_ROWS = {0: 4, 1: 1, 3: 2, 5: 4, 10: 4}  # rows that PACR of an interface selection moves over
_READ = {0: 4, 1: 1, 3: 2, 5: 2, 10: 2}  # rows that it packs


@dataclass(frozen=True)
class Variant:
    """One way to pack: `pair` is (Dst as, L1 as); see the ISA's PACR for the rest."""

    kind: str
    pair: tuple[int, int]
    relu: int
    threshold: int
    select: int
    width: int
    first: int
    unsigned: bool
    masks: tuple[int, int]
    mapping: int
    reads: int
    accumulate: bool
    stride: int

    @property
    def key(self) -> tuple[str, str, str]:
        """Coverage: PACR, what is special, the format pair."""
        parts = [f"relu {self.relu}"] if self.relu else []
        parts += ["L1 accumulate"] if self.accumulate else []
        parts += [f"interfaces {self.select}"] if self.select else []
        parts += ["edge mask"] if self.masks != (0xFFFF, 0xFFFF) else []
        parts += ["unsigned"] if self.unsigned else []
        return "PACR", ", ".join(parts), f"{self.kind} {self.pair[0]} -> {self.pair[1]}"


def generate(seed: int, index: int) -> Plan:
    """24 variants on one Dst; the kind of its cells changes with the index."""
    dice = Dice("pack", seed, index)
    kind, pairs = KINDS[index % len(KINDS)]
    words = dst_words(dice, kind)
    variants = [_variant(dice, kind, pairs[i % len(pairs)]) for i in range(VARIANTS)]
    blocks = tuple(_block(dice, variant) for variant in variants)
    before = _before(dice, variants)
    results = sum(
        _READ[variant.select] * variant.width * len(block)
        for variant, block in zip(variants, blocks, strict=True)
    )

    def emit(chosen: Blocks) -> Case:
        return _emit(chosen, variants, words.tobytes(), before)

    def explain(at: int) -> str:
        number, offset = divmod(at - AREA, ROOM)
        return f"block {number} ({' '.join(variants[number].key)}) byte {offset:#x}"

    return Plan("pack", seed, index, blocks, emit, results, explain)


def encode_bf16(cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Bit order of a 16-bit Dst cell for bf16: sign, mantissa, exponent."""
    return cells & 0x8000 | (cells & 0x7F) << 8 | cells >> 7 & 0xFF


def encode_fp16(cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Bit order of a 16-bit Dst cell for fp16: sign, mantissa, exponent."""
    return cells & 0x8000 | (cells & 0x3FF) << 5 | cells >> 10 & 0x1F


def decode_bf16(cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The inverse of `encode_bf16`."""
    return cells & 0x8000 | (cells & 0xFF) << 7 | cells >> 8 & 0x7F


def words_of_cells(cells: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """512 x 16 words that, unpacked to Dst as 32-bit data, leave `cells` (1024 x 16) there."""
    pairs = cells.reshape(64, 2, 8, 16)  # 8 rows of high halves, then their low halves
    high, low = pairs[:, 0], pairs[:, 1]
    words: npt.NDArray[np.uint32] = (decode_bf16(high) << 16 | low).astype(np.uint32)
    return words.reshape(512, 16)


def dst_words(dice: Dice, kind: str) -> npt.NDArray[np.uint32]:
    """Words that fill Dst with values of a kind: "32-bit", "fp16" or "bf16"."""
    if kind == "32-bit":
        return operands.mixed(dice, 8192, operands.FP32).astype(np.uint32).reshape(512, 16)
    shape, encode = (operands.FP16, encode_fp16), (operands.BF16, encode_bf16)
    layout, order = shape if kind == "fp16" else encode
    return words_of_cells(order(operands.mixed(dice, 16384, layout)).reshape(1024, 16))


def _variant(dice: Dice, kind: str, pair: tuple[int, int]) -> Variant:
    select = dice.pick((0, 0, 0, 1, 3, 5, 10))
    relu = dice.below(4) if pair[0] in _RELU and dice.chance(2) else 0
    if pair[0] == 8:
        relu = min(relu, 1)
    wide_pattern = operands.BF16 if pair[0] in (0, 5, 6) else operands.FP16
    threshold = int(operands.ordinary(dice, 1, wide_pattern)[0]) & 0x7FFF
    edge = dice.chance(4)
    return Variant(
        kind=kind,
        pair=pair,
        relu=relu,
        threshold=threshold,
        select=select,
        width=8 if select == 1 and pair[1] in (0, 1, 5, 8, 9) and dice.chance(3) else 16,
        first=4 * dice.below(32 if kind == "32-bit" else 160),
        unsigned=pair[0] == 14 and dice.chance(2),
        masks=(dice.pick((0, 1, 0xFFFF)), dice.pick((0, 1, 0xFFFF))) if edge else (0xFFFF, 0xFFFF),
        mapping=dice.below(1 << 32) & 0x55555555 if edge else 0,
        reads=dice.between(1, 16),
        accumulate=pair[1] in _ACCUMULATE and dice.chance(3),
        stride=256 if dice.chance(3) else 0,
    )


def _block(dice: Dice, variant: Variant) -> tuple[Step, ...]:
    """PACRs; with a stride now and then the tile ends and the next one starts elsewhere."""
    count = dice.between(16, 96)
    mnemonic, mode, form = variant.key
    steps = []
    for i in range(count):
        last = i == count - 1 or (variant.stride != 0 and dice.chance(8))
        fields = {"last": int(last), "read_intf_sel": variant.select}
        steps.append(step(mnemonic, mode, form, **fields))
    return tuple(steps)


def _before(dice: Dice, variants: Sequence[Variant]) -> bytes:
    """What L1 holds where the output goes: operands to accumulate onto, else random bytes."""
    parts = []
    for variant in variants:
        if variant.accumulate:
            layout = _ACCUMULATE[variant.pair[1]]
            size = layout.bits // 8
            patterns = operands.mixed(dice, ROOM // size, layout)
            parts.append(patterns.astype(np.uint32 if size == 4 else np.uint16).tobytes())
        else:
            parts.append(dice.raw(ROOM // 8).tobytes())
    return b"".join(parts)


def _emit(blocks: Blocks, variants: Sequence[Variant], words: bytes, before: bytes) -> Case:
    threads = [Thread(i) for i in range(3)]
    fill_dst(threads[0], INPUT)
    threads[0].signal(FILLED)
    last = threads[2]
    last.wait(FILLED)
    for number, (variant, block) in enumerate(zip(variants, blocks, strict=True)):
        if block:
            configure(last, variant, AREA + ROOM * number)
            for one in block:
                for word in one.words:
                    last.push_word(word)
            last.sync()
    for thread in threads:
        finish(thread)
    regions = [(f"block {i}", AREA + ROOM * i, ROOM) for i in range(len(variants))]
    return Case(image(threads, {INPUT: words, AREA: before}), regions=regions, name="pack")


def configure(thread: Thread, variant: Variant, at: int) -> None:
    """Config words, counters and increments of a variant whose output starts at `at`."""
    source, target = variant.pair
    wide = variant.kind == "32-bit"
    config = Config()
    packer(config, source, target, at, wide=wide)
    config.set(cf.STACC_RELU_ApplyRelu, variant.relu)
    config.set(cf.STACC_RELU_ReluThreshold, variant.threshold)
    config.set(cf.PCK_DEST_RD_CTRL_Read_unsigned, int(variant.unsigned))
    rounded = target == 10 or (wide and source == 1)
    config.set(cf.PCK_DEST_RD_CTRL_Round_10b_mant, int(rounded and variant.kind != "fp16"))
    config.set(cf.PCK_EDGE_OFFSET_SEC0_mask, variant.masks[0])
    config.set(cf.PCK_EDGE_OFFSET_SEC1_mask, variant.masks[1])
    config.words[cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_0.word] = variant.mapping
    config.set(cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, variant.reads)
    config.set(cf.THCON_SEC0_REG1_Exp_section_size, 24)
    config.set(cf.THCON_SEC0_REG1_Pack_L1_Acc, int(variant.accumulate))
    config.set(cf.THCON_SEC0_REG1_Pac_LF8_4b_exp, int(target == 10))
    config.set(cf.PCK0_ADDR_CTRL_XY_REG_1_Ystride, variant.stride)
    config.set(cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset, variant.first)
    thread.configure(config)
    thread.push("SETADCXY", bit_mask=15, cnt_set_mask=4)
    thread.push("SETADCZW", bit_mask=15, cnt_set_mask=4)
    thread.push("SETADCXX", cnt_set_mask=4, x_end2=variant.width - 1)
    increments = {
        tf.ADDR_MOD_PACK_SEC0_YsrcIncr: _ROWS[variant.select],
        tf.ADDR_MOD_PACK_SEC0_YdstIncr: int(variant.stride != 0),
    }
    thread.setc16(increments)
