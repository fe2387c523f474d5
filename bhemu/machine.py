"""Running a tile: rounds until something stops it, exact stops, stepping, errors in words."""

import copy
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bhemu import report
from bhemu.errors import BhemuError, InputError
from bhemu.hang.explore import livelock
from bhemu.hang.waitgraph import no_progress
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.tensix import loop
from bhemu.tensix.state import ASSERTED, BLOCKED, HELD, RUNNING

UntilWords = Sequence[tuple[int, int] | Mapping[str, int]]
Until = Callable[[Any], bool] | UntilWords | str | None

_CALL_SECONDS = 0.02  # how long compiled code may run before Python looks at the clock
_MOST_CONDITIONS = 16
LONGEST_TURN = 10_000_000  # instructions: time-outs and Ctrl-C are noticed between turns
MOST = (1 << 63) - 1  # what a counter of the record holds
_STOPS = {
    loop.STOP_STEP: "step",
    loop.STOP_BREAKPOINT: "breakpoint",
    loop.STOP_UNTIL: "until",
    loop.STOP_LIMIT: "limit",
    loop.STOP_IDLE: "idle",
}


@dataclass(frozen=True)
class Stop:
    """Why a run ended: "until" "idle" "limit" "timeout" "breakpoint" "step" or "interrupt".

    `where` is the place of the core that stopped (None when no single core did), `clock` the
    tile's clock.
    """

    reason: str
    where: Any
    clock: int


def _word(condition: tuple[int, int] | Mapping[str, int]) -> tuple[int, int]:
    """(address, value) of one condition, in either form."""
    if isinstance(condition, Mapping):
        if condition.keys() != {"word", "equals"}:
            raise InputError(f"until condition {dict(condition)!r}: wants the keys word and equals")
        return condition["word"], condition["equals"]
    address, value = condition
    return address, value


def _set_until(tile: Any, until: Until) -> Callable[[Any], bool] | None:
    """Put word conditions into the record; a callable is returned, to be asked once per round."""
    s = tile.state
    s.until_count[0] = 0
    if callable(until):
        return until
    if until is None or until == "idle":
        return None
    if isinstance(until, str):
        raise InputError(f'until = {until!r}: only "idle", words or a callable are known')
    if len(until) > _MOST_CONDITIONS:
        raise InputError(f"{len(until)} until conditions, at most {_MOST_CONDITIONS} are possible")
    for i, (address, value) in enumerate(_word(condition) for condition in until):
        if address & 3 or not 0 <= address < L1_SIZE:
            raise InputError(f"until address {address:#x} is not an aligned word of L1")
        s.until_address[i], s.until_value[i] = address, value & 0xFFFFFFFF
    s.until_count[0] = len(until)
    return None


def _stop(tile: Any, reason: str) -> Stop:
    s = tile.state
    where = None
    if reason in ("step", "breakpoint") and s.turn_open[0]:
        where = report.where_core(tile, int(s.agent[0]))
    return Stop(reason, where, int(s.clock[0]))


