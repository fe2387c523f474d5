"""Where in L1 an UNPACR reads.

An UNPACR takes `count` consecutive datums of a tile in L1, in rows of 32 (16 for datums of up to 8
bits) that follow each other or, with Tileize_mode, are Shift_amount apart.
Source: UNPACR_Regular, Wormhole ISA; Blackhole's row width and checks from ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config import SECTION_WORDS
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import UB, UNSUPPORTED, error
from bhemu.tensix.units.adc import W, X, Y, Z
from bhemu.tensix.units.unpack.modes import (
    DESCRIPTOR_NO_EXPONENTS,
    DESCRIPTOR_X,
    DESCRIPTOR_Y,
    DESCRIPTOR_Z,
    half_of_context,
    section,
    word_of_context,
)

_MISALIGNED = error(
    "UNPACR-ALIGN",
    UB,
    "unpacker {unpacker}: Haloize_mode and Tileize_mode read from 16-byte boundaries; the first "
    "datum is at {address:#x}",
)
_NO_EXPONENTS = error(
    "UNPACR-NO-EXPONENTS",
    UNSUPPORTED,
    "unpacker {unpacker}: the tile descriptor says that the tile has no exponent section",
    "clear bit 5 of the descriptor, or use Force_shared_exp",
)
_L1_END = error(
    "UNPACR-L1",
    UB,
    "unpacker {unpacker} reads L1 from {first:#x} up to {end:#x}, beyond the end at 0x180000",
    "check Base address, Offset address and the ADC counters",
)


class Dimensions(NamedTuple):
    """Of a tile in L1, datums."""

    x: int
    y: int
    z: int
    w: int


class Source(NamedTuple):
    """What is read: bits of a datum, bit address of the first datum, 16 times the address of its
    exponent byte (or -1 - the forced exponent), datums of a row, bytes from row to row."""

    bits: int
    data: int
    exponent: int
    row: int
    step: int


@njit
def descriptor(s: Any, m: Any, i: Any) -> Any:
    """Word `i` (0-3) of the tile descriptor."""
    return np.int64(s.cfg[m.bank, DESCRIPTOR_X.word + SECTION_WORDS * m.unpacker + i])


@njit
def dimensions(s: Any, m: Any) -> Any:
    """The Dimensions that the tile descriptor, or the context of unpacker 0, gives."""
    b, u = m.bank, m.unpacker
    x = section(s, b, u, DESCRIPTOR_X)
    if m.multi and u == 0:
        x = half_of_context(s, b, m.context, cf.THCON_SEC0_REG5_Tile_x_dim_cntx0)
    z = max(section(s, b, u, DESCRIPTOR_Z), 1)
    return Dimensions(x, section(s, b, u, DESCRIPTOR_Y), z, max(descriptor(s, m, 2) & 0xFF, 1))


@njit
def base(s: Any, m: Any) -> Any:
    """Byte address behind the header of a tile: 16 bytes, and DigestSize times as many."""
    k = m.context
    first = word_of_context(s, m.bank, m.unpacker, k, cf.THCON_SEC0_REG3_Base_address)
    f = cf.THCON_SEC0_REG7_Offset_address
    offset = word_of_context(s, m.bank, m.unpacker, k & 3, f) & 0xFFFF
    return ((first + offset + 1 + (descriptor(s, m, 3) >> 24)) << 4) & 0xFFFFFFFF


@njit
def data_of_bfp(s: Any, m: Any, elements: Any, data: Any, first: Any) -> Any:
    """(address of the data section, 16 times the address of the first datum's exponent)."""
    b, u = m.bank, m.unpacker
    if section(s, b, u, cf.THCON_SEC0_REG2_Force_shared_exp):
        f0, f1 = cf.UNP0_FORCED_SHARED_EXP_shared_exp, cf.UNP1_FORCED_SHARED_EXP_shared_exp
        return data, -1 - config.get(s, b, f1 if u else f0)
    return data + (((elements + 15) // 16 + 15) & ~15), (data << 4) + first


@njit
def source(s: Any, t: Any, m: Any) -> Any:
    """Source of thread `t`'s UNPACR in Mode `m`; not checked against L1."""
    b, u = m.bank, m.unpacker
    d = dimensions(s, m)
    xy, zw = s.adc[m.counters, u, 0], s.adc[t, u, 0]
    first = xy[X] + d.x * (xy[Y] + d.y * (zw[Z] + d.z * zw[W]))
    bits = formats.datum_bits(m.fmt)
    data = base(s, m)
    exponent = (data << 4) + first
    if formats.is_bfp(m.fmt):
        data, exponent = data_of_bfp(s, m, d.x * d.y * d.z * d.w, data, first)
    row = 16 if bits <= 8 else 32
    step = bits * row >> 3
    if m.tileize:
        step = section(s, b, u, cf.THCON_SEC0_REG2_Shift_amount_cntx0) << 4
        step |= section(s, b, u, cf.THCON_SEC0_REG2_Shift_amount_cntx1) << 8
        step |= section(s, b, u, cf.THCON_SEC0_REG2_Shift_amount_cntx2) << 12
    return Source(bits, (data << 3) + first * bits, exponent, row, step)


@njit
def start_refused(s: Any, m: Any, bit: Any) -> Any:
    """0, or the error of a first datum at bit address `bit`, or of a missing exponent section."""
    b, u = m.bank, m.unpacker
    if (m.tileize or (m.haloize and u == 0)) and bit & 127:
        return refuse(s, _MISALIGNED, unpacker=u, address=bit >> 3)
    forced = section(s, b, u, cf.THCON_SEC0_REG2_Force_shared_exp)
    if formats.is_bfp(m.fmt) and formats.datum_bits(m.fmt) < 8 and forced == 0:
        # the bit has no effect on 8-bit formats
        if section(s, b, u, DESCRIPTOR_NO_EXPONENTS):
            return refuse(s, _NO_EXPONENTS, unpacker=u)
    return 0


@njit
def source_refused(s: Any, m: Any, src: Any, count: Any) -> Any:
    """0, or the error of reading `count` datums from Source `src`."""
    status = start_refused(s, m, src.data)
    if status:
        return status
    full = (count - 1) // src.row
    end = src.data + 8 * src.step * full + src.bits * (count - full * src.row)
    if full:  # rows overlap when the step is small: the last but one may reach further
        end = max(end, src.data + 8 * src.step * (full - 1) + src.bits * src.row)
    if end > 8 * L1_SIZE:
        first = src.data >> 3
        return refuse(s, _L1_END, unpacker=m.unpacker, first=first, end=(end + 7) >> 3)
    if formats.is_bfp(m.fmt) and src.exponent >= 0:
        end = (src.exponent + count + 15) >> 4
        if end > L1_SIZE:
            first = src.exponent >> 4
            return refuse(s, _L1_END, unpacker=m.unpacker, first=first, end=end)
    return 0
