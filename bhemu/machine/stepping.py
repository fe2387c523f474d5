"""Running a machine piece by piece, by one of its tiles: breakpoints, steps, Tensix words."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.jit import Later
from bhemu.machine.breakpoints import Breakpoint, Breakpoints, code_places
from bhemu.machine.run import RunLoop, count_to
from bhemu.machine.stop import Stop, Until, now, stop
from bhemu.machine.watchpoints import ACCESS, ReadWatch, Watchpoint, Watchpoints, dram_place, spans
from bhemu.memmap import CORE_NAMES
from bhemu.program.coordinates import At
from bhemu.tensix.state import BLOCKED, CORES, HELD, RUNNING

if TYPE_CHECKING:
    from bhemu.machine import error_text
    from bhemu.machine.core import Core
    from bhemu.machine.tile import Tile
    from bhemu.machine.word_text import Entry, TracedWord
else:
    error_text = Later("bhemu.machine.error_text")

RA, SP = 1, 2
_JAL, _JALR = 0x6F, 0x67


class Stepping:
    """What a debugger does with one tile, while the whole machine runs.

    The schedule is that of one long run. `seen`: the retired count of a core at the stop that the
    user has seen.
    """

    traced: list[TracedWord] = []  # the words of the last trace, complete even if that failed

    def __init__(self, tile: Tile, loop: RunLoop) -> None:
        self._own_tile, self.loop = weakref.ref(tile), loop
        self.points = Breakpoints(tile.state, loop.numbers)
        self.watched = Watchpoints(tile.state, loop.numbers)
        self.seen: dict[int, int] = {}
        self._reading = ReadWatch(tile, self.watched)

    @property
    def tile(self) -> Tile:
        """The tile, which holds this object: it is there as long as something runs."""
        tile = self._own_tile()
        assert tile is not None
        return tile

    def run(self, until: Until = None, limit: int | None = None) -> Stop:
        """Run the machine as seen through this tile; see RunLoop.run."""
        return self.loop.run(until, limit, view=self.tile)

    def forget(self) -> None:
        """The tile was reset: its breakpoints are gone."""
        self.seen.clear()
        self.points.delete(None)
        self.watched.delete(None)
        self._reading.follow()

    # Stops that a user sees

    def leave_breakpoints(self) -> None:
        """A core that was seen standing on a breakpoint leaves it first."""
        for core, retired in self.seen.items():
            if self.tile.state.retired[core] == retired:
                self.points.skip(core)

    def acknowledge(self, core: int) -> None:
        """The user was shown where `core` stands."""
        self.seen[core] = int(self.tile.state.retired[core])

    def user_visible(self, reached: Stop) -> Stop | None:
        """A stop with the number of its breakpoint; None for one that is to be passed."""
        tile, s = self.tile, self.tile.state
        conditions = self.loop.conditions
        if reached.reason == "watchpoint":
            change = self.watched.change(tile, int(s.agent[0]))
            found = stop(tile, reached.reason, change=change)
            return found if conditions.stops(change.watchpoint.number, tile) else None
        if reached.reason != "breakpoint":
            return reached
        number, s.word_break_hit[0] = int(s.word_break_hit[0]), 0
        if number:
            where = error_text.where_thread(tile, int(s.status_thread[0]))
            found = Stop(reached.reason, where, now(s), number)
            return found if conditions.stops(number, tile) else None
        core = int(s.agent[0])
        # An access that had to wait is repeated: the same instruction reaches its breakpoint
        # again without having been executed.
        if self.seen.get(core) == s.retired[core]:
            self.points.skip(core)
            return None
        self.acknowledge(core)
        pc = int(s.pc[core])
        point = self.points.at(core, pc)
        if point is None:
            return stop(tile, "breakpoint")
        wanted = conditions.stops(point.number, tile)
        if wanted or (core, pc) in self.points.visited:
            return stop(tile, "breakpoint", point.number)
        self.points.skip(core)
        return None

    # Breakpoints

    def break_at(self, core: Core, place: At) -> Breakpoint:
        """Stop before the instruction at `place`: an address, a function or FILE:LINE."""
        first, *others = (one.address for one in code_places(self.tile, core, place, own=True))
        return self.points.add(core.index, first, str(place), tuple(others))

    def watch(self, core: Core, place: str, access: str = "w") -> Watchpoint:
        """Stop after the instruction or Tensix word that changes or reads `place`."""
        arguments.choice("access", access, ACCESS)
        if (dram := dram_place(place)) is not None:
            return self.watched.add_dram(place, dram, ACCESS[access])
        point = self.watched.add(place, spans(self.tile, core.name, place), ACCESS[access])
        self._reading.follow()
        return point

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those of the breakpoints and watchpoints."""
        return (*self.points.points, *self.points.words, *self.watched.points)

    def delete(self, number: int | None) -> None:
        """Remove a breakpoint or watchpoint, or all of them."""
        for each in self.numbers if number is None else (number,):
            self.loop.conditions.forget(each)
        if number not in self.watched.points:
            self.points.delete(number)
        if number is None or number in self.watched.points:
            self.watched.delete(number)
            self._reading.follow()

    def stopped_core(self, reached: Stop) -> str | None:
        """Name of the core that a breakpoint stopped."""
        agent = int(self.tile.state.agent[0])
        word = reached.where is not None and reached.where.thread is not None
        at_core = reached.reason == "breakpoint" and not word and agent < CORES
        return CORE_NAMES[agent] if at_core else None

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        """No breakpoint or watchpoint of this tile stops anything."""
        s = self.tile.state
        watched = int(s.watch_count[0])
        s.watch_count[0] = 0
        try:
            with self.points.suspended():
                yield
        finally:
            s.watch_count[0] = watched

    # RISC-V instructions

    def _can_step(self, core: int) -> bool:
        return int(self.tile.state.core_state[core]) in (RUNNING, BLOCKED)

    def _check_steps(self, core: Core) -> None:
        if self.loop.error is not None:
            raise copy.copy(self.loop.error)
        if core.state == "reset":
            raise InputError(
                f"{core.name} is in reset", hint="break or continue until another core releases it"
            )
        if not self._can_step(core.index):
            raise InputError(f"{core.name} is {core.state}: it executes nothing more")

    def step(self, core: Core, n: int = 1, hold: bool = False) -> Stop:
        """Until `core` has retired `n` more, or executes nothing more; `hold` freezes the others.

        The reason is "until" when the core executes nothing more.
        """
        self.loop.check_not_running("step")
        self._check_steps(core)
        s = self.tile.state
        with self._held(core.index if arguments.flag("hold", hold) else None):
            s.retired_limit[core.index] = count_to("n", int(s.retired[core.index]), n)
            try:
                reached = self.run(lambda _: not self._can_step(core.index))
            finally:
                s.retired_limit[core.index] = -1
        self.acknowledge(core.index)
        return reached

    @contextmanager
    def _held(self, core: int | None) -> Iterator[None]:
        """Every running core but `core` stands still; with None all go on."""
        s = self.tile.state
        others = [c for c in range(CORES) if core not in (None, c) and self._can_step(c)]
        before = s.core_state[others].copy()
        s.core_state[others] = HELD
        try:
            yield
        finally:
            s.core_state[others] = before

    # Places reached with temporary breakpoints

    def run_to(
        self, core: Core, addresses: Sequence[int], arrived: Callable[[], bool] = lambda: True
    ) -> Stop:
        """Until `core` is at one of `addresses` and `arrived()`; any other stop ends it too."""
        self.loop.check_not_running("run_to")
        with self.points.temporary(core.index, addresses):
            self.acknowledge(core.index)
            while True:
                reached = self.run()
                mine = reached.reason == "breakpoint" and self.tile.state.agent[0] == core.index
                if not mine or core.pc not in addresses:
                    return reached
                if arrived() or self.points.at(core.index, core.pc):
                    return reached

    def next(self, core: Core) -> Stop:
        """One instruction; a call runs until it has returned."""
        self._check_steps(core)
        if not is_call(self.tile.read32(core.pc)):
            return self.step(core)
        stack = int(core.regs[SP])
        return self.run_to(core, [core.pc + 4], lambda: int(core.regs[SP]) >= stack)

    def finish(self, core: Core) -> Stop:
        """Until the function that `core` is in has returned (at its `ret`, then one step)."""
        self._check_steps(core)
        name, low, high = core.function(core.pc)
        from bhemu.riscv.assembly import RET

        returns = [pc for pc in range(low, high, 4) if self.tile.read32(pc) == RET]
        if not returns:
            raise InputError(f"{name} has no ret", hint="until ADDRESS")
        if core.pc not in returns:
            stack = int(core.regs[SP])
            reached = self.run_to(core, returns, lambda: int(core.regs[SP]) >= stack)
            if core.pc not in returns:
                return reached
        return self.step(core)

    # Tensix words

    def tstep(self, thread: int, n: int = 1) -> Stop:
        """Until `thread` has executed `n` more Tensix words, whatever breakpoints cores reach.

        With n = 0: until a word stands at its gate.
        """
        self.loop.check_not_running("tstep")
        s = self.tile.state
        target = count_to("n", int(s.executed[thread]), n)
        s.executed_limit[thread] = target
        try:
            with self.points.suspended():
                return self.run((lambda _: int(s.executed[thread]) >= target) if n else "idle")
        finally:
            s.executed_limit[thread] = -1

    def tnext(self, thread: int) -> Stop:
        """One pushed Tensix word with everything that MOP or REPLAY expands it to."""
        s = self.tile.state
        while True:
            taken, done = int(s.fifo_read[thread]), int(s.executed[thread])
            reached = self.tstep(thread, 1)
            expanding = s.mop_on[thread] or s.play_left[thread] or s.gate_full[thread]
            over = int(s.fifo_read[thread]) != taken or not expanding
            if over or int(s.executed[thread]) == done or reached.reason not in ("step", "until"):
                return reached

    @contextmanager
    def recording(self) -> Iterator[list[Entry]]:
        """A list that holds the words executed within the context, once that is over."""
        tile, s = self.tile, self.tile.state
        tile.drain_log()
        traced, log = int(s.trace[0]), tile.log
        entries: list[Entry] = []
        tile.log = entries
        s.trace[0] = 1
        try:
            yield entries
        finally:
            s.trace[0] = traced
            tile.drain_log()
            tile.log = log
            log.extend(entries if traced else ())

    def trace(self, limit: int | None = None) -> Stop:
        """Run as run() does, or until `limit` words were executed; they are in `traced`."""
        self.loop.check_not_running("trace")
        from bhemu.machine.word_text import Places

        s, places = self.tile.state, Places(self.tile)
        first = int(s.executed.sum())
        if limit is not None:
            s.log_end[0] = int(s.log_write[0]) + arguments.integer("limit", limit, 1)
        self.traced = []
        try:
            with self.recording() as entries:
                return self.run()
        finally:
            s.log_end[0] = -1
            self.traced = [places.word(first + i, entry) for i, entry in enumerate(entries)]


def is_call(word: int) -> bool:
    """jal or jalr that leaves a return address in ra."""
    return word & 0x7F in (_JAL, _JALR) and (word >> 7) & 31 == RA
