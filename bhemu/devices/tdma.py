"""TDMA-RISC, 0xFFB11000: commands of brisc and the TRISCs to the mover (TDMA-RISC, Wormhole ISA).

A command is processed when it is stored, so the queue is always empty and the mover never busy.
The sideband data of packers and unpackers in the same block is refused by name.
"""

from typing import Any

import numpy as np

from bhemu.devices.bus.window import DROPPED, TENSIX_CORES, TRACKED_TDMA, Register, Window, inert
from bhemu.devices.rules import access_error
from bhemu.jit.later import Later
from bhemu.jit.subset import njit
from bhemu.memmap import DEBUG_BASE, L1_SIZE, TDMA_BASE
from bhemu.tensix import config, state
from bhemu.tensix.rules import DONE, UB, UNIMPLEMENTED, error, refuse
from bhemu.tensix.state import l1_words

mover = Later("bhemu.tensix.units.cfg")

# queue empty, parameter queue empty, four free entries in the queue
IDLE = 0x8 | 0x20 | 4 << 8
GATING = "clock gating has no functional effect"

MOVE, WAIT, WRITE_L1, NOP = 0x40, 0x46, 0x66, 0x89  # opcodes: bits [7:0] of a command
COMPACT = 1 << 31
WRITE_FORM, WRITE_64 = 0x600, 0x100

COMMAND = error("TDMA-COMMAND", UB, "TDMA-RISC command {command:#010x} is undefined", "0x40 (move), 0x46 (wait), 0x66 with bits 10:9 set (write L1) and 0x89 (nop) exist")  # fmt: skip
WRITE_ADDRESS = error("TDMA-WRITE", UB, "TDMA-RISC command {command:#010x} writes {size} bytes to {place:#x}, which is no aligned place in L1", "parameter 0 (0xffb11000) is a byte address")  # fmt: skip
SIDEBAND = access_error("TDMA-SIDEBAND", UNIMPLEMENTED, "the TDMA-RISC register at {address:#010x} is not modelled", "modelled are the mover's commands, status and base (offsets 0x00 to 0x14 and 0x2c)")  # fmt: skip


@njit
def _command(s: Any, c: Any, value: Any) -> Any:
    """Process a command that core `c` stores."""
    opcode = value & 0xFF
    if opcode == MOVE:
        # A transfer: from the four parameters, or (compact) from the command itself
        agent = config.by_core(s, c)
        if value & COMPACT:
            src = (np.int64(s.tdma_base[c]) + ((value >> 8) & 0xFF)) & 0xFFFFFFFF
            direction = mover.L1_TO_L1 if value & 1 << 30 else mover.L1_TO_L0
            return mover.move(s, (value >> 16) & 0xFF, src, (value >> 24) & 0x3F, direction, agent)
        p = s.tdma_param
        return mover.move(
            s, np.int64(p[1]), np.int64(p[0]), np.int64(p[2]), np.int64(p[3]) & 3, agent
        )
    if opcode == WRITE_L1:
        # 32 or 64 bits from parameters 2 and 3 to the byte address in parameter 0
        if value & COMPACT or value & WRITE_FORM != WRITE_FORM:
            return refuse(s, COMMAND, command=value)
        dst = np.int64(s.tdma_param[0])
        size = 8 if value & WRITE_64 else 4
        if dst >= L1_SIZE or dst & (size - 1):
            return refuse(s, WRITE_ADDRESS, command=value, size=size, place=dst)
        l1_words(s)[dst >> 2] = s.tdma_param[2]
        if size == 8:
            l1_words(s)[(dst >> 2) + 1] = s.tdma_param[3]
        state.written(s, dst, size)
        return 0
    if opcode == WAIT or opcode == NOP:
        return DONE
    return refuse(s, COMMAND, command=value)


_NAME, _PARAMETER = "RISCV_TDMA_REG_", "tdma_param[offset >> 2]"
WINDOW = Window(
    *("TDMA-RISC", TDMA_BASE, DEBUG_BASE),
    registers=(
        # Parameters and commands cannot be read back.
        Register(f"{_NAME}XMOV_SRC_ADDR", 0x00, 0, place=_PARAMETER),
        Register(f"{_NAME}XMOV_DST_ADDR", 0x04, 0, place=_PARAMETER),
        Register(f"{_NAME}XMOV_SIZE", 0x08, 0, place=_PARAMETER),
        Register(f"{_NAME}XMOV_DIRECTION", 0x0C, 0, place=_PARAMETER),
        Register(f"{_NAME}COMMAND_ADDR", 0x10, 0, _command),
        Register(f"{_NAME}STATUS", 0x14, IDLE, DROPPED),
        inert(f"{_NAME}CLK_GATE_EN", 0x24, GATING, mask=0xFFFFFF7F),
        inert(f"{_NAME}CLK_GATE_HYST", 0x28, GATING, mask=0x01FF007F),
        Register(f"{_NAME}XMOV_L1_BASE_ADDR", 0x2C, place="tdma_base[c]"),
    ),
    agents=TENSIX_CORES,
    order=TRACKED_TDMA,
    unknown=SIDEBAND,
)
