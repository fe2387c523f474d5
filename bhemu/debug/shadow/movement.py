"""Words of the vector unit that move numbers, in float64: from and to Dst, and between lanes."""

from typing import Any

import numpy as np

from bhemu.debug.shadow import bitwise
from bhemu.debug.shadow.lanes import After, Word
from bhemu.debug.shadow.numbers import (
    DECODED,
    FLOAT,
    INTEGER,
    RAW,
    SIGNED,
    STORE,
    TRUE,
    rest,
)
from bhemu.jit.plain import plain
from bhemu.tensix import lanes, rwc
from bhemu.tensix.units.vector import datums

_HALVES = (8, 10)  # modes of SFPLOADI that keep half of the register
_COPY_ALL, _SPECIAL = 2, 8  # modes of SFPMOV
_LANES, _WRITABLE, _GROUP = 32, 8, 4


def _immediate(w: Word) -> After | None:
    """SFPLOADI: a constant."""
    dest = w.v["lreg_ind"]
    if w.v["instr_mod0"] in _HALVES:
        return _half(w, dest, w.v["instr_mod0"])
    return w.result(dest, w.constant(0.0), RAW)


def _half(w: Word, dest: int, mode: int) -> After:
    """Half a constant: the register is one where the other half is, or was loaded before."""
    shadow = w.shadow
    clean = w.exact(dest)
    before = shadow.halves.get(dest)
    if before is not None and before[0] != mode:
        clean |= before[1] == shadow.lanes(dest)

    def after() -> None:
        shadow.halves[dest] = mode, w.bits(dest)
        w.settle(dest, w.on, clean, tell=False)

    return after


def _cells(w: Word, mode: int) -> tuple[Any, Any, int]:
    """Storage rows of an SFPLOAD or SFPSTORE, each lane's cell in them, 1 for 32-bit datums."""
    s = w.shadow.s
    row = int(plain(rwc.dst_row)(s, w.t, w.v["dest_reg_addr"]))
    stores = w.name == "SFPSTORE"
    rows = datums.storage_rows(s, w.t, mode, row, stores=stores)
    lane = np.arange(_LANES)
    at = lane >> 3, 2 * (lane & 7) + (row >> 1 & 1)
    return np.array(rows[:_GROUP]), at, int(len(rows) > _GROUP)


def _mode(w: Word) -> int:
    return int(plain(datums.concrete_mode)(w.shadow.s, w.t, w.v["instr_mod0"]))


def _load(w: Word) -> After | None:
    """SFPLOAD: floats; integers of 32 bits; others are exact where Dst is."""
    shadow, mode, dest = w.shadow, _mode(w), w.v["lreg_ind"]
    if mode < 0 or dest >= _WRITABLE:
        return None
    rows, at, wide = _cells(w, mode)
    where = rows[at[0]], at[1]
    if mode in datums.FLOATS:
        held = shadow.held(rows, wide, mode == datums.FP16)[at]
        whole = shadow.bits(rows, 1)[at] if wide else None
        return w.result(dest, shadow.numbers(where, FLOAT, held, whole), FLOAT)
    kinds = shadow.dst_kind[where]
    if mode in datums.WHOLE and wide:
        kind = SIGNED if mode == datums.INT32_SM or (kinds == SIGNED).any() else INTEGER
        held = DECODED[kind](shadow.bits(rows, wide)[at])
        kinds[(kinds == FLOAT) & (shadow.dst[1:][(slice(None), *where)] == 0).all(axis=0)] = RAW
        made = shadow.dst[(slice(None), *where)]
        raw = kinds == RAW
        made[:, raw] = 0.0
        made[TRUE, raw] = held[raw]
        return w.result(dest, made, np.where(raw, kind, kinds))
    clean = (kinds == RAW) & (w.exact(dest) | (mode not in datums.HALF_ONLY))
    return lambda: w.settle(dest, w.on, clean)


def _store(w: Word) -> After | None:
    """SFPSTORE: lanes to Dst, in a format that may be narrower."""
    shadow, mode, reg = w.shadow, _mode(w), w.v["lreg_ind"]
    if mode < 0:
        return None
    rows, at, wide = _cells(w, mode)
    on = np.array([bool(plain(lanes.enabled)(shadow.s, lane)) for lane in range(_LANES)])
    where = rows[at[0][on]], at[1][on]
    if mode in datums.FLOATS:
        made, kind = w.numbers(reg), FLOAT
    elif mode in datums.WHOLE or mode == datums.UINT16:
        kinds = w.kinds(reg)
        kind = INTEGER if (kinds == INTEGER).any() and (w.bits(reg) >> 31).any() else SIGNED
        made = w.numbers(reg, kind)
    else:
        return _store_bits(w, where, w.exact(reg)[on])

    def after() -> None:
        own = made[:, on]
        if mode in datums.FLOATS:
            held = shadow.held(rows, wide, mode == datums.FP16)
        elif mode == datums.UINT16:
            held = shadow.s.dst[rows].astype(np.float64)
        else:
            held = DECODED[kind](shadow.bits(rows, wide))
        own[STORE] += rest(held[at][on], own)
        shadow.put(where, kind, own)
        shadow.saw("store", w.t, w.word)
        if (np.isnan(own[TRUE]) & np.isfinite(held[at][on])).any():
            shadow.cannot("SFPSTORE of what was not followed", w.t, w.word)

    return after


