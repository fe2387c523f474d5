"""The check "buffers": circular buffers whose pages are used without being owned."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from bhemu import memmap as mm
from bhemu.devices.bus.address_map import FIRST_BUFFER_STREAMS
from bhemu.errors import Where
from bhemu.jit.subset import JIT
from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.noc.grid import XY
from bhemu.program import toml
from bhemu.program.specs import BufferSpec, TileSpec
from bhemu.tensix.mmio import REMOTE_DEST_BUF_SIZE, REMOTE_DEST_BUF_START
from bhemu.why.check import Check, Context
from bhemu.why.findings import Ends, Finding, outside, place
from bhemu.why.order import record as r
from bhemu.why.order.conflicts import Observed, observed
from bhemu.why.order.notes import ASKED, PACKED, STORED, UNPACKED

# What a tile does to its circular buffers, in order: counts, requests, UNPACR and PACR.

_STREAM = 0x1000  # bytes of the registers of one
COUNT_REGISTERS = {REMOTE_DEST_BUF_START: "acked", REMOTE_DEST_BUF_SIZE: "received"}
REGISTERS = {kind: register for register, kind in COUNT_REGISTERS.items()}
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


def events(seen: Observed) -> list[Event]:
    """The accesses of an observed tile to its buffers, in order."""
    return [one for row in seen.notes.tolist() if (one := _event(row)) is not None]


def _event(note: list[int]) -> Event | None:
    what, core, pc, clock = (note[k] for k in (r.N_WHAT, r.N_CORE, r.N_PC, r.N_TIME))
    thread = note[r.N_THREAD] if note[r.N_THREAD] >= 0 else None
    low, high, value = note[r.N_LOW], note[r.N_HIGH], note[r.N_VALUE]
    if what == STORED:  # to a counter of a buffer
        stream, offset = divmod(low - mm.OVERLAY_BASE, _STREAM)
        kind = COUNT_REGISTERS.get(offset >> 2)
        if kind is None or offset & 3:
            return None
        return Event(core, thread, pc, kind, value & 0xFFFF, stream, clock)
    if what not in (ASKED, UNPACKED, PACKED):
        return None
    fills = value if what == ASKED else what == PACKED  # a request that reads fills the own L1
    return Event(core, thread, pc, "writes" if fills else "reads", low, high, clock)


def first_stream(events: Sequence[Event], buffers: Collection[int]) -> int | None:
    """The stream that counts buffer 0, by the streams in use; None if it is ambiguous."""
    counted = {one.high for one in events if one.kind in COUNTS and one.low}
    fits = {first: sum(one - first in buffers for one in counted) for first in FIRST_BUFFER_STREAMS}
    best = [first for first, number in fits.items() if number == max(fits.values())]
    return best[0] if len(best) == 1 or not counted else None


# One circular buffer as its users count it: which pages are there, and what is a wrong use.


class Wrong(NamedTuple):
    """A wrong use of a buffer: the event that is wrong, a text, the advice."""

    by: Event
    text: str
    advice: str


@dataclass
class Buffer:
    """One circular buffer: its counts, the cores that count, the pages in use."""

    spec: BufferSpec
    counts: dict[str, int] = field(default_factory=lambda: {"received": 0, "acked": 0})
    counters: dict[str, Event] = field(default_factory=dict)
    last: dict[str, Event] = field(default_factory=dict)  # by "reads", "writes"
    begun: dict[str, list[int]] = field(default_factory=dict)  # where each of them began
    owners: dict[str, set[str]] = field(default_factory=dict)  # who counts, in the whole run
    filled: set[int] = field(default_factory=set)  # pages written since the last were announced
    used: set[int] = field(default_factory=set)  # pages read since the last were given back
    skips: bool = True  # pages may be given back that nobody has read

    @property
    def held(self) -> int:
        """Pages that were announced and not given back."""
        return self.counts["received"] - self.counts["acked"]

    @property
    def producers(self) -> set[str]:
        """The cores that announce pages."""
        return self.owners.get("received", set())

    def state(self) -> str:
        """Its counts in words."""
        announced, back = self.counts["received"], self.counts["acked"]
        return (
            f"buffer {self.spec.index} of {self.spec.pages} pages"
            f" (announced so far: {announced}, given back: {back})"
        )

    def counted(self, event: Event) -> Iterator[Wrong]:
        """What is wrong with a change of a count."""
        kind = event.kind
        more, done = self._moved(event)
        first = self.counters.setdefault(kind, event)
        if first.who != event.who:
            does = "announces pages of" if kind == "received" else "gives back pages of"
            yield Wrong(
                event,
                f"{event.who} {does} buffer {self.spec.index}, as {first.who} does",
                "a buffer has one producer and one consumer: open another buffer here",
            )
        elif kind == "received" and self.held > self.spec.pages:
            yield Wrong(
                event,
                f"{event.who} announces more pages than there is room for: {self.state()}",
                "wait for room, and announce as many pages as were waited for",
            )
        elif kind == "received" and 0 < done < more:
            yield Wrong(
                event,
                f"{event.who} announces {more} pages at once, {done} of them written:"
                f" {self.state()}",
                "fill the others too, or announce as many pages as were filled",
            )
        elif kind == "acked" and self.held < 0:
            yield Wrong(
                event,
                f"{event.who} gives back more pages than were there: {self.state()}",
                "wait for pages, and give back as many as were waited for",
            )
        elif kind == "acked" and 0 < done < more and not self.skips:
            yield Wrong(
                event,
                f"{event.who} gives back {more} pages at once, {done} of them read: {self.state()}",
                "read the others too, or give back as many pages as were used",
            )

    def _moved(self, event: Event) -> tuple[int, int]:
        """Change a count; by how much, and the number of pages written or read since."""
        more = event.low - self.counts[event.kind] & 0xFFFF
        self.counts[event.kind] += more
        pages = self.filled if event.kind == "received" else self.used
        done = len(pages)
        pages.clear()
        return more, done

    def accessed(self, event: Event, *, elsewhere: bool) -> Iterator[Wrong]:
        """What is wrong with an access to its bytes, or right after them.

        elsewhere: another buffer or tensor holds them.
        """
        spec, end = self.spec, self.spec.at + self.spec.size
        owner = any(event.who in who for who in self.owners.values())
        after = owner and end <= event.low < end + spec.page and not elsewhere
        if (event.high <= spec.at or event.low >= end) and not after:
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


_HEADERS = (".h", ".hpp", ".hh", ".inc")
_OWN = "(in lib/cb.h {}) after this"  # the library of `bhemu new --kernel`
_TILES = 2  # of those with the same code and arguments are looked at


def _of_tile(context: Context, seen: Observed) -> Iterator[Finding]:
    tile, part = seen.tile, context.part(seen.tile)
    every = events(seen) if tile.xy in part.at[:_TILES] and part.buffers else []
    first = first_stream(every, [spec.index for spec in part.buffers])
    if every and first is not None:
        own = [one for one in every if not context.in_firmware(tile, one.core, one.pc)]
        look = _Look(context, part, tile, first)
        yield from look.at([_numbered(one, first) for one in own])


def _awaited(waiters: Sequence[Any], first: int) -> Iterator[tuple[int, str]]:
    """The buffers, and which of their counts, that somebody waits for."""
    for waiter in waiters:
        if waiter.kind == "stream" and waiter.resource.get("register") in COUNT_REGISTERS:
            kind = COUNT_REGISTERS[waiter.resource["register"]]
            yield waiter.resource.get("buffer", waiter.resource["stream"] - first), kind


def _numbered(event: Event, first: int) -> Event:
    """A count with the number of its buffer in place of its stream's."""
    return replace(event, high=event.high - first) if event.kind in COUNTS else event


