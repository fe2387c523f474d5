"""Running a tile piece by piece: breakpoints, steps, calls stepped over, Tensix words."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.machine.breakpoints import Breakpoint, WordBreakpoint
from bhemu.machine.code import code_places
from bhemu.machine.reading import Reading
from bhemu.machine.runner import Runner, count_to
from bhemu.machine.stop import Stop
from bhemu.machine.traced import Entry, Places, TracedWord
from bhemu.machine.watching import ACCESS, Watchpoint, dram_place, spans
from bhemu.memmap import CORE_NAMES
from bhemu.parts import CorePart, TilePart
from bhemu.program.address import At
from bhemu.riscv.asm import RET
from bhemu.tensix import watch
from bhemu.tensix.state import BLOCKED, CORES, HELD, RUNNING

RA, SP = 1, 2
_JAL, _JALR = 0x6F, 0x67


class Machine(Runner):
    """The run loop with everything a debugger asks of it; the schedule is that of one long run."""

    traced: list[TracedWord] = []  # the words of the last trace, complete even if that failed

    def __init__(self, tile: TilePart) -> None:
        super().__init__(tile)
        self._reading = Reading(tile, self.watched)

    # Breakpoints

    def break_at(self, core: CorePart, place: At) -> Breakpoint:
        """Stop before the instruction at `place`: an address, a function or FILE:LINE."""
        first, *others = (one.address for one in code_places(self.tile, core, place, own=True))
        return self.points.add(core.index, first, str(place), tuple(others))

    def break_word(self, name: str, threads: tuple[int, ...], **fields: int) -> WordBreakpoint:
        """Stop before a thread executes a Tensix word of that name with these fields."""
        return self.points.add_word(name, threads, **fields)

    def watch(self, core: CorePart, place: str, access: str = "w") -> Watchpoint:
        """Stop after the instruction or Tensix word that changes or reads `place`."""
        arguments.choice("access", access, ACCESS)
        if (dram := dram_place(place)) is not None:
            return self.watched.add_dram(place, dram, ACCESS[access])
        point = self.watched.add(place, spans(self.tile, core.name, place), ACCESS[access])
        self._reading.follow()
        return point

    def delete(self, number: int | None) -> None:
        """Remove a breakpoint or watchpoint, or all of them."""
        self.conditions.forget(number)
        if number not in self.watched.points:
            self.points.delete(number)
        if number is None or number in self.watched.points:
            self.watched.delete(number)
            self._reading.follow()

    def stopped_core(self, stop: Stop) -> str | None:
        """Name of the core that a breakpoint stopped."""
        agent = int(self.tile.state.agent[0])
        word = stop.where is not None and stop.where.thread is not None
        at_core = stop.reason == "breakpoint" and not word and agent < CORES
        return CORE_NAMES[agent] if at_core else None

    # RISC-V instructions

    def _can_step(self, core: int) -> bool:
        return int(self.tile.state.core_state[core]) in (RUNNING, BLOCKED)

    def _check_steps(self, core: CorePart) -> None:
        if self.error is not None:
            raise copy.copy(self.error)
        if core.state == "reset":
            raise InputError(
                f"{core.name} is in reset", hint="break or continue until another core releases it"
            )
        if not self._can_step(core.index):
            raise InputError(f"{core.name} is {core.state}: it executes nothing more")

    def step(self, core: CorePart, n: int = 1, hold: bool = False) -> Stop:
        """Until `core` has retired `n` more, or executes nothing more; `hold` freezes the others.

        The reason is "until" when the core executes nothing more.
        """
        self.check_idle("step")
        self._check_steps(core)
        s = self.tile.state
        with self._held(core.index if arguments.flag("hold", hold) else None):
            s.retired_limit[core.index] = count_to("n", int(s.retired[core.index]), n)
            try:
                stop = self.run(lambda _: not self._can_step(core.index))
            finally:
                s.retired_limit[core.index] = -1
        self.saw(core.index)
        return stop

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
        self, core: CorePart, addresses: Sequence[int], arrived: Callable[[], bool] = lambda: True
    ) -> Stop:
        """Until `core` is at one of `addresses` and `arrived()`; any other stop ends it too."""
        self.check_idle("run_to")
        with self.points.temporary(core.index, addresses):
            self.saw(core.index)
            while True:
                stop = self.run()
                mine = stop.reason == "breakpoint" and int(self.tile.state.agent[0]) == core.index
                if not mine or core.pc not in addresses:
                    return stop
                if arrived() or self.points.at(core.index, core.pc):
                    return stop

    def next(self, core: CorePart) -> Stop:
        """One instruction; a call runs until it has returned."""
        self._check_steps(core)
        if not is_call(self.tile.read32(core.pc)):
            return self.step(core)
        stack = int(core.regs[SP])
        return self.run_to(core, [core.pc + 4], lambda: int(core.regs[SP]) >= stack)

    def finish(self, core: CorePart) -> Stop:
        """Until the function that `core` is in has returned (at its `ret`, then one step)."""
        self._check_steps(core)
        name, low, high = core.function(core.pc)
        returns = [pc for pc in range(low, high, 4) if self.tile.read32(pc) == RET]
        if not returns:
            raise InputError(f"{name} has no ret", hint="until ADDRESS")
        if core.pc not in returns:
            stack = int(core.regs[SP])
            stop = self.run_to(core, returns, lambda: int(core.regs[SP]) >= stack)
            if core.pc not in returns:
                return stop
        return self.step(core)

    # Tensix words

    def tstep(self, thread: int, n: int = 1) -> Stop:
        """Until `thread` has executed `n` more Tensix words, whatever breakpoints cores reach.

        With n = 0: until a word stands at its gate.
        """
        self.check_idle("tstep")
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
            stop = self.tstep(thread, 1)
            over = int(s.fifo_read[thread]) != taken or not self._expanding(thread)
            if over or int(s.executed[thread]) == done or stop.reason not in ("step", "until"):
                return stop

    @contextmanager
    def recording(self) -> Iterator[list[Entry]]:
        """A list that holds the words executed within the context, once that is over."""
        tile, s = self.tile, self.tile.state
        tile.drain_log()
        traced, log, entries = int(s.trace[0]), tile.log, list[Entry]()
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
        self.check_idle("trace")
        s, places = self.tile.state, Places(self.tile)
        first = int(s.executed.sum())
        if limit is not None:
            s.watch[watch.STOP_AT] = int(s.log_write[0]) + arguments.integer("limit", limit, 1)
            s.watch[watch.STOP_THREAD] = watch.ANY_THREAD
        self.traced = []
        try:
            with self.recording() as entries:
                return self.run()
        finally:
            s.watch[watch.STOP_AT] = -1
            self.traced = [places.word(first + i, entry) for i, entry in enumerate(entries)]

    def _expanding(self, thread: int) -> bool:
        s = self.tile.state
        return bool(s.mop_on[thread] or s.play_left[thread] or s.gate_full[thread])


def is_call(word: int) -> bool:
    """jal or jalr that leaves a return address in ra."""
    return word & 0x7F in (_JAL, _JALR) and (word >> 7) & 31 == RA
