"""The order of an access after queued words: Auto TTSync, and races for Config.

ThreadConfig TENSIX_TRISC_SYNC_* of the core's thread selects what is tracked.  A store waits for
words that read or write its resource, a load for words that write it, until they have passed the
wait gate.  The other two orders (a push after a load or store) hold because an access takes place
at once.  Source: Auto TTSync, Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.devices.bus.window import TRACKED_CONFIG, TRACKED_GPRS, access_error
from bhemu.jit.subset import njit
from bhemu.memmap import TENSIX_CFG_BASE
from bhemu.tensix import config, frontend
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config import CONFIG_WORDS, SHARED
from bhemu.tensix.insn import Instruction, instructions
from bhemu.tensix.rules import DONE, UB, UNIMPLEMENTED, condition, error, undefined
from bhemu.tensix.spaces import CFG, GPR, TDMA_STATE, Clause
from bhemu.tensix.state import FIFO_DEPTH
from bhemu.tensix.units import MODULES
from bhemu.tensix.units.cfg import SETC16
from bhemu.tensix.units.pack.pacr import PACR
from bhemu.tensix.units.sync import MOP, REPLAY
from bhemu.tensix.units.unpack.modes import UNPACR_NOP
from bhemu.tensix.units.unpack.unpacr import UNPACR

WAIT = condition("queued words that use this resource to pass the wait gate (Auto TTSync)")
DECLARED = access_error("AUTO-TTSYNC-DECL", UNIMPLEMENTED, "access to {address:#010x} under Auto TTSync: resources declared by RESOURCEDECL are not modelled", "leave RESOURCEDECL out, or clear TENSIX_TRISC_SYNC_TrackTensixInstructions")  # fmt: skip

# Resources, as bits: parts of Config[0], and of Config[1] above them; the thread's GPRs; the state
# of TDMA-RISC; Config of the bank that the thread uses, all of it or no unpacker's part.
UNPACKER0, UNPACKER1, REST = 1, 2, 4
GPRS, TDMA, OWN, OWN_REST = 64, 128, 1 << 8, 1 << 9
_BANK = 3  # bits per bank
_ALL_PARTS, _BOTH_BANKS = 7, 63
_REST_OF_BOTH = REST | REST << _BANK
_UNPACKERS_OF_BOTH = (UNPACKER0 | UNPACKER1) * 9

_CONTROL = tf.TENSIX_TRISC_SYNC_TrackGlobalCfg.word
_TRACK_CFG = 1 << tf.TENSIX_TRISC_SYNC_TrackGlobalCfg.shift
_SUBDIVIDED = 1 << tf.TENSIX_TRISC_SYNC_EnSubdividedCfgForUnpacr.shift
_TRACK_GPR = 1 << tf.TENSIX_TRISC_SYNC_TrackGPR.shift
_TRACK_TDMA = 1 << tf.TENSIX_TRISC_SYNC_TrackTDMARegs.shift
_TRACK_WORDS = 1 << tf.TENSIX_TRISC_SYNC_TrackTensixInstructions.shift
_MATH_OFFSET = tf.DEST_TARGET_REG_CFG_MATH_Offset.word

# Config words that belong to an unpacker (the page's table of fields, by the words that hold them).
_OF_UNPACKER0 = (44, 45, *range(48, 54), 64, *range(72, 88), *range(92, 96), 104, 105)
_OF_UNPACKER1 = (*range(45, 51), *range(58, 64), 112, 120, 121, 124, 125, 140, 141)
_ALSO_REST = (48, 49, 50)


def _parts(word: int) -> int:
    unpackers = (word in _OF_UNPACKER0) * UNPACKER0 | (word in _OF_UNPACKER1) * UNPACKER1
    return unpackers | (REST if not unpackers or word in _ALSO_REST else 0)


PARTS = tuple(_parts(word) for word in range(CONFIG_WORDS))

_SETC16, _UNPACR, _UNPACR_NOP = SETC16.opcode, UNPACR.opcode, UNPACR_NOP.opcode
_UNPACKER = UNPACR.unpack_block_selection.lo  # as in UNPACR_NOP


# Where the page counts more or less than what the words touch: resources read and written.
_EVERYTHING, _COPIES = (GPRS | TDMA | OWN, GPRS | TDMA | OWN), (GPRS | OWN, GPRS | OWN)
_COUNTED = {
    **dict.fromkeys(("MOP", "REPLAY"), _EVERYTHING),
    **dict.fromkeys(("MOP_CFG", "NOP", "RESOURCEDECL"), (0, 0)),
    **dict.fromkeys((f"RMWCIB{i}" for i in range(4)), (OWN_REST, 0)),
    **dict.fromkeys(("ATCAS", "ATSWAP"), (GPRS, GPRS)),
    "XMOV": _COPIES,
    "STREAMWRCFG": (OWN, OWN),
    "REG2FLOP": (GPRS | TDMA, GPRS | TDMA),
}


def _registers(clause: Clause) -> int:
    return (GPRS if clause.may(GPR) else 0) | (TDMA if clause.may(TDMA_STATE) else 0)


def _config_read(clause: Clause) -> int:
    """OWN_REST for Config by name without an unpacker's part, OWN for any other that is read."""
    read = [term for term in clause if term.space == CFG]
    named = {bit // 32 for term in read if term.fields for bit in term.places({}) or ()}
    if any(PARTS[word] & ~REST for word in named) or any(not term.fields for term in read):
        return OWN
    return OWN_REST if read else 0


def _used_by(cls: type[Instruction]) -> tuple[int, int]:
    """Resources that the words of a class read and write."""
    if cls.name in _COUNTED:
        return _COUNTED[cls.name]
    keeps = any(term.space == GPR and term.keeps for term in cls.writes)
    reads = _registers(cls.reads) | _config_read(cls.reads) | (GPRS if keeps else 0)
    writes = _registers(cls.writes) | (OWN if cls.writes.may(CFG) else 0)
    return reads or (0 if writes else OWN_REST), writes


assert MODULES  # importing the units declares the instructions
_USED = [_used_by(instructions()[i]) if i in instructions() else (OWN_REST, 0) for i in range(256)]
READS, WRITES = (tuple(used) for used in zip(*_USED, strict=True))


@njit
def _accessed(control: Any, order: Any, offset: Any) -> Any:
    """Resources that an access counts as using, 0 when it is not tracked; `order`: window.py."""
    if order == TRACKED_GPRS:
        return np.int64(GPRS if control & _TRACK_GPR else 0)
    if order != TRACKED_CONFIG:
        return np.int64(TDMA if control & _TRACK_TDMA else 0)
    if not control & _TRACK_CFG:
        return np.int64(0)
    index = offset >> 2
    word, bank = index % CONFIG_WORDS, index // CONFIG_WORDS
    if bank < 2 and word < SHARED:
        return np.int64((PARTS[word] if control & _SUBDIVIDED else _ALL_PARTS) << (_BANK * bank))
    if control & _SUBDIVIDED == 0:
        return np.int64(_BOTH_BANKS)
    of_unpackers = index == 3 * CONFIG_WORDS + _MATH_OFFSET
    return np.int64(_UNPACKERS_OF_BOTH if of_unpackers else _REST_OF_BOTH)


@njit
def _used(control: Any, banks: Any, word: Any, classes: Any) -> Any:
    """Resources of a queued word; `classes` is READS or WRITES, `banks` 1, 2 or 3 (both)."""
    opcode = (word >> 24) & 0xFF
    uses = classes[opcode]
    parts = np.int64(_ALL_PARTS if uses & OWN else 0)
    if uses & OWN_REST:
        parts = np.int64(REST)
    if parts and (opcode == _UNPACR or opcode == _UNPACR_NOP) and control & _SUBDIVIDED:
        parts = np.int64(UNPACKER1 if (word >> _UNPACKER) & 1 else UNPACKER0)
    own = (parts if banks & 1 else 0) | (parts << _BANK if banks & 2 else 0)
    return own | (uses & (GPRS | TDMA))


@njit
def _pending(s: Any, c: Any, control: Any, classes: Any) -> Any:
    """Resources of all words that the core has pushed and that wait in its front end."""
    t = c - 1
    banks = np.int64(1) << config.bank(s, t)
    uses = np.int64(0)
    if s.gate_full[t] and s.gate_core[t] == c:
        word = np.int64(frontend.MOP << 24 if s.gate_from[t] else s.gate_word[t])
        uses |= _used(control, banks, word, classes)
    if s.mop_on[t] or s.play_left[t] > 0:
        uses |= _used(control, banks, np.int64(frontend.MOP << 24), classes)
    for i in range(s.fifo_read[t], s.fifo_write[t]):
        if s.fifo_core[t, i % FIFO_DEPTH] == c:
            word = np.int64(s.fifo[t, i % FIFO_DEPTH])
            if word >> 16 == _SETC16 << 8:  # the words after it may use the other bank
                banks = np.int64(3)
            uses |= _used(control, banks, word, classes)
    return uses


@njit
def tracks(s: Any, c: Any) -> Any:
    """Whether core 1-3 may have to wait at all."""
    return np.int64(s.thread_cfg[c - 1, _CONTROL]) & _TRACK_WORDS != 0


@njit
def check(s: Any, c: Any, offset: Any, order: Any, store: Any) -> Any:
    """DONE, or why trisc0-2 (core 1-3) may not access `offset` of a tracked window now."""
    t = c - 1
    control = np.int64(s.thread_cfg[t, _CONTROL])
    wanted = _accessed(control, order, offset)
    if wanted == 0:
        return DONE
    # Whether RESOURCEDECL has changed, or is about to change, what the words count as using.
    if s.sync_declared[t]:
        return DECLARED
    for i in range(s.fifo_read[t], s.fifo_write[t]):
        if np.int64(s.fifo[t, i % FIFO_DEPTH]) >> 24 == frontend.RESOURCEDECL:
            return DECLARED
    uses = _pending(s, c, control, WRITES)
    if store:
        uses |= _pending(s, c, control, READS)
    return WAIT if uses & wanted else DONE


# A core stores to a Config word that a queued UNPACR or PACR of its own thread still reads.


# Nothing orders such a store and the words in front of it: an UNPACR that waits for a bank sees
# the new address or the old one.  What such a word reads, its class declares.  Another value of
# another context is no race: that is what contexts are for. Source: BackendConfiguration,
# UNPACR_Regular, PACR, ISA.

IN_USE = error("CFG-IN-USE", UB, "{value:#x} stored to {address:#010x}, Config word {index}, while {word:#010x} is queued, which reads it: whether it sees the old value or the new one is a race", "wait until the thread has executed it (a load of TTSync, a semaphore), alternate contexts, or write the word by WRCFG or RMWCIB")  # fmt: skip

_STATE_ID = tf.CFG_STATE_ID_StateID.word
_CONTEXTS = tf.UNPACK_MISC_CFG_CfgContextOffset_0.word
_MOP, _PACR = MOP.opcode, PACR.opcode
_TEMPLATE, _MASK_LOW = MOP.mop_type.lo, MOP.zmask_lo16_or_loop_count.mask
_COUNT, _COUNT_MAX = MOP.loop_count.lo, MOP.loop_count.max
_REPLAY, _LOAD, _EXECUTE = REPLAY.opcode, REPLAY.load_mode.mask, REPLAY.execute_while_loading.mask
_LENGTH, _LENGTH_MAX, _SLOTS = REPLAY.len.lo, REPLAY.len.max, 32
_FLUSH = PACR.flush.mask
_COUNT_ONLY = UNPACR.cfg_context_cnt_inc.mask | UNPACR.search_cache_flush.mask
_BY_COUNTER, _MULTI_CONTEXT = UNPACR.auto_inc_context_id.mask, UNPACR.ovrd_thread_id.mask
_CONTEXT, _CONTEXT_MAX = UNPACR.cfg_context_id.lo, UNPACR.cfg_context_id.max
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
                if word & (_LOAD | _EXECUTE) == _LOAD:  # words that it records without executing
                    recorded = ((word >> _LENGTH) & _LENGTH_MAX) or _SLOTS
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
