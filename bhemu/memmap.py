"""Every address range and register of the tile by name, and the registers that are inert.

Names as tt-exalens writes them. Addresses are the cores' (TensixTile and BabyRISCV, Blackhole ISA).
"""

from typing import NamedTuple

CORE_NAMES = ("brisc", "trisc0", "trisc1", "trisc2", "ncrisc")
HOST = 5  # accesses over the NoC, in place of a core number

L1_SIZE = 0x180000
LOCAL_BASE = 0xFFB00000
LOCAL_SIZES = (0x2000, 0x1000, 0x1000, 0x1000, 0x2000)

DEVICE_BASE = 0xFFB02000  # everything from here on is a device access
DEVICE_SIZE = 0xFFFFF000 - DEVICE_BASE
FAR_UNTIL = 0xFFFFFFF0  # in no page that is mapped or executes

TDMA_BASE = 0xFFB11000
DEBUG_BASE = 0xFFB12000
PIC_BASE = 0xFFB13000
PIC_END = 0xFFB13138
PC_SNAPSHOT_BASE = 0xFFB13138
PC_SNAPSHOT_END = 0xFFB1314C
LOCAL_SLOW_BASE = 0xFFB14000  # brisc, ncrisc, trisc0, trisc1, trisc2: 8 KiB slots
LOCAL_SLOW_END = 0xFFB1E000
NOC0_BASE = 0xFFB20000
NOC1_BASE = 0xFFB30000
OVERLAY_BASE = 0xFFB40000
OVERLAY_END = 0xFFB80000
MOP_CFG_BASE = 0xFFB80000
MOP_CFG_END = 0xFFB80024
DST_WINDOW_BASE = 0xFFBD8000
DST_WINDOW_END = 0xFFBE0000
GPR_BASE = 0xFFE00000
GPR_END = 0xFFE01000
INSTRN_BUF_BASE = 0xFFE40000
INSTRN1_BUF_BASE = 0xFFE50000
INSTRN2_BUF_BASE = 0xFFE60000
INSTRN_BUF_END = 0xFFE70000
PC_BUF_BASE = 0xFFE80000
PC_BUF_END = 0xFFEB0000
MAILBOX_BASE = 0xFFEC0000
MAILBOX_END = 0xFFEC4000
TENSIX_CFG_BASE = 0xFFEF0000
TENSIX_CFG_END = 0xFFEF0DB0

# Tile control / debug / status registers (offsets from DEBUG_BASE)
RISCV_DEBUG_REG_CFGREG_RD_CNTL = 0x058
RISCV_DEBUG_REG_DBG_ARRAY_RD_EN = 0x060
RISCV_DEBUG_REG_DBG_ARRAY_RD_CMD = 0x064
RISCV_DEBUG_REG_DBG_FEATURE_DISABLE = 0x068
RISCV_DEBUG_REG_DBG_ARRAY_RD_DATA = 0x06C
RISCV_DEBUG_REG_CFGREG_RDDATA = 0x078
RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE = 0x090
RISCV_DEBUG_REG_INSTRN_BUF_CTRL0 = 0x0A0
RISCV_DEBUG_REG_INSTRN_BUF_CTRL1 = 0x0A4
RISCV_DEBUG_REG_INSTRN_BUF_STATUS = 0x0A8
RISCV_DEBUG_REG_SOFT_RESET_0 = 0x1B0
RISCV_DEBUG_REG_WALL_CLOCK_0 = 0x1F0
RISCV_DEBUG_REG_WALL_CLOCK_1_LIVE = 0x1F4
RISCV_DEBUG_REG_WALL_CLOCK_1 = 0x1F8
RISCV_DEBUG_REG_DISABLE_RESET = 0x224
RISCV_DEBUG_REG_TRISC0_RESET_PC = 0x228
RISCV_DEBUG_REG_TRISC1_RESET_PC = 0x22C
RISCV_DEBUG_REG_TRISC2_RESET_PC = 0x230
RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE = 0x234
RISCV_DEBUG_REG_NCRISC_RESET_PC = 0x238
RISCV_DEBUG_REG_NCRISC_RESET_PC_OVERRIDE = 0x23C
RISCV_DEBUG_REG_DEST_CG_CTRL = 0x240

# NoC interface units (offsets from NOC0_BASE and NOC1_BASE; NIU Memory Map, Blackhole ISA)
NOC_SIZE = 0x10000
NOC_CMD_BUF_OFFSET = 0x800  # between the four request initiators
NOC_TARG_ADDR_LO = 0x00
NOC_RET_ADDR_LO = 0x0C
NOC_PACKET_TAG = 0x18
NOC_CTRL = 0x1C
NOC_BRCST_EXCLUDE = 0x2C
NOC_CMD_CTRL = 0x40
NOC_NODE_ID = 0x44
NOC_ENDPOINT_ID = 0x48
NOC_CLEAR_OUTSTANDING_REQ_CNT = 0x60
NIU_CFG_0 = 0x100
ROUTER_CFG_1 = 0x108
ROUTER_CFG_3 = 0x110
ROUTER_CFG_4 = 0x114
NOC_ID_LOGICAL = 0x148
NIU_COUNTERS = 0x200
NIU_MST_COUNTERS_END = 0x2C0  # from here on the NIU counts what others ask of it

