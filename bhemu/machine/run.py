"""The run loop of a machine: rounds until something stops it."""

from __future__ import annotations

import copy
import functools
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bhemu import arguments
from bhemu.arguments import MOST
from bhemu.errors import BhemuError, InputError
from bhemu.machine import stop
from bhemu.machine.breakpoints import Conditions
from bhemu.machine.rounds import Memory, Rounds, Word
from bhemu.machine.stop import Stop, now
from bhemu.system import interrupts
from bhemu.tensix.state import ASSERTED, RUNNING

if TYPE_CHECKING:
    from bhemu.machine.callbacks import Callbacks
    from bhemu.machine.history import Marks
    from bhemu.machine.recorded_host import RecordedHost
    from bhemu.machine.tile import Tile
    from bhemu.program.schema import Program

_NO_POLLING = 'until = "polling" has no meaning in a run in which words take time'


@dataclass(frozen=True)
class _Ask:
    """What a run waits for beside what compiled code looks for, and how long."""

    until: Callable[[], bool] | None
    deadline: float | None  # of _seconds(), which leaves out what is spent on compiling
    earliest: float  # time.monotonic() at the deadline if nothing is compiled
    rounds: int | None
    ends_with_session: bool  # the end of a recorded session ends the run too


class RunLoop:
    """Runs the rounds of one machine; remembers the error that stopped it.

    `program` is on the machine, `end`: what a run ends at when nothing else is asked for; `last`:
    how the last run ended.
    """

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.numbers = itertools.count(1)  # of breakpoints and watchpoints
        self.conditions = Conditions()
        self.program: Program | None = None
        self.end = stop.EndCondition()
        self.error: BhemuError | None = None
        self.last: Stop | None = None
        self.observer: Marks | None = None  # told that a run begins, pauses and ends
        self.host: RecordedHost | None = None  # of a session, that acts between rounds
        self.continues_last_run = False  # look for hangs as if both were one run
        self.explains_hangs = True  # the error of a hang has the graph of its waits
        # Takes the run to another process where that is due (cli/run.py), asked between two words
        # or instructions; while there is one, no time-out passes
        self.handover: Callable[[Rounds], None] | None = None
        self.begun: Memory | None = None  # the next run goes on with one of another process
        self._waived = 0.0  # seconds of the present run that were interpreted for a handover
        self._running = False

    @functools.cached_property
    def callbacks(self) -> Callbacks:
        """The functions that the machine calls."""
        from bhemu.machine.callbacks import Callbacks

        return Callbacks(self.rounds)

    def joined(self, tile: Tile) -> None:
        """A tile was made: it has the callbacks of the others, if there are any."""
        if "callbacks" in self.__dict__:
            self.callbacks.joined(tile)

    def launched(self, program: Program, end: stop.EndCondition) -> None:
        """`program` is on the machine, and this is how its runs end."""
        self.program, self.end = program, end

    def forget(self) -> None:
        """The machine was reset."""
        self.restored(None, None)
        self.program, self.end = None, stop.EndCondition()

    def restored(self, error: BhemuError | None, broken: int | None) -> None:
        """The machine was put back to a state in which `error` had stopped it, at tile `broken`."""
        self.error, self.rounds.broken, self.last = error, broken, None
        for tile in self.rounds.tiles:
            tile.backend.restored()
        if self.observer:
            self.observer.restored()

    def check_not_running(self, call: str) -> None:
        """InputError while a run goes on: its `until` may look, and change L1, but not this."""
        if self._running:
            raise InputError(f"{call} was called during a run", hint="call it when run() is over")

    def run(
        self,
        until: stop.Until = None,
        limit: int | None = None,
        timeout_s: float | None = None,
        resume: bool = False,
        rounds: int | None = None,
        view: Tile | None = None,
    ) -> Stop:
        """Run rounds until a stop; see Controls.run.

        view: the tile through which the machine is seen. `limit` and the clock of the stop are in
        units of its clock, words without a coordinate are its own, and a callable `until` gets it.
        """
        self.check_not_running("run")
        self._clear_error(resume)
        last, words = self.last, self.end.words
        if until is None and last is not None and last.reason == "until" and words:
            if last.clock == self.clock_of(view) and self.holds(words):
                return last  # it has met the program's end condition, which still holds
        if self.observer:
            self.observer.run_begins()  # what follows is no change that a host has made
        ask = self._ask(until, limit, timeout_s, rounds, view)
        self.last, self._running = None, True
        try:
            self.last = replace(self._loop(ask), clock=self.clock_of(view))
        except BhemuError as problem:
            if not isinstance(problem, InputError):  # that is a mistake in the caller's `until`
                self.error = copy.copy(problem)  # without the traceback, which holds the tile
            raise
        finally:
            self._running = False
            self.rounds.end()
            if self.observer:
                self.observer.run_ended()
        return self.last

    def prepare(self, limit: int) -> None:
        """Put the program's end and a limit into the records, for a caller that runs the rounds."""
        self.continues_last_run = False
        self._ask(None, limit, None, None, None)
        self.rounds.begin(quiet_since_now=True)

    def clock_of(self, view: Tile | None) -> int:
        """The clock of a tile, or of the machine."""
        return self.rounds.clock if view is None else now(view.state)

    def holds(self, words: tuple[tuple[tuple[int, int], int, int], ...]) -> bool:
        """Whether all these words of tiles have these values."""
        return all(self._tile_at(None, xy).read32(at) == value for xy, at, value in words)

    def _clear_error(self, resume: bool) -> None:
        resume = arguments.flag("resume", resume)
        if self.error is None:
            return
        if not resume:
            raise copy.copy(self.error)
        self.error = None
        if self.rounds.broken is not None:
            s = self.rounds.owner.tile_at_index(self.rounds.broken).state
            s.status[0] = 0
            s.core_state[s.core_state == ASSERTED] = RUNNING
            self.rounds.broken = None

    def _ask(
        self,
        until: stop.Until,
        limit: int | None,
        timeout_s: float | None,
        most: int | None,
        view: Tile | None,
    ) -> _Ask:
        """Put the end into the records; what is not given is the program's own."""
        wanted = self.end.timeout_s if timeout_s is None else timeout_s
        seconds = None if wanted is None else arguments.seconds("timeout_s", wanted)
        count = None if most is None else count_to("rounds", self.rounds.count, most)
        if limit is not None:
            clock = count_to("limit", self.clock_of(view), limit)
            self.rounds.put_limit(clock if view is None else None)
            if view is not None:
                view.state.limit[0] = clock
        elif self.end.clock is not None:
            self.rounds.put_limit(max(self.end.clock, self.rounds.clock + 1))
        else:
            self.rounds.put_limit(None)
        asked: Callable[[], bool] | None = None
        words: list[Word] = []
        named = until if isinstance(until, str) else None
        if until is None:
            words = [(self._tile_at(view, xy), at, value) for xy, at, value in self.end.words]
        elif callable(until):
            condition, target = until, self.rounds.owner if view is None else view
            asked = lambda: bool(condition(target))  # noqa: E731
        elif named not in ("idle", "polling"):
            words = stop.words(until, lambda xy: self._tile_at(view, xy))
        elif named == "polling" and count is None:
            if any(tile.state.timed[0] for tile in self.rounds.tiles):
                raise InputError(_NO_POLLING, hint="wait for a word, or give rounds=")
        self.rounds.put_words(words, polling=named == "polling")
        self._waived = 0.0
        deadline = None if seconds is None else self._seconds() + seconds
        with_session = until is None or callable(until)
        return _Ask(asked, deadline, time.monotonic() + (seconds or 0.0), count, with_session)

    def _tile_at(self, view: Tile | None, xy: object) -> Tile:
        """The tile at a coordinate; without one the tile that is seen, or the only one."""
        tile: Tile
        if xy is None:
            tile = self.rounds.owner.chosen(None) if view is None else view
        else:
            tile = self.rounds.owner.tile_at(xy)
        return tile

    def _seconds(self) -> float:
        """The time without the seconds spent on compiling or, interpreted, on waiting for it."""
        return time.monotonic() - self.rounds.compile_seconds - self._waived

    def _loop(self, ask: _Ask) -> Stop:
        try:
            # Let the rounds begin, or go on; time.monotonic()
            begun, self.begun = self.begun, None
            if begun is None:
                self.rounds.begin(quiet_since_now=not self.continues_last_run)
            else:
                self.rounds.go_on(begun)
            began = time.monotonic()
            try:
                while True:
                    interrupts.check()
                    left = None if ask.rounds is None else ask.rounds - self.rounds.count
                    if self.host is not None:
                        if self.host.is_due:
                            self.rounds.settle()
                            self.host.act()
                            self.rounds.begin(quiet_since_now=True)
                        if self.host.over and ask.ends_with_session:
                            return Stop("until", None, 0)
                        both = left, self.host.rounds
                        left = min((n for n in both if n is not None), default=None)
                    stopped, round_ended = self.rounds.advance(one=ask.until is not None, most=left)
                    if stopped is not None:
                        if stopped.reason == "idle" and self.host and self.host.continues():
                            continue
                        return stopped
                    if self.observer:
                        self.observer.run_pauses()
                    if self.handover is not None:
                        self._waived = time.monotonic() - began
                        self.handover(self.rounds)
                    if ask.until is not None and round_ended:
                        self.rounds.settle()
                        if ask.until():
                            return Stop("until", None, 0)
                    if ask.rounds is not None and self.rounds.count >= ask.rounds:
                        return Stop("rounds", None, 0)
                    over = ask.deadline is not None and time.monotonic() >= ask.earliest
                    if over and ask.deadline is not None and self._seconds() >= ask.deadline:
                        return Stop("timeout", None, 0)
            finally:
                self.rounds.settle()
        except KeyboardInterrupt:
            interrupts.done()
            return Stop("interrupt", None, 0)


def count_to(name: str, base: int, n: int) -> int:
    """`base` + `n`, at most what a counter of the record holds; InputError for no count."""
    return min(base + arguments.integer(name, n), MOST)
