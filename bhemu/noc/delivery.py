"""Delivery of NoC requests: reads, writes, atomics and responses that arrive later."""

from typing import Any

import numpy as np

from bhemu.devices import niu, niu_check, noc_map
from bhemu.devices import niu_request as request
from bhemu.devices.noc_map import HEIGHT, WIDTH
from bhemu.jit.intrinsics import call_access, load_word, move, store_word
from bhemu.jit.subset import njit
from bhemu.memmap import HOST, NIU_CFG_0, ROUTER_CFG_1, ROUTER_CFG_3
from bhemu.noc import memory, record, times
from bhemu.noc.grid import TILES
from bhemu.noc.record import tile_of
from bhemu.tensix import in_flight, state
from bhemu.tensix.rules import DONE
from bhemu.tensix.state import NOC_ARRIVED, NOC_FIELDS, OFFSET

# Which requests are held back when delivery is late: any that the ordering rules let wait.
#
# Two requests of a tile keep their order when they go to the same place on the same NoC and static
# virtual channel, or within a linked transaction; all others may overtake each other. Source: NoC
# Ordering, ISA.

_CHANNEL = 7 << 13 | request.STATIC_CHANNEL

# Of acts that are late in drawn times: at most so many cycles, powers of 2; of those that are named
# by the two low bits of the seed. Below the seed stands the number of the tile.
LEAST, MOST = 3, 11
SCALES = (64, 512, 4096, 32768)
TILE_BITS = 16
SOURCE, ARRIVES = 0, 1 << 32  # of a request: what is late

# Slots of `at`, `refused`, `wanted`, `noc_source_late`, and of a row of `noc_arrived`.
_TILE, _REQUEST = range(2)
_FROM, _PLACE, _TO, _STATUS = range(4)
_KIND, _WHICH = range(2)
_SEED, _BY = range(2)
_LOW, _SIZE, _SENDER, _CORE, _PC, _ROUND = range(6)


@njit
def mixed(seed: Any, number: Any) -> Any:
    """A number of 31 bits that a seed and a number decide."""
    x = np.uint64(seed) ^ np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(33))


@njit
def request_late(s: Any, i: Any, what: Any) -> Any:
    """Cycles by which request `i` takes the bytes of its SOURCE, or ARRIVES, late.

    In drawn times (timing/draws.py). Every second request of a seed alone is late, up to a power of
    2 of its own.
    """
    pc, seed = s.noc_source_late[_BY], s.noc_source_late[_SEED] - 1
    if seed < 0 or (pc >= 0 and pc != s.noc_request[i, request.PC]):
        return np.int64(0)
    x = mixed(seed, s.noc_request[i, request.SEQUENCE] + 1 + what)
    if s.late_named[0]:
        seed >>= np.int64(TILE_BITS)
        bound, some = np.int64(SCALES[seed & 3]), seed & 4 == 0
        return 1 + (x & 0xFFFF) % (bound - 1) if some or x >> 30 == 0 else np.int64(0)
    bound = np.int64(1) << (LEAST + (x & 0xFF) % (MOST - LEAST + 1))
    return (x >> 8 & 0xFFFF) % bound if x >> 30 == 0 else np.int64(0)


@njit
def in_order(a: Any, b: Any) -> Any:
    """Whether `b`, which was sent after `a`, must arrive after it."""
    if a[request.NOC] != b[request.NOC] or a[request.GIVEN] != b[request.GIVEN]:
        return False
    if a[request.CONTROL] & request.LINKED:
        return True
    static = a[request.CONTROL] & b[request.CONTROL] & request.STATIC_CHANNEL
    return static != 0 and (a[request.CONTROL] ^ b[request.CONTROL]) & _CHANNEL == 0


@njit
def may_go(chip: Any, t: Any, s: Any, i: Any) -> Any:
    """Whether request `i` of tile `t` is delivered in this round."""
    row = s.noc_request[i]
    if chip.late[0] == 0:
        return True
    if row[request.DUE] == 0:
        delay = mixed(chip.seed[0], row[request.SEQUENCE] * 256 + t + 1) % (chip.late[0] + 1)
        row[request.DUE] = chip.round[0] + 1 + delay
    if row[request.DUE] > chip.round[0] + 1:
        return False
    for k in range(i):
        earlier = s.noc_request[k]
        if earlier[request.SEQUENCE] != request.GONE and in_order(earlier, row):
            return False
    return True


