"""Where a tile comes from: its format in L1, the unpacker's configuration, its bytes."""

from dataclasses import dataclass

import numpy as np

from bhemu.tensix import config_fields as cf
from random_programs import operands
from random_programs.datapath import unpacker
from random_programs.dice import Dice
from random_programs.thread import Config

ROOM = 0x8000  # bytes of a tile's source in L1
FP8, E4M3, INT8, UINT8 = 10, 26, 14, 30  # the fifth bit marks the variant
TO_SRC = (
    *((0, 1), (0, 4), (0, 5), (1, 1), (5, 5), (6, 6), (7, 7), (15, 15), (9, 9)),
    *((FP8, FP8), (E4M3, E4M3), (INT8, INT8), (UINT8, UINT8)),
)
"""Pairs (L1 as, Src as) that ttsim accepts."""
TO_DST = ((0, 0), (0, 4), (8, 8))
"""Pairs straight to Dst."""
_BITS = {0: 32, 1: 16, 2: 8, 3: 8, 7: 4, 15: 2}
_BFP = (6, 7, 15)
_NO_MOVE = (INT8, UINT8)  # cells that MOVA2D takes only as another format
_SHAPES = {0: operands.FP32, 1: operands.FP16, 5: operands.BF16, 8: operands.FP32}
_SHAPES |= {9: operands.BF16}
_ROWS = 64


def bits_of(code: int) -> int:
    """Bits of a datum in L1."""
    code &= 15
    return _BITS[code] if code in (7, 15) else _BITS[code & 3] if code & 3 < 3 else 8