class _Look:
    """Follows the events of one tile."""

    def __init__(self, context: Context, part: TileSpec, tile: Tile, first: int) -> None:
        self._context, self._tile = context, tile
        rows = [
            {row.file for one in core.images for row in one.rows} for core in tile.core.values()
        ]
        used = Counter(file for files in rows for file in files if file.endswith(_HEADERS))
        self._shared = frozenset(file for file, cores in used.items() if cores > 1)
        skips = context.symptom.fine  # what is not needed need not be read
        self.buffers = {spec.index: Buffer(spec, skips=skips) for spec in part.buffers}
        tensors: list[Any] = [*context.program.inputs, *context.program.outputs]
        self._lengths: dict[int, set[int]] = {}  # of requests to each buffer
        waiters = getattr(getattr(context.symptom.error, "graph", None), "waiters", ())
        self._awaited = set(_awaited(waiters, first))
        self._waiting = {
            w.where.get("core") for w in waiters if w.where.get("tile") == list(tile.xy)
        }
        self._ranges = [(one.at, one.at + one.size) for one in part.buffers]
        self._ranges += [(t.at, t.at + t.size) for t in tensors if isinstance(t.at, int)]

    def at(self, events: Sequence[Event]) -> Iterator[Finding]:
        """The first wrong use of each line."""
        for event in events:
            if event.kind in COUNTS and event.high in self.buffers:
                owners = self.buffers[event.high].owners
                owners.setdefault(event.kind, set()).add(event.who)
        said: set[tuple[int, int]] = set()
        for event in events:
            if event.kind in ("reads", "writes") and event.thread is None:
                self._lengths.setdefault(self._index(event), set()).add(event.high - event.low)
        for event in events:
            for buffer, (by, text, advice) in self._wrong(event):
                if (event.core, event.pc) not in said:
                    said.add((event.core, event.pc))
                    found = self._finding(buffer, by, text, advice)
                    past = (
                        event.kind in ("reads", "writes")
                        and event.high > buffer.spec.at + buffer.spec.size
                    )
                    yield (past and self._page(buffer, found)) or found
        if self._context.symptom.hangs and not said:
            for buffer in self.buffers.values():
                yield from self._never(buffer)

    def _wrong(self, event: Event) -> Iterator[tuple[Buffer, Wrong]]:
        if event.kind in COUNTS:
            buffer = self.buffers.get(event.high)
            if buffer is not None:
                yield from ((buffer, wrong) for wrong in buffer.counted(event))
            return
        elsewhere = any(low <= event.low < high for low, high in self._ranges)
        for buffer in self.buffers.values():
            yield from ((buffer, wrong) for wrong in buffer.accessed(event, elsewhere=elsewhere))

    def _never(self, buffer: Buffer) -> Iterator[Finding]:
        """In a hang: pages that are used repeatedly, or waited for, and never counted."""
        for verb, kind, missing, advice in (
            ("reads", "acked", "and gives none back", f"cb_pop_front {_OWN.format('cb_pop')}"),
            ("writes", "received", "and announces none", f"cb_push_back {_OWN.format('cb_push')}"),
        ):
            event = buffer.last.get(verb)
            if event is None or kind in buffer.counters:
                continue
            begun = buffer.begun[verb]
            again = len(begun) > len(set(begun))  # it waits elsewhere where there is one only
            stuck = event.who in self._waiting  # it may count when it goes on
            if again or ((buffer.spec.index, kind) in self._awaited and not stuck):
                text = f"{event.who} {verb} pages {missing}: {buffer.state()}"
                short = f"{event.who} {verb} pages {missing}"
                yield self._finding(buffer, event, text, advice, short, (kind,))

    def _finding(
        self,
        buffer: Buffer,
        event: Event,
        text: str,
        advice: str,
        short: str = "",
        counts: Sequence[str] = COUNTS,
    ) -> Finding:
        """counts: those of the buffer that it makes others wait for; short: what a hang says."""
        victims = [one for one in (*buffer.counters.values(), *buffer.last.values())
                   if one.who != event.who]  # fmt: skip
        victim = place(self._where(victims[0]), victims[0].clock) if victims else {}
        where = self._where(event)
        evidence = [f"{kind}: counted by {self._where(one)}" for kind, one in
                    buffer.counters.items()]  # fmt: skip
        culprit = place(where, event.clock)
        if event.thread is not None:
            culprit["thread"] = event.thread
        things = frozenset(("buffer", buffer.spec.index, REGISTERS[kind]) for kind in counts)
        ends = Ends(self._tile.xy, things, short or text)
        return Finding("buffers", "error", text, culprit, victim, tuple(evidence), advice, ends)

    def _index(self, event: Event) -> int:
        """The buffer in which an access begins, -1 for none."""
        specs = [one.spec for one in self.buffers.values()]
        return next((s.index for s in specs if s.at <= event.low < s.at + s.size), -1)

    def _page(self, buffer: Buffer, found: Finding) -> Finding | None:
        """The finding with the page size as culprit, if every request to the buffer is longer."""
        path, lengths = self._context.program.path, self._lengths.get(buffer.spec.index, ())
        if path is None or not lengths or min(lengths) <= buffer.spec.page:
            return None
        parts = self._context.program.placed()
        number = next(
            n
            for n, one in enumerate(one for part in parts for one in part.buffers)
            if one is buffer.spec
        )
        table = "tile.buffer" if self._context.program.tiles else "buffer"
        line = toml.line_of_key(path, table, number, "page")
        text = f"a page of buffer {buffer.spec.index} has {buffer.spec.page} bytes, and every"
        text += f" request to it {min(lengths)} or more"
        who = place(Where(file=path.name, line=line), None)
        evidence = (*found.evidence, found.text)
        return replace(found, text=text, culprit=who, victim=found.culprit, evidence=evidence)

    def _where(self, event: Event) -> Where:
        """Its line; in a header that several cores use, the line that calls it."""
        return outside(where_core(self._tile, event.core, event.pc), self._shared.__contains__)


