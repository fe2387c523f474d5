"""How an unpacker is configured: formats, target, transposition, and the modes that are refused.

Source: UNPACR_Regular, Wormhole ISA; the checks from ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.tensix import config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.status import NCB, UB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit

# THCON_SEC1 (unpacker 1) repeats the layout of THCON_SEC0 (unpacker 0) so many words further on.
SECTION_WORDS = cf.THCON_SEC1_REG0_TileDescriptor.word - cf.THCON_SEC0_REG0_TileDescriptor.word
assert cf.THCON_SEC1_REG2_Force_shared_exp.word == (
    cf.THCON_SEC0_REG2_Force_shared_exp.word + SECTION_WORDS
)
assert cf.THCON_SEC1_REG7_Offset_address.word == (
    cf.THCON_SEC0_REG7_Offset_address.word + SECTION_WORDS
)

_FIRST = cf.THCON_SEC0_REG0_TileDescriptor.word
DESCRIPTOR_FORMAT = cf.Field(_FIRST, 0, 0xF)
DESCRIPTOR_NO_EXPONENTS = cf.Field(_FIRST, 5, 1)
DESCRIPTOR_X = cf.Field(_FIRST, 16, 0xFFFF)
DESCRIPTOR_Y = cf.Field(_FIRST + 1, 0, 0xFF)
DESCRIPTOR_Z = cf.Field(_FIRST + 1, 16, 0xFF)

# Format codes as bit sets: what fp32 may become, what is unpacked as itself, what only Dst takes.
_FROM_FP32 = 1 << formats.FP16 | 1 << formats.TF32 | 1 << formats.BF16
_SAME = (
    (1 << formats.FP32 | 1 << formats.FP16 | 1 << formats.BF16)
    | (1 << formats.BFP8 | 1 << formats.BFP4 | 1 << formats.BFP2 | 1 << formats.FP8)
    | (1 << formats.INT32 | 1 << formats.UINT16 | 1 << formats.INT8)
)
_ONLY_DST = 1 << formats.FP32 | 1 << formats.INT32
_DST = _ONLY_DST | 1 << formats.TF32
_CODES = f"format codes: {formats.CODES}"

# Words of the sentences: {0} unpacker, {1} context, {2} input format, {3} output format.
_CONTEXT = error(
    "UNPACR-CONTEXT",
    UNIMPLEMENTED,
    "UNPACK_MISC_CFG_CfgContextOffset_{0} is {1}: only contexts 0 and 1 are modelled",
)
_MISMATCH = error(
    "UNPACR-FORMATS",
    UB,
    "unpacker {0}: unpacking format {2} as format {3}; tile descriptor and Out_data_format must "
    "agree, except that fp32 (0) may become 1, 4 or 5",
    _CODES,
)
_NO_CONVERSION = error(
    "UNPACR-CONVERSION", UNIMPLEMENTED, "unpacker {0}: unpacking format {2} is not modelled", _CODES
)
_NOT_TO_DST = error(
    "UNPACR-DST-FORMAT",
    UNIMPLEMENTED,
    "unpacking format {2} as {3} to Dst is not modelled",
    "Dst takes fp32 (0) as 0 or 4, and int32 (8)",
)
_ONLY_TO_DST = error(
    "UNPACR-SRC-FORMAT",
    UB,
    "unpacker {0}: a source register cannot hold Out_data_format {3}",
    "set Unpack_if_sel_cntx to unpack fp32 (0) and int32 (8) to Dst, or unpack as tf32 (4)",
)
_COMPRESSED = error(
    "UNPACR-COMPRESSED",
    UNSUPPORTED,
    "unpacker {0}: compressed tiles are not modelled (Disable_zero_compress_cntx{1} is 0)",
    "set Disable_zero_compress of the context in use",
)
_OVERRIDE = error(
    "UNPACR-OVRD-FORMAT",
    UNSUPPORTED,
    "THCON_SEC{0}_REG2_Ovrd_data_format is set",
    "give the input format in the tile descriptor",
)
_RESAMPLED = error(
    "UNPACR-UPSAMPLE",
    UNSUPPORTED,
    "THCON_SEC{0}_REG2_Upsample_rate or Upsample_and_interleave is not 0",
    "upsampling is not modelled",
)
_SHIFTED = error(
    "UNPACR-COLUMN-SHIFT",
    UNSUPPORTED,
    "THCON_SEC0_REG2_Shift_amount_cntx{1} is not 0 without Tileize_mode",
    "column shifts are not modelled",
)
_HALOIZE_SRCB = error("UNPACR-HALOIZE-SRCB", NCB, "unpacker 1 does not transpose (Haloize_mode)")
_HALOIZE_DST = error("UNPACR-HALOIZE-DST", UB, "unpacking to Dst does not transpose (Haloize_mode)")
_TILEIZE_SRCB = error(
    "UNPACR-TILEIZE-SRCB", UNIMPLEMENTED, "Tileize_mode of unpacker 1 is not modelled"
)
_TILEIZE_FORMAT = error(
    "UNPACR-TILEIZE-FORMAT",
    UB,
    "Tileize_mode with format {2}, whose datums are smaller than a byte",
)


class Mode(NamedTuple):
    """Unpacker, context, Config bank, input and output format codes, and modes (1 = on)."""

    unpacker: int
    context: int
    bank: int
    fmt: int
    out: int
    to_dst: int
    haloize: int
    tileize: int


@njit
def section(s: Any, b: Any, u: Any, f: Any) -> Any:
    """Field `f` of THCON_SEC0, or the same field of THCON_SEC1 when `u` is 1."""
    return (np.int64(s.cfg[b, f.word + SECTION_WORDS * u]) >> f.shift) & f.mask


@njit
def mode_of(s: Any, t: Any, u: Any) -> Any:
    """Mode of unpacker `u` (0, 1) for thread `t`; notes the words of this file's sentences."""
    b = config.bank(s, t)
    f0, f1 = tf.UNPACK_MISC_CFG_CfgContextOffset_0, tf.UNPACK_MISC_CFG_CfgContextOffset_1
    k = config.thread(s, t, f1 if u else f0)
    fmt = section(s, b, u, DESCRIPTOR_FORMAT)
    out = section(s, b, u, cf.THCON_SEC0_REG2_Out_data_format)
    to_dst = section(s, b, u, cf.THCON_SEC0_REG2_Unpack_if_sel_cntx0)
    if k == 1:
        to_dst = section(s, b, u, cf.THCON_SEC0_REG2_Unpack_if_sel_cntx1)
    haloize = section(s, b, u, cf.THCON_SEC0_REG2_Haloize_mode)
    tileize = section(s, b, u, cf.THCON_SEC0_REG2_Tileize_mode)
    s.detail[0] = u
    s.detail[1] = k
    s.detail[2] = fmt
    s.detail[3] = out
    return Mode(u, k, b, fmt, out, to_dst & ~u, haloize, tileize)


