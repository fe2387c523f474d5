"""A core stores to a Config word that a queued UNPACR or PACR of its own thread still reads."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.memmap import TENSIX_CFG_BASE
from bhemu.tensix import config, frontend
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.rules import UB, error, undefined
from bhemu.tensix.state import FIFO_DEPTH
from bhemu.tensix.units.cfg import SETC16
from bhemu.tensix.units.pack.pacr import PACR
from bhemu.tensix.units.sync import MOP, REPLAY
from bhemu.tensix.units.unpack.unpacr import UNPACR

# Nothing orders such a store and the words in front of it: an UNPACR that waits for a bank sees
# the new address or the old one.  What such a word reads, its class declares.  Another value of
# another context is no race: that is what contexts are for. Source: BackendConfiguration,
# UNPACR_Regular, PACR, ISA.

IN_USE = error("CFG-IN-USE", UB, "{value:#x} stored to {address:#010x}, Config word {index}, while {word:#010x} is queued, which reads it: whether it sees the old value or the new one is a race", "wait until the thread has executed it (a load of TTSync, a semaphore), alternate contexts, or write the word by WRCFG or RMWCIB")  # fmt: skip

_STATE_ID = tf.CFG_STATE_ID_StateID.word
_CONTEXTS = tf.UNPACK_MISC_CFG_CfgContextOffset_0.word
_MOP, _PACR, _UNPACR, _SETC16 = MOP.opcode, PACR.opcode, UNPACR.opcode, SETC16.opcode
_TEMPLATE, _MASK_LOW = MOP.mop_type.lo, MOP.zmask_lo16_or_loop_count.mask
_COUNT, _COUNT_MAX = MOP.loop_count.lo, MOP.loop_count.max
_REPLAY, _LOAD, _EXECUTE = REPLAY.opcode, REPLAY.load_mode.mask, REPLAY.execute_while_loading.mask
_LENGTH, _LENGTH_MAX, _SLOTS = REPLAY.len.lo, REPLAY.len.max, 32
_FLUSH = PACR.flush.mask
_COUNT_ONLY = UNPACR.cfg_context_cnt_inc.mask | UNPACR.search_cache_flush.mask
_BY_COUNTER, _MULTI_CONTEXT = UNPACR.auto_inc_context_id.mask, UNPACR.ovrd_thread_id.mask
_CONTEXT, _CONTEXT_MAX = UNPACR.cfg_context_id.lo, UNPACR.cfg_context_id.max
_UNPACKER = UNPACR.unpack_block_selection.lo
_REGISTER = SETC16.setc16_reg.lo
_WORD_BITS, _WORD = 8, 0xFF
# Bits of Config words that words read: of unpacker 0 in contexts 0 to 7 and in all of them, the
# same of unpacker 1, of the packer.
_ANY_CONTEXT, _BY_UNPACKER, _BY_PACKER = 8, 9, 18
_READ = np.array(
    [
        config.bits_read(UNPACR.reads, UNPACR.operands(u << _UNPACKER), context)
        for u in (0, 1)
        for context in (*range(8), None)
    ]
    + [config.bits_read(PACR.reads, PACR.operands(0))]
)


@njit
def _reads(word: Any, changed: Any, contexts: Any) -> Any:
    # Whether a Tensix word reads bits that change; `contexts` is UNPACK_MISC_CFG, `changed`: bits
    # above the number of the Config word.
    index, bits = changed & _WORD, changed >> _WORD_BITS
    opcode, u = word >> 24, (word >> _UNPACKER) & 1
    if opcode == _PACR:
        return word & _FLUSH == 0 and np.int64(_READ[_BY_PACKER, index]) & bits != 0
    if opcode != _UNPACR or word & _COUNT_ONLY:
        return False
    context = np.int64(0)
    if word & _MULTI_CONTEXT:
        context = ((word >> _CONTEXT) + (contexts >> (8 * u))) & _CONTEXT_MAX
        context = np.int64(_ANY_CONTEXT) if word & _BY_COUNTER else context
    return np.int64(_READ[_BY_UNPACKER * u + context, index]) & bits != 0


@njit
def _of_template(words: Any, given: Any, changed: Any, contexts: Any) -> Any:
    # The first of the words of a MOP configuration that reads what changes, or 0; `given`: as
    # frontend.issued.
    for i in range(2, 9):
        if (given >> i) & 1 and _reads(np.int64(words[i]), changed, contexts):
            return np.int64(words[i])
    return np.int64(0)


@njit
def _changes(word: Any, register: Any) -> Any:
    return word >> _REGISTER == _SETC16 << 24 - _REGISTER | register


@njit
def _expanded(s: Any, t: Any, changed: Any, contexts: Any) -> Any:
    # As `_of_template` for what the expanders of thread t still have to give.
    for i in range(s.play_left[t]):
        word = np.int64(s.replay[t, (s.play_at[t] + i) & 31])
        if _reads(word, changed, contexts):
            return word
    if s.mop_on[t] == 0:
        return np.int64(0)
    steps = s.mop_count[t] - s.mop_outer[t]
    mask = np.int64(s.mop_mask[t])
    given = frontend.issued(s.mop_live[t], s.mop_on[t] == 2, mask, steps)
    return _of_template(s.mop_live[t], given, changed, contexts)


@njit
def _records(word: Any) -> Any:
    # How many of the next words a REPLAY records without executing them.
    if word & (_LOAD | _EXECUTE) != _LOAD:
        return 0
    return ((word >> _LENGTH) & _LENGTH_MAX) or _SLOTS


@njit
def _reader(s: Any, t: Any, changed: Any) -> Any:
    # The first word that thread t has not executed and that reads what changes, or 0.  Words
    # after a change of the bank are left out.
    contexts = np.int64(s.thread_cfg[t, _CONTEXTS])
    at_gate = s.fifo_read[t] - 1
    recorded = 0 if s.record_execute[t] else np.int64(s.record_left[t])  # of those that come
    for i in range(at_gate, s.fifo_write[t]):
        word = np.int64(s.gate_word[t] if i == at_gate else s.fifo[t, i % FIFO_DEPTH])
        found = np.int64(0)
        if i > at_gate and recorded > 0:
            recorded -= 1
        elif i > at_gate or s.gate_full[t]:
            if _changes(word, _STATE_ID):
                return np.int64(0)
            if _changes(word, _CONTEXTS):
                contexts = word & 0xFFFF
            elif word >> 24 == _MOP:
                # As `_of_template` for a MOP that has not begun.
                mask = (word & _MASK_LOW) | (np.int64(s.mop_zmask_hi[t]) << 16)
                steps = ((word >> _COUNT) & _COUNT_MAX) + 1
                given = frontend.issued(s.mop_cfg[t], (word >> _TEMPLATE) & 1, mask, steps)
                found = _of_template(s.mop_cfg[t], given, changed, contexts)
            elif word >> 24 == _REPLAY:
                recorded = _records(word)
            elif _reads(word, changed, contexts):
                found = word
        if i == at_gate and found == 0:
            found = _expanded(s, t, changed, contexts)
        if found:
            return found
    return np.int64(0)


@njit
def refused(s: Any, c: Any, index: Any, value: Any) -> Any:
    """0, or the error of trisc0-2 (core 1-3) storing `value` to word `index` of the Config space.

    Its own thread has run until its head blocks.
    """
    t = c - 1
    if s.gate_full[t] == 0 and s.fifo_read[t] == s.fifo_write[t]:
        return 0
    b, word = config.bank(s, t), index % CONFIG_WORDS
    if index < 2 * CONFIG_WORDS and index // CONFIG_WORDS != b:
        return 0
    bits = np.int64(s.cfg[b, word]) ^ value & 0xFFFFFFFF
    reader = _reader(s, t, bits << _WORD_BITS | word) if bits else np.int64(0)
    if reader == 0:
        return 0
    address = TENSIX_CFG_BASE + 4 * index
    return undefined(s, IN_USE, address=address, value=value, word=reader, index=word)
