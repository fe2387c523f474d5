"""Debug and control registers, performance counters, slow path to local memories, inert ones."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import debug_port, registers
from bhemu.devices.bus import window
from bhemu.devices.bus.window import access_error
from bhemu.jit.subset import njit
from bhemu.tensix import mmio, state
from bhemu.tensix.dest import HALVES
from bhemu.tensix.frontend import put, queued
from bhemu.tensix.in_flight import MATRIX, VECTOR
from bhemu.tensix.rules import DONE, NCB, UB, UNIMPLEMENTED, error, follows_llk, note_rule, refuse

# The performance counters, 0xFFB12000: in modelled time they count what the model counts.
#
# Each of the five banks has a reference period, a mode and a control register, of which bit 0
# starts (and clears) and bit 1 stops, where it rises; PERF_CNT_ALL does so for FPU and
# INSTRN_THREAD. The low output holds the cycles, the high one the event that the mode register
# selects (tt-metal: tt_metal/tt-llk/tools/include/perf_counters/hw.h,
# docs/tests/perf_counters.md). Without modelled times they can be configured and stopped, as
# firmware does at boot, not started or read.


START, STOP = 1, 2

COUNTING = access_error("PERF-COUNTERS", UNIMPLEMENTED, "{value:#x} stored to {address:#010x} starts performance counters, which count in modelled time only, in mode 0", 'timing = "model" has them; else time is measured with RISCV_DEBUG_REG_WALL_CLOCK_0')  # fmt: skip
VALUE = access_error("PERF-VALUE", UNIMPLEMENTED, "the load of {address:#010x} reads a performance counter that is not modelled", "in modelled time: the cycles of each bank; FPU 0 (matrix unit) and 1 (vector unit), INSTRN_THREAD 256 (words of T0)")  # fmt: skip

_PREFIX = "RISCV_DEBUG_REG_"
_BANKS = ("INSTRN_THREAD", "TDMA_UNPACK", "FPU", "L1_", "TDMA_PACK")
_THREAD, _FPU = _BANKS.index("INSTRN_THREAD"), _BANKS.index("FPU")
_OUTPUTS = ("INSTRN_THREAD", "TDMA_UNPACK", "TDMA_PACK", "L1_", "FPU")  # their order from 0x100 on
_FIRST: tuple[int, ...] = tuple(getattr(mm, f"{_PREFIX}PERF_CNT_{name}0") for name in _BANKS)
_ALL = mm.RISCV_DEBUG_REG_PERF_CNT_ALL
_OF_OUTPUT = tuple(_BANKS.index(name) for name in _OUTPUTS)
_OUT = 0x100
_CYCLES, _MATRIX_WORKS, _VECTOR_WORKS, _WORDS = range(4)  # events; the words of the threads follow
_SELECT, _MODE = 8, 0xFF  # counter_sel begins at bit 8 of the mode register
_THREAD_WORDS = 256


@njit
def _event(s: Any, event: Any) -> Any:
    """How often something has happened so far."""
    if event == _CYCLES:
        return s.clock[0]
    if event == _MATRIX_WORKS:
        return s.unit_cycles[MATRIX]
    if event == _VECTOR_WORKS:
        return s.unit_cycles[VECTOR]
    return s.executed[event - _WORDS]


@njit
def _store_control(s: Any, offset: Any, value: Any) -> Any:
    """A control register, of one bank or of two."""
    if value & ~(START | STOP):
        return window.FIELD
    rising = value & ~np.int64(s.debug[offset >> 2])
    for bank in range(len(_FIRST)):
        named = offset == _FIRST[bank] + 8 or (offset == _ALL and (bank == _FPU or bank == _THREAD))
        mode = np.int64(s.debug[(_FIRST[bank] + 4) >> 2]) & _MODE
        if named and value & START and (s.timed[0] != state.MODELLED or mode != 0):
            return COUNTING
    s.debug[offset >> 2] = np.uint32(value)
    for bank in range(len(_FIRST)):
        if offset == _FIRST[bank] + 8 or (offset == _ALL and (bank == _FPU or bank == _THREAD)):
            if rising & STOP and s.perf_on[bank]:
                s.perf_on[bank] = 0
                for i in range(state.PERF_EVENTS):
                    s.perf_taken[bank, i] = _event(s, np.int64(i)) - s.perf_since[bank, i]
            if rising & START:
                s.perf_on[bank] = 1
                for i in range(state.PERF_EVENTS):
                    s.perf_since[bank, i] = _event(s, np.int64(i))
    return DONE


@njit
def _load_value(s: Any, offset: Any) -> Any:
    """An output of a bank: cycles, or the selected event."""
    bank, event = np.int64(_OF_OUTPUT[(offset - _OUT) >> 3]), np.int64(_CYCLES)
    if offset & 4:  # what the mode register of the bank selects; -1: it is not modelled
        select, event = np.int64(s.debug[(_FIRST[bank] + 4) >> 2]) >> _SELECT, np.int64(-1)
        if bank == _FPU and select <= 1:
            event = np.int64(_MATRIX_WORKS) + select
        elif bank == _THREAD and select == _THREAD_WORDS:
            event = np.int64(_WORDS)
    if s.timed[0] != state.MODELLED or event < 0:
        return VALUE
    count = s.perf_taken[bank, event]
    if s.perf_on[bank]:
        count = _event(s, event) - s.perf_since[bank, event]
    s.loaded[0] = count & 0xFFFFFFFF
    return DONE


def _bank(name: str) -> tuple[window.Register, ...]:
    """Reference period, mode and control of a bank, and its outputs."""
    first = _FIRST[_BANKS.index(name)]
    ways = (window.KEPT, window.KEPT, _store_control)
    out, shown = _OUT + 8 * _OUTPUTS.index(name), name.replace("L1_", "DBG_L1")
    clock = window.Effect.CLOCK
    return (
        *(
            window.Register(f"{_PREFIX}PERF_CNT_{name}{i}", first + 4 * i, window.KEPT, way)
            for i, way in enumerate(ways)
        ),
        window.Register(f"{_PREFIX}PERF_CNT_OUT_L_{shown}", out, _load_value, None, effect=clock),
        window.Register(
            f"{_PREFIX}PERF_CNT_OUT_H_{shown}", out + 4, _load_value, None, effect=clock
        ),
    )


REGISTERS = (
    *(register for name in _BANKS for register in _bank(name)),
    window.debug_register("PERF_CNT_ALL", window.KEPT, _store_control),
    window.debug_register("PERF_CNT_MUX_CTRL"),
)


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
    for t in range(state.THREADS):
        if queued(s, t) < state.FIFO_DEPTH:
            status |= 1 << t
        if queued(s, t) == 0 and s.mop_on[t] == 0:
            status |= 16 << t
    s.loaded[0] = status
    return DONE


@njit
def store_control(s: Any, value: Any) -> Any:
    """INSTRN_BUF_CTRL0: a push bit that rises puts CTRL1 on the FIFO of a controlled thread."""
    rising = value & ~np.int64(s.debug[_CTRL0 >> 2]) & (value << _PUSH)
    for t in range(state.THREADS):
        if (rising >> (_PUSH + t)) & 1 and queued(s, t) >= state.FIFO_DEPTH:
            return FULL
    for t in range(state.THREADS):
        if (rising >> (_PUSH + t)) & 1:
            put(s, t, np.int64(_AFTER_MOP), s.debug[_CTRL1 >> 2], np.uint32(0))
    s.debug[_CTRL0 >> 2] = np.uint32(value & _KEPT)
    return DONE


# Tile control, debug and status registers, 0xFFB12000.


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
def now(s: Any) -> Any:
    """The clock as a core sees it: all turns so far plus the instructions of the open turn.

    The scalar unit and the host read it within a core's turn, too: the time must not go backwards.
    """
    if s.turn_open[0] == 0:
        return s.clock[0]
    c = s.core[0]
    return s.clock[0] + s.turn_given[0] - s.left[c] + s.fuel_given[c] - s.fuel[c]


@njit
def _load_clock(s: Any) -> Any:
    """The low half; latches the high half."""
    clock = now(s)
    s.debug[_CLOCK_HIGH] = np.uint32((clock >> 32) & 0xFFFFFFFF)
    s.loaded[0] = clock & 0xFFFFFFFF
    return DONE


@njit
def _load_clock_high(s: Any) -> Any:
    """The high half as it is now."""
    s.loaded[0] = (now(s) >> 32) & 0xFFFFFFFF
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
        return window.FIELD
    s.debug[_FEATURE_DISABLE] = np.uint32(value)
    return DONE


@njit
def _load_config(s: Any) -> Any:
    """The configuration word whose index CFGREG_RD_CNTL holds."""
    return registers.load_word(s, np.int64(s.debug[_CONFIG_INDEX]) & 0x7FF)


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
    s.core_state[c] = state.RUNNING
    s.core_wait[c] = 0
    s.pc[c] = np.uint32(pc)
    s.cfg0[c] = state.CFG0_RESET
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
        return window.FIELD
    if others:
        note_rule(s, PACKER_RESET, value=value)
    before = np.int64(s.debug[_SOFT_RESET])
    s.debug[_SOFT_RESET] = np.uint32(value & (mm.SOFT_RESET_ALL | _PACKERS))
    for c in range(len(mm.SOFT_RESET_BITS)):
        bit = 1 << mm.SOFT_RESET_BITS[c]
        if (value ^ before) & bit:
            if value & bit:
                # Words that the core pushed and that no thread took are dropped.
                s.core_state[c] = state.RESET
                s.attention[0] |= 1
                debug_port.clear(s, c)
                if (np.int64(s.debug[_DISABLE_RESET]) >> _KEEP_LOCAL[c]) & 1 == 0:
                    s.local[c, :] = np.uint8(0)
                if 1 <= c <= 3:
                    s.fifo_read[c - 1] = s.fifo_write[c - 1]
                if c <= 3:
                    for n in range(4):
                        s.mailbox_read[c, n] = s.mailbox_write[c, n]
            else:
                release(s, c, _reset_pc(s, c))
    return DONE


def _power_up(s: state.State, xy: tuple[int, int]) -> None:
    """All cores are in reset."""
    s.debug[_SOFT_RESET] = mm.SOFT_RESET_ALL


_GATING = registers.GATING


WINDOW = window.Window(
    *("tile control / debug / status", mm.DEBUG_BASE, mm.PIC_BASE),
    storage="debug",
    registers=(
        *REGISTERS,
        *debug_port.DEBUG_BUS_REGISTERS,
        window.debug_register("CFGREG_RD_CNTL"),
        window.debug_register("DBG_ARRAY_RD_EN", None),
        window.debug_register("DBG_ARRAY_RD_CMD", None),
        window.debug_register("DBG_FEATURE_DISABLE", window.KEPT, _store_feature_disable),
        window.debug_register("DBG_ARRAY_RD_DATA", _load_array, None),
        window.inert(_PREFIX + "CG_CTRL_HYST0", 0x070, _GATING),
        window.inert(_PREFIX + "CG_CTRL_HYST1", 0x074, _GATING),
        window.debug_register("CFGREG_RDDATA", _load_config, None),
        window.inert(_PREFIX + "CG_CTRL_HYST2", 0x07C, _GATING),
        *debug_port.REGISTERS,
        window.debug_register("TRISC_PC_BUF_OVERRIDE"),
        window.debug_register("INSTRN_BUF_CTRL0", window.KEPT, store_control),
        window.debug_register("INSTRN_BUF_CTRL1"),
        window.debug_register("INSTRN_BUF_STATUS", load_status, None),
        window.not_modelled("masks of stochastic rounding", 0x0AC, 0x0B4),
        window.not_modelled("FPU_STICKY_BITS", 0x0B4, 0x0B8),
        window.debug_register("SOFT_RESET_0", window.KEPT, _store_soft_reset),
        window.not_modelled("ECC control and status", 0x1D0, 0x1D8),
        window.not_modelled("watchdog", 0x1E0, 0x1EC),
        window.debug_register("WALL_CLOCK_0", _load_clock, _load_clock, effect=window.Effect.CLOCK),
        window.debug_register(
            "WALL_CLOCK_1_LIVE", _load_clock_high, None, effect=window.Effect.CLOCK
        ),
        window.debug_register("WALL_CLOCK_1", window.KEPT, None, effect=window.Effect.CLOCK),
        window.not_modelled("timestamp dump", 0x1FC, 0x218),
        window.not_modelled("L1 readback offset and LFSR mask", 0x21C, 0x224),
        window.debug_register("DISABLE_RESET"),
        *(window.debug_register(f"TRISC{i}_RESET_PC") for i in range(3)),
        window.debug_register("TRISC_RESET_PC_OVERRIDE"),
        window.debug_register("NCRISC_RESET_PC"),
        window.debug_register("NCRISC_RESET_PC_OVERRIDE"),
        window.inert(_PREFIX + "DEST_CG_CTRL", 0x240, _GATING),
        window.inert(_PREFIX + "CG_CTRL_EN", 0x244, _GATING),
        window.inert(_PREFIX + "CG_KICK", 0x248, _GATING),
    ),
    power_up=_power_up,
)


# The program counters of the five cores, 0xFFB13138, read only.

ORDER = (0, 4, 1, 2, 3)  # of slots: brisc, ncrisc, trisc0, trisc1, trisc2


@njit
def load_pc_snapshot(s: Any, offset: Any) -> Any:
    """Load the pc of a core."""
    s.loaded[0] = s.pc[ORDER[offset >> 2]]
    return DONE


PC_SNAPSHOT_WINDOW = window.Window(
    *("PC snapshot", mm.PC_SNAPSHOT_BASE, mm.PC_SNAPSHOT_END, load_pc_snapshot),
    load_effect=window.Effect.VARIES,
)


# The slow path to the cores' local memories, 0xFFB14000: every core and the host sees all five.


_SIZES = tuple(mm.LOCAL_SIZES[core] for core in ORDER)


@njit
def _core_of(offset: Any) -> Any:
    """The core whose memory it is, or -1."""
    slot = offset >> 13
    return np.int64(ORDER[slot] if (offset & 0x1FFF) < _SIZES[slot] else -1)


@njit
def local_load(s: Any, offset: Any) -> Any:
    """Load the aligned word at `offset`."""
    core = _core_of(offset)
    if core < 0:
        return window.UNMAPPED
    s.loaded[0] = s.local[core].view(np.uint32)[(offset & 0x1FFF) >> 2]
    return DONE


@njit
def local_store(s: Any, offset: Any, size: Any, value: Any) -> Any:
    """Store 1, 2 or 4 bytes."""
    core = _core_of(offset)
    if core < 0:
        return window.UNMAPPED
    for i in range(size):
        s.local[core, (offset & 0x1FFF) + i] = np.uint8((value >> (8 * i)) & 0xFF)
    return DONE


LOCAL_WINDOW = window.Window(
    *("local data RAM, slow path", mm.LOCAL_SLOW_BASE, mm.LOCAL_SLOW_END, local_load, local_store),
    stores=window.ANY | window.BY_BYTES,
    load_effect=window.Effect.CHANGES,  # a core may be storing there
)


# Registers that change nothing bhemu models: plain storage, counted, shown in the run summary.


@njit
def inert_load(s: Any, i: Any) -> Any:
    """Load inert register `i` (in the order of their addresses)."""
    s.inert_count[i] += 1
    s.loaded[0] = s.inert[i]
    return DONE


@njit
def inert_store(s: Any, i: Any, value: Any) -> Any:
    """Store to inert register `i` the bits that it keeps."""
    s.inert_count[i] += 1
    s.inert[i] = np.uint32(value)
    return DONE


# The registers of the NoC overlay's 64 streams, 0xFFB40000 (tensix/mmio.py).


@njit
def overlay_load(s: Any, offset: Any) -> Any:
    """Load a register of a stream."""
    return mmio.stream_read(s, offset // mm.STREAM_SIZE, offset % mm.STREAM_SIZE >> 2)


@njit
def overlay_store(s: Any, offset: Any, value: Any) -> Any:
    """Store a register of a stream."""
    return mmio.stream_write(s, offset // mm.STREAM_SIZE, offset % mm.STREAM_SIZE >> 2, value)


OVERLAY_WINDOW = window.Window(
    *("overlay streams", mm.OVERLAY_BASE, mm.OVERLAY_END, overlay_load, overlay_store),
    loads=window.WORD,
)


# The interrupt controller, 0xFFB13000: refused by name.

PIC_WINDOW = window.Window("PIC", mm.PIC_BASE, mm.PIC_END)