@dataclass(frozen=True)
class Source:
    """One tile's way through an unpacker; `exact`: read back with all bits of a cell."""

    which: int
    to_dst: bool
    source: int
    target: int
    x: int
    y: int
    z: int
    haloize: bool
    tileize: int
    forced: int | None
    context: int
    exact: bool
    row: int
    strides: tuple[int, int]
    add_counters: bool

    @property
    def form(self) -> str:
        """The pair of formats and where it goes."""
        where = "Dst" if self.to_dst else "SrcB" if self.which else "SrcA"
        return f"{self.source} -> {self.target} {where}"

    @property
    def mode(self) -> str:
        """What is special."""
        parts = ["transpose"] if self.haloize else []
        parts += ["tilize"] if self.tileize else []
        parts += ["forced exponent"] if self.forced is not None else []
        parts += ["context 1"] if self.context else []
        return ", ".join(parts)

    def span(self, dice: Dice) -> tuple[int, int]:
        """First datum (X0) and count that stay inside the source and the target rows."""
        aligned = 128 // bits_of(self.source) if self.haloize or self.tileize else 1
        first = aligned * dice.below(max(64 // aligned, 1)) if dice.chance(3) else 0
        most = 16 * (_ROWS - self.row - 24) if self.which or self.to_dst else 768
        count = dice.between(1, most) if dice.chance(2) else 16 * dice.between(1, most // 16)
        return first, min(count, 1024 - first)

    def config(self, at: int, number: int) -> Config:
        """Config words of the unpacker for tile `number`, whose bytes start at `at`."""
        config = Config()
        unpacker(config, self.which, self.source, self.target, at, to_dst=self.to_dst)
        descriptor, base, other, plain = _WORDS[self.which]
        config.words[descriptor.word] = self.x << 16 | 1 << 4 | self.source & 15
        config.words[descriptor.word + 1] = self.z << 16 | self.y
        config.set(plain, 1)
        if self.context:
            config.words[base.word] = 0
            config.set(other, (at >> 4) - 1)
        self._targets(config, number)
        e4m3 = int(self.source == E4M3)
        config.set(cf.THCON_SEC0_REG1_Unp_LF8_4b_exp, e4m3)
        config.set(cf.THCON_SEC1_REG1_Unp_LF8_4b_exp, e4m3)
        config.set(cf.ALU_FORMAT_SPEC_REG0_SrcA, 4).set(cf.ALU_FORMAT_SPEC_REG1_SrcB, 4)
        unsigned = int(self.source == UINT8)
        config.set(cf.ALU_FORMAT_SPEC_REG0_SrcAUnsigned, unsigned)
        config.set(cf.ALU_FORMAT_SPEC_REG0_SrcBUnsigned, unsigned)
        return config

    def _targets(self, config: Config, number: int) -> None:
        """Where the datums go: rows of Src, or the rows of tile `number` in Dst."""
        y, z = self.strides
        if self.which:
            config.set(cf.UNP1_ADDR_CTRL_ZW_REG_1_Zstride, z)
            return
        config.set(cf.UNP0_ADDR_CTRL_XY_REG_1_Ystride, y)
        config.set(cf.UNP0_ADDR_CTRL_ZW_REG_1_Zstride, z)
        first = 64 + 16 * (self.row + (_ROWS * number if self.to_dst else 0))
        for address, width, to_dst in _CONTEXTS:
            config.set(address, first).set(width, self.x).set(to_dst, int(self.to_dst))
        config.set(cf.THCON_SEC0_REG2_Disable_zero_compress_cntx1, 1)
        config.set(cf.THCON_SEC0_REG2_Haloize_mode, int(self.haloize))
        config.set(cf.UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr, int(self.add_counters))
        config.set(cf.UNP0_FORCED_SHARED_EXP_shared_exp, self.forced or 0)
        config.set(cf.THCON_SEC0_REG2_Force_shared_exp, int(self.forced is not None))
        if self.tileize:
            config.set(cf.THCON_SEC0_REG2_Tileize_mode, 1)
            config.set(cf.THCON_SEC0_REG2_Shift_amount_cntx0, self.tileize >> 4 & 15)
            config.set(cf.THCON_SEC0_REG2_Shift_amount_cntx1, self.tileize >> 8 & 15)


_WORDS = (
    (
        cf.THCON_SEC0_REG0_TileDescriptor,
        cf.THCON_SEC0_REG3_Base_address,
        cf.THCON_SEC0_REG3_Base_cntx1_address,
        cf.THCON_SEC0_REG2_Disable_zero_compress_cntx1,
    ),
    (
        cf.THCON_SEC1_REG0_TileDescriptor,
        cf.THCON_SEC1_REG3_Base_address,
        cf.THCON_SEC1_REG3_Base_cntx1_address,
        cf.THCON_SEC1_REG2_Disable_zero_compress_cntx1,
    ),
)
_CONTEXTS = (
    (
        cf.THCON_SEC0_REG5_Dest_cntx0_address,
        cf.THCON_SEC0_REG5_Tile_x_dim_cntx0,
        cf.THCON_SEC0_REG2_Unpack_if_sel_cntx0,
    ),
    (
        cf.THCON_SEC0_REG5_Dest_cntx1_address,
        cf.THCON_SEC0_REG5_Tile_x_dim_cntx1,
        cf.THCON_SEC0_REG2_Unpack_if_sel_cntx1,
    ),
)


def random_source(dice: Dice, exact: bool) -> Source:
    """A tile of a random format and geometry that ttsim accepts."""
    to_dst = dice.chance(5)
    which = 0 if to_dst else dice.below(2)
    pairs: tuple[tuple[int, int], ...] = TO_DST if to_dst else TO_SRC
    if not exact and not to_dst:
        refused = (*_NO_MOVE, 15, FP8, E4M3) if which else _NO_MOVE
        pairs = tuple(pair for pair in TO_SRC if pair[1] not in refused)
    source, target = dice.pick(pairs)
    plain = which == 1 or to_dst
    tileize = 0
    if not plain and bits_of(source) >= 8 and dice.chance(4):
        tileize = 16 * dice.between(1, 32)
    haloize = not plain and dice.chance(4)
    # With these two a datum is read from 16-byte boundaries: rows of 16 bytes in any format.
    unit = 128 // bits_of(source) if haloize or tileize else 16
    row_size = 16 * (bits_of(target) // 8 or 1)
    # SrcA is written in bursts of up to 8 rows; SrcB and Dst must not be left by any counter.
    rows = ((0, 1), (0, 1)) if to_dst else ((0,), (0, 1, 2, 3)) if which else ((0, 8, 16),) * 2
    return Source(
        which=which,
        to_dst=to_dst,
        source=source,
        target=target,
        x=max(unit, 16) * dice.between(1, 256 // max(unit, 16)),
        y=dice.between(1, 4),
        z=dice.between(1, 4),
        haloize=haloize,
        tileize=tileize,
        forced=dice.below(256) if source in _BFP and not which and dice.chance(2) else None,
        context=dice.below(2),
        exact=exact,
        row=8 * dice.below(3),
        strides=(row_size * dice.pick(rows[0]), row_size * dice.pick(rows[1])),
        add_counters=not plain and bool(dice.below(2)),
    )


def contents(dice: Dice, source: Source) -> bytes:
    """ROOM bytes of the tile's format; a block format starts with its exponents."""
    code = source.source
    if code in _SHAPES:
        shape = _SHAPES[code]
        kind = np.uint32 if shape.bits == 32 else np.uint16
        return operands.mixed(dice, ROOM // (shape.bits // 8), shape).astype(kind).tobytes()
    data = dice.array(ROOM, 256)
    if code in _BFP and source.forced is None:
        exponents = source.x * source.y * source.z // 16
        near = 120 + dice.array(exponents, 16)
        data[:exponents] = np.where(dice.array(exponents, 4) == 0, data[:exponents], near)
    return data.astype(np.uint8).tobytes()
