"""The control and status registers of the baby RISC-V cores: numbers and names."""

MSTATUS, MISA, MHARTID = 0x300, 0x301, 0xF14
CFG0 = 0x7C0
PMACFG0, VGSRC = 0x7C1, 0x7C6
MCYCLE, MCYCLEH = 0xB00, 0xB80
MINSTRET, MINSTRETH = 0xB02, 0xB82
TT_CFG_QSTATUS, TT_CFG_BSTATUS = 0xBC0, 0xBC1
TT_CFG_SSTATUS0, TT_CFG_SSTATUS7 = 0xBC2, 0xBC9
CYCLE, CYCLEH = 0xC00, 0xC80
INSTRET, INSTRETH = 0xC02, 0xC82
TIME, TIMEH = 0xC01, 0xC81

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
    TIME: "time",
    0xC20: "vl",
    0xC21: "vtype",
    0xC22: "vlenb",
    TIMEH: "timeh",
    0xF11: "mvendorid",
    0xF12: "marchid",
    0xF13: "mimpid",
    0xF15: "mconfigptr",
}
