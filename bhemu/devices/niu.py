"""The NoC interface units, 0xFFB20000 and 0xFFB30000: registers and counters, no transfers.

Request initiators, configuration and own coordinates are storage; the counters stay as they are,
because a store that starts a transfer is refused.  Source: NIU Memory Map and NIU Counters,
Blackhole ISA; power-up values as in ttsim.
"""

from functools import partial
from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import rules
from bhemu.devices.bus.window import WORD, Window
from bhemu.jit.subset import njit
from bhemu.tensix.quirks import refuse
from bhemu.tensix.state import State
from bhemu.tensix.status import DONE, UNIMPLEMENTED, error

TRANSFER = error(
    "NOC-TRANSFER",
    UNIMPLEMENTED,
    "the store to NOC_CMD_CTRL at {address:#010x} starts a NoC transfer, which is not modelled:"
    " NOC_CTRL {control:#x}, target address {target:#x}, return address {answer:#x}",
    "let the host write inputs into L1 and read outputs from it",
)

_COLUMNS, _ROWS = 17, 12
_X_FIRST = 1 << 28  # NOC_NODE_ID: NoC 0 routes along x first
_NO_TENSIX_COLUMNS, _NO_TENSIX_ROWS = 0x301, 0x3  # opted out of broadcasts
_TAG_MASK = 0xFFFF
_NONE = -1
_CONFIG = mm.NIU_CFG_0
_COUNTERS = mm.NIU_COUNTERS


def _power_up(noc: int, s: State, xy: tuple[int, int]) -> None:
    """What firmware finds: the tile's coordinates and the broadcast masks."""
    x, y = xy
    first = _X_FIRST if noc == 0 else 0
    at = (x, y) if noc == 0 else (_COLUMNS - 1 - x, _ROWS - 1 - y)
    s.niu_node[noc] = at[0] & 63 | (at[1] & 63) << 6 | _COLUMNS << 12 | _ROWS << 19 | first
    s.niu_config[noc, (mm.NOC_ID_LOGICAL - _CONFIG) >> 2] = x | y << 6
    s.niu_config[noc, (mm.ROUTER_CFG_1 - _CONFIG) >> 2] = _NO_TENSIX_COLUMNS
    s.niu_config[noc, (mm.ROUTER_CFG_3 - _CONFIG) >> 2] = _NO_TENSIX_ROWS


@njit
def _initiator(offset: Any) -> Any:
    """(initiator, byte offset within it); the initiator is _NONE outside of the four."""
    i = offset // mm.NOC_CMD_BUF_OFFSET
    return (i if i < 4 else np.int64(_NONE)), offset % mm.NOC_CMD_BUF_OFFSET


@njit
def _configuration(offset: Any) -> Any:
    """Index into niu_config of a register that is storage, or _NONE."""
    if _CONFIG <= offset <= mm.ROUTER_CFG_4 or offset == mm.NOC_ID_LOGICAL:
        return (offset - _CONFIG) >> 2
    return np.int64(_NONE)


@njit
def load(s: Any, noc: Any, offset: Any) -> Any:
    """Load the 32-bit register at `offset` of NoC 0 or 1."""
    i, at = _initiator(offset)
    index = _configuration(offset)
    if i != _NONE and at <= mm.NOC_BRCST_EXCLUDE:
        s.loaded[0] = s.niu_command[noc, i, at >> 2]
    elif i != _NONE and at == mm.NOC_CMD_CTRL:
        s.loaded[0] = 0
    elif i != _NONE and at == mm.NOC_NODE_ID:
        s.loaded[0] = s.niu_node[noc]
    elif _COUNTERS <= offset < mm.NIU_MST_COUNTERS_END:
        s.loaded[0] = s.niu_counter[noc, (offset - _COUNTERS) >> 2]
    elif index != _NONE:
        s.loaded[0] = s.niu_config[noc, index]
    elif offset == mm.NOC_CLEAR_OUTSTANDING_REQ_CNT:
        return rules.WRITE_ONLY
    else:
        return rules.NOT_MODELLED
    return DONE


@njit
def _command(s: Any, noc: Any, i: Any, offset: Any, value: Any) -> Any:
    """NOC_CMD_CTRL: the low bit starts a transfer."""
    if value & 1 == 0:
        return DONE
    registers = s.niu_command[noc, i]
    return refuse(
        s,
        TRANSFER,
        address=mm.NOC0_BASE + mm.NOC_SIZE * noc + offset,
        control=np.int64(registers[mm.NOC_CTRL >> 2]),
        target=np.int64(registers[mm.NOC_TARG_ADDR_LO >> 2]),
        answer=np.int64(registers[mm.NOC_RET_ADDR_LO >> 2]),
    )


@njit
def _outside(s: Any, noc: Any, offset: Any, value: Any) -> Any:
    """Store to what is no request initiator."""
    index = _configuration(offset)
    if index != _NONE:
        s.niu_config[noc, index] = np.uint32(value)
    elif offset == mm.NOC_CLEAR_OUTSTANDING_REQ_CNT:
        first = 16  # NIU_MST_REQS_OUTSTANDING_ID(0)
        for i in range(16):
            if (value >> i) & 1:
                s.niu_counter[noc, first + i] = np.uint32(0)
    else:
        counters = _COUNTERS <= offset < mm.NIU_MST_COUNTERS_END
        return rules.READ_ONLY if counters else rules.NOT_MODELLED
    return DONE


@njit
def store(s: Any, noc: Any, offset: Any, value: Any) -> Any:
    """Store the 32-bit register at `offset` of NoC 0 or 1."""
    i, at = _initiator(offset)
    if i != _NONE and at <= mm.NOC_BRCST_EXCLUDE:
        mask = _TAG_MASK if at == mm.NOC_PACKET_TAG else 0xFFFFFFFF
        s.niu_command[noc, i, at >> 2] = np.uint32(value & mask)
        return DONE
    if i != _NONE and at == mm.NOC_CMD_CTRL:
        return _command(s, noc, i, offset, value)
    if i != _NONE and (at == mm.NOC_NODE_ID or at == mm.NOC_ENDPOINT_ID):
        return rules.READ_ONLY
    return _outside(s, noc, offset, value)


def _window(noc: int, low: int) -> Window:
    return Window(
        *(f"NoC {noc} NIU", low, low + mm.NOC_SIZE, load, store),
        loads=WORD,
        given={"noc": noc},
        power_up=partial(_power_up, noc),
    )


NOC0, NOC1 = _window(0, mm.NOC0_BASE), _window(1, mm.NOC1_BASE)
