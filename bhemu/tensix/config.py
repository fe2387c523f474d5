"""Config and ThreadConfig: access by named field, bank selection, and the side effects of writes.

Fields are constants of `config_fields` (Config, two banks) and `thread_fields` (ThreadConfig).
Source: BackendConfiguration, Blackhole ISA.
"""

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.jit.subset import njit
from bhemu.tensix import config_fields as cf
from bhemu.tensix import dest, lanes, spaces, state
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.spaces import Clause, Values
from bhemu.tensix.state import CORES

CONFIG_WORDS = 224
FIRST_CORE_BY, BY_SHIFT = 4, 28  # of `cfg_by` and `thread_cfg_by`, see by_thread
THREAD_WORDS = 68
SHARED = 180  # words from here on are one register for both banks (GLOBAL_CFGREG_BASE)
IC_INVALIDATE = 185  # RISCV_IC_INVALIDATE: one bit per core, in the order brisc trisc0-2 ncrisc
# from a word of unpacker 0 (THCON_SEC0) to that of unpacker 1 (THCON_SEC1)
SECTION_WORDS = cf.THCON_SEC1_REG0_TileDescriptor.word - cf.THCON_SEC0_REG0_TileDescriptor.word

_STATE_RESET = cf.STATE_RESET_EN.word
_PRNG_SEED = cf.PRNG_SEED_Seed_Val.word
_DST_ORDER = cf.DEST_ACCESS_CFG_remap_addrs.word
_DST_ORDER_BITS = (
    1 << cf.DEST_ACCESS_CFG_remap_addrs.shift | 1 << cf.DEST_ACCESS_CFG_swizzle_32b.shift
)
# What changes besides with a word of Config.
EFFECTS = {
    _STATE_RESET: spaces.CONFIG,
    _PRNG_SEED: spaces.RANDOM | spaces.STOCHASTIC,
    _DST_ORDER: spaces.ALL_DST,
}
assert cf.DEST_ACCESS_CFG_swizzle_32b.word == _DST_ORDER
_WITH_EFFECT = tuple(sorted(EFFECTS))
_UNPACK_MISC = tf.UNPACK_MISC_CFG_CfgContextCntReset_0.word
_OF_CONTEXT = re.compile(r"cntx(\d)|CNTX_(\d)(\d)|()_(Base|Offset)_address$")


def bits_read(reads: Clause, values: Values, context: int | None = None) -> npt.NDArray[np.uint32]:
    """The bits of each word of a bank that a word with these fields reads.

    `context`: of an unpacker; None: only what it reads in each of them.
    """
    bits = np.zeros(CONFIG_WORDS, np.uint32)
    for term in reads.of(values):
        if term.space != spaces.CFG:
            continue
        if not term.fields:
            for bit in term.places(values) or ():
                bits[bit // 32] |= np.uint32(1 << bit % 32)
        for name, field in spaces.fields_named(term.space.name, term.fields).items():
            named = _OF_CONTEXT.search(name)
            of = {int(n) for n in named.groups()[:3] if n} or {0} if named else {context}
            if context in of:
                bits[field.word] |= np.uint32(field.mask << field.shift)
    return bits


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
def by_thread(s: Any, t: Any) -> Any:
    """The agent that writes when thread `t` executes: 1 to 3 in the upper 4 bits, the pc below."""
    return (1 + t) << BY_SHIFT | np.int64(s.gate_pc[t])


@njit
def by_core(s: Any, c: Any) -> Any:
    """The agent when core `c` stores: 4 to 8 in the upper 4 bits (a host: 9), the pc below."""
    return (FIRST_CORE_BY + c) << BY_SHIFT | (np.int64(s.pc[c]) if c < CORES else np.int64(0))


@njit
def _store(s: Any, b: Any, word: Any, value: Any, agent: Any) -> None:
    if word >= SHARED:
        s.cfg[0, word] = np.uint32(value & 0xFFFFFFFF)
        s.cfg[1, word] = np.uint32(value & 0xFFFFFFFF)
        s.cfg_by[0, word] = s.cfg_by[1, word] = np.uint32(agent)
    else:
        s.cfg[b, word] = np.uint32(value & 0xFFFFFFFF)
        s.cfg_by[b, word] = np.uint32(agent)


@njit
def has_effect(word: Any) -> Any:
    """Whether more than Config word `word` changes where it is written (EFFECTS)."""
    return word in _WITH_EFFECT


@njit
def write(s: Any, b: Any, word: Any, value: Any, agent: Any) -> None:
    """Store one Config word of bank `b` (index < 224), with the side effects of the word."""
    if word == _DST_ORDER and (np.int64(s.cfg[0, word]) ^ value) & _DST_ORDER_BITS:
        dest.reorder(s)
    _store(s, b, word, value, agent)
    if word == _STATE_RESET:
        for i in range(SHARED):
            s.cfg[b, i] = np.uint32(0)
            s.cfg_by[b, i] = np.uint32(agent)
    elif word == _PRNG_SEED:
        lanes.seed_random(s, value)
        lanes.start_rounding(s, value)
    elif word == IC_INVALIDATE:
        state.flush(s, value)


@njit
def writable(index: Any) -> Any:
    """True for word `index` of the mapped space in Config[0], Config[1] or ConfigDualWrite."""
    return index < 3 * CONFIG_WORDS


@njit
def write_mapped(s: Any, index: Any, value: Any, agent: Any) -> None:
    """Store a `writable` word of the space that starts at TENSIX_CFG_BASE."""
    if index < 2 * CONFIG_WORDS:
        write(s, index // CONFIG_WORDS, index % CONFIG_WORDS, value, agent)
    else:
        write(s, np.int64(0), index - 2 * CONFIG_WORDS, value, agent)
        write(s, np.int64(1), index - 2 * CONFIG_WORDS, value, agent)


@njit
def modify(s: Any, b: Any, word: Any, value: Any, mask: Any, agent: Any) -> None:
    """Replace the masked bits (RMWCIB): as `write`, but STATE_RESET_EN has no effect."""
    merged = (np.int64(s.cfg[b, word]) & ~mask) | (value & mask)
    if word == _STATE_RESET:
        _store(s, b, word, merged, agent)
    else:
        write(s, b, word, merged, agent)


@njit
def write_thread(s: Any, t: Any, index: Any, value: Any) -> None:
    """Store one ThreadConfig value of thread `t` (SETC16), with its side effects."""
    s.thread_cfg[t, index] = np.uint32(value & 0xFFFF)
    s.thread_cfg_by[t, index] = np.uint32(by_thread(s, t))
    if index == _UNPACK_MISC:
        if thread(s, t, tf.UNPACK_MISC_CFG_CfgContextCntReset_0):
            s.unpack_context[0, t] = 0
        if thread(s, t, tf.UNPACK_MISC_CFG_CfgContextCntReset_1):
            s.unpack_context[1, t] = 0
