"""Two accesses to one place, one of them a write, that nothing orders: found in a run step by step.

Two orders see every step of a walk: without and with units that work on after
their words have left the wait gate.
"""

import numpy as np

from bhemu.machine.tile import Tile
from bhemu.memmap import (
    DEBUG_BASE,
    INSTRN_BUF_BASE,
    INSTRN_BUF_END,
    L1_SIZE,
    LOCAL_BASE,
    MAILBOX_BASE,
    MAILBOX_END,
    PC_BUF_BASE,
    PC_BUF_END,
    PC_BUF_SEMAPHORES_END_OFFSET,
    PC_BUF_SEMAPHORES_OFFSET,
    PC_BUF_TTSYNC_OFFSET,
    RISCV_DEBUG_REG_SOFT_RESET_0,
    TENSIX_CFG_BASE,
    TENSIX_CFG_END,
)
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.riscv.isa.rv32i import TTINSN
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.insn import decode
from bhemu.tensix.state import RESET, RUNNING
from bhemu.why.order import HOST
from bhemu.why.order.conflicts import Conflict, Event
from bhemu.why.steps import Step, Word
from order_walk import effects
from order_walk.accesses import Shadow
from order_walk.effects import Range, Touched
from order_walk.looks import Look
from order_walk.polls import Polls
from order_walk.steps import Access, Executed, Taken
from order_walk.vector_clocks import Order

_MOST = 16  # conflicts of a run that are kept
_RESETS = DEBUG_BASE + RISCV_DEBUG_REG_SOFT_RESET_0


