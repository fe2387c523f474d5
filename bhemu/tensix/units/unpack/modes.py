"""The words of the unpackers, UNPACR_NOP, and the modes that Config gives: formats, refusals.

Source of this package: UNPACR_Regular, FormatConversion, UNPACR_IncrementContextCounter and
UNPACR_FlushCache, Wormhole ISA (shared with Blackhole); row widths, sizes of bursts, fp8, bfp and
int8, and checks from ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.bits import Word, bits, choice, number
from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, formats, insn, rules, spaces, unspecified
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config import SECTION_WORDS
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
from bhemu.tensix.insn import Instruction
from bhemu.tensix.spaces import Clause, Kind


def _section(u: int) -> Clause:
    """Config that only words of unpacker `u` read."""
    first = cf.THCON_SEC0_REG0_TileDescriptor.word + SECTION_WORDS * u
    patterns = ("REG[23457]_*", "REG1_Unp_*", "REG1_ovrd_default_throttle_mode")
    fields = spaces.cfg(*(f"THCON_SEC{u}_{one}" for one in patterns), f"UNP{u}_[!N]*")
    return spaces.config_word(str(first), 4) | fields


def read_config(unpacker: str) -> Clause:
    """Config that a word of the unpacker in this field reads."""
    both = spaces.thread_cfg("SRCA_SET_*", "SRCB_SET_*", "UNPACK_MISC_CFG_*")
    both |= spaces.cfg("ALU_FORMAT_SPEC_REG0_*Unsigned")
    return both | _section(0).unless(unpacker) | _section(1).when(unpacker)


# How an unpacker is configured: its Mode, tile descriptor, contexts, the modes that are refused.

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

_SHIFTED_DST = rules.error("UNPACR-COLUMN-SHIFT", rules.UB, "unpacking to Dst with THCON_SEC0_REG2_Shift_amount_cntx{context} other than 0 and no Tileize_mode")  # fmt: skip
_HALOIZE_SRCB = rules.error("UNPACR-HALOIZE-SRCB", rules.NCB, "unpacker 1 does not transpose (Haloize_mode)", "clear THCON_SEC1_REG2_Haloize_mode; the silicon ignores it")  # fmt: skip
_HALOIZE_DST = rules.error("UNPACR-HALOIZE-DST", rules.UB, "unpacking to Dst does not transpose (Haloize_mode)")  # fmt: skip
_TILEIZE_FORMAT = rules.error("UNPACR-TILEIZE-FORMAT", rules.UB, "Tileize_mode with format {fmt}, whose datums are smaller than a byte")  # fmt: skip


def _must_be_zero(u: int) -> list[tuple[cf.Field, int]]:
    # Each field that must be zero, with its rule.
    names = {
        f"THCON_SEC{u}_REG2_Context_count_non_log2_en": "there is no specification of it",
        f"THCON_SEC{u}_REG2_Unpack_fifo_size": "the input wraps after rows of 16 datums in the ISA "
        "text, and rows of Blackhole have 32",
        f"UNP{u}_ADDR_BASE_REG_1_Base": "Blackhole does not have it",
    }
    return [
        (getattr(cf, name), rules.unmodelled("UNPACR", name, why)) for name, why in names.items()
    ]


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
        return rules.refuse(s, _SHIFTED_DST, context=m.context)
    if m.tileize and formats.datum_bits(m.fmt) < 8:
        return rules.refuse(s, _TILEIZE_FORMAT, fmt=m.fmt)
    if m.haloize and m.unpacker:
        return rules.undefined(s, _HALOIZE_SRCB)
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
    for i in range(_ZERO_FIELD.shape[1]):
        word = np.int64(s.cfg[m.bank, _ZERO_FIELD[m.unpacker, i, 0]])
        value = (word >> _ZERO_FIELD[m.unpacker, i, 1]) & _ZERO_FIELD[m.unpacker, i, 2]
        if value:
            return rules.refuse(s, _ZERO_RULE[m.unpacker, i], value=value)
    return 0


# The word of UNPACR: its fields, and the context, counters and so the Mode that they select.


class UnpackWord(Word):
    """Fields of UNPACR, for its own entry and for its second entries."""

    last = bits(0, 0, insn.IGNORED)
    search_cache_flush = bits(
        1, 1, choice("unpacks", "flushes the cache of the unpacker, unpacks nothing")
    )
    row_search = bits(2, 2, mode=True).meaning("""
        0: rows in order
        1: from the row that the table of the compressed tile gives""")
    auto_inc_context_id = bits(
        3, 3, choice("context cfg_context_id", "the context that the counter of the unpacker names")
    )
    zero_write2 = bits(4, 4, choice("datums from L1", "zeros"), mode=True)
    srcb_bcast = bits(5, 5, choice("no broadcast"), mode=True)
    set_dat_valid = bits(
        6, 6, choice("keeps the bank", "hands the bank to the matrix unit"), mode=True
    )
    ovrd_thread_id = bits(7, 7).meaning("""
        0: one context, counters of the issuing thread
        1: contexts and addr_cnt_context_id count""")
    addr_cnt_context_id = bits(9, 8, insn.THREAD)
    cfg_context_id = bits(12, 10, number("context, to which CfgContextOffset is added"))
    cfg_context_cnt_inc = bits(13, 13, choice("unpacks", "counts the context on, unpacks nothing"))
    addr_mode = bits(22, 15).meaning(
        "increments of counters afterwards: channel 0 Z [1:0] and Y [3:2], channel 1 Z [5:4] and "
        "Y [7:6]"
    )
    unpack_block_selection = bits(
        23, 23, choice("unpacker 0: SrcA or Dst", "unpacker 1: SrcB"), mode=True
    )


@njit
def mode_of_word(s: Any, t: Any, f: Any) -> Any:
    """Mode of an UNPACR of thread `t`."""
    u, multi, k = f.unpack_block_selection, f.ovrd_thread_id, np.int64(0)
    if multi:
        f0, f1 = tf.UNPACK_MISC_CFG_CfgContextOffset_0, tf.UNPACK_MISC_CFG_CfgContextOffset_1
        context = s.unpack_context[u, t] if f.auto_inc_context_id else f.cfg_context_id
        k = (context + config.thread(s, t, f1 if u else f0)) & 7
    # Thread of the X and Y counters, 0: that which issues UNPACR, as in ttsim.  The text takes
    # thread 0 for 0, which is the thread that unpacks in LLK.
    adc = f.addr_cnt_context_id if multi else np.int64(0)
    return mode_of(s, t, u, multi, k, adc if adc else np.int64(t))


# Formats of the unpackers: which format in L1 may become which format in Src or Dst.

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
    [[kind.get(f, 0) | _WIDER.get(f, 0) for f in range(16)] for kind in (TO_SRC, _TO_DST)], np.int64
)
_OUT_ADMITTED = np.array([_ADMITTED.get(f, 0) for f in range(16)], np.int64)
WIDE = 1 << FP32 | 1 << TF32 | 1 << INT32  # output formats of 32-bit Dst datums
_CODES = f"format codes: {formats.CODES}"

# In the sentences: fmt input format, out output format.
_CONTEXT = rules.error("UNPACR-CONTEXT", rules.UB, "unpacker 1 has contexts 0 and 1; the word and CfgContextOffset give {context}")  # fmt: skip
_MISMATCH = rules.error("UNPACR-FORMATS", rules.UB, "unpacker {unpacker}: unpacking format {fmt} as format {out}; tile descriptor and Out_data_format must agree, except that fp32 (0) may become 1, 4 or 5", _CODES)  # fmt: skip
_NO_CONVERSION = rules.error("UNPACR-CONVERSION", rules.UB, "unpacker {unpacker}: {fmt} is no format that can be unpacked", f'name tf32 in L1 fp32 (0), unless it goes to Dst; {_CODES}')  # fmt: skip
_ONLY_TO_DST = rules.error("UNPACR-SRC-FORMAT", rules.UB, "unpacker {unpacker}: a source register cannot hold Out_data_format {out}", "set Unpack_if_sel_cntx to unpack fp32 (0) and int32 (8) to Dst, or unpack as tf32 (4)")  # fmt: skip


@njit
def formats_refused(s: Any, m: Any) -> Any:
    """0, or the error of the formats or the target of Mode `m`."""
    if m.unpacker and m.context > 1:
        return rules.refuse(s, _CONTEXT, context=m.context)
    if (_OUT[1, m.fmt] == 0) or (m.fmt == TF32 and not m.to_dst):
        return rules.refuse(s, _NO_CONVERSION, unpacker=m.unpacker, fmt=m.fmt)
    if not m.to_dst and (m.out == FP32 or m.out == INT32) and (_OUT[1, m.fmt] >> m.out) & 1:
        return rules.refuse(s, _ONLY_TO_DST, unpacker=m.unpacker, out=m.out)
    if (_OUT[m.to_dst, m.fmt] >> m.out) & 1 == 0:
        if (_OUT_ADMITTED[m.fmt] >> m.out) & 1 == 0 or (m.to_dst and m.out == TF32):
            return rules.refuse(s, _MISMATCH, unpacker=m.unpacker, fmt=m.fmt, out=m.out)
        return rules.undefined(s, _MISMATCH, unpacker=m.unpacker, fmt=m.fmt, out=m.out)
    return 0


# How an unpacker hands a bank over, and goes on within one.
#
# `unpack_row` (SrcRow) is added to the rows of SrcA unless SRCA_SET_SetOvrdWithAddr is set, and to
# those of SrcB.  Source: UNPACR_Regular, UNPACR_NOP_SETDVALID, ISA.

_SRCB_BASE = rules.error("UNPACR-SRCB-BASE", rules.MISSING, "unpacker 1 goes on to the next set of rows while SRCB_SET_Base is {base}", "leave SRCB_SET_Base 0: the ISA text adds it to the rows of SrcB, ttsim says that Blackhole does not have it")  # fmt: skip

HANDING_OVER = spaces.UNPACKER | spaces.thread_cfg("SRCA_SET_*", "SRCB_SET_*")


@njit
def row_refused(s: Any, t: Any, u: Any) -> Any:
    """0, or the error of a new row for unpacker `u`."""
    base = config.thread(s, t, tf.SRCB_SET_Base)
    return rules.refuse(s, _SRCB_BASE, base=base) if base and u else 0


@njit
def _base(s: Any, t: Any, u: Any) -> Any:
    return 0 if u else config.thread(s, t, tf.SRCA_SET_Base) << 4


@njit
def hand_over(s: Any, t: Any, u: Any, fmt: Any) -> Any:
    """Give the bank of unpacker `u` to the matrix unit; DONE, or the error before any effect."""
    status = banks.hand_over(s, u, fmt)
    if status == 0:
        set_first_row(s, t, u)
    return status


@njit
def set_first_row(s: Any, t: Any, u: Any) -> None:
    """The row from which unpacker `u` fills a new bank."""
    s.unpack_row[u, t] = _base(s, t, u)


@njit
def next_set(s: Any, t: Any, u: Any) -> None:
    """Go on to the next 16 rows of the same bank (Unpack_Src_Reg_Set_Upd)."""
    s.unpack_row[u, t] = (s.unpack_row[u, t] + 16 + _base(s, t, u)) & 63


# UNPACR_NOP: what an unpacker does in order with UNPACR without unpacking.


_CLEAR_MINUS_INF = 0xFFFFE000  # all 19 bits: the most negative cell for GMPOOL
_POP, _CLEAR, _NOTHING, _SET_DVALID = 0, 1, 2, 3  # unpack_pop; 3 with src_clr_val_ctrl 1

_FIELDS = rules.error("UNPACR-NOP-FIELDS", rules.UNSUPPORTED, "UNPACR_NOP with unpack_pop {unpack_pop} and other fields set is not modelled", "unpack_pop 2 (nothing) and 3 with src_clr_val_ctrl 1 (hand over) take no other field")  # fmt: skip
_STREAM = rules.error("UNPACR-NOP-STREAM", rules.UNSUPPORTED, "UNPACR_NOP with unpack_pop {unpack_pop} (pop a stream) or a stream id is not modelled", "the text calls it unsupported: no known use")  # fmt: skip
_BOTH_BANKS = rules.error("UNPACR-NOP-BANKS", rules.UNSUPPORTED, "UNPACR_NOP with bank_clr_ctrl 1 is not modelled", "the text calls it unsupported: it waits for one bank and clears both; reference llk has it as tt-llk does, which waits for both, with zeros and without handing over")  # fmt: skip
_VALUE = rules.error("UNPACR-NOP-VALUE", rules.MISSING, "UNPACR_NOP clears to one, or to UNP_NOP_REG_CLR_VAL, of which no source gives the bits: what is computed from such datums is in doubt, and refused where it is packed or loaded", "unpack over them, or clear to zero (src_clr_val_ctrl 0) or all ones (1)")  # fmt: skip


@njit
def _hand_over(s: Any, t: Any, u: Any) -> Any:
    status = row_refused(s, t, u)
    if status:
        return status
    out = section(s, config.bank(s, t), u, cf.THCON_SEC0_REG2_Out_data_format)
    return hand_over(s, t, u, out)


@njit
def _clear_both(s: Any, u: Any) -> Any:
    """Zero both banks once both are free, as tt-llk says (llk_unpack_AB_custom_mm.h)."""
    for bank in range(2):
        waits = banks.unpacker_owns(s, u, bank)
        if waits:
            return waits
    for bank in range(2):
        banks.changed(s, u, bank)
        s.src[u, bank] = np.uint32(0)
        banks.settled(s, u, bank)
    return rules.DONE


class UNPACR_NOP(Instruction, opcode=0x43, unit="unpack"):
    """Clear an unpack bank, hand it over, or nothing (UNPACR_NOP_ZEROSRC, _SETDVALID, _Nop)."""

    reads = spaces.BANKS | HANDING_OVER | read_config("unpacker_select") | spaces.TDMA
    reads |= spaces.cfg("UNP0_NOP_*").unless("unpacker_select")
    reads |= spaces.cfg("UNP1_NOP_*").when("unpacker_select")
    writes = (
        spaces.src("1 << unpacker_select")
        | spaces.UNPACKER
        | spaces.bank("1 << unpacker_select", Kind.HANDS_OVER).when("set_dvalid")
        | spaces.bank("1 << unpacker_select").when("unpack_pop == 3")
        | spaces.TDMA
    )

    unpack_pop = bits(
        1,
        0,
        choice(
            {1: "clears a bank", 2: "nothing", 3: "hands the bank over (with src_clr_val_ctrl 1)"}
        ),
        mode=True,
    )
    src_clr_val_ctrl = bits(
        3, 2, choice("zeros", "all ones; with unpack_pop 3 required"), mode=True
    )
    bank_clr_ctrl = bits(
        4, 4, choice("the bank of the unpacker", "both banks (reference llk)"), mode=True
    )
    stall_clr_cntrl = bits(
        5,
        5,
        choice(
            "waits until the matrix unit has given back its bank",
            "waits until the bank of the unpacker is free",
        ),
        mode=True,
    )
    clr_to1_fmt_ctrl = bits(7, 6, choice("as src_clr_val_ctrl says"), mode=True)
    set_dvalid = bits(8, 8, choice("keeps the bank", "hands the bank over"), mode=True)
    msg_clr_cnt = bits(14, 12, insn.ZERO)
    stream_id = bits(21, 16, insn.ZERO)
    unpacker_select = bits(23, 23, choice("unpacker 0: SrcA", "unpacker 1: SrcB"), mode=True)

    def ready(s: Any, t: Any, f: Any) -> Any:
        u, waits = f.unpacker_select, np.int64(0)
        if f.unpack_pop != _CLEAR:
            return waits
        if f.bank_clr_ctrl:
            waits = banks.unpacker_owns(s, u, 0)
            return waits if waits else banks.unpacker_owns(s, u, 1)
        return banks.unpack_ready(s, u) if f.stall_clr_cntrl else banks.matrix_free(s, u)

    def advance(s: Any, t: Any, f: Any) -> Any:
        if f.set_dvalid or f.unpack_pop == _SET_DVALID:
            set_first_row(s, t, f.unpacker_select)
        return rules.DONE

    def execute(s: Any, t: Any, f: Any) -> Any:
        u, value = f.unpacker_select, f.src_clr_val_ctrl
        if (
            f.unpack_pop == _POP
            or (f.unpack_pop == _SET_DVALID and value != 1)
            or f.msg_clr_cnt | f.stream_id
        ):
            return rules.refuse(s, _STREAM, unpack_pop=f.unpack_pop)
        if f.unpack_pop != _CLEAR:
            rest = f.bank_clr_ctrl | f.stall_clr_cntrl | f.clr_to1_fmt_ctrl | f.set_dvalid
            if rest or (f.unpack_pop == _NOTHING and value):
                return rules.refuse(s, _FIELDS, unpack_pop=f.unpack_pop)
            return rules.DONE if f.unpack_pop == _NOTHING else _hand_over(s, t, u)
        if f.bank_clr_ctrl:
            rest = value | f.stall_clr_cntrl | f.clr_to1_fmt_ctrl | f.set_dvalid
            return _clear_both(s, u) if rules.follows_llk(s) and rest == 0 else _BOTH_BANKS
        cell = np.int64(_CLEAR_MINUS_INF if value else 0)
        if value > 1 or f.clr_to1_fmt_ctrl:
            cell = np.int64(unspecified.EXPONENT)
        waits = banks.unpack_ready(s, u) if f.stall_clr_cntrl else banks.matrix_free(s, u)
        if waits:
            return waits
        bank = s.unpack_bank[u] & 1
        banks.changed(s, u, bank)
        cells = flat(s.src[u, bank])
        status = _hand_over(s, t, u) if f.set_dvalid else 0
        if status == 0:
            for i in range(cells.size):
                cells[i] = np.uint32(cell)
            banks.settled(s, u, bank)
            if cell & unspecified.CAUSES:
                s.doubt[0] = s.doubt[1] = 1
                rules.note_rule(s, _VALUE)
        return status
