"""The NIUs' registers: counters, and the requests that a core issues."""

from functools import partial
from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu_check, noc_map
from bhemu.devices import niu_request as request
from bhemu.devices.bus import window
from bhemu.devices.bus.window import WORD, Window
from bhemu.jit.intrinsics import move
from bhemu.jit.subset import njit
from bhemu.tensix import state
from bhemu.tensix.rules import DONE, LOOK, note_rule, refuse

# The store to NOC_CMD_CTRL: a request is checked whole, takes its data and goes under way.
#
# It is delivered at the end of the round (noc/delivery.py). Source of the counters: NIU Counters,
# Blackhole ISA.

# Counters, by index from 0x200 (NIU_MST_*, from 48 on NIU_SLV_*)
ATOMIC_ANSWERS, ACKS, READ_ANSWERS, READ_WORDS, ACCEPTED, READS_SENT = range(6)
ATOMICS_SENT, WRITE_WORDS, WRITES_SENT, WRITES_STARTED = 6, 8, 10, 12  # then the posted ones
READS_STARTED, ATOMICS_STARTED, OUTSTANDING, OUTGOING = 14, 15, 16, 32
SENT_ATOMIC_ANSWERS, SENT_ACKS, SENT_READ_ANSWERS, SENT_READ_WORDS = range(48, 52)
REQUESTS, READS, ATOMICS, RECEIVED_WORDS, WRITES, WRITES_BEGUN = 52, 53, 54, 56, 58, 60
_FLIT = 64
_DATA = state.OFFSET["noc_data"]
TO_LEAVE = 1  # `noc_source` of a write whose bytes are still to be taken, with no time for it yet


@njit
def add(s: Any, noc: Any, counter: Any, n: Any) -> None:
    """Change a counter of 32 bits."""
    total = np.int64(s.niu_counter[noc, counter]) + n
    s.niu_counter[noc, counter] = np.uint32(total & 0xFFFFFFFF)


@njit
def add_outstanding(s: Any, noc: Any, row: Any, n: Any) -> None:
    """Change the count of outstanding requests of the row's id, 8 bits."""
    i = request.transaction(row)
    before = np.int64(s.niu_counter[noc, OUTSTANDING + i])
    after = (before + n) & 0xFF
    s.niu_counter[noc, OUTSTANDING + i] = np.uint32(after)
    if before and after == 0:
        s.niu_zeroed[noc] = np.uint32(np.int64(s.niu_zeroed[noc]) | 1 << i)


@njit
def flits(n: Any) -> Any:
    """Data flits of `n` bytes."""
    return (n + _FLIT - 1) // _FLIT


@njit
def _count(s: Any, row: Any) -> None:
    """What the own NIU counts as a request leaves."""
    noc, control = row[request.NOC], row[request.CONTROL]
    answered = request.is_answered(control)
    posted = np.int64(0 if answered else 1)
    add(s, noc, ACCEPTED, np.int64(1))
    if answered:
        add_outstanding(s, noc, row, np.int64(1))
    if request.kind(control) == request.READ:
        add(s, noc, READS_STARTED, np.int64(1))
        add(s, noc, READS_SENT, np.int64(1))
    elif request.kind(control) == request.ATOMIC:
        if answered:
            add(s, noc, ATOMICS_STARTED, np.int64(1))
        add(s, noc, ATOMICS_SENT + posted, np.int64(1))
    else:
        add(s, noc, WRITES_STARTED + posted, np.int64(1))
        if not request.takes_data(control):
            add(s, noc, WRITES_SENT + posted, np.int64(1))


@njit
def _note(s: Any, row: Any) -> None:
    """Where the golden model's way is taken, and silicon has another."""
    control, given = row[request.CONTROL], row[request.GIVEN]
    if request.kind(control) == request.ATOMIC and not request.is_answered(control):
        note_rule(s, niu_check.POSTED_ATOMIC)
    at = row[request.RECTANGLE]
    if not request.is_multicast(control):
        at = noc_map.place(row[request.ENDPOINT])
    else:
        at = (at & 0xFFF) << 12 | at >> 12
    if at != given & (0xFFFFFF if request.is_multicast(control) else 0xFFF):
        note_rule(s, niu_check.WRITE_BACK, given=given, initiator=row[request.INITIATOR])


@njit
def _add_outgoing(s: Any, row: Any, n: Any) -> None:
    """Change the count of writes of the row's id that still read their source, 8 bits."""
    i = OUTGOING + request.transaction(row)
    total = np.int64(s.niu_counter[row[request.NOC], i]) + n
    s.niu_counter[row[request.NOC], i] = np.uint32(total & 0xFF)


