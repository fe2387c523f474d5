"""The order of agents: vector clocks, counts of semaphores, names to release and acquire."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.state import CORES, THREADS
from bhemu.tensix.thread import SEM_FULL, SEM_ZERO
from bhemu.why import order as r

DRAINED = 32  # instructions of a core after which its stores to Config are taken as done
# Names of what is released and acquired; device registers have their address
MAILBOX, PCBUF, MUTEX, ATOMIC, BANK, POLLED, GPR = (n << 40 for n in range(1, 8))
# Bits of STALLWAIT's conditions, and the unit of each
_CONDITIONS = ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (9, 6), (11, 5))
TRISC_CONFIG = 1 << 10


@njit
def now(s: Any) -> Any:
    """The tile's clock, with what the open turn has retired."""
    return s.clock[0] + (s.turn_given[0] - s.left[s.agent[0]] if s.turn_open[0] else 0)


@njit
def owner(agent: Any) -> Any:
    """The owner of an agent: the core or thread for which it works, the host, or a request."""
    if agent < r.OWNERS or agent >= r.AGENTS:
        return np.int64(agent)
    unit = np.int64(r.ISSUE + (agent - r.UNIT) // r.UNITS)
    return np.int64(agent - r.STORES) if agent >= r.STORES else unit


@njit
def copy(to: Any, first: Any, by: Any, by_first: Any, n: Any) -> None:
    """Copy `n` elements of a row."""
    for i in range(n):
        to[first + i] = by[by_first + i]


@njit
def clear(to: Any) -> None:
    """Set a row to 0."""
    for i in range(to.size):
        to[i] = 0


@njit
def reach(to: Any, i: Any, clock: Any) -> Any:
    """Raise an element of a row to a clock if that is greater; whether it grew."""
    if to[i] < clock:
        to[i] = clock
        return True
    return False


@njit
def raise_row(to: Any, by: Any, first: Any, end: Any) -> Any:
    """Raise the elements from `first` to `end` to those of another row; whether one grew."""
    grew = False
    for i in range(first, end):
        if by[i] > to[i]:
            to[i] = by[i]
            grew = True
    return grew


@njit
def seen(o: Any, agent: Any) -> None:
    """Others may have seen an agent's clock: its later accesses are different events."""
    o.epoch[agent] += 1
    o.plain_epoch[owner(agent)] += 1


@njit
def changed(o: Any, agent: Any, grew: Any) -> None:
    """An agent has learned something, if `grew`: its later accesses are different events."""
    if grew:
        who = owner(agent)
        seen(o, agent)
        if who < CORES or o.tiles[0]:
            i = o.versions[who] % r.VERSIONS
            o.version_clock[who, i] = o.clocks[who, who]
            copy(o.version[who, i], 0, o.clocks[who], 0, r.PLAIN + o.columns[0])
            o.versions[who] += 1


@njit
def join(o: Any, agent: Any, units: Any, plain: Any) -> None:
    """`agent` comes after everything in a vector, its owner in the plain order after another one's;
    there everything is complete at once."""
    grew = raise_row(o.clocks[agent], units, 0, r.PLAIN)
    grew = raise_row(o.clocks[owner(agent)], plain, r.PLAIN, r.PLAIN + o.columns[0]) or grew
    changed(o, agent, grew)


@njit
def join_agent(o: Any, agent: Any, by: Any) -> None:
    """`agent` comes after everything that `by` has done so far."""
    seen(o, by)
    join(o, agent, o.clocks[by], o.clocks[owner(by)])


@njit
def save(o: Any, vector: Any, agent: Any) -> None:
    """Raise a vector to what `agent` has done."""
    raise_row(vector, o.clocks[agent], 0, r.PLAIN)
    raise_row(vector, o.clocks[owner(agent)], r.PLAIN, r.PLAIN + o.columns[0])
    seen(o, agent)


@njit
def join_moment(o: Any, agent: Any, core: Any, clock: Any, plain: Any, units: Any) -> None:
    """`agent` comes after what `core` had done at its clock, in the orders that are named."""
    grew, who, last = False, owner(agent), o.versions[core]
    for back in range(min(last, r.VERSIONS)):
        i = (last - 1 - back) % r.VERSIONS
        if o.version_clock[core, i] <= clock or back == r.VERSIONS - 1:
            if units:
                grew = raise_row(o.clocks[agent], o.version[core, i], 0, r.PLAIN)
            if plain:
                known = o.version[core, i]
                grew = raise_row(o.clocks[who], known, r.PLAIN, r.PLAIN + o.columns[0]) or grew
            break
    if units:
        grew = reach(o.clocks[agent], core, clock) or grew
    if plain:
        grew = reach(o.clocks[who], o.mine[0] + core, clock) or grew
    changed(o, agent, grew)


@njit
def join_event(o: Any, agent: Any, event: Any) -> None:
    """`agent` comes after an event; of a unit or a store after everything that it has done."""
    if event[0] < CORES:
        join_moment(o, agent, event[0], event[r.CLOCK], True, True)
    else:
        join_agent(o, agent, event[0])


@njit
def before(o: Any, agent: Any, event: Any) -> Any:
    """Whether an event comes before what `agent` does now, where units of the tile take time."""
    who, by = owner(agent), owner(event[0])
    if by >= r.PLAIN:  # a request
        return event[r.CLOCK] <= o.clocks[who, by]
    if agent == r.REQUEST and o.apart[0]:
        return event[r.OWNER_CLOCK] <= o.clocks[who, o.mine[0] + by]
    return agent == event[0] or event[r.CLOCK] <= o.clocks[agent, event[0]]


@njit
def acts(o: Any, who: Any, n: Any) -> None:
    """The clock of an owner goes on: of a core by its instructions."""
    o.clocks[who, who] += n
    o.clocks[who, o.mine[0] + who] += n


# Acts of cores


@njit
def stores(o: Any, c: Any) -> Any:
    """Core `c` stores to Config: the agent of these stores."""
    agent = np.int64(r.STORES + c)
    join_agent(o, agent, c)
    o.clocks[agent, agent] += 1
    number = o.clocks[agent, agent]
    o.stored_at[c, number % r.STORED] = o.clocks[c, c]
    _drain(o, c, o.clocks[c, c])
    o.clocks[c, r.REACHED_STORES + c] = number
    changed(o, c, True)
    return agent


@njit
def _drain(o: Any, c: Any, clock: Any) -> None:
    """Take the stores to Config as done that core `c` made long before its `clock`."""
    last = o.clocks[r.STORES + c, r.STORES + c]
    while o.stored_done[c] < last:
        if o.stored_at[c, (o.stored_done[c] + 1) % r.STORED] > clock - DRAINED:
            return
        o.stored_done[c] += 1


@njit
def pushes(o: Any, c: Any, t: Any, number: Any) -> None:
    """Core `c` is about to push the word `number` of thread `t`."""
    clock = o.clocks[c, c] + 1
    _drain(o, c, clock)
    i = number % o.push.shape[1]
    o.push[t, i, 0], o.push[t, i, 1], o.push[t, i, 2] = c, clock, o.stored_done[c]
    seen(o, c)


@njit
def starts(o: Any, by: Any, c: Any) -> None:
    """Core `by` starts core `c`, which takes longer than the last words of `by` need to end."""
    join_agent(o, c, by)
    for agent in range(r.AGENTS):
        done = o.done_by[by, agent]
        if done and done == o.clocks[agent, agent]:
            join_agent(o, c, agent)
        else:
            reach(o.clocks[c], agent, done)
    changed(o, c, True)


# Acts of threads


@njit
def issues(o: Any, t: Any, number: Any) -> None:
    """A word leaves the gate of thread `t`; it comes from the word `number` of its FIFO."""
    issue = np.int64(r.ISSUE + t)
    if number >= o.push_from[t] and number != o.pushed[t]:
        i = number % o.push.shape[1]
        c, clock = o.push[t, i, 0], o.push[t, i, 1]
        join_moment(o, issue, c, clock, True, True)
        o.push_clock[t], o.pushed[t] = clock, number
        o.epoch[issue] += reach(o.clocks[issue], r.STORES + c, o.push[t, i, 2])
    acts(o, issue, 1)


@njit
def begins(o: Any, t: Any, unit: Any) -> Any:
    """The agent that executes the word that the thread issues; `unit` -1: complete at once."""
    issue = np.int64(r.ISSUE + t)
    if unit < 0:
        return issue
    agent = r.UNIT + t * r.UNITS + unit
    raise_row(o.clocks[agent], o.clocks[issue], 0, r.PLAIN)
    for other in range(THREADS):  # a unit works in the order in which words reach it
        if other != t:
            reached = o.clocks[issue, r.REACHED + other * r.UNITS + unit]
            reach(o.clocks[agent], r.UNIT + other * r.UNITS + unit, reached)
    o.clocks[agent, agent] += 1
    o.clocks[issue, r.REACHED + t * r.UNITS + unit] = o.clocks[agent, agent]
    return agent


@njit
def passes(o: Any, t: Any) -> None:
    """A word passes the thread's wait: it comes after everything that the wait names."""
    issue = np.int64(r.ISSUE + t)
    conditions, semaphores = o.wait[t, 1], o.wait[t, 2]
    o.wait[t, 0] = 0
    for bit, unit in _CONDITIONS:
        if conditions >> bit & 1:
            join_agent(o, issue, r.UNIT + t * r.UNITS + unit)
    if conditions & TRISC_CONFIG or semaphores:  # stores before such a wait are long done
        for c in (np.int64(0), np.int64(t + 1)):
            reached = o.clocks[issue, r.REACHED_STORES + c]
            o.epoch[issue] += reach(o.clocks[issue], r.STORES + c, reached)
    for i in range(8):
        if semaphores >> i & 1:
            take(o, issue, np.int64(i), o.wait[t, 3])


# Semaphores


@njit
def _behind(o: Any, agent: Any, i: Any, gets: Any, n: Any) -> None:
    """`agent` comes after the first `n` posts or gets; each comes after the earlier ones."""
    count = o.sem_count[i, gets]
    n = min(n, count)
    if n > max(count - r.POSTS, 0):
        known = o.sem_clock[i, gets, (n - 1) % r.POSTS]
        join(o, agent, known, known)


@njit
def take(o: Any, agent: Any, i: Any, condition: Any) -> None:
    """A SEMWAIT was passed: `agent` comes after as many posts or gets as the wait needs."""
    join(o, agent, o.sem_base[i], o.sem_base[i])
    who, free = owner(agent), np.int64(0)
    if condition & SEM_ZERO:  # one post more than there were gets
        least = max(o.sem_count[i, 1] + 1 - o.sem_start[i, 0], 0)
        free = np.int64(least == 0)
        _behind(o, agent, i, 0, least)
    if condition & SEM_FULL:
        least = max(o.sem_count[i, 0] + o.sem_start[i, 0] - o.sem_start[i, 1] + 1, 0)
        _behind(o, agent, i, 1, least)
    if condition & (SEM_ZERO | SEM_FULL):
        o.taken[who] = 1 + i + 8 * free
    o.dst_word[who, 1] = o.dst_word[who, 0]
    acquired(o, agent)


@njit
def sem_init(o: Any, agent: Any, i: Any, value: Any, most: Any) -> None:
    """SEMINIT."""
    clear(o.sem_base[i])
    save(o, o.sem_base[i], agent)
    o.sem_start[i, 0], o.sem_start[i, 1] = value, most
    copy(o.sem_init[i], 0, o.step, 0, 6)
    o.sem_count[i, 0] = o.sem_count[i, 1] = 0
    released(o, agent, np.int64(0))


@njit
def sem_change(o: Any, agent: Any, i: Any, gets: Any) -> None:
    """A semaphore is posted, or taken."""
    count = o.sem_count[i, gets]
    vector = o.sem_clock[i, gets, count % r.POSTS]
    if count:
        copy(vector, 0, o.sem_clock[i, gets, (count - 1) % r.POSTS], 0, r.PLAIN + o.columns[0])
    else:
        clear(vector)
    save(o, vector, agent)
    o.sem_count[i, gets] = count + 1
    released(o, agent, np.int64(0))


@njit
def sem_seen(o: Any, agent: Any, i: Any) -> None:
    """A core has read a semaphore's value."""
    join(o, agent, o.sem_base[i], o.sem_base[i])
    _behind(o, agent, i, 0, o.sem_count[i, 0])
    _behind(o, agent, i, 1, o.sem_count[i, 1])
    acquired(o, agent)


# Everything else that synchronizes, by a name of its own


@njit
def named(o: Any, name: Any) -> Any:
    """The vector of a name; when there are too many names, some share one."""
    i = (name * 0x9E3779B1 >> 7) % r.NAMES
    for _ in range(16):
        if o.object_name[i] == 0:
            o.object_name[i] = name
        if o.object_name[i] == name:
            break
        i = (i + 1) % r.NAMES
    return o.object[i]


@njit
def release(o: Any, agent: Any, name: Any) -> None:
    """An agent that acquires `name` later comes after what `agent` has done."""
    save(o, named(o, name), agent)
    released(o, agent, name)


@njit
def acquire(o: Any, agent: Any, name: Any) -> None:
    """`agent` comes after all releases of `name` so far."""
    join(o, agent, named(o, name), named(o, name))
    looked = o.looked[owner(agent)]
    for i in range(r.LOOKED):
        if looked[i] == name or looked[i] == 0:
            looked[i] = name
            break
    acquired(o, agent)


@njit
def acquired(o: Any, agent: Any) -> None:
    """An agent has waited for another one, or read what another one has set."""
    who = owner(agent)
    o.waited[who] = 1
    o.acquired[who] = o.clocks[who, who]
    o.plain_epoch[who] += 1


@njit
def released(o: Any, agent: Any, name: Any) -> None:
    """An agent has let others go on: a post, a store to a flag."""
    who = owner(agent)
    given = o.release[who, o.releases[who] % r.RELEASED]
    given[0], given[6] = o.clocks[who, who], name
    copy(given, 1, o.step, 1, 5)
    o.releases[who] += 1
    acts(o, who, 1)
    o.waited[who] = 0
    seen(o, who)
