"""Scalar unit (ThCon): GPR arithmetic, register stores and REG2FLOP."""

from typing import Any

import numpy as np

from bhemu.bits import choice, number
from bhemu.jit.subset import njit
from bhemu.memmap import LOCAL_BASE
from bhemu.tensix import config, in_flight, insn, mmio, rules, spaces
from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import WAKES_NOBODY, Instruction, bits
from bhemu.tensix.state import WORD
from bhemu.tensix.units.counters import ENGINES, width_mask

# InputSource of SETDMAREG: two halves of the exponent histogram, the largest exponent; values from
# FIRST_EMPTY on name nothing and read as zero
HISTOGRAM, HISTOGRAM_HIGH, LARGEST_EXPONENT, FIRST_EMPTY = 6, 7, 9, 10
HEADER_FIELDS = (0xFFFF, 0x00FF0000, WORD, 0)  # what ResultSize 3 replaces in each word

SIGNALS = rules.error("THCON-SIGNALS", rules.UNIMPLEMENTED, "SETDMAREG with set_signals_mode 1 and source {source}: the packer's tile sizes and zero flags (sources 0 to 5 and 8) are not kept", "the ISA text names them and not what they count; sources 6, 7, 9 (exponents), 10 to 15 (zero) and the immediate form are modelled")  # fmt: skip
NO_PACKER = rules.error("THCON-PACKER", rules.UB, "SETDMAREG reads the exponent histogram of packer {packer}: Blackhole has packer 0 only", "leave bits 1:0 of WhichPackers (payload_sig_sel bits 8:7) 0")  # fmt: skip
STATISTICS = rules.error("THCON-EXPONENTS", rules.UNIMPLEMENTED, "SETDMAREG reads exponent statistics, but {count} PACRs ran without them since CLREXPHIST", "set ENABLE_ACC_STATS_Enable before the first PACR, or issue CLREXPHIST after setting it; int8 has no specified bins")  # fmt: skip
BITWOP_MODE = rules.error("THCON-BITWOP", rules.UB, "BITWOPDMAREG with op_sel {op_sel}: 0 (and), 1 (or) and 2 (xor) exist")  # fmt: skip
SHIFT_MODE = rules.error("THCON-SHIFT", rules.UB, "SHIFTDMAREG with op_sel {op_sel}: 0 (left) and 1 (right) exist")  # fmt: skip
CMP_MODE = rules.error("THCON-CMP", rules.UB, "CMPDMAREG with op_sel {op_sel}: 0 (>), 1 (<) and 2 (==) exist")  # fmt: skip


@njit
def _set(s: Any, t: Any, register: Any, value: Any) -> Any:
    s.gpr[t, register & 63] = np.uint32(value & WORD)
    return rules.DONE


@njit
def _operands(s: Any, t: Any, f: Any) -> Any:
    """Both operands; the second is a GPR, or its index as an unsigned 6-bit constant."""
    b = f.op_b_reg_index if f.op_b_is_const else np.int64(s.gpr[t, f.op_b_reg_index])
    return np.int64(s.gpr[t, f.op_a_reg_index]), b


@njit
def _source_word(s: Any, source: Any, i: Any) -> Any:
    """Word `i` (0-3) of the 128 bits that a source gives."""
    if source == LARGEST_EXPONENT and i == 0:
        return np.int64(s.pack_exponent[0])
    word = np.int64(0)
    if source == HISTOGRAM or source == HISTOGRAM_HIGH:
        at = 16 * (source - HISTOGRAM) + 4 * i
        for k in range(4):
            word |= np.int64(s.pack_histogram[at + k]) << (8 * k)
    return word


