"""UNPACR: the instruction, its stages in every mode, and the fast path for whole rows."""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import banks, config, dest, formats, insn, spaces
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config import SECTION_WORDS
from bhemu.tensix.formats import BF16, FP16, FP32, UINT16
from bhemu.tensix.rules import DONE, UB, UNSUPPORTED, error, refuse
from bhemu.tensix.spaces import Kind
from bhemu.tensix.state import l1_halves, l1_words
from bhemu.tensix.units.counters import SRC_ROWS, W, X, Y, Z
from bhemu.tensix.units.unpack import addresses, datums, modes
from bhemu.tensix.units.unpack.addresses import FIRST_CELL, Source
from bhemu.tensix.units.unpack.modes import hand_over, next_set, row_refused, set_first_row

# UNPACR of compressed tiles, of rows found by RowSearch, and with upsampling: datum by datum.
#
# A compressed tile starts with a table of 16-bit numbers: the first stored datum of each row (or
# blob).  Stored datums come in blocks of 32, each followed by 32 numbers of 4 bits: how many zeros
# follow each datum.  Upsampling puts 1, 3 or 7 zeros after each datum, or leaves as many cells as
# they are.

_BEYOND_L1 = -1 << 40
_BLOCK = 32  # stored datums of a compressed tile before their 16 bytes of numbers of zeros

_TILEIZE = error("UNPACR-TILEIZE-MODES", UB, "unpacker {unpacker}: Tileize_mode with upsampling or a compressed tile", "unpack plain rows with Tileize_mode")  # fmt: skip
_TWO_BITS = error("UNPACR-COMPRESSED-BFP2", UNSUPPORTED, "unpacker {unpacker}: a compressed tile of format {fmt}, whose blocks are not whole units of 16 bytes", "pack as bfp4 or bfp8, or without compression")  # fmt: skip
_L1 = error("UNPACR-STORED-L1", UB, "unpacker {unpacker} reads L1 at {address:#x}, beyond the end at 0x180000", "check the row starts of a compressed tile, Base address and the ADC counters")  # fmt: skip
_EMPTY = error("UNPACR-NOTHING", UNSUPPORTED, "unpacker {unpacker}: the row starts or X counters give {count} datums", "the row after this one must start later")  # fmt: skip
_SET = error("UNPACR-SET-START", UNSUPPORTED, "unpacker 0 writes more than a row of SrcA from row {row} on: with compression, row search or upsampling the size of its bursts is not known", "start at a multiple of 16 rows, at column 0")  # fmt: skip


class Stream(NamedTuple):
    """Where stored datums come from: bit addresses of the next datum and of its number of zeros
    (or -1), exponent as in Source; stored datums, and how many datums to drop and then to keep."""

    data: int
    zeros: int
    exponent: int
    stored: int
    drop: int
    keep: int


@njit
def _blob(s: Any, m: Any, k: Any) -> Any:
    # First datum of blob k: four bits, in units of 16.
    starts = addresses.descriptor(s, m, np.int64(2)) >> 16
    starts |= (addresses.descriptor(s, m, np.int64(3)) & 0xFFFF) << 16
    if m.multi and m.unpacker == 0:
        starts = np.int64(
            s.cfg[m.bank, cf.UNP0_BLOBS_Y_START_CNTX_01_blobs_y_start.word + (m.context >> 1 & 1)]
        )
    return ((starts >> (4 * k)) & 15) << 4


@njit
def _row(s: Any, t: Any, m: Any, d: Any, search: Any) -> Any:
    # (first datum, datums) of an uncompressed tile.
    xy, zw = s.adc[m.counters, m.unpacker, 0], s.adc[t, m.unpacker, 0]
    last = s.adc[m.counters, m.unpacker, 1, X]
    blobs = modes.section(s, m.bank, m.unpacker, modes.DESCRIPTOR_BLOBS)
    x, y, end = xy[X], xy[Y], last + 1
    if search and blobs:
        x, y, after = _blob(s, m, xy[Y] & 7), np.int64(0), (xy[X] & 7) + 1
        end = d.x & 0x1F0 if after == blobs else _blob(s, m, after & 7)
    elif search:
        x, end = np.int64(0), last
    return x + d.x * (y + d.y * (zw[Z] + d.z * zw[W])), end - x


