"""The stepper's commands that go back."""

from bhemu.debug.commands import Commands
from bhemu.debug.places import number
from bhemu.errors import InputError
from bhemu.machine.core import Core
from bhemu.machine.stop import Stop


class GoingBack(Commands):
    """reverse-step and its sisters, goto; the rest of the stepper is stepper.py."""

    def _stopped(self, stop: Stop, core: Core) -> None:
        raise NotImplementedError

    def do_reverse_step(self, args: list[str]) -> None:
        """reverse-step [N] [CORE]: back to where the core had executed N instructions fewer."""
        n, core = self._count_and_core(args)
        self._back(self.tile.history.reverse_step(core, n), core)

    def do_reverse_next(self, args: list[str]) -> None:
        """reverse-next [CORE]: one instruction back, over calls."""
        _, core = self._count_and_core(args)
        self._back(self.tile.history.reverse_next(core), core)

    def do_reverse_tstep(self, args: list[str]) -> None:
        """reverse-tstep [N] [THREAD]: back by N Tensix words of a thread."""
        if len(args) > 2:
            raise InputError("usage: reverse-tstep [N] [THREAD]")
        n = number(args[0]) if args else 1
        self._back(self.tile.history.reverse_tstep(self._thread(args[1:]), n), self.core)

    def do_reverse_continue(self, args: list[str]) -> None:
        """reverse-continue: back to the last breakpoint or watchpoint, else to the beginning."""
        if args:
            raise InputError("usage: reverse-continue")
        stop = self.tile.history.reverse_continue()
        name = self.tile.stepping.stopped_core(stop)
        if name is not None:
            self.core = self.tile.core[name]
        if stop.reason == "step":
            self._out("the history begins here")
        self._back(stop, self.core)

    def do_goto(self, args: list[str]) -> None:
        """goto CLOCK: to the moment at which the clock was CLOCK, or will be."""
        if len(args) != 1:
            raise InputError("usage: goto CLOCK")
        self._back(self.tile.history.goto(number(args[0], "clock")), self.core)

    def _back(self, stop: Stop, core: Core) -> None:
        self._out(f"clock {stop.clock}")
        self._stopped(stop, core)
