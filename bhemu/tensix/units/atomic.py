"""Scalar unit (ThCon): atomic operations on words of L1.

Every instruction completes at once, so the order in which they execute is the order in memory.
"""

from typing import Any

import numpy as np

from bhemu.jit.calls import l1_word
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.operand import choice, number
from bhemu.tensix import code_pages, gate, tables
from bhemu.tensix.insn import Argument, Instruction, Word, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.resources import BETWEEN_GPRS
from bhemu.tensix.status import DONE, UNSUPPORTED, condition, error
from bhemu.tensix.units.memory import NOT_L1
from bhemu.tensix.words import WORD, l1_halves, l1_words

FIELDS = error(
    "THCON-ATOMIC-FIELDS",
    UNSUPPORTED,
    "an L1 atomic with mem_hier_sel {mem_hier_sel} or ATCAS with data_reg_index "
    "{data_reg_index}: the ISA text has 0 only",
    "clear the field",
)

WAIT_EQUAL = condition("a word of L1 to become equal to the 4-bit value of ATCAS")
WAIT_ROOM = condition("room in a FIFO in L1 (ATINCGETPTR)")
WAIT_ENTRY = condition("an entry in a FIFO in L1 (ATINCGETPTR)")


@njit
def _place(s: Any, t: Any, addr_reg_index: Any, offset: Any) -> Any:
    """L1 address of word `offset` (0-3) of the 16 bytes that a GPR names, or an error number."""
    address = (np.int64(s.gpr[t, addr_reg_index]) * 16 + 4 * offset) & WORD
    if address < L1_SIZE:
        return np.int64(address)
    return np.int64(refuse(s, NOT_L1, address=address))


@njit
def _fields_refused(s: Any, mem_hier_sel: Any, data_reg_index: Any) -> Any:
    return refuse(s, FIELDS, mem_hier_sel=mem_hier_sel, data_reg_index=data_reg_index)


@njit
def _increment(s: Any, address: Any, old: Any, increment: Any, mask: Any) -> None:
    """Add within the bits of `mask`; the others stay."""
    code_pages.written(s, address, np.int64(4))
    l1_words(s)[address >> 2] = np.uint32(((old + increment) & mask) | (old & ~mask))


def _watched(s: Any, t: int, word: int, offset: int) -> int:
    """Address of word `offset` of the 16 bytes that a blocked word names."""
    return (int(s.gpr[t, word & 63]) * 16 + 4 * offset) & WORD


def _value(s: Any, address: int) -> str:
    if address >= L1_SIZE:
        return "outside L1"
    return f"{int(s.l1[address : address + 4].view(np.uint32)[0]):#x}"


class _Atomic(Word):
    """GPRs with the address of 16 bytes of L1 and with data."""

    addr_reg_index = bits(5, 0, tables.GPR_ADDRESS)
    data_reg_index = bits(11, 6, tables.GPR)
    mem_hier_sel = bits(23, 23, choice({0: "L1"}), mode=True)