@njit
def _stored_row(s: Any, t: Any, m: Any, d: Any, at: Any, search: Any) -> Any:
    # (first stored datum, stored datums or -1, drop, keep) of a compressed tile; when its table
    # lies beyond L1: (address, _BEYOND_L1, 0, 0).
    xy, zw = s.adc[m.counters, m.unpacker, 0], s.adc[t, m.unpacker, 0]
    last = s.adc[m.counters, m.unpacker, 1, X]
    blobs = modes.section(s, m.bank, m.unpacker, modes.DESCRIPTOR_BLOBS)
    rows = blobs if search and blobs else d.y
    start = (at >> 1) + (zw[W] * d.z + zw[Z]) * rows
    mine, next_x, next_y = xy[Y] & 0xFF, (xy[X] & 0xFF) + 1, (xy[Y] & 0xFF) + 1
    end = 2 * (start + max(mine, max(next_x, next_y)) + 1)
    if end > L1_SIZE:
        return end, np.int64(_BEYOND_L1), np.int64(0), np.int64(0)
    table = l1_halves(s)
    first = np.int64(table[start + mine])
    endless = np.int64(1 << 32)
    if search:
        return first, np.int64(table[start + next_x]) - first, np.int64(0), endless
    if xy[X] == 0 and last == d.x - 1:
        return first, np.int64(table[start + next_y]) - first, np.int64(0), endless
    return first, np.int64(-1), xy[X], last + 1 - xy[X]


@njit
def _stream(s: Any, t: Any, m: Any, search: Any) -> Any:
    # The Stream; with _BEYOND_L1 stored datums `data` is the address.
    d = addresses.dimensions(s, m)
    bits, whole = formats.datum_bits(m.fmt), modes.uncompressed(s, m)
    at = addresses.base(s, m)
    table = at
    if whole == 0:
        blobs = modes.section(s, m.bank, m.unpacker, modes.DESCRIPTOR_BLOBS)
        rows = (blobs if blobs else d.y) * d.z * d.w
        at += (2 * (rows + 1) + 15) & ~15
    first: Any = np.int64(0)
    stored, drop, keep, plain = first, first, first + (1 << 32), first - 1
    if whole:
        first, stored = _row(s, t, m, d, search)
    else:
        first, stored, drop, keep = _stored_row(s, t, m, d, table, search)
        if stored == _BEYOND_L1:
            return Stream(first, plain, plain, stored, drop, keep)
    data, exponent = at, plain
    if formats.is_bfp(m.fmt):
        data, exponent = addresses.data_of_bfp(s, m, d.x * d.y * d.z * d.w, at, first)
    if whole:
        return Stream((data << 3) + first * bits, plain, exponent, stored, drop, keep)
    block = (data << 3) + (first // _BLOCK) * (_BLOCK * bits + 128)
    inside = first % _BLOCK
    zeros = block + _BLOCK * bits + 4 * inside
    return Stream(block + inside * bits, zeros, exponent, stored, drop, keep)


@njit
def _put(s: Any, t: Any, m: Any, at: Any, shift: Any, cell: Any) -> None:
    # One cell (Src cell, or the 32-bit pattern for 32-bit Dst) to target datum `at`.
    row, column = at >> 4, at & 15
    if m.to_dst:
        if (modes.WIDE >> m.out) & 1:
            dest.write32(s, row, column, dest.enc_32(cell))
        else:
            dest.write16(s, row, column, datums.dst_cell_16(m, cell))
        return
    column -= shift
    if row < 0 or column < 0:
        return
    row += addresses.set_cells(s, t, m) >> 4
    if m.haloize and m.unpacker == 0:
        row, column = (row & ~15) | column, row & 15
    bank = s.unpack_bank[m.unpacker] & 1
    s.src[m.unpacker, bank, row & (SRC_ROWS - 1), column] = np.uint32(cell)


@njit
def _datum(s: Any, m: Any, bit: Any, exponent: Any) -> Any:
    # Cell of the stored datum at `bit`; -1: its exponent is out of range.
    if m.to_dst and (modes.WIDE >> m.out) & 1:
        return np.int64(l1_words(s)[bit >> 5])
    none: Any = np.int64(0)
    src = Source(formats.datum_bits(m.fmt), bit, exponent, none + 16, none)
    outside = datums.to_cells(s, m, src, np.int64(0), np.int64(1), s.unpack_tmp[:1])
    return np.int64(-1) if outside else np.int64(s.unpack_tmp[0])


@njit
def _walk(s: Any, t: Any, m: Any, q: Any, all_zero: Any, first: Any, write: Any) -> Any:
    # Follows the Stream; returns the cells that are passed, or an error.
    bits = formats.datum_bits(m.fmt)
    rate = modes.section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Upsample_rate)
    skip = modes.section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Upsample_and_interleave)
    shift, out = modes.column_shift(s, m), first
    bit, zeros, exponent, drop, keep = q.data, q.zeros, q.exponent, q.drop, q.keep
    i = np.int64(0)
    while (q.stored < 0 or i < q.stored) and keep > 0:
        address = max(bit, max(zeros, exponent >> 1)) >> 3
        if address >= L1_SIZE:
            return np.int64(refuse(s, _L1, unpacker=m.unpacker, address=address))
        cell = np.int64(0) if all_zero else _datum(s, m, bit, exponent)
        if cell < 0:
            return np.int64(refuse(s, datums.EXPONENT, unpacker=m.unpacker, fmt=m.fmt))
        i, bit = i + 1, bit + bits
        exponent += 1 if exponent >= 0 else 0
        more = np.int64(0)
        if zeros >= 0:
            more = (np.int64(s.l1[zeros >> 3]) >> (zeros & 7)) & 15
            zeros += 4
            if zeros & 127 == 0:
                bit, zeros = bit + 128, zeros + _BLOCK * bits
        for j in range(1 if all_zero else 1 + more):
            if drop:
                drop -= 1
                continue
            for k in range(1 << rate):
                if write and not (skip and k):
                    _put(s, t, m, out, shift, cell if j + k == 0 else np.int64(0))
                out += 1
            keep -= 1
            if keep == 0:
                break
    return out - first


