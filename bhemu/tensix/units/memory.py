"""Scalar unit (ThCon): loads, stores and atomic operations on L1, MMIO and Src."""

from typing import Any

import numpy as np

from bhemu.bits import choice, number
from bhemu.jit.intrinsics import l1_word
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import banks, config, in_flight, insn, mmio, spaces, state, thread
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import Argument, Instruction, bits
from bhemu.tensix.rules import DONE, UB, UNSUPPORTED, condition, error, refuse
from bhemu.tensix.state import WORD, l1_halves, l1_words
from bhemu.tensix.units.counters import SRC_ROWS

INCREMENTS = (0, 2, 4, 16)  # auto_inc_spec: bytes added to the offset half register
SRCA_OFFSET = 4  # rows that an address of SrcA lies above the row it names
SET_ROWS = 16  # rows of a set, within which an address stays unless SetOvrdWithAddr is set

NOT_L1 = error("THCON-L1", UB, "L1 address {address:#010x} of the scalar unit is not below 0x180000", "the address register counts 16-byte units")  # fmt: skip
MMIO_SIZE = error("STOREIND-MMIO-SIZE", UNSUPPORTED, "STOREIND to MMIO with reg_size_sel 1: the ISA text has 0 only", "clear reg_size_sel; MMIO stores have 32 bits")  # fmt: skip
SRC_ADDRESS = error("STOREIND-SRC-ADDRESS", UB, "STOREIND to a source register at {address:#x}: the 20-bit address must be below 0x10000")  # fmt: skip
SRC_ROW = error("STOREIND-SRC-ROW", UB, "STOREIND to row {row} of a source register: there are {rows}", "the row is address / 4, for SrcA minus 4")  # fmt: skip


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
def _in_l1(s: Any, address: Any) -> Any:
    """An address in 32 bits, or an error number."""
    address &= WORD
    return np.int64(address if address < L1_SIZE else refuse(s, NOT_L1, address=address))


@njit
def _l1_address(s: Any, t: Any, f: Any) -> Any:
    """16 times the address register plus the offset, in 32 bits; negative: error number."""
    base = np.int64(s.gpr[t, f.addr_reg_index]) * 16
    return _in_l1(s, base + half(s, t, f.offset_half_reg))


_AT = "16 * gpr(addr_reg_index) + half(offset_half_reg)"
_STEPPED = spaces.gpr("offset_half_reg >> 1", keeps="1")
_ADDRESS = spaces.gpr("addr_reg_index") | spaces.gpr("offset_half_reg >> 1")
_OF_ONE_GPR = "mem_hier_sel and (size_sel or reg_size_sel)"
_TO_SRC = "not mem_hier_sel and not size_sel"


class _Indirect(Instruction, unit="scalar"):
    """GPRs with an address, which is a base and an offset that may be stepped, and with data."""

    addr_reg_index = bits(5, 0, insn.GPR_ADDRESS)
    data_reg_index = bits(11, 6, insn.GPR)
    auto_inc_spec = bits(13, 12, mode=True).meaning(
        choice(*(f"+ {n}" for n in INCREMENTS[:4]), about="what is added to the offset afterwards")
    )
    offset_half_reg = bits(20, 14, insn.HALF_GPR)


class LOADIND(_Indirect, opcode=0x49, oracle=False):
    """Load GPRs from L1 (LOADIND, Wormhole ISA)."""

    reads = _ADDRESS | spaces.l1(f"({_AT}) & (~3 if size_sel else ~15)", "4 if size_sel else 16")
    writes = (
        _STEPPED
        | spaces.gpr("data_reg_index", keeps="size_sel > 1").when("size_sel")
        | spaces.gpr("data_reg_index & 0x3C", 4).unless("size_sel")
    )

    size_sel = bits(23, 22, choice("128 bits", "32 bits", "16 bits", "8 bits"), mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        address = _l1_address(s, t, f)
        if address < 0:
            return address
        _advance(s, t, f)
        if s.timed[0]:
            in_flight.ask_memory(s, t, f.size_sel, f.data_reg_index, address)
        else:
            in_flight.load_gprs(s, t, f.size_sel, f.data_reg_index, address)
        return DONE


@njit
def _short_address(s: Any, t: Any, f: Any) -> Any:
    """20-bit address of the MMIO and Src forms; the offset counts 16ths of a byte."""
    base = np.int64(s.gpr[t, f.addr_reg_index])
    return (base + (half(s, t, f.offset_half_reg) >> 4)) & 0xFFFFF


@njit
def _src_row(s: Any, t: Any, which: Any, address: Any) -> Any:
    """Row that an address names, or an error number (above -8: a row that no instruction reads)."""
    row = (address >> 2) - (SRCA_OFFSET if which == banks.SRCA else 0)
    rows, offset = np.int64(SET_ROWS), s.unpack_row[which, t]
    if which == banks.SRCA and config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr):
        rows, offset = np.int64(SRC_ROWS), np.int64(0)
    if row >= rows:
        return np.int64(refuse(s, SRC_ROW, row=row, rows=rows))
    return np.int64(row + offset if row >= 0 else row)


