"""Who could have released a wait: threads by the words they hold, cores by what they can store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bhemu import memmap as mm
from bhemu.machine.hang.explore import Loop
from bhemu.machine.hang.stores import CodeStores, Stored, code_stores
from bhemu.tensix.insn import Effect, disassemble, effects
from bhemu.tensix.state import ASSERTED, BLOCKED, CORES, FIFO_DEPTH, HALTED, PARKED, RESET, THREADS

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile


_MOST = 4  # releasers named for one wait
_WIDTHS = {1: "byte ", 2: "half-word ", 4: ""}
_STATES = {
    RESET: "is in reset: nobody has released it",
    BLOCKED: "is blocked itself",
    PARKED: "has parked",
    ASSERTED: "stands on ebreak",
    HALTED: "is halted through its debug port",
}


@dataclass(frozen=True)
class Releaser:
    """One that could end a wait: who, by what, from where, and what it does at present.

    `able` is False for the only one that may, when nothing in its program would; `core` and `pc`:
    the instruction of `place`, where there is one.
    """

    who: str
    how: str
    place: str
    state: str
    able: bool = True
    core: int | None = None
    pc: int | None = None

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        if not self.able:
            return f"only {self.who} may release it, which {self.how}; it {self.state}{at}"
        return f"could have been released by {self.who} ({self.how}{at}), which {self.state}"


@dataclass(frozen=True)
class Word:
    """A Tensix word that thread `thread` still holds, or that a core's program pushes to it."""

    word: int
    thread: int
    who: str
    how: str
    core: int
    pc: int


def thread_name(t: int) -> str:
    """As the wait-for graph writes it."""
    return f"thread T{t}"


class Agents:
    """A tile that stands still, looked at from all sides; programs are read once."""

    def __init__(self, tile: Tile, loops: Iterable[Loop]) -> None:
        self.tile, self.s = tile, tile.state
        self.loops = {loop.core: loop for loop in loops}
        self._stores: dict[int, CodeStores] = {}

    def stores(self, core: int) -> CodeStores:
        """What the program of `core` can do."""
        if core not in self._stores:
            self._stores[core] = code_stores(self.tile, core)
        return self._stores[core]

    def place(self, core: int, pc: int) -> str:
        """`function+0x10 (file:line)` of a pc, or the pc; with the core's name."""
        name = self.tile.locate(core, pc)[0]
        source = self.tile.core[mm.CORE_NAMES[core]].source(pc)
        source = f" ({source})" if source else ""
        return f"{mm.CORE_NAMES[core]} pc 0x{pc:08X}" + (f" in {name}" if name else "") + source

    def core_state(self, core: int) -> str:
        """What a core does at present, as the end of "..., which "."""
        if core in self.loops:
            return "goes round in a loop itself"
        return _STATES.get(int(self.s.core_state[core]), "runs")

    def thread_state(self, t: int) -> str:
        """What a thread does at present."""
        return "is blocked itself" if self.s.gate_full[t] else "has no word to execute"

    # Tensix words

    def words(self) -> Iterator[Word]:
        """Every word that a thread holds or a program pushes, with who would bring it forward."""
        for t in range(THREADS):
            yield from self._held(t)
        for core in range(CORES - 1):
            for p in self.stores(core).pushes:
                who = mm.CORE_NAMES[core]
                yield Word(p.word, p.thread, who, "in its program", core, p.pc)

    def _held(self, t: int) -> Iterator[Word]:
        s, who = self.s, thread_name(t)
        if s.gate_full[t]:
            place = int(s.gate_core[t]), int(s.gate_pc[t])
            yield Word(int(s.gate_word[t]), t, who, "at its own gate", *place)
        for k in range(int(s.play_left[t])):
            i = (int(s.play_at[t]) + k) & 31
            place = int(s.gate_core[t]), int(s.replay_pc[t, i])
            yield Word(int(s.replay[t, i]), t, who, "in its replay buffer", *place)
        for i in range(2, 9) if s.mop_on[t] else ():
            place = int(s.mop_core[t]), int(s.mop_pc[t])
            yield Word(int(s.mop_live[t, i]), t, who, "in the MOP it expands", *place)
        for k in range(int(s.fifo_read[t]), int(s.fifo_write[t])):
            i = k % FIFO_DEPTH
            place = int(s.fifo_core[t, i]), int(s.fifo_pc[t, i])
            yield Word(int(s.fifo[t, i]), t, who, "queued behind its head", *place)

    def by_words(self, wanted: Effect) -> list[Releaser]:
        """Threads and cores that hold or push a word with this effect."""
        found: dict[str, Releaser] = {}
        places = set()
        for w in self.words():
            if w.who in found or (w.core, w.pc) in places or wanted not in effects(w.word):
                continue
            places.add((w.core, w.pc))  # a word that a thread holds is not still to be pushed
            thread = w.who == thread_name(w.thread)
            state = self.thread_state(w.thread) if thread else self.core_state(w.core)
            how = f"{disassemble(w.word)} {w.how}"
            place = self.place(w.core, w.pc)
            found[w.who] = Releaser(w.who, how, place, state, core=int(w.core), pc=int(w.pc))
        return list(found.values())[:_MOST]

    # Stores

    def by_stores(
        self, address: int, beside: int, size: int = 4, held: int | None = None
    ) -> list[Releaser]:
        """Cores other than `beside` whose program stores anything but `held` to those bytes."""
        found = []
        for core in range(CORES):
            if core == beside:
                continue
            for store in self.stores(core).storing(address, size):
                if held is None or store.changes(address, size, held):
                    found.append(self.store(core, store))
                    break
        return found[:_MOST]

    def store(self, core: int, store: Stored) -> Releaser:
        """The releaser behind one store instruction."""
        what = "" if store.value is None else f" of {store.value:#x}"
        how = f"{_WIDTHS[store.size]}store{what} to {store.address:#x}"
        place = self.place(core, store.pc)
        name, state = mm.CORE_NAMES[core], self.core_state(core)
        return Releaser(name, how, place, state, core=core, pc=int(store.pc))

    def core(self, core: int, how: str, *, able: bool = True) -> Releaser:
        """A core where it stands."""
        place = "" if self.s.core_state[core] == RESET else self.place(core, int(self.s.pc[core]))
        return Releaser(mm.CORE_NAMES[core], how, place, self.core_state(core), able)

    def thread(self, t: int) -> Releaser:
        """A thread with the word at its head."""
        s = self.s
        if not s.gate_full[t]:
            return Releaser(thread_name(t), "no word at its gate", "", self.thread_state(t))
        place = self.place(int(s.gate_core[t]), int(s.gate_pc[t]))
        how = f"{disassemble(int(s.gate_word[t]))} at its head"
        return Releaser(thread_name(t), how, place, self.thread_state(t))
