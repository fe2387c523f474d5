"""The scalar unit's MMIO window from 0xFFB11000, and the registers of the 64 NoC streams."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import call_access
from bhemu.jit.subset import njit
from bhemu.memmap import HOST, LOCAL_BASE, OVERLAY_BASE, OVERLAY_END, TDMA_BASE
from bhemu.tensix.rules import DONE, UB, UNIMPLEMENTED, UNSUPPORTED, error, refuse

# The NoC overlay's 64 streams: the registers that an idle stream offers as storage and counters.
#
# A stream register is 32 bits wide; register r of stream n is at 0xFFB40000 + 0x1000 * n + 4 * r.
# Widths and write effects: AsMMIORegisters page of the NoC overlay (ISA), confirmed by ttsim's
# overlay model for registers 4, 8, 10, 270 and 297.  Nothing here starts a stream or delivers a
# message to it, so no stream ever leaves the idle state; every other register is refused by name.

STREAMS_BASE, SIZE = OVERLAY_BASE, OVERLAY_END - OVERLAY_BASE
STREAMS, REGISTERS = 64, 1024

REMOTE_SRC = 4
REMOTE_SRC_PHASE = 5
REMOTE_DEST = 7
REMOTE_DEST_BUF_START = 8  # "tiles acked" of a circular buffer
REMOTE_DEST_BUF_SIZE = 10  # "tiles received"; a store also sets the space available
REMOTE_DEST_WR_PTR = 11
BUF_START = 17
BUF_SIZE = 18
RD_PTR = 19
WR_PTR = 20
CURR_PHASE_BASE = 28
CURR_PHASE = 29
PHASE_AUTO_CFG_PTR_BASE = 30
PHASE_AUTO_CFG_PTR = 31  # firmware's synchronization register
PHASE_AUTO_CFG_HEADER = 34
NUM_MSGS_RECEIVED = 259
REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE = 270
REMOTE_DEST_BUF_SPACE_AVAILABLE = 297

SRC_MASK = 0xFFFFFF
COUNT_MASK = 0x1FFFF  # 17 bits: addresses and sizes in 16-byte words
PHASE_MASK = 0xFFFFF  # 20 bits
DEST_MASK = 0x3FFFF  # 18 bits
HEADER_INCREMENT = 0xFFF  # bits of PHASE_AUTO_CFG_HEADER that are added to CURR_PHASE

UNKNOWN = error("STREAM-REGISTER", UNIMPLEMENTED, "register {register} of overlay stream {stream} (address {address:#010x}) is not modelled", "modelled are 4, 5, 7, 8, 10, 11, 17-20, 28-31, 34 (load, store), 270 (store), 259, 297 (load)")  # fmt: skip
WIDE_SRC = error("STREAM-REMOTE-SRC", UNSUPPORTED, "{value:#x} stored to REMOTE_SRC of overlay stream {stream} does not fit its 24 bits")  # fmt: skip
UPDATE_LOW = error("STREAM-SPACE-UPDATE", UNSUPPORTED, "{value:#x} stored to the space update of overlay stream {stream}: bits 5:0 must be 0", "the number of words to add stands in bits 31:6")  # fmt: skip
READ_ONLY = error("STREAM-READ-ONLY", UB, "{value:#x} stored to the read-only register {register} of overlay stream {stream}")  # fmt: skip


@njit
def _unknown(s: Any, stream: Any, register: Any) -> Any:
    address = STREAMS_BASE + 0x1000 * stream + 4 * register
    return refuse(s, UNKNOWN, stream=stream, register=register, address=address)


# Bits that a register keeps of what is stored to it, 0 for those with another rule.
_KEPT = {
    REMOTE_DEST: DEST_MASK,
    **dict.fromkeys((CURR_PHASE_BASE, CURR_PHASE, REMOTE_SRC_PHASE), PHASE_MASK),
    **dict.fromkeys((REMOTE_DEST_BUF_START, REMOTE_DEST_BUF_SIZE, REMOTE_DEST_WR_PTR), COUNT_MASK),
    **dict.fromkeys((BUF_START, BUF_SIZE, RD_PTR, WR_PTR), COUNT_MASK),
    **dict.fromkeys((PHASE_AUTO_CFG_PTR_BASE, PHASE_AUTO_CFG_PTR), COUNT_MASK),
}
_MASKS = np.array([_KEPT.get(register, 0) for register in range(REGISTERS)], np.int64)


@njit
def _base(s: Any, row: Any, register: Any) -> Any:
    """What is added to a register on stores and subtracted on loads."""
    if register == CURR_PHASE or register == REMOTE_SRC_PHASE:
        return np.int64(s.stream[row, CURR_PHASE_BASE])
    if register == PHASE_AUTO_CFG_PTR:
        return np.int64(s.stream[row, PHASE_AUTO_CFG_PTR_BASE])
    return np.int64(0)


@njit
def phase(s: Any, stream: Any) -> Any:
    """CURR_PHASE of `stream` (0-63) as a load gives it, 20 bits."""
    row = stream & 63
    value = np.int64(s.stream[row, CURR_PHASE]) - _base(s, row, CURR_PHASE)
    return value & PHASE_MASK


@njit
def messages(s: Any, stream: Any) -> Any:
    """NUM_MSGS_RECEIVED of `stream` (0-63): messages in its queue, none in an idle stream."""
    return np.int64(s.stream[stream & 63, NUM_MSGS_RECEIVED])


@njit
def stream_read(s: Any, stream: Any, register: Any) -> Any:
    """Load `register` (0-1023) of `stream` (0-63) into `s.loaded`; DONE or the error number."""
    row = stream & 63
    value = np.int64(s.stream[row, register & 1023])
    mask = _MASKS[register & 1023]
    if mask:
        s.loaded[0] = (value - _base(s, row, register)) & mask
        return DONE
    s.loaded[0] = value
    if register == REMOTE_SRC or register == PHASE_AUTO_CFG_HEADER:
        return DONE
    if register == REMOTE_DEST_BUF_SPACE_AVAILABLE or register == NUM_MSGS_RECEIVED:
        return DONE
    return _unknown(s, stream, register)


@njit
def stream_write(s: Any, stream: Any, register: Any, value: Any) -> Any:
    """Store the 32-bit `value` to `register` (0-1023) of `stream` (0-63); DONE or error number."""
    row = stream & 63
    mask = _MASKS[register & 1023]
    if mask:
        # Store to a register with a mask, and to those that follow it
        s.stream[row, register] = np.uint32((value + _base(s, row, register)) & mask)
        if register == REMOTE_DEST_BUF_START:
            s.stream[row, REMOTE_DEST_WR_PTR] = np.uint32(0)
        elif register == REMOTE_DEST_BUF_SIZE:
            s.stream[row, REMOTE_DEST_BUF_SPACE_AVAILABLE] = np.uint32(value & mask)
        elif register == BUF_START:
            s.stream[row, RD_PTR] = s.stream[row, WR_PTR] = np.uint32(0)
    elif register == REMOTE_SRC:
        if value & ~SRC_MASK:
            return refuse(s, WIDE_SRC, stream=stream, value=value)
        s.stream[row, REMOTE_SRC] = np.uint32(value)
    elif register == PHASE_AUTO_CFG_HEADER:
        total = np.int64(s.stream[row, CURR_PHASE]) + (value & HEADER_INCREMENT)
        s.stream[row, CURR_PHASE] = np.uint32(total & PHASE_MASK)
        s.stream[row, PHASE_AUTO_CFG_HEADER] = np.uint32(value & ~HEADER_INCREMENT & 0xFFFFFFFF)
    elif register == REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE:
        if value & 0x3F:
            return refuse(s, UPDATE_LOW, stream=stream, value=value)
        total = np.int64(s.stream[row, REMOTE_DEST_BUF_SPACE_AVAILABLE]) + (value >> 6)
        s.stream[row, REMOTE_DEST_BUF_SPACE_AVAILABLE] = np.uint32(total & COUNT_MASK)
    elif register == REMOTE_DEST_BUF_SPACE_AVAILABLE or register == NUM_MSGS_RECEIVED:
        return refuse(s, READ_ONLY, stream=stream, register=register, value=value)
    else:
        return _unknown(s, stream, register)
    return DONE


# The MMIO window of the scalar unit: 0xFFB11000 to 0xFFBFFFFF, as the NoC sees the tile.
#
# The memory map gives the Tensix coprocessor what it gives the NoC, so the device bus answers as
# for the host: TDMA-RISC, MOP configuration and the Dst window are not mapped (BabyRISCV,
# Blackhole ISA).

BASE = LOCAL_BASE
FIRST = TDMA_BASE  # below it is core-local memory, out of reach

LOW = error("THCON-MMIO-LOW", UB, "address {address:#010x} is below 0xffb11000, out of reach of the scalar unit", "reg_addr of STOREREG and LOADREG is (address - 0xffb00000) / 4")  # fmt: skip
WAITS = error("THCON-MMIO-WAITS", UNIMPLEMENTED, "the load from {address:#010x} by the scalar unit would have to wait, which is not modelled", "let a RISC-V core load it")  # fmt: skip


@njit
def _bus(s: Any, pointer: Any, address: Any, value: Any) -> Any:
    """Status of one access of the device bus."""
    host, size = np.int64(HOST), np.int64(4)
    return call_access(pointer, s, host, np.int64(address), size, np.int64(value))


@njit
def load(s: Any, address: Any) -> Any:
    """Load the 32-bit register at `address` into `s.loaded`; DONE or the error number."""
    if address < FIRST:
        return np.int64(refuse(s, LOW, address=address))
    at = address - STREAMS_BASE
    if 0 <= at < SIZE:
        return np.int64(stream_read(s, at >> 12, (at & 0xFFF) >> 2))
    status = _bus(s, s.bus_read[0], address, 0)
    return np.int64(refuse(s, WAITS, address=address)) if status > DONE else status


@njit
def store(s: Any, address: Any, value: Any) -> Any:
    """Store the 32-bit `value` to the register at `address`; DONE or the error number."""
    if address < FIRST:
        return np.int64(refuse(s, LOW, address=address))
    at = address - STREAMS_BASE
    if 0 <= at < SIZE:
        return np.int64(stream_write(s, at >> 12, (at & 0xFFF) >> 2, value))
    return _bus(s, s.bus_write[0], address, value)
