"""RWC counters: effective rows, fidelity phase, and what an ADDR_MOD section does to them.

`s.rwc[t]` and `s.rwc_cr[t]` hold SrcA, SrcB, Dst and fidelity of thread `t`.  On Blackhole an
instruction names one of eight sections directly.  Source: RWCs, Wormhole ISA; counters in ttsim's
Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.rules import UNSUPPORTED, error, refuse

SRCA, SRCB, DST, FIDELITY = 0, 1, 2, 3  # columns of s.rwc
SRC_ROWS = 64
DST_ROWS = 1024
SECTIONS = 8

# Section k of each group is the ThreadConfig value k places after section 0.
_AB = tf.ADDR_MOD_AB_SEC0_SrcAIncr.word
_DST = tf.ADDR_MOD_DST_SEC0_DestIncr.word
_BIAS = tf.ADDR_MOD_BIAS_SEC0_BiasIncr.word
assert tf.ADDR_MOD_AB_SEC7_SrcAIncr.word == _AB + SECTIONS - 1
assert tf.ADDR_MOD_DST_SEC7_DestIncr.word == _DST + SECTIONS - 1
assert tf.ADDR_MOD_BIAS_SEC7_BiasIncr.word == _BIAS + SECTIONS - 1

_BIAS_USED = error("ADDR-MOD-BIAS", UNSUPPORTED, "ADDR_MOD_BIAS_SEC{section} is {bias:#x}: Blackhole selects all eight sections directly", "leave BiasIncr and BiasClear 0")  # fmt: skip
_C_TO_CR_MIXED = error("ADDR-MOD-CTOCR", UNSUPPORTED, "ADDR_MOD_DST_SEC{section} is {value:#x}: DestCToCR together with DestClear or DestCR", "set only one of the three")  # fmt: skip


@njit(forceinline=True)
def dst_offset(s: Any, t: Any) -> Any:
    """What configuration adds to RWC.Dst: the math offset of the thread, and DEST_REGW_BASE."""
    base = config.get(s, config.bank(s, t), cf.DEST_REGW_BASE_Base)
    return config.thread(s, t, tf.DEST_TARGET_REG_CFG_MATH_Offset) + base


@njit(forceinline=True)
def dst_row(s: Any, t: Any, field: Any) -> Any:
    """Dst row of an instruction field: field + RWC.Dst + the offsets, modulo 1024."""
    return (field + s.rwc[t, DST] + dst_offset(s, t)) & (DST_ROWS - 1)


@njit(forceinline=True)
def src_row(s: Any, t: Any, which: Any, field: Any) -> Any:
    """Src row of an instruction field: field + RWC of SRCA or SRCB, modulo 64."""
    return (field + s.rwc[t, which]) & (SRC_ROWS - 1)


@njit(forceinline=True)
def fidelity_phase(s: Any, t: Any) -> Any:
    """Fidelity phase 0-3 of the next FPU instruction (counter + FIDELITY_BASE)."""
    return (s.rwc[t, FIDELITY] + config.thread(s, t, tf.FIDELITY_BASE_Phase)) & 3


@njit(forceinline=True)
def _field(word: Any, f: Any) -> Any:
    return (word >> f.shift) & f.mask


@njit
def addr_mod_refused(s: Any, t: Any, k: Any) -> Any:
    """0, or the error of section `k` (0-7): bias, or CToCR mixed.  Ask before any effect."""
    bias = np.int64(s.thread_cfg[t, _BIAS + (k & 7)])
    used = _field(bias, tf.ADDR_MOD_BIAS_SEC0_BiasIncr)
    if used | _field(bias, tf.ADDR_MOD_BIAS_SEC0_BiasClear):
        return refuse(s, _BIAS_USED, section=k, bias=bias)
    dst = np.int64(s.thread_cfg[t, _DST + (k & 7)])
    if _field(dst, tf.ADDR_MOD_DST_SEC0_DestCToCR):
        mixed = _field(dst, tf.ADDR_MOD_DST_SEC0_DestClear)
        if mixed | _field(dst, tf.ADDR_MOD_DST_SEC0_DestCR):
            return refuse(s, _C_TO_CR_MIXED, section=k, value=dst)
    return 0


@njit(forceinline=True)
def _step(s: Any, t: Any, i: Any, incr: Any, clear: Any, cr: Any, wrap: Any) -> None:
    if clear:
        s.rwc[t, i] = 0
        s.rwc_cr[t, i] = 0
    elif cr:
        s.rwc_cr[t, i] = (s.rwc_cr[t, i] + incr) & wrap
        s.rwc[t, i] = s.rwc_cr[t, i]
    else:
        s.rwc[t, i] = (s.rwc[t, i] + incr) & wrap


@njit
def apply_addr_mod_sfpu(s: Any, t: Any, k: Any) -> None:
    """Apply section `k` (0-7) to SrcA, SrcB and Dst; SFPLOAD and SFPSTORE leave fidelity alone."""
    ab = np.int64(s.thread_cfg[t, _AB + (k & 7)])
    incr = _field(ab, tf.ADDR_MOD_AB_SEC0_SrcAIncr)
    clear = _field(ab, tf.ADDR_MOD_AB_SEC0_SrcAClear)
    cr = _field(ab, tf.ADDR_MOD_AB_SEC0_SrcACR)
    _step(s, t, SRCA, incr, clear, cr, SRC_ROWS - 1)
    incr = _field(ab, tf.ADDR_MOD_AB_SEC0_SrcBIncr)
    clear = _field(ab, tf.ADDR_MOD_AB_SEC0_SrcBClear)
    cr = _field(ab, tf.ADDR_MOD_AB_SEC0_SrcBCR)
    _step(s, t, SRCB, incr, clear, cr, SRC_ROWS - 1)
    dst = np.int64(s.thread_cfg[t, _DST + (k & 7)])
    incr = _field(dst, tf.ADDR_MOD_DST_SEC0_DestIncr)
    clear = _field(dst, tf.ADDR_MOD_DST_SEC0_DestClear)
    cr = _field(dst, tf.ADDR_MOD_DST_SEC0_DestCR)
    _step(s, t, DST, incr, clear, cr, DST_ROWS - 1)
    if _field(dst, tf.ADDR_MOD_DST_SEC0_DestCToCR):
        s.rwc_cr[t, DST] = s.rwc[t, DST]


@njit
def apply_addr_mod(s: Any, t: Any, k: Any) -> None:
    """Apply section `k` (0-7) to all four counters, as every FPU instruction with addr_mode."""
    apply_addr_mod_sfpu(s, t, k)
    dst = np.int64(s.thread_cfg[t, _DST + (k & 7)])
    if _field(dst, tf.ADDR_MOD_DST_SEC0_FidelityClear):
        s.rwc[t, FIDELITY] = 0
    else:
        incr = _field(dst, tf.ADDR_MOD_DST_SEC0_FidelityIncr)
        s.rwc[t, FIDELITY] = (s.rwc[t, FIDELITY] + incr) & 3
