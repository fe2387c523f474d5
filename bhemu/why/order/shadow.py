"""The last writer and readers of each place, and the unordered pairs of accesses."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.why.order import clocks
from bhemu.why.order import record as r

# Events


@njit
def steps(s: Any, o: Any, pc: Any, pushed: Any, word: Any, core: Any, thread: Any) -> None:
    """Set the step that makes the next accesses."""
    o.step[0], o.step[1], o.step[2], o.step[3], o.step[4] = pc, pushed, word, core, thread
    o.step[5] = clocks.now(s)


@njit
def event(s: Any, o: Any, agent: Any, write: Any) -> Any:
    """The number of an access of `agent` by o.step; indistinguishable accesses share an event.

    Two accesses from one pc are indistinguishable if between them no agent has seen the clock of
    this one, and this one has learned nothing.
    """
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
    clocks.copy(one, r.KNOWN, o.clocks[who], r.PLAIN, r.OWNERS)
    cached[0], cached[1], cached[2] = agent, pc, word
    cached[3], cached[4], cached[5] = write, epoch, number
    return number


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
def _counts(o: Any, cell: Any, a: Any, b: Any) -> Any:
    """Whether two unordered events are no hand-over, nor before a place by which cores poll."""
    what, word = kind(cell), cell if cell < r.GPRS else cell - r.BYTES >> 2
    if what == 1:
        return o.polled_gpr[cell - r.GPRS >> 1] == 0
    if what:
        return True
    if a[r.HOME] == b[r.HOME]:
        return o.slot[word] == 0
    stores = a[r.WRITE] and b[r.WRITE] and (a[r.SENT] == 0 or b[r.SENT] == 0)
    return o.far_flag[word] == 0 or stores  # only a store of a core to a flag is one


@njit
def pair(o: Any, cell: Any, old: Any, new: Any, bits: Any) -> Any:
    """Keep two unordered events, unless they poll or are known; whether they are kept."""
    a, b = o.event[old], o.event[new]
    if not _counts(o, cell, a, b):
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
        if alike and known[r.BITS] == bits and kind(known[r.PLACE]) == kind(cell):
            return True
    if o.pairs[0] < r.PAIRS:
        one = o.pair[o.pairs[0]]
        clocks.copy(one, 0, a, 0, r.EVENT)
        clocks.copy(one, r.EVENT, b, 0, r.EVENT)
        one[r.PLACE], one[r.BITS] = cell, bits
        if a[r.HOME] != b[r.HOME] and not (a[r.SENT] and b[r.SENT]):
            near = b if a[r.SENT] else a
            held = o.version[clocks.owner(near[r.AGENT]), (near[r.VERSION] - 1) % r.VERSIONS]
            clocks.copy(o.pair_known[o.pairs[0]], 0, held, r.OTHERS, o.far[0])
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
    if not write:
        return
    for k in range(r.READERS):
        _compare(o, agent, cell, np.int64(o.reader[cell, k]), new)
        o.reader[cell, k] = 0
    o.writer[cell] = new


@njit
def begin(o: Any) -> None:
    """The next access begins: nothing has been compared with it."""
    o.memo[0] = o.memo[1] = 0


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
def _put_previous(o: Any, one: Any, old: Any) -> None:
    """Note the event that wrote before a write, if that wrote for the same tile."""
    one[r.PREVIOUS], one[r.PREVIOUS + 1] = 0, 0
    if old[r.AGENT] >= 0 and old[r.HOME] == one[r.HOME]:
        column, one[r.PREVIOUS + 1] = old[r.AGENT] - r.OTHERS, old[r.CLOCK]
        if column < 0:
            column, one[r.PREVIOUS + 1] = (
                own_column(o, clocks.owner(old[r.AGENT])),
                old[r.OWNER_CLOCK],
            )
        one[r.PREVIOUS] = 1 + column


@njit
def own_column(o: Any, who: Any) -> Any:
    """The column of an owner of this tile, among those of all tiles."""
    return r.SHARED * o.number[0] + who


@njit
def _accesses(o: Any, who: Any, pc: Any) -> None:
    """Note the first access of an owner to L1 at each pc."""
    i = (pc * 5 + (who << 7)) % r.FIRST_ACCESSES
    for _ in range(8):
        one = o.first_access[i]
        if one[0] == who + 1 and one[1] == pc:
            return
        if one[0] == 0:
            one[0], one[1], one[2] = who + 1, pc, o.clocks[who, who]
            return
        i = (i + 1) % r.FIRST_ACCESSES


@njit
def l1(o: Any, agent: Any, low: Any, high: Any, new: Any, write: Any) -> None:
    """An access to the bytes `low` to `high` of L1."""
    begin(o)
    high = min(high, L1_SIZE)
    if o.tiles[0]:
        if agent != r.REQUEST:
            _accesses(o, clocks.owner(agent), o.event[new, r.PUSHED])
        if write and last_writer(o, low >> 2) != new:
            _put_previous(o, o.event[new], o.event[last_writer(o, low >> 2)])
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
    begin(o)
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
            if first:
                _foreign(o, cell, new)
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
def _foreign(o: Any, cell: Any, new: Any) -> None:
    """Note that a thread changes a field that another thread has set for its own unit."""
    thread = np.int64(o.bit_thread[(cell - r.CONFIG) % (32 * CONFIG_WORDS)])
    old = np.int64(o.writer[cell])
    if thread >= 0 and old and _thread_of(o.event[old]) == thread:
        by = _thread_of(o.event[new])
        if by >= 0 and by != thread:
            pair(o, cell, old, new, np.int64(r.FOREIGN))


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
