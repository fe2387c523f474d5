"""Who uses bytes that nothing has written: the first step after which two runs differ.

One run begins with these bytes as they are, the other with other ones there. Up to the step that
uses them both are the same but for these bytes.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bhemu.errors import BhemuError, Where
from bhemu.jit.subset import JIT
from bhemu.machine.error_text import where_thread
from bhemu.machine.saved import HOSTS
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Span
from bhemu.noc.record import MEMORY_SHIFT
from bhemu.tensix import spaces
from bhemu.tensix.insn import decode
from bhemu.tensix.observe import FIRST_CORE, WORDS_AND_STORES
from bhemu.tensix.state import DTYPE, OFFSET
from bhemu.why.check import Context, executed
from bhemu.why.order.conflicts import tiles
from bhemu.why.order.tiles import Sent
from bhemu.why.origin.chain import Chain, last_change
from bhemu.why.origin.outputs import last_sent, with_history
from bhemu.why.steps import Word, where
from bhemu.why.unwritten.trials import NOTHING, STRIDE, Fill, Offsets, Trials, member_of

_WATCHED = 8  # bytes that differ, of which one is seen to change
_PLACED = (  # spaces of which a word writes a part
    *(spaces.DST, spaces.L1, spaces.CFG, spaces.GPR, spaces.LREG, spaces.THREAD_CFG),
    *(spaces.ADC, spaces.SEM, spaces.SRC),
)
Run = Callable[[int], object]


class Reader(NamedTuple):
    """The step that uses a value, its clock, and whether that is a request to the NoC."""

    clock: int
    where: Where
    by_noc: bool


class Users:
    """Answers questions about bytes, as `trials` numbers them."""

    def __init__(self, context: Context, trials: Trials) -> None:
        self._context, self._trials, self._machine = context, trials, trials.machine
        self._pasts: dict[int, Tile] = {}

    def reader(self, fill: Fill) -> Reader | None:
        """The step that uses these bytes first; None without compiled code."""
        if not JIT:
            return None
        both: list[Any] = []
        for one in (fill, NOTHING):
            self._trials.begin(one)
            both.insert(0, self._machine.snapshot())
        held = self._trials.bytes()
        self._before = [held[number][at] for number, at, _ in fill.parts()]
        number, rest, most = 0, 0, self._context.end
        if self._machine.network is not None:
            rounds = self._context.symptom.machine.loop.rounds.count
            both, differ = self._apart(both, fill, self._rounds, int(rounds))
            if not differ.size:
                return None
            number, rest = divmod(int(differ[0]), STRIDE)
            if number >= len(self._trials.tiles):
                return self._sent(number, rest, self._context.end)
        tile = self._trials.tiles[number]
        if self._machine.network is not None:  # in the long run what differs may be overwritten
            self._machine.restore(both[0])
            begun = now(tile.state)
            self._rounds(1)
            most = now(tile.state) - begun
        both, differ = self._apart(both, fill, partial(self._clocks, tile), most, number)
        own = differ % STRIDE
        if {member_of(int(at))[0] for at in own} == {"gate_word"}:  # it comes to the gate now
            self._machine.restore(both[1])
            self._clocks(tile, 1)
            gate = where_thread(tile, member_of(int(own[0]))[1] // 4)
            return Reader(now(tile.state), gate, by_noc=False)
        for at in own[:_WATCHED].tolist() or [rest]:
            for start in both[::-1]:
                self._machine.restore(start)
                with tile.stepping.watched.alone("it", (Span(at, 1),)):
                    by = self._clocks(tile, 1)
                if by is not None:
                    clock = now(tile.state)
                    if by.tile == tile.xy and (by.thread is not None or by.word is not None):
                        return Reader(clock, by, by_noc=False)
                    return self._sent(number, at, clock)
        return self._sent(number, rest, self._context.end) if rest else None

    def _rounds(self, n: int) -> None:
        with suppress(BhemuError):
            self._machine.run("idle", rounds=n)

    def _clocks(self, tile: Tile, n: int) -> Where | None:
        """Run on; who has changed what is watched, or was refused."""
        try:
            change = tile.stepping.run("idle", limit=n).change
        except BhemuError as problem:
            return problem.where
        return None if change is None else change.where

    def _apart(
        self, both: list[Any], fill: Fill, run: Run, most: int, only: int | None = None
    ) -> tuple[list[Any], Offsets]:
        """The last moment at which both are the same, and the bytes that differ one unit later.

        only: on this tile; others have run on by a whole round.
        """
        step, found = 1 << most.bit_length(), NOTHING.at
        while step:
            after, held, done = [], [], executed(self._machine)
            for start in both:
                self._machine.restore(start)
                run(step)
                after.append(self._machine.snapshot())
                held.append([one.copy() for one in self._trials.bytes()])
                self._context.work.ran(max(executed(self._machine) - done, 0))
            for (number, at, values), before in zip(fill.parts(), self._before, strict=True):
                left = (held[0][number][at] == before) & (held[1][number][at] == values)
                held[0][number][at[left]] = values[left]  # what is left of the fill
            differ = [NOTHING.at]
            for number, (one, other) in enumerate(zip(*held, strict=True)):
                apart = one != other
                for name in HOSTS if number < len(self._trials.tiles) else ():
                    apart[OFFSET[name] : OFFSET[name] + DTYPE[name].itemsize] = False
                if only in (None, number):
                    differ.append(number * STRIDE + np.flatnonzero(apart))
            places = np.concatenate(differ)
            both, found = (both, places) if places.size else (after, found)
            step //= 2
        return both, found

    def _sent(self, number: int, at: int, clock: int, after: int = 0) -> Reader | None:
        """The request that has brought a byte up to a clock, or what ends up to `after` before."""
        together = tiles(self._context)
        if together is None:
            return None
        found = last_sent(self._context, partial(self._brings, number, at, clock, after))
        if found is None:
            return None
        by = where(together.observers[found.tile].tile, found.step)
        return Reader(found.step.clock, by, by_noc=True)

    def brought_up_to(self, at: int, most: int) -> tuple[Where, int] | None:
        """The last request that brought what ends at most so many bytes before a byte."""
        number, rest = divmod(at, STRIDE)
        found = self._sent(number, rest, self._context.end, most)
        return None if found is None else (found.where, found.clock)

    def _brings(self, number: int, at: int, clock: int, after: int, one: Sent) -> bool:
        low, high = one.own if one.reads else one.remote
        if number >= len(self._trials.tiles):
            bank, page = self._trials.pages[number - len(self._trials.tiles)]
            here = not one.reads and one.bank == bank
            at += page << MEMORY_SHIFT
        else:
            together, xy = tiles(self._context), self._trials.tiles[number].xy
            assert together is not None
            to = [one.tile] if one.reads else one.reached
            moves = one.reads or one.takes_data or not after
            here = moves and xy in [together.observers[n].tile.xy for n in to]
            at -= OFFSET["l1"]
        is_near = high <= at < high + after if after else low <= at < high
        return here and is_near and one.step.clock <= clock

    def maker(self, at: int, before: int | None = None) -> tuple[Where, int] | None:
        """The last step up to a clock, not a request, that wrote a byte of a tile; its clock."""
        number, rest = divmod(at, STRIDE)
        if not JIT:
            return None
        if (last := self._last_word(number, member_of(rest)[0])) is not None:
            return last
        if number not in self._pasts:
            tile, context = self._trials.tiles[number], self._context
            self._pasts[number] = context.past or with_history(context, tile.xy)
        past = Chain(self._pasts[number])
        end = now(past.tile.state)
        with suppress(BhemuError):  # in which the run has ended
            past.go_to(end if before is None else min(before, end))
        change, clock = last_change(past.tile, Span(rest & ~3, 4))
        with suppress(BhemuError):
            past.go_to(end)
        if change is None or (change.where.thread is None and change.where.word is None):
            return None
        return change.where, clock

    def _last_word(self, number: int, member: str) -> tuple[Where, int] | None:
        """The last word that writes a member of a tile as a whole, changed or not."""
        tile, found = self._trials.tiles[number], None
        if member in {name for space in _PLACED for name in space.members}:
            return None
        self._trials.begin(NOTHING)
        tile.log = []
        tile.state.trace[0] = WORDS_AND_STORES
        self._context.finish(self._machine, limit=self._context.most)
        tile.drain_log()
        tile.state.trace[0] = 0
        for agent, word, pc, _, clock in tile.log:
            cls = decode(word) if agent < FIRST_CORE else None
            terms = () if cls is None else cls.writes.of(cls.operands(word))
            if any(member in term.space.members for term in terms):
                found = agent, word, pc, clock
        tile.log = []
        if found is None:
            return None
        thread, word, pc, clock = found
        core = next((c for c in (thread + 1, 0) if tile.locate(c, pc)[0] is not None), thread + 1)
        return where(tile, Word(clock, thread, word, pc, core, pc)), clock

    def made(self, at: Offsets, number: int) -> Offsets:
        """The bytes of a tile among these that a run changes."""
        self._trials.begin(NOTHING)
        before = self._trials.bytes()[number][at]
        self._trials.result(NOTHING)
        changed: Offsets = at[self._trials.bytes()[number][at] != before]
        return changed