@njit
def formats_refused(m: Any) -> Any:
    """0, or the error of the formats or the target of Mode `m`."""
    if m.context > 1:
        return _CONTEXT
    if m.fmt != m.out and (m.fmt != formats.FP32 or (_FROM_FP32 >> m.out) & 1 == 0):
        return _MISMATCH
    if m.fmt == m.out and (_SAME >> m.fmt) & 1 == 0:
        return _NO_CONVERSION
    if m.to_dst == 0 and (_ONLY_DST >> m.out) & 1:
        return _ONLY_TO_DST
    if m.to_dst and (_DST >> m.out) & 1 == 0:
        return _NOT_TO_DST
    if m.haloize and m.unpacker:
        return _HALOIZE_SRCB
    if m.haloize and m.to_dst:
        return _HALOIZE_DST
    if m.tileize and formats.datum_bits(m.fmt) < 8:
        return _TILEIZE_FORMAT
    if m.tileize and m.unpacker:
        return _TILEIZE_SRCB
    return 0


@njit
def modes_refused(s: Any, m: Any) -> Any:
    """0, or the error of a mode that is not modelled; asked once the formats are in order."""
    b, u = m.bank, m.unpacker
    f0 = cf.THCON_SEC0_REG2_Disable_zero_compress_cntx0
    f1 = cf.THCON_SEC0_REG2_Disable_zero_compress_cntx1
    if section(s, b, u, f1 if m.context else f0) == 0:
        return _COMPRESSED
    if section(s, b, u, cf.THCON_SEC0_REG2_Ovrd_data_format):
        return _OVERRIDE
    rate = section(s, b, u, cf.THCON_SEC0_REG2_Upsample_rate)
    if rate | section(s, b, u, cf.THCON_SEC0_REG2_Upsample_and_interleave):
        return _RESAMPLED
    f0, f1 = cf.THCON_SEC0_REG2_Shift_amount_cntx0, cf.THCON_SEC0_REG2_Shift_amount_cntx1
    if u | m.tileize == 0 and section(s, b, u, f1 if m.context else f0):
        return _SHIFTED
    return 0
