"""The NoC interface units, 0xFFB20000 and 0xFFB30000: registers and counters.

Request initiators are storage until a store to NOC_CMD_CTRL sends a request (niu_issue.py); without
a chip that is refused.  Source: NIU Memory Map and NIU Counters, Blackhole ISA; power-up values as
in ttsim.
"""

from functools import partial
from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu_issue, noc_map, rules
from bhemu.devices import niu_rules as noc_rules
from bhemu.devices.bus.window import WORD, Window
from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE, refuse
from bhemu.tensix.state import State

_X_FIRST = 1 << 28  # NOC_NODE_ID: NoC 0 routes along x first
_NO_TENSIX_COLUMNS, _NO_TENSIX_ROWS = 0x301, 0x3  # opted out of broadcasts
_TAG_MASK = 0xFFFF
_NONE = -1
_CONFIG, _ROUTER_CONFIG = mm.NIU_CFG_0, mm.NIU_CFG_0 + 4
_COUNTERS = mm.NIU_COUNTERS
_GAP = 0x14C  # no register
_CLOCK_OFF, _REQUEST_FIFO = 1 << 12, 1 << 16  # of NIU_CFG_0; bits 13 and 15 do nothing in this tile
_CFG_0_RESERVED, _ROUTER_CFG_0_RESERVED = 0xFFE, 0x7FFFE  # to be kept; firmware sets bit 0
_READ_ZERO = (mm.NOC_L1_ACC_AT_INSTRN, mm.NOC_SEC_CTRL, mm.NOC_CMD_CTRL)
_TENSIX_TYPE = 0x0100 << 8


def _power_up(noc: int, s: State, xy: tuple[int, int]) -> None:
    """What firmware finds: the tile's coordinates and the broadcast masks."""
    x, y = xy
    at, first = noc_map.on_noc(noc, xy), _X_FIRST if noc == 0 else 0
    size = noc_map.WIDTH << 12 | noc_map.HEIGHT << 19
    s.niu_node[noc] = at[0] & 63 | (at[1] & 63) << 6 | size | first
    # A tile may be put where no chip has one: it is number 0 then.
    on_chip = x in noc_map.COLUMNS and y in noc_map.ROWS
    number = noc_map.tile_number(x, y) if on_chip else 0
    s.niu_endpoint[noc] = number | _TENSIX_TYPE | noc << 24
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
    if _CONFIG <= offset <= mm.NIU_TRANS_COUNT_RTZ_CFG and offset != _GAP:
        return (offset - _CONFIG) >> 2
    return np.int64(_NONE)


@njit
def _first_zeroed(s: Any, noc: Any) -> Any:
    """NIU_TRANS_COUNT_RTZ_NUM: the lowest id whose outstanding count fell to 0, as noted."""
    for i in range(16):
        if (np.int64(s.niu_zeroed[noc]) >> i) & 1:
            return np.int64(i)
    return np.int64(0)


@njit
def _load_common(s: Any, noc: Any, offset: Any) -> Any:
    """Load what is no request initiator."""
    index = _configuration(offset)
    if _COUNTERS <= offset < mm.NIU_COUNTERS_END:
        s.loaded[0] = s.niu_counter[noc, (offset - _COUNTERS) >> 2]
    elif index != _NONE:
        s.loaded[0] = s.niu_config[noc, index]
    elif offset == mm.NIU_TRANS_COUNT_RTZ_CLR:
        s.loaded[0] = 0
    elif offset == mm.NIU_TRANS_COUNT_RTZ_SOURCE:
        s.loaded[0] = s.niu_zeroed[noc]
    elif offset == mm.NIU_TRANS_COUNT_RTZ_NUM:
        s.loaded[0] = _first_zeroed(s, noc)
    elif offset == mm.NOC_CLEAR_OUTSTANDING_REQ_CNT:
        return rules.WRITE_ONLY
    else:
        return rules.NOT_MODELLED
    return DONE


@njit
def load(s: Any, noc: Any, offset: Any) -> Any:
    """Load the 32-bit register at `offset` of NoC 0 or 1."""
    i, at = _initiator(offset)
    if i != _NONE and at <= mm.NOC_BRCST_EXCLUDE:
        s.loaded[0] = s.niu_command[noc, i, at >> 2]
    elif i != _NONE and at <= mm.NOC_CMD_CTRL and at in _READ_ZERO:
        s.loaded[0] = 0
    elif i != _NONE and at == mm.NOC_NODE_ID:
        s.loaded[0] = s.niu_node[noc]
    elif i != _NONE and at == mm.NOC_ENDPOINT_ID:
        s.loaded[0] = s.niu_endpoint[noc]
    else:
        return _load_common(s, noc, offset)
    return DONE


