"""The run loop of a chip: rounds of all tiles, what they stop at, what only Python can make."""

import copy
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from bhemu import arguments, errors, interrupts
from bhemu.errors import BhemuError, InputError, NoProgress
from bhemu.jit.subset import JIT
from bhemu.machine.runner import Observer, count_to, resolve
from bhemu.machine.senders import HostAccess, host_access, refused, sent_by
from bhemu.machine.stepping import Machine
from bhemu.machine.stop import Stop
from bhemu.machine.watching import Change
from bhemu.memmap import L1_SIZE
from bhemu.noc import rounds
from bhemu.noc.grid import TILES, XY
from bhemu.noc.network import Network
from bhemu.noc.record import UNTIL_WORDS
from bhemu.parts import TilePart
from bhemu.tensix import stops, watchpoints
from bhemu.tensix.state import ASSERTED, RUNNING

if TYPE_CHECKING:
    from bhemu.hang.explore import Loop

UntilWords = Sequence[tuple[XY, int, int]]
Until = Callable[[Any], bool] | UntilWords | str | None

_CALL_SECONDS = 0.02  # how long compiled code may run before Python looks at the clock
_ENDS = {
    rounds.CHIP_UNTIL: "until",
    rounds.CHIP_LIMIT: "limit",
    rounds.CHIP_POLLING: "polling",
}
_CLOSE = "the last request of a linked transaction has NOC_CMD_VC_LINKED clear"
_FORMS = 'triples as in [((1, 2), 0x100, 0xD0E0)], a callable, "idle" or "polling"'


class ChipTile(TilePart, Protocol):
    """What the loop asks of a tile."""

    machine: Machine


class ChipPart(Protocol):
    """What the loop asks of a chip."""

    network: Network

    def numbered(self, t: int) -> ChipTile:
        """Tile `t`, made when it is not there yet."""

    def made(self) -> Sequence[ChipTile]:
        """The tiles that are made, in the order of their numbers."""

    def handed_out(self) -> Sequence[tuple[int, ChipTile]]:
        """The tiles, with their numbers, that a user may hold and may have changed in any way."""

    def number_of(self, xy: object) -> int:
        """The number of the Tensix tile at a coordinate; InputError elsewhere."""


@dataclass(frozen=True)
class _Ask:
    """What a run waits for beside the words in the record, and how long."""

    until: Callable[[Any], bool] | None
    deadline: float | None  # without what is spent on compiling
    rounds: int | None
    earliest: float = 0.0  # time.monotonic() at the deadline if nothing is compiled


