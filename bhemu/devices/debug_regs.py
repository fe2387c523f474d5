"""Tile control, debug and status registers, 0xFFB12000.

Polled registers (wall clock, Dst array port) are compiled; what is written a few times per program
(resets, reset PCs, config read port) lives in Python.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import instruction_debug, rules
from bhemu.errors import Internal
from bhemu.jit.subset import njit
from bhemu.tensix.dest import HALVES
from bhemu.tensix.state import CFG0_RESET, RESET, RUNNING, State
from bhemu.tensix.status import UNIMPLEMENTED, error

ARRAY = error(
    "DEBUG-ARRAY",
    UNIMPLEMENTED,
    "the debug array port is read with array {1}, select {2}, row {3}, or while it is not enabled",
    "DBG_ARRAY_RD_EN must be 1, the array 2 (Dst), select 0 to 7, row 0 to 1023",
)
_ARRAY_EN = mm.RISCV_DEBUG_REG_DBG_ARRAY_RD_EN
_ARRAY_CMD = mm.RISCV_DEBUG_REG_DBG_ARRAY_RD_CMD
_ARRAY_DATA = mm.RISCV_DEBUG_REG_DBG_ARRAY_RD_DATA
_CLOCK_LOW = mm.RISCV_DEBUG_REG_WALL_CLOCK_0
_CLOCK_LIVE = mm.RISCV_DEBUG_REG_WALL_CLOCK_1_LIVE
_CLOCK_HIGH = mm.RISCV_DEBUG_REG_WALL_CLOCK_1
_DST = 2
_KEEP_LOCAL = (6, 0, 2, 4, 8)  # bits of DISABLE_RESET: brisc, trisc0-2, ncrisc
ELSEWHERE = 1 << 40  # the register is one of those in Python


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
def _array_data(s: Any) -> Any:
    """Two raw Dst cells, columns 2*select and 2*select+1; ignores the row's zero flag."""
    command = np.int64(s.debug[_ARRAY_CMD >> 2])
    array, select, row = command >> 16, (command >> 12) & 0xF, command & 0xFFF
    if s.debug[_ARRAY_EN >> 2] != np.uint32(1) or array != _DST or select > 7 or row > 1023:
        s.access[0] = ARRAY
        s.detail[1], s.detail[2], s.detail[3] = array, select, row
        return np.int64(0)
    column = 2 * select
    return np.int64(s.dst[row, column]) | (np.int64(s.dst[row, column + 1]) << 16)


@njit
def read(s: Any, c: Any, offset: Any) -> Any:
    """A compiled register, or ELSEWHERE."""
    if instruction_debug.ours(offset):
        return instruction_debug.read(s, offset)
    if offset == _ARRAY_DATA:
        return _array_data(s)
    if offset == _CLOCK_LOW:
        clock = now(s, c)
        s.debug[_CLOCK_HIGH >> 2] = np.uint32((clock >> 32) & 0xFFFFFFFF)
        return clock & 0xFFFFFFFF
    if offset == _CLOCK_LIVE:
        return (now(s, c) >> 32) & 0xFFFFFFFF
    if offset == _CLOCK_HIGH:
        return np.int64(s.debug[_CLOCK_HIGH >> 2])
    return np.int64(ELSEWHERE)


