"""Running a tile piece by piece: steps, breakpoints, calls stepped over, Tensix words."""

from collections.abc import Callable, Sequence
from typing import Any

from bhemu.core import Core
from bhemu.debug.places import function
from bhemu.debug.points import Breakpoints
from bhemu.errors import InputError
from bhemu.launch import until_words
from bhemu.machine import Stop, count_to
from bhemu.memmap import CORE_NAMES
from bhemu.program.schema import Program
from bhemu.tensix.state import BLOCKED, CORES, RUNNING
from bhemu.tile import Tile

RA, SP = 1, 2
_RET = 0x00008067
_JAL, _JALR = 0x6F, 0x67

Ask = Callable[[Any], bool]


class Session:
    """One tile under the stepper; the schedule is that of an uninterrupted run."""

    def __init__(self, tile: Tile, program: Program) -> None:
        self.tile, self.program = tile, program
        self.points = Breakpoints(tile.state)
        self.until = until_words(tile, program)
        self._shown: dict[int, int] = {}  # core -> retired count at the stop the user has seen

    # Running

    def go(self, until: Sequence[tuple[int, int]] | Ask | None) -> Stop:
        """Run on; a core that was seen standing on a breakpoint leaves it first."""
        s, spec = self.tile.state, self.program.run
        while True:
            for core, retired in self._shown.items():
                if s.retired[core] == retired:
                    self.points.skip(core)
            limit = None if spec.limit is None else max(spec.limit - self.tile.clock, 1)
            stop = self.tile.run(until, limit=limit, timeout_s=spec.timeout_s)
            core = int(s.agent[0])
            if stop.reason != "breakpoint":
                return stop
            # An access that had to wait is repeated: the same instruction reaches its breakpoint
            # again without having been executed.
            if self._shown.get(core) != s.retired[core]:
                self.saw(core)
                return stop
            self.points.skip(core)

    def saw(self, core: int) -> None:
        """The user was shown where `core` stands."""
        self._shown[core] = int(self.tile.state.retired[core])

    def _can_step(self, core: int) -> bool:
        return int(self.tile.state.core_state[core]) in (RUNNING, BLOCKED)

    def _check_steps(self, core: Core) -> None:
        if core.state == "reset":
            raise InputError(
                f"{core.name} is in reset", hint="break or continue until another core releases it"
            )
        if not self._can_step(core.index):
            raise InputError(f"{core.name} is {core.state}: it executes nothing more")

    def step(self, core: Core, n: int = 1) -> Stop:
        """Until `core` has retired `n` more instructions, or executes nothing more."""
        self._check_steps(core)
        s = self.tile.state
        s.retired_limit[core.index] = count_to("n", int(s.retired[core.index]), n)
        try:
            stop = self.go(lambda _: not self._can_step(core.index))
        finally:
            s.retired_limit[core.index] = -1
        self.saw(core.index)
        return stop

    # Places reached with temporary breakpoints

    def run_to(self, core: Core, addresses: Sequence[int], arrived: Callable[[], bool]) -> Stop:
        """Until `core` is at one of `addresses` and `arrived()`; any other stop ends it too."""
        with self.points.temporary(core.index, addresses):
            self.saw(core.index)
            while True:
                stop = self.go(self.until)
                mine = stop.reason == "breakpoint" and int(self.tile.state.agent[0]) == core.index
                if not mine or core.pc not in addresses:
                    return stop
                if arrived() or self.points.at(core.index, core.pc):
                    return stop

    def run_until(self, core: Core, address: int) -> Stop:
        """Until `core` reaches `address`."""
        return self.run_to(core, [address], lambda: True)

    def next(self, core: Core) -> Stop:
        """One instruction; a call runs until it has returned."""
        self._check_steps(core)
        if not is_call(self.word(core)):
            return self.step(core)
        stack = int(core.regs[SP])
        return self.run_to(core, [core.pc + 4], lambda: int(core.regs[SP]) >= stack)

    def finish(self, core: Core) -> Stop:
        """Until the function that `core` is in has returned (at its `ret`, then one step)."""
        self._check_steps(core)
        name, low, high = function(self.tile, core, core.pc)
        returns = [pc for pc in range(low, high, 4) if self.tile.read32(pc) == _RET]
        if not returns:
            raise InputError(f"{name} has no ret", hint="until ADDRESS")
        if core.pc not in returns:
            stack = int(core.regs[SP])
            stop = self.run_to(core, returns, lambda: int(core.regs[SP]) >= stack)
            if core.pc not in returns:
                return stop
        return self.step(core)

    def word(self, core: Core) -> int:
        """The instruction word that `core` executes next."""
        return self.tile.read32(core.pc)

    # Tensix words

    def tstep(self, thread: int, n: int) -> Stop:
        """Until `thread` has executed `n` more Tensix words; they are appended to tile.log."""
        s = self.tile.state
        target = count_to("n", int(s.executed[thread]), n)
        traced = int(s.trace[0])
        s.trace[0] = 1
        s.executed_limit[thread] = target
        try:
            return self.go(lambda _: int(s.executed[thread]) >= target)
        finally:
            s.executed_limit[thread] = -1
            s.trace[0] = traced
            self.tile.drain_log()

    def tnext(self, thread: int) -> Stop:
        """One pushed Tensix word with everything that MOP or REPLAY expands it to."""
        s = self.tile.state
        while True:
            taken, done = int(s.fifo_read[thread]), int(s.executed[thread])
            stop = self.tstep(thread, 1)
            over = int(s.fifo_read[thread]) != taken or not self._expanding(thread)
            if over or int(s.executed[thread]) == done or stop.reason not in ("step", "until"):
                return stop

    def _expanding(self, thread: int) -> bool:
        s = self.tile.state
        return bool(s.mop_on[thread] or s.play_left[thread] or s.gate_full[thread])

    def stopped_core(self, stop: Stop) -> str | None:
        """Name of the core that a breakpoint stopped."""
        agent = int(self.tile.state.agent[0])
        return CORE_NAMES[agent] if stop.reason == "breakpoint" and agent < CORES else None


def is_call(word: int) -> bool:
    """jal or jalr that leaves a return address in ra."""
    return word & 0x7F in (_JAL, _JALR) and (word >> 7) & 31 == RA
