"""How the rounds of a machine run: those of a tile alone, or of tiles on their NoCs."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu import errors
from bhemu.errors import BhemuError, InputError
from bhemu.jit import Later
from bhemu.jit.record import plain
from bhemu.jit.subset import JIT
from bhemu.machine.stop import Stop, now, stop
from bhemu.machine.watchpoints import Change
from bhemu.memmap import L1_SIZE
from bhemu.noc import rounds
from bhemu.noc.grid import number_at
from bhemu.noc.network import Network
from bhemu.noc.record import DELIVERY, TILES_RUN, UNTIL_WORDS
from bhemu.tensix import observe, rules
from bhemu.tensix.in_flight import ask_sleepers
from bhemu.tensix.loop import period
from bhemu.tensix.thread import ALL_THREADS

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from bhemu.machine import error_text
    from bhemu.machine.controls import Controls
    from bhemu.machine.hang.explore import Loop
    from bhemu.machine.tile import Tile
else:
    error_text = Later("bhemu.machine.error_text")

Word = tuple["Tile", int, int]  # of L1 of a tile: address, value
Memory = dict[str, list[int]]

_ROUNDS = 1 << 40  # of one call: compiled code returns when its time slice is over
_CALL_SECONDS = 0.02  # how long compiled code of several tiles may run between two looks
_ENDS = {rounds.CHIP_UNTIL: "until", rounds.CHIP_LIMIT: "limit", rounds.CHIP_POLLING: "polling"}
_STOPS = {
    rules.STOP_STEP: "step",
    rules.STOP_BREAKPOINT: "breakpoint",
    rules.STOP_UNTIL: "until",
    rules.STOP_LIMIT: "limit",
    rules.STOP_IDLE: "idle",
    rules.STOP_WATCH: "watchpoint",
}
_UNSEEN = (rules.STOP_TIME, rules.STOP_FLUSH, rules.STOP_LOG)  # what no user sees of a tile
_LOOKS = 64  # rounds between two looks at what hangs, where each round returns
_CLOSE = "the last request of a linked transaction has NOC_CMD_VC_LINKED clear"


class Rounds:
    """The rounds of a machine. `broken`: the tile whose error stopped them."""

    put_limit: Callable[[int | None], None]  # stop when the machine's clock is there; None: never

    def __init__(self, owner: Controls) -> None:
        self._owner = weakref.ref(owner)
        self.broken: int | None = None
        self.tile_limits: dict[int, int] = {}  # clocks; where there are any, the machine has none
        self.threads = 1  # of Python, that run tiles

    @property
    def owner(self) -> Any:
        """The tile or the chip, which holds this object: it is there as long as something runs."""
        owner = self._owner()
        assert owner is not None
        return owner

    @property
    def tiles(self) -> Sequence[Tile]:
        """The tiles that exist."""
        made: Sequence[Tile] = self.owner.tiles_made()
        return made

    @property
    def compile_seconds(self) -> float:
        """What compiling took so far."""
        return sum(tile.backend.table.seconds for tile in self.tiles)

    @property
    def clock(self) -> int:
        """The machine's clock."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """Rounds completed."""
        raise NotImplementedError

    def put_words(self, words: Sequence[Word], *, polling: bool) -> None:
        """Stop where all these words hold, or where every core that runs only polls."""
        for tile in self.tiles:
            tile.state.until_count[0] = 0
        for tile, address, value in words:
            s = tile.state
            i = int(s.until_count[0])
            s.until_address[i], s.until_value[i] = address, value
            s.until_count[0] = i + 1

    @property
    def is_whole(self) -> bool:
        """Whether a saved state and `memory` are all of it."""
        return True

    def memory(self) -> Memory:
        """What go_on() puts back: where a run stands that no saved state tells."""
        return {"until_count": [int(tile.state.until_count[0]) for tile in self.tiles]}

    def go_on(self, memory: Memory) -> None:
        """The run goes on whose rounds had this memory in another process."""
        for tile, count in zip(self.tiles, memory["until_count"], strict=True):
            tile.publish_host_writes()
            tile.state.until_count[0] = count

    def begin(self, *, quiet_since_now: bool) -> None:
        """A run begins; the host may have changed everything that it can reach."""
        if quiet_since_now:
            for tile in self.tiles:
                tile.state.quiet[0] = tile.state.quiet_next[0] = 0
        for tile in self.owner.exposed():
            tile.publish_host_writes()
            if tile.state.timed[0]:
                plain(ask_sleepers)(tile.state)
            observe.refresh(tile.state)
            tile.stepping.leave_breakpoints()

    def advance(self, *, one: bool, most: int | None) -> tuple[Stop | None, bool]:
        """Run rounds, `one` or as many as are good, at most `most`: (stop, a round has ended)."""
        raise NotImplementedError

    def settle(self, t: int | None = None) -> None:
        """Tile `t`, or every tile, is where it would be if it had had all its turns."""

    def end(self) -> None:
        """A run is over: a host may end what threads wait for."""
        for tile in self.owner.exposed():
            tile.state.sweep_due[0], tile.state.sweep_idle[0] = ALL_THREADS, 0
        for tile in self.tiles:
            tile.state.limit[0] = -1
            tile.backend.count_skipped()

    def resolve_tile(self, tile: Tile, status: int) -> Stop | None:
        """Act on the status with which a tile has stopped: None to go on."""
        try:
            tile.backend.surface()
            stopped = None if status == rules.STOP_TIME else _resolved(tile, status)
            return None if stopped is None else tile.stepping.user_visible(stopped)
        except BhemuError:
            self.broken = tile.number
            raise


