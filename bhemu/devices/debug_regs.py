"""Debug and control registers of the tile, snapshots of program counters."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import cfg_window, debug_port, perf_counters, rules
from bhemu.devices.bus.window import KEPT, Effect, Register, Window, inert, not_modelled
from bhemu.devices.rules import access_error
from bhemu.jit.subset import njit
from bhemu.memmap import PC_SNAPSHOT_BASE, PC_SNAPSHOT_END
from bhemu.tensix.dest import HALVES
from bhemu.tensix.frontend import put, queued
from bhemu.tensix.rules import DONE, NCB, UB, UNIMPLEMENTED, error, follows_llk, note_rule, refuse
from bhemu.tensix.state import CFG0_RESET, FIFO_DEPTH, LOCAL_SIZE, RESET, RUNNING, THREADS, State

# Debug access to the instruction FIFOs: INSTRN_BUF_CTRL0, CTRL1 and STATUS, 0xFFB120A0.
#
# Source: PushTensixInstruction, "Debug registers", Blackhole ISA.  bhemu has one FIFO per thread,
# which stands for those before the MOP and the Replay expander.

CONTROLLED = access_error("PUSH-DEBUG", UB, "push to {address:#010x} while the debug bus controls the FIFO: the word is likely to be lost", "clear the thread's bit of INSTRN_BUF_CTRL0 first")  # fmt: skip
FULL = access_error("PUSH-DEBUG-FULL", UB, "INSTRN_BUF_CTRL0 = {value:#x} pushes on a FIFO that is full", "wait until INSTRN_BUF_STATUS shows room")  # fmt: skip

_CTRL0, _CTRL1 = mm.RISCV_DEBUG_REG_INSTRN_BUF_CTRL0, mm.RISCV_DEBUG_REG_INSTRN_BUF_CTRL1
_PUSH = 4  # first push bit
_AFTER_MOP = 0  # as a word from brisc
_KEPT = 0xFF


@njit
def controlled(s: Any, t: Any) -> Any:
    """True while the debug bus has control of the FIFO of thread `t`."""
    return (np.int64(s.debug[_CTRL0 >> 2]) >> t) & 1 != 0


@njit
def load_status(s: Any) -> Any:
    """INSTRN_BUF_STATUS: bit t = not full, bit 4 + t = empty."""
    status = np.int64(0)
    for t in range(THREADS):
        if queued(s, t) < FIFO_DEPTH:
            status |= 1 << t
        if queued(s, t) == 0 and s.mop_on[t] == 0:
            status |= 16 << t
    s.loaded[0] = status
    return DONE


@njit
def store_control(s: Any, value: Any) -> Any:
    """INSTRN_BUF_CTRL0: a push bit that rises puts CTRL1 on the FIFO of a controlled thread."""
    rising = value & ~np.int64(s.debug[_CTRL0 >> 2]) & (value << _PUSH)
    for t in range(THREADS):
        if (rising >> (_PUSH + t)) & 1 and queued(s, t) >= FIFO_DEPTH:
            return FULL
    for t in range(THREADS):
        if (rising >> (_PUSH + t)) & 1:
            put(s, t, np.int64(_AFTER_MOP), s.debug[_CTRL1 >> 2], np.uint32(0))
    s.debug[_CTRL0 >> 2] = np.uint32(value & _KEPT)
    return DONE


# Tile control, debug and status registers, 0xFFB12000.

_PREFIX = "RISCV_DEBUG_REG_"

ARRAY = error("DEBUG-ARRAY", UNIMPLEMENTED, "the debug array port is read with array {array}, select {select}, row {row}, or while it is not enabled", "DBG_ARRAY_RD_EN must be 1, the array 2 (Dst), select 0 to 7, row 0 to 1023")  # fmt: skip
PACKER_RESET = error("DEBUG-PACKER-RESET", NCB, "{value:#x} stored to SOFT_RESET_0 resets packers: what one holds beside its counters and configuration while it is idle is not modelled, so nothing changes")  # fmt: skip
_ARRAY_EN = mm.RISCV_DEBUG_REG_DBG_ARRAY_RD_EN >> 2  # indices into the words of the block
_ARRAY_CMD = mm.RISCV_DEBUG_REG_DBG_ARRAY_RD_CMD >> 2
_CLOCK_HIGH = mm.RISCV_DEBUG_REG_WALL_CLOCK_1 >> 2
_FEATURE_DISABLE = mm.RISCV_DEBUG_REG_DBG_FEATURE_DISABLE >> 2
_CONFIG_INDEX = mm.RISCV_DEBUG_REG_CFGREG_RD_CNTL >> 2
_SOFT_RESET = mm.RISCV_DEBUG_REG_SOFT_RESET_0 >> 2
_DISABLE_RESET = mm.RISCV_DEBUG_REG_DISABLE_RESET >> 2
_TRISC_RESET_PC = mm.RISCV_DEBUG_REG_TRISC0_RESET_PC >> 2
_TRISC_OVERRIDE = mm.RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE >> 2
_NCRISC_RESET_PC = mm.RISCV_DEBUG_REG_NCRISC_RESET_PC >> 2
_NCRISC_OVERRIDE = mm.RISCV_DEBUG_REG_NCRISC_RESET_PC_OVERRIDE >> 2
_DST = 2
_PACKERS = 0x3C  # bits of SOFT_RESET_0
_KEEP_LOCAL = (6, 0, 2, 4, 8)  # bits of DISABLE_RESET: brisc, trisc0-2, ncrisc


@njit
def now(s: Any, c: Any) -> Any:
    """The clock as core `c` sees it: all turns so far plus the instructions of the open turn.

    The scalar unit reads as the host does, within a core's turn: it must not see time run back.
    """
    if s.turn_open[0] == 0:
        return s.clock[0]
    c = s.core[0]
    return s.clock[0] + s.turn_given[0] - s.left[c] + s.fuel_given[c] - s.fuel[c]


@njit
def _load_clock(s: Any, c: Any) -> Any:
    """The low half; latches the high half."""
    clock = now(s, c)
    s.debug[_CLOCK_HIGH] = np.uint32((clock >> 32) & 0xFFFFFFFF)
    s.loaded[0] = clock & 0xFFFFFFFF
    return DONE


@njit
def _load_clock_high(s: Any, c: Any) -> Any:
    """The high half as it is now."""
    s.loaded[0] = (now(s, c) >> 32) & 0xFFFFFFFF
    return DONE


@njit
def _load_array(s: Any) -> Any:
    """Two raw Dst cells, columns 2*select and 2*select+1; ignores the row's zero flag."""
    command = np.int64(s.debug[_ARRAY_CMD])
    array, select, row = command >> 16, (command >> 12) & 0xF, command & 0xFFF
    if s.debug[_ARRAY_EN] != np.uint32(1) or array != _DST or select > 7 or row > 1023:
        return refuse(s, ARRAY, array=array, select=select, row=row)
    column = 2 * select
    s.loaded[0] = np.int64(s.dst[row, column]) | (np.int64(s.dst[row, column + 1]) << 16)
    return DONE


