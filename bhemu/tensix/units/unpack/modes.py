"""How an unpacker is configured: its Mode, tile descriptor, contexts, the modes that are refused.

Source: UNPACR_Regular, Wormhole ISA; the checks from ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config import SECTION_WORDS
from bhemu.tensix.quirks import refuse, violated
from bhemu.tensix.status import NCB, UB, UNSUPPORTED, error

# THCON_SEC1 (unpacker 1) repeats the layout of THCON_SEC0 (unpacker 0) so many words further on.
assert cf.THCON_SEC1_REG2_Force_shared_exp.word == (
    cf.THCON_SEC0_REG2_Force_shared_exp.word + SECTION_WORDS
)
assert cf.THCON_SEC1_REG7_Offset_address.word == (
    cf.THCON_SEC0_REG7_Offset_address.word + SECTION_WORDS
)

_FIRST = cf.THCON_SEC0_REG0_TileDescriptor.word
DESCRIPTOR_FORMAT = cf.Field(_FIRST, 0, 0xF)
DESCRIPTOR_UNCOMPRESSED = cf.Field(_FIRST, 4, 1)
DESCRIPTOR_NO_EXPONENTS = cf.Field(_FIRST, 5, 1)
DESCRIPTOR_BLOBS = cf.Field(_FIRST, 8, 7)
DESCRIPTOR_X = cf.Field(_FIRST, 16, 0xFFFF)
DESCRIPTOR_Y = cf.Field(_FIRST + 1, 0, 0xFF)
DESCRIPTOR_Z = cf.Field(_FIRST + 1, 16, 0xFF)

_SHIFTED_DST = error(
    "UNPACR-COLUMN-SHIFT",
    UB,
    "unpacking to Dst with THCON_SEC0_REG2_Shift_amount_cntx{context} other than 0 and no "
    "Tileize_mode",
)
_HALOIZE_SRCB = error(
    "UNPACR-HALOIZE-SRCB",
    NCB,
    "unpacker 1 does not transpose (Haloize_mode)",
    "clear THCON_SEC1_REG2_Haloize_mode; the silicon ignores it",
)
_HALOIZE_DST = error("UNPACR-HALOIZE-DST", UB, "unpacking to Dst does not transpose (Haloize_mode)")
_TILEIZE_FORMAT = error(
    "UNPACR-TILEIZE-FORMAT",
    UB,
    "Tileize_mode with format {fmt}, whose datums are smaller than a byte",
)


def _must_be_zero(u: int) -> list[tuple[cf.Field, int]]:
    # Each field that must be zero, with its rule.
    names = {
        f"THCON_SEC{u}_REG2_Context_count_non_log2_en": "there is no specification of it",
        f"THCON_SEC{u}_REG2_Unpack_fifo_size": "the input wraps after rows of 16 datums in the ISA "
        "text, and rows of Blackhole have 32",
        f"UNP{u}_ADDR_BASE_REG_1_Base": "Blackhole does not have it",
    }
    rules = [
        (
            getattr(cf, name),
            error(
                f"UNPACR-{name}",
                UNSUPPORTED,
                f"UNPACR with {name}={{value:#x}} is not modelled",
                why,
            ),
        )
        for name, why in names.items()
    ]
    return rules


_ZERO = (_must_be_zero(0), _must_be_zero(1))
assert len(_ZERO[0]) == len(_ZERO[1])
_ZERO_FIELD = np.array([[(f.word, f.shift, f.mask) for f, _ in kind] for kind in _ZERO], np.int64)
_ZERO_RULE = np.array([[rule for _, rule in kind] for kind in _ZERO], np.int64)


class Mode(NamedTuple):
    """Unpacker, context, Config bank, 1 = configured per context, input and output format codes,
    modes (1 = on), and the thread of the X and Y counters."""

    unpacker: int
    context: int
    bank: int
    multi: int
    fmt: int
    out: int
    to_dst: int
    haloize: int
    tileize: int
    counters: int


@njit
def section(s: Any, b: Any, u: Any, f: Any) -> Any:
    """Field `f` of THCON_SEC0, or the same field of THCON_SEC1 when `u` is 1."""
    return (np.int64(s.cfg[b, f.word + SECTION_WORDS * u]) >> f.shift) & f.mask


@njit
def per_context(s: Any, b: Any, u: Any, k: Any, f: Any) -> Any:
    """Bit of context `k` (0-7) beside `f`, the bit of context 0 in THCON_SEC0_REG2."""
    word = np.int64(s.cfg[b, f.word + SECTION_WORDS * u])
    return (word >> (f.shift + (k & 3) + 16 * (k >> 2))) & 1


@njit
def half_of_context(s: Any, b: Any, k: Any, f: Any) -> Any:
    """16-bit field of context `k` (modulo 4) of unpacker 0, beside `f`, that of context 0."""
    return (np.int64(s.cfg[b, f.word + ((k >> 1) & 1)]) >> (16 * (k & 1))) & 0xFFFF


@njit
def word_of_context(s: Any, b: Any, u: Any, k: Any, f: Any) -> Any:
    """Word of context `k` (as many as there are), beside `f`, that of context 0."""
    return np.int64(s.cfg[b, f.word + SECTION_WORDS * u + k])


@njit
def mode_of(s: Any, t: Any, u: Any, multi: Any, k: Any, counters: Any) -> Any:
    """Mode of unpacker `u` (0, 1) for thread `t`.

    `multi`: context `k` (0-7) chooses the configuration; `counters`: thread of X and Y.
    """
    b = config.bank(s, t)
    fmt = section(s, b, u, DESCRIPTOR_FORMAT)
    out = section(s, b, u, cf.THCON_SEC0_REG2_Out_data_format)
    to_dst = section(s, b, u, cf.THCON_SEC0_REG2_Unpack_If_Sel)
    if multi:
        to_dst = per_context(s, b, u, k, cf.THCON_SEC0_REG2_Unpack_if_sel_cntx0)
        if section(s, b, u, cf.THCON_SEC0_REG2_Ovrd_data_format):
            word = word_of_context(s, b, u, k & 3, cf.THCON_SEC0_REG7_Offset_address)
            fmt = (word >> (16 + 8 * (k >> 2))) & 15
            out = (word >> (20 + 8 * (k >> 2))) & 15
    haloize = section(s, b, u, cf.THCON_SEC0_REG2_Haloize_mode)
    tileize = section(s, b, u, cf.THCON_SEC0_REG2_Tileize_mode)
    return Mode(u, k, b, multi, fmt, out, to_dst & ~u, haloize, tileize, counters)


@njit
def column_shift(s: Any, m: Any) -> Any:
    """Columns by which SrcA datums move left (Shift_amount without Tileize_mode)."""
    if m.tileize or m.unpacker:
        return 0
    shifts = np.int64(s.cfg[m.bank, cf.THCON_SEC0_REG2_Shift_amount_cntx0.word]) >> 16
    return (shifts >> (4 * (m.context & 3))) & 15


@njit
def uncompressed(s: Any, m: Any) -> Any:
    """0 when Mode `m` reads a compressed tile."""
    b, u = m.bank, m.unpacker
    if m.multi:
        return per_context(s, b, u, m.context, cf.THCON_SEC0_REG2_Disable_zero_compress_cntx0)
    return section(s, b, u, DESCRIPTOR_UNCOMPRESSED)


@njit
def modes_refused(s: Any, m: Any) -> Any:
    """0, or the error of a mode; asked once the formats are in order."""
    if m.haloize and m.to_dst:
        return _HALOIZE_DST
    if m.to_dst and column_shift(s, m):
        return refuse(s, _SHIFTED_DST, context=m.context)
    if m.tileize and formats.datum_bits(m.fmt) < 8:
        return refuse(s, _TILEIZE_FORMAT, fmt=m.fmt)
    if m.haloize and m.unpacker:
        return violated(s, _HALOIZE_SRCB)
    return 0


@njit
def zero_fields(s: Any, m: Any) -> Any:
    """Not 0 when a field that must be zero is not."""
    used = np.int64(0)
    for i in range(_ZERO_FIELD.shape[1]):
        word = np.int64(s.cfg[m.bank, _ZERO_FIELD[m.unpacker, i, 0]])
        used |= (word >> _ZERO_FIELD[m.unpacker, i, 1]) & _ZERO_FIELD[m.unpacker, i, 2]
    return used


@njit
def zero_refused(s: Any, m: Any) -> Any:
    """0, or the error of the first field that must be zero and is not."""
    if zero_fields(s, m) == 0:
        return 0
    for i in range(_ZERO_FIELD.shape[1]):
        word = np.int64(s.cfg[m.bank, _ZERO_FIELD[m.unpacker, i, 0]])
        value = (word >> _ZERO_FIELD[m.unpacker, i, 1]) & _ZERO_FIELD[m.unpacker, i, 2]
        if value:
            return refuse(s, _ZERO_RULE[m.unpacker, i], value=value)
    return 0
