"""The results of an observed run: unordered accesses, transfers, polls, releases."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from bhemu.errors import InputError
from bhemu.jit.subset import JIT
from bhemu.memmap import OVERLAY_BASE, OVERLAY_END
from bhemu.noc.grid import XY
from bhemu.tensix import formats
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.insn import decode
from bhemu.tensix.units.sync import SEMPOST
from bhemu.why import order as r
from bhemu.why.check import RUN, Context
from bhemu.why.order.observe import Observer, kind, l1_address, owner_of, threads
from bhemu.why.order.shadow import PACKED, UNPACKED
from bhemu.why.order.tiles import CodeThen, Landed, Sent, Tiles
from bhemu.why.steps import Instruction, Step, Word, made_step


@dataclass(frozen=True)
class Event:
    """An access: the agent that made it, for which owner, and their clocks."""

    step: Step
    agent: int
    clock: int
    owner: int
    owner_clock: int  # of the core or thread's issue
    write: bool
    waited: bool = False  # the owner has waited since it last let another agent go on
    wait: Step | None = None  # a wait of the thread that does not hold this word back
    push_clock: int = 0  # of the core that pushed a word
    again: bool = False  # the owner has made the same access before, since it last waited
    taken: int | None = None  # the semaphore that the owner last waited for
    acquired: int = 0  # the owner's clock when it did
    poll: tuple[int, Step] | None = None  # its core's last load of a word that it polls
    vector: Any = None  # the clocks of owners that its owner knew
    before: Step | None = None  # the owner's last access to Dst before that wait
    given: bool = False  # the first value of that semaphore let it pass
    home: int = 0  # the number of its tile
    sent: Sent | None = None  # the request that makes the access
    known: Any = None  # of two tiles: what came before it, by columns of all tiles
    previous: tuple[int, int] | None = None  # column, clock of the writer before it, if of its tile
    older: tuple[int, int] | None = None  # the same, if of another tile

    @property
    def thread(self) -> int | None:
        """The thread that it belongs to; a TRISC belongs to its own thread."""
        step = self.step
        if isinstance(step, Word):
            return step.thread if step.core else None
        return step.core - 1 if 1 <= step.core <= 3 else None


@dataclass(frozen=True)
class Conflict:
    """Two accesses to `place` (record.py) in the order in which they happened.

    units: they are unordered only because units or requests of the tile take time. foreign: the
    second one changes a field that belongs to the first one's thread. clears: the store of a core
    to a Config word that clears the fields which another core's store sets. bank: of DRAM, in which
    the place is an address.
    """

    place: int
    first: Event
    second: Event
    units: bool
    foreign: bool = False
    clears: Event | None = None
    number: int = 0  # among the pairs of its tile
    bank: int | None = None

    @property
    def thread(self) -> int | None:
        """The thread whose unit alone reads the place, if it is of Config."""
        if kind(self.place) != "Config":
            return None
        return threads().get((self.place - r.CONFIG) % (32 * CONFIG_WORDS))


class Look(NamedTuple):
    """A core has branched on a word of L1, which has this number.

    needed: the number of the value with which it went on, -1 = what was there at the start.
    """

    core: int
    epoch: int
    word: int
    step: Instruction
    needed: int


class Transfer(NamedTuple):
    """An UNPACR (`reads`) or PACR of L1 `first` to `end`.

    datums: of an UNPACR that does not tilize. by_format, by_address: the steps that set the Config
    words of the format and address.
    """

    step: Word
    reads: bool
    first: int
    end: int
    fmt: str
    datums: int
    by_format: Step | None
    by_address: Step | None


_FEW = 32  # of a chip of more than TILES tiles, one of each kind at least
_AFTER_END = 5000  # clock units after the end of a program
_HANGS = 100_000  # of a program that goes on for ever
_PRICE = 60  # an observed instruction or word costs as much as so many plain ones


class Observed:
    """What an observer has recorded of a tile.

    notes: the acts of the tile, in order (shadow.py).
    """

    def __init__(
        self,
        observer: Observer,
        ends: Sequence[int] = (),
        together: Tiles | None = None,
        *,
        whole: bool = True,
    ) -> None:
        """whole: the run came to its end, so that what it never needed is not needed later."""
        self.tile, self.record, self._observer = observer.tile, observer.record, observer
        self.together, self.number = together, int(observer.record.number[0])
        self.whole, self.template = whole, observer.template
        self._ends = {at >> 2 for at in ends}
        o = self.record
        self.notes = o.note[: int(o.notes[0])]
        last = int(o.logged[0])
        at = np.arange(max(last - r.LOG, 0), last) % r.LOG
        self._stores: list[list[int]] = o.log[at].tolist()

    def transfers(self) -> Iterator[Transfer]:
        """The UNPACRs and PACRs, in order."""
        held = self.notes
        for row in held[np.isin(held[:, r.N_WHAT], (UNPACKED, PACKED))].tolist():
            pc, thread = row[r.N_PC], row[r.N_THREAD]
            step = Word(row[r.N_TIME], thread, row[r.N_VALUE], pc, row[r.N_CORE], pc)
            code, reads = row[r.N_FORMAT], row[r.N_WHAT] == UNPACKED
            fmt = formats.NAMES.get(code, f"format {code}")
            low, high, datums = row[r.N_LOW], row[r.N_HIGH], row[r.N_DATUMS]
            set_by = (row[at : at + 6] for at in (r.N_BY_FORMAT, r.N_BY_ADDRESS))
            by_format, by_address = (made_step(*by) if by[1] else None for by in set_by)
            yield Transfer(step, reads, low, high, fmt, datums, by_format, by_address)

    def loads(self, core: int, address: int) -> tuple[int, int | None] | None:
        """(pc, clock if known) of a load of an L1 word by a core that nothing has written since."""
        for one in self.record.event[self.record.reader[address >> 2]].tolist():
            if one[r.AGENT] == core:
                return one[r.PC], one[r.TIME]
        polled = (pc for who, pc, at in self.polls if (who, at) == (core, address))
        return next(((pc, None) for pc in polled), None)

    @property
    def polls(self) -> list[tuple[int, int, int]]:
        """(core, pc, address) of loads that read one word of L1 until it changes."""
        last, slot = self.record.site_last, self.record.slot
        sites = ((core, *last[core, i].tolist()) for core, i in np.argwhere(last[:, :, 2]).tolist())
        return [(core, pc, at) for core, pc, at, _ in sites if slot[at >> 2]]

    def stores_to(self, address: int) -> list[tuple[int, int]]:
        """(core, pc) of the stores of cores to a word, in order."""
        return [(by, pc) for word, _, by, _, pc, _ in self._stores if word == address >> 2]

    def writer(self, core: int, address: int, before: float = inf) -> Step | None:
        """Another core's last store to a word, before a clock."""
        for word, _, by, _, pc, time in reversed(self._stores):
            if word == address >> 2 and by != core and time <= before:
                return made_step(pc, pc, 0, by, -1, time)
        return None

    def _ring(self, who: int) -> list[list[int]]:
        count = int(self.record.releases[who])
        at = np.arange(max(count - r.RELEASED, 0), count) % r.RELEASED
        found: list[list[int]] = self.record.release[who, at].tolist()
        return found

    def releases(self, owner: int) -> list[tuple[int, Step]]:
        """(clock of the owner, step) of all acts by which an owner lets others go on."""
        found = [(one[0], made_step(one[1], *one[1:6])) for one in self._ring(owner)]
        slots = self.record.slot
        found += [
            (clock, made_step(pc, pc, 0, core, -1, time))
            for word, _, core, clock, pc, time in self._stores
            if core == owner and (word in self._ends or slots[word])
        ]
        return sorted(found, key=lambda one: one[0])

    def has_waited(self, event: Event) -> bool:
        """Whether the owner of an event has waited, and let nothing go on since."""
        since = range(event.acquired + 1, event.owner_clock + 1)
        return event.waited and not any(clock in since for clock, _ in self.releases(event.owner))

    def ignores(self, event: Event, other: Event) -> bool:
        """Whether the owner of `other` never reads the streams that `event`'s owner changes.

        The core that pushes a thread's words is asked, too. False if nothing is counted.
        """
        names = {one[6] for one in self._ring(event.owner) if one[0] >= event.owner_clock}
        counts = {name for name in names if OVERLAY_BASE <= name < OVERLAY_END}
        rows = [other.owner, other.step.core]
        return bool(counts) and counts.isdisjoint(self.record.looked[rows].flat)

    def is_kept(self, event: Event) -> bool:
        """Whether nothing takes from the semaphore whose posts the owner of an event waits for."""
        i = event.taken
        if i is None or self.record.sem_count[i, 1]:
            return False
        steps = (step for _, step in self.releases(event.owner) if isinstance(step, Word))
        posts = (SEMPOST.sem_sel.get(one.word) for one in steps if decode(one.word) is SEMPOST)
        return not any(semaphores >> i & 1 for semaphores in posts)

    def begun(self, event: Event) -> tuple[Step, int] | None:
        """The SEMINIT of the semaphore that let an event's owner pass without a post; its value."""
        if event.taken is None or not event.given:
            return None
        value = int(self.record.sem_start[event.taken, 0])
        return made_step(*self.record.sem_init[event.taken].tolist()), value

    def release_after(self, event: Event) -> Step | None:
        """The owner's first act after an access by which it lets others go on."""
        later = [step for clock, step in self.releases(event.owner) if clock >= event.owner_clock]
        return later[0] if later else None

    def old_look(self, event: Event, other: Event) -> Look | None:
        """The owner's last look before an event, if it is old (see is_old): at a word that the
        other owner has stored to."""
        own = (one for one in looks(self.record) if one.core == event.owner)
        look = next((one for one in reversed([*own]) if one.epoch <= event.owner_clock), None)
        slot = -1 if look is None else int(self.record.slot[look.word]) - 1
        if look is None or slot < 0 or not (self.whole and knows_looks(self.record)):
            return None
        count = int(self.record.values[slot])
        values = {n: self.record.value[slot, n % r.VALUES] for n in range(count)[-r.VALUES :]}
        stored = [n for n, one in values.items() if one[1] == other.owner and not one[3]]
        return look if is_old(looks(self.record, [look.word]), look, stored) else None

    def poll_for(self, event: Event, other: Event) -> tuple[Step | None, int]:
        """The poll before an access, and how often the other side has stored to the polled word."""
        word, poll = event.poll or (None, None)
        return poll, sum(one[0] == word and one[2] == other.step.core for one in self._stores)

    def conflicts(self, *, units: bool, apart: bool = False) -> list[Conflict]:
        """Pairs that are unordered if units take time, or (`units` False) even if none does.

        apart: of two tiles, as they happened.
        """
        found = []
        for number, row in self._observer.rows():
            bits, of_two = row[r.BITS], row[r.HOME] != row[r.EVENT + r.HOME]
            at = l1_address(row[r.PLACE]) if bits & r.IF_DATA else None
            if at is not None and self.record.marks[at >> 2] & r.BRANCHED:
                continue
            if of_two == apart and (units or bits & (r.BY_SPEED | r.FOREIGN)):
                known = self.record.pair_known[number].copy() if apart else None
                first, second = (self._event(row[n * r.EVENT :], units, known) for n in range(2))
                by = second if bits & r.SECOND_CLEARS else first
                clears = by if bits & (r.FIRST_CLEARS | r.SECOND_CLEARS) else None
                what = units, bool(bits & r.FOREIGN), clears, number
                found.append(Conflict(row[r.PLACE], first, second, *what))
        return found

    def stand_at(self, conflict: Conflict) -> list[str]:
        """Restore the code that made a conflict, of a session; see CodeThen."""
        if self.together is None or self.together.code is None:
            return []
        steps = [(one.home, one.step) for one in (conflict.first, conflict.second)]
        return self.together.code.stand((self.number, conflict.number), steps)

    def _event(self, row: list[int], units: bool, known: Any = None) -> Event:
        owner, sent, home = owner_of(row[r.AGENT]), None, row[r.HOME]
        if row[r.SENT]:
            assert self.together is not None
            owner, sent = row[r.CORE], self.together.sent[home][row[r.SENT] - 1]
            known = sent.known[r.PLAIN :]
        elif known is not None:
            own = slice(r.OWNERS * home, r.OWNERS * (home + 1))
            np.maximum(known[own], row[r.KNOWN : r.EVENT], out=known[own])
        wait, poll, time, before = row[r.WAIT], row[r.POLL], row[r.TIME], row[r.BEFORE]
        thread, core = row[r.THREAD], row[r.CORE]
        return Event(
            step=made_step(*row[r.PC : r.PC + 6]),
            agent=row[r.AGENT] if units else owner,
            clock=row[r.CLOCK] if units else row[r.OWNER_CLOCK],
            owner=owner,
            owner_clock=row[r.OWNER_CLOCK],
            write=bool(row[r.WRITE]),
            waited=bool(row[r.WAITED]),
            wait=made_step(wait, wait, row[r.WAIT_WORD], core, thread, time) if wait else None,
            push_clock=row[r.PUSH_CLOCK],
            again=bool(row[r.AGAIN]),
            taken=(row[r.TAKEN] - 1) % 8 if row[r.TAKEN] else None,
            given=row[r.TAKEN] > 8,
            acquired=row[r.ACQUIRED],
            poll=(row[r.POLL_WORD], self._instruction(core, poll, time)) if poll else None,
            vector=row[r.KNOWN : r.EVENT],
            before=made_step(before, before, 0, core, thread, time) if before else None,
            home=home,
            sent=sent,
            known=known,
            previous=(row[r.PREVIOUS] - 1, row[r.PREVIOUS + 1]) if row[r.PREVIOUS] > 0 else None,
            older=(-1 - row[r.PREVIOUS], row[r.PREVIOUS + 1]) if row[r.PREVIOUS] < 0 else None,
        )

    def _instruction(self, core: int, pc: int, time: int) -> Instruction:
        return Instruction(time, core, pc, int(self.tile.state.l1.view("<u4")[pc >> 2]))

    @property
    def left(self) -> list[tuple[Instruction, int]]:
        """The last instruction of each core that left its ELFs, and the next address."""
        found = self._observer.left.items()
        return [(self._instruction(core, pc, time), to) for core, (pc, time, to) in found]