@njit
def take_source(s: Any, i: Any) -> None:
    """Request `i` under way takes the bytes of its source: it counts as sent.

    Source: NIU Counters. The count of requests sent grows before the last byte is read, the one of
    writes that are outgoing falls afterwards. Kernels reuse the source after either, so both are
    one moment here.
    """
    row = s.noc_request[i]
    control, n, at = row[request.CONTROL], request.size(row), row[request.LOCAL]
    if request.has_enables(control) and not niu_check.is_register(row):
        at &= ~15
    base = np.int64(s.host[0])
    move(base + _DATA + row[request.DATA], base + at, n)
    if s.timed[0] == state.DRAWN and row[request.CORE] < state.CORES:
        # Bytes that late stores of its core have still to change go as they were.
        c, before = row[request.CORE], np.int64(1) << 62
        # The last one first: what the first of them found counts.
        for _ in range(state.STORE_QUEUE):
            last = np.int64(-1)
            for k in range(state.STORE_QUEUE):
                size = s.store_size[c, k]
                if size < before and (last < 0 or size > s.store_size[c, last]):
                    last = np.int64(k)
            if last < 0 or s.store_due[c, last] <= s.clock[0]:
                break
            before = s.store_size[c, last]
            for byte in range(before & 0xFF):
                to = s.store_at[c, last] + byte - at
                if 0 <= to < n:
                    old = s.store_old[c, last] >> (8 * byte) & 0xFF
                    s.noc_data[row[request.DATA] + to] = np.uint8(old)
    posted = np.int64(0 if request.is_answered(control) else 1)
    add(s, row[request.NOC], WRITES_SENT + posted, np.int64(1))
    add(s, row[request.NOC], WRITE_WORDS + posted, flits(n))
    if s.noc_source[i]:
        _add_outgoing(s, row, np.int64(-1))
        s.noc_source[i] = 0


@njit
def take_sources(s: Any) -> None:
    """In drawn times: the requests that are to take their bytes by now do so."""
    s.noc_source_next[0] = 0
    for i in range(s.noc_requests[0]):
        if 0 < s.noc_source[i] <= s.clock[0]:
            take_source(s, np.int64(i))
        elif s.noc_source[i] and not 0 < s.noc_source_next[0] <= s.noc_source[i]:
            s.noc_source_next[0] = s.noc_source[i]


@njit
def delay_source(s: Any, i: Any, cycles: Any) -> None:
    """In drawn times: request `i` takes its bytes so many cycles late, and after those before it.

    An NIU reads for one request after another: then no count of requests sent includes one that
    is not.
    """
    due = s.clock[0] + cycles
    for k in range(i):
        if s.noc_request[k, request.NOC] == s.noc_request[i, request.NOC]:
            due = max(due, s.noc_source[k])
    s.noc_source[i] = max(due, 1)
    take_sources(s)


@njit
def issue(s: Any, c: Any, noc: Any, i: Any) -> Any:
    """Send the request of initiator `i`: DONE, a rule, or the condition to wait for."""
    if s.noc_map[0] == 0:
        # Refuse a transfer of a tile that is on no chip
        registers, base = s.niu_command[noc, i], mm.NOC0_BASE + mm.NOC_SIZE * noc
        at = base + mm.NOC_CMD_BUF_OFFSET * i + mm.NOC_CMD_CTRL
        control = np.int64(registers[mm.NOC_CTRL >> 2])
        to = np.int64(registers[mm.NOC_TARG_ADDR_LO >> 2])
        back = np.int64(registers[mm.NOC_RET_ADDR_LO >> 2])
        asked = refuse(s, niu_check.TRANSFER, address=at, control=control, target=to, answer=back)
        return np.int64(asked)
    if s.noc_requests[0] >= state.NOC_REQUESTS:
        return np.int64(niu_check.FULL)
    row = s.noc_request[s.noc_requests[0]]
    request.decode(s, c, noc, i, row)
    status = niu_check.check(s, row)
    if status != DONE:
        return status
    if request.takes_data(row[request.CONTROL]):
        if s.noc_data_used[0] + request.size(row) > state.NOC_DATA:
            return np.int64(niu_check.FULL)
        s.noc_data_used[0] += (request.size(row) + 15) & ~15
    _note(s, row)
    _count(s, row)
    # Open or close the linked transaction of the NIU
    linked = s.niu_linked[row[request.NOC]]
    linked[0] = 0
    if row[request.CONTROL] & request.LINKED:
        linked[0], linked[1] = 1, row[request.GIVEN]
        linked[2], linked[3] = row[request.CORE], row[request.PC]
    s.noc_source[s.noc_requests[0]] = 0
    if request.takes_data(row[request.CONTROL]):
        if s.timed[0] and c < state.CORES:  # it takes them later (timing/loop.py, noc/timed.py)
            s.noc_source[s.noc_requests[0]] = TO_LEAVE
            _add_outgoing(s, row, np.int64(1))
        else:
            take_source(s, s.noc_requests[0])
    # A core whose multicast comes back to its tile goes on when that has arrived. Kernels send a
    # flag so and clear their own copy for what other tiles send next. On silicon the way back is
    # shorter than the code between, which a whole turn is not.
    both = request.MULTICAST | request.SELF
    if row[request.CONTROL] & both == both and row[request.CORE] < state.CORES:
        s.turn_yield[0] = 1
        s.attention[0] |= LOOK
    s.noc_issued[0] += 1
    s.noc_requests[0] += 1
    return np.int64(DONE)