# Atomics on a 16-byte line of L1: what NOC_AT_LEN_BE says.
#
# Increment is what kernels use, and what the golden model knows; swap, compare and swap, and swap
# with index follow the ISA text alone (NoC Atomics).


@njit
def perform_atomic(line: Any, at: Any, at_len_be: Any, data: Any) -> Any:
    """Change the 16 bytes at host address `line`, of which byte `at` was addressed.

    at_len_be: NOC_AT_LEN_BE, opcode and operands; data: NOC_AT_DATA. The word that was there.
    """
    opcode = request.atomic_opcode(at_len_be)
    if opcode == request.SWAP:
        # Each of the eight halves whose bit is set becomes the low or high half of the operand.
        old, mask = load_word(line + (at & 12)), (at_len_be >> 2) & 0xFF
        for i in range(4):
            was = load_word(line + 4 * i)
            low = data & 0xFFFF if (mask >> (2 * i)) & 1 else was & 0xFFFF
            high = data & 0xFFFF0000 if (mask >> (2 * i + 1)) & 1 else was & 0xFFFF0000
            store_word(line + 4 * i, low | high)
        return old
    which = (at_len_be >> 2) & 3 if opcode == request.SWAP_INDEX_HIGH else at_len_be & 3
    word = line + 4 * which
    old = load_word(word)
    if opcode == request.INCREMENT:
        wrap = (at_len_be >> 2) & 31
        kept = np.int64(0xFFFFFFFF) << (wrap + 1)
        store_word(word, (old & kept) | ((old + data) & ~kept))
    elif opcode == request.COMPARE_AND_SWAP:
        expected, new = (at_len_be >> 2) & 15, (at_len_be >> 6) & 15
        if old == expected:
            store_word(word, new)
    else:
        store_word(word, data)
    return old


# Delivery of the requests that tiles have sent: in the order of tiles, then as they were issued.
#
# A request that its target cannot take now stays, and with it what the same tile sent later. What
# only Python can do (make a tile or a page of memory) is asked for before any effect.

# Why a request was not delivered
STAYS = 1  # its target cannot take it now
MAKE = 2  # Python must make the tile or page that it goes to
REFUSED = 3  # by a rule of its target
STOPPED = 4  # its target was left out of rounds, and stopped as it made up for them
WATCHED = 5  # it touched a watchpoint on DRAM
_DATA = OFFSET["noc_data"]
_COLUMNS, _ROWS = (ROUTER_CFG_1 - NIU_CFG_0) >> 2, (ROUTER_CFG_3 - NIU_CFG_0) >> 2


@njit
def wake(chip: Any, t: Any, s: Any) -> None:
    """Something has changed in a tile: it takes part in the next round."""
    chip.touched[t] = chip.round[0]
    if chip.awake[t] == 0:
        chip.awake[t] = 1
        s.clock[0] = max(s.clock[0], chip.clock[0])
    if s.timed[0]:
        in_flight.ask_sleepers(s)


@njit
def _within(first: Any, last: Any, at: Any) -> Any:
    """Whether a span of a multicast holds a coordinate; it may wrap around."""
    if first <= last:
        return first <= at <= last
    return at <= last or at >= first


@njit
def place_of(chip: Any, t: Any, noc: Any) -> Any:
    """Where a tile is as a NoC counts, y << 6 | x."""
    x, y = chip.column[t], chip.row[t]
    if noc == 1:
        x, y = WIDTH - 1 - x, HEIGHT - 1 - y
    return y << 6 | x


@njit
def receives(chip: Any, t: Any, u: Any, row: Any) -> Any:
    """Whether tile `u` is a receiver of a multicast that tile `t` sent."""
    x, y, box = chip.column[u], chip.row[u], row[request.RECTANGLE]
    own = place_of(chip, u, row[request.NOC])
    if x < 0 or (u == t and row[request.CONTROL] & request.SELF == 0):
        return False
    if not _within(box & 63, (box >> 12) & 63, own & 63):
        return False
    if not _within((box >> 6) & 63, (box >> 18) & 63, own >> 6):
        return False
    if chip.tile[u] == 0:
        return True
    masks = tile_of(chip, u).niu_config[row[request.NOC]]
    return (np.int64(masks[_COLUMNS]) >> x) & 1 == 0 and (np.int64(masks[_ROWS]) >> y) & 1 == 0


