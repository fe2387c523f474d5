"""The check "buffers": circular buffers whose pages are used without being owned."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from bhemu import memmap as mm
from bhemu.devices.bus.address_map import FIRST_BUFFER_STREAMS
from bhemu.errors import Where
from bhemu.jit.subset import JIT
from bhemu.machine.error_text import HEADERS, outside, where_core
from bhemu.machine.hang.givers import Agents, name_of
from bhemu.machine.tile import Tile
from bhemu.program.specs import BufferSpec, TileSpec
from bhemu.tensix.mmio import REMOTE_DEST_BUF_SIZE, REMOTE_DEST_BUF_START
from bhemu.tensix.spaces import Effect, Kind
from bhemu.why import order as r
from bhemu.why.check import Check, Context
from bhemu.why.checks.contract import beyond_tensors, declared_line, shared_bytes, title
from bhemu.why.findings import Ends, Finding, place, waiters_of
from bhemu.why.order.conflicts import Conflict, Observed, observed, requests
from bhemu.why.order.observe import l1_address
from bhemu.why.order.shadow import ASKED, PACKED, STORED, UNPACKED
from bhemu.why.steps import NOTHING, Act, Blame, Word

# What a tile does to its circular buffers, in order: counts, requests, UNPACR and PACR.

_STREAM = 0x1000  # bytes of the registers of one
COUNT_REGISTERS = {REMOTE_DEST_BUF_START: "acked", REMOTE_DEST_BUF_SIZE: "received"}
BYTES = "bytes of buffer"  # of Ends: what is wrong with the use of its pages
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
    found = []
    for note in seen.notes.tolist():
        what, core, pc, clock = (note[k] for k in (r.N_WHAT, r.N_CORE, r.N_PC, r.N_TIME))
        thread = note[r.N_THREAD] if note[r.N_THREAD] >= 0 else None
        low, high, value = note[r.N_LOW], note[r.N_HIGH], note[r.N_VALUE]
        if what == STORED:  # to a counter of a buffer
            stream, offset = divmod(low - mm.OVERLAY_BASE, _STREAM)
            kind = COUNT_REGISTERS.get(offset >> 2)
            if kind is not None and not offset & 3:
                found.append(Event(core, thread, pc, kind, value & 0xFFFF, stream, clock))
        elif what in (ASKED, UNPACKED, PACKED):  # a request that reads fills the own L1
            fills = value if what == ASKED else what == PACKED
            kind = "writes" if fills else "reads"
            found.append(Event(core, thread, pc, kind, low, high, clock))
    return found


def first_stream(events: Sequence[Event], buffers: Collection[int]) -> int | None:
    """The stream that counts buffer 0, by the streams in use; None if it is ambiguous."""
    counted = {one.high for one in events if one.kind in COUNTS and one.low}
    fits = {first: sum(one - first in buffers for one in counted) for first in FIRST_BUFFER_STREAMS}
    best = [first for first, number in fits.items() if number == max(fits.values())]
    return best[0] if len(best) == 1 or not counted else None


def bytes_at(context: Context, tile: Tile, at: int) -> Ends | None:
    """The pages of the declared buffers of a tile that hold an address of L1."""
    of = (b.index for b in context.part(tile).buffers if b.at <= at < b.at + b.size)
    things = frozenset((BYTES, index) for index in of)
    return Ends(tile.xy, things) if things else None


# One circular buffer as its users count it: which pages are there, and what is a wrong use.


class Wrong(NamedTuple):
    """What is wrong with an event, and the advice; at: with an earlier one."""

    text: str
    advice: str
    at: Event | None = None


@dataclass
class Buffer:
    """One circular buffer: its counts, the cores that count, the pages in use."""

    spec: BufferSpec
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("received", "acked"), 0))
    counters: dict[str, Event] = field(default_factory=dict)
    last: dict[str, Event] = field(default_factory=dict)  # by "reads", "writes"
    begun: dict[str, list[int]] = field(default_factory=dict)  # where each of them began
    owners: dict[str, set[str]] = field(default_factory=dict)  # who counts, in the whole run
    used: dict[str, set[int]] = field(default_factory=dict)  # pages since they were last counted
    filled: set[int] = field(default_factory=set)  # pages written and not announced
    fills: bool = False  # a page was announced that was seen to be written
    told: dict[int, Event] = field(default_factory=dict)  # the last announcement of each page
    early: dict[int, Event] = field(default_factory=dict)  # pages announced and not written yet
    mixed: bool = False  # two cores have announced pages, or given them back
    late: bool = False  # a page was written after it was announced
    touched: int = 0  # pages written between two announcements, summed up
    skips: bool = True  # pages may be given back that nobody has read

    @property
    def end(self) -> int:
        """The address after its last page."""
        return self.spec.at + self.spec.size

    @property
    def held(self) -> int:
        """Pages that were announced and not given back."""
        return self.counts["received"] - self.counts["acked"]

    @property
    def there(self) -> set[int]:
        """The pages that were announced and not given back."""
        pages = self.spec.pages
        return {(self.counts["acked"] + k) % pages for k in range(min(self.held, pages))}

    def state(self) -> str:
        """Its counts in words."""
        return (
            f"buffer {self.spec.index} of {self.spec.pages} pages"
            f" (announced so far: {self.counts['received']}, given back: {self.counts['acked']})"
        )

    def counted(self, event: Event) -> Wrong | None:
        """What is wrong with a change of a count."""
        announces = event.kind == "received"
        does, moved, verb = f"{event.who} gives back", "read", "reads"
        part = "read the others too, or give back as many pages as were used"
        if announces:
            does, moved, verb = f"{event.who} announces", "written", "writes"
            part = "fill the others too, or announce as many pages as were filled"
        before, pages = self.counts[event.kind], self.spec.pages
        more = (event.low - before + 0x8000 & 0xFFFF) - 0x8000  # a count of its own may be less
        self.counts[event.kind] += more
        done = len(self.used.pop(verb, ()))
        by, short = self.counters.setdefault(event.kind, event).who, self.held < 0 and not announces
        some = 0 < done < more and (announces or not self.skips)
        its = {(before + k) % pages for k in range(min(more, pages))} if announces else set()
        known, self.touched = its & self.filled, self.touched + (done if announces else 0)
        self.filled -= its
        other = ", ".join(map(str, sorted(self.filled)))
        turn = bool(its and other and self.fills and not known) and self.held <= pages
        self.fills |= bool(known)
        self.told |= dict.fromkeys(its, event)
        self.early = dict.fromkeys(its - known, event)
        self.mixed |= by != event.who
        rules = (
            (by != event.who, f"{does} pages of buffer {self.spec.index}, as {by} does",
             "a buffer has one producer and one consumer: open another buffer here"),
            (announces and self.held > pages,
             f"{does} more pages than there is room for: {self.state()}",
             "wait for room, and announce as many pages as were waited for"),
            (short, f"{does} more pages than were there: {self.state()}",
             "wait for pages, and give back as many as were waited for"),
            (turn, f"{does} page {min(its, default=0)}, which nothing has written, and page {other}"
             f" was written: {self.state()}", "write the page whose turn it is"),
            (some, f"{does} {more} pages at once, {done} of them {moved}: {self.state()}", part),
        )  # fmt: skip
        told = rules[:1] if self.mixed else rules  # then the counts say nothing more
        return next((Wrong(text, advice) for holds, text, advice in told if holds), None)

    def accessed(self, event: Event, *, elsewhere: bool) -> Wrong | None:
        """What is wrong with an access to its bytes, or right after them.

        elsewhere: another buffer or tensor holds them.
        """
        spec, verb, who = self.spec, event.kind, event.who
        owner = any(who in of_kind for of_kind in self.owners.values())
        after = owner and self.end <= event.low < self.end + spec.page and not elsewhere
        if (event.high <= spec.at or event.low >= self.end) and not after:
            return None
        self.last[verb] = event
        self.begun.setdefault(verb, []).append(event.low)
        if event.low < spec.at or event.high > self.end:
            text = f"{who} {verb} {event.low:#x} to {event.high:#x}, past buffer {spec.index}"
            text += f" ({spec.at:#x} to {self.end:#x})"
            advice = "let the pointer wrap at the end of the buffer"
            if (event.low - spec.at) % spec.page == 0 and event.high - event.low > spec.page:
                text += f", more than a page of {spec.page} bytes"
                advice = f"look at the format and the counts that make it so long, or {advice}"
            return Wrong(text, advice)
        page, there = (event.low - spec.at) // spec.page, self.there
        touched = range(page, (event.high - 1 - spec.at) // spec.page + 1)
        self.used.setdefault(verb, set()).update(touched)
        if verb == "writes":
            self.filled |= {*touched}
        told = self.early.get(page) if verb == "writes" else None
        if told is not None and told.who == who:
            self.late = True
            text = f"{who} announces page {page} before it is written: {self.state()}"
            advice = "announce it after it is written: of PACR after a STALLWAIT for the packer"
            return Wrong(text, advice, told)
        busy = verb == "writes" and page in there and not self.late
        if busy and who not in self.owners.get("acked", ()):
            text = f"{who} writes page {page}, which is not free: {self.state()}"
            return Wrong(text, "wait for room before the page is written (cb_reserve_back)")
        # A producer may use what it fills.
        fills = who in self.owners.get("received", ())
        if verb == "reads" and page not in there and not fills:
            text = f"{who} reads page {page}, which is not there: {self.state()}"
            advice = "wait for the page, and give it back only after its last use (cb_wait_front)"
            return Wrong(text, advice)
        return None


# A page of a circular buffer at one moment.


class Page(NamedTuple):
    """A page of a declared buffer, and the buffer as it is counted at some clock; producers: the
    cores that announce pages; counted: the acts of the whole run that count pages."""

    number: int
    buffer: Buffer
    producers: set[int]
    counted: list[Event]

    @property
    def spec(self) -> BufferSpec:
        """What declares its buffer."""
        return self.buffer.spec

    @property
    def told(self) -> Event | None:
        """The last announcement of it."""
        return self.buffer.told.get(self.number)

    @property
    def held(self) -> bool:
        """Whether it was announced and not given back."""
        return self.number in self.buffer.there

    @property
    def bytes(self) -> range:
        """Those of L1 that belong to it."""
        low = self.spec.at + self.number * self.spec.page
        return range(low, low + self.spec.page)

    def __str__(self) -> str:
        return f"page {self.number} of buffer {self.spec.index}"


def page_at(context: Context, seen: Observed, at: int, clock: int) -> Page | None:
    """The page of a declared buffer of a tile that holds an address of L1."""
    specs = context.part(seen.tile).buffers
    spec = next((one for one in specs if one.at <= at < one.at + one.size), None)
    every = events(seen) if spec is not None else []
    first = first_stream(every, [one.index for one in specs])
    if spec is None or first is None:
        return None
    buffer, stream = Buffer(spec), first + spec.index
    counted = [one for one in every if one.kind in COUNTS and one.high == stream]
    for one in counted:
        if (one.clock or 0) <= clock:
            buffer.counted(one)
    producers = {one.core for one in counted if one.kind == "received"}
    return Page((at - spec.at) // spec.page, buffer, producers, counted)


def fills(context: Context, seen: Observed, page: Page) -> tuple[Event | None, Event | None]:
    """What a tile writes before a page is announced, by requests and PACR: the last write to the
    page; of what the core that announces it has written since it last announced one, what begins
    nearest to the page and lies neither in it nor in another buffer or a tensor."""
    told, every = page.told, events(seen)
    assert told is not None
    before = every[: every.index(told)]
    last = (n for n, one in enumerate(before) if (one.kind, one.high) == (told.kind, told.high))
    since, low, high = max(last, default=-1), page.bytes.start, page.bytes.stop
    inside, outside = list[Event](), dict[int, Event]()
    own, taken = f"buffer {page.spec.index}", declared(context, context.part(seen.tile))
    for n, one in enumerate(before):
        if one.kind == "writes" and one.low < high and low < one.high:
            inside.append(one)
        elif one.kind == "writes" and one.core == told.core and n > since:
            if all(one.high <= at or end <= one.low or name == own for at, end, name in taken):
                outside.setdefault(one.pc, one)
    nearest = min(outside.values(), key=lambda one: abs(one.low - low), default=None)
    return (inside[-1] if inside else None), nearest


def declared(context: Context, part: TileSpec) -> list[tuple[int, int, str]]:
    """L1 from, to of the buffers of a tile and of the tensors in L1, and their names."""
    tensors: list[Any] = [*context.program.inputs, *context.program.outputs]
    named = [(one, title(one)) for one in tensors if one.dram is None]
    every = [*((one, f"buffer {one.index}") for one in part.buffers), *named]
    return [(one.at, one.at + one.size, name) for one, name in every if isinstance(one.at, int)]


def in_used_page(context: Context, seen: Observed, conflict: Conflict) -> Blame | None:
    """The store of a producer to a page that its consumer has not given back."""
    at = l1_address(conflict.place)
    for event in (conflict.first, conflict.second) if at is not None else ():
        if not event.write or event.sent is not None or isinstance(event.step, Word):
            continue
        page = page_at(context, seen, at or 0, event.step.clock)
        if page is not None and page.held and event.owner in page.producers:
            received, acked = page.buffer.counts.values()
            text = f"for it writes {page}, which is not free: {received} were announced,"
            text += f" {acked} given back"
            advice = "wait for room, and write the page whose turn it is"
            return Blame(Act(seen.tile, event.step), text, advice)
    return None


def uncounted(context: Context, seen: Observed, conflict: Conflict) -> Blame | None:
    """The use of a page by a core that has not seen that the other side has counted this page after
    it was done with it."""
    first, second, at = conflict.first, conflict.second, l1_address(conflict.place)
    page = None if at is None else page_at(context, seen, at, second.step.clock)
    if page is None or r.HOST in (first.owner, second.owner) or first.write == second.write:
        return None
    by_producer = second.step.core in page.producers
    if second.write != by_producer or first.write != (first.step.core in page.producers):
        return None
    kind = "acked" if by_producer else "received"
    owners = {first.owner, first.step.core}
    acts = ((owner, *one) for owner in owners for one in seen.releases(owner))
    known = {(step.pc, step.clock): int(second.vector[owner]) >= at for owner, at, step in acts}
    own = (one for one in page.counted if one.kind == kind and one.core == first.step.core)
    told = next((one for one in own if (one.clock or 0) >= first.step.clock), None)
    if told is None or known.get((told.pc, told.clock or 0), True):
        return None
    text = f"look whether {page} is {'given back' if by_producer else 'announced'}"
    advice = "wait for room (cb_reserve_back) before it is written"
    advice = advice if by_producer else "wait for the page (cb_wait_front) before it is read"
    return Blame(Act(seen.tile, second.step), f"{NOTHING} {text}", advice)


# Wrong uses in the events of a tile.


_MISSING = (  # what is done with pages, which count is missing then, in words, the advice
    ("reads", "acked", "gives none back", "cb_pop_front (in lib/cb.h cb_pop) after this"),
    ("writes", "received", "announces none", "cb_push_back (in lib/cb.h cb_push) after this"),
)
_TILES = 2  # of those with the same code and arguments are looked at


class _Look:
    """Follows the events of one tile, whose counts have the number of their buffer."""

    def __init__(self, context: Context, part: TileSpec, tile: Tile, first: int) -> None:
        self._context, self._tile, self._first = context, tile, first
        images = (core.images for core in tile.core.values())
        rows = ({row.file for one in of_core for row in one.rows} for of_core in images)
        used = Counter(file for files in rows for file in files if file.endswith(HEADERS))
        self._shared = frozenset(file for file, cores in used.items() if cores > 1)
        skips = context.symptom.fine  # what is not needed need not be read
        shared = [one.buffers for one in shared_bytes(context) if tile.xy in one.at]
        own = (spec for spec in part.buffers if not any(spec.index in pair for pair in shared))
        self.buffers = {spec.index: Buffer(spec, skips=skips) for spec in own}
        self._ranges = declared(context, part)

    def at(self, events: Sequence[Event]) -> Iterator[Finding]:
        """The first wrong use of each line."""
        lengths: dict[int, list[int]] = {}  # of requests to each buffer
        for event in events:
            if event.kind not in COUNTS and event.thread is None:
                of = (i for i, one in self.buffers.items() if one.spec.at <= event.low < one.end)
                lengths.setdefault(next(of, -1), []).append(event.high - event.low)
            elif event.high in self.buffers and event.kind in COUNTS:
                self.buffers[event.high].owners.setdefault(event.kind, set()).add(event.who)
        said: set[tuple[int, int]] = set()
        for event in events:
            for buffer, (text, advice, at) in self._wrong(event):
                by = at or event
                if (by.core, by.pc) not in said:
                    said.add((by.core, by.pc))
                    found = self._finding(buffer, by, text, advice)
                    past = event.kind not in COUNTS and event.high > buffer.end
                    of_buffer = lengths.get(buffer.spec.index, ())
                    yield self._page(buffer, found, min(of_buffer, default=0)) if past else found
        wrong = self._context.program.path is not None and not self._context.symptom.fine
        for number, buffer in self.buffers.items() if wrong and not said else ():
            least, last = min(lengths.get(number, ()), default=0), buffer.last.get("writes")
            short = buffer.touched > buffer.counts["received"]
            if last and least > buffer.spec.page and short:
                yield self._page(buffer, self._finding(buffer, last, buffer.state(), ""), least)
        if self._context.symptom.hangs and not said:
            for buffer in self.buffers.values():
                yield from self._never(buffer)

    def _wrong(self, event: Event) -> Iterator[tuple[Buffer, Wrong]]:
        elsewhere = any(low <= event.low < high for low, high, _ in self._ranges)
        for index, buffer in self.buffers.items():
            if event.kind not in COUNTS:
                wrong = buffer.accessed(event, elsewhere=elsewhere)
            else:
                wrong = buffer.counted(event) if index == event.high else None
            if wrong is not None:
                yield buffer, wrong

    def _never(self, buffer: Buffer) -> Iterator[Finding]:
        """In a hang: pages that are used repeatedly, or waited for, and never counted."""
        held = [one.resource for one in waiters_of(self._context.symptom.error, "stream")]
        awaited = {
            (of.get("buffer", of["stream"] - self._first), COUNT_REGISTERS.get(of["register"]))
            for of in held
        }
        for verb, kind, missing, advice in _MISSING:
            event = buffer.last.get(verb)
            if event is None or kind in buffer.counters:
                continue
            begun = buffer.begun[verb]
            again = len(begun) > len(set(begun))  # it waits elsewhere where there is one only
            (other,) = {*COUNTS} - {kind}
            if event.who in buffer.owners.get(other, ()):
                continue  # a producer reads what it sends on
            # whether its code counts pages, where it has not come so far
            agents, stream = Agents(self._tile, ()), self._first + buffer.spec.index
            at = mm.OVERLAY_BASE + _STREAM * stream + 4 * REGISTERS[kind]
            able = agents.by_stores(at, -1) + agents.by_words(Effect(Kind.STORES, at), held=True)
            if any(one.core == event.core for one in able):
                continue
            if again or (buffer.spec.index, kind) in awaited:
                short = f"{event.who} {verb} pages and {missing}"
                text = f"{short}: {buffer.state()}"
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
        others = (*buffer.counters.values(), *buffer.last.values())
        other = next((one for one in others if one.who != event.who), None)
        victim = place(self._where(other), other.clock) if other else {}
        evidence = [f"{of}: counted by {self._where(by)}" for of, by in buffer.counters.items()]
        culprit = place(self._where(event), event.clock)
        if event.thread is not None:
            culprit["thread"] = event.thread
        counters = (("buffer", buffer.spec.index, REGISTERS[kind]) for kind in counts)
        things = frozenset((*counters, (BYTES, buffer.spec.index)))
        ends = Ends(self._tile.xy, things, short or text)
        return Finding("buffers", "error", text, culprit, victim, tuple(evidence), advice, ends)

    def _page(self, buffer: Buffer, found: Finding, least: int) -> Finding:
        """The finding; if every request to the buffer is longer than a page, that is the culprit.

        least: the bytes of the shortest.
        """
        spec, path = buffer.spec, self._context.program.path
        if path is None or least <= spec.page:
            return found
        parts = [one for part in self._context.program.placed() for one in part.buffers]
        number = next(n for n, one in enumerate(parts) if one is spec)
        who = declared_line(self._context, path, number, "page")
        text = f"a page of buffer {spec.index} has {spec.page} bytes, and every request to it"
        text, evidence = f"{text} {least} or more", (*found.evidence, found.text)
        return replace(found, text=text, culprit=who, victim=found.culprit, evidence=evidence)

    def _where(self, event: Event) -> Where:
        """Its line; in a header that several cores use, the line that calls it."""
        return outside(where_core(self._tile, event.core, event.pc), self._shared.__contains__)


def _past(context: Context, seen: Observed, part: TileSpec) -> Iterator[Finding]:
    """Requests of other tiles that fill a buffer of this one, and go past its end."""
    number, taken = seen.number, declared(context, part)
    writes = [one for one in requests(context) if not one.reads and number in one.reached]
    for spec in part.buffers:
        end, fills = spec.at + spec.size, set[tuple[int, int, int]]()
        for one in (one for one in writes if one.tile != number):
            (low, high), site = one.remote, (one.tile, one.core, one.step.pc)
            if spec.at <= low and high <= end:
                fills.add(site)
            free = all(high <= at or to <= max(low, end) for at, to, _ in taken)
            if site not in fills or not low < end + spec.size or high <= end or not free:
                continue
            by = observed(context)[one.tile].tile
            text = f"{mm.CORE_NAMES[one.core]} of tile {name_of(by)} writes {low:#x} to {high:#x}"
            text += f" of tile {name_of(seen.tile)}, past buffer {spec.index}"
            text += f" ({spec.at:#x} to {end:#x})"
            who = place(where_core(by, one.core, one.step.pc), one.step.clock, by)
            ends = Ends(seen.tile.xy, frozenset({(BYTES, spec.index)}))
            advice = "let the pointer wrap at the end of the buffer"
            yield Finding("buffers", "error", text, who, {}, (), advice, ends)
            break


def _run(context: Context) -> Sequence[Finding]:
    shared = [] if context.symptom.fine else [one.finding for one in shared_bytes(context)]
    found: dict[tuple[Any, ...], Finding] = {(one.text,): one for one in shared}
    for one in _wrong_uses(context):
        found.setdefault(tuple(map(one.culprit.get, ("core", "file", "line"))), one)
    return list(found.values())


def _wrong_uses(context: Context) -> Iterator[Finding]:
    """Accesses past the ends of tensors and buffers, then those that break the counts."""
    yield from beyond_tensors(context)
    for seen in observed(context):
        tile, part = seen.tile, context.part(seen.tile)
        yield from () if context.symptom.fine else _past(context, seen, part)
        every = events(seen) if tile.xy in part.at[:_TILES] and part.buffers else []
        first = first_stream(every, [spec.index for spec in part.buffers])
        if not every or first is None:
            continue
        own = [
            replace(one, high=one.high - first) if one.kind in COUNTS else one
            for one in every
            if not context.in_firmware(tile, one.core, one.pc)
        ]
        yield from _Look(context, part, tile, first).at(own)


CHECK = Check(
    name="buffers",
    proves="that a page of a circular buffer (`[[buffer]]`) was written while it was not free, read"
    " while it was not there, or beyond the end; that more pages were announced or given back than"
    " there are, or by two cores; that two buffers share bytes; that a request goes to the page"
    " after the last one of a tensor in DRAM; in a hang, that pages are used and never counted",
    misses="pages that a core itself loads and stores; pages announced before their data are there"
    " (see barriers); buffers that no [[buffer]] describes, or whose counts may be those of either"
    " of two builds (stream 0 or 8 for buffer 0); what comes after 262,144 acts of a tile; of a"
    " chip all tiles but two of each part, and of more than 64 tiles all but 32",
    cost="the observed run of `races`",
    applies=lambda seen: 95 if JIT else 0,
    run=_run,
)
