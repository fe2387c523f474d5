"""What is ordered in a run by synchronization, whatever the speed of its agents: vector clocks.

An agent is a core, the issue of a thread, one unit as a thread uses it, or the stores of a core to
Config or what it asks of the NoC, which are done some time after it has gone on. What orders them:
the program of each; a push and its word; TTSync; STALLWAIT for the units it names; semaphores,
counted; hand-overs of Src banks; mutexes; PCBuf, mailboxes and other device registers; words of L1
that a core polls; the release of a core. A plain `Order` takes everything as complete at once, as
the emulator executes it; with `units` it is complete once a STALLWAIT or a counter has said so.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.tensix import thread
from bhemu.tensix.insn import decode
from bhemu.tensix.state import CORES, THREADS
from bhemu.why.order import AGENTS, HOST, ISSUE, STORES, UNIT, UNIT_NAMES, UNITS
from bhemu.why.order.clocks import DRAINED, TRISC_CONFIG
from bhemu.why.order.observe import unit_of
from bhemu.why.steps import Step, Word

Clock = npt.NDArray[np.int64]
CONDITIONS = {
    0: "scalar", 1: "unpack0", 2: "unpack1", 3: "pack", 4: "matrix", 9: "mover", 11: "vector",
}  # fmt: skip


@dataclass
class Semaphore:
    """Who has posted and taken, in order, and what was known to whoever set it up."""

    base: Clock
    step: Step | None = None  # the SEMINIT
    value: int = 0
    most: int = 0
    posts: list[Clock] = field(default_factory=list)
    gets: list[Clock] = field(default_factory=list)


@dataclass
class Wait:
    """A wait instruction that a thread has issued and that no word it holds back has passed yet."""

    step: Step
    blocks: int
    conditions: int = 0
    semaphores: int = 0
    semaphore_condition: int = 0


def _issued(entry: tuple[int, Clock]) -> int:
    return entry[0]


class Order:
    """The clocks of all agents of a tile in a run that is walked.

    width: of a clock, where agents of other tiles are known too (conflicts.py).
    """

    def __init__(self, units: bool, width: int = AGENTS) -> None:
        self.units, self._width = units, width
        self.clocks = np.zeros((AGENTS, width), np.int64)
        self.waits: list[Wait | None] = [None] * THREADS
        self.taken: dict[int, int] = {}  # by agent, the semaphore waited for last
        self.push_clock = [0] * THREADS  # of the core, when it pushed what the thread executes
        self.waited = np.zeros(AGENTS, bool)  # acquired something since its last release
        self.acquired = np.zeros(AGENTS, np.int64)  # its own clock when it did
        self.releases: list[list[tuple[int, Step]]] = [[] for _ in range(AGENTS)]
        self.told: list[list[tuple[int, Any]]] = [[] for _ in range(AGENTS)]  # (clock, name)
        self.looked: list[set[Any]] = [set() for _ in range(AGENTS)]  # names that were acquired
        self._pushes: list[list[Clock]] = [[] for _ in range(THREADS)]
        self._semaphores = [Semaphore(np.zeros(width, np.int64)) for _ in range(8)]
        self._objects: dict[Any, Clock] = {}
        self._stores: list[list[tuple[int, Clock]]] = [[] for _ in range(CORES)]
        self._done = np.zeros((CORES, width), np.int64)  # of the words that a core has pushed
        # by unit and thread: (clock of the issue, clocks when that word is complete), in order
        self._units: dict[tuple[str, int], list[tuple[int, Clock]]] = {}

    # Agents

    def core(self, c: int) -> int:
        """The agent of a core, one event on."""
        self.clocks[c, c] += 1
        return c

    def stores(self, c: int) -> int:
        """The agent of a core's stores to Config."""
        if not self.units:
            return c
        agent = STORES + c
        np.maximum(self.clocks[agent], self.clocks[c], out=self.clocks[agent])
        self.clocks[agent, agent] += 1
        self._stores[c].append((int(self.clocks[c, c]), self.clocks[agent].copy()))
        return agent

    def flush_stores(self, c: int) -> None:
        """The core waits until its stores have taken place."""
        self._join(c, self.clocks[STORES + c])

    def issue(self, t: int) -> int:
        """The agent of a thread's issue."""
        return ISSUE + t

    def unit(self, t: int, name: str | None) -> int:
        """The agent of a unit as thread `t` uses it, which begins what the thread issues now."""
        issue = ISSUE + t
        if name is None or not self.units:
            return issue
        agent = UNIT + t * UNITS + UNIT_NAMES.index(name)
        np.maximum(self.clocks[agent], self.clocks[issue], out=self.clocks[agent])
        for other in range(THREADS):  # a unit works in the order in which words reach it
            queued = self._units.get((name, other), [])
            known = bisect_right(queued, int(self.clocks[issue, ISSUE + other]), key=_issued)
            if other != t and known:
                self._join(agent, queued[known - 1][1])
        self.clocks[agent, agent] += 1
        done = int(self.clocks[issue, issue]), self.clocks[agent].copy()
        self._units.setdefault((name, t), []).append(done)
        return agent

    def owner(self, agent: int) -> int:
        """The core or thread's issue that an agent works for."""
        if agent == HOST:
            return agent
        if agent >= STORES:
            return agent - STORES
        return ISSUE + (agent - UNIT) // UNITS if agent >= UNIT else agent

    def known(self, agent: int, other: int, clock: int) -> bool:
        """Whether what `other` did at its `clock` is before whatever `agent` does now."""
        return bool(clock <= self.clocks[agent, other])

    def _join(self, agent: int, clock: Clock) -> None:
        np.maximum(self.clocks[agent], clock, out=self.clocks[agent])

    # Threads

    def pushed(self, c: int, t: int) -> None:
        """Core `c` has pushed a word to thread `t`."""
        self._pushes[t].append(self.clocks[c].copy())

    def word(self, step: Word, index: int) -> int:
        """A word leaves the gate: the agent that executes it; it was the `index`-th pushed."""
        t = step.thread
        issue = ISSUE + t
        if 0 <= index < len(self._pushes[t]):
            self._join(issue, self._pushes[t][index])
            self.push_clock[t] = int(self._pushes[t][index][step.core])
            self._join_stores(issue, step.core, self.push_clock[t] - DRAINED)
        self.clocks[issue, issue] += 1
        cls = decode(step.word)
        wait = self.waits[t]
        if wait is not None and cls is not None and cls.stall_mask & wait.blocks:
            self._pass(t, wait)
        if cls is not None and cls.name in ("STALLWAIT", "SEMWAIT", "STREAMWAIT"):
            self._wait(step, cls.operands(step.word))
        agent = self.unit(t, unit_of(step.word))
        np.maximum(self._done[step.core], self.clocks[agent], out=self._done[step.core])
        return agent

    def _wait(self, step: Word, values: dict[str, int]) -> None:
        blocks = values["stall_res"] or thread.DEFAULT_BLOCKS
        wait = Wait(step, blocks)
        if "wait_res" in values:
            wait.conditions = values["wait_res"] or thread.DEFAULT_CONDITIONS
        elif "sem_sel" in values:
            wait.semaphores = values["sem_sel"]
            wait.semaphore_condition = values["wait_sem_cond"]
        self.waits[step.thread] = wait

    def _pass(self, t: int, wait: Wait) -> None:
        """A word that the wait holds back goes on: what it waited for is before it."""
        self.waits[t] = None
        issue = ISSUE + t
        for bit, name in CONDITIONS.items():
            if wait.conditions >> bit & 1:
                self._join(issue, self.clocks[UNIT + t * UNITS + UNIT_NAMES.index(name)])
        if wait.conditions & TRISC_CONFIG or wait.semaphores:
            for c in (0, t + 1):  # those behind a wait for somebody else are long done
                self._join_stores(issue, c, int(self.clocks[issue, c]))
        for i in range(8):
            if wait.semaphores >> i & 1:
                self._take(issue, i, wait)

    def _join_stores(self, issue: int, c: int, clock: int) -> None:
        """Behind the stores to Config that core `c` has made up to its `clock`."""
        stores = self._stores[c]
        known = bisect_right(stores, clock, key=_issued)
        if known:
            self._join(issue, stores[known - 1][1])

    def drained(self, c: int, t: int) -> None:
        """Core `c` has seen by TTSync that the words of thread `t` are executed."""
        self.flush_stores(c)
        for agent in (ISSUE + t, *range(UNIT + t * UNITS, UNIT + (t + 1) * UNITS)):
            self._join(c, self.clocks[agent])

    # Semaphores

    def _take(self, agent: int, i: int, wait: Wait) -> None:
        """What a SEMWAIT that was passed is known to be behind."""
        semaphore = self._semaphores[i]
        self._join(agent, semaphore.base)
        condition = wait.semaphore_condition
        posts, gets = len(semaphore.posts), len(semaphore.gets)
        if condition & 1:  # while zero: one post more than there were gets
            least = gets + 1 - semaphore.value
            self._join_first(agent, semaphore.posts, least)
            self.taken[agent] = i
        if condition & 2:  # while at its maximum
            least = posts + semaphore.value - semaphore.most + 1
            self._join_first(agent, semaphore.gets, least)
            self.taken[agent] = i
        self._acquired(agent)

    def _join_first(self, agent: int, clocks: list[Clock], n: int) -> None:
        """Behind the first `n` of them, each of which is behind those before it."""
        if n > 0 and clocks:
            self._join(agent, clocks[min(n, len(clocks)) - 1])

    def _append(self, clocks: list[Clock], agent: int) -> None:
        last = clocks[-1] if clocks else self.clocks[agent]
        clocks.append(np.maximum(last, self.clocks[agent]))

    def sem_init(self, agent: int, step: Step, i: int, value: int, most: int) -> None:
        """SEMINIT."""
        self._semaphores[i] = Semaphore(self.clocks[agent].copy(), step, value, most)
        self._released(agent, step)

    def sem_post(self, agent: int, step: Step, i: int) -> None:
        """One is added."""
        self._append(self._semaphores[i].posts, agent)
        self._released(agent, step)

    def sem_get(self, agent: int, step: Step, i: int) -> None:
        """One is taken."""
        self._append(self._semaphores[i].gets, agent)
        self._released(agent, step)

    def sem_seen(self, agent: int, i: int) -> None:
        """A core has read the value."""
        semaphore = self._semaphores[i]
        self._join(agent, semaphore.base)
        for clocks in (semaphore.posts, semaphore.gets):
            self._join_first(agent, clocks, len(clocks))
        self._acquired(agent)

    # Everything else that synchronizes, by a name of its own

    def release(self, agent: int, step: Step, name: Any) -> None:
        """Whoever acquires `name` from now on is behind what `agent` has done."""
        self.release_quietly(agent, name)
        owner = self.owner(agent)
        self.told[owner].append((int(self.clocks[owner, owner]), name))
        self._released(agent, step)

    def acquire(self, agent: int, name: Any) -> None:
        """Behind all releases of `name` so far."""
        self.acquire_quietly(agent, name)
        self.looked[self.owner(agent)].add(name)
        self._acquired(agent)

    def release_quietly(self, agent: int, name: Any) -> None:
        """As release, of what no program states by itself: a Src bank that changes hands."""
        held = self._objects.setdefault(name, np.zeros(self._width, np.int64))
        np.maximum(held, self.clocks[agent], out=held)

    def acquire_quietly(self, agent: int, name: Any) -> None:
        """As acquire, of the same."""
        held = self._objects.get(name)
        if held is not None:
            self._join(agent, held)

    def acquire_clock(self, agent: int, clock: Clock) -> None:
        """Behind a moment of another agent; the host's own clock goes on."""
        self.clocks[HOST, HOST] += agent == HOST
        self._join(agent, clock)
        self._acquired(agent)

    def _acquired(self, agent: int) -> None:
        owner = self.owner(agent)
        self.waited[owner] = True
        self.acquired[owner] = self.clocks[owner, owner]

    def _released(self, agent: int, step: Step) -> None:
        owner = self.owner(agent)
        self.releases[owner].append((int(self.clocks[owner, owner]), step))
        self.clocks[owner, owner] += 1
        self.waited[owner] = False

    def start(self, by: int, core: int) -> None:
        """Core `by` has released `core`, which takes longer to begin than a word of `by` to end."""
        self._join(core, self.clocks[by])
        self._join(core, self._done[by])

    def start_from_outside(self, core: int) -> None:
        """Another tile or the host has released `core`, and knows what this tile has done."""
        self._join(core, self.clocks.max(axis=0))