@njit
def count_answers(s: Any, row: Any, n: Any) -> None:
    """What the sender's NIU counts as `n` answers arrive."""
    noc, control = row[request.NOC], row[request.CONTROL]
    if request.kind(control) == request.READ:
        niu.add(s, noc, niu.READ_ANSWERS, n)
        niu.add(s, noc, niu.READ_WORDS, niu.flits(request.size(row)))
    elif request.is_answered(control):
        atomic = request.kind(control) == request.ATOMIC
        niu.add(s, noc, np.int64(niu.ATOMIC_ANSWERS if atomic else niu.ACKS), n)
    if request.is_answered(control):
        niu.add_outstanding(s, noc, row, -n)


@njit
def _answer_word(s: Any, row: Any, word: Any) -> None:
    """The old value of an atomic, or the word of a register, arrives."""
    at = row[request.LOCAL]
    for i in range(4):
        s.l1[at + i] = np.uint8((word >> (8 * i)) & 0xFF)
    state.written(s, at, np.int64(4))


@njit
def _register(s: Any, target: Any, row: Any) -> Any:
    """Access a register of a tile as the NoC; its status."""
    control, at = row[request.CONTROL], row[request.REMOTE]
    host, size, none = np.int64(HOST), np.int64(4), np.int64(0)
    if request.kind(control) == request.READ:
        status = call_access(target.bus_read[0], target, host, at, size, none)
        if status == DONE:
            _answer_word(s, row, target.loaded[0])
        return status
    value = row[request.OPERAND]
    if request.takes_data(control):
        value = np.int64(0)
        for i in range(4):
            value |= np.int64(s.noc_data[row[request.DATA] + i]) << (8 * i)
    return call_access(target.bus_write[0], target, host, at, size, value)


@njit
def _l1(s: Any, target: Any, row: Any) -> None:
    """Transfer between the sender and L1 of a tile."""
    control, at, n = row[request.CONTROL], row[request.REMOTE], request.size(row)
    own, other = np.int64(s.host[0]), np.int64(target.host[0])
    data = own + _DATA + row[request.DATA]
    if request.kind(control) == request.READ:
        move(own + row[request.LOCAL], other + at, n)
        state.written(s, row[request.LOCAL], n)
        return
    if request.kind(control) == request.ATOMIC:
        line = at & ~15
        old = perform_atomic(other + line, at & 15, row[request.LENGTH], row[request.OPERAND])
        _answer_word(s, row, old)
        at, n = line, np.int64(16)
    elif request.has_enables(control):
        at &= ~15
        memory.write_enabled(other + at, data, row[request.LENGTH])
    else:
        move(other + at, data, n)
    state.written(target, at, n)


@njit
def _remember(chip: Any, t: Any, s: Any, low: Any, row: Any) -> None:
    """Note that a request of tile `t` has written to L1 of the tile of `s`, for messages."""
    note = s.noc_arrived[s.noc_arrivals[0] & (NOC_ARRIVED - 1)]
    note[_LOW], note[_SIZE], note[_SENDER] = low, request.size(row), t
    note[_CORE], note[_PC], note[_ROUND] = row[request.CORE], row[request.PC], chip.round[0]
    s.noc_arrivals[0] += 1


@njit
def _ready(chip: Any, u: Any) -> Any:
    """Before any effect: DONE, or why tile `u` can receive nothing yet: MAKE or STOPPED."""
    if chip.tile[u] == 0:
        chip.wanted[_KIND], chip.wanted[_WHICH] = memory.WANT_TILE, u
        return np.int64(MAKE)
    return np.int64(DONE if record.catch_up(chip, u) == 0 else STOPPED)


