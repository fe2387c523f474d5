"""Going back: marks that a machine leaves while it runs, and the moments between them.

A run repeats exactly, so any moment is a mark restored and run on. A moment is named by the clock
of a tile, which grows by one with every instruction and Tensix word of it.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bhemu import arguments
from bhemu.errors import BhemuError, InputError
from bhemu.jit.record import PAGE
from bhemu.machine import saved
from bhemu.machine.core import Core
from bhemu.machine.run import RunLoop
from bhemu.machine.saved import NetworkState, Snapshot
from bhemu.machine.stepping import Stepping, is_call
from bhemu.machine.stop import Stop, now
from bhemu.noc.grid import XY
from bhemu.noc.record import SAVED
from bhemu.program.elf import Symbols
from bhemu.riscv.assembly import RET
from bhemu.tensix.state import DTYPE

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile

EVERY = 1 << 20  # clock units of a tile that is alone between two marks, at first
MOST = 64  # marks; beyond that every second one is dropped
_WINDOW, _WIDER = 2000, 8  # how far back reverse_continue looks at first, and how that grows
_STOPS = ("breakpoint", "watchpoint")
_ZEROS = bytes(PAGE)
SECONDS = 0.05  # of the processor that runs of a chip may take between two marks, at first
COSTS = 1  # times what the last mark took is the least between two
_LEAST, _FULL = 16, 8  # marks of a chip of many tiles; tiles of which MOST marks are kept


@dataclass(frozen=True)
class TileMark:
    """A moment of a tile: pages of its record, shared with the mark before."""

    clock: int
    retired: tuple[int, ...]
    executed: tuple[int, ...]
    pages: tuple[bytes, ...]
    about: dict[str, Any]
    images: tuple[Symbols, ...]

    def state(self) -> saved.TileState:
        """The tile's state at that moment."""
        buffer = np.frombuffer(bytearray().join(self.pages), np.uint8)
        return saved.of_record(buffer, self.about, self.images, None)


@dataclass(frozen=True)
class Mark:
    """A moment of a machine that can be restored: its tiles by coordinate, what is between them.

    `changed`: the host has changed something at this clock, so that no run arrives here.
    """

    tiles: Mapping[XY, TileMark]
    network: NetworkState | None
    memory: Mapping[tuple[int, int], bytes]  # pages by memory and number
    error: BhemuError | None
    changed: bool

    def snapshot(self) -> Snapshot:
        """The machine's state at that moment."""
        tiles = {xy: mark.state() for xy, mark in self.tiles.items()}
        network = self.network
        if network is not None:
            pages = {place: np.frombuffer(data, np.uint8) for place, data in self.memory.items()}
            network = replace(network, pages=pages)
        return Snapshot(tiles, network, "the history", self.error)