class ChipRunner:
    """Runs the rounds of one chip; remembers the error that stopped it."""

    def __init__(self, chip: ChipPart, livelock: int, threads: int) -> None:
        self._own_chip, self._network = weakref.ref(chip), chip.network
        self.error: BhemuError | None = None
        self.broken: int | None = None  # the tile whose error stopped the chip
        self.last: Stop | None = None
        self.observer: Observer | None = None
        self.host_access: HostAccess | None = None  # the first since power-up
        self._running = False
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 and JIT else None
        self._livelock = livelock
        self._delivered = self._executed = 0  # requests, Tensix words: at `_quiet_since`
        self._quiet_since, self._next_look = 0, livelock
        self.goes_on = False  # a run is a piece of the one before: look for hangs as of one run

    @property
    def _chip(self) -> ChipPart:
        """The chip, which holds this object: it is there as long as something runs."""
        chip = self._own_chip()
        assert chip is not None
        return chip

    def run(
        self,
        until: Until,
        limit: int | None,
        timeout_s: float | None,
        resume: bool,
        most: int | None,
    ) -> Stop:
        """Run rounds until a stop; see Chip.run."""
        self.check_idle("run")
        self._check_error(resume)
        if self.observer:
            self.observer.run_begins()  # what follows is no change that a host has made
        c = self._network.state
        c.limit[0] = -1 if limit is None else count_to("limit", int(c.clock[0]), limit)
        seconds = None if timeout_s is None else arguments.seconds("timeout_s", timeout_s)
        ask = _Ask(
            self._put_until(until),
            None if seconds is None else self._now() + seconds,
            None if most is None else count_to("rounds", int(c.round[0]), most),
            time.monotonic() + (seconds or 0.0),
        )
        if not self.goes_on:
            self._quiet_since, self._next_look = int(c.round[0]), self._livelock
        self.last, self._running = None, True
        try:
            self._leave_breakpoints()
            try:
                self.last = self._loop(ask)
            finally:
                self.catch_up()
        except KeyboardInterrupt:
            interrupts.done()
            self.last = self._stop("interrupt")
        except BhemuError as problem:
            if not isinstance(problem, InputError):
                self.error = copy.copy(problem)
            raise
        finally:
            self._running = False
            if self.observer:
                self.observer.run_ended()
        return self.last

    def restored(self, error: BhemuError | None, broken: int | None) -> None:
        """The chip was put back to a state in which `error` had stopped it, at tile `broken`."""
        self.error, self.broken, self.last = error, broken, None
        if self.observer:
            self.observer.put_back()

    def check_idle(self, what: str) -> None:
        """InputError while a run goes on."""
        if self._running:
            raise InputError(f"{what} was called during a run", hint="call it when run() is over")

    def _now(self) -> float:
        """The time without what was spent on compiling."""
        spent = sum(tile.backend.table.seconds for tile in self._chip.made())
        return time.monotonic() - spent

    def _is_over(self, ask: _Ask) -> bool:
        if ask.deadline is None or time.monotonic() < ask.earliest:
            return False
        return self._now() >= ask.deadline

    def _check_error(self, resume: bool) -> None:
        if self.error is None:
            return
        if not arguments.flag("resume", resume):
            raise copy.copy(self.error)
        self.error = None
        if self.broken is not None:
            s = self._chip.numbered(self.broken).state
            s.status[0] = 0
            s.core_state[s.core_state == ASSERTED] = RUNNING
            self.broken = None

    def _put_until(self, until: Until) -> Callable[[Any], bool] | None:
        """Put word conditions into the record; a callable is returned."""
        c = self._network.state
        c.until_count[0] = 0
        c.until_polling[0] = 1 if isinstance(until, str) and until == "polling" else 0
        if until is None or callable(until):
            return until
        if isinstance(until, str):
            if until not in ("idle", "polling"):
                raise InputError(f"until = {until!r} is not known", hint=_FORMS)
            return None
        try:
            conditions = [(self._chip.number_of(xy), at, value) for xy, at, value in until]
        except (TypeError, ValueError):
            raise InputError(f"until = {until!r} is no end condition", hint=_FORMS) from None
        if len(conditions) > UNTIL_WORDS:
            raise InputError(f"{len(conditions)} until conditions, at most {UNTIL_WORDS}")
        for i, (t, at, value) in enumerate(conditions):
            address = arguments.word("until address", at)
            if address & 3 or address >= L1_SIZE:
                raise InputError(f"until address {address:#x} is not an aligned word of L1")
            c.until_tile[i], c.until_address[i] = t, address
            c.until_value[i] = arguments.word("until value", value)
        c.until_count[0] = len(conditions)
        return None

    def _leave_breakpoints(self) -> None:
        """Everything may have changed; a core that was seen on a breakpoint leaves it."""
        self._network.dram_watches.refresh()
        for t, tile in self._chip.handed_out():
            tile.before_run()
            watchpoints.refresh(tile.state)
            self._network.wake(t, tile.state)
            self._skip_seen(tile)

    def _skip_seen(self, tile: ChipTile) -> None:
        for core, retired in tile.machine.seen.items():
            if tile.state.retired[core] == retired:
                tile.machine.points.skip(core)

    def _loop(self, ask: _Ask) -> Stop:
        c, n = self._network.state, 1
        while True:
            interrupts.check()
            before, begin = int(c.round[0]), time.monotonic()
            status = self._rounds(n if ask.rounds is None else min(n, ask.rounds - before))
            stopped = self._resolve(status) if status else None
            if stopped is not None:
                return stopped
            if status == 0:
                self._look_for_livelock()
            if self.observer:
                self.observer.run_pauses()
            if ask.until is not None and c.round[0] != before and self._holds(ask.until):
                return self._stop("until")
            if ask.rounds is not None and c.round[0] >= ask.rounds:
                return self._stop("rounds")
            if self._is_over(ask):
                return self._stop("timeout")
            if ask.until is None and status == 0:
                faster = time.monotonic() - begin < _CALL_SECONDS / 2
                n = min(n * 2, 1 << 20) if faster else max(n // 2, 1)

    def catch_up(self) -> None:
        """Every tile is where it would be if it had had all its turns."""
        while self._network.call("catch_up", 0):
            stopped = self._resolve_tiles()
            assert stopped is None, stopped

    def _holds(self, until: Callable[[Any], bool]) -> bool:
        self.catch_up()
        return until(self._chip)

    def _rounds(self, n: int) -> int:
        """Run up to `n` rounds: 0, or why they stopped."""
        if self._pool is None:
            return self._network.call("run_rounds", n)
        status = 0
        while n > 0 and status == 0:
            due = self._network.call("open_round", 0)
            if due < 0:
                return rounds.CHIP_TILES
            self._run_tiles(due)
            status, n = self._network.call("finish_round", 0), n - 1
        return status

    def _run_tiles(self, due: int) -> None:
        """Run the due tiles, spread over the threads; this one takes a share too."""
        assert self._pool is not None
        shares = max(min(due, self._threads), 1)
        others = [
            self._pool.submit(self._network.call, "run_tiles", share | shares << 16)
            for share in range(1, shares)
        ]
        try:
            self._network.call("run_tiles", shares << 16)
        finally:
            wait(others)
        for other in others:
            other.result()

    def _stop(self, reason: str) -> Stop:
        return Stop(reason, None, int(self._network.state.clock[0]))

    def _resolve(self, status: int) -> Stop | None:
        """Act on a status: None to go on, a stop, or an exception."""
        if status == rounds.CHIP_IDLE:
            return self._idle()
        if status in _ENDS:
            return self._stop(_ENDS[status])
        if status == rounds.CHIP_TILES:
            return self._resolve_tiles()
        if status == rounds.CHIP_WATCH:
            return self._watched()
        if status == rounds.CHIP_MAKE:
            if self.host_access is None and self._network.wants_host_memory():
                self.host_access = host_access(self._chip, self._network.state)
            wanted = self._network.make_wanted()
            if wanted is not None:
                self._chip.numbered(wanted)
            return None
        if status == rounds.CHIP_REFUSED:
            raise refused(self._chip, self._network.state)
        raise self._no_progress({})

    def _watched(self) -> Stop | None:
        """The stop at a watchpoint on DRAM; None where its condition does not hold."""
        hit = self._network.dram_watches.taken()
        self.catch_up()
        owner = self._chip.numbered(hit.owner)
        where = sent_by(self._chip, hit.sender, hit.core, hit.pc)
        point = owner.machine.watched.points[hit.number]
        if not owner.machine.conditions.stops(hit.number, owner):
            return None
        change = Change(point, hit.before, hit.after, where, hit.read)
        return replace(self._stop("watchpoint"), where=where, change=change)

    def _resolve_tiles(self) -> Stop | None:
        """Look at the tiles that have stopped, in their order, up to one that ends the run."""
        c = self._network.state
        for t in range(TILES):
            status = int(c.stopped[t])
            if not status or not (c.due[t] or c.skip_from[t] >= 0):
                continue
            tile = self._chip.numbered(t)
            try:
                tile.backend.surface()
                stopped = self._resolve_tile(tile, status)
            except BhemuError:
                self.broken = t
                raise
            c.stopped[t] = 0
            if stopped is not None:
                return stopped
        return None

    def _resolve_tile(self, tile: ChipTile, status: int) -> Stop | None:
        """Act on the status of one tile: None to go on."""
        if status == stops.STOP_TIME:
            return None
        stopped = resolve(tile, status)
        news = None if stopped is None else tile.machine.news(stopped)
        if news is None or news.reason not in ("breakpoint", "watchpoint"):
            return news
        return replace(news, clock=int(self._network.state.clock[0]))

    def _no_progress(self, loops: "dict[int, tuple[Loop, ...]]") -> NoProgress:
        # Imported here: much code, which most programs do not need.
        from bhemu.hang.network import no_progress

        return no_progress(self._chip, loops)

    def _idle(self) -> Stop:
        """Everything is idle; a linked transaction that is still open is an error."""
        from bhemu.hang.network import linked

        if (self._network.state.tile != 0).any() and (lines := linked(self._chip)):
            raise errors.Undefined("; ".join(lines), rule="NOC-LINKED-OPEN", hint=_CLOSE)
        return self._stop("idle")

    def _look_for_livelock(self) -> None:
        """After many rounds in which nothing was delivered: NoProgress when no tile can go on."""
        c = self._network.state
        quiet = int(c.round[0]) - self._quiet_since
        if c.delivered[0] == self._delivered and (not self._livelock or quiet < self._next_look):
            return
        executed = self._network.executed()
        if (c.delivered[0], executed) != (self._delivered, self._executed):
            self._delivered, self._executed = int(c.delivered[0]), executed
            self._quiet_since, self._next_look = int(c.round[0]), self._livelock
            return
        if self._network.under_way():
            return
        self._next_look = 2 * quiet
        self.catch_up()
        from bhemu.hang.explore import livelock

        loops: dict[int, tuple[Loop, ...]] = {}
        for t in (int(t) for t in c.awake.nonzero()[0]):
            found = livelock(self._chip.numbered(t), quiet // 2)
            if not found:
                return
            loops[t] = found
        if loops:
            raise self._no_progress(loops)
