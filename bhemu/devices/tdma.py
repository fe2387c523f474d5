"""TDMA-RISC, 0xFFB11000: commands of brisc and the TRISCs to the mover (TDMA-RISC, Wormhole ISA).

A command is processed when it is stored, so the queue is always empty and the mover never busy.
The sideband data of packers and unpackers in the same block is refused by name.
"""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import code_pages
from bhemu.tensix.status import UB, UNIMPLEMENTED, error
from bhemu.tensix.units import mover
from bhemu.tensix.words import l1_words

COMMAND_ADDR = 0x10
STATUS = 0x14
CLK_GATE_EN, CLK_GATE_HYST = 0x24, 0x28
XMOV_L1_BASE_ADDR = 0x2C

# queue empty, parameter queue empty, four free entries in the queue
IDLE = 0x8 | 0x20 | 4 << 8
ELSEWHERE = np.int64(-1)  # a register of memmap.INERT

MOVE, WAIT, WRITE_L1, NOP = 0x40, 0x46, 0x66, 0x89  # opcodes: bits [7:0] of a command
COMPACT = 1 << 31
WRITE_FORM, WRITE_64 = 0x600, 0x100

COMMAND = error(
    "TDMA-COMMAND",
    UB,
    "TDMA-RISC command {0:#010x} is undefined",
    "0x40 (move), 0x46 (wait), 0x66 with bits 10:9 set (write L1) and 0x89 (nop) exist",
)
WRITE_ADDRESS = error(
    "TDMA-WRITE",
    UB,
    "TDMA-RISC command {0:#010x} writes {2} bytes to {1:#x}, which is no aligned place in L1",
    "parameter 0 (0xffb11000) is a byte address",
)
SIDEBAND = error(
    "TDMA-SIDEBAND",
    UNIMPLEMENTED,
    "the TDMA-RISC register at {0:#010x} is not modelled",
    "modelled are the mover's commands, status and base (offsets 0x00 to 0x14 and 0x2c)",
)


@njit
def _refuse(s: Any, rule: Any, first: Any, second: Any, third: Any) -> Any:
    s.detail[0], s.detail[1], s.detail[2] = first, second, third
    return rule


@njit
def kept(offset: Any) -> Any:
    """Bits that a clock gating register keeps, 0 for a register of another kind."""
    if offset == CLK_GATE_EN:
        return 0xFFFFFF7F
    if offset == CLK_GATE_HYST:
        return 0x01FF007F
    return 0


@njit
def _write_l1(s: Any, command: Any) -> Any:
    """32 or 64 bits from parameters 2 and 3 to the byte address in parameter 0."""
    if command & COMPACT or command & WRITE_FORM != WRITE_FORM:
        return _refuse(s, COMMAND, command, 0, 0)
    dst = np.int64(s.tdma_param[0])
    size = 8 if command & WRITE_64 else 4
    if dst >= L1_SIZE or dst & (size - 1):
        return _refuse(s, WRITE_ADDRESS, command, dst, size)
    l1_words(s)[dst >> 2] = s.tdma_param[2]
    if size == 8:
        l1_words(s)[(dst >> 2) + 1] = s.tdma_param[3]
    code_pages.written(s, dst, size)
    return 0


@njit
def _move(s: Any, c: Any, command: Any) -> Any:
    """A transfer: from the four parameters, or (compact) from the command itself."""
    if command & COMPACT:
        src = (np.int64(s.tdma_base[c]) + ((command >> 8) & 0xFF)) & 0xFFFFFFFF
        direction = mover.L1_TO_L1 if command & 1 << 30 else mover.L1_TO_L0
        return mover.move(s, (command >> 16) & 0xFF, src, (command >> 24) & 0x3F, direction)
    p = s.tdma_param
    return mover.move(s, np.int64(p[1]), np.int64(p[0]), np.int64(p[2]), np.int64(p[3]) & 3)


@njit
def _command(s: Any, c: Any, command: Any) -> Any:
    opcode = command & 0xFF
    if opcode == MOVE:
        return _move(s, c, command)
    if opcode == WRITE_L1:
        return _write_l1(s, command)
    if opcode == WAIT or opcode == NOP:
        return 0
    return _refuse(s, COMMAND, command, 0, 0)


@njit
def read(s: Any, c: Any, offset: Any) -> Any:
    """A register, or ELSEWHERE."""
    if c > 3:
        s.access[0] = rules.WRONG_CORE
    elif offset == STATUS:
        return np.int64(IDLE)
    elif offset == XMOV_L1_BASE_ADDR:
        return np.int64(s.tdma_base[c])
    elif kept(offset):
        return ELSEWHERE
    elif offset > STATUS:
        s.access[0] = SIDEBAND
    return np.int64(0)


@njit
def write(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Store to a register: True unless it is one of memmap.INERT."""
    if c > 3:
        s.access[0] = rules.WRONG_CORE
    elif offset < COMMAND_ADDR:
        s.tdma_param[offset >> 2] = np.uint32(value)
    elif offset == COMMAND_ADDR:
        s.access[0] = _command(s, c, value)
    elif offset == XMOV_L1_BASE_ADDR:
        s.tdma_base[c] = np.uint32(value)
    elif kept(offset):
        return False
    elif offset != STATUS:
        s.access[0] = SIDEBAND
    return True