@njit
def _store_feature_disable(s: Any, value: Any) -> Any:
    """Bit 11 changes what 16-bit Dst is (dest.py); other bits are refused."""
    if value & ~HALVES:
        return rules.FIELD
    s.debug[_FEATURE_DISABLE] = np.uint32(value)
    return DONE


@njit
def _load_config(s: Any) -> Any:
    """The configuration word whose index CFGREG_RD_CNTL holds."""
    return cfg_window.load_word(s, np.int64(s.debug[_CONFIG_INDEX]) & 0x7FF)


def reset_pc(s: Any, c: int) -> Any:
    """Where core `c` (0-4) starts: the override register where enabled, else the fixed address."""
    if 1 <= c <= 3 and (s.debug[_TRISC_OVERRIDE] >> (c - 1)) & 1:
        return np.int64(s.debug[_TRISC_RESET_PC + c - 1])
    if c == 4 and s.debug[_NCRISC_OVERRIDE] & 1:
        return np.int64(s.debug[_NCRISC_RESET_PC])
    return np.int64(mm.RESET_PCS[c])


_reset_pc = njit(reset_pc)


@njit
def release(s: Any, c: Any, pc: Any) -> None:
    """Core `c` starts at `pc`."""
    s.core_state[c] = RUNNING
    s.core_wait[c] = 0
    s.pc[c] = np.uint32(pc)
    s.cfg0[c] = CFG0_RESET
    s.fresh[c] = s.flush[c] = 1
    if 1 <= c <= 3:
        s.pcbuf_read[c - 1] = s.pcbuf_write[c - 1]