@njit
def _to_tile(chip: Any, t: Any, s: Any, u: Any, row: Any) -> Any:
    """Perform a request of tile `t` at tile `u`: DONE, or the status of its register access."""
    target = tile_of(chip, u)
    if niu_check.is_register(row):
        record.stand(target)
        status = _register(s, target, row)
        if status != DONE:
            chip.refused[_TO], chip.refused[_STATUS] = u, status
            return status
    else:
        _l1(s, target, row)
    # What the target's NIU counts.
    noc, control = row[request.NOC], row[request.CONTROL]
    answered = request.is_answered(control)
    posted, one = np.int64(0 if answered else 1), np.int64(1)
    words = niu.flits(request.size(row))
    niu.add(target, noc, niu.REQUESTS, one)
    if request.kind(control) == request.READ:
        niu.add(target, noc, niu.READS, one)
        niu.add(target, noc, niu.SENT_READ_ANSWERS, one)
        niu.add(target, noc, niu.SENT_READ_WORDS, words)
    elif request.kind(control) == request.ATOMIC:
        niu.add(target, noc, niu.ATOMICS + posted, one)
        niu.add(target, noc, niu.SENT_ATOMIC_ANSWERS, np.int64(1 if answered else 0))
    else:
        niu.add(target, noc, niu.WRITES_BEGUN + posted, one)
        niu.add(target, noc, niu.RECEIVED_WORDS + posted, words)
        niu.add(target, noc, niu.WRITES + posted, one)
        niu.add(target, noc, niu.SENT_ACKS, np.int64(1 if answered else 0))
    if request.kind(row[request.CONTROL]) == request.READ:
        _remember(chip, t, s, row[request.LOCAL], row)
    else:
        _remember(chip, t, target, row[request.REMOTE], row)
    wake(chip, u, target)
    return np.int64(DONE)


# In time a multicast reaches its receivers one after the other, by the number of links to them:
# above the corners of its rectangle stand 1 + that number, and how many it has reached before.

_TURN, _REACHED = 32, 40
_CORNERS = (1 << 24) - 1


@njit
def turn_of(rectangle: Any, hops: Any, reached: Any) -> Any:
    """RECTANGLE of a multicast whose receivers at so many links are next."""
    return rectangle & _CORNERS | (hops + 1) << _TURN | reached << _REACHED


@njit
def turn(rectangle: Any) -> Any:
    """(links to the receivers that are next, -1: all are; receivers that it has reached)."""
    return (rectangle >> _TURN & 0xFF) - 1, rectangle >> _REACHED


@njit
def _is_next(chip: Any, t: Any, u: Any, row: Any) -> Any:
    """Whether a multicast reaches tile `u` now."""
    if not receives(chip, t, u, row):
        return False
    noc, links = row[request.NOC], turn(row[request.RECTANGLE])[0]
    return links < 0 or links == times.hops(place_of(chip, t, noc), place_of(chip, u, noc))


@njit
def perform_request(chip: Any, t: Any, s: Any, row: Any) -> Any:
    """Perform a request where it goes: DONE, STAYS, MAKE, REFUSED or STOPPED.

    `chip.receivers`: how many answers it gets.
    """
    chip.receivers[0] = 1
    if request.is_multicast(row[request.CONTROL]):
        # Deliver to every receiver, once all of them are ready; Ethernet tiles get no multicasts.
        for each in range(TILES):
            if _is_next(chip, t, each, row):
                status = _ready(chip, each)
                if status != DONE:
                    return status
        n = np.int64(0)
        for each in range(TILES):
            if _is_next(chip, t, each, row):
                if _to_tile(chip, t, s, each, row) != DONE:
                    return np.int64(REFUSED)
                n += 1
        chip.receivers[0] = n
        return np.int64(DONE)
    if noc_map.kind(row[request.ENDPOINT]) == noc_map.TENSIX:
        u = np.int64(noc_map.index(row[request.ENDPOINT]))
        status = _ready(chip, u)
        if status != DONE:
            return status
        status = _to_tile(chip, t, s, u, row)
        if status != DONE:
            return np.int64(STAYS if status > DONE else REFUSED)
    else:
        if not memory.reach(chip, row):
            return np.int64(MAKE)
        # Perform the request at memory that is no tile's.
        control, endpoint = row[request.CONTROL], row[request.ENDPOINT]
        which, n = memory.number(endpoint), request.size(row)
        at = memory.offset(endpoint, row[request.REMOTE])
        own = np.int64(s.host[0])
        data = own + _DATA + row[request.DATA]
        if request.kind(control) == request.READ:
            memory.read(chip, which, at, own + row[request.LOCAL], n)
            state.written(s, row[request.LOCAL], n)
            _remember(chip, t, s, row[request.LOCAL], row)
        elif request.kind(control) == request.ATOMIC:
            line = memory.host_address(chip, which, at & ~15)
            old = perform_atomic(line, at & 15, row[request.LENGTH], row[request.OPERAND])
            _answer_word(s, row, old)
        elif request.has_enables(control):
            for i in range(request.BE_BYTES):
                if (row[request.LENGTH] >> i) & 1:
                    memory.write(chip, which, (at & ~15) + i, data + i, np.int64(1))
        elif request.is_inline(control):
            store_word(memory.host_address(chip, which, at), row[request.OPERAND])
        else:
            memory.write(chip, which, at, data, n)
        if chip.dram_watch_count[0]:
            memory.look(chip, t, row, which, at)
    return np.int64(DONE)


