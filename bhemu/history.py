"""Going back: marks that a tile leaves behind while it runs, and the moments between them.

A run repeats exactly, so any moment is a mark restored and run on. A moment is named by the clock,
which grows by one with every instruction and Tensix word.
"""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import arguments, snapshot
from bhemu.core import Core
from bhemu.errors import BhemuError, InputError
from bhemu.jit.record import PAGE
from bhemu.machine.runner import Runner
from bhemu.machine.stepping import Machine, is_call
from bhemu.machine.stop import Stop, now
from bhemu.parts import TilePart
from bhemu.program.symbols import Symbols
from bhemu.riscv.asm import RET
from bhemu.tensix.state import DTYPE

EVERY = 1 << 20  # clock units between two marks, at first
MOST = 64  # marks; beyond that every second one is dropped
_WINDOW, _WIDER = 2000, 8  # how far back reverse_continue looks at first, and how that grows
_STOPS = ("breakpoint", "watchpoint")
_ZEROS = bytes(PAGE)


@dataclass(frozen=True)
class Mark:
    """A moment that can be restored: pages of the record, shared with the mark before.

    `changed`: the host has changed something at this clock, so that no run arrives here.
    """

    clock: int
    retired: tuple[int, ...]
    executed: tuple[int, ...]
    pages: tuple[bytes, ...]
    about: dict[str, Any]
    images: tuple[Symbols, ...]
    error: BhemuError | None
    changed: bool

    def snapshot(self) -> snapshot.Snapshot:
        """The tile's state at that moment."""
        buffer = np.frombuffer(bytearray().join(self.pages), np.uint8)
        return snapshot.of_record(buffer, self.about, self.images, self.error)