def _datum_by_datum(s: Any, t: Any, f: Any) -> Any:
    m = modes.mode_of_word(s, t, f)
    first = addresses.first_cell(s, t, m)
    if first < 0:
        return first
    if m.unpacker == 0:
        first -= FIRST_CELL
    whole = modes.uncompressed(s, m)
    upsampled = modes.section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Upsample_rate)
    if m.tileize and (upsampled or whole == 0):
        return refuse(s, _TILEIZE, unpacker=m.unpacker)
    if whole == 0 and formats.datum_bits(m.fmt) < 4:
        return refuse(s, _TWO_BITS, unpacker=m.unpacker, fmt=m.fmt)
    q = _stream(s, t, m, f.row_search)
    if q.stored == _BEYOND_L1 and whole == 0:
        return refuse(s, _L1, unpacker=m.unpacker, address=q.data)
    if q.stored == 0 or (q.stored < 0 and whole) or q.keep <= 0:
        return refuse(s, _EMPTY, unpacker=m.unpacker, count=q.stored)
    status = addresses.start_refused(s, m, q.data)
    if status == 0:
        status = _walk(s, t, m, q, f.zero_write2, first, False)
    if status > 0:
        if m.unpacker == 0 and m.to_dst == 0 and status > 16 and first & 255:
            return refuse(s, _SET, row=first >> 4)
        override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
        status = addresses.extent_refused(s, m, first, status, override)
        if status == 0:
            _walk(s, t, m, q, f.zero_write2, first, True)
            status = DONE
    return status


datum_by_datum = insn.second_entry(insn.UNPACK_DATUM_STREAM, _datum_by_datum, modes.UnpackWord)


# UNPACR stage by stage, in every mode: checks, addresses, the write, counters, hand-over.

_FIELDS = error("UNPACR-FIELDS", UNSUPPORTED, "UNPACR with srcb_bcast {srcb_bcast} is not modelled", "the ISA text has 0 there, and no source says what it does")  # fmt: skip
_ADC_CONTEXT = error("UNPACR-ADC-CONTEXT", UB, "UNPACR with addr_cnt_context_id 3: there are counters of 3 threads")  # fmt: skip
_DST_OVERRIDE = error("UNPACR-DST-SRCA-SET", UB, "unpacking to Dst while SRCA_SET_SetOvrdWithAddr is set", "write 0 to SRCA_SET before unpacking to Dst")  # fmt: skip


@njit
def _count_context(s: Any, t: Any, u: Any, k: Any) -> None:
    # The counter follows context k; it starts again at 2 to the Context_count.
    limit = 1 << modes.section(s, config.bank(s, t), u, cf.THCON_SEC0_REG2_Context_count)
    s.unpack_context[u, t] = k + 1 if k + 1 < limit else 0


@njit
def _updates_set(s: Any, m: Any) -> Any:
    return modes.section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Unpack_Src_Reg_Set_Upd)


@njit
def _count(s: Any, t: Any, m: Any, f: Any) -> None:
    addresses.count_on(s, t, m.unpacker, f.addr_mode)
    if m.counters != t:
        addresses.count_on(s, m.counters, m.unpacker, f.addr_mode)


@njit
def _after(s: Any, t: Any, m: Any, f: Any) -> Any:
    u = m.unpacker
    if not m.to_dst:
        banks.changed(s, u, s.unpack_bank[u])
    _count(s, t, m, f)
    if f.set_dat_valid:
        return hand_over(s, t, u, m.out)
    if _updates_set(s, m):
        next_set(s, t, u)
    return DONE