def _store_bits(w: Word, where: Any, clean: Any) -> After:
    """An SFPSTORE of bits that stand for no number here."""

    def after() -> None:
        made = np.where(clean, 0.0, np.nan)[None]
        w.shadow.put(where, np.where(clean, RAW, FLOAT), made)
        if not clean.all():
            mode = w.v["instr_mod0"]
            w.shadow.cannot(f"SFPSTORE with instr_mod0 {mode} of a rounded number", w.t, w.word)

    return after


def _move(w: Word) -> After | None:
    """SFPMOV."""
    c, dest = w.v["lreg_c"], w.v["lreg_dest"]
    if w.mode & _SPECIAL:
        return w.result(dest, w.constant(0.0), RAW)
    if w.mode & 1:
        return w.scaled(dest, c)
    if w.mode & _COPY_ALL:
        w.on = np.full(_LANES, True)
    return w.result(dest, w.shadow.lane[:, c].copy(), w.kinds(c))


def _permuted(w: Word, registers: Any, source: Any) -> After:
    """Registers receive lanes: `source` (registers, lanes, 2): register and lane, -1 a zero."""
    shadow = w.shadow
    reg, lane = source[..., 0], source[..., 1]
    made, kinds = shadow.lane[:, reg, lane].copy(), shadow.lane_kind[reg, lane].copy()
    made[:, reg < 0], kinds[reg < 0] = 0.0, RAW

    def after() -> None:
        for k, register in enumerate(registers):
            shadow.lane[:, register, w.on] = made[:, k][:, w.on]
            shadow.lane_kind[register, w.on] = kinds[k][w.on]

    return after


def _transpose(w: Word) -> After:
    """SFPTRANSP."""
    source = np.empty((8, _LANES, 2), int)
    for reg in range(8):
        lane = np.arange(_LANES)
        source[reg, :, 0] = (reg & 4) + lane // 8
        source[reg, :, 1] = 8 * (reg & 3) + lane % 8
    return _permuted(w, range(8), source)


def _rotated(reg: int, around: bool) -> Any:
    """One lane up within each 8; the first gets the last, or 0."""
    lane = np.arange(_LANES)
    first = lane % 8 == 0
    source = np.stack([np.full(_LANES, reg), np.where(first, lane + 7, lane - 1)], axis=-1)
    source[first & (not around), 0] = -1
    return source


def _shift_lanes(w: Word) -> After | None:
    """SFPSHFT2."""
    c, mode = w.v["lreg_src_c"], w.mode
    if mode > 4:
        return bitwise.shift_2(w)
    if mode > 2:
        dest = w.v["lreg_dest"]
        return _permuted(w, [dest], _rotated(c, mode == 3)[None]) if dest < _WRITABLE else None
    lane = np.arange(_LANES)
    down = [np.stack([np.full(_LANES, reg), lane], axis=-1) for reg in (1, 2, 3)]
    last = _rotated(c, True)
    if mode < 2:
        inside = (lane < _LANES - 8) & (mode == 1)
        last = np.stack([np.where(inside, 0, -1), np.minimum(lane + 8, _LANES - 1)], axis=-1)
    return _permuted(w, range(4), np.stack([*down, last]))


def _swap(w: Word) -> After | None:
    """SFPSWAP: lanes that change places are chosen."""
    shadow, c, d = w.shadow, w.v["lreg_src_c"], w.v["lreg_dest"]
    if d >= _WRITABLE + _GROUP:
        return None
    pairs, limit = [(c, d)], _WRITABLE
    if shadow.s.lane_config[0] & lanes.ENABLE_DEST_INDEX:
        pairs.append((4 + (c & 3), 4 + (d & 3)))
        limit = _GROUP
    old, kinds = shadow.lane.copy(), shadow.lane_kind.copy()

    def after() -> None:
        taken = shadow.s.lane_tmp[lanes.FLAG] != 0
        for k, pair in enumerate(pairs):
            for to, source in (pair, pair[::-1]):
                if to < (limit if k == 0 else _WRITABLE):
                    shadow.lane[:, to, taken] = old[:, source, taken]
                    shadow.lane_kind[to, taken] = kinds[source, taken]

    return after


def _configure(w: Word) -> After:
    """SFPCONFIG: LReg[11] to LReg[14], from LReg[0] or an immediate."""
    clean = np.full(_LANES, w.exact(0).all() or w.mode != 0)
    old = w.shadow.s.lreg.copy()

    def after() -> None:
        for reg, was in enumerate(old):
            w.settle(reg, w.shadow.lanes(reg) != was, clean)

    return after


RULES = {
    "SFPLOADI": _immediate,
    "SFPLOAD": _load,
    "SFPSTORE": _store,
    "SFPMOV": _move,
    "SFPTRANSP": _transpose,
    "SFPSHFT2": _shift_lanes,
    "SFPSWAP": _swap,
    "SFPCONFIG": _configure,
}
