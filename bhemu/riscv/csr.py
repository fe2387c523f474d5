"""Control and status registers of the cores: names, reads and writes."""

from typing import Any

import numpy as np

from bhemu.devices.debug_regs import now
from bhemu.jit.subset import njit
from bhemu.memmap import CYCLE, CYCLEH, INSTRET, INSTRETH
from bhemu.tensix import thread_fields as tf
from bhemu.tensix import unspecified
from bhemu.tensix.frontend import MOP, REPLAY
from bhemu.tensix.insn import STALL_ANY
from bhemu.tensix.rules import UB, error, note_rule
from bhemu.tensix.state import FIFO_DEPTH, THREADS

# The control and status registers of the baby RISC-V cores: numbers and names.


def _named(text: str) -> dict[int, str]:
    """Number to name."""
    return {int(number, 16): name for number, name in (one.split() for one in text.split(","))}


# The modelled registers (CSRs, Blackhole ISA); tt_cfg_sstatus0-7: of brisc and ncrisc only.
NAMES = _named(f"""300 mstatus, 301 misa, 7c0 cfg0,
    7c1 pmacfg0, 7c2 pmacfg1, 7c3 cfg1, 7c4 hwa_mask, 7c5 hwa_cfg, 7c6 vgsrc,
    b00 mcycle, b02 minstret, b80 mcycleh, b82 minstreth,
    bc0 tt_cfg_qstatus, bc1 tt_cfg_bstatus,
    bc2 tt_cfg_sstatus0, bc3 tt_cfg_sstatus1, bc4 tt_cfg_sstatus2, bc5 tt_cfg_sstatus3,
    bc6 tt_cfg_sstatus4, bc7 tt_cfg_sstatus5, bc8 tt_cfg_sstatus6, bc9 tt_cfg_sstatus7,
    {CYCLE:x} cycle, {INSTRET:x} instret, {CYCLEH:x} cycleh, {INSTRETH:x} instreth, f14 mhartid""")
# Registers that are not modelled, named for messages only.
UNMODELLED_NAMES = _named("""
    003 fcsr, 008 vstart, 009 vxsat, 00a vxrm, 304 mie, 305 mtvec, 306 mcounteren,
    310 mstatush, 320 mcountinhibit, 323 mhpmevent3, 324 mhpmevent4, 340 mscratch, 341 mepc,
    342 mcause, 343 mtval, 344 mip, b03 mhpmcounter3, b04 mhpmcounter4, b83 mhpmcounter3h,
    b84 mhpmcounter4h, bca intp_restore_pc, c01 time, c20 vl, c21 vtype, c22 vlenb, c81 timeh,
    f11 mvendorid, f12 marchid, f13 mimpid, f15 mconfigptr""")
_NUMBER = {name: number for number, name in NAMES.items()}
MSTATUS, MISA, MHARTID = _NUMBER["mstatus"], _NUMBER["misa"], _NUMBER["mhartid"]
CFG0, PMACFG0, VGSRC = _NUMBER["cfg0"], _NUMBER["pmacfg0"], _NUMBER["vgsrc"]
MCYCLE, MINSTRET = _NUMBER["mcycle"], _NUMBER["minstret"]
TT_CFG_QSTATUS, TT_CFG_BSTATUS = _NUMBER["tt_cfg_qstatus"], _NUMBER["tt_cfg_bstatus"]
TT_CFG_SSTATUS0, TT_CFG_SSTATUS7 = _NUMBER["tt_cfg_sstatus0"], _NUMBER["tt_cfg_sstatus7"]


# The control and status registers of the five cores over the state record (CSRs, Blackhole ISA).
#
# A register that is not handled here is refused by name: floating point, vectors, interrupts,
# performance events, and the stream status registers of the TRISCs.

UNKNOWN = -1  # from `value`: not modelled

_MSTATUS = 0x80006600  # always: floating-point and vector state dirty
_MISA = 0x40201123  # always: RV32IMABFV
_FREEZE = 1 << 29  # cfg0.DisTTStatusReg
_RAW_BUSY = tf.TENSIX_CSR_CONFIG_RawBusyStatus