def _pages(buffer: npt.NDArray[np.uint8], last: Mark | None) -> tuple[bytes, ...]:
    """The pages of a record; those that `last` has too are the same objects, and all zeros one."""
    rows = buffer.view(np.uint64).reshape(-1, PAGE // 8)
    if last is None:
        return tuple(row.tobytes() if row.any() else _ZEROS for row in rows)
    before = np.frombuffer(b"".join(last.pages), np.uint64).reshape(rows.shape)
    differ = (rows != before).any(axis=1)
    return tuple(
        row.tobytes() if new else old
        for row, new, old in zip(rows, differ, last.pages, strict=True)
    )


def mark_of(tile: TilePart, machine: Runner, last: Mark | None, *, changed: bool = False) -> Mark:
    """A tile as it stands; what is the same as in `last` is shared with it."""
    s = tile.state
    buffer = snapshot.whole_record(tile)
    record = buffer.view(DTYPE)
    for name in snapshot.HOSTS:
        record[name] = 0
    about, images = snapshot.outside(tile, machine, {"seed": 0, "poison": None})
    return Mark(
        now(s),
        tuple(int(n) for n in s.retired),
        tuple(int(n) for n in s.executed),
        _pages(buffer, last),
        about,
        images,
        machine.error,
        changed,
    )


class History:
    """The past of a tile since this object was made (Tile.keep_history).

    hint: what to do where something lies before it.
    """

    hint = "keep a history from the launch on"

    def __init__(self, tile: TilePart, machine: Machine, every: int = EVERY) -> None:
        self._own_tile = weakref.ref(tile)
        self._machine = weakref.ref(machine)
        self._every = arguments.integer("every", every, 1)
        self._marks: list[Mark] = []
        self._left: Mark | None = None  # how the last run left the tile
        self._last = now(tile.state)  # the latest clock that was reached
        self._replaying = False
        self._add(self._mark())

    @property
    def tile(self) -> TilePart:
        """The tile."""
        tile = self._own_tile()
        assert tile is not None
        return tile

    @property
    def machine(self) -> Machine:
        """Its run loop."""
        machine = self._machine()
        assert machine is not None
        return machine

    @property
    def first(self) -> int:
        """The earliest clock that can be gone to."""
        return self._marks[0].clock

    def __repr__(self) -> str:
        last, marks = max(self._last, now(self.tile.state)), len(self._marks)
        return f"<History of clock {self.first} to {last}, {marks} marks>"

    # Told by the run loop

    def run_begins(self) -> None:
        """A run begins: what a host has changed since the last one is a moment too."""
        if self._replaying:
            return
        mark = self._look()
        if self._left is None or mark.pages != self._left.pages:
            self._keep(lambda old: old.clock <= mark.clock)
            self._add(self._mark(changed=True))
            return
        # What a host had changed later is not done again by this run.
        others = [old.clock for old in self._marks if old.changed and old.clock > mark.clock]
        if others:
            self._keep(lambda old: old.clock < others[0])

    def _keep(self, which: Callable[[Mark], bool]) -> None:
        """Forget the other marks, and what was after them."""
        self._marks = [mark for mark in self._marks if which(mark)]
        self._last = max(now(self.tile.state), self._marks[-1].clock)

    def run_pauses(self) -> None:
        """Between two pieces of a run."""
        if not self._replaying and now(self.tile.state) - self._marks[-1].clock >= self._every:
            self._add(self._mark())

    def run_ended(self) -> None:
        """The user sees the tile."""
        if not self._replaying:
            self._left = self._look()
            self._last = max(self._last, self._left.clock)

    def put_back(self) -> None:
        """What was before is no past of what is on the tile now."""
        if not self._replaying:
            self._marks, self._left = [], None
            self._last = now(self.tile.state)
            self._add(self._mark())

    def _add(self, mark: Mark) -> None:
        if self._marks and mark.clock < self._marks[-1].clock:
            return  # a part of the past is run again
        self._marks.append(mark)
        if len(self._marks) > self._most():
            del self._marks[1:-1:2]
            self._every *= 2

    def _newest(self) -> Mark | None:
        return self._marks[-1] if self._marks else None

    def _most(self) -> int:
        """Marks that are kept."""
        return MOST

    def _look(self) -> Mark:
        """What a host may change between two runs, as it stands."""
        return self._mark()

    def _mark(self, *, changed: bool = False) -> Mark:
        last = self._left or self._newest()
        return mark_of(self.tile, self.machine, last, changed=changed)

    # Moments

    def _restore(self, mark: Mark) -> None:
        snapshot.restore(self.tile, self.machine, mark.snapshot())
        self.machine.seen.clear()

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """What runs within is the past once more."""
        self.machine.check_idle("going back")
        self._replaying = True
        self.machine.conditions.counting = False
        try:
            yield
        finally:
            self._replaying = False
            self.machine.conditions.counting = True
            self._left = self._look()

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        """Nothing stops for breakpoints and watchpoints."""
        s = self.tile.state
        watched = int(s.watch_count[0])
        s.watch_count[0] = 0
        try:
            with self.machine.points.suspended():
                yield
        finally:
            s.watch_count[0] = watched

    def _latest(self, before: Callable[[Mark], bool], what: str) -> Mark:
        found = [mark for mark in self._marks if before(mark)]
        if not found:
            raise InputError(
                f"{what} lies before the history, which begins at clock {self.first}",
                hint=self.hint,
            )
        return found[-1]

    def to(self, clock: int) -> None:
        """To `clock` from the nearest mark; never from here, which a host may have changed."""
        self._restore(self._latest(lambda mark: mark.clock <= clock, f"clock {clock}"))
        ahead = clock - now(self.tile.state)
        if ahead > 0:
            with self.unobserved():
                self.machine.run("idle", limit=ahead)

    def goto(self, clock: int) -> Stop:
        """To the moment at which the clock was `clock`, or will be; nothing stops on the way."""
        clock = arguments.integer("clock", clock)
        with self.replaying():
            self.to(min(clock, self._last))
        if clock <= self._last:
            return self._arrived()
        with self.unobserved():
            return self.machine.run("idle", limit=clock - self._last)

    def _arrived(self) -> Stop:
        return Stop("step", None, now(self.tile.state))

    def reverse_step(self, core: Core, n: int = 1) -> Stop:
        """To where `core` had retired `n` instructions fewer."""
        target = self.tile.state.retired[core.index] - arguments.integer("n", n, 1)
        with self.replaying():
            self.back_to(core, int(target))
        return self._arrived()

    def before(self, core: Core, target: int) -> None:
        """To where `core` had retired `target` instructions, or to the beginning of the history."""
        self.back_to(core, max(target, self._marks[0].retired[core.index]))

    def back_to(self, core: Core, target: int) -> None:
        """To where `core` had retired `target` instructions, at or before this moment."""
        c, here = core.index, now(self.tile.state)

        def at(mark: Mark) -> int:
            return mark.retired[c]

        what = f"the place before instruction {target + 1} of {core.name}"
        mark = self._latest(lambda m: at(m) <= target and m.clock <= here, what)
        earlier = [m for m in self._marks if at(m) < target]
        self._restore(earlier[-1] if at(mark) == target and earlier else mark)
        with self.unobserved():
            self.forward(core, target - int(self.tile.state.retired[c]))

    def forward(self, core: Core, n: int) -> None:
        """Until `core` has retired `n` more instructions of the past."""
        s, c = self.tile.state, core.index
        if n <= 0:
            return
        s.retired_limit[c] = int(s.retired[c]) + n
        try:
            self.machine.run("idle")
        finally:
            s.retired_limit[c] = -1

    def reverse_tstep(self, thread: int, n: int = 1) -> Stop:
        """To where Tensix thread `thread` had executed `n` words fewer."""
        target = int(self.tile.state.executed[thread]) - arguments.integer("n", n, 1)
        here = now(self.tile.state)
        what = f"the place before word {target + 1} of T{thread}"
        with self.replaying():
            mark = self._latest(lambda m: m.executed[thread] <= target and m.clock <= here, what)
            self._restore(mark)
            ahead = target - int(self.tile.state.executed[thread])
            if ahead > 0:
                with self.unobserved():
                    self.machine.tstep(thread, ahead)
        return self._arrived()

    def reverse_continue(self) -> Stop:
        """To the last stop at a breakpoint or watchpoint before now, else to the beginning."""
        return self._back_to_stop(now(self.tile.state))

    def last_stop(self) -> Stop:
        """As reverse_continue; a stop at this very moment counts too."""
        return self._back_to_stop(now(self.tile.state) + 1)

    def _back_to_stop(self, end: int) -> Stop:
        with self.replaying():
            window = _WINDOW
            while end > self.first:
                begin = max(end - window, self.first)
                self.to(begin)
                found = self._last_stop(end)
                if found is not None:
                    return found
                end, window = begin, window * _WIDER
            self._restore(self._marks[0])
        return self._arrived()

    def _last_stop(self, end: int) -> Stop | None:
        """From here to the last stop before clock `end`; None when there is none."""
        here = self._mark()
        count = sum(1 for _ in self._stops(end))
        if not count:
            return None
        self._restore(here)
        stops = self._stops(end)
        return [next(stops) for _ in range(count)][-1]

    def _stops(self, end: int) -> Iterator[Stop]:
        while now(self.tile.state) < end:
            try:
                stop = self.machine.run("idle", limit=end - now(self.tile.state))
            except BhemuError:
                return  # the error that ended the run
            if stop.reason not in _STOPS or stop.clock >= end:
                return
            yield stop

    def reverse_next(self, core: Core) -> Stop:
        """One instruction back; a call that has returned is gone back over as a whole."""
        tile, c = self.tile, core.index
        after, stack = core.pc, int(core.regs[2])
        stop = self.reverse_step(core)
        if tile.read32(core.pc) != RET or not is_call(tile.read32(after - 4)):
            return stop
        with self._alone_at(c, after - 4):
            while True:
                stop = self.reverse_continue()
                at_call = core.pc == after - 4 and int(core.regs[2]) >= stack
                if stop.reason != "breakpoint" or at_call:
                    return stop

    @contextmanager
    def _alone_at(self, core: int, address: int) -> Iterator[None]:
        """The one place that stops anything."""
        with self.unobserved(), self.machine.points.temporary(core, [address]):
            yield