class STOREIND(_Indirect, opcode=0x66, oracle=False):
    """Store GPRs to L1, MMIO or Src (STOREIND, Wormhole ISA)."""

    reads = (
        (_ADDRESS | spaces.gpr("data_reg_index & 0x3C", 4).unless(_OF_ONE_GPR))
        | (spaces.gpr("data_reg_index") | spaces.BANKS.when(_TO_SRC))
        | (spaces.UNPACKER | spaces.thread_cfg("SRCA_SET_*")).when(_TO_SRC)
        | spaces.OCCUPIED
    )
    writes = (_STEPPED | spaces.ALL_L1.when("mem_hier_sel") | spaces.ALL_SRC.when(_TO_SRC)) | (
        spaces.REGISTERS.when("size_sel and not mem_hier_sel") | spaces.OCCUPIED
    )

    reg_size_sel = bits(21, 21, mode=True).meaning("""
        0: L1: 128 or 16 bits; a register: of MMIO, or SrcA
        1: L1: 32 or 8 bits; a register: SrcB""")
    size_sel = bits(22, 22, mode=True).meaning("""
        0: L1: 128 or 32 bits; a register: SrcA or SrcB
        1: L1: 16 or 8 bits; a register: of MMIO""")
    mem_hier_sel = bits(
        23, 23, choice("a register: of MMIO, SrcA or SrcB", "L1", about="where to"), mode=True
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.mem_hier_sel == 0:
            if f.size_sel == 0:
                # Source register form: waits for the unpacker's bank inside the scalar unit.
                at = _short_address(s, t, f)
                if at & 0xF0000:
                    return refuse(s, SRC_ADDRESS, address=at)
                waits = banks.unpack_ready(s, f.reg_size_sel)
                if waits:
                    return thread.occupy(s, t, waits)
                thread.vacate(s)
                row = _src_row(s, t, f.reg_size_sel, at)
                if row < -SRCA_OFFSET:
                    return row
                if row >= 0:
                    # Four BF16 cells from the first two registers of an aligned group.
                    column = (at & 3) * 4
                    bank = s.unpack_bank[f.reg_size_sel] & 1
                    banks.changed(s, f.reg_size_sel, bank)
                    for i in range(2):
                        value = np.int64(s.gpr[t, (f.data_reg_index & 0x3C) + i])
                        exponent, mantissa = value & 0xFF, (value >> 8) & 0x7F
                        low = ((value & 0x8000) << 16) | (exponent << 23) | (mantissa << 16)
                        cells = s.src[f.reg_size_sel, bank, row]
                        cells[column + 2 * i] = np.uint32(low)
                        cells[column + 2 * i + 1] = np.uint32(value & 0xFFFF0000)
                _advance(s, t, f)
                return DONE
            if f.reg_size_sel:
                return MMIO_SIZE
            at = _short_address(s, t, f) & ~3
            late = in_flight.settle_registers(s) if s.timed[0] else np.int64(0)
            if late:
                return late
            status = mmio.store(s, mmio.BASE + at, np.int64(s.gpr[t, f.data_reg_index]))
            if status == 0:
                _advance(s, t, f)
            return status
        at = _l1_address(s, t, f)
        if at < 0:
            return at
        if s.timed[0]:
            in_flight.settle(s, at)
        _advance(s, t, f)
        # Sizes 0 to 3: 128, 32, 16, 8 bits, from the low end of the GPR
        register = f.data_reg_index
        size = 2 * f.size_sel + f.reg_size_sel
        state.written(s, at, np.int64(1))  # an aligned access stays in one page
        if size == 0:
            for i in range(4):
                l1_words(s)[((at & ~15) >> 2) + i] = s.gpr[t, (register & 0x3C) + i]
        elif size == 1:
            l1_words(s)[at >> 2] = s.gpr[t, register]
        elif size == 2:
            l1_halves(s)[at >> 1] = np.uint16(np.int64(s.gpr[t, register]) & 0xFFFF)
        else:
            s.l1[at] = np.uint8(np.int64(s.gpr[t, register]) & 0xFF)
        return DONE


# Scalar unit (ThCon): atomic operations on words of L1.
#
# Every instruction completes at once, so the order in which they execute is the order in memory.

FIELDS = error("THCON-ATOMIC-FIELDS", UNSUPPORTED, "an L1 atomic with mem_hier_sel {mem_hier_sel} or ATCAS with data_reg_index {data_reg_index}: the ISA text has 0 only", "clear the field")  # fmt: skip

WAIT_EQUAL = condition("a word of L1 to become equal to the 4-bit value of ATCAS")
WAIT_ROOM = condition("room in a FIFO in L1 (ATINCGETPTR)")
WAIT_ENTRY = condition("an entry in a FIFO in L1 (ATINCGETPTR)")


@njit
def _place(s: Any, t: Any, f: Any, offset: Any, unused: Any) -> Any:
    """L1 address of word `offset` (0-3) of the 16 bytes that a GPR names, or an error number.

    `unused`: what the word has in data_reg_index where the ISA text has 0 only, else 0.
    """
    if f.mem_hier_sel | unused:
        status = refuse(s, FIELDS, mem_hier_sel=f.mem_hier_sel, data_reg_index=unused)
        return np.int64(status)
    return _in_l1(s, np.int64(s.gpr[t, f.addr_reg_index]) * 16 + 4 * offset)


def _value(s: Any, address: int) -> str:
    if address >= L1_SIZE:
        return "outside L1"
    return f"{int(s.l1[address : address + 4].view(np.uint32)[0]):#x}"


_WORD = spaces.l1("16 * gpr(addr_reg_index) + 4 * sel32b", 4)


class _Atomic(Instruction, unit="scalar"):
    """GPRs with the address of 16 bytes of L1 and with data."""

    addr_reg_index = bits(5, 0, insn.GPR_ADDRESS)
    data_reg_index = bits(11, 6, insn.GPR)
    mem_hier_sel = bits(23, 23, choice("L1"), mode=True)


class ATINCGET(_Atomic, opcode=0x61, oracle=False):
    """Atomically increment a word of L1 and fetch the old value (ATINCGET, Wormhole ISA)."""

    reads = spaces.gpr("addr_reg_index") | spaces.gpr("data_reg_index") | _WORD
    writes = spaces.gpr("data_reg_index") | _WORD

    sel32b = bits(13, 12, number("word of the 16 bytes"), mode=True)
    wrap_val = bits(18, 14, number("highest bit that changes"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        address = _place(s, t, f, f.sel32b, 0)
        if address < 0:
            return address
        added = np.int64(s.gpr[t, f.data_reg_index])
        mask = (np.int64(2) << f.wrap_val) - 1
        if s.timed[0]:
            i = in_flight.ask_memory(s, t, in_flight.ATOMIC, f.data_reg_index, address)
            s.answer[i, in_flight.INCREMENT], s.answer[i, in_flight.MASK] = added, mask
            return DONE
        old = l1_word(s, address)
        in_flight.increment_word(s, address, old, added, mask)
        s.gpr[t, f.data_reg_index] = np.uint32(old)
        return DONE


class ATINCGETPTR(_Atomic, opcode=0x62, oracle=False):
    """Atomically advance a FIFO counter in L1, waiting for room or data (ATINCGETPTR, ISA).

    The 16 bytes hold the read counter and the write counter.
    """

    reads = (
        spaces.gpr("addr_reg_index")
        | spaces.l1("16 * gpr(addr_reg_index) + 4 - 4 * (sel32b & 1)", 4, awaited=True)
        | spaces.l1("16 * gpr(addr_reg_index)", 8)
        | _WORD
    )
    writes = spaces.gpr("data_reg_index") | _WORD | spaces.OCCUPIED

    sel32b = bits(13, 12, mode=True).meaning("""the word of the 16 bytes that advances
        0: pop: the read counter
        1: push: the write counter
        2: pop: word 2
        3: push: word 3""")
    wrap_val = bits(17, 14, number("width of the counter in bits"))
    incr_val = bits(21, 18, number("log2 of what is added"))
    no_incr = bits(22, 22, choice("adds", "adds nothing"), mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        base = _place(s, t, f, 0, 0)
        if base < 0:
            return base
        if s.timed[0]:
            in_flight.settle(s, base)
        size = (l1_word(s, base + 4) - l1_word(s, base)) & WORD
        if f.sel32b & 1:
            capacity = np.int64(1) << (f.wrap_val - 1) if f.wrap_val else np.int64(0x8000)
            if size != 0 and size % capacity == 0:
                return thread.occupy(s, t, WAIT_ROOM)
        elif size == 0:
            return thread.occupy(s, t, WAIT_ENTRY)
        thread.vacate(s)
        address = base + 4 * f.sel32b
        old = l1_word(s, address)
        added = np.int64(0) if f.no_incr else np.int64(1) << f.incr_val
        in_flight.increment_word(s, address, old, added, (np.int64(1) << f.wrap_val) - 1)
        s.gpr[t, f.data_reg_index] = np.uint32(old)
        return DONE

    @staticmethod
    def explain(s: Any, t: int, word: int) -> str:
        """Both counters."""
        base = int(s.gpr[t, word & 63]) * 16
        read, write = base & WORD, (base + 4) & WORD
        counters = f"read counter {_value(s, read)}, write counter {_value(s, write)}"
        return f"L1[{read:#x}]: {counters}"


class ATSWAP(_Atomic, opcode=0x63, oracle=False, macro=(Argument("swap_mask", 22, 14),)):
    """Store the half-words of L1 that a mask selects (ATSWAP, Wormhole ISA).

    Nothing is swapped into the GPRs.
    """

    reads = spaces.gpr("addr_reg_index") | spaces.gpr("data_reg_index & 0x3C", 4)
    writes = spaces.l1("16 * gpr(addr_reg_index)", 16, keeps="swap_mask != 255")

    swap_mask = bits(21, 14, number("half-words of L1 that are stored, a bit each"))
    single_data_reg = bits(
        22, 22, choice("from four GPRs", "from one GPR, zeros for the other three"), mode=True
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        address = _place(s, t, f, 0, 0)
        if address < 0:
            return address
        if s.timed[0]:
            in_flight.settle(s, address)
        state.written(s, address, np.int64(16))
        for i in range(8):
            if (f.swap_mask >> i) & 1:
                register = (f.data_reg_index & 0x3C) + (i >> 1)
                value = np.int64(s.gpr[t, register])
                if f.single_data_reg and register != f.data_reg_index:
                    value = np.int64(0)
                l1_halves(s)[(address >> 1) + i] = np.uint16((value >> (16 * (i & 1))) & 0xFFFF)
        return DONE


class ATCAS(_Atomic, opcode=0x64, oracle=False):
    """Wait until a word of L1 has a 4-bit value, then set it to another (ATCAS, Wormhole ISA)."""

    reads = spaces.gpr("addr_reg_index") | spaces.l1(
        "16 * gpr(addr_reg_index) + 4 * sel32b", 4, awaited=True
    )
    writes = _WORD | spaces.OCCUPIED

    sel32b = bits(13, 12, number("word of the 16 bytes"), mode=True)
    cmp_val = bits(17, 14, number("value that is waited for"))
    swap_val = bits(21, 18, number("value that is stored then"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        address = _place(s, t, f, f.sel32b, f.data_reg_index)
        if address < 0:
            return address
        if s.timed[0]:
            in_flight.settle(s, address)
        if l1_word(s, address) != f.cmp_val:
            return thread.occupy(s, t, WAIT_EQUAL)
        thread.vacate(s)
        state.written(s, address, np.int64(4))
        l1_words(s)[address >> 2] = np.uint32(f.swap_val)
        return DONE

    @staticmethod
    def explain(s: Any, t: int, word: int) -> str:
        """That word and the value it waits for."""
        address = ATCAS.looks_at(s, t, word) or 0
        return f"L1[{address:#x}] = {_value(s, address)}, awaited {(word >> 14) & 15:#x}"