class ATINCGET(
    _Atomic,
    Instruction,
    opcode=0x61,
    unit="scalar",
    oracle=False,
    resources=BETWEEN_GPRS,
    stores="atomic",
):
    """Atomically increment a word of L1 and fetch the old value (ATINCGET, Wormhole ISA)."""

    sel32b = bits(13, 12, number("word of the 16 bytes"), mode=True)
    wrap_val = bits(18, 14, number("highest bit that changes"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.mem_hier_sel:
            return _fields_refused(s, f.mem_hier_sel, 0)
        address = _place(s, t, f.addr_reg_index, f.sel32b)
        if address < 0:
            return address
        old = l1_word(s, address)
        increment = np.int64(s.gpr[t, f.data_reg_index])
        _increment(s, address, old, increment, (np.int64(2) << f.wrap_val) - 1)
        s.gpr[t, f.data_reg_index] = np.uint32(old)
        return DONE


class ATINCGETPTR(
    _Atomic,
    Instruction,
    opcode=0x62,
    unit="scalar",
    oracle=False,
    resources=BETWEEN_GPRS,
    stores="atomic",
):
    """Atomically advance a FIFO counter in L1, waiting for room or data (ATINCGETPTR, ISA).

    The 16 bytes hold the read counter and the write counter.
    """

    sel32b = bits(
        13,
        12,
        choice(
            {
                0: "pop: the read counter",
                1: "push: the write counter",
                2: "pop: word 2",
                3: "push: word 3",
            },
            about="the word of the 16 bytes that advances",
        ),
        mode=True,
    )
    wrap_val = bits(17, 14, number("width of the counter in bits"))
    incr_val = bits(21, 18, number("log2 of what is added"))
    no_incr = bits(22, 22, choice({0: "adds", 1: "adds nothing"}), mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.mem_hier_sel:
            return _fields_refused(s, f.mem_hier_sel, 0)
        base = _place(s, t, f.addr_reg_index, 0)
        if base < 0:
            return base
        size = (l1_word(s, base + 4) - l1_word(s, base)) & WORD
        if f.sel32b & 1:
            capacity = np.int64(1) << (f.wrap_val - 1) if f.wrap_val else np.int64(0x8000)
            if size != 0 and size % capacity == 0:
                return gate.occupy(s, t, WAIT_ROOM)
        elif size == 0:
            return gate.occupy(s, t, WAIT_ENTRY)
        gate.vacate(s)
        address = base + 4 * f.sel32b
        old = l1_word(s, address)
        increment = np.int64(0) if f.no_incr else np.int64(1) << f.incr_val
        _increment(s, address, old, increment, (np.int64(1) << f.wrap_val) - 1)
        s.gpr[t, f.data_reg_index] = np.uint32(old)
        return DONE

    @staticmethod
    def looks_at(s: Any, t: int, word: int) -> int:
        """The counter of the other side: a push waits for the read counter, a pop for the other."""
        return _watched(s, t, word, 0 if (word >> 12) & 1 else 1)

    @staticmethod
    def explain(s: Any, t: int, word: int) -> str:
        """Both counters."""
        read, write = (_watched(s, t, word, offset) for offset in (0, 1))
        counters = f"read counter {_value(s, read)}, write counter {_value(s, write)}"
        return f"L1[{read:#x}]: {counters}"


class ATSWAP(
    _Atomic,
    Instruction,
    opcode=0x63,
    unit="scalar",
    oracle=False,
    resources=BETWEEN_GPRS,
    stores="atomic",
    macro=(Argument("swap_mask", 22, 14),),  # bit 8: single_data_reg
):
    """Store the half-words of L1 that a mask selects (ATSWAP, Wormhole ISA).

    Nothing is swapped into the GPRs.
    """

    swap_mask = bits(21, 14, number("half-words of L1 that are stored, a bit each"))
    single_data_reg = bits(
        22,
        22,
        choice({0: "from four GPRs", 1: "from one GPR, zeros for the other three"}),
        mode=True,
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.mem_hier_sel:
            return _fields_refused(s, f.mem_hier_sel, 0)
        address = _place(s, t, f.addr_reg_index, 0)
        if address < 0:
            return address
        code_pages.written(s, address, np.int64(16))
        for i in range(8):
            if (f.swap_mask >> i) & 1:
                register = (f.data_reg_index & 0x3C) + (i >> 1)
                value = np.int64(s.gpr[t, register])
                if f.single_data_reg and register != f.data_reg_index:
                    value = np.int64(0)
                l1_halves(s)[(address >> 1) + i] = np.uint16((value >> (16 * (i & 1))) & 0xFFFF)
        return DONE


class ATCAS(
    _Atomic,
    Instruction,
    opcode=0x64,
    unit="scalar",
    oracle=False,
    resources=BETWEEN_GPRS,
    stores="atomic",
):
    """Wait until a word of L1 has a 4-bit value, then set it to another (ATCAS, Wormhole ISA)."""

    sel32b = bits(13, 12, number("word of the 16 bytes"), mode=True)
    cmp_val = bits(17, 14, number("value that is waited for"))
    swap_val = bits(21, 18, number("value that is stored then"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.mem_hier_sel | f.data_reg_index:
            return _fields_refused(s, f.mem_hier_sel, f.data_reg_index)
        address = _place(s, t, f.addr_reg_index, f.sel32b)
        if address < 0:
            return address
        if l1_word(s, address) != f.cmp_val:
            return gate.occupy(s, t, WAIT_EQUAL)
        gate.vacate(s)
        code_pages.written(s, address, np.int64(4))
        l1_words(s)[address >> 2] = np.uint32(f.swap_val)
        return DONE

    @staticmethod
    def looks_at(s: Any, t: int, word: int) -> int:
        """The word it compares."""
        return _watched(s, t, word, (word >> 12) & 3)

    @staticmethod
    def explain(s: Any, t: int, word: int) -> str:
        """That word and the value it waits for."""
        address = ATCAS.looks_at(s, t, word)
        return f"L1[{address:#x}] = {_value(s, address)}, awaited {(word >> 14) & 15:#x}"