# The NoC interface units, 0xFFB20000 and 0xFFB30000: registers and counters.  Source: NIU Memory
# Map and NIU Counters, Blackhole ISA; power-up values as in ttsim.

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


def _power_up(noc: int, s: state.State, xy: tuple[int, int]) -> None:
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
def load(s: Any, noc: Any, offset: Any) -> Any:
    """Load the 32-bit register at `offset` of NoC 0 or 1."""
    i, at = _initiator(offset)
    index = _configuration(offset)
    if i != _NONE and at <= mm.NOC_BRCST_EXCLUDE:
        s.loaded[0] = s.niu_command[noc, i, at >> 2]
    elif i != _NONE and at <= mm.NOC_CMD_CTRL and at in _READ_ZERO:
        s.loaded[0] = 0
    elif i != _NONE and at == mm.NOC_NODE_ID:
        s.loaded[0] = s.niu_node[noc]
    elif i != _NONE and at == mm.NOC_ENDPOINT_ID:
        s.loaded[0] = s.niu_endpoint[noc]
    elif _COUNTERS <= offset < mm.NIU_COUNTERS_END:
        s.loaded[0] = s.niu_counter[noc, (offset - _COUNTERS) >> 2]
    elif index != _NONE:
        s.loaded[0] = s.niu_config[noc, index]
    elif offset == mm.NIU_TRANS_COUNT_RTZ_CLR:
        s.loaded[0] = 0
    elif offset == mm.NIU_TRANS_COUNT_RTZ_SOURCE:
        s.loaded[0] = s.niu_zeroed[noc]
    elif offset == mm.NIU_TRANS_COUNT_RTZ_NUM:
        s.loaded[0] = 0  # the lowest id whose outstanding count fell to 0, as noted
        for i in range(15, -1, -1):
            if (np.int64(s.niu_zeroed[noc]) >> i) & 1:
                s.loaded[0] = i
    else:
        write_only = offset == mm.NOC_CLEAR_OUTSTANDING_REQ_CNT
        return window.WRITE_ONLY if write_only else window.NOT_MODELLED
    return DONE