@njit
def _deliver_tile(chip: Any, t: Any, s: Any) -> Any:
    """Deliver what tile `t` has sent, from chip.at on; 0, or why it cannot go on."""
    # The host may have reset the tile.
    while chip.at[_REQUEST] < min(chip.left[t], s.noc_requests[0]):
        row = s.noc_request[chip.at[_REQUEST]]
        if not may_go(chip, t, s, chip.at[_REQUEST]):
            chip.at[_REQUEST] += 1
            continue
        status = perform_request(chip, t, s, row)
        if status == STAYS:
            break
        if status != DONE:
            chip.refused[_FROM], chip.refused[_PLACE] = t, chip.at[_REQUEST]
            return status
        count_answers(s, row, chip.receivers[0])
        row[request.SEQUENCE] = request.GONE
        chip.delivered[0] += 1
        wake(chip, t, s)
        chip.at[_REQUEST] += 1
        if chip.dram_hit[0] != 0:
            return np.int64(WATCHED)
    # Drop the delivered requests and their data; the others keep their order.
    kept, used = np.int64(0), np.int64(0)
    base = np.int64(s.host[0]) + _DATA
    for i in range(s.noc_requests[0]):
        row = s.noc_request[i]
        if row[request.SEQUENCE] == request.GONE:
            continue
        if request.takes_data(row[request.CONTROL]):
            n = request.size(row)
            move(base + used, base + row[request.DATA], n)
            row[request.DATA] = used
            used += (n + 15) & ~15
        if kept != i:
            for k in range(NOC_FIELDS):
                s.noc_request[kept, k] = row[k]
            s.noc_source[kept] = s.noc_source[i]
        kept += 1
    s.noc_requests[0], s.noc_data_used[0] = kept, used
    return np.int64(0)


@njit
def begin(chip: Any) -> None:
    """Note how many requests each tile has sent: what is sent from now on waits a round."""
    chip.at[_TILE] = chip.at[_REQUEST] = 0
    for t in range(chip.tiles[0]):
        chip.left[t] = 0
        if chip.tile[t] != 0 and not record.is_skipped(chip, t):
            chip.left[t] = tile_of(chip, t).noc_requests[0]


@njit
def deliver(chip: Any) -> Any:
    """Deliver from where it stopped; 0, MAKE, REFUSED, STOPPED or WATCHED."""
    while chip.at[_TILE] < chip.tiles[0]:
        t = chip.at[_TILE]
        if chip.left[t] > 0:
            status = _deliver_tile(chip, t, tile_of(chip, t))
            if status != 0:
                return status
        chip.at[_TILE], chip.at[_REQUEST] = t + 1, 0
    return np.int64(0)


@njit
def under_way(chip: Any) -> Any:
    """Whether any tile has a request that is not delivered."""
    for t in range(chip.tiles[0]):
        if chip.tile[t] == 0 or record.is_skipped(chip, t):
            continue
        if tile_of(chip, t).noc_requests[0] > 0:
            return True
    return False