def _pages(buffer: npt.NDArray[np.uint8], last: TileMark | None) -> tuple[bytes, ...]:
    """The pages of a record; those that `last` has too are the same objects, and all zeros one."""
    rows = buffer.view(np.uint64).reshape(-1, PAGE // 8)
    if last is None:
        return tuple(row.tobytes() if row.any() else _ZEROS for row in rows)
    before = np.frombuffer(b"".join(last.pages), np.uint64).reshape(rows.shape)
    differ = (rows != before).any(axis=1)
    return tuple(
        row.tobytes() if new else old
        for row, new, old in zip(rows, differ, last.pages, strict=True)
    )


def _mark_of(tile: Tile, last: TileMark | None) -> TileMark:
    """A tile as it stands; what is the same as in `last` is shared with it."""
    s = tile.state
    buffer = saved.whole_record(tile)
    record = buffer.view(DTYPE)
    for name in saved.HOSTS:
        record[name] = 0
    about, images = saved.outside(tile)
    return TileMark(
        now(s),
        tuple(int(n) for n in s.retired),
        tuple(int(n) for n in s.executed),
        _pages(buffer, last),
        about,
        images,
    )


def _shared(page: npt.NDArray[np.uint8], before: bytes | None) -> bytes:
    """The bytes of a page: the same object as before, if they are equal."""
    data = page.tobytes()
    return before if before is not None and data == before else data


class Marks:
    """The marks of a machine, from now on; its run loop tells when it runs.

    `hint`: what to do where something lies before them.
    """

    hint = "keep a history from the launch on"

    def __init__(self, loop: RunLoop, every: int = EVERY) -> None:
        self._loop = weakref.ref(loop)
        self._views: dict[int, History] = {}  # by the tile's number
        self._owner = loop.rounds.owner  # a chip without another reference stays with its tiles
        self._every = arguments.integer("every", every, 1)
        self._seconds, self._ran, self._since = SECONDS, 0.0, time.process_time()
        self.all: list[Mark] = []
        self.left: Mapping[XY, TileMark] = {}  # how the last run left the tiles that are looked at
        self.replaying = False
        self.add(self.mark())

    def history(self, tile: Tile) -> History:
        """The history as the clock of `tile` names its moments."""
        if tile.number not in self._views:
            self._views[tile.number] = History(self, tile)
        return self._views[tile.number]

    @property
    def loop(self) -> RunLoop:
        """The run loop, which holds this object: it is there as long as something runs."""
        loop = self._loop()
        if loop is None:
            raise InputError("the machine of this history is gone", hint="hold the tile or chip")
        return loop

    @property
    def _network(self) -> Any:
        return self.loop.rounds.owner.network

    # Told by the run loop

    def run_begins(self) -> None:
        """A run begins: what a host has changed since the last one is a moment too."""
        self._since = time.process_time()
        if self.replaying:
            return
        here = self.look()
        left = self.left
        if any(xy not in left or left[xy].pages != mark.pages for xy, mark in here.items()):
            self._keep(lambda old: not self._later(old, here))
            self.add(replace(self.mark(), changed=True))
            return
        # What a host had changed later is not done again by this run.
        others = [old for old in self.all if old.changed and self._later(old, here)]
        if others:
            self._keep(lambda old: not any(old is o or self._later(old, o.tiles) for o in others))

    def look(self) -> dict[XY, TileMark]:
        """What a host may change between two runs: the tiles whose history is looked at."""
        last = {**(self.all[-1].tiles if self.all else {}), **self.left}
        seen = [tile for tile in self.loop.rounds.tiles if tile.number in self._views]
        return {tile.xy: _mark_of(tile, last.get(tile.xy)) for tile in seen}

    @staticmethod
    def _later(one: Mark, other: Mapping[XY, TileMark]) -> bool:
        """Whether `one` is a later moment than the one at which the tiles were as in `other`."""
        return any(
            one.tiles[xy].clock > mark.clock for xy, mark in other.items() if xy in one.tiles
        )

    def _keep(self, which: Callable[[Mark], bool]) -> None:
        """Forget the other marks, and what was after them."""
        self.all = [mark for mark in self.all if which(mark)]
        for view in self._views.values():
            view.last = max([now(view.tile.state), *(own.clock for _, own in view.mine())])

    def run_pauses(self) -> None:
        """Between two pieces of a run."""
        if self.replaying:
            return
        if self._network is None:
            clock = self.loop.rounds.clock
            if clock - next(iter(self.all[-1].tiles.values())).clock >= self._every:
                self.add(self.mark())
            return
        began = time.process_time()
        if self._ran + began - self._since < self._seconds:
            return
        self.loop.rounds.settle()
        self.add(self.mark())
        self._since, self._ran = time.process_time(), 0.0
        self._seconds = max(self._seconds, COSTS * (self._since - began))

    def run_ended(self) -> None:
        """The user sees the machine."""
        if self._network is not None:
            self.run_pauses()
        self._ran += time.process_time() - self._since
        if not self.replaying:
            self.left = self.look()
            for view in self._views.values():
                view.last = max(view.last, now(view.tile.state))

    def restored(self) -> None:
        """What was before is no past of what is on the machine now."""
        if not self.replaying:
            self.all, self.left = [], {}
            self.add(self.mark())
            for view in self._views.values():
                view.last = now(view.tile.state)

    def add(self, mark: Mark) -> None:
        """Keep a mark; not of a part of the past that is run again."""
        if self.all and self._later(self.all[-1], mark.tiles):
            return
        self.all.append(mark)
        most = MOST
        if self._network is not None:
            most = max(_LEAST, MOST * _FULL // max(len(self.loop.rounds.tiles), _FULL))
        if len(self.all) > most:
            del self.all[1:-1:2]
            self._every *= 2
            self._seconds *= 2

    def mark(self) -> Mark:
        """The machine as it stands."""
        last = self.all[-1] if self.all else None
        before = {**(last.tiles if last else {}), **self.left}
        tiles = {tile.xy: _mark_of(tile, before.get(tile.xy)) for tile in self.loop.rounds.tiles}
        network, between, memory = self._network, None, {}
        if network is not None:
            between = NetworkState(
                {m.name: getattr(network.state, m.name).copy() for m in SAVED},
                {},
                network.grid,
                self.loop.rounds.broken,
            )
            memory = {
                place: _shared(page, last.memory.get(place) if last else None)
                for place, page in network.pages.items()
            }
        return Mark(tiles, between, memory, self.loop.error, False)

    def restore(self, mark: Mark) -> None:
        """Put the machine back to a mark; a tile that did not exist then is powered up."""
        owner = self.loop.rounds.owner
        if mark.network is None:
            ((_, only),) = mark.tiles.items()
            saved.restore(owner, only.state())
            self.loop.restored(mark.error, 0 if mark.error is not None else None)
        else:
            saved.restore_checked(owner, mark.snapshot())
        for tile in self.loop.rounds.tiles:
            tile.stepping.seen.clear()


class History:
    """The past of a machine since its marks began (keep_history), by the clock of one tile."""

    def __init__(self, marks: Marks, tile: Tile) -> None:
        self._kept, self._own_tile = weakref.ref(marks), weakref.ref(tile)
        self.last = now(tile.state)  # the latest clock that was reached

    @property
    def tile(self) -> Tile:
        """The tile."""
        tile = self._own_tile()
        if tile is None:
            raise InputError("the tile of this history is gone", hint="hold the tile or chip")
        return tile

    @property
    def stepping(self) -> Stepping:
        """What drives the machine by this tile."""
        return self.tile.stepping

    @property
    def marks(self) -> Marks:
        """The marks of the machine."""
        marks = self._kept()
        if marks is None:
            raise InputError("this history is no longer kept", hint="keep_history() begins one")
        return marks

    def mine(self) -> Iterator[tuple[Mark, TileMark]]:
        """The marks in which this tile exists, with its own part."""
        xy = self.tile.xy
        return ((mark, mark.tiles[xy]) for mark in self.marks.all if xy in mark.tiles)

    @property
    def first(self) -> int:
        """The earliest clock that can be gone to."""
        return next(own.clock for _, own in self.mine())

    def __repr__(self) -> str:
        last, marks = max(self.last, now(self.tile.state)), len(self.marks.all)
        return f"<History of clock {self.first} to {last}, {marks} marks>"

    # Moments

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """What runs within is the past once more."""
        marks = self.marks
        marks.loop.check_not_running("going back")
        marks.replaying = True
        marks.loop.conditions.counting = False
        try:
            yield
        finally:
            marks.replaying = False
            marks.loop.conditions.counting = True
            marks.left = marks.look()

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        """Nothing stops for breakpoints and watchpoints of any tile."""
        with ExitStack() as stack:
            for tile in self.marks.loop.rounds.tiles:
                stack.enter_context(tile.stepping.unobserved())
            if self.tile.network is not None:
                stack.enter_context(self.tile.network.dram_watches.suspended())
            yield

    def _latest(self, before: Callable[[TileMark], bool], moment: str) -> Mark:
        found = [mark for mark, own in self.mine() if before(own)]
        if not found:
            raise InputError(
                f"{moment} lies before the history, which begins at clock {self.first}",
                hint=self.marks.hint,
            )
        return found[-1]

    def to(self, clock: int) -> None:
        """To `clock` from the nearest mark; never from here, which a host may have changed."""
        self.marks.restore(self._latest(lambda mark: mark.clock <= clock, f"clock {clock}"))
        ahead = clock - now(self.tile.state)
        if ahead > 0:
            with self.unobserved():
                self.stepping.run("idle", limit=ahead)

    def goto(self, clock: int) -> Stop:
        """To the moment at which the clock was `clock`, or will be; nothing stops on the way."""
        clock = arguments.integer("clock", clock)
        with self.replaying():
            self.to(min(clock, self.last))
        if clock <= self.last:
            return self._arrived()
        with self.unobserved():
            return self.stepping.run("idle", limit=clock - self.last)

    def _arrived(self) -> Stop:
        return Stop("step", None, now(self.tile.state))

    def reverse_step(self, core: Core | str, n: int = 1) -> Stop:
        """To where `core`, or the core of this name, had retired `n` instructions fewer."""
        core = core if isinstance(core, Core) else self.tile.core[core]
        target = self.tile.state.retired[core.index] - arguments.integer("n", n, 1)
        with self.replaying():
            self.back_to(core, int(target))
        return self._arrived()

    def before(self, core: Core, target: int) -> None:
        """To where `core` had retired `target` instructions, or to the beginning of the history."""
        self.back_to(core, max(target, next(own.retired for _, own in self.mine())[core.index]))

    def back_to(self, core: Core, target: int) -> None:
        """To where `core` had retired `target` instructions, at or before this moment."""
        c, here = core.index, now(self.tile.state)

        def at(own: TileMark) -> int:
            return own.retired[c]

        what = f"the place before instruction {target + 1} of {core.name}"
        mark = self._latest(lambda m: at(m) <= target and m.clock <= here, what)
        earlier = [m for m, own in self.mine() if at(own) < target]
        exact = at(mark.tiles[self.tile.xy]) == target
        self.marks.restore(earlier[-1] if exact and earlier else mark)
        with self.unobserved():
            self.forward(core, target - int(self.tile.state.retired[c]))

    def forward(self, core: Core, n: int) -> None:
        """Until `core` has retired `n` more instructions of the past."""
        s, c = self.tile.state, core.index
        if n <= 0:
            return
        s.retired_limit[c] = int(s.retired[c]) + n
        try:
            self.stepping.run("idle")
        finally:
            s.retired_limit[c] = -1

    def reverse_tstep(self, thread: int, n: int = 1) -> Stop:
        """To where Tensix thread `thread` had executed `n` words fewer."""
        thread = arguments.thread(thread)
        target = int(self.tile.state.executed[thread]) - arguments.integer("n", n, 1)
        here = now(self.tile.state)
        what = f"the place before word {target + 1} of T{thread}"
        with self.replaying():
            mark = self._latest(lambda m: m.executed[thread] <= target and m.clock <= here, what)
            self.marks.restore(mark)
            ahead = target - int(self.tile.state.executed[thread])
            if ahead > 0:
                with self.unobserved():
                    self.stepping.tstep(thread, ahead)
        return self._arrived()

    def reverse_continue(self) -> Stop:
        """To the last stop at a breakpoint or watchpoint before now, else to the beginning."""
        return self._back_to_stop(now(self.tile.state))

    def last_stop(self) -> Stop:
        """As reverse_continue; a stop at this very moment counts too."""
        return self._back_to_stop(now(self.tile.state) + 1)

    def _back_to_stop(self, end: int) -> Stop:
        with self.replaying():
            window = _WINDOW
            while end > self.first:
                begin = max(end - window, self.first)
                self.to(begin)
                here = self.marks.mark()
                count = sum(1 for _ in self._stops(end))
                if count:
                    self.marks.restore(here)
                    stops = self._stops(end)
                    return [next(stops) for _ in range(count)][-1]
                end, window = begin, window * _WIDER
            self.marks.restore(next(mark for mark, _ in self.mine()))
        return self._arrived()

    def _stops(self, end: int) -> Iterator[Stop]:
        """Run on from stop to stop, as long as they are before clock `end`."""
        while now(self.tile.state) < end:
            try:
                stop = self.stepping.run("idle", limit=end - now(self.tile.state))
            except BhemuError:
                return  # the error that ended the run
            if stop.reason not in _STOPS or stop.clock >= end:
                return
            yield stop

    def reverse_next(self, core: Core | str) -> Stop:
        """One instruction back; a call that has returned is gone back over as a whole."""
        core = core if isinstance(core, Core) else self.tile.core[core]
        tile, c = self.tile, core.index
        after, stack = core.pc, int(core.regs[2])
        stop = self.reverse_step(core)
        if tile.read32(core.pc) != RET or not is_call(tile.read32(after - 4)):
            return stop
        with self.unobserved(), self.stepping.points.temporary(c, [after - 4]):
            while True:
                stop = self.reverse_continue()
                at_call = core.pc == after - 4 and int(core.regs[2]) >= stack
                if stop.reason != "breakpoint" or at_call:
                    return stop