class Shared(NamedTuple):
    """L1 `low` to `high` of the tiles `at` belongs to two buffers that begin elsewhere."""

    at: tuple[XY, ...]
    low: int
    high: int
    finding: Finding


def shared_bytes(context: Context) -> Iterator[Shared]:
    """Buffers of a tile that share bytes, except those that begin at one address on purpose."""
    path = context.program.path
    if path is None:
        return
    number, table = 0, "tile.buffer" if context.program.tiles else "buffer"
    for part in context.program.placed():
        for i, one in enumerate(part.buffers):
            for other in part.buffers[:i]:
                low = max(one.at, other.at)
                high = min(one.at + one.size, other.at + other.size)
                if low < high and one.at != other.at:
                    line = toml.line_of_key(path, table, number + i, "at")
                    first, second = (
                        f"buffer {b.index} ({b.at:#x} to {b.at + b.size:#x})" for b in (one, other)
                    )
                    text = f"{first} shares bytes with {second}"
                    who = place(Where(file=path.name, line=line), None)
                    advice = "give it its own bytes"
                    found = Finding("buffers", "error", text, who, {}, (), advice)
                    yield Shared(part.at, low, high, found)
        number += len(part.buffers)


def _run(context: Context) -> Sequence[Finding]:
    found: dict[tuple[Any, ...], Finding] = {}
    if not context.symptom.fine:
        found = {(one.finding.text,): one.finding for one in shared_bytes(context)}
    for one in (one for seen in observed(context) for one in _of_tile(context, seen)):
        found.setdefault((one.culprit.get("core"), one.culprit.get("pc")), one)
    return list(found.values())


CHECK = Check(
    name="buffers",
    proves="that a page of a circular buffer (`[[buffer]]`) was written while it was not free, read"
    " while it was not there, or beyond the end; that more pages were announced or given back than"
    " there are, or by two cores; that two buffers share bytes; in a hang, that pages are used and"
    " never counted",
    misses="pages that a core itself loads and stores; pages announced before their data are there"
    " (see barriers); buffers that no [[buffer]] describes, or whose counts may be those of either"
    " of two builds (stream 0 or 8 for buffer 0); what comes after 262,144 acts of a tile; of a"
    " chip all tiles but two of each part, and of more than 64 tiles all but 32",
    cost="the observed run of `races`",
    applies=lambda seen: 95 if JIT else 0,
    run=_run,
)
