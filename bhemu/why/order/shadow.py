"""What is known of accesses: the last writer and readers of each place, unordered pairs, and notes
of what the tile does, in order."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.riscv import turn
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config import CONFIG_WORDS, SHARED
from bhemu.tensix.state import THREADS
from bhemu.why import order as r
from bhemu.why.order import clocks

# Events


@njit
def steps(s: Any, o: Any, pc: Any, pushed: Any, word: Any, core: Any, thread: Any) -> None:
    """Set the step that makes the next accesses."""
    o.step[0], o.step[1], o.step[2], o.step[3], o.step[4] = pc, pushed, word, core, thread
    o.step[5] = clocks.now(s)


@njit
def event(s: Any, o: Any, agent: Any, write: Any) -> Any:
    """Begin an access of `agent` by o.step: its number; indistinguishable accesses share an event.

    Two accesses from one pc are indistinguishable if between them no agent has seen the clock of
    this one, and this one has learned nothing.
    """
    o.memo[0] = o.memo[1] = 0  # nothing has been compared with it
    who, pc, word = clocks.owner(agent), o.step[0], o.step[2]
    epoch = o.epoch[agent] + o.plain_epoch[who]
    cached = o.cached[(pc * 5 + (agent << 7) + (word * 0x9E3779B1 >> 9) + write) % r.CACHED]
    known = cached[0] == agent and cached[1] == pc and cached[2] == word
    if known and cached[3] == write and cached[4] == epoch:
        return cached[5]
    number, t = o.events[0], o.step[4]
    o.events[0] += 1
    one = o.event[number]
    one[r.AGENT], one[r.CLOCK], one[r.WRITE] = agent, o.clocks[agent, agent], write
    one[r.OWNER_CLOCK], one[r.WAITED] = o.clocks[who, who], o.waited[who]
    clocks.copy(one, r.PC, o.step, 0, 6)
    one[r.PUSH_CLOCK] = o.push_clock[t] if t >= 0 else 0
    one[r.ACQUIRED], one[r.TAKEN], one[r.BEFORE] = o.acquired[who], o.taken[who], o.dst_word[who, 1]
    one[r.WAIT] = o.wait[t, 4] if t >= 0 and o.wait[t, 0] else 0
    one[r.WAIT_WORD] = o.wait[t, 5] if one[r.WAIT] else 0
    one[r.POLL], one[r.POLL_WORD] = o.poll[o.step[3], 0], o.poll[o.step[3], 1]
    one[r.VERSION], one[r.HOME], one[r.AGAIN] = o.versions[who], o.number[0], 0
    one[r.SENT] = one[r.THERE] = one[r.PREVIOUS] = one[r.PREVIOUS + 1] = 0
    clocks.copy(one, r.KNOWN, o.clocks[who], o.mine[0], r.OWNERS)
    cached[0], cached[1], cached[2] = agent, pc, word
    cached[3], cached[4], cached[5] = write, epoch, number
    if agent != r.REQUEST:
        _first_access(o, who, one[r.PUSHED])
    return number


@njit
def _first_access(o: Any, who: Any, pc: Any) -> None:
    """Note the clock of an owner at its first access from a pc."""
    i = (pc * 5 + (who << 7)) % r.FIRST_ACCESSES
    for _ in range(8):
        first = o.first_access[i]
        if first[0] == 0:
            first[0], first[1], first[2] = who + 1, pc, o.clocks[who, who]
        if first[0] == who + 1 and first[1] == pc:
            return
        i = (i + 1) % r.FIRST_ACCESSES


@njit
def make_room(o: Any) -> None:
    """Drop the events that no place refers to; sets `full` if that does not help."""
    if o.events[0] < r.EVENTS - r.MARGIN:
        return
    clocks.clear(o.moved)
    _numbers(o, False)
    number = np.int32(1)
    o.moved[0] = 0
    for old in range(1, o.events[0]):
        if o.moved[old]:
            clocks.copy(o.event[number], 0, o.event[old], 0, r.EVENT)
            o.moved[old] = number
            number += np.int32(1)
    o.events[0] = number
    for i in range(r.CACHED):
        o.cached[i, 0] = -1
    _numbers(o, True)
    if number > r.EVENTS - r.EVENTS // 8:
        o.full[0] = 1


@njit
def _numbers(o: Any, moved: Any) -> None:
    """Mark the events that places refer to, or give those that have moved their new numbers."""
    for held in (flat(o.writer), flat(o.reader), flat(o.list_event), flat(o.config_event)):
        for i in range(held.size):
            if moved:
                held[i] = o.moved[held[i]]
            else:
                o.moved[held[i]] = 1


# Pairs


@njit
def kind(cell: Any) -> Any:
    """0 L1, 1 GPR, 2 Dst, 3 Config, 4 template of a MOP."""
    if cell < r.GPRS or cell >= r.BYTES:
        return np.int64(0)
    return np.int64(1 if cell < r.DST else 2 if cell < r.CONFIG else 3 + (cell >= r.TEMPLATES))


@njit
def _maker(one: Any) -> Any:
    """The owner of an event; of a request the core that sent it."""
    return np.int64(one[r.CORE]) if one[r.SENT] else clocks.owner(one[r.AGENT])


@njit
def pair(o: Any, cell: Any, old: Any, new: Any, bits: Any) -> Any:
    """Keep two unordered events, unless they poll or are known; whether they are kept."""
    a, b = o.event[old], o.event[new]
    what, word = kind(cell), cell if cell < r.GPRS else cell - r.BYTES >> 2
    polled = what == 1 and o.polled_gpr[cell - r.GPRS >> 1] != 0
    if what == 0 and a[r.HOME] == b[r.HOME]:
        polled = o.slot[word] != 0
    elif what == 0:  # only a store of a core to a flag is a conflict
        stores = a[r.WRITE] and b[r.WRITE] and (a[r.SENT] == 0 or b[r.SENT] == 0)
        if o.far_flag[word] and not stores:
            bits |= r.IF_DATA
            polled = o.marks[word] & r.BRANCHED != 0
    if polled:
        return False
    if a[r.HOME] == b[r.HOME]:
        if a[r.TIME] > b[r.TIME]:  # a request has arrived that was sent before
            a, b = o.event[new], o.event[old]
        by = _maker(a)
        if by != _maker(b) and a[r.OWNER_CLOCK] > b[r.KNOWN + by]:
            bits |= r.BY_SPEED
    for i in range(o.pairs[0]):
        known = o.pair[i]
        alike = known[r.PUSHED] == a[r.PUSHED] and known[r.EVENT + r.PUSHED] == b[r.PUSHED]
        if alike and known[r.BITS] == bits and kind(known[r.PLACE]) == what:
            return True
    if o.pairs[0] < r.PAIRS:
        one = o.pair[o.pairs[0]]
        clocks.copy(one, 0, a, 0, r.EVENT)
        clocks.copy(one, r.EVENT, b, 0, r.EVENT)
        one[r.PLACE], one[r.BITS] = cell, bits
        if a[r.HOME] != b[r.HOME] and not (a[r.SENT] and b[r.SENT]):
            near = b if a[r.SENT] else a
            held = o.version[clocks.owner(near[r.AGENT]), (near[r.VERSION] - 1) % r.VERSIONS]
            clocks.copy(o.pair_known[o.pairs[0]], 0, held, r.PLAIN, o.columns[0])
        o.pairs[0] += 1
    return True


@njit
def _compare(o: Any, agent: Any, cell: Any, old: Any, new: Any) -> None:
    """Compare the present access with an earlier one to its place, each once."""
    if old == 0 or old == o.memo[0] or old == o.memo[1]:
        return
    a, b = o.event[old], o.event[new]
    if a[r.HOME] == b[r.HOME] and (a[r.THERE] or b[r.THERE]):
        return  # the other ends of one tile's requests are compared with other tiles' accesses
    if a[r.WRITE] == r.ADDS and b[r.WRITE] == r.ADDS:
        return  # in any order they give the same sum
    if clocks.before(o, agent, a):
        o.memo[0] = old
    elif pair(o, cell, old, new, np.int64(0)):
        o.memo[1] = old


# Places


@njit
def _again(o: Any, old: Any, new: Any) -> None:
    """Note whether the owner of an event has made the same access since it last waited."""
    a, b = o.event[old], o.event[new]
    same = old > 0 and old != new and clocks.owner(a[r.AGENT]) == clocks.owner(b[r.AGENT])
    if same and a[r.OWNER_CLOCK] >= b[r.ACQUIRED]:
        b[r.AGAIN] = 1


@njit
def _read(o: Any, agent: Any, cell: Any, new: Any) -> None:
    """Note a reader of a place, among the last ones."""
    by = o.event[new, r.AGENT]
    free: Any = np.int64(-1)
    stale: Any = np.int64(-1)
    for k in range(r.READERS):
        old = o.reader[cell, k]
        if old == new:
            return
        if old == 0:
            free = k if free < 0 else free
        elif o.event[old, r.AGENT] == by:
            _again(o, old, new)
            o.reader[cell, k] = new
            return
        elif clocks.before(o, agent, o.event[old]):
            stale = k
    if free < 0:
        free = stale if stale >= 0 else np.int64(new % r.READERS)
    o.reader[cell, free] = new


@njit
def place(o: Any, agent: Any, cell: Any, new: Any, write: Any) -> None:
    """An access of `agent`, the event `new`, to one place."""
    if write:
        _again(o, o.writer[cell], new)
    else:
        _read(o, agent, cell, new)
    _compare(o, agent, cell, np.int64(o.writer[cell]), new)
    last_adds = o.event[o.writer[cell], r.WRITE] == r.ADDS
    if not write and not last_adds:
        return
    for k in range(r.READERS):
        old = np.int64(o.reader[cell, k])
        adds = o.event[old, r.WRITE] == r.ADDS
        if write or adds:
            _compare(o, agent, cell, old, new)
        if write and not (adds and write == r.ADDS):
            o.reader[cell, k] = 0
    if write == r.ADDS and last_adds:  # what was added before is kept beside the readers
        _read(o, agent, cell, np.int64(o.writer[cell]))
    if write:
        o.writer[cell] = new


@njit
def l1_access(s: Any, o: Any, agent: Any, low: Any, high: Any, write: Any) -> None:
    """The present step accesses the bytes `low` to `high` of L1."""
    l1(o, agent, low, high, event(s, o, agent, write), write)


@njit
def last_writer(o: Any, word: Any) -> Any:
    """The event that wrote a word of L1, or one of its bytes, last; 0 = nobody."""
    if o.split[word] == 0:
        return np.int64(o.writer[word])
    found = np.int64(0)
    for k in range(4):
        found = max(found, np.int64(o.writer[r.BYTES + 4 * word + k]))
    return found


@njit
def _between_tiles(o: Any, agent: Any, word: Any, new: Any, write: Any) -> None:
    """Note of a write the event that wrote before it; negative: for another tile."""
    one, old = o.event[new], o.event[last_writer(o, word)]
    if write and last_writer(o, word) != new:
        one[r.PREVIOUS], one[r.PREVIOUS + 1] = 0, 0
        if last_writer(o, word):
            column, one[r.PREVIOUS + 1] = old[r.AGENT], old[r.CLOCK]
            if old[r.SENT] == 0:
                column = o.mine[0] + clocks.owner(old[r.AGENT])
                one[r.PREVIOUS + 1] = old[r.OWNER_CLOCK]
            one[r.PREVIOUS] = 1 + column - r.PLAIN
            if old[r.HOME] != one[r.HOME]:
                one[r.PREVIOUS] = -one[r.PREVIOUS]


@njit
def l1(o: Any, agent: Any, low: Any, high: Any, new: Any, write: Any) -> None:
    """An access to the bytes `low` to `high` of L1."""
    high = min(high, mm.L1_SIZE)
    if o.tiles[0]:
        _between_tiles(o, agent, low >> 2, new, write)
    for word in range(low >> 2, (high + 3) >> 2):
        part = low > 4 * word or high < 4 * word + 4
        if part and o.split[word] == 0:
            o.split[word] = 1
            for k in range(4):
                cell = r.BYTES + 4 * word + k
                o.writer[cell] = o.writer[word]
                clocks.copy(o.reader[cell], 0, o.reader[word], 0, r.READERS)
        if o.split[word] == 0:
            place(o, agent, np.int64(word), new, write)
            continue
        for at in range(max(low, 4 * word), min(high, 4 * word + 4)):
            place(o, agent, np.int64(r.BYTES + at), new, write)


# Config: words read many bits, which change seldom


@njit
def config_read(o: Any, agent: Any, which: Any, new: Any) -> None:
    """A word of `agent` reads the bits of a list."""
    o.list_event[which, agent] = new
    if o.list_seen[which, agent] == o.config_epoch[0]:
        return
    o.list_seen[which, agent] = o.config_epoch[0]
    for word in range(2 * CONFIG_WORDS):
        bits, bit = np.int64(o.list_bits[which, word]), np.int64(0)
        while bits:
            if bits & 1:
                cell = np.int64(r.CONFIG + 32 * word + bit)
                _compare(o, agent, cell, np.int64(o.writer[cell]), new)
            bits >>= 1
            bit += 1


@njit
def config_written(o: Any, agent: Any, word: Any, changed: Any, new: Any) -> None:
    """Bits of a Config word (of both banks, 0-447) have changed."""
    first = True
    for bit in range(32):
        if changed >> bit & 1:
            cell = np.int64(r.CONFIG + 32 * word + bit)
            if first:  # a thread changes a field that another thread has set for its own unit?
                thread = np.int64(o.bit_thread[(cell - r.CONFIG) % (32 * CONFIG_WORDS)])
                old, by = np.int64(o.writer[cell]), _thread_of(o.event[new])
                own = thread >= 0 and old and _thread_of(o.event[old]) == thread
                if own and by >= 0 and by != thread:
                    pair(o, cell, old, new, np.int64(r.FOREIGN))
            first = False
            _compare(o, agent, cell, np.int64(o.writer[cell]), new)
            for which in range(o.lists[0]):
                if o.list_bits[which, word] >> bit & 1:
                    for reader in range(r.AGENTS):
                        _compare(o, agent, cell, np.int64(o.list_event[which, reader]), new)
            o.writer[cell] = new
    o.config_epoch[0] += 1


@njit
def _thread_of(one: Any) -> Any:
    """The thread that an access belongs to; a TRISC belongs to its own thread; -1: none."""
    if one[r.THREAD] >= 0:
        return one[r.THREAD] if one[r.CORE] else np.int64(-1)
    return one[r.CORE] - 1 if 1 <= one[r.CORE] <= 3 else np.int64(-1)


@njit
def config_stored(o: Any, agent: Any, word: Any, value: Any, new: Any) -> None:
    """Two cores store different values to one word of Config: the order decides which one stays."""
    old, held = np.int64(o.config_event[word]), o.config_value[word]
    o.config_event[word], o.config_value[word] = new, value
    if old == 0 or o.event[old, r.CORE] == o.event[new, r.CORE] or held == value:
        return
    if not clocks.before(o, agent, o.event[old]):
        bit, differ = np.int64(0), held ^ value
        while differ >> bit & 1 == 0:
            bit += 1
        both = held & value
        bits = r.SECOND_CLEARS if both == value else r.FIRST_CLEARS if both == held else 0
        pair(o, np.int64(r.CONFIG + 32 * word + bit), old, new, np.int64(bits))


# Notes: pushed words, stores to counters, requests, words that move L1. Checks read them after the
# run (conflicts.Observed).

# What a note is of: 0 to 8, a word of a MOP's template; then
PUSHED, STORED, ASKED, UNPACKED, PACKED = range(9, 14)
STALE, DROPPED, ACCESSED = range(14, 17)  # of a core whose data cache has given old bytes
# Words of Config that set the format and the address, by unit
_FORMATS = (
    np.int64(cf.THCON_SEC0_REG0_TileDescriptor.word),
    np.int64(cf.THCON_SEC1_REG0_TileDescriptor.word),
    np.int64(cf.THCON_SEC0_REG1_Out_data_format.word),
)
_ADDRESSES = (
    np.int64(cf.THCON_SEC0_REG3_Base_address.word),
    np.int64(cf.THCON_SEC1_REG3_Base_address.word),
    np.int64(cf.THCON_SEC0_REG1_L1_Dest_addr.word),
)
_PACKER = 2  # of both, after two unpackers


@njit
def note(
    s: Any, o: Any, what: Any, t: Any, value: Any, pc: Any, c: Any, low: Any, high: Any
) -> Any:
    """The number of a new note; -1: there are too many."""
    i = np.int64(o.notes[0])
    if i == r.NOTES:
        return np.int64(-1)
    o.notes[0] += 1
    new = o.note[i]
    new[r.N_WHAT], new[r.N_THREAD], new[r.N_VALUE], new[r.N_PC] = what, t, value, pc
    new[r.N_CORE], new[r.N_TIME], new[r.N_LOW], new[r.N_HIGH] = c, clocks.now(s), low, high
    return i


@njit
def noted(s: Any, o: Any, c: Any, pc: Any, word: Any, way: Any, address: Any, value: Any) -> None:
    """Core `c` has executed an instruction; way: 1 = a load, 2 = a store."""
    what, t, zero = np.int64(-1), c - 1, np.int64(0)
    if word & 3 != 3:
        what, value, t = np.int64(PUSHED), turn.pushed(word), max(t, zero)
    elif way & 2 and mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END:
        what, t = np.int64(PUSHED), t if c else (address - mm.INSTRN_BUF_BASE) >> 16
    elif way & 2 and mm.MOP_CFG_BASE <= address < mm.MOP_CFG_END:
        what = (address - mm.MOP_CFG_BASE) >> 2
    elif way & 2 and mm.OVERLAY_BASE <= address < mm.OVERLAY_END:
        note(s, o, np.int64(STORED), np.int64(-1), value, pc, c, address, zero)
    if what >= 0 and 0 <= t < THREADS:
        note(s, o, what, t, value, pc, c, zero, zero)


@njit
def cached(s: Any, o: Any, c: Any, pc: Any, drops: Any, address: Any) -> None:
    """Core `c` gets old bytes from its data cache, or accesses memory after that.

    drops: the instruction is a fence or an atomic, which empties the cache.
    """
    what, zero = np.int64(DROPPED if drops else ACCESSED), np.int64(0)
    if s.l0_stale[c, 0] != o.stale[c]:
        what, o.stale[c] = np.int64(STALE), s.l0_stale[c, 0]
    note(s, o, what, np.int64(-1), zero, pc, c, address, zero)


@njit
def moves(s: Any, o: Any, t: Any, at: Any) -> None:
    """An UNPACR or PACR of thread `t` moves the range `at`, as o.moving describes it."""
    unit, step = o.moving[r.M_UNIT], o.step
    what = np.int64(PACKED if unit == _PACKER else UNPACKED)
    i = note(s, o, what, t, step[2], step[0], step[3], o.range[at, 0], o.range[at, 1])
    if i >= 0:
        new = o.note[i]
        new[r.N_FORMAT], new[r.N_DATUMS] = o.moving[r.M_FORMAT], o.moving[r.M_DATUMS]
        clocks.copy(new, r.N_BY_FORMAT, o.set_by[_index(s, t, _FORMATS[unit])], 0, 6)
        clocks.copy(new, r.N_BY_ADDRESS, o.set_by[_index(s, t, _ADDRESSES[unit])], 0, 6)


@njit
def _index(s: Any, t: Any, word: Any) -> Any:
    """A word of Config among those of both banks."""
    return word if word >= SHARED else config.bank(s, t) * CONFIG_WORDS + word