@njit
def _refused(s: Any, noc: Any, offset: Any, value: Any) -> Any:
    """A store to NIU_CFG_0 or ROUTER_CFG_0: DONE, or why it is refused."""
    if offset == _CONFIG and value & _CLOCK_OFF:
        return np.int64(refuse(s, noc_rules.CLOCK, value=value))
    if offset == _CONFIG and value & _REQUEST_FIFO:
        return np.int64(refuse(s, noc_rules.REQUEST_FIFO, value=value))
    kept = np.int64(_CFG_0_RESERVED if offset == _CONFIG else _ROUTER_CFG_0_RESERVED)
    bits = (value ^ np.int64(s.niu_config[noc, (offset - _CONFIG) >> 2])) & kept
    if bits:
        return np.int64(refuse(s, noc_rules.CFG_RESERVED, value=value, offset=offset, bits=bits))
    return np.int64(DONE)


@njit
def _store_configuration(s: Any, noc: Any, offset: Any, index: Any, value: Any) -> Any:
    """Store to a configuration register: the translation is the chip firmware's."""
    table = mm.NOC_X_ID_TRANSLATE_TABLE_0 <= offset < mm.NOC_ID_LOGICAL
    if mm.NOC_ID_TRANSLATE_COL_MASK <= offset <= mm.DDR_COORD_TRANSLATE_COL_SWAP:
        table = True
    if table and s.noc_map[0] != 0 and value != np.int64(s.niu_config[noc, index]):
        return np.int64(refuse(s, noc_rules.TABLES, value=value, offset=offset))
    if offset == mm.NIU_TRANS_COUNT_RTZ_CFG and value & 0xFFFF:
        return np.int64(refuse(s, noc_rules.INTERRUPT, value=value))
    if offset == _CONFIG or offset == _ROUTER_CONFIG:
        status = _refused(s, noc, offset, value)
        if status != DONE:
            return status
    if offset != mm.DEBUG_COUNTER_RESET:
        s.niu_config[noc, index] = np.uint32(value)
    return np.int64(DONE)


@njit
def _store_common(s: Any, noc: Any, offset: Any, value: Any) -> Any:
    """Store to what is no request initiator."""
    index = _configuration(offset)
    if index != _NONE:
        return _store_configuration(s, noc, offset, index, value)
    if offset == mm.NOC_CLEAR_OUTSTANDING_REQ_CNT:
        for i in range(16):
            if (value >> i) & 1:
                s.niu_counter[noc, niu_issue.OUTSTANDING + i] = np.uint32(0)
        return np.int64(DONE)
    if offset == mm.NIU_TRANS_COUNT_RTZ_CLR:
        s.niu_zeroed[noc] = np.uint32(np.int64(s.niu_zeroed[noc]) & ~value)
        return np.int64(DONE)
    counters = _COUNTERS <= offset < mm.NIU_COUNTERS_END
    zeroed = mm.NIU_TRANS_COUNT_RTZ_NUM <= offset <= mm.NIU_TRANS_COUNT_RTZ_SOURCE
    return np.int64(rules.READ_ONLY if counters or zeroed else rules.NOT_MODELLED)


@njit
def store(s: Any, c: Any, noc: Any, offset: Any, value: Any) -> Any:
    """Store the 32-bit register at `offset` of NoC 0 or 1."""
    i, at = _initiator(offset)
    if i != _NONE and at <= mm.NOC_BRCST_EXCLUDE:
        mask = _TAG_MASK if at == mm.NOC_PACKET_TAG else 0xFFFFFFFF
        s.niu_command[noc, i, at >> 2] = np.uint32(value & mask)
        return np.int64(DONE)
    if i != _NONE and at == mm.NOC_CMD_CTRL:
        return niu_issue.issue(s, c, noc, i) if value & 1 else np.int64(DONE)
    if i != _NONE and (at == mm.NOC_L1_ACC_AT_INSTRN or at == mm.NOC_SEC_CTRL):
        return np.int64(rules.FIELD if value else DONE)
    if i != _NONE and (at == mm.NOC_NODE_ID or at == mm.NOC_ENDPOINT_ID):
        return np.int64(rules.READ_ONLY)
    return _store_common(s, noc, offset, value)


def _window(noc: int, low: int) -> Window:
    return Window(
        *(f"NoC {noc} NIU", low, low + mm.NOC_SIZE, load, store),
        loads=WORD,
        given={"noc": noc},
        power_up=partial(_power_up, noc),
    )


NOC0, NOC1 = _window(0, mm.NOC0_BASE), _window(1, mm.NOC1_BASE)
