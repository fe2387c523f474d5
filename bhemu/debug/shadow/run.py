"""A run followed in float64 beside itself: what its steps add to errors, from the words of L1 on.

Followed is what every cell of Src and Dst and every lane of the vector unit would hold if nothing
were rounded, and what each step has added to the difference. A constant that a core or a word gives
is exact, and so is what other words than those of `matrix.py`, `memory.py` and `vector.py` write.
What cannot be followed is no number (NaN) from there on, and `unfollowed` says why.

Of products in Dst the parts do not add up to what Dst holds: the rest is what the sums have lost.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from bhemu.debug.shadow import matrix, memory, vector
from bhemu.debug.shadow.numbers import (
    DECODED,
    FLOAT,
    MOST_WORDS,
    RAW,
    SUM,
    TRUE,
    VECTOR,
    Floats,
    Ints,
    Words,
    reread,
    rest,
)
from bhemu.debug.shadow.packed import Packed
from bhemu.jit.plain import plain
from bhemu.tensix.dest import LOW_HALF, adj32
from bhemu.tensix.insn import decode
from bhemu.tensix.status import DONE
from bhemu.tensix.units.matrix import operands
from bhemu.tile import Tile

After = Callable[[], None]
_UNITS = ("matrix", "vector", "unpack", "pack")
_LREGS, _LANES = 17, 32


class Place(NamedTuple):
    """A word of a core's code."""

    core: int
    pc: int
    word: int


