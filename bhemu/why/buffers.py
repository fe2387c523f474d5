"""Events and counts of circular buffers."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from bhemu import memmap as mm
from bhemu.devices.bus.naming import FIRST_BUFFER_STREAMS
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry, Pack, transfer_of
from bhemu.program.specs import BufferSpec
from bhemu.tensix.insn import decode
from bhemu.tensix.mmio import REMOTE_DEST_BUF_SIZE, REMOTE_DEST_BUF_START
from bhemu.tensix.observe import FIRST_CORE, WORDS_AND_STORES
from bhemu.tensix.rules import DONE
from bhemu.why.requests import Requests
from bhemu.why.walk import MOST

# What a tile does to its circular buffers, in order: counts, requests, UNPACR and PACR.

_STREAM = 0x1000  # bytes of the registers of one
COUNT_REGISTERS = {REMOTE_DEST_BUF_START: "acked", REMOTE_DEST_BUF_SIZE: "received"}
COUNTS = tuple(COUNT_REGISTERS.values())  # kinds of events that change a count


@dataclass(frozen=True)
class Event:
    """One access to a buffer: by an instruction of `core` at `pc`, in thread `thread` if any."""

    core: int
    thread: int | None
    pc: int
    kind: str  # "received", "acked", "writes", "reads"
    low: int  # or the new count
    high: int = 0  # of a count the stream
    clock: int | None = None

    @property
    def who(self) -> str:
        """For example "trisc2"."""
        return mm.CORE_NAMES[self.core]


class Recorder:
    """Notes what a tile's words touch, and its log of stores, while it runs."""

    def __init__(self, tile: Tile) -> None:
        self._tile = tile
        self._first = int(tile.state.log_write[0])
        self._words: dict[int, Event] = {}  # by number in the log
        self._left = MOST
        tile.log = []
        tile.state.trace[0] = WORDS_AND_STORES
        tile.backend.table.observe(self._before, self._after)

    def _before(self, t: int, word: int) -> tuple[int, Event | None]:
        s = self._tile.state
        self._left -= 1
        if not self._left:
            s.limit[0] = now(s)  # the run ends: what it does for ever is not looked at for ever
        return int(s.log_write[0]) - self._first, self._event(s, t, word)

    def _event(self, s: Any, t: int, word: int) -> Event | None:
        cls = decode(word)
        core, pc = int(s.gate_core[t]), int(s.gate_pc[t])
        if cls is not None and cls.name == "STOREREG":
            values = cls.operands(word)
            address = mm.LOCAL_BASE + 4 * values["reg_addr"]
            value = int(s.gpr[t, values["tdma_data_reg_index"]])
            return Event(core, t, pc, "store", address, value)
        does = transfer_of(s, t, word)
        if does is None or cls is None or cls.operands(word).get("zero_write2"):
            return None
        kind = "writes" if isinstance(does, Pack) else "reads"
        return Event(core, t, pc, kind, does.first, does.end)

    def _after(self, seen: tuple[int, Event | None], status: int) -> None:
        number, event = seen
        if status == DONE and event is not None:
            self._words[number] = event

    def events(self) -> Iterator[Event]:
        """In the order in which they took place."""
        self._tile.drain_log()
        requests = Requests()
        for number, entry in enumerate(self._tile.log):
            for event in self._of(number, entry, requests):
                yield replace(event, clock=entry[4])

    def _of(self, number: int, entry: Entry, requests: Requests) -> Iterator[Event]:
        """What one entry of the log does."""
        if number in self._words:
            event = self._words[number]
            if event.kind == "store":
                yield from _counter(event.core, event.thread, event.pc, event.low, event.high)
            else:
                yield event
        elif entry[0] >= FIRST_CORE:
            core, value, pc, address = entry[0] - FIRST_CORE, *entry[1:4]
            yield from _counter(core, None, pc, address, value)
            for one in requests.stored(entry):
                kind = "writes" if one.reads else "reads"
                yield Event(one.core, None, one.pc, kind, one.low, one.high)


def _counter(core: int, thread: int | None, pc: int, address: int, value: int) -> Iterator[Event]:
    """A store to a counter of a buffer."""
    stream, offset = divmod(address - mm.OVERLAY_BASE, _STREAM)
    kind = COUNT_REGISTERS.get(offset >> 2)
    if mm.OVERLAY_BASE <= address < mm.OVERLAY_END and kind and not offset & 3:
        yield Event(core, thread, pc, kind, value & 0xFFFF, stream)


def first_stream(events: Sequence[Event], buffers: Collection[int]) -> int | None:
    """The stream that counts buffer 0 of a build, by what is counted; None: it cannot be told."""
    counted = {one.high for one in events if one.kind in COUNTS and one.low}
    fits = {first: sum(one - first in buffers for one in counted) for first in FIRST_BUFFER_STREAMS}
    best = [first for first, number in fits.items() if number == max(fits.values())]
    return best[0] if len(best) == 1 or not counted else None


# One circular buffer as its users count it: which pages are there, and what is a wrong use.


class Wrong(NamedTuple):
    """A wrong use of a buffer: who is to blame, what it does, what to write."""

    by: Event
    text: str
    advice: str


