"""The run loop of a tile: rounds until something stops it; errors in words."""

import copy
import itertools
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from bhemu import arguments, interrupts, report
from bhemu.arguments import MOST
from bhemu.errors import BhemuError, InputError
from bhemu.machine import until as end
from bhemu.machine.breakpoints import Breakpoints
from bhemu.machine.conditions import Conditions
from bhemu.machine.stop import Stop, now, stop
from bhemu.machine.watching import Watchpoints
from bhemu.parts import TilePart
from bhemu.tensix import stops, watchpoints
from bhemu.tensix.state import ASSERTED, RUNNING
from bhemu.tensix.thread import ALL_THREADS

_ROUNDS = 1 << 40  # of one call: compiled code returns when its time slice is over
LONGEST_TURN = 10_000_000  # instructions
_STOPS = {
    stops.STOP_STEP: "step",
    stops.STOP_BREAKPOINT: "breakpoint",
    stops.STOP_UNTIL: "until",
    stops.STOP_LIMIT: "limit",
    stops.STOP_IDLE: "idle",
    stops.STOP_WATCH: "watchpoint",
}


def _look_for_hang(tile: TilePart, status: int) -> None:
    """Raise an error unless a tile without progress is still alive."""
    # Imported here: much code, which most programs do not need.
    from bhemu.hang.explore import livelock
    from bhemu.hang.waitgraph import no_progress

    if status == stops.STOP_DEADLOCK:
        raise no_progress(tile, ())
    # The look may follow half as many instructions as rounds went by: a small part of the time.
    if loops := livelock(tile, int(tile.state.quiet[0]) // 2):
        raise no_progress(tile, loops)


def _with_operands(tile: TilePart, error: BhemuError) -> BhemuError:
    """The error of a Tensix word, its place with what the word would have done."""
    where = error.where
    if where is not None and where.thread is not None and where.word is not None:
        from bhemu.machine.operands import told

        error.where = replace(where, operands=told(tile, where.thread, where.word) or None)
    return error


def resolve(tile: TilePart, status: int) -> Stop | None:
    """Act on a status: None to go on, a Stop, or an exception."""
    s, engine = tile.state, tile.backend.engine
    if status < 0:
        raise _with_operands(tile, report.rule_error(tile, status))
    c = int(s.core[0])
    if status == stops.STOP_FLUSH:
        engine.flush(c)
        return None
    if status == stops.STOP_CODE_PAGE:
        if not engine.make_executable(c, int(s.pc[c])):
            raise report.fetch_error(tile, c)
        return None
    if status == stops.STOP_ENGINE:
        raise report.engine_error(tile)
    if status == stops.STOP_ASSERT:
        raise report.assert_error(tile, int(s.agent[0]))
    if status in (stops.STOP_DEADLOCK, stops.STOP_QUIET):
        _look_for_hang(tile, status)
        return None
    if status == stops.STOP_LOG:
        tile.drain_log()
        return None
    return stop(tile, _STOPS[status])


class Observer(Protocol):
    """Who wants to know that a run begins, pauses and ends (history.py)."""

    def run_begins(self) -> None:
        """Before anything runs."""

    def run_pauses(self) -> None:
        """Every few milliseconds."""

    def run_ended(self) -> None:
        """Whatever ended it."""

    def put_back(self) -> None:
        """It was reset, or put back to another state."""


class Runner:
    """The run loop of one tile; remembers the error that stopped it and where it was seen to stop.

    `end`: what a run ends at when nothing else is asked for; `last`: how the last run ended.
    """

    def __init__(self, tile: TilePart) -> None:
        self._own_tile = weakref.ref(tile)
        numbers = itertools.count(1)  # breakpoints and watchpoints share them
        self.points = Breakpoints(tile.state, numbers)
        self.watched = Watchpoints(tile.state, numbers)
        self.conditions = Conditions()
        self.end = end.End()
        self.error: BhemuError | None = None
        self.last: Stop | None = None
        self.seen: dict[int, int] = {}  # core -> retired count at the stop the user has seen
        self.observer: Observer | None = None
        self.goes_on = False  # a run is a piece of the one before: look for hangs as of one run
        self._running = False

    @property
    def tile(self) -> TilePart:
        """The tile, which holds this object: it is there as long as something runs."""
        tile = self._own_tile()
        assert tile is not None
        return tile

    def forget(self) -> None:
        """The tile was reset."""
        self.error = self.last = None
        self.seen.clear()

    def run(
        self,
        until: end.Until = None,
        limit: int | None = None,
        timeout_s: float | None = None,
        resume: bool = False,
    ) -> Stop:
        """Run rounds until a stop; see Tile.run."""
        self.check_idle("run")
        self._check_error(resume)
        if self.observer:
            self.observer.run_begins()  # what follows is no change that a host has made
        ask = self.set_end(until, limit)
        self.last = None
        deadline = self._deadline(timeout_s)
        self.tile.before_run()
        watchpoints.refresh(self.tile.state)
        self._running = True
        try:
            self.last = self._to_news(ask, deadline)
        except KeyboardInterrupt:
            interrupts.done()
            self.last = stop(self.tile, "interrupt")
        except BhemuError as problem:
            if not isinstance(problem, InputError):  # that is a mistake in the caller's `until`
                self.error = copy.copy(problem)  # without the traceback, which holds the tile
            raise
        finally:
            self._running = False
            s = self.tile.state  # a host may end what threads wait for
            s.sweep_due[0], s.sweep_idle[0] = ALL_THREADS, 0
            if self.observer:
                self.observer.run_ended()
        return self.last

    def check_idle(self, what: str) -> None:
        """InputError while a run goes on: its `until` may look, and change L1, but not this."""
        if self._running:
            raise InputError(f"{what} was called during a run", hint="call it when run() is over")

    def set_end(self, until: end.Until, limit: int | None) -> Callable[[Any], bool] | None:
        """Put the end into the record; what is not given is the program's own."""
        s = self.tile.state
        if not self.goes_on:
            s.quiet[0] = s.quiet_next[0] = 0
        if limit is not None:
            s.limit[0] = count_to("limit", now(s), limit)
        elif self.end.clock is not None:
            s.limit[0] = max(self.end.clock, now(s) + 1)
        else:
            s.limit[0] = -1
        return end.put(self.tile, list(self.end.words) or "idle" if until is None else until)

    def _deadline(self, timeout_s: float | None) -> float | None:
        wanted = self.end.timeout_s if timeout_s is None else timeout_s
        if wanted is None:
            return None
        # What is compiled on the way is not the program's time.
        spent = self.tile.backend.table.seconds
        return time.monotonic() - spent + arguments.seconds("timeout_s", wanted)

    def _check_error(self, resume: bool) -> None:
        resume = arguments.flag("resume", resume)
        if self.error is None:
            return
        if not resume:
            raise copy.copy(self.error)
        s = self.tile.state
        self.error = None
        s.status[0] = 0
        s.core_state[s.core_state == ASSERTED] = RUNNING

    def _to_news(self, ask: Callable[[Any], bool] | None, deadline: float | None) -> Stop:
        """Run to a stop; a core that was seen standing on a breakpoint leaves it first."""
        s = self.tile.state
        while True:
            for core, retired in self.seen.items():
                if s.retired[core] == retired:
                    self.points.skip(core)
            news = self.news(self._loop(ask, deadline))
            if news is not None:
                return news

    def news(self, reached: Stop) -> Stop | None:
        """A stop with the number of its breakpoint; None for one that is to be passed."""
        s = self.tile.state
        if reached.reason == "watchpoint":
            change = self.watched.change(self.tile, int(s.agent[0]))
            found = stop(self.tile, reached.reason, change=change)
            return found if self.conditions.stops(change.watchpoint.number, self.tile) else None
        if reached.reason != "breakpoint":
            return reached
        number, s.word_break_hit[0] = int(s.word_break_hit[0]), 0
        if number:
            where = report.where_thread(self.tile, int(s.status_thread[0]))
            found = Stop(reached.reason, where, now(s), number)
            return found if self.conditions.stops(number, self.tile) else None
        return self._core_breakpoint(int(s.agent[0]))

    def _core_breakpoint(self, core: int) -> Stop | None:
        s = self.tile.state
        # An access that had to wait is repeated: the same instruction reaches its breakpoint
        # again without having been executed.
        if self.seen.get(core) == s.retired[core]:
            self.points.skip(core)
            return None
        self.saw(core)
        pc = int(s.pc[core])
        point = self.points.at(core, pc)
        if point is None:
            return stop(self.tile, "breakpoint")
        wanted = self.conditions.stops(point.number, self.tile)
        if wanted or self.points.is_visited(core, pc):
            return stop(self.tile, "breakpoint", point.number)
        return None

    def saw(self, core: int) -> None:
        """The user was shown where `core` stands."""
        self.seen[core] = int(self.tile.state.retired[core])

    def _loop(self, ask: Callable[[Any], bool] | None, deadline: float | None) -> Stop:
        tile, table = self.tile, self.tile.backend.table
        while True:
            interrupts.check()
            status = tile.backend.rounds(1 if ask else _ROUNDS)
            if status not in (0, stops.STOP_TIME):
                reached = resolve(tile, status)
                if reached is not None:
                    return reached
            elif ask and status == 0 and ask(tile):
                return stop(tile, "until")
            if self.observer:
                self.observer.run_pauses()
            if deadline is not None and time.monotonic() - table.seconds >= deadline:
                return stop(tile, "timeout")


def count_to(what: str, base: int, n: int) -> int:
    """`base` + `n`, at most what a counter of the record holds; InputError for no count."""
    return min(base + arguments.integer(what, n), MOST)