SOFT_RESET_ALL = 0x47800
SOFT_RESET_BITS = (11, 12, 13, 14, 18)  # brisc, trisc0-2, ncrisc
RESET_PCS = (0x0, 0x6000, 0xA000, 0xE000, 0x12000)  # without override

REGISTERS = {
    name.removeprefix("RISCV_DEBUG_REG_"): DEBUG_BASE + value
    for name, value in list(globals().items())
    if name.startswith("RISCV_DEBUG_REG_")
}


class Inert(NamedTuple):
    """A register whose writes change nothing that bhemu models; reads give the last value."""

    name: str
    reason: str


INERT = {
    0xFFB11024: Inert("RISCV_TDMA_REG_CLK_GATE_EN", "clock gating has no functional effect"),
    0xFFB11028: Inert("RISCV_TDMA_REG_CLK_GATE_HYST", "clock gating has no functional effect"),
    0xFFB12070: Inert("RISCV_DEBUG_REG_CG_CTRL_HYST0", "clock gating has no functional effect"),
    0xFFB12074: Inert("RISCV_DEBUG_REG_CG_CTRL_HYST1", "clock gating has no functional effect"),
    0xFFB1207C: Inert("RISCV_DEBUG_REG_CG_CTRL_HYST2", "clock gating has no functional effect"),
    0xFFB12240: Inert("RISCV_DEBUG_REG_DEST_CG_CTRL", "clock gating has no functional effect"),
    0xFFB12244: Inert("RISCV_DEBUG_REG_CG_CTRL_EN", "clock gating has no functional effect"),
    0xFFB12248: Inert("RISCV_DEBUG_REG_CG_KICK", "clock gating has no functional effect"),
}

BLOCKS = (
    (0x0, L1_SIZE, "L1"),
    (LOCAL_BASE, LOCAL_BASE + 0x2000, "local data RAM"),
    (TDMA_BASE, TDMA_BASE + 0x1000, "TDMA-RISC"),
    (DEBUG_BASE, PIC_BASE, "tile control / debug / status"),
    (PIC_BASE, PIC_END, "PIC"),
    (PC_SNAPSHOT_BASE, PC_SNAPSHOT_END, "PC snapshot"),
    (LOCAL_SLOW_BASE, LOCAL_SLOW_END, "local data RAM, slow path"),
    (NOC0_BASE, NOC0_BASE + 0x10000, "NoC 0 NIU"),
    (NOC1_BASE, NOC1_BASE + 0x10000, "NoC 1 NIU"),
    (OVERLAY_BASE, OVERLAY_END, "overlay streams"),
    (MOP_CFG_BASE, MOP_CFG_END, "MOP expander configuration"),
    (DST_WINDOW_BASE, DST_WINDOW_END, "Dst window"),
    (GPR_BASE, GPR_END, "Tensix GPRs"),
    (INSTRN_BUF_BASE, INSTRN_BUF_END, "instruction push"),
    (PC_BUF_BASE, PC_BUF_END, "PCBuf, TTSync, semaphores"),
    (MAILBOX_BASE, MAILBOX_END, "mailboxes"),
    (TENSIX_CFG_BASE, TENSIX_CFG_END, "backend configuration"),
)


# Parts of the tile control block without a model (offsets from DEBUG_BASE)
UNMODELLED = (
    (0x000, 0x040, "performance counters"),
    (0x048, 0x054, "DBG_L1_MEM_REG0-2: debug daisy chain, writes to L1"),
    (0x054, 0x058, "DBG_BUS_CTRL: debug daisy chain"),
    (0x05C, 0x060, "DBG_RD_DATA: debug daisy chain"),
    (0x080, 0x090, "RISC_DBG_CNTL and STATUS: debug interface of the cores"),
    (0x0AC, 0x0B4, "masks of stochastic rounding"),
    (0x0B4, 0x0B8, "FPU_STICKY_BITS"),
    (0x0F0, 0x128, "performance counters"),
    (0x1D0, 0x1D8, "ECC control and status"),
    (0x1E0, 0x1EC, "watchdog"),
    (0x1FC, 0x218, "timestamp dump"),
    (0x218, 0x21C, "performance counters"),
    (0x21C, 0x224, "L1 readback offset and LFSR mask"),
)


def block_name(address: int) -> str:
    """Name of the block that holds `address`, with its part if that has no model; or "unmapped"."""
    for low, high, name in BLOCKS:
        if low <= address < high:
            at = address - DEBUG_BASE
            parts = [part for first, end, part in UNMODELLED if first <= at < end]
            return ": ".join([name, *parts])
    return "unmapped"