def in_dram(together: Tiles) -> Iterator[Conflict]:
    """The conflicts of two tiles in DRAM, as they happened; without looks at flags, which are reads
    of what a core branches on."""
    for first, second in together.in_dram.values():
        looks_at = (
            together.observers[one.tile].record.marks[one.own[0] >> 2 : one.own[1] + 3 >> 2]
            for one in (first.sent, second.sent)
            if one.reads
        )
        if not any((marks & r.BRANCHED).any() for marks in looks_at):
            at, sides = max(first.sent.remote[0], second.sent.remote[0]), (first, second)
            before, after = map(_of_request, sides)
            yield Conflict(at, before, after, units=False, bank=second.sent.bank)


def _of_request(one: Landed) -> Event:
    sent, before = one.sent, one.before
    previous = None if before is None else (before.column - r.PLAIN, before.clock)
    return Event(
        sent.step, one.column, one.clock, sent.core, sent.epoch, write=not sent.reads,
        home=sent.tile, sent=sent, known=sent.known[r.PLAIN :], previous=previous,
    )  # fmt: skip


def first_clock(record: r.OrderRecord, event: Event, sent: Iterable[Sent] = ()) -> int:
    """The clock of an event's owner at its first access from the same place in the code.

    sent: the requests of its tile.
    """
    step, found = event.step, record.first_access
    if event.sent is not None:
        own = (one for one in sent if one.core == event.owner and one.step.pc == step.pc)
        return min((one.epoch for one in own), default=event.owner_clock)
    pc = step.pushed if isinstance(step, Word) else step.pc  # the REPLAY's pc
    at = np.flatnonzero((found[:, 0] == event.owner + 1) & (found[:, 1] == pc))
    return (int(found[at[0], 2]) if at.size else 0) or event.owner_clock