class Shadow:
    """Follows the words of a tile; `packed` are the places of L1 whose datums are kept."""

    def __init__(self, tile: Tile, packed: Iterable[Packed] = ()) -> None:
        self.s = tile.state
        self.packed = list(packed)
        self.src = np.zeros((2, 2, 64, 16))
        self.dst = np.zeros((VECTOR + 3, 1024, 16))
        self.dst_kind = np.full((1024, 16), RAW, np.uint8)
        self.lane = np.zeros((VECTOR + 3, _LREGS, _LANES))
        self.lane_kind = np.full((_LREGS, _LANES), RAW, np.uint8)
        # Half a constant (mode of SFPLOADI) beside what was not followed, and the register then.
        self.halves: dict[int, tuple[int, Words]] = {}
        self.words: list[Place] = []
        self.places: dict[str, Counter[Place]] = {}
        self.unfollowed: Counter[tuple[str, Place]] = Counter()
        self._number: dict[Place, int] = {}
        self._valid = np.zeros(1024, bool)
        tile.backend.table.observe(self._before, self._finish)

    def _before(self, t: int, word: int) -> After | None:
        cls = decode(word)
        if cls is None or cls.unit not in _UNITS:
            return None
        s = self.s
        kept = s.detail.copy()
        valid = (s.dst_valid & 1) != 0
        self.dst[:, self._valid & ~valid] = 0.0
        self.dst_kind[self._valid & ~valid] = RAW
        self._valid = valid
        try:
            with np.errstate(all="ignore"):
                return self._of(cls, t, word)
        finally:
            s.detail[:] = kept

    def _of(self, cls: Any, t: int, word: int) -> After | None:
        if self.s.route[0] and cls.unit != "pack":
            return vector.scheduled(self, t, word)
        if cls.unit == "vector":
            return vector.follow(self, cls, t, word)
        found = None
        if cls.name == "PACR":
            return memory.pack(self, t, word)
        if cls.name == "UNPACR":
            found = memory.unpack(self, t, word)
        elif cls.unit == "matrix":
            found = matrix.follow(self, cls, t, word)
        return found or self.other(t)

    def _finish(self, after: After | None, status: int) -> None:
        if status == DONE and after is not None:
            with np.errstate(all="ignore"):
                after()

    # Who

    def place(self, t: int, word: int) -> Place:
        """The word that thread `t` executes."""
        return Place(int(self.s.gate_core[t]), int(self.s.gate_pc[t]), word)

    def saw(self, step: str, t: int, word: int) -> None:
        """A word that does this step."""
        self.places.setdefault(step, Counter())[self.place(t, word)] += 1

    def cannot(self, why: str, t: int, word: int) -> None:
        """A word whose result is not followed."""
        self.unfollowed[why, self.place(t, word)] += 1

    def part_of(self, place: Place) -> int:
        """The part in which the errors of a word of the vector unit are added up."""
        if place not in self._number:
            if len(self.words) < MOST_WORDS:
                self.words.append(place)
            self._number[place] = VECTOR + len(self.words) - 1
            if VECTOR + len(self.words) > len(self.dst):
                self.dst = np.concatenate([self.dst, np.zeros_like(self.dst)])
                self.lane = np.concatenate([self.lane, np.zeros_like(self.lane)])
        return self._number[place]

    # Dst

    def held(self, rows: Ints, wide: int, five: bool) -> Floats:
        """Floats in storage rows of Dst."""
        if five and not wide:
            s = self.s
            cells = np.where(s.dst_valid[rows][:, None] & 1, s.dst[rows], 0).astype(np.uint32)
            exponent, mantissa = cells & 0x1F, cells >> 5 & 0x3FF
            value = np.ldexp(
                mantissa / 1024 + (exponent > 0), np.maximum(exponent, 1).astype(int) - 15
            )
            values: Floats = np.where(cells >> 15, -value, value)
            return values
        with np.errstate(invalid="ignore"):
            wider: Floats = self.bits(rows, wide).view(np.float32).astype(np.float64)
            return wider

    def bits(self, rows: Ints, wide: int) -> Any:
        """Patterns in storage rows of Dst, uint32."""
        s = self.s
        there = s.dst_valid[rows][:, None] & 1
        cells = np.where(there, s.dst[rows], 0).astype(np.uint32)
        bits = (cells & 0x8000 | (cells & 0xFF) << 7 | cells >> 8 & 0x7F) << 16
        if wide:
            bits |= np.where(there, s.dst[rows + LOW_HALF], 0).astype(np.uint32)
        return bits

    @staticmethod
    def storage(first: int, n: int, wide: int) -> Ints:
        """Storage rows of `n` rows of Dst."""
        rows = (first + np.arange(n)) & 0x3FF
        return np.array([plain(adj32)(int(row)) for row in rows]) if wide else rows

    def numbers(self, at: Any, kind: int, held: Floats, bits: Any = None) -> Floats:
        """Numbers of cells of Dst that hold `held` where their bits are read as `kind`.

        What sums have lost on the way is added. Cells of another kind are followed by their `bits`.
        """
        made: Floats = self.dst[(slice(None), *at)]
        kinds = self.dst_kind[at]
        made[:, kinds == RAW] = 0.0
        made[TRUE, kinds == RAW] = held[kinds == RAW]
        for other in DECODED:
            mixed = (kinds == other) & (other != kind)
            if mixed.any() and bits is not None:
                made[:, mixed] = reread(made, bits, other, kind)[:, mixed]
            elif mixed.any():
                made[TRUE, mixed] = np.nan
        made[SUM] += rest(held, made)
        return made

    def put(self, at: Any, kind: Any, made: Floats) -> None:
        """Set cells of Dst."""
        self.dst[(slice(None), *at)] = 0.0
        self.dst[(slice(len(made)), *at)] = made
        self.dst_kind[at] = kind

    def other(self, t: int) -> After:
        """A word that is not followed: what it leaves in Dst or Src is taken as exact."""
        s = self.s
        dst, src = s.dst.copy(), s.src.copy()
        wide = int(plain(operands.wide_dst)(s, t))

        def after() -> None:
            rows = np.flatnonzero((s.dst != dst).any(axis=1))
            if wide:
                rows = np.unique(rows & ~LOW_HALF)
            self.dst[:, rows] = 0.0
            self.dst_kind[rows] = RAW
            changed = s.src != src
            self.src[changed] = matrix.cells_of(s.src[changed], matrix.EIGHT).value()

        return after

    # Lanes

    def lanes(self, reg: int) -> Any:
        """Bits of a register of the vector unit, uint32."""
        return self.s.lreg[reg & 15] if reg < _LREGS - 1 else self.s.lreg16[0]

    def lane_numbers(self, reg: int, kind: int) -> Floats:
        """Numbers of the lanes of a register read as `kind`."""
        bits, kinds = self.lanes(reg), self.lane_kind[reg]
        made, held = self.lane[:, reg].copy(), DECODED[kind](bits)
        found = made.copy()
        found[:, kinds == RAW] = 0.0
        found[TRUE, kinds == RAW] = held[kinds == RAW]
        for other in DECODED:
            mixed = (kinds == other) & (other != kind)
            if mixed.any():
                found[:, mixed] = reread(made, bits, other, kind)[:, mixed]
        return found

    def lane_exact(self, reg: int) -> Any:
        """Which lanes hold bits that are what they would be if nothing had been rounded."""
        kinds, made = self.lane_kind[reg], self.lane[:, reg]
        same = kinds == RAW
        for kind, decoded in DECODED.items():
            clean = (made[1:] == 0).all(axis=0) & (made[TRUE] == decoded(self.lanes(reg)))
            same |= (kinds == kind) & clean
        return same

    def lose_lanes(self, lanes: Any) -> None:
        """Registers and lanes whose numbers are not followed, (16, 32) bool."""
        self.lane[TRUE, : len(lanes)][lanes] = np.nan
        self.lane_kind[: len(lanes)][lanes] = FLOAT

    def lose_rows(self, rows: Ints) -> None:
        """Storage rows of Dst whose numbers are not followed."""
        self.dst[TRUE, rows] = np.nan
        self.dst_kind[rows] = FLOAT