@njit(forceinline=True)  # one caller
def _write(s: Any, t: Any, m: Any, f: Any, src: Any, first: Any, count: Any) -> Any:
    if f.zero_write2:
        return datums.zeros(s, t, f.word)
    if formats.is_bfp(m.fmt) and m.fmt & 4 == 0:
        status = datums.exponents_refused(s, t, f.word)
        if status:
            return status
    if m.to_dst and (modes.WIDE >> m.out) & 1 == 0:
        return datums.to_dst_16(s, t, f.word)
    if m.to_dst:
        datums.to_dst_32(s, src, first, count)
    else:
        start = np.int64(max(-first, 0))  # rows before the first drop
        datums.to_src(s, m, src, first + addresses.set_cells(s, t, m), start, count)
    return DONE


@njit(forceinline=True)  # one caller
def _unpack(s: Any, t: Any, m: Any, f: Any) -> Any:
    u = m.unpacker
    status = modes.zero_refused(s, m) or modes.formats_refused(s, m) or modes.modes_refused(s, m)
    if status == 0 and m.to_dst and config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr):
        return _DST_OVERRIDE
    if status == 0 and (f.set_dat_valid or _updates_set(s, m)):
        status = row_refused(s, t, m.unpacker)
    if status:
        return status
    # Modes whose code is in unpacr.py: row search, upsampling, compressed tiles.
    upsampled = modes.section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Upsample_rate)
    if f.row_search or upsampled or modes.uncompressed(s, m) == 0:
        status = datum_by_datum(s, t, f.word)
        return _after(s, t, m, f) if status == DONE else status
    target = addresses.first_cell(s, t, m)
    if target < 0:
        return target
    first = target if u else target - FIRST_CELL
    count = s.adc[m.counters, u, 1, X] - s.adc[m.counters, u, 0, X] + 1
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    status = addresses.extent_refused(s, m, first, count, override)
    src = addresses.source(s, t, m)
    status = status or addresses.refused(s, m, first, count)
    status = status or addresses.source_refused(s, m, src, count)
    status = status or _write(s, t, m, f, src, first, count)
    if status:
        return status
    if u == 0 and m.to_dst == 0:
        addresses.note(s, m, first, count, addresses.set_cells(s, t, m) >> 4)
    return _after(s, t, m, f)


def _stage_by_stage(s: Any, t: Any, f: Any) -> Any:
    u, multi = f.unpack_block_selection, f.ovrd_thread_id
    if f.srcb_bcast:
        return refuse(s, _FIELDS, srcb_bcast=f.srcb_bcast)
    if f.cfg_context_cnt_inc:  # nothing is unpacked
        _count_context(s, t, u, s.unpack_context[u, t])
        return DONE
    if f.search_cache_flush:  # that cache has no effect on what is unpacked
        return DONE
    waits = banks.unpack_ready(s, u)
    if waits:
        return waits
    if f.addr_cnt_context_id == 3 and multi:
        return _ADC_CONTEXT
    m = modes.mode_of_word(s, t, f)
    status = _unpack(s, t, m, f)
    if status == DONE and multi and f.auto_inc_context_id:
        _count_context(s, t, u, m.context)
    return status


stage_by_stage = insn.second_entry(insn.UNPACK_STAGES, _stage_by_stage, modes.UnpackWord)


# UNPACR of whole rows of 16- and 32-bit datums to Src, all of them in one piece.

OTHER = -1  # status of an UNPACR of another kind, before any effect

_SRC_CELLS = SRC_ROWS * 16

# Bits of the word of THCON_SEC0_REG2_Out_data_format: anything but format, Throttle_mode,
# Context_count and Unpack_If_Sel.
_ODD = 0xFFFFF700

# Output formats (bit set) of each input format of 16 or 32 bits.
_OUT = np.array(
    [modes.TO_SRC[f] if f in (FP32, FP16, BF16, UINT16) else 0 for f in range(16)], np.int64
)


@njit
def _suits(s: Any, m: Any) -> Any:
    """True when Mode `m` unpacks 16- or 32-bit datums one after another to Src, as text and LLK do.

    Nothing that `formats_refused` and `modes_refused` look for then applies.
    """
    word = cf.THCON_SEC0_REG2_Out_data_format.word + SECTION_WORDS * m.unpacker
    odd = np.int64(s.cfg[m.bank, word])
    if odd & _ODD or m.to_dst or m.context > 1 or (_OUT[m.fmt] >> m.out) & 1 == 0:
        return False
    f = cf.THCON_SEC0_REG2_Disable_zero_compress_cntx0
    return modes.per_context(s, m.bank, m.unpacker, m.context, f) != 0