@njit
def store(s: Any, c: Any, noc: Any, offset: Any, value: Any) -> Any:
    """Store the 32-bit register at `offset` of NoC 0 or 1."""
    i, at = _initiator(offset)
    if i != _NONE and at <= mm.NOC_BRCST_EXCLUDE:
        mask = _TAG_MASK if at == mm.NOC_PACKET_TAG else 0xFFFFFFFF
        s.niu_command[noc, i, at >> 2] = np.uint32(value & mask)
        return np.int64(DONE)
    if i != _NONE and at == mm.NOC_CMD_CTRL:
        return issue(s, c, noc, i) if value & 1 else np.int64(DONE)
    if i != _NONE and (at == mm.NOC_L1_ACC_AT_INSTRN or at == mm.NOC_SEC_CTRL):
        return np.int64(window.FIELD if value else DONE)
    if i != _NONE and (at == mm.NOC_NODE_ID or at == mm.NOC_ENDPOINT_ID):
        return np.int64(window.READ_ONLY)
    index = _configuration(offset)
    if index != _NONE:
        # Store to a configuration register: the translation is the chip firmware's
        table = mm.NOC_X_ID_TRANSLATE_TABLE_0 <= offset < mm.NOC_ID_LOGICAL
        if mm.NOC_ID_TRANSLATE_COL_MASK <= offset <= mm.DDR_COORD_TRANSLATE_COL_SWAP:
            table = True
        if table and s.noc_map[0] != 0 and value != np.int64(s.niu_config[noc, index]):
            return np.int64(refuse(s, niu_check.TABLES, value=value, offset=offset))
        if offset == mm.NIU_TRANS_COUNT_RTZ_CFG and value & 0xFFFF:
            return np.int64(refuse(s, niu_check.INTERRUPT, value=value))
        if offset == _CONFIG and value & _CLOCK_OFF:
            return np.int64(refuse(s, niu_check.CLOCK, value=value))
        if offset == _CONFIG and value & _REQUEST_FIFO:
            return np.int64(refuse(s, niu_check.REQUEST_FIFO, value=value))
        if offset == _CONFIG or offset == _ROUTER_CONFIG:
            kept = np.int64(_CFG_0_RESERVED if offset == _CONFIG else _ROUTER_CFG_0_RESERVED)
            bits = (value ^ np.int64(s.niu_config[noc, index])) & kept
            if bits:
                refused = refuse(s, niu_check.CFG_RESERVED, value=value, offset=offset, bits=bits)
                return np.int64(refused)
        if offset != mm.DEBUG_COUNTER_RESET:
            s.niu_config[noc, index] = np.uint32(value)
        return np.int64(DONE)
    if offset == mm.NOC_CLEAR_OUTSTANDING_REQ_CNT:
        for i in range(16):
            if (value >> i) & 1:
                s.niu_counter[noc, OUTSTANDING + i] = np.uint32(0)
        return np.int64(DONE)
    if offset == mm.NIU_TRANS_COUNT_RTZ_CLR:
        s.niu_zeroed[noc] = np.uint32(np.int64(s.niu_zeroed[noc]) & ~value)
        return np.int64(DONE)
    counters = _COUNTERS <= offset < mm.NIU_COUNTERS_END
    zeroed = mm.NIU_TRANS_COUNT_RTZ_NUM <= offset <= mm.NIU_TRANS_COUNT_RTZ_SOURCE
    return np.int64(window.READ_ONLY if counters or zeroed else window.NOT_MODELLED)


def _window(noc: int, low: int) -> Window:
    return Window(
        *(f"NoC {noc} NIU", low, low + mm.NOC_SIZE, load, store),
        loads=WORD,
        given={"noc": noc},
        power_up=partial(_power_up, noc),
    )


NOC0, NOC1 = _window(0, mm.NOC0_BASE), _window(1, mm.NOC1_BASE)


# The counters of a NIU by name, from offset 0x200 on (NIU Counters, Blackhole ISA).

_SENDER = (
    *("ATOMIC_RESP_RECEIVED", "WR_ACK_RECEIVED", "RD_RESP_RECEIVED", "RD_DATA_WORD_RECEIVED"),
    *("CMD_ACCEPTED", "RD_REQ_SENT", "NONPOSTED_ATOMIC_SENT", "POSTED_ATOMIC_SENT"),
    *("NONPOSTED_WR_DATA_WORD_SENT", "POSTED_WR_DATA_WORD_SENT", "NONPOSTED_WR_REQ_SENT"),
    *("POSTED_WR_REQ_SENT", "NONPOSTED_WR_REQ_STARTED", "POSTED_WR_REQ_STARTED"),
    *("RD_REQ_STARTED", "NONPOSTED_ATOMIC_STARTED"),
    *(f"REQS_OUTSTANDING_ID({i})" for i in range(16)),
    *(f"WRITE_REQS_OUTGOING_ID({i})" for i in range(16)),
)
_TARGET = (
    *("ATOMIC_RESP_SENT", "WR_ACK_SENT", "RD_RESP_SENT", "RD_DATA_WORD_SENT", "REQ_ACCEPTED"),
    *("RD_REQ_RECEIVED", "NONPOSTED_ATOMIC_RECEIVED", "POSTED_ATOMIC_RECEIVED"),
    *("NONPOSTED_WR_DATA_WORD_RECEIVED", "POSTED_WR_DATA_WORD_RECEIVED"),
    *("NONPOSTED_WR_REQ_RECEIVED", "POSTED_WR_REQ_RECEIVED"),
    *("NONPOSTED_WR_REQ_STARTED", "POSTED_WR_REQ_STARTED"),
)
NAMES = (*(f"NIU_MST_{name}" for name in _SENDER), *(f"NIU_SLV_{name}" for name in _TARGET))
assert mm.NIU_COUNTERS + 4 * len(NAMES) == mm.NIU_COUNTERS_END


def place(address: int) -> tuple[int, int] | None:
    """(NoC, index of the counter) at an address of the tile, None elsewhere."""
    noc, offset = divmod(address - mm.NOC0_BASE, mm.NOC_SIZE)
    if noc in (0, 1) and mm.NIU_COUNTERS <= offset < mm.NIU_COUNTERS_END:
        return noc, (offset - mm.NIU_COUNTERS) >> 2
    return None
