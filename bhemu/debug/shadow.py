"""A run followed in float64 beside itself: what unpacking, phases, sums and packing add to errors.

Followed is what every cell of Src and Dst would hold if nothing were rounded from the words of L1
on, and what each step has added to the difference. What other words than UNPACR, MOVA2D, products,
sums and PACR write counts as exact from there on; what the vector unit has computed counts as exact
until an SFPSTORE narrows it.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.jit.plain import plain
from bhemu.memmap import L1_SIZE
from bhemu.tensix import banks, formats, lanes, rwc
from bhemu.tensix.dest import LOW_HALF, adj32
from bhemu.tensix.insn import decode
from bhemu.tensix.status import DONE
from bhemu.tensix.units.matrix import operands, prepare
from bhemu.tensix.units.pack import downsample, modes
from bhemu.tensix.units.pack import input_address as pack_input
from bhemu.tensix.units.pack import output_address as pack_output
from bhemu.tensix.units.pack.word import PackWord
from bhemu.tensix.units.unpack import input_address, output_address
from bhemu.tensix.units.unpack.word import UnpackWord, mode_of_word
from bhemu.tensix.units.vector import datums
from bhemu.tile import Tile

STEPS = ("unpack", "fidelity", "sum", "store", "pack")
# Of a datum in L1: exact, what steps added, Dst's value.
TRUE, UNPACK, FIDELITY, STORE, HELD = range(5)
Floats = npt.NDArray[np.float64]
_PRODUCTS = {"MVMUL": 8, "DOTPV": 8, "GAPOOL": 4}  # and the rows of each
_ELEMENTS = ("ELWADD", "ELWSUB", "ELWMUL")
_NEGATIVE_TO_0 = 1  # ReLU mode
_After = Callable[[], None]


class _Cells(NamedTuple):
    """Src cells: sign times power of two, 11 bits of mantissa."""

    scale: Floats
    mantissa: npt.NDArray[np.int64]

    def value(self, mask: int = 0x7FF) -> Floats:
        """Their values, of these bits of the mantissa alone."""
        return self.scale * (self.mantissa & mask)


def _cells(cells: npt.NDArray[np.uint32], five: bool) -> _Cells:
    exponent = (cells >> 23 & 0xFF).astype(np.int64)
    sign = np.where(cells >> 31, -1.0, 1.0)
    scale = np.ldexp(sign, exponent - (15 if five else 127) - 10)
    mantissa = (cells >> 13 & 0x3FF).astype(np.int64) | 0x400
    return _Cells(scale, np.where(exponent == 0, 0, mantissa))


class Shadow:
    """Follows the words of a tile; `l1` holds TRUE to HELD of packed datums."""

    def __init__(self, tile: Tile) -> None:
        self._s = tile.state
        self._src = np.zeros((2, 2, 64, 16))
        self._dst = np.zeros((HELD, 1024, 16))
        self.l1 = np.full((HELD + 1, L1_SIZE), np.nan)
        self.places: dict[str, Counter[tuple[int, int]]] = {step: Counter() for step in STEPS}
        tile.backend.table.observe(self._before, self._finish)

    def _before(self, t: int, word: int) -> _After | None:
        cls = decode(word)
        if cls is None or cls.unit not in ("matrix", "vector", "unpack", "pack"):
            return None
        kept = self._s.detail.copy()
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return self._of(cls, t, word)
        finally:
            self._s.detail[:] = kept

    def _of(self, cls: Any, t: int, word: int) -> _After | None:
        self._dst[:, (self._s.dst_valid & 1) == 0] = 0.0
        if cls.name == "PACR":
            return self._pack(t, word)
        if cls.name == "UNPACR":
            return self._unpack(t, word)
        if cls.name in _PRODUCTS or cls.name in _ELEMENTS:
            found = self._computed(cls, t, word)
            if found is not None:
                return found
        if cls.name == "SFPSTORE":
            return self._stored(t, cls.operands(word))
        if cls.name == "MOVA2D" and not cls.operands(word)["dest_32b_lo"]:
            return self._moved(t, cls.operands(word))
        return self._other(t)

    @staticmethod
    def _finish(after: _After | None, status: int) -> None:
        if status == DONE and after is not None:
            after()

    def _saw(self, step: str, t: int) -> None:
        s = self._s
        self.places[step][int(s.gate_core[t]), int(s.gate_pc[t])] += 1

    # Dst

    def _held(self, rows: npt.NDArray[np.int64], wide: int, five: bool) -> Floats:
        """Values in storage rows of Dst."""
        s = self._s
        cells = np.where(s.dst_valid[rows][:, None] & 1, s.dst[rows], 0).astype(np.uint32)
        if five and not wide:
            exponent, mantissa = cells & 0x1F, cells >> 5 & 0x3FF
            value = np.ldexp(
                mantissa / 1024 + (exponent > 0), np.maximum(exponent, 1).astype(int) - 15
            )
            values: Floats = np.where(cells >> 15, -value, value)
            return values
        bits = (cells & 0x8000 | (cells & 0xFF) << 7 | cells >> 8 & 0x7F) << 16
        if wide:
            low = np.where(s.dst_valid[rows][:, None] & 1, s.dst[rows + LOW_HALF], 0)
            bits |= low.astype(np.uint32)
        return bits.view(np.float32).astype(np.float64)

    @staticmethod
    def _storage(first: int, n: int, wide: int) -> npt.NDArray[np.int64]:
        rows = (first + np.arange(n)) & 0x3FF
        return np.array([plain(adj32)(int(row)) for row in rows]) if wide else rows

    def _other(self, t: int) -> _After:
        """A word that is not followed: what it leaves in Dst or Src is taken as exact."""
        s = self._s
        dst, src = s.dst.copy(), s.src.copy()
        wide = int(plain(operands.wide_dst)(s, t))

        def after() -> None:
            rows = np.flatnonzero((s.dst != dst).any(axis=1))
            if wide:
                rows = np.unique(rows & ~LOW_HALF)
            self._dst[:, rows] = 0.0
            self._dst[TRUE, rows] = self._held(rows, wide, False)
            changed = s.src != src
            self._src[changed] = _cells(s.src[changed], False).value()

        return after

    def _moved(self, t: int, v: dict[str, int]) -> _After:
        """Rows of SrcA to Dst."""
        s, n = self._s, 8 if v["instr_mod"] else 1
        rows = (v["src"] + int(s.rwc[t, rwc.SRCA]) + np.arange(n)) & 63
        bank, wide = int(s.matrix_bank[0]) & 1, int(plain(operands.wide_dst)(s, t))
        five = bool(formats.FIVE_BIT >> int(plain(banks.format_a)(s, t, banks.SRCA)) & 1)
        true = self._src[0, bank, rows]
        held = _cells(s.src[0, bank, rows], five).value()
        storage = self._storage(int(plain(rwc.dst_row)(s, t, v["dst"])), n, wide)

        def after() -> None:
            none = np.zeros_like(true)
            self._dst[:, storage] = np.stack([true, held - true, none, none])

        return after

    def _stored(self, t: int, v: dict[str, int]) -> _After:
        """Lanes to Dst, in a format that may be narrower."""
        s, row = self._s, int(plain(rwc.dst_row)(self._s, t, v["dest_reg_addr"]))
        mode = int(plain(datums.concrete_mode)(s, t, v["instr_mod0"]))
        if mode not in datums.FLOATS:
            return self._other(t)
        wide, five = int(mode == datums.FP32), mode == datums.FP16
        storage = self._storage(row & ~3, 4, wide)
        lane = np.flatnonzero([plain(lanes.enabled)(s, lane) for lane in range(lanes.LANES)])
        cells = lane >> 3, 2 * (lane & 7) + (row >> 1 & 1)
        true = s.lreg[v["lreg_ind"] & 15, lane].view(np.float32).astype(np.float64)

        def after() -> None:
            at = storage[cells[0]], cells[1]
            self._dst[(slice(None), *at)] = 0.0
            self._dst[(TRUE, *at)] = true
            with np.errstate(invalid="ignore"):  # infinities
                self._dst[(STORE, *at)] = self._held(storage, wide, five)[cells] - true
            self._saw("store", t)

        return after

    # Unpacking

    def _unpack(self, t: int, word: int) -> _After:
        s, f = self._s, UnpackWord.decoded(word)
        m = plain(mode_of_word)(s, t, f)
        other = self._other(t)
        u, bank = int(m.unpacker), int(s.unpack_bank[m.unpacker]) & 1
        if m.to_dst or f.search_cache_flush or f.cfg_context_cnt_inc or f.zero_write2:
            return other
        count = int(s.adc[m.counters, u, 1, 0]) - int(s.adc[m.counters, u, 0, 0]) + 1
        first = int(plain(output_address.first_cell)(s, t, m))
        first -= 0 if u else output_address.FIRST_CELL
        first += int(plain(output_address.set_cells)(s, t, m))
        read = plain(input_address.source)(s, t, m)
        start, five = int(read.data) >> 3, bool(formats.FIVE_BIT >> int(m.out) & 1)
        fp32 = int(m.fmt) == formats.FP32 and not (m.tileize or m.haloize) and start % 4 == 0
        whole = first >= 0 and first + count <= 1024 and start + 4 * count <= L1_SIZE
        words = (
            s.l1[start : start + 4 * count].view(np.float32).astype(np.float64) if whole else None
        )

        def after() -> None:
            if not whole:
                other()
                return
            here = slice(first, first + count)
            cells = s.src[u, bank].reshape(-1)
            true = self._src[u, bank].reshape(-1)
            true[here] = words if fp32 else _cells(cells[here], five).value()
            if fp32:
                self._saw("unpack", t)

        return after

    # Products and sums

    def _computed(self, cls: Any, t: int, word: int) -> _After | None:
        s, v = self._s, cls.operands(word)
        accepted = (operands.PRODUCT_A, operands.PRODUCT_B)
        style = int(plain(operands.style_of)(s, t, *accepted, operands.INT8_ONLY))
        if style not in (operands.FLOAT, operands.FIVE_BIT) or plain(operands.waits)(s):
            return None
        five, wide = style == operands.FIVE_BIT, int(plain(operands.wide_dst)(s, t))
        bank = [int(s.matrix_bank[which]) & 1 for which in (banks.SRCA, banks.SRCB)]
        rows = _PRODUCTS.get(cls.name, 8)
        a_rows, b_rows = self._rows(cls.name, t, v, rows)
        columns = (
            np.zeros(16, int) if cls.name in _ELEMENTS and v["instr_mod19"] & 1 else np.arange(16)
        )
        cells, true = [], []
        forms = (plain(banks.format_a)(s, t, banks.SRCA), plain(banks.format_b)(s, t))
        for which, at, form in ((0, a_rows, forms[0]), (1, b_rows, forms[1])):
            kind = prepare.TF32 if int(form) == formats.TF32 else prepare.BF16
            mask = plain(prepare.mask_of)(prepare.FIVE_BIT if five else kind)
            pick = np.ix_(at, columns if which else np.arange(16))
            cells.append(_cells(s.src[which, bank[which]][pick] & np.uint32(mask), five))
            true.append(self._src[which, bank[which]][pick])
        phase = int(plain(rwc.fidelity_phase)(s, t))
        added = _added(cls.name, cells, true, phase)
        first = int(plain(rwc.dst_row)(s, t, v["dst"]))
        storage = self._storage(first, rows, wide)
        adds = cls.name not in ("ELWADD", "ELWSUB") or v["dest_accum_en"]

        def after() -> None:
            if not adds:
                self._dst[:, storage] = 0.0
            self._dst[:, storage] += added
            self._saw("sum", t)
            if cls.name not in ("ELWADD", "ELWSUB"):
                self._saw("fidelity", t)

        return after

    def _rows(self, name: str, t: int, v: dict[str, int], rows: int) -> tuple[Any, Any]:
        """Rows of SrcA and SrcB that a word reads."""
        s = self._s
        row_a, row_b = int(s.rwc[t, rwc.SRCA]), int(s.rwc[t, rwc.SRCB])
        if name in _PRODUCTS:
            return (row_a & 48) + np.arange(16), (row_b + np.arange(rows)) & 63
        one = v["instr_mod19"] & 2
        return (row_a & 56) + np.arange(8), (row_b & 56) + (
            np.zeros(8, int) if one else np.arange(8)
        )

    # Packing

    def _pack(self, t: int, word: int) -> _After | None:
        s, f = self._s, PackWord.decoded(word)
        m = plain(modes.mode_of)(s, t)
        if f.flush:
            return None
        a = f.addr_cnt_context if f.ovrd_thread_id else t
        rows = plain(pack_input.rows_of)(s, a, m, f.read_intf_sel, f.dst_access_mode)
        place = plain(pack_output.place_of)(s, a, m)
        datums = int(plain(downsample.count_of)(s, m, rows))
        numbers = [int(plain(pack_input.row_of)(rows, k)) for k in range(rows.number)]
        bits, data = int(plain(formats.datum_bits)(m.out)), int(place.data)
        if bits < 8 or datums != 16 * len(numbers) or data + datums * bits // 8 > L1_SIZE:
            return None
        storage = np.array([int(self._storage(row, 1, m.wide)[0]) for row in numbers])
        five = bool(formats.FIVE_BIT >> int(m.fmt) & 1)
        made = np.stack([*self._dst[:, storage], self._held(storage, m.wide, five)]).reshape(
            HELD + 1, -1
        )
        if f.zero_write:
            made[:] = 0.0
        if m.relu == _NEGATIVE_TO_0:
            made[:, made[HELD] < 0] = 0.0
        elif m.relu:
            made[:] = np.nan
        here = data + np.arange(datums) * (bits // 8)

        def after() -> None:
            self.l1[:, here] = made + (self.l1[:, here] if m.accumulate else 0.0)
            self._saw("pack", t)

        return after


def _added(name: str, cells: list[_Cells], true: list[Floats], phase: int) -> Floats:
    """What a word adds to TRUE, UNPACK, FIDELITY and STORE of its rows of Dst."""
    a, b = cells
    if name in ("ELWADD", "ELWSUB"):
        sign = -1.0 if name == "ELWSUB" else 1.0
        exact, whole = true[1] * sign + true[0], b.value() * sign + a.value()
        if name == "ELWSUB":
            exact, whole = true[0] - true[1], a.value() - b.value()
        none = np.zeros_like(exact)
        return np.stack([exact, whole - exact, none, none])
    multiply = np.multiply if name == "ELWMUL" else np.matmul
    part = multiply(b.value(0x00F if phase & 2 else 0x7F0), a.value(0x03E if phase & 1 else 0x7C0))
    if phase:
        none = np.zeros_like(part)
        return np.stack([none, none, part, none])
    exact, whole = multiply(true[1], true[0]), multiply(b.value(), a.value())
    return np.stack([exact, whole - exact, part - whole, np.zeros_like(part)])