@njit
def _store_soft_reset(s: Any, value: Any) -> Any:
    """SOFT_RESET_0: holds and releases the five cores; other units are refused by name.

    tt-llk's dumps reset a packer, with nothing else in reset: with reference llk that is noted.
    """
    others = value & 0x7FFFFFFF & ~mm.SOFT_RESET_ALL
    if others & ~_PACKERS or (others and not follows_llk(s)):
        return rules.FIELD
    if others:
        note_rule(s, PACKER_RESET, value=value)
    before = np.int64(s.debug[_SOFT_RESET])
    s.debug[_SOFT_RESET] = np.uint32(value & (mm.SOFT_RESET_ALL | _PACKERS))
    for c in range(len(mm.SOFT_RESET_BITS)):
        bit = 1 << mm.SOFT_RESET_BITS[c]
        if (value ^ before) & bit:
            if value & bit:
                # Words that the core pushed and that no thread took are dropped.
                s.core_state[c] = RESET
                s.attention[0] |= 1
                debug_port.clear(s, c)
                if (np.int64(s.debug[_DISABLE_RESET]) >> _KEEP_LOCAL[c]) & 1 == 0:
                    for i in range(LOCAL_SIZE):
                        s.local[c, i] = np.uint8(0)
                if 1 <= c <= 3:
                    s.fifo_read[c - 1] = s.fifo_write[c - 1]
                if c <= 3:
                    for n in range(4):
                        s.mailbox_read[c, n] = s.mailbox_write[c, n]
            else:
                release(s, c, _reset_pc(s, c))
    return DONE


def _power_up(s: State, xy: tuple[int, int]) -> None:
    """All cores are in reset."""
    s.debug[_SOFT_RESET] = mm.SOFT_RESET_ALL


_GATING = "clock gating has no functional effect"


def _register(name: str, *ways: Any, effect: Effect = Effect.NONE) -> Register:
    """A register that memmap names."""
    return Register(_PREFIX + name, getattr(mm, _PREFIX + name), *ways, effect=effect)


WINDOW = Window(
    *("tile control / debug / status", mm.DEBUG_BASE, mm.PIC_BASE),
    storage="debug",
    registers=(
        *perf_counters.REGISTERS,
        *debug_port.DEBUG_BUS_REGISTERS,
        _register("CFGREG_RD_CNTL"),
        _register("DBG_ARRAY_RD_EN", None),
        _register("DBG_ARRAY_RD_CMD", None),
        _register("DBG_FEATURE_DISABLE", KEPT, _store_feature_disable),
        _register("DBG_ARRAY_RD_DATA", _load_array, None),
        inert(_PREFIX + "CG_CTRL_HYST0", 0x070, _GATING),
        inert(_PREFIX + "CG_CTRL_HYST1", 0x074, _GATING),
        _register("CFGREG_RDDATA", _load_config, None),
        inert(_PREFIX + "CG_CTRL_HYST2", 0x07C, _GATING),
        *debug_port.REGISTERS,
        _register("TRISC_PC_BUF_OVERRIDE"),
        _register("INSTRN_BUF_CTRL0", KEPT, store_control),
        _register("INSTRN_BUF_CTRL1"),
        _register("INSTRN_BUF_STATUS", load_status, None),
        not_modelled("masks of stochastic rounding", 0x0AC, 0x0B4),
        not_modelled("FPU_STICKY_BITS", 0x0B4, 0x0B8),
        _register("SOFT_RESET_0", KEPT, _store_soft_reset),
        not_modelled("ECC control and status", 0x1D0, 0x1D8),
        not_modelled("watchdog", 0x1E0, 0x1EC),
        _register("WALL_CLOCK_0", _load_clock, _load_clock, effect=Effect.CLOCK),
        _register("WALL_CLOCK_1_LIVE", _load_clock_high, None, effect=Effect.CLOCK),
        _register("WALL_CLOCK_1", KEPT, None, effect=Effect.CLOCK),
        not_modelled("timestamp dump", 0x1FC, 0x218),
        not_modelled("L1 readback offset and LFSR mask", 0x21C, 0x224),
        _register("DISABLE_RESET"),
        _register("TRISC0_RESET_PC"),
        _register("TRISC1_RESET_PC"),
        _register("TRISC2_RESET_PC"),
        _register("TRISC_RESET_PC_OVERRIDE"),
        _register("NCRISC_RESET_PC"),
        _register("NCRISC_RESET_PC_OVERRIDE"),
        inert(_PREFIX + "DEST_CG_CTRL", 0x240, _GATING),
        inert(_PREFIX + "CG_CTRL_EN", 0x244, _GATING),
        inert(_PREFIX + "CG_KICK", 0x248, _GATING),
    ),
    power_up=_power_up,
)


# The program counters of the five cores, 0xFFB13138, read only.

ORDER = (0, 4, 1, 2, 3)  # of slots: brisc, ncrisc, trisc0, trisc1, trisc2


@njit
def load(s: Any, offset: Any) -> Any:
    """Load the pc of a core."""
    s.loaded[0] = s.pc[ORDER[offset >> 2]]
    return DONE


PC_SNAPSHOT_WINDOW = Window(
    *("PC snapshot", PC_SNAPSHOT_BASE, PC_SNAPSHOT_END, load),
    load_effect=Effect.VARIES,
)