@njit
def write(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Store to a compiled register: True when it was one."""
    if offset == _ARRAY_CMD or offset == _ARRAY_EN:
        s.debug[offset >> 2] = np.uint32(value)
    elif instruction_debug.ours(offset):
        instruction_debug.write(s, offset, value)
    elif offset == _CLOCK_LOW:
        read(s, c, offset)  # a store latches the high half like a load
    elif offset == _CLOCK_HIGH or offset == _CLOCK_LIVE:
        s.access[0] = rules.READ_ONLY
    else:
        return False
    return True


class Refused(Exception):  # noqa: N818 - not an error of a run by itself
    """An access that a Python device refuses: `status` is a rule number (devices/rules.py)."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Register:
    """Plain storage in `s.debug`, readable and writable."""

    def __init__(self, s: State, offset: int) -> None:
        self._s, self._base = s, offset

    def read(self, core: int, offset: int, size: int) -> int:
        """The last value stored."""
        return int(self._s.debug[(self._base + offset) >> 2])

    def write(self, core: int, offset: int, size: int, value: int) -> None:
        """Store."""
        self._s.debug[(self._base + offset) >> 2] = value

    def reset(self) -> None:
        """The record is reset elsewhere."""

    def state(self) -> object:
        """Everything is in the record."""
        return None

    def load_state(self, state: object) -> None:
        """Nothing to take back."""
        if state is not None:
            raise Internal("a debug register has no state of its own")


class FeatureDisable(Register):
    """DBG_FEATURE_DISABLE: bit 11 changes what 16-bit Dst is (dest.py); other bits are refused."""

    def write(self, core: int, offset: int, size: int, value: int) -> None:
        """Bit 11 takes effect at once."""
        if value & ~HALVES:
            raise Refused(rules.FIELD)
        super().write(core, offset, size, value)


class ConfigPort(Register):
    """CFGREG_RDDATA: the configuration word whose index CFGREG_RD_CNTL holds."""

    def read(self, core: int, offset: int, size: int) -> int:
        """Config, dual-write space and ThreadConfig as one array of words."""
        s = self._s
        index = int(s.debug[mm.RISCV_DEBUG_REG_CFGREG_RD_CNTL >> 2]) & 0x7FF
        banks, words = s.cfg.shape
        if index < 3 * words:
            return int(s.cfg[index // words % banks, index % words])
        index -= 3 * words
        if index < s.thread_cfg.size:
            return int(s.thread_cfg.reshape(-1)[index])
        raise Refused(rules.UNMAPPED)

    def write(self, core: int, offset: int, size: int, value: int) -> None:
        """Read only."""
        raise Refused(rules.READ_ONLY)


def reset_pc(s: State, c: int) -> int:
    """Where core `c` (0-4) starts: the override register where enabled, else the fixed address."""
    word = s.debug
    if 1 <= c <= 3 and word[mm.RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE >> 2] >> (c - 1) & 1:
        return int(word[(mm.RISCV_DEBUG_REG_TRISC0_RESET_PC >> 2) + c - 1])
    if c == 4 and word[mm.RISCV_DEBUG_REG_NCRISC_RESET_PC_OVERRIDE >> 2] & 1:
        return int(word[mm.RISCV_DEBUG_REG_NCRISC_RESET_PC >> 2])
    return mm.RESET_PCS[c]


class SoftReset(Register):
    """SOFT_RESET_0: holds and releases the five cores; other units are refused by name."""

    def write(self, core: int, offset: int, size: int, value: int) -> None:
        """Apply the changed core bits."""
        if value & 0x7FFFFFFF & ~mm.SOFT_RESET_ALL:
            raise Refused(rules.FIELD)
        before = super().read(core, offset, size)
        super().write(core, offset, size, value & mm.SOFT_RESET_ALL)
        for c, bit in enumerate(mm.SOFT_RESET_BITS):
            held = (value >> bit) & 1
            if held != (before >> bit) & 1:
                if held:
                    self._hold(c)
                else:
                    self._release(c)

    def _release(self, c: int) -> None:
        s = self._s
        s.core_state[c] = RUNNING
        s.core_wait[c] = 0
        s.pc[c] = reset_pc(s, c)
        s.cfg0[c] = CFG0_RESET
        s.fresh[c] = s.flush[c] = 1
        if 1 <= c <= 3:
            s.pcbuf_read[c - 1] = s.pcbuf_write[c - 1]

    def _hold(self, c: int) -> None:
        """Words that the core pushed and nobody took are dropped."""
        s = self._s
        s.core_state[c] = RESET
        s.attention[0] |= 1
        if not int(s.debug[mm.RISCV_DEBUG_REG_DISABLE_RESET >> 2]) >> _KEEP_LOCAL[c] & 1:
            s.local[c] = 0
        if 1 <= c <= 3:
            s.fifo_read[c - 1] = s.fifo_write[c - 1]
        if c <= 3:
            s.mailbox_read[c] = s.mailbox_write[c]


def windows(s: State) -> list[tuple[int, int, str, Register]]:
    """(address, size, name, device) of the registers in Python."""
    plain = (
        (mm.RISCV_DEBUG_REG_CFGREG_RD_CNTL, 4, "CFGREG_RD_CNTL", Register),
        (mm.RISCV_DEBUG_REG_DBG_FEATURE_DISABLE, 4, "DBG_FEATURE_DISABLE", FeatureDisable),
        (mm.RISCV_DEBUG_REG_CFGREG_RDDATA, 4, "CFGREG_RDDATA", ConfigPort),
        (mm.RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE, 4, "TRISC_PC_BUF_OVERRIDE", Register),
        (mm.RISCV_DEBUG_REG_SOFT_RESET_0, 4, "SOFT_RESET_0", SoftReset),
        (mm.RISCV_DEBUG_REG_DISABLE_RESET, 4, "DISABLE_RESET", Register),
        (mm.RISCV_DEBUG_REG_TRISC0_RESET_PC, 0x18, "RESET_PC registers", Register),
    )
    return [(mm.DEBUG_BASE + at, size, name, kind(s, at)) for at, size, name, kind in plain]