class SETDMAREG(Instruction, opcode=0x45, unit="scalar", wakes=WAKES_NOBODY):
    """Set one half of a GPR to a 16-bit immediate, or GPRs to packer state (SETDMAREG, ISA).

    State of the packer: SETDMAREG_Special.
    """

    reads = spaces.EXPONENTS.when("set_signals_mode")
    writes = spaces.gpr(
        "reg_index_16b >> 1", keeps="payload_sig_sel_size == 0 or not set_signals_mode"
    ).unless("set_signals_mode and payload_sig_sel_size > 1") | spaces.gpr(
        "reg_index_16b >> 1 & 0x3C", 4, keeps="payload_sig_sel_size == 3"
    ).when("set_signals_mode and payload_sig_sel_size > 1")

    reg_index_16b = bits(6, 0, insn.HALF_GPR)
    set_signals_mode = bits(
        7, 7, choice("a number", "state of the packer", about="what is written"), mode=True
    )
    payload_sig_sel = bits(21, 8).meaning(
        "a number: its bits 13:0; state: InputHalfReg [2:0], InputSource [6:3], WhichPackers [10:7]"
    )
    payload_sig_sel_size = bits(23, 22, mode=True).meaning(
        "a number: its bits 15:14; state: 0 half a GPR, 1 a GPR, 2 four GPRs, 3 a tile header in "
        "four GPRs"
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        select, size = f.payload_sig_sel, f.payload_sig_sel_size
        register, shift = f.reg_index_16b >> 1, 16 * (f.reg_index_16b & 1)
        kept = np.int64(s.gpr[t, register]) & (WORD ^ (0xFFFF << shift))
        if not f.set_signals_mode:
            return _set(s, t, register, kept | ((select | (size << 14)) << shift))
        # The special form: 16, 32 or 128 bits of the source, or its tile header.
        if select >> 11:
            return rules.refuse(s, rules.RESERVED_BITS, bits=select >> 11 << 19)
        part, source, packer = select & 7, (select >> 3) & 15, (select >> 7) & 3
        if source < FIRST_EMPTY:
            if source != HISTOGRAM and source != HISTOGRAM_HIGH and source != LARGEST_EXPONENT:
                return rules.refuse(s, SIGNALS, source=source)
            if source != LARGEST_EXPONENT and packer:
                return rules.refuse(s, NO_PACKER, packer=packer)
            # Without ENABLE_ACC_STATS the histogram stands still; only int8 has no known bins.
            count = s.pack_exponent[1 if source == LARGEST_EXPONENT else 2]
            if count:
                return rules.refuse(s, STATISTICS, count=count)
        value = _source_word(s, source, part >> 1)
        if size == 0:
            return _set(s, t, register, kept | (((value >> (16 * (part & 1))) & 0xFFFF) << shift))
        if size == 1:
            return _set(s, t, register, value)
        for i in range(4):
            replaced = WORD if size == 2 else HEADER_FIELDS[i]
            old = np.int64(s.gpr[t, (register & 0x3C) + i]) & ~replaced
            _set(s, t, (register & 0x3C) + i, old | (_source_word(s, source, i) & replaced))
        return rules.DONE


class FLUSHDMA(Instruction, opcode=0x46, unit="scalar", oracle=False):
    """Wait for outstanding work of the thread: there never is any here (FLUSHDMA, Wormhole ISA)."""

    writes = spaces.TDMA

    condition_mask = bits(
        3, 0, number("units whose work is waited for: none has any outstanding here")
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        # All four conditions ask for work in flight; every instruction completes at the gate.
        return rules.DONE


_BOTH = spaces.gpr("op_a_reg_index") | spaces.gpr("op_b_reg_index").unless("op_b_is_const")


class _Operands(Instruction, unit="scalar"):
    """Two operands, the second a GPR or a constant, and the GPR of the result."""

    reads = _BOTH
    writes = spaces.gpr("result_reg_index")

    op_a_reg_index = bits(5, 0, insn.GPR)
    op_b_reg_index = bits(11, 6, insn.GPR_OR_NUMBER)
    result_reg_index = bits(17, 12, insn.GPR)
    op_b_is_const = bits(
        23, 23, choice("operand B is a GPR", "operand B is the number op_b_reg_index"), mode=True
    )


class _Operation(_Operands):
    """Also which of several operations."""

    op_sel = bits(20, 18, mode=True)


class ADDDMAREG(_Operands, opcode=0x58):
    """Add two GPRs (ADDDMAREG, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        a, b = _operands(s, t, f)
        return _set(s, t, f.result_reg_index, a + b)


class SUBDMAREG(_Operands, opcode=0x59, oracle=False):
    """Subtract a GPR or constant from a GPR (SUBDMAREG, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        a, b = _operands(s, t, f)
        return _set(s, t, f.result_reg_index, a - b)


class MULDMAREG(_Operands, opcode=0x5A):
    """Multiply the low halves of two GPRs (MULDMAREG, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        a, b = _operands(s, t, f)
        return _set(s, t, f.result_reg_index, (a & 0xFFFF) * (b & 0xFFFF))


class BITWOPDMAREG(_Operation, opcode=0x5B, oracle=False):
    """And, or, exclusive-or of two GPRs (BITWOPDMAREG, Wormhole ISA)."""

    op_sel = _Operation.op_sel.meaning(choice("A & B", "A | B", "A ^ B"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.op_sel > 2:
            return rules.refuse(s, BITWOP_MODE, op_sel=f.op_sel)
        a, b = _operands(s, t, f)
        result = a & b if f.op_sel == 0 else (a | b if f.op_sel == 1 else a ^ b)
        return _set(s, t, f.result_reg_index, result)


class SHIFTDMAREG(_Operation, opcode=0x5C, oracle=False):
    """Shift a GPR, filling with zeros (SHIFTDMAREG, Wormhole ISA)."""

    op_sel = _Operation.op_sel.meaning(choice("A << B", "A >> B, zeros from the left"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.op_sel > 1:
            return rules.refuse(s, SHIFT_MODE, op_sel=f.op_sel)
        a, b = _operands(s, t, f)
        return _set(s, t, f.result_reg_index, a >> (b & 31) if f.op_sel else a << (b & 31))


class CMPDMAREG(_Operation, opcode=0x5D, oracle=False):
    """Compare two GPRs as unsigned, giving 0 or 1 (CMPDMAREG, Wormhole ISA)."""

    op_sel = _Operation.op_sel.meaning(
        choice("A > B", "A < B", "A == B", about="unsigned; the result is 0 or 1")
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.op_sel > 2:
            return rules.refuse(s, CMP_MODE, op_sel=f.op_sel)
        a, b = _operands(s, t, f)
        result = a > b if f.op_sel == 0 else (a < b if f.op_sel == 1 else a == b)
        return _set(s, t, f.result_reg_index, np.int64(result))


class DMANOP(Instruction, opcode=0x60, unit="scalar", wakes=WAKES_NOBODY):
    """Occupy the scalar unit for one slot (DMANOP, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return rules.DONE


class _Register(Instruction, unit="scalar"):
    """A GPR and an MMIO register."""

    reg_addr = bits(17, 0, number("word of the MMIO space from 0xFFB00000 on"))
    tdma_data_reg_index = bits(23, 18, insn.GPR)


class STOREREG(_Register, opcode=0x67):
    """Store a GPR to an MMIO register (STOREREG, Wormhole ISA)."""

    reads = spaces.gpr("tdma_data_reg_index")
    writes = spaces.MMIO.at(f"{LOCAL_BASE} + 4 * reg_addr", effect=spaces.Kind.STORES)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if s.timed[0]:
            status = in_flight.settle_registers(s)
            if status:
                return status
        value = np.int64(s.gpr[t, f.tdma_data_reg_index])
        return mmio.store(s, mmio.BASE + 4 * f.reg_addr, value)


class LOADREG(_Register, opcode=0x68, oracle=False):
    """Load a GPR from an MMIO register (LOADREG, Wormhole ISA)."""

    reads = spaces.REGISTERS
    writes = spaces.gpr("tdma_data_reg_index")

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = mmio.load(s, mmio.BASE + 4 * f.reg_addr)
        if status != rules.DONE:
            return status
        if s.timed[0]:  # loaded once more when the answer is there
            address = mmio.BASE + 4 * f.reg_addr
            in_flight.ask_memory(s, t, in_flight.REGISTERS, f.tdma_data_reg_index, address)
            return rules.DONE
        return _set(s, t, f.tdma_data_reg_index, s.loaded[0])


# Scalar unit (ThCon): REG2FLOP, from GPRs to THCON configuration words and address counters.

THCON_BASE = cf.THCON_SEC0_REG0_TileDescriptor.word
THCON_WORDS = config.SHARED - THCON_BASE

WEAK = rules.error("REG2FLOP-WEAK", rules.UNSUPPORTED, "REG2FLOP is unsupported on Blackhole: its text calls itself weak and nothing uses it", "use WRCFG for configuration and SETADC* for counters; ub = silicon follows the text")  # fmt: skip
INDEX = rules.error("REG2FLOP-INDEX", rules.UB, "REG2FLOP to THCON configuration word {index}: there are {count}", "flop_index counts from Config word 64; use WRCFG for the others")  # fmt: skip


@njit
def _part(value: Any, size_sel: Any, shift8: Any) -> Any:
    """The 32, 16 or 8 bits chosen; what is not aligned to its size counts as 0."""
    if size_sel == 1:
        return value if shift8 == 0 else 0
    if size_sel == 2:
        return (value >> (8 * shift8)) & 0xFFFF if shift8 & 1 == 0 else 0
    if size_sel == 3:
        return (value >> (8 * shift8)) & 0xFF
    return 0


class _Flop(Instruction, unit="scalar"):
    """Fields of REG2FLOP."""

    reg_index = bits(5, 0, insn.GPR)
    flop_index = bits(12, 6).meaning(
        "THCON word of Config; of a counter: X Y Z W [1:0], its carriage return [2], engine "
        "[4:3], channel [5]"
    )
    context_id_2 = bits(17, 16, number("thread whose counter is set"), mode=True)
    byte_offset = bits(19, 18, number("first byte of the GPR"))
    target_sel = bits(21, 20, mode=True).meaning("""
        0: THCON words of Config
        2: a counter of the issuing thread
        3: a counter of thread context_id_2""")
    size_sel = bits(23, 22, mode=True).meaning("""
        0: four words; of a counter: 0
        1: 32 bits
        2: one word; of a counter: 16 bits
        3: one word; of a counter: 8 bits""")


_COUNTERS_ONLY = _Flop.target_sel.mask | _Flop.byte_offset.mask | _Flop.context_id_2.mask
_CONFIG_ONLY = 0x40 << _Flop.flop_index.lo  # the highest bit of flop_index


class REG2FLOP(_Flop, opcode=0x48, oracle=False):
    """Copy GPRs to a THCON configuration word or an address counter (REG2FLOP, Wormhole ISA)."""

    reads = (
        spaces.gpr("reg_index").when("size_sel or target_sel > 1")
        | spaces.gpr("reg_index & 0x3C", 4).unless("size_sel or target_sel > 1")
        | spaces.TDMA
    )
    writes = (
        spaces.config_word(f"{THCON_BASE} + flop_index").when("size_sel and target_sel < 2")
        | spaces.config_word(f"{THCON_BASE} + (flop_index & ~3)", 4).unless(
            "size_sel or target_sel > 1"
        )
        | spaces.ADCS.when("target_sel > 1")
        | spaces.TDMA
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.target_sel < 2:
            if f.target_sel | f.byte_offset | f.context_id_2:
                return rules.refuse(s, rules.RESERVED_BITS, bits=f.word & _COUNTERS_ONLY)
            # One word, or (size_sel 0) the four of the aligned groups of both indices.
            if f.flop_index >= THCON_WORDS:
                return rules.refuse(s, INDEX, index=f.flop_index, count=THCON_WORDS)
            status = rules.undefined(s, WEAK)
            if status:
                return status
            b, who = config.bank(s, t), config.by_thread(s, t)
            if f.size_sel:
                config.write(s, b, THCON_BASE + f.flop_index, np.int64(s.gpr[t, f.reg_index]), who)
                return rules.DONE
            for i in range(4):
                value = np.int64(s.gpr[t, (f.reg_index & 0x3C) + i])
                config.write(s, b, THCON_BASE + (f.flop_index & ~3) + i, value, who)
            return rules.DONE
        if f.word & _CONFIG_ONLY:
            return rules.refuse(s, rules.RESERVED_BITS, bits=_CONFIG_ONLY)
        status = rules.undefined(s, WEAK)
        if status:
            return status
        value = _part(np.int64(s.gpr[t, f.reg_index]), f.size_sel, f.byte_offset)
        owner, engine = f.context_id_2 if f.target_sel & 1 else t, (f.flop_index >> 3) & 3
        if owner < 3 and engine < ENGINES:
            dimension, channel = f.flop_index & 3, (f.flop_index >> 5) & 1
            at = s.adc_cr if f.flop_index & 4 else s.adc
            at[owner, engine, channel, dimension] = value & width_mask(dimension)
        return rules.DONE
