"""Scalar unit (ThCon): indirect loads and stores of L1, MMIO and Src."""

from typing import Any

import numpy as np

from bhemu.jit.calls import l1_word
from bhemu.jit.plain import plain
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.operand import choice
from bhemu.tensix import banks, code_pages, config, gate, mmio, tables
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import Instruction, Word, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.resources import BETWEEN_GPRS
from bhemu.tensix.rwc import SRC_ROWS
from bhemu.tensix.status import DONE, UB, UNSUPPORTED, error
from bhemu.tensix.words import WORD, l1_halves, l1_words

INCREMENTS = (0, 2, 4, 16)  # auto_inc_spec: bytes added to the offset half register
SRCA_OFFSET = 4  # rows that an address of SrcA lies above the row it names
SET_ROWS = 16  # rows of a set, within which an address stays unless SetOvrdWithAddr is set

NOT_L1 = error(
    "THCON-L1",
    UB,
    "L1 address {address:#010x} of the scalar unit is not below 0x180000",
    "the address register counts 16-byte units",
)
MMIO_SIZE = error(
    "STOREIND-MMIO-SIZE",
    UNSUPPORTED,
    "STOREIND to MMIO with reg_size_sel 1: the ISA text has 0 only",
    "clear reg_size_sel; MMIO stores have 32 bits",
)
SRC_ADDRESS = error(
    "STOREIND-SRC-ADDRESS",
    UB,
    "STOREIND to a source register at {address:#x}: the 20-bit address must be below 0x10000",
)
SRC_ROW = error(
    "STOREIND-SRC-ROW",
    UB,
    "STOREIND to row {row} of a source register: there are {rows}",
    "the row is address / 4, for SrcA minus 4",
)


@njit
def half(s: Any, t: Any, index: Any) -> Any:
    """The 16-bit half register `index` (0-127) of thread `t`: even = low half."""
    return (np.int64(s.gpr[t, (index >> 1) & 63]) >> (16 * (index & 1))) & 0xFFFF


@njit
def put_half(s: Any, t: Any, index: Any, value: Any) -> None:
    """Store 16 bits to the half register `index` (0-127) of thread `t`."""
    shift = 16 * (index & 1)
    old = np.int64(s.gpr[t, (index >> 1) & 63])
    s.gpr[t, (index >> 1) & 63] = np.uint32((old & ~(0xFFFF << shift)) | (value << shift))


@njit
def _advance(s: Any, t: Any, f: Any) -> None:
    """Auto-increment of the offset; it wraps within its 16 bits."""
    value = half(s, t, f.offset_half_reg) + INCREMENTS[f.auto_inc_spec & 3]
    put_half(s, t, f.offset_half_reg, value & 0xFFFF)


@njit
def _l1_address(s: Any, t: Any, f: Any) -> Any:
    """16 times the address register plus the offset, in 32 bits; negative: error number."""
    base = np.int64(s.gpr[t, f.addr_reg_index]) * 16
    address = (base + half(s, t, f.offset_half_reg)) & WORD
    if address < L1_SIZE:
        return np.int64(address)
    return np.int64(refuse(s, NOT_L1, address=address))


@njit
def _load(s: Any, t: Any, address: Any, register: Any, size: Any) -> None:
    """Sizes 0 to 3: 128, 32, 16, 8 bits; narrow loads keep the other bits of the GPR."""
    if size == 0:
        for i in range(4):
            s.gpr[t, (register & 0x3C) + i] = np.uint32(l1_word(s, (address & ~15) + 4 * i))
        return
    old, word = np.int64(s.gpr[t, register]), l1_word(s, address & ~3)
    if size == 1:
        s.gpr[t, register] = np.uint32(word)
    elif size == 2:
        value = (word >> (8 * (address & 2))) & 0xFFFF
        s.gpr[t, register] = np.uint32((old & 0xFFFF0000) | value)
    else:
        value = (word >> (8 * (address & 3))) & 0xFF
        s.gpr[t, register] = np.uint32((old & 0xFFFFFF00) | value)


@njit
def _store(s: Any, t: Any, address: Any, register: Any, size: Any) -> None:
    """Sizes 0 to 3: 128, 32, 16, 8 bits, from the low end of the GPR."""
    code_pages.written(s, address, np.int64(1))  # an aligned access stays in one page
    if size == 0:
        for i in range(4):
            l1_words(s)[((address & ~15) >> 2) + i] = s.gpr[t, (register & 0x3C) + i]
    elif size == 1:
        l1_words(s)[address >> 2] = s.gpr[t, register]
    elif size == 2:
        l1_halves(s)[address >> 1] = np.uint16(np.int64(s.gpr[t, register]) & 0xFFFF)
    else:
        s.l1[address] = np.uint8(np.int64(s.gpr[t, register]) & 0xFF)


class _Indirect(Word):
    """GPRs with an address, which is a base and an offset that may be stepped, and with data."""

    addr_reg_index = bits(5, 0, tables.GPR_ADDRESS)
    data_reg_index = bits(11, 6, tables.GPR)
    auto_inc_spec = bits(
        13,
        12,
        choice(
            {i: f"+ {INCREMENTS[i]}" for i in range(4)},
            about="what is added to the offset afterwards",
        ),
        mode=True,
    )
    offset_half_reg = bits(20, 14, tables.HALF_GPR)