_SCRATCH, _SSTATUS, _FROZEN = 0, 6, 14  # places in s.csr
_CYCLES, _INSTRUCTIONS = 0, 1  # places in s.csr_offset

_EVERY_LANE = 0xFFFFFFFF
_REPLAY_TYPE, _MOP_TYPE = 1, 2
# Bit of tt_cfg_qstatus for each block bit B0-B8 of STALLWAIT: both name the same groups.
_TYPE_OF_BLOCK = (8, 7, 5, 4, 3, 2, 10, 6, 9)

_DROPPED = error("RV-CSR-DROPPED", UB, "a write to CSR {csr:#x}, which is constant on these cores: hardware drops it, where the RISC-V text has a register or a trap")  # fmt: skip


@njit
def _counter(s: Any, c: Any, which: Any) -> Any:
    """mcycle or minstret, 64 bits as int64."""
    if which == _CYCLES:
        return now(s) + s.csr_offset[c, _CYCLES]
    retired = s.retired[c] + s.fuel_given[c] - s.fuel[c]
    return retired + s.csr_offset[c, _INSTRUCTIONS]


@njit
def _which_counter(number: Any) -> Any:
    """_CYCLES or _INSTRUCTIONS, or UNKNOWN; the alias and the high half included."""
    base = number & ~0x80
    if base == MCYCLE or base == CYCLE:
        return np.int64(_CYCLES)
    if base == MINSTRET or base == INSTRET:
        return np.int64(_INSTRUCTIONS)
    return np.int64(UNKNOWN)


@njit
def _slot(c: Any, number: Any) -> Any:
    """Place of a register that is storage, or UNKNOWN."""
    if PMACFG0 <= number <= VGSRC:
        return np.int64(_SCRATCH + number - PMACFG0)
    if TT_CFG_SSTATUS0 <= number <= TT_CFG_SSTATUS7 and (c == 0 or c == 4):
        return np.int64(_SSTATUS + number - TT_CFG_SSTATUS0)
    return np.int64(UNKNOWN)


@njit
def _type(s: Any, word: Any) -> Any:
    """Bitmask with the instruction types of one queued word."""
    opcode = (word >> 24) & 0xFF
    if opcode == MOP:
        return np.int64(_MOP_TYPE)
    if opcode == REPLAY:
        return np.int64(0 if word & 3 == 1 else _REPLAY_TYPE)
    if s.stall[opcode] == STALL_ANY:  # the wait instructions, of the sync unit
        return np.int64(1 << _TYPE_OF_BLOCK[1])
    types = np.int64(0)
    for i in range(9):
        if (s.stall[opcode] >> i) & 1:
            types |= 1 << _TYPE_OF_BLOCK[i]
    return types


@njit
def _queued_types(s: Any, t: Any) -> Any:
    """Types of the words that TRISC t pushed and that have not left the front end."""
    types, pushed_by = np.int64(0), t + 1
    if s.gate_full[t] and s.gate_core[t] == pushed_by:
        types |= _type(s, np.int64(s.gate_word[t]))
    if s.mop_on[t] and s.mop_core[t] == pushed_by:
        types |= _MOP_TYPE
    if s.play_left[t] > 0 and s.gate_core[t] == pushed_by:
        types |= _REPLAY_TYPE
    for i in range(s.fifo_read[t], s.fifo_write[t]):
        if s.fifo_core[t, i % FIFO_DEPTH] == pushed_by:
            types |= _type(s, np.int64(s.fifo[t, i % FIFO_DEPTH]))
    return types


@njit
def _status(s: Any, c: Any, number: Any) -> Any:
    """tt_cfg_qstatus or tt_cfg_bstatus as the coprocessor stands; nothing executes in between."""
    every = np.int64(0)
    for t in range(THREADS):
        every |= _queued_types(s, t)
    own = _queued_types(s, c - 1) if 1 <= c <= 3 else every
    if number == TT_CFG_BSTATUS:
        raw = (np.int64(s.thread_cfg[c - 1, _RAW_BUSY.word]) if 1 <= c <= 3 else 0) & 1
        return np.int64(UNKNOWN) if raw else own | every << 11
    lanes = np.int64(s.cc_en[0] == 0)  # sfpu_cc: at least one lane of the vector unit is enabled
    for lane in range(32):
        lanes |= np.int64(s.cc[lane] != 0)
    return own | lanes << 11 | every << 13 | lanes << 24


