"""The control and status registers of the baby RISC-V cores and the Zicsr instructions."""

import numpy as np

from bhemu.jit.subset import njit

MASK = 0xFFFFFFFF
SYSTEM = 0b1110011

NOT_CSR, CSRRW, CSRRS, CSRRC = 0, 1, 2, 3

MSTATUS, MISA, MHARTID = 0x300, 0x301, 0xF14
CFG0 = 0x7C0
PMACFG0, VGSRC = 0x7C1, 0x7C6
MCYCLE, MCYCLEH = 0xB00, 0xB80
MINSTRET, MINSTRETH = 0xB02, 0xB82
TT_CFG_QSTATUS, TT_CFG_BSTATUS = 0xBC0, 0xBC1
TT_CFG_SSTATUS0, TT_CFG_SSTATUS7 = 0xBC2, 0xBC9
CYCLE, CYCLEH = 0xC00, 0xC80
INSTRET, INSTRETH = 0xC02, 0xC82

# The modelled registers: number to name (CSRs, Blackhole ISA).
NAMES: dict[int, str] = {
    MSTATUS: "mstatus",
    MISA: "misa",
    CFG0: "cfg0",
    0x7C1: "pmacfg0",
    0x7C2: "pmacfg1",
    0x7C3: "cfg1",
    0x7C4: "hwa_mask",
    0x7C5: "hwa_cfg",
    0x7C6: "vgsrc",
    MCYCLE: "mcycle",
    MINSTRET: "minstret",
    MCYCLEH: "mcycleh",
    MINSTRETH: "minstreth",
    TT_CFG_QSTATUS: "tt_cfg_qstatus",
    TT_CFG_BSTATUS: "tt_cfg_bstatus",
    **{TT_CFG_SSTATUS0 + i: f"tt_cfg_sstatus{i}" for i in range(8)},  # brisc and ncrisc only
    CYCLE: "cycle",
    INSTRET: "instret",
    CYCLEH: "cycleh",
    INSTRETH: "instreth",
    MHARTID: "mhartid",
}

# Registers that are not modelled, named for messages only.
UNMODELLED_NAMES: dict[int, str] = {
    0x003: "fcsr",
    0x008: "vstart",
    0x009: "vxsat",
    0x00A: "vxrm",
    0x304: "mie",
    0x305: "mtvec",
    0x306: "mcounteren",
    0x310: "mstatush",
    0x320: "mcountinhibit",
    0x323: "mhpmevent3",
    0x324: "mhpmevent4",
    0x340: "mscratch",
    0x341: "mepc",
    0x342: "mcause",
    0x343: "mtval",
    0x344: "mip",
    0xB03: "mhpmcounter3",
    0xB04: "mhpmcounter4",
    0xB83: "mhpmcounter3h",
    0xB84: "mhpmcounter4h",
    0xBCA: "intp_restore_pc",
    0xC01: "time",
    0xC20: "vl",
    0xC21: "vtype",
    0xC22: "vlenb",
    0xC81: "timeh",
    0xF11: "mvendorid",
    0xF12: "marchid",
    0xF13: "mimpid",
    0xF15: "mconfigptr",
}


@njit(cache=False)
def decode(word: int) -> tuple[int, int, int, int]:
    """Split a word into (csr, kind, source, immediate) (RISC-V unprivileged ISA, "Zicsr").

    `csr` is the register number 0..0xFFF, `kind` one of NOT_CSR, CSRRW, CSRRS, CSRRC, `source`
    the rs1 field 0..31 and `immediate` 1 where that field is the operand itself (csrrwi, csrrsi,
    csrrci) and 0 where it names a register. A word that is no CSR instruction is (0, 0, 0, 0).
    """
    word = int(np.int64(word))  # explicit width: see bitmanip.execute
    kind = (word >> 12) & 3
    if word & 0x7F != SYSTEM or kind == NOT_CSR:
        return 0, NOT_CSR, 0, 0
    return (word >> 20) & 0xFFF, kind, (word >> 15) & 0x1F, (word >> 14) & 1


@njit(cache=False)
def new_value(kind: int, old: int, operand: int) -> int:
    """Value the register takes: `operand` written, set or cleared into `old`, 0..2**32-1.

    `operand` is the value of rs1 or the 5-bit immediate. Returns -1 for any other kind, so
    that a caller that did not check `kind` cannot store a plausible value.
    """
    old, operand = int(np.int64(old)) & MASK, int(np.int64(operand)) & MASK
    if kind == CSRRW:
        return operand
    if kind == CSRRS:
        return old | operand
    if kind == CSRRC:
        return old & (operand ^ MASK)
    return -1


@njit(cache=False)
def writes(kind: int, rs1_field: int) -> bool:
    """Whether the instruction writes its CSR: set and clear with x0 or immediate 0 do not."""
    return kind == CSRRW or (kind in (CSRRS, CSRRC) and rs1_field != 0)