class LOADIND(
    _Indirect, Instruction, opcode=0x49, unit="scalar", oracle=False, resources=BETWEEN_GPRS
):
    """Load GPRs from L1 (LOADIND, Wormhole ISA)."""

    size_sel = bits(
        23, 22, choice({0: "128 bits", 1: "32 bits", 2: "16 bits", 3: "8 bits"}), mode=True
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        address = _l1_address(s, t, f)
        if address < 0:
            return address
        _advance(s, t, f)
        _load(s, t, address, f.data_reg_index, f.size_sel)
        return DONE

    @staticmethod
    def loads_from(s: Any, t: int, word: int) -> int | None:
        """The address that its registers give."""
        at = int(plain(_l1_address)(s, t, LOADIND.decoded(word)))
        return at if 0 <= at < L1_SIZE - 16 else None


@njit
def _short_address(s: Any, t: Any, f: Any) -> Any:
    """20-bit address of the MMIO and Src forms; the offset counts 16ths of a byte."""
    base = np.int64(s.gpr[t, f.addr_reg_index])
    return (base + (half(s, t, f.offset_half_reg) >> 4)) & 0xFFFFF


@njit
def _to_mmio(s: Any, t: Any, f: Any) -> Any:
    """MMIO form."""
    at = _short_address(s, t, f) & ~3
    status = mmio.store(s, mmio.BASE + at, np.int64(s.gpr[t, f.data_reg_index]))
    if status == 0:
        _advance(s, t, f)
    return status


@njit
def _low_cell(value: Any) -> Any:
    """Src cell of the low half of a data register: sign, mantissa, exponent, as in Dst."""
    exponent, mantissa = value & 0xFF, (value >> 8) & 0x7F
    return np.uint32(((value & 0x8000) << 16) | (exponent << 23) | (mantissa << 16))


@njit
def _cells_at(s: Any, t: Any, which: Any, row: Any, column: Any, register: Any) -> None:
    """Four BF16 cells from the first two registers of an aligned group."""
    bank = s.unpack_bank[which] & 1
    banks.changed(s, which, bank)
    for i in range(2):
        value = np.int64(s.gpr[t, (register & 0x3C) + i])
        s.src[which, bank, row, column + 2 * i] = _low_cell(value)
        s.src[which, bank, row, column + 2 * i + 1] = np.uint32(value & 0xFFFF0000)


@njit
def _src_row(s: Any, t: Any, which: Any, address: Any) -> Any:
    """Row that an address names, or an error number (above -8 it is a row that nobody sees)."""
    row = (address >> 2) - (SRCA_OFFSET if which == banks.SRCA else 0)
    rows, offset = np.int64(SET_ROWS), s.unpack_row[which, t]
    if which == banks.SRCA and config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr):
        rows, offset = np.int64(SRC_ROWS), np.int64(0)
    if row >= rows:
        return np.int64(refuse(s, SRC_ROW, row=row, rows=rows))
    return np.int64(row + offset if row >= 0 else row)


@njit
def _to_src(s: Any, t: Any, f: Any, which: Any) -> Any:
    """Source register form: waits for the unpacker's bank inside the scalar unit."""
    at = _short_address(s, t, f)
    if at & 0xF0000:
        return refuse(s, SRC_ADDRESS, address=at)
    waits = banks.unpack_ready(s, which)
    if waits:
        return gate.occupy(s, t, waits)
    gate.vacate(s)
    row = _src_row(s, t, which, at)
    if row < -SRCA_OFFSET:
        return row
    if row >= 0:
        _cells_at(s, t, which, row, (at & 3) * 4, f.data_reg_index)
    _advance(s, t, f)
    return DONE


class STOREIND(
    _Indirect,
    Instruction,
    opcode=0x66,
    unit="scalar",
    oracle=False,
    resources=BETWEEN_GPRS,
    stores="L1",
):
    """Store GPRs to L1, MMIO or Src (STOREIND, Wormhole ISA)."""

    reg_size_sel = bits(
        21,
        21,
        choice(
            {
                0: "L1: 128 or 16 bits; a register: of MMIO, or SrcA",
                1: "L1: 32 or 8 bits; a register: SrcB",
            }
        ),
        mode=True,
    )
    size_sel = bits(
        22,
        22,
        choice(
            {
                0: "L1: 128 or 32 bits; a register: SrcA or SrcB",
                1: "L1: 16 or 8 bits; a register: of MMIO",
            }
        ),
        mode=True,
    )
    mem_hier_sel = bits(
        23,
        23,
        choice({0: "a register: of MMIO, SrcA or SrcB", 1: "L1"}, about="where to"),
        mode=True,
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.mem_hier_sel == 0:
            if f.size_sel == 0:
                return _to_src(s, t, f, f.reg_size_sel)
            return MMIO_SIZE if f.reg_size_sel else _to_mmio(s, t, f)
        at = _l1_address(s, t, f)
        if at < 0:
            return at
        _advance(s, t, f)
        _store(s, t, at, f.data_reg_index, 2 * f.size_sel + f.reg_size_sel)
        return DONE