def _resolved(tile: Tile, status: int) -> Stop | None:
    """Act on a status: None to go on, a Stop, or an exception."""
    s, engine = tile.state, tile.backend.engine
    if status < 0:
        # The error of a Tensix word, its place with what the word would have done
        error = error_text.rule_error(tile, status)
        where = error.where
        if where is not None and where.thread is not None and where.word is not None:
            from bhemu.machine.word_text import describe

            error.where = replace(where, operands=describe(tile, where.thread, where.word) or None)
        raise error
    c = int(s.core[0])
    if status == rules.STOP_FLUSH:
        engine.flush(c)
    elif status == rules.STOP_CODE_PAGE:
        if not engine.make_executable(c, int(s.pc[c])):
            raise error_text.fetch_error(tile, c)
    elif status == rules.STOP_ENGINE:
        raise error_text.engine_error(tile)
    elif status == rules.STOP_ASSERT:
        raise error_text.assert_error(tile, int(s.agent[0]))
    elif status in (rules.STOP_DEADLOCK, rules.STOP_QUIET):
        # Imported here: much code, which most programs do not need.
        from bhemu.machine.hang.explore import livelock
        from bhemu.machine.hang.graph import no_progress

        # The look may follow half as many instructions as rounds went by: a small part of the time.
        loops = () if status == rules.STOP_DEADLOCK else livelock(tile, int(s.quiet[0]) // 2)
        if status == rules.STOP_DEADLOCK or loops:
            raise no_progress(tile.machine, {number_at(tile.xy): loops} if loops else {})
    elif status == rules.STOP_LOG:
        tile.drain_log()
    else:
        return stop(tile, _STOPS[status])
    return None


class RoundsOfOneTile(Rounds):
    """The compiled loop of one tile, which no NoC connects with others."""

    _polling = False

    @property
    def _tile(self) -> Tile:
        tile: Tile = self.owner.tile_at_index(0)
        return tile

    @property
    def clock(self) -> int:
        """Of the tile."""
        return now(self._tile.state)

    @property
    def count(self) -> int:
        """Of the tile."""
        return int(self._tile.state.round[0])

    def put_limit(self, clock: int | None) -> None:
        """As of every machine."""
        self._tile.state.limit[0] = -1 if clock is None else clock

    def put_words(self, words: Sequence[Word], *, polling: bool) -> None:
        """As of every machine."""
        super().put_words(words, polling=polling)
        self._polling = polling

    def advance(self, *, one: bool, most: int | None) -> tuple[Stop | None, bool]:
        """As of every machine."""
        tile = self._tile
        n = 1 if one or self._polling else _ROUNDS
        status = tile.backend.rounds(n if most is None else min(n, most))
        if status not in (0, rules.STOP_TIME):
            return self.resolve_tile(tile, status), False
        if status == 0 and self._polling and plain(period)(tile.state):
            return Stop("polling", None, self.clock), True
        return None, status == 0


class RoundsOnNetwork(Rounds):
    """The compiled loop of the tiles of a chip, with delivery between rounds.

    livelock: rounds without a Tensix word and a delivery after which a look follows, 0 = none.
    """

    def __init__(self, owner: Controls, network: Network, livelock: int, threads: int) -> None:
        super().__init__(owner)
        self._network = network
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        if threads > 1 and JIT:
            # Takes milliseconds, which few runs need
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(threads - 1)
        self.livelock = livelock
        self._quiet_since, self._next_look = 0, livelock  # rounds
        self._n = 1  # rounds of the next call
        self.host_access: error_text.HostAccess | None = None  # the first since power-up

    @property
    def compile_seconds(self) -> float:
        """Of the tiles and of the network."""
        return super().compile_seconds + self._network.seconds

    @property
    def clock(self) -> int:
        """The largest progress of a tile in each round, at least 1 per round, summed up."""
        c, moved = self._network.state, 0
        if c.phase[0] == TILES_RUN:
            for t in (c.begun >= 0).nonzero()[0]:
                s = self.owner.tile_at_index(int(t)).state
                moved = max(moved, now(s) - int(c.begun[t]))
        return int(c.clock[0]) + moved

    @property
    def count(self) -> int:
        """Of the chip."""
        return int(self._network.state.round[0])

    def put_limit(self, clock: int | None) -> None:
        """As of every machine: a tile stops in its turn when that brings the clock there."""
        c = self._network.state
        if self.tile_limits:
            clock = None
        c.limit[0] = -1 if clock is None else clock
        for tile in self.tiles:
            begun = int(c.begun[tile.number])
            own = self.tile_limits.get(tile.number, -1)
            if clock is not None:
                own = -1 if begun < 0 else begun + clock - int(c.clock[0])
            tile.state.limit[0] = own

    def put_words(self, words: Sequence[Word], *, polling: bool) -> None:
        """As of every machine."""
        super().put_words(words, polling=polling)
        c = self._network.state
        if len(words) > UNTIL_WORDS:
            raise InputError(f"{len(words)} until conditions, at most {UNTIL_WORDS} are possible")
        c.until_polling[0], c.until_count[0] = int(polling), len(words)
        c.until_own[:] = 0
        for i, (tile, address, value) in enumerate(words):
            c.until_tile[i], c.until_address[i], c.until_value[i] = tile.number, address, value
            c.until_own[tile.number] += 1
        if c.phase[0] == TILES_RUN:
            # In the middle of a round: a tile stands where its words have come to hold in it
            c, own = self._network.state, dict[int, bool]()
            for tile, address, value in words:
                own[tile.number] = own.get(tile.number, True) and tile.read32(address) == value
            stand = [int(t) for t in (c.stopped == rules.STOP_UNTIL).nonzero()[0]]
            for t in stand:
                c.stopped[t] = rules.STOP_UNTIL if own.get(t) else 0
            if any(own.get(t) for t in stand) or not all(own.values()):
                for t in (t for t, holds in own.items() if holds):
                    self.owner.tile_at_index(t).state.until_count[0] = 0

    @property
    def is_whole(self) -> bool:
        """As of every machine: not in the middle of a delivery."""
        return int(self._network.state.phase[0]) != DELIVERY

    def memory(self) -> Memory:
        """As of every machine."""
        c = self._network.state
        quiet_since = max(self._quiet_since, int(c.touched.max()) + 1)
        looks = [quiet_since, self._next_look]
        return {**super().memory(), "looks": looks, "stopped": c.stopped.tolist()}

    def go_on(self, memory: Memory) -> None:
        """As of every machine."""
        super().go_on(memory)
        self._quiet_since, self._next_look = memory["looks"]
        self._network.state.stopped[:] = memory["stopped"]

    def begin(self, *, quiet_since_now: bool) -> None:
        """As of every machine."""
        if quiet_since_now:
            self._quiet_since, self._next_look = self.count, self.livelock
        self._network.dram_watches.refresh()
        super().begin(quiet_since_now=quiet_since_now)
        for tile in self.owner.exposed():
            self._network.wake(tile.number, tile.state)
        self._n = 1

    def advance(self, *, one: bool, most: int | None) -> tuple[Stop | None, bool]:
        """As of every machine."""
        n = 1 if one else self._n
        if self.livelock and n > 1:
            n = min(n, max(self._next_look - self._quiet(), 1))
        before, began = self.count, time.monotonic()
        status = self._run(n if most is None else min(n, most))
        stopped = self._resolve(status) if status else None
        if stopped is not None:
            return stopped, False
        if status == 0:
            if self.livelock and (not one or self.count % _LOOKS == 0):
                self._look_for_livelock()
            faster = time.monotonic() - began < _CALL_SECONDS / 2
            self._n = min(n * 2, 1 << 20) if faster else max(n // 2, 1)
        return None, self.count != before

    def straight(self, n: int) -> Stop | None:
        """Up to `n` rounds with nothing looked at between them: a stop, None where they are over.

        For a machine that nothing else drives: what ends it is as the last run() has put it.
        """
        end = self.count + n
        while self.count < end:
            status = self._run(end - self.count)
            stopped = self._resolve(status) if status else None
            if stopped is not None:
                return stopped
        return None

    def settle(self, t: int | None = None) -> None:
        """As of every machine: those that only poll are left out of rounds."""
        while self._network.call("catch_up", 0 if t is None else t + 1):
            stopped = self._resolve_tiles()
            assert stopped is None, stopped

    def _run(self, n: int) -> int:
        """Run up to `n` rounds: 0, or why they stopped."""
        if self._pool is None:
            return self._network.call("run_rounds", n)
        status = 0
        while n > 0 and status == 0:
            due = self._network.call("open_round", 0)
            if due < 0:
                return rounds.CHIP_TILES
            # Run the due tiles, spread over the threads; this one takes a share too
            shares = max(min(due, self.threads), 1)
            from concurrent.futures import wait

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
            status, n = self._network.call("finish_round", 0), n - 1
        return status

    def _stop(self, reason: str) -> Stop:
        return Stop(reason, None, self.clock)

    def _resolve(self, status: int) -> Stop | None:
        """Act on a status: None to go on, a stop, or an exception."""
        actions: dict[int, Callable[[], Stop | None]] = {
            rounds.CHIP_IDLE: self._idle,
            rounds.CHIP_TILES: self._resolve_tiles,
            rounds.CHIP_WATCH: self._watched,
            rounds.CHIP_MAKE: self._make,
        }
        if status in _ENDS:
            return self._stop(_ENDS[status])
        if status in actions:
            return actions[status]()
        if status == rounds.CHIP_REFUSED:
            raise error_text.refused(self.owner, self._network.state)
        raise self._no_progress({})

    def _make(self) -> None:
        if self.host_access is None and self._network.wants_host_memory():
            self.host_access = error_text.host_access(self.owner, self._network.state)
        wanted = self._network.make_wanted()
        if wanted is not None:
            self.owner.tile_at_index(wanted)

    def _watched(self) -> Stop | None:
        """The stop at a watchpoint on DRAM; None where its condition does not hold."""
        hit = self._network.dram_watches.taken()
        self.settle()
        tile: Tile = self.owner.tile_at_index(hit.owner)
        where = error_text.sent_by(self.owner, hit.sender, hit.core, hit.pc)
        point = tile.stepping.watched.points[hit.number]
        if not tile.loop.conditions.stops(hit.number, tile):
            return None
        change = Change(point, hit.before, hit.after, where, hit.read)
        return replace(self._stop("watchpoint"), where=where, change=change)

    def _resolve_tiles(self) -> Stop | None:
        """Look at the tiles that have stopped, in their order, up to one that ends the run.

        Those with a stop that nothing shows of finish the round before.
        """
        c = self._network.state
        statuses, chosen = c.stopped.tolist(), np.isin(c.stopped, _UNSEEN)
        for t in (c.stopped == rules.STOP_CODE_PAGE).nonzero()[0].tolist():
            s = self.owner.tile_at_index(t).state
            chosen[t] = s.pc[s.core[0]] < L1_SIZE  # elsewhere nothing is executed: an error
        if not chosen.any():
            chosen = (c.stopped != 0) & (c.stopped != rules.STOP_UNTIL)
        c.stopped[chosen] = 0  # what comes after one that ends the run stops again
        for t in (chosen & ((c.due != 0) | (c.skip_from >= 0))).nonzero()[0].tolist():
            stopped = self.resolve_tile(self.owner.tile_at_index(t), statuses[t])
            if stopped is not None:
                return stopped
        return None

    def _idle(self) -> Stop:
        """Everything is idle; a linked transaction that is still open is an error."""
        from bhemu.machine.hang.graph import linked

        if (self._network.state.tile != 0).any() and (lines := linked(self.owner)):
            raise errors.Undefined("; ".join(lines), rule="NOC-LINKED-OPEN", hint=_CLOSE)
        return self._stop("idle")

    def _no_progress(self, loops: dict[int, tuple[Loop, ...]]) -> BhemuError:
        # Imported here: much code, which most programs do not need.
        from bhemu.machine.hang.graph import no_progress

        if len(self.tiles) == 1:
            self.broken = self.tiles[0].number
        return no_progress(self.owner, loops)

    def _quiet(self) -> int:
        """Rounds in which no tile executed a word, and nothing was delivered to one."""
        c, now_ = self._network.state, self.count
        quiet = now_ - max(self._quiet_since, int(c.touched.max()) + 1)
        for t in (int(t) for t in c.awake.nonzero()[0]):
            own = int(self.owner.tile_at_index(t).state.quiet[0])
            if c.skip_from[t] >= 0:
                own += now_ - int(c.skip_from[t])
            quiet = min(quiet, own)
        return quiet

    def _look_for_livelock(self) -> None:
        """After many such rounds: NoProgress when no tile can go on."""
        quiet = self._quiet()
        if quiet < self.livelock:
            self._next_look = self.livelock
        if quiet < self._next_look or self._network.under_way():
            return
        self._next_look = 2 * quiet
        self.settle()
        from bhemu.machine.hang.explore import livelock

        loops: dict[int, tuple[Loop, ...]] = {}
        for t in (int(t) for t in self._network.state.awake.nonzero()[0]):
            found = livelock(self.owner.tile_at_index(t), quiet // 2)
            if not found:
                return
            loops[t] = found
        if loops:
            raise self._no_progress(loops)