class Races:
    """Keeps the conflicts that one Order leaves unordered, from what a walk of `tile` tells."""

    def __init__(self, tile: Tile, polled: set[int], counters: set[int], *, units: bool) -> None:
        """counters: words that are read as if polled, before anybody has stored to them."""
        self.tile, self.order, self.polled = tile, Order(units), polled
        self._counters = counters
        self.found: list[Conflict] = []
        self.given: list[Range] = []  # words of L1 that the program is given: not 0
        self._shadow = Shadow()
        self._written = tile.state.fifo_write.copy()
        self._first = tile.state.fifo_write.copy()
        self._banks = tile.state.src_valid.copy()
        self._states = tile.state.core_state.copy()
        self._pairs: set[tuple[int, int, str]] = set()
        self._last: dict[tuple[int, bool, int], int] = {}
        self._config: dict[int, tuple[Event, int]] = {}  # by word, the last store of a core to it
        self._ends: set[int] = set()  # words of L1 that end the program
        self._polls: dict[int, tuple[int, Step]] = {}  # by core, its last load of a polled word
        self._macro: Word | None = None  # the last SFPLOADMACRO
        self.looks = Polls(tile.state.l1)

    def conflicts(self) -> list[Conflict]:
        """Those that are no polling."""
        return [one for one in self.found if one.place & ~3 not in self.polled | self._counters]

    def ended(self, words: list[int], outputs: list[Range]) -> None:
        """The host sees the words that end the program, and reads its outputs."""
        numbers = [int(self._shadow.written[word : word + 4].max()) for word in words]
        seen = [event for n in numbers if (event := self._shadow.events[n]) is not None]
        self._ends = set(words)
        if not seen:
            return
        for event in seen:
            self.order.acquire_clock(HOST, event.vector)
        self._access(max(seen, key=lambda one: one.step.clock).step, HOST, outputs, write=False)

    # Accesses

    def _access(self, step: Step, agent: int, ranges: list[Range], write: bool) -> None:
        if not ranges:
            return
        event = self._event(step, agent, ranges[0][0], write)
        number = self._shadow.add(event)
        some = [(low, high) for low, high in ranges if low < high]
        if some:
            self._compare(event, some)
        table = self._shadow.written if write else self._shadow.readers(agent)
        for low, high in some:
            table[low:high] = number

    def _event(self, step: Step, agent: int, place: int, write: bool) -> Event:
        order = self.order
        owner = order.owner(agent)
        wait = order.waits[step.thread] if isinstance(step, Word) else None
        now, key = int(order.clocks[owner, owner]), (owner, write, effects.word_of(place))
        again = self._last.get(key, -1) >= int(order.acquired[owner])
        self._last[key] = now
        return Event(
            *(step, agent, int(order.clocks[agent, agent]), owner),
            *(now, write, bool(order.waited[owner])),
            None if wait is None else wait.step,
            order.push_clock[step.thread] if isinstance(step, Word) else 0,
            again,
            order.taken.get(owner),
            int(order.acquired[owner]),
            self._polls.get(step.core),
            order.clocks[agent].copy(),
        )

    def _stored_config(self, step: Executed, agent: int, access: Access) -> None:
        """Two cores store other values to one word: the last of them holds, whoever that is."""
        word = (access.address - TENSIX_CFG_BASE) // 4
        event = self._event(step, agent, effects.CONFIG + 32 * word, write=True)
        old, value = self._config.get(word, (event, access.value))
        self._config[word] = event, access.value
        if old.step.core != step.core and value != access.value:
            if not self.order.known(agent, old.agent, old.clock):
                bit = (value ^ access.value) & -(value ^ access.value)
                place = effects.CONFIG + 32 * word + bit.bit_length() - 1
                both = value & access.value
                clears = event if both == access.value else old if both == value else None
                self._keep(Conflict(place, old, event, self.order.units, clears=clears))

    def _compare(self, event: Event, ranges: list[Range]) -> None:
        if len(self.found) >= _MOST:
            return
        if event.write:
            for low, _ in ranges:
                if effects.kind(low) == "Config":
                    self._foreign(event, low)
        known = self.order.clocks[event.agent]
        for place, old in self._shadow.before(
            ranges,
            event.write,
            lambda old: old.agent == event.agent or old.clock <= known[old.agent],
        ):
            self._keep(Conflict(place, old, event, self.order.units))

    def _foreign(self, event: Event, place: int) -> None:
        """A thread or its core changes what the thread whose unit reads it has set."""
        owner, old = effects.thread_of(place), self._shadow.events[self._shadow.written[place]]
        if owner is None or old is None or old.thread != owner:
            return
        if event.thread not in (None, owner):
            self._keep(Conflict(place, old, event, self.order.units, foreign=True))

    def _keep(self, conflict: Conflict) -> None:
        pair = (_pushed(conflict.first.step), _pushed(conflict.second.step))
        key = (*pair, effects.kind(conflict.place))
        if key not in self._pairs and conflict.place & ~3 not in self.polled:
            self._pairs.add(key)
            self.found.append(conflict)

    # Instructions of cores

    def instruction(self, step: Executed, access: Access | None, found: Touched) -> None:
        """A core has executed an instruction, which touched these places."""
        if self._states[step.core] == RESET:
            self.order.start_from_outside(step.core)
            self._states[step.core] = RUNNING
        if (look := self.looks.ended(step)) is not None:
            self._acquire_l1(step.core, look)
        agent = self.order.core(step.core)
        pushes = access and INSTRN_BUF_BASE <= access.address < INSTRN_BUF_END
        if pushes or decode_riscv(step.word) is TTINSN:
            self._push(step.core)
        elif access is not None and not access.private:
            self._core_access(step, agent, access, found)
        self._states[self.tile.state.core_state == RESET] = RESET

    def _push(self, c: int) -> None:
        written = self.tile.state.fifo_write
        for t in np.flatnonzero(written != self._written):
            self.order.pushed(c, int(t))
        self._written[:] = written

    def _core_access(self, step: Executed, agent: int, access: Access, found: Touched) -> None:
        at, order, c = access.address, self.order, step.core
        if PC_BUF_BASE <= at < PC_BUF_END:
            self._pcbuf(step, agent, access)
            return
        if at < L1_SIZE:
            self._l1(step, agent, access, found)
        elif TENSIX_CFG_BASE <= at < TENSIX_CFG_END:
            if access.reads:
                order.flush_stores(c)
            self._access(step, order.stores(c), found.writes, write=True)
            if access.writes and access.size == 4:
                self._stored_config(step, order.stores(c), access)
        elif found.reads or found.writes:
            self._access(step, agent, found.reads, write=False)
            self._access(step, agent, found.writes, write=True)
        else:
            self._device(step, agent, access)

    def _device(self, step: Executed, agent: int, access: Access) -> None:
        order, at = self.order, access.address
        name: object = at & ~3
        if MAILBOX_BASE <= at < MAILBOX_END:
            name = ("mailbox", frozenset((step.core, at - MAILBOX_BASE >> 12)))
        if access.reads:
            order.acquire(agent, name)
        if access.writes:
            order.flush_stores(step.core)
            order.release(agent, step, name)
            if at == _RESETS:
                self._released(agent)

    def _released(self, agent: int) -> None:
        states = self.tile.state.core_state
        for c in np.flatnonzero((states != RESET) & (self._states == RESET)):
            self.order.start(agent, int(c))
        self._states[:] = states

    def _pcbuf(self, step: Executed, agent: int, access: Access) -> None:
        order, c = self.order, step.core
        offset = access.address - PC_BUF_BASE
        if c == 0 or offset < PC_BUF_TTSYNC_OFFSET:
            name = ("pcbuf", offset >> 16 if c == 0 else c - 1)
            if access.reads:
                order.acquire(agent, name)
            else:
                order.release(agent, step, name)
        elif PC_BUF_SEMAPHORES_OFFSET <= offset < PC_BUF_SEMAPHORES_END_OFFSET:
            self._semaphore(step, agent, access, offset - PC_BUF_SEMAPHORES_OFFSET >> 2)
        elif access.reads:
            if offset == PC_BUF_TTSYNC_OFFSET:
                order.drained(c, c - 1)
            order.flush_stores(c)

    def _semaphore(self, step: Executed, agent: int, access: Access, i: int) -> None:
        if access.reads:
            self.order.sem_seen(agent, i)
        elif access.value & 1:
            self.order.sem_get(agent, step, i)
        else:
            self.order.sem_post(agent, step, i)

    def _l1(self, step: Executed, agent: int, access: Access, found: Touched) -> None:
        word, polled = access.address & ~3, access.address & ~3 in self.polled
        if polled and access.reads:
            self._polls[step.core] = word, step
            self._poll(step, agent, word)
        elif not polled:
            self._access(step, agent, found.reads, write=False)
        if access.writes:
            self.looks.stores.append((word, int(self.order.clocks[agent, agent]), step))
            self._access(step, agent, found.writes, write=True)
            if (event := self._shadow.events[-1]) is not None and found.writes:
                self.looks.stored(access, event)
            if polled:
                self.order.release(agent, step, ("L1", word))

    def _acquire_l1(self, core: int, look: Look) -> None:
        """What wrote the value that a poll needed is before the core that has read it."""
        last = self._shadow.events[int(self._shadow.written[look.word : look.word + 4].max())]
        least = self.looks.least(look, last, self.order.clocks[core])
        if least is last:
            self._acquire_all(core, look.word)
            return
        self.order.looked[core].add(("L1", look.word))
        if least is not None:
            self.order.acquire_clock(core, least.vector)

    def _poll(self, step: Executed, agent: int, word: int) -> None:
        self.looks.begin(step, word)

    def _acquire_all(self, agent: int, word: int) -> None:
        """What wrote the word last is before the core that has read it."""
        self.order.acquire(agent, ("L1", word))
        event = self._shadow.events[int(self._shadow.written[word : word + 4].max())]
        if event is not None:
            self.order.acquire_clock(agent, event.vector)

    # Tensix words

    def word(self, step: Taken, found: Touched) -> None:
        """A word has executed, which touched these places."""
        order, t = self.order, step.thread
        cls = decode(step.word)
        if cls is None:  # what a macro of the vector unit schedules
            return
        self._hand_back(cls.unit, t)
        agent = order.word(step, step.index - 1 - int(self._first[t]))
        values = cls.operands(step.word)
        if cls.name == "SFPLOADMACRO":
            self._macro = step
        if cls.unit == "sync":
            self._sync(step, agent, cls.name, values)
        atomic = cls.stores() == "atomic"
        if atomic:
            order.acquire(agent, "atomic")
        early = [
            one for one in found.reads
            if effects.kind(one[0]) == "Config"
            and effects.is_early(step.word, (one[0] - effects.CONFIG) % (32 * CONFIG_WORDS))
        ]  # fmt: skip
        self._access(step, order.issue(t), early, write=False)
        late = [one for one in found.reads if one not in early]
        self._access(step, agent, late, write=False)
        if self._macro is not None and found.stored:
            vector = order.unit(self._macro.thread, "vector")
            self._access(self._macro, vector, found.stored, write=True)
        self._access(step, agent, found.writes, write=True)
        if atomic:
            order.release(agent, step, "atomic")
        if cls.name == "STOREREG":
            order.release(order.issue(t), step, LOCAL_BASE + 4 * values["reg_addr"])
        self._hand_over(agent)

    def _hand_back(self, unit: str, t: int) -> None:
        """A word that unpacks or computes is behind those that gave it the banks."""
        order = self.order
        if unit in ("unpack", "matrix"):
            for u in (0, 1):
                order.acquire_quietly(order.issue(t), ("bank", u, unit))

    def _hand_over(self, agent: int) -> None:
        valid = self.tile.state.src_valid
        for u, bank in zip(*np.nonzero(valid != self._banks), strict=True):
            to = "matrix" if valid[u, bank] else "unpack"
            self.order.release_quietly(agent, ("bank", int(u), to))
        self._banks[:] = valid

    def _sync(self, step: Word, agent: int, name: str, values: dict[str, int]) -> None:
        order = self.order
        chosen = [i for i in range(8) if values.get("sem_sel", 0) >> i & 1]
        for i in chosen:
            if name == "SEMINIT":
                order.sem_init(agent, step, i, values["init_value"], values["max_value"])
            elif name == "SEMPOST":
                order.sem_post(agent, step, i)
            elif name == "SEMGET":
                order.sem_get(agent, step, i)
        if name == "ATGETM":
            order.acquire(agent, ("mutex", values["mutex_index"]))
        elif name == "ATRELM":
            order.release(agent, step, ("mutex", values["mutex_index"]))


def _pushed(step: Step) -> int:
    return step.pushed if isinstance(step, Word) else step.pc
