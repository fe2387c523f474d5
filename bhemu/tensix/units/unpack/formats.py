"""Formats of the unpackers: which format in L1 may become which format in Src or Dst.

Source: UNPACR_Regular, Wormhole ISA; the checks from ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import formats
from bhemu.tensix.formats import (
    BF16,
    BFP2,
    BFP2A,
    BFP4,
    BFP4A,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT32,
    TF32,
)
from bhemu.tensix.quirks import refuse, violated
from bhemu.tensix.status import UB, error

# Output formats (bit sets) of each input format, to Src and to Dst: the one of the text, and the
# wider bfp of the same exponent that LLK's data format inference configures for bfp4 and bfp2.
_SELF = {f: 1 << f for f in formats.NAMES if f not in (FP32, TF32, INT32)}
_WIDER = {BFP4: 1 << BFP8, BFP2: 1 << BFP8, BFP4A: 1 << BFP8A, BFP2A: 1 << BFP8A}
TO_SRC = _SELF | {FP32: 1 << FP16 | 1 << TF32 | 1 << BF16}
_TO_DST = _SELF | {FP32: 1 << FP32 | 1 << FP16 | 1 << TF32 | 1 << BF16, TF32: 1 << TF32}
_TO_DST[INT32] = 1 << INT32

# What LLK's format checks admit beyond that; for the text it is undefined.
_ADMITTED = {BF16: 1 << TF32, FP8: 1 << FP16}
_ADMITTED |= dict.fromkeys((BFP8, BFP4, BFP2), 1 << BF16 | 1 << TF32)
_ADMITTED |= dict.fromkeys((BFP8A, BFP4A, BFP2A), 1 << FP16)
_OUT = np.array(
    [[kind.get(f, 0) | _WIDER.get(f, 0) for f in range(16)] for kind in (TO_SRC, _TO_DST)],
    np.int64,
)
_OUT_ADMITTED = np.array([_ADMITTED.get(f, 0) for f in range(16)], np.int64)
WIDE = 1 << FP32 | 1 << TF32 | 1 << INT32  # output formats of 32-bit Dst datums
_CODES = f"format codes: {formats.CODES}"

# In the sentences: fmt input format, out output format.
_CONTEXT = error(
    "UNPACR-CONTEXT",
    UB,
    "unpacker 1 has contexts 0 and 1; the word and CfgContextOffset give {context}",
)
_MISMATCH = error(
    "UNPACR-FORMATS",
    UB,
    "unpacker {unpacker}: unpacking format {fmt} as format {out}; tile descriptor and "
    "Out_data_format must agree, except that fp32 (0) may become 1, 4 or 5",
    _CODES,
)
_NO_CONVERSION = error(
    "UNPACR-CONVERSION",
    UB,
    "unpacker {unpacker}: {fmt} is no format that can be unpacked",
    f"name tf32 in L1 fp32 (0), unless it goes to Dst; {_CODES}",
)
_ONLY_TO_DST = error(
    "UNPACR-SRC-FORMAT",
    UB,
    "unpacker {unpacker}: a source register cannot hold Out_data_format {out}",
    "set Unpack_if_sel_cntx to unpack fp32 (0) and int32 (8) to Dst, or unpack as tf32 (4)",
)


@njit
def formats_refused(s: Any, m: Any) -> Any:
    """0, or the error of the formats or the target of Mode `m`."""
    if m.unpacker and m.context > 1:
        return refuse(s, _CONTEXT, context=m.context)
    if (_OUT[1, m.fmt] == 0) or (m.fmt == TF32 and not m.to_dst):
        return refuse(s, _NO_CONVERSION, unpacker=m.unpacker, fmt=m.fmt)
    if not m.to_dst and (m.out == FP32 or m.out == INT32) and (_OUT[1, m.fmt] >> m.out) & 1:
        return refuse(s, _ONLY_TO_DST, unpacker=m.unpacker, out=m.out)
    if (_OUT[m.to_dst, m.fmt] >> m.out) & 1 == 0:
        if (_OUT_ADMITTED[m.fmt] >> m.out) & 1 == 0 or (m.to_dst and m.out == TF32):
            return refuse(s, _MISMATCH, unpacker=m.unpacker, fmt=m.fmt, out=m.out)
        return violated(s, _MISMATCH, unpacker=m.unpacker, fmt=m.fmt, out=m.out)
    return 0