@dataclass
class Buffer:
    """One circular buffer: its counts, who counts, which pages hold something."""

    spec: BufferSpec
    counts: dict[str, int] = field(default_factory=lambda: {"received": 0, "acked": 0})
    counters: dict[str, Event] = field(default_factory=dict)
    last: dict[str, Event] = field(default_factory=dict)  # by "reads", "writes"
    begun: dict[str, list[int]] = field(default_factory=dict)  # where each of them began
    owners: dict[str, set[str]] = field(default_factory=dict)  # who counts, in the whole run
    filled: set[int] = field(default_factory=set)  # pages written since the last were announced
    used: set[int] = field(default_factory=set)  # pages read since the last were given back
    # Accesses since the last change of the count that they belong to.
    begins: dict[str, list[Event]] = field(default_factory=lambda: {"reads": [], "writes": []})
    skips: bool = True  # pages may be given back that nobody has read

    @property
    def held(self) -> int:
        """Pages announced and not given back."""
        return self.counts["received"] - self.counts["acked"]

    @property
    def producers(self) -> set[str]:
        """Who announces pages."""
        return self.owners.get("received", set())

    def state(self) -> str:
        """In words."""
        announced, back = self.counts["received"], self.counts["acked"]
        return (
            f"buffer {self.spec.index} of {self.spec.pages} pages"
            f" (announced so far: {announced}, given back: {back})"
        )

    def counted(self, event: Event) -> Iterator[Wrong]:
        """What is wrong with a change of a count."""
        kind = event.kind
        more, done, again = self._moved(event)
        first = self.counters.setdefault(kind, event)
        if first.who != event.who:
            does = "announces pages of" if kind == "received" else "gives back pages of"
            yield Wrong(
                event,
                f"{event.who} {does} buffer {self.spec.index}, as {first.who} does",
                "a buffer has one producer and one consumer: open another buffer here",
            )
        elif self.held > self.spec.pages:
            yield Wrong(
                event,
                f"{event.who} announces more pages than there is room for: {self.state()}",
                "wait for room, and announce as many pages as were waited for",
            )
        elif kind == "received" and 0 < done < more:
            yield Wrong(
                again or event,
                f"{event.who} announces {more} pages at once, {done} of them written"
                f"{', and that again' if again else ''}: {self.state()}",
                "fill the others too, or announce as many pages as were filled",
            )
        elif self.held < 0:
            yield Wrong(
                event,
                f"{event.who} gives back more pages than were there: {self.state()}",
                "wait for pages, and give back as many as were waited for",
            )
        elif kind == "acked" and 0 < done < more and not self.skips:
            yield Wrong(
                again or event,
                f"{event.who} gives back {more} pages at once, {done} of them read"
                f"{', and that again' if again else ''}: {self.state()}",
                "read the others too, or give back as many pages as were used",
            )

    def _moved(self, event: Event) -> tuple[int, int, Event | None]:
        """Change a count: by how much, the pages written or read before, who did one again."""
        more = event.low - self.counts[event.kind] & 0xFFFF
        self.counts[event.kind] += more
        wrote = event.kind == "received"
        pages, verb = (self.filled, "writes") if wrote else (self.used, "reads")
        again = self._again(verb, more)
        self.begins[verb] = []
        done = len(pages)
        pages.clear()
        return more, done, again

    def _again(self, verb: str, times: int) -> Event | None:
        """The last of the accesses to one place, of which there are as many as pages counted."""
        lows = [one.low for one in self.begins[verb]]
        found = [one for one in self.begins[verb] if lows.count(one.low) >= times > 1]
        return found[-1] if found else None

    def accessed(self, event: Event, *, elsewhere: bool) -> Iterator[Wrong]:
        """What is wrong with an access to its bytes, or right behind them.

        elsewhere: another buffer or tensor holds them.
        """
        spec, end = self.spec, self.spec.at + self.spec.size
        owner = any(event.who in who for who in self.owners.values())
        behind = owner and end <= event.low < end + spec.page and not elsewhere
        if (event.high <= spec.at or event.low >= end) and not behind:
            return
        self.last[event.kind] = event
        self.begun.setdefault(event.kind, []).append(event.low)
        verb = event.kind
        if event.low < spec.at or event.high > spec.at + spec.size:
            yield Wrong(
                event,
                f"{event.who} {verb} {event.low:#x} to {event.high:#x}, past buffer {spec.index}"
                f" ({spec.at:#x} to {spec.at + spec.size:#x})",
                "let the pointer wrap at the end of the buffer",
            )
            return
        page = (event.low - spec.at) // spec.page
        there = {(self.counts["acked"] + k) % spec.pages for k in range(min(self.held, spec.pages))}
        touched = range(page, (event.high - 1 - spec.at) // spec.page + 1)
        (self.filled if verb == "writes" else self.used).update(touched)
        self.begins[verb].append(event)
        if verb == "writes" and page in there and event.who not in self.owners.get("acked", ()):
            yield Wrong(
                event,
                f"{event.who} writes page {page}, which is not free: {self.state()}",
                "wait for room before the page is written (cb_reserve_back)",
            )
        # A producer may use what it fills.
        elif verb == "reads" and page not in there and event.who not in self.producers:
            yield Wrong(
                event,
                f"{event.who} reads page {page}, which is not there: {self.state()}",
                "wait for the page, and give it back only after its last use (cb_wait_front)",
            )
