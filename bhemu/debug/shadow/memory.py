"""Unpackers and packer beside themselves in float64: from the words of L1, and back to L1."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu.debug.shadow import matrix
from bhemu.debug.shadow.numbers import FLOAT, RAW, SIGNED, Floats, signed
from bhemu.jit.plain import plain
from bhemu.memmap import L1_SIZE
from bhemu.tensix import formats
from bhemu.tensix.units.pack import downsample, modes
from bhemu.tensix.units.pack import input_address as pack_input
from bhemu.tensix.units.pack import output_address as pack_output
from bhemu.tensix.units.pack.word import PackWord
from bhemu.tensix.units.unpack import input_address, output_address
from bhemu.tensix.units.unpack.word import UnpackWord, mode_of_word

if TYPE_CHECKING:
    from bhemu.debug.shadow.run import Shadow

_After = Callable[[], None]
_NEGATIVE_TO_0 = 1  # ReLU mode


def unpack(shadow: "Shadow", t: int, word: int) -> _After | None:
    """An UNPACR: fp32 loses bits on its way to Src, every other conversion is exact."""
    s, f = shadow.s, UnpackWord.decoded(word)
    m = plain(mode_of_word)(s, t, f)
    narrows = int(m.fmt) == formats.FP32 and int(m.out) != formats.FP32
    if f.search_cache_flush or f.cfg_context_cnt_inc or f.zero_write2 or (m.to_dst and not narrows):
        return None
    if m.to_dst:
        return _unfollowed(shadow, t, word, "UNPACR of fp32 to fewer bits in Dst")
    count = int(s.adc[m.counters, m.unpacker, 1, 0]) - int(s.adc[m.counters, m.unpacker, 0, 0]) + 1
    first = int(plain(output_address.first_cell)(s, t, m))
    first -= 0 if m.unpacker else output_address.FIRST_CELL
    first += int(plain(output_address.set_cells)(s, t, m))
    start = int(plain(input_address.source)(s, t, m).data) >> 3
    plainly = not (m.tileize or m.haloize) and start % 4 == 0 and start + 4 * count <= L1_SIZE
    if first < 0 or first + count > 1024 or (narrows and not plainly):
        why = "UNPACR of fp32 with another order of rows"
        return _unfollowed(shadow, t, word, why) if narrows else None
    words = s.l1[start : start + 4 * count].view(np.float32) if narrows else None
    return _to_src(shadow, t, word, slice(first, first + count), m, words)


def _to_src(shadow: "Shadow", t: int, word: int, here: slice, m: Any, words: Any) -> _After:
    """Datums of a bank of Src: these fp32 words, or what the cells will hold."""
    s, u = shadow.s, int(m.unpacker)
    bank = int(s.unpack_bank[u]) & 1
    style = matrix.FIVE if formats.FIVE_BIT >> int(m.out) & 1 else matrix.EIGHT

    def after() -> None:
        true = words
        if words is None:
            true = matrix.cells_of(s.src[u, bank].reshape(-1)[here], style).value()
        else:
            shadow.saw("unpack", t, word)
        shadow.src[u, bank].reshape(-1)[here] = true

    return after


def _unfollowed(shadow: "Shadow", t: int, word: int, why: str) -> _After:
    """A word that loses bits in a way that is not followed."""
    s = shadow.s
    dst, src, other = s.dst.copy(), s.src.copy(), shadow.other(t)

    def after() -> None:
        other()
        shadow.src[s.src != src] = np.nan
        shadow.lose_rows(np.flatnonzero((s.dst != dst).any(axis=1)))
        shadow.cannot(why, t, word)

    return after


def pack(shadow: "Shadow", t: int, word: int) -> _After | None:
    """A PACR: which numbers go where in L1."""
    s, f = shadow.s, PackWord.decoded(word)
    m = plain(modes.mode_of)(s, t)
    if f.flush:
        return None
    a = f.addr_cnt_context if f.ovrd_thread_id else t
    rows = plain(pack_input.rows_of)(s, a, m, f.read_intf_sel, f.dst_access_mode)
    data = int(plain(pack_output.place_of)(s, a, m).data)
    datums = int(plain(downsample.count_of)(s, m, rows))
    numbers = [int(plain(pack_input.row_of)(rows, k)) for k in range(rows.number)]
    bits = int(plain(formats.datum_bits)(m.out))
    here = 8 * data + np.arange(datums) * bits
    made, why = _packed(shadow, m, numbers)
    if datums != 16 * len(numbers):
        made, why = np.full((1, datums), np.nan), "PACR that leaves out datums (Downsample)"
    if f.zero_write:
        made, why = np.zeros_like(made), ""

    def after() -> None:
        for place in shadow.packed:
            place.write(here, bits, made, bool(m.accumulate))
        if why:
            shadow.cannot(why, t, word)
        shadow.saw("pack", t, word)

    return after


def _packed(shadow: "Shadow", m: Any, numbers: list[int]) -> tuple[Floats, str]:
    """Numbers of the datums that are packed, and why they are not followed, or nothing."""
    storage = np.array([int(shadow.storage(row, 1, m.wide)[0]) for row in numbers])
    fmt, five = int(m.fmt), bool(formats.FIVE_BIT >> int(m.fmt) & 1)
    why = ""
    if m.wide and fmt in (formats.INT32, formats.INT8):
        kind, held = SIGNED, signed(shadow.bits(storage, 1))
    elif fmt == formats.UINT16 and not m.wide:
        s = shadow.s
        kind, held = SIGNED, np.where(s.dst_valid[storage][:, None] & 1, s.dst[storage], 0.0)
    elif fmt in (formats.INT32, formats.INT8, formats.UINT16):
        width = "32" if m.wide else "16"
        why = f"PACR of {formats.NAMES[fmt]} from {width}-bit Dst"
        kind, held = RAW, np.full((len(numbers), 16), np.nan)
    else:
        kind, held = FLOAT, shadow.held(storage, m.wide, five)
    whole = shadow.bits(storage, 1) if m.wide else None
    made = shadow.numbers((storage,), kind, held, whole).reshape(len(shadow.dst), -1)
    if np.isnan(made[0]).any() and not why and np.isfinite(held).all():
        why = f"PACR as {formats.NAMES[fmt]} of what was written to Dst otherwise, or not followed"
    held = held.reshape(-1)
    if m.relu == _NEGATIVE_TO_0:
        made[:, held < 0] = 0.0
    elif m.relu:
        made[0], why = np.nan, "PACR with a threshold (ReLU)"
    return made, why
