"""What a debugger does with a tile: steps, breakpoints, traces, where everything stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bhemu import arguments
from bhemu.core import Core
from bhemu.errors import BhemuError, InputError
from bhemu.machine.breakpoints import ALL, Breakpoint, WordBreakpoint
from bhemu.machine.conditions import Condition
from bhemu.machine.stepping import Machine
from bhemu.machine.stop import Stop
from bhemu.machine.traced import TracedWord
from bhemu.machine.watching import Watchpoint

if TYPE_CHECKING:  # at run time when they are asked for: most runs need neither
    from bhemu.history import History
    from bhemu.machine.status import Standing


class Controls:
    """The debugger's part of Tile."""

    machine: Machine

    @property
    def core(self) -> Mapping[str, Core]:
        """The cores by name."""
        raise NotImplementedError

    def check_thread(self) -> None:
        """InputError in another thread than the one that made the tile."""
        raise NotImplementedError

    def _alone(self, what: str) -> None:
        """Nothing else drives the tile now."""
        self.check_thread()
        self.machine.check_idle(what)

    def _drives(self, what: str) -> None:
        """The tile may be run by itself."""
        self._alone(what)

    @property
    def error(self) -> BhemuError | None:
        """The error that stopped the last run."""
        return self.machine.error

    def step(self, core: str, n: int = 1, *, hold: bool = False) -> Stop:
        """Normal schedule until `core` retired `n` instructions; hold freezes the others.

        Ends with "until" when the core executes nothing more, and at a breakpoint of any core.
        """
        self._drives("step")
        return self.machine.step(self.core[core], n, hold)

    def next(self, core: str) -> Stop:
        """One instruction of `core`; a call runs until it has returned."""
        self._drives("next")
        return self.machine.next(self.core[core])

    def finish(self, core: str) -> Stop:
        """Until the function that `core` is in has returned."""
        self._drives("finish")
        return self.machine.finish(self.core[core])

    def run_to(self, core: str, place: int | str) -> Stop:
        """Until `core` is at an address, symbol or FILE:LINE."""
        self._drives("run_to")
        return self.machine.run_to(self.core[core], [self.core[core].address(place)])

    def tstep(self, thread: int, n: int = 1) -> Stop:
        """Normal schedule until Tensix thread 0-2 executed `n` words, past any breakpoint.

        n = 0: until a word of the thread stands at the wait gate.
        """
        self._drives("tstep")
        return self.machine.tstep(_thread_number(thread), n)

    def tnext(self, thread: int) -> Stop:
        """One pushed Tensix word of a thread, with all that MOP or REPLAY makes of it."""
        self._drives("tnext")
        return self.machine.tnext(_thread_number(thread))

    def break_at(
        self, core: str, place: int | str, *, condition: Condition | None = None, ignore: int = 0
    ) -> int:
        """Stop before `core` executes `place`: an address, function or FILE:LINE; its number.

        Also wherever that function or line is inlined. Only if condition(tile) holds, and not the
        first `ignore` times that it does.
        """
        self._alone("break_at")
        number = self.machine.break_at(self.core[core], place).number
        self.machine.conditions.ask(number, condition, ignore)
        return number

    def break_word(
        self,
        name: str,
        thread: int | None = None,
        *,
        condition: Condition | None = None,
        ignore: int = 0,
        **fields: int,
    ) -> int:
        """Stop before a Tensix word executes, as in break_word("PACR", 2, last=1); its number.

        thread: 0-2, None for any; fields: those that must have a value. Else as break_at.
        """
        self._alone("break_word")
        threads = ALL if thread is None else (_thread_number(thread),)
        number = self.machine.break_word(name, threads, **fields).number
        self.machine.conditions.ask(number, condition, ignore)
        return number

    def delete(self, n: int | None = None) -> None:
        """Remove breakpoint or watchpoint `n`, or all."""
        self._alone("delete")
        self.machine.delete(None if n is None else arguments.integer("n", n))

    def watch(
        self,
        place: str,
        core: str = "brisc",
        access: str = "w",
        *,
        condition: Condition | None = None,
        ignore: int = 0,
    ) -> int:
        """Stop after the instruction or Tensix word that changes `place`; its number.

        access: "w" changes, "r" reads, "rw" both. A core reads what it loads; a Tensix word or a
        device access reads a place if it would have done anything else with other bits there.

        place: an L1 address or symbol, with a length in bytes as in "0x20000:16" (default 4); an
        address of `core`'s local memory; a Config or ThreadConfig field (any bank, any thread); a
        part of the state with its indices, as in "sem:1", "gpr:0:5", "lreg:3", "dst:12"; of a tile
        on a chip, bytes of a DRAM bank, as in "dram:0:0x40:4": the run stops behind the request
        that reached them. What a host writes is no change. Stop.change tells what was there
        before, and who did it.
        condition, ignore: as break_at.
        """
        self._alone("watch")
        number = self.machine.watch(self.core[core], place, access).number
        self.machine.conditions.ask(number, condition, ignore)
        return number

    @property
    def watchpoints(self) -> tuple[Watchpoint, ...]:
        """The watchpoints that are set."""
        return tuple(self.machine.watched.points.values())

    @property
    def breakpoints(self) -> tuple[Breakpoint | WordBreakpoint, ...]:
        """The breakpoints that are set, those on Tensix words last."""
        points = self.machine.points
        return (*points.points.values(), *points.words.values())

    def trace(self, limit: int | None = None) -> list[TracedWord]:
        """Run as run() does, or until `limit` Tensix words were executed; the words in order.

        An error is raised as by run(); the words before it are in `traced`.
        """
        self._drives("trace")
        self.machine.trace(limit)
        return self.machine.traced

    @property
    def traced(self) -> list[TracedWord]:
        """The words of the last trace()."""
        return self.machine.traced

    def keep_history(self) -> History:
        """Leave marks from now on, so that runs can go back (History); the same one if it is kept.

        A mark costs about 3 ms and up to 2 MB, every 2^20 clock units at first; at most 64 stay.
        """
        from bhemu.history import History

        self._alone("keep_history")
        if not isinstance(self.machine.observer, History):
            self.machine.observer = History(self.machine.tile, self.machine)
        return self.machine.observer

    @property
    def history(self) -> History:
        """What keep_history() began; InputError when nobody called it."""
        from bhemu.history import History

        self.check_thread()
        if not isinstance(self.machine.observer, History):
            raise InputError("no history is kept", hint="call keep_history() before the run")
        return self.machine.observer

    def _begin_history(self) -> None:
        """What was before is no past of what is on the tile now."""
        if self.machine.observer is not None:
            self.machine.observer.put_back()

    def where(self) -> Standing:
        """Where every core and thread stands and what it waits for; prints as lines."""
        from bhemu.machine import status

        return status.Standing(status.where(self.machine.tile))

    @property
    def stop(self) -> Stop | None:
        """How the last run or step ended; None when none did, or with an error."""
        return self.machine.last


def _thread_number(thread: Any) -> int:
    try:
        return arguments.integer("thread", thread, 0, 2)
    except InputError:
        raise InputError(f"there is no Tensix thread {thread!r} (0, 1, 2)") from None
