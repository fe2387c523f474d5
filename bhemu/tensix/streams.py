"""The NoC overlay's 64 streams: the five stream registers that firmware uses as counters.

A stream register is 32 bits wide; register r of stream n is at 0xFFB40000 + 0x1000 * n + 4 * r.
The widths are those of ttsim's overlay model; every other register is refused by name.
"""

from typing import Any

import numpy as np

from bhemu.tensix.status import DONE, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit

BASE, SIZE = 0xFFB40000, 0x40000
STREAMS, REGISTERS = 64, 1024

REMOTE_SRC = 0x010 // 4
REMOTE_DEST_BUF_START = 0x020 // 4  # "tiles acked" of a circular buffer
REMOTE_DEST_BUF_SIZE = 0x028 // 4  # "tiles received"; a store also sets the space available
REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE = 0x438 // 4
REMOTE_DEST_BUF_SPACE_AVAILABLE = 0x4A4 // 4

LOADABLE = (
    REMOTE_SRC,
    REMOTE_DEST_BUF_START,
    REMOTE_DEST_BUF_SIZE,
    REMOTE_DEST_BUF_SPACE_AVAILABLE,
)

SRC_MASK = 0xFFFFFF
COUNT_MASK = 0x1FFFF

UNKNOWN = error(
    "STREAM-REGISTER",
    UNIMPLEMENTED,
    "register {1} of overlay stream {0} (address {2:#010x}) is not modelled",
    "modelled are 4, 8, 10 (load, store), 270 (store) and 297 (load)",
)
WIDE_SRC = error(
    "STREAM-REMOTE-SRC",
    UNSUPPORTED,
    "{3:#x} stored to REMOTE_SRC of overlay stream {0} does not fit its 24 bits",
)
UPDATE_LOW = error(
    "STREAM-SPACE-UPDATE",
    UNSUPPORTED,
    "{3:#x} stored to the space update of overlay stream {0}: bits 5:0 must be 0",
    "the number of words to add stands in bits 31:6",
)


@njit
def _refuse(s: Any, rule: Any, stream: Any, register: Any, value: Any) -> Any:
    s.detail[0], s.detail[1] = stream, register
    s.detail[2] = BASE + 0x1000 * stream + 4 * register
    s.detail[3] = value
    return rule


@njit
def stream_read(s: Any, stream: Any, register: Any) -> Any:
    """Value of `register` (0-1023) of `stream` (0-63), 0 to 2**32 - 1; negative: error number."""
    if register in LOADABLE:
        return np.int64(s.stream[stream & 63, register])
    return np.int64(_refuse(s, UNKNOWN, stream, register, 0))


@njit
def stream_write(s: Any, stream: Any, register: Any, value: Any) -> Any:
    """Store the 32-bit `value` to `register` (0-1023) of `stream` (0-63); DONE or error number."""
    row = stream & 63
    if register == REMOTE_SRC:
        if value & ~SRC_MASK:
            return _refuse(s, WIDE_SRC, stream, register, value)
        s.stream[row, REMOTE_SRC] = np.uint32(value)
    elif register == REMOTE_DEST_BUF_START:
        s.stream[row, REMOTE_DEST_BUF_START] = np.uint32(value & COUNT_MASK)
    elif register == REMOTE_DEST_BUF_SIZE:
        s.stream[row, REMOTE_DEST_BUF_SIZE] = np.uint32(value & COUNT_MASK)
        s.stream[row, REMOTE_DEST_BUF_SPACE_AVAILABLE] = np.uint32(value & COUNT_MASK)
    elif register == REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE:
        if value & 0x3F:
            return _refuse(s, UPDATE_LOW, stream, register, value)
        total = np.int64(s.stream[row, REMOTE_DEST_BUF_SPACE_AVAILABLE]) + (value >> 6)
        s.stream[row, REMOTE_DEST_BUF_SPACE_AVAILABLE] = np.uint32(total & COUNT_MASK)
    else:
        return _refuse(s, UNKNOWN, stream, register, value)
    return DONE