def _resolve(tile: Any, status: int) -> Stop | None:
    """Act on a status: None to go on, a Stop, or an exception."""
    s, engine = tile.state, tile.backend.engine
    if status < 0:
        raise report.rule_error(tile, status)
    c = int(s.core[0])
    if status == loop.STOP_FLUSH:
        engine.flush(c)
        return None
    if status == loop.STOP_CODE_PAGE:
        if not engine.make_executable(c, int(s.pc[c])):
            raise report.fetch_error(tile, c)
        return None
    if status == loop.STOP_ENGINE:
        raise report.engine_error(tile)
    if status == loop.STOP_ASSERT:
        raise report.assert_error(tile, int(s.agent[0]))
    if status == loop.STOP_DEADLOCK:
        raise no_progress(tile, ())
    if status == loop.STOP_QUIET:
        # The look may follow half as many instructions as rounds went by: a small part of the time.
        loops = livelock(tile, int(s.quiet[0]) // 2)
        if loops:
            raise no_progress(tile, loops)
        return None
    if status == loop.STOP_LOG:
        tile.drain_log()
        return None
    return _stop(tile, _STOPS[status])


def now(s: Any) -> int:
    """The clock, what the open turn has retired so far included: a limit counts from here."""
    open_turn = int(s.turn_given[0] - s.left[int(s.agent[0])]) if s.turn_open[0] else 0
    return int(s.clock[0]) + open_turn


def count_to(what: str, base: int, n: int) -> int:
    """`base` + `n`, at most what a counter of the record holds; InputError for no count."""
    if not isinstance(n, int) or n < 0:
        raise InputError(f"{what} = {n!r} must be an integer of 0 or more")
    return min(base + n, MOST)


class Runner:
    """The run loop of one tile; remembers the error that stopped it."""

    def __init__(self, tile: Any) -> None:
        self._own_tile = weakref.ref(tile)
        self.error: BhemuError | None = None

    @property
    def _tile(self) -> Any:
        """The tile, which holds this object: it is there as long as something runs."""
        return self._own_tile()

    def run(
        self, until: Until, limit: int | None, timeout_s: float | None, resume: bool = False
    ) -> Stop:
        """Run rounds until a stop; see Tile.run."""
        tile, s = self._tile, self._tile.state
        self._check_error(resume)
        ask = _set_until(tile, until)
        s.limit[0] = -1 if limit is None else count_to("limit", now(s), limit)
        s.quiet[0] = s.quiet_next[0] = 0
        tile.before_run()
        deadline = None
        if timeout_s is not None:  # what is compiled on the way is not the program's time
            deadline = time.monotonic() - tile.backend.table.seconds + timeout_s
        try:
            return self._loop(ask, deadline)
        except KeyboardInterrupt:
            return _stop(tile, "interrupt")
        except BhemuError as problem:
            self.error = copy.copy(problem)  # without the traceback, which holds the tile
            raise

    def _check_error(self, resume: bool) -> None:
        if self.error is None:
            return
        if not resume:
            raise copy.copy(self.error)
        s = self._tile.state
        self.error = None
        s.status[0] = 0
        s.core_state[s.core_state == ASSERTED] = RUNNING

    def _loop(self, ask: Callable[[Any], bool] | None, deadline: float | None) -> Stop:
        tile, table = self._tile, self._tile.backend.table
        rounds = 1 if ask else 64
        while True:
            begin = time.monotonic()
            status = tile.backend.rounds(rounds)
            if status != 0:
                stop = _resolve(tile, status)
                if stop is not None:
                    return stop
            elif ask and ask(tile):
                return _stop(tile, "until")
            now = time.monotonic()
            if deadline is not None and now - table.seconds >= deadline:
                return _stop(tile, "timeout")
            if not ask and status == 0:
                faster = now - begin < _CALL_SECONDS / 2
                rounds = min(rounds * 2, 1 << 20) if faster else max(rounds // 2, 1)

    def step(self, core: int, n: int, hold: bool) -> Stop:
        """Normal schedule until `core` has retired `n` more; `hold` freezes the other cores."""
        s = self._tile.state
        if s.core_state[core] not in (RUNNING, BLOCKED):
            raise InputError(f"{CORE_NAMES[core]} is not running", hint="release it first")
        others = [
            c for c in range(5) if hold and c != core and s.core_state[c] in (RUNNING, BLOCKED)
        ]
        before = s.core_state[others].copy()
        s.core_state[others] = HELD
        s.retired_limit[core] = count_to("n", int(s.retired[core]), n)
        try:
            return self.run(None, None, None)
        finally:
            s.retired_limit[core] = -1
            s.core_state[others] = before

    def tstep(self, thread: int, n: int) -> Stop:
        """Normal schedule until `thread` has executed `n` more Tensix words."""
        s = self._tile.state
        s.executed_limit[thread] = count_to("n", int(s.executed[thread]), n)
        try:
            return self.run(None, None, None)
        finally:
            s.executed_limit[thread] = -1
