"""Late conversion: from the intermediate format to the output format.

Source: PACR, Blackhole ISA; packer FormatConversion, Wormhole ISA; bit for bit after ttsim's Tensix
model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import (
    BF16,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    INT8,
    INT32,
    TF32,
    UINT16,
)
from bhemu.tensix.units.pack.early_conversion import to_fp16

u32 = np.uint32
_INF = 0x7F800000


@njit
def _widen(values: Any) -> None:
    # fp16 to fp32; exponent 0 keeps its mantissa and is not rebiased.
    for i in range(values.size):
        v = values[i]
        em = u32(v & u32(0x7FFF))
        em = u32(em + u32(112 << 10)) if em >= u32(0x400) else em
        values[i] = u32(u32(u32(v & u32(0x8000)) << u32(16)) | u32(em << u32(13)))


@njit
def _truncate(values: Any) -> None:
    # fp32 to bf16; denormals become +0.
    for i in range(values.size):
        v = values[i]
        values[i] = v >> u32(16) if v & u32(_INF) else u32(0)


@njit
def _to_fp8(values: Any) -> None:
    # fp16 to e4m3: exponents up to 8 give zero, from 24 the largest magnitude.
    for i in range(values.size):
        v = values[i]
        em = u32(v & u32(0x7FFF))
        scaled = u32(u32(max(em, u32(8 << 10)) - u32(8 << 10)) >> u32(7))
        em = min(scaled, u32(0x7F)) if em >= u32(9 << 10) else u32(0)
        values[i] = u32(u32(u32(v >> u32(8)) & u32(0x80)) | em)


@njit
def _up(values: Any, by: Any) -> None:
    for i in range(values.size):
        values[i] = u32(values[i] << u32(by))


@njit
def _magnitude_down(values: Any, by: Any, sign: Any) -> None:
    # fp16 patterns with `by` mantissa bits cut off; the sign bit goes to `sign`.
    for i in range(values.size):
        v = values[i]
        values[i] = u32((v & u32(0x8000)) >> u32(15 - sign)) | u32((v & u32(0x7FFF)) >> u32(by))


@njit(forceinline=True)  # one caller
def to_output(s: Any, m: Any, values: Any) -> None:
    """Convert settled patterns to the output format; bfp outputs stay s e m7 patterns."""
    if m.fmt == INT8 or m.fmt == INT32 or m.fmt == UINT16:
        return
    five = m.fmt == FP16 or m.fmt == BFP8A or m.fmt == FP8
    narrow = (formats.FIVE_BIT >> m.out) & 1
    as_bf16 = m.out == BF16 or (formats.is_bfp(m.out) and not narrow)
    wide = not five
    if m.fmt == TF32:
        _up(values, 13)
    elif m.fmt == BF16 or m.fmt == BFP8:
        if as_bf16:
            wide = False
        else:
            _up(values, 16)
    elif five and not narrow:
        _widen(values)
        wide = True
    if wide and narrow:
        to_fp16(values, np.int64(13))
    elif wide and as_bf16:
        _truncate(values)
    if m.out == FP8:
        if config.get(s, m.bank, cf.THCON_SEC0_REG1_Pac_LF8_4b_exp):
            _to_fp8(values)
        else:
            _magnitude_down(values, 8, 7)
    elif narrow and m.out != FP16:
        _magnitude_down(values, 3, 15)