@njit(forceinline=True)  # one caller
def unpack_whole_rows(s: Any, t: Any, u: Any, addr_mode: Any, set_dat_valid: Any) -> Any:
    """Status of an UNPACR of unpacker `u` configured per context, without any other option."""
    f0, f1 = tf.UNPACK_MISC_CFG_CfgContextOffset_0, tf.UNPACK_MISC_CFG_CfgContextOffset_1
    k = config.thread(s, t, f1 if u else f0)
    if k > 1:
        return OTHER
    m = modes.mode_of(s, t, u, 1, k, t)
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    if not _suits(s, m) or override == 0 or s.unpack_row[u, t] or row_refused(s, t, u):
        return OTHER
    first = addresses.first_cell(s, t, m)
    if u == 0:
        first -= FIRST_CELL
    count = s.adc[t, u, 1, X] - s.adc[t, u, 0, X] + 1
    src = addresses.source(s, t, m)
    # Rows from a multiple of 8 on never end a burst early.  What does not fit, or has a fault,
    # goes the other way and gets its error there.
    if first < 0 or first & 127 or count <= 0 or first + count > _SRC_CELLS:
        return OTHER
    if src.data + src.bits * count > 8 * L1_SIZE or modes.zero_fields(s, m):
        return OTHER
    bank = s.unpack_bank[u] & 1
    banks.changed(s, u, bank)
    if u == 0 and banks.any_doubt(s, bank):
        banks.settle(s, bank, first >> 4, count >> 4)
    cells = flat(s.src[u, bank])[first : first + count]
    datums.cells_of_16_or_32_bits(s, m, src.bits, src.data >> 3, count, cells)
    addresses.count_on(s, t, u, addr_mode)
    return hand_over(s, t, u, m.out) if set_dat_valid else DONE


# Its own entry unpacks whole rows; all other modes are compiled when a program first needs them.

_PER_CONTEXT = modes.UnpackWord.last.mask | modes.UnpackWord.ovrd_thread_id.mask
_ANY = ("set_dat_valid", "addr_mode", "unpack_block_selection")
_CHOSEN = sum(field.mask for field in modes.UnpackWord.fields if field.name not in _ANY)
_UNPACKER = "1 << unpack_block_selection"


class UNPACR(
    modes.UnpackWord,
    insn.Instruction,
    opcode=0x42,
    unit="unpack",
    formats="unpack",
    second_entries=(
        insn.UNPACK_STAGES,
        insn.UNPACK_ZEROS,
        insn.UNPACK_EXPONENTS,
        insn.UNPACK_DST_16,
        insn.UNPACK_DATUM_STREAM,
    ),
):
    """Unpack datums from L1 to SrcA, SrcB or Dst (UNPACR_Regular, Blackhole ISA)."""

    reads = (spaces.ALL_L1 | spaces.adc(_UNPACKER) | spaces.BANKS) | (
        modes.read_config("unpack_block_selection") | spaces.TDMA
    )
    writes = (
        (spaces.src(_UNPACKER) | spaces.ALL_DST | spaces.adc(_UNPACKER) | spaces.UNPACKER)
        | spaces.bank(_UNPACKER, Kind.HANDS_OVER).when("set_dat_valid")
        | spaces.TDMA
    )

    def ready(s: Any, t: Any, f: Any) -> Any:
        nothing = f.cfg_context_cnt_inc or f.search_cache_flush
        return 0 if nothing else banks.unpack_ready(s, f.unpack_block_selection)

    def advance(s: Any, t: Any, f: Any) -> Any:
        u, multi = f.unpack_block_selection, f.ovrd_thread_id
        if f.cfg_context_cnt_inc:
            _count_context(s, t, u, s.unpack_context[u, t])
            return DONE
        if f.search_cache_flush or (multi and f.addr_cnt_context_id == 3):  # which is refused
            return DONE
        m = modes.mode_of_word(s, t, f)
        _count(s, t, m, f)
        if f.set_dat_valid:
            set_first_row(s, t, u)
        elif _updates_set(s, m):
            next_set(s, t, u)
        if multi and f.auto_inc_context_id:
            _count_context(s, t, u, m.context)
        return DONE

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.word & _CHOSEN == _PER_CONTEXT:
            u = f.unpack_block_selection
            waits = banks.unpack_ready(s, u)
            if waits:
                return waits
            status = unpack_whole_rows(s, t, u, f.addr_mode, f.set_dat_valid)
            if status != OTHER:
                return status
        return stage_by_stage(s, t, f.word)