@njit
def shows_coprocessor(number: Any) -> Any:
    """True for the registers that tell how far the coprocessor has come."""
    return number == TT_CFG_QSTATUS or number == TT_CFG_BSTATUS


@njit
def value(s: Any, c: Any, number: Any) -> Any:
    """What core `c` reads, or UNKNOWN."""
    if number == CFG0:
        return np.int64(s.cfg0[c])
    which = _which_counter(number)
    if which != UNKNOWN:
        return (_counter(s, c, which) >> (32 if number & 0x80 else 0)) & 0xFFFFFFFF
    if shows_coprocessor(number):
        if np.int64(s.cfg0[c]) & _FREEZE:
            return np.int64(s.csr[c, _FROZEN + number - TT_CFG_QSTATUS])
        return _status(s, c, number)
    if number == MSTATUS:
        return np.int64(_MSTATUS)
    if number == MISA:
        return np.int64(_MISA)
    if number == MHARTID:
        return np.int64(0)
    slot = _slot(c, number)
    return np.int64(UNKNOWN) if slot == UNKNOWN else np.int64(s.csr[c, slot])


@njit
def depends_on_doubt(s: Any, number: Any) -> Any:
    """True when what the register shows, or keeps at a write, depends on a doubtful lane."""
    if not s.doubt[2] or not (shows_coprocessor(number) or number == CFG0):
        return False
    return unspecified.is_open(s, np.int64(_EVERY_LANE))


@njit
def _is_kept(s: Any, c: Any, number: Any) -> Any:
    """Whether hardware keeps what is written, for a register that `value` knows.

    It drops what is written to mstatus, misa and mhartid, and overwrites the two status registers
    at once unless DisTTStatusReg keeps them.
    """
    if shows_coprocessor(number):
        return (np.int64(s.cfg0[c]) & _FREEZE) != 0
    return number != MSTATUS and number != MISA and number != MHARTID


@njit
def store(s: Any, c: Any, number: Any, new: Any) -> None:
    """Write a register that `value` knows."""
    slot = _slot(c, number)
    if not _is_kept(s, c, number):
        if not shows_coprocessor(number):
            note_rule(s, _DROPPED, csr=number)
    elif number == CFG0:
        # DisTTStatusReg freezes the status registers at what they show now
        if new & _FREEZE and not np.int64(s.cfg0[c]) & _FREEZE:
            for i in range(2):
                shown = _status(s, c, TT_CFG_QSTATUS + i)
                s.csr[c, _FROZEN + i] = np.uint32(max(shown, 0))
        s.cfg0[c] = np.uint32(new)
    elif _which_counter(number) != UNKNOWN:
        # Write one half; the next instruction of the core reads what was written
        which = _which_counter(number)
        old = _counter(s, c, which)
        if number & 0x80:
            wanted = (old & 0xFFFFFFFF) | ((new - ((new & 0x80000000) << 1)) << 32)
        else:
            wanted = (old & ~0xFFFFFFFF) | new
        s.csr_offset[c, which] += wanted - old - 1
    elif slot != UNKNOWN:
        s.csr[c, slot] = np.uint32(new)
    else:
        s.csr[c, _FROZEN + number - TT_CFG_QSTATUS] = np.uint32(new)


def host_entry(s: Any, c: Any, number: Any, writes: Any, new: Any) -> Any:
    """ACCESS entry: what core `c` would read, before a store if there is one.

    UNKNOWN: there is no such register, or it does not keep what is written.
    """
    old = np.int64(value(s, c, number))
    if writes and old != UNKNOWN:
        if not _is_kept(s, c, number):
            return np.int64(UNKNOWN)
        store(s, c, number, new)
    return old
