"""Config and ThreadConfig: access by named field, bank selection, and the side effects of writes.

Fields are constants of `config_fields` (Config, two banks) and `thread_fields` (ThreadConfig).
Source: BackendConfiguration, Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import code_pages, dest, prng, stochastic
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config_fields import (
    STATE_RESET_EN,
    DEST_ACCESS_CFG_remap_addrs,
    DEST_ACCESS_CFG_swizzle_32b,
    PRNG_SEED_Seed_Val,
    THCON_SEC0_REG0_TileDescriptor,
    THCON_SEC1_REG0_TileDescriptor,
)

CONFIG_WORDS = 224
THREAD_WORDS = 68
SHARED = 180  # words from here on are one register for both banks (GLOBAL_CFGREG_BASE)
IC_INVALIDATE = 185  # RISCV_IC_INVALIDATE: one bit per core, in the order brisc trisc0-2 ncrisc
# from a word of unpacker 0 (THCON_SEC0) to that of unpacker 1 (THCON_SEC1)
SECTION_WORDS = THCON_SEC1_REG0_TileDescriptor.word - THCON_SEC0_REG0_TileDescriptor.word

_STATE_RESET = STATE_RESET_EN.word
_PRNG_SEED = PRNG_SEED_Seed_Val.word
_DST_ORDER = DEST_ACCESS_CFG_remap_addrs.word
_DST_ORDER_BITS = 1 << DEST_ACCESS_CFG_remap_addrs.shift | 1 << DEST_ACCESS_CFG_swizzle_32b.shift
assert DEST_ACCESS_CFG_swizzle_32b.word == _DST_ORDER
_UNPACK_MISC = tf.UNPACK_MISC_CFG_CfgContextCntReset_0.word


@njit
def bank(s: Any, t: Any) -> Any:
    """Config bank that thread `t` uses (CFG_STATE_ID_StateID)."""
    return np.int64(s.thread_cfg[t, 0]) & 1


@njit
def get(s: Any, b: Any, f: Any) -> Any:
    """Field `f` (config_fields) of Config bank `b`, as int64."""
    return (np.int64(s.cfg[b, f.word]) >> f.shift) & f.mask


@njit
def thread(s: Any, t: Any, f: Any) -> Any:
    """Field `f` (thread_fields) of ThreadConfig of thread `t`, as int64."""
    return (np.int64(s.thread_cfg[t, f.word]) >> f.shift) & f.mask


@njit
def _store(s: Any, b: Any, word: Any, value: Any) -> None:
    if word >= SHARED:
        s.cfg[0, word] = np.uint32(value & 0xFFFFFFFF)
        s.cfg[1, word] = np.uint32(value & 0xFFFFFFFF)
    else:
        s.cfg[b, word] = np.uint32(value & 0xFFFFFFFF)


@njit
def write(s: Any, b: Any, word: Any, value: Any) -> None:
    """Store one Config word of bank `b` (index < 224), with the side effects of the word."""
    if word == _DST_ORDER and (np.int64(s.cfg[0, word]) ^ value) & _DST_ORDER_BITS:
        dest.reorder(s)
    _store(s, b, word, value)
    if word == _STATE_RESET:
        for i in range(SHARED):
            s.cfg[b, i] = np.uint32(0)
    elif word == _PRNG_SEED:
        prng.seed(s, value)
        stochastic.start(s, value)
    elif word == IC_INVALIDATE:
        code_pages.flush(s, value)


@njit
def writable(index: Any) -> Any:
    """True for word `index` of the mapped space in Config[0], Config[1] or ConfigDualWrite."""
    return index < 3 * CONFIG_WORDS


@njit
def write_mapped(s: Any, index: Any, value: Any) -> None:
    """Store a `writable` word of the space that starts at TENSIX_CFG_BASE."""
    if index < 2 * CONFIG_WORDS:
        write(s, index // CONFIG_WORDS, index % CONFIG_WORDS, value)
    else:
        write(s, np.int64(0), index - 2 * CONFIG_WORDS, value)
        write(s, np.int64(1), index - 2 * CONFIG_WORDS, value)


@njit
def modify(s: Any, b: Any, word: Any, value: Any, mask: Any) -> None:
    """Replace the masked bits (RMWCIB): as `write`, but STATE_RESET_EN has no effect."""
    merged = (np.int64(s.cfg[b, word]) & ~mask) | (value & mask)
    if word == _STATE_RESET:
        _store(s, b, word, merged)
    else:
        write(s, b, word, merged)


@njit
def write_thread(s: Any, t: Any, index: Any, value: Any) -> None:
    """Store one ThreadConfig value of thread `t` (SETC16), with its side effects."""
    s.thread_cfg[t, index] = np.uint32(value & 0xFFFF)
    if index == _UNPACK_MISC:
        if thread(s, t, tf.UNPACK_MISC_CFG_CfgContextCntReset_0):
            s.unpack_context[0, t] = 0
        if thread(s, t, tf.UNPACK_MISC_CFG_CfgContextCntReset_1):
            s.unpack_context[1, t] = 0