def knows_looks(record: r.OrderRecord) -> bool:
    """Whether every look of a tile's cores is remembered."""
    return int(record.passes[0]) <= r.PASSED


def looks(record: r.OrderRecord, words: Sequence[int] | None = None) -> list[Look]:
    """The looks of a tile's cores, at these words or all, as far as they are remembered."""
    last = int(record.passes[0])
    rows = record.passed[np.arange(max(last - r.PASSED, 0), last) % r.PASSED]
    rows = rows if words is None else rows[np.isin(rows[:, 2], words)]
    return [
        Look(core, clock, word, Instruction(time, core, pc, text), needed)
        for core, clock, word, pc, text, time, needed in rows.tolist()
    ]


def is_old(every: Iterable[Look], look: Look, numbers: Iterable[int]) -> bool:
    """Whether a look goes on with a value that an earlier one of its core has needed, and some of
    the values, of which these are the numbers, are never needed.

    every: the looks at its word.
    """
    again, last = False, -1
    for one in every:
        last = max(last, one.needed)
        same = (one.core, one.needed) == (look.core, look.needed)
        again |= same and one.epoch < look.epoch
    return again and look.needed >= 0 and any(number > last for number in numbers)


def observed(context: Context) -> list[Observed]:
    """The tiles of the observed run, which all checks share: at least one of each kind."""
    if not JIT:
        raise InputError(
            "only compiled code can follow the order of accesses",
            hint="unset NUMBA_DISABLE_JIT, or name other checks",
        )
    if "observed" in context.facts:
        known: list[Observed] = context.facts["observed"]
        return known
    machine = context.launch(engine="compiled", **context.alone)
    ends = [at for _, at, _ in machine.loop.end.words]
    few = len(context.tiles(machine)) > r.TILES
    chosen = context.first(machine, _FEW) if few else context.tiles(machine)
    observers = [Observer(tile) for tile in chosen]
    together = code = None
    if machine.network is not None:
        if context.names is not None:
            code = CodeThen(observers, context.names(machine), context.libraries)
        together = Tiles(machine, observers, few=few, code=code)
    limit = _HANGS if context.symptom.hangs else context.most
    each_round = None if together is None else together.round_is_over
    seen = context.finish(machine, limit=limit, each_round=each_round)
    for one in observers:
        if one.full:
            context.cut.append(one.tile.xy)
        s = one.tile.state
        context.work += RUN + (_PRICE - 1) * int(s.retired.sum() + s.executed.sum())
    if together is not None:
        together.round_is_over(last=True)
    elif ends and seen.stop is not None and seen.stop.reason == "until":
        specs = context.program.outputs
        starts = [int(machine.address(one.at)) for one in specs]
        outputs = [(at, at + one.size) for at, one in zip(starts, specs, strict=True)]
        observers[0].ended(ends, outputs)
        context.finish(machine, limit=_AFTER_END, until="idle")
    own = () if together is not None else ends
    found = [Observed(one, own, together=together, whole=seen.error is None) for one in observers]
    context.facts["observed"] = found
    return found


def seen_at(context: Context, xy: XY | str | None) -> Observed | None:
    """The tile at `xy` of that run, None if it is none of those that were observed."""
    return next((one for one in observed(context) if one.tile.xy == xy), None)


def tiles(context: Context) -> Tiles | None:
    """The tiles of that run and the requests between them; None for a tile alone."""
    return observed(context)[0].together


def requests(context: Context) -> list[Sent]:
    """All requests of these tiles, tile by tile; none of a tile alone."""
    together = tiles(context)
    return [one for of_tile in together.sent for one in of_tile] if together else []
