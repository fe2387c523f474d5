"""The check "buffers": circular buffers whose pages are used without being owned."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from bhemu import memmap as mm
from bhemu.errors import BhemuError, InputError, Where
from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.noc.grid import XY
from bhemu.program.specs import Program, TileSpec
from bhemu.why.buffers import COUNT_REGISTERS, COUNTS, Buffer, Event, Recorder, Wrong, first_stream
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, outside, place
from bhemu.why.firmware import firmware_of, in_firmware
from bhemu.why.register_values import Makers, makers
from bhemu.why.toml_lines import TomlLines
from bhemu.why.walk import Instruction

_MOVERS, _TWO = ("brisc", "ncrisc"), 2
_HEADERS = (".h", ".hpp", ".hh", ".inc")
_TILES = 2  # of those with the same code and arguments are looked at
_AT_ONCE = 16  # of those with the same code
_INTERFACES, _INTERFACE = "cb_interface", 32  # the table of buffers of a core, bytes of an entry


def _kinds(program: Program) -> list[list[tuple[TileSpec, XY]]]:
    """Tiles to look at, in one run those that have the same code and buffers."""
    found: dict[Any, list[tuple[TileSpec, XY]]] = {}
    for part in program.placed():
        cores = tuple((one.name, one.elf, one.pc) for one in part.cores.values())
        if part.buffers:
            chosen = found.setdefault((cores, part.buffers), [])
            chosen += [(part, xy) for xy in part.at[:_TILES]]
    return [chosen[:_AT_ONCE] for chosen in found.values()]


def _kind(context: Context, chip: Any, kind: list[tuple[TileSpec, XY]]) -> Iterator[Finding]:
    tiles = [chip if isinstance(chip, Tile) else chip.tile[xy] for _, xy in kind]
    recorders = [Recorder(tile) for tile in tiles]
    with suppress(BhemuError):  # what had happened before is in the log
        chip.run(limit=context.most)
    others = firmware_of(context.program)
    for (part, _), tile, recorder in zip(kind, tiles, recorders, strict=True):
        events = list(recorder.events())
        first = first_stream(events, [spec.index for spec in part.buffers])
        if first is not None:
            own = [
                one
                for one in events
                if one.core < len(mm.CORE_NAMES)
                and not in_firmware(others, tile.core[mm.CORE_NAMES[one.core]], one.pc)
            ]
            look = _Look(context, part, tile, first)
            yield from look.at([_numbered(one, first) for one in own])


def _awaited(waiters: Sequence[Any], first: int) -> Iterator[tuple[int, str]]:
    """The buffers, and which of their counts, that somebody waits for."""
    for waiter in waiters:
        if waiter.kind == "stream" and waiter.resource.get("register") in COUNT_REGISTERS:
            kind = COUNT_REGISTERS[waiter.resource["register"]]
            yield waiter.resource["stream"] - first, kind


def _numbered(event: Event, first: int) -> Event:
    """A count with the number of its buffer in place of its stream's."""
    return replace(event, high=event.high - first) if event.kind in COUNTS else event


class _Look:
    """Follows the events of one tile."""

    def __init__(self, context: Context, part: TileSpec, tile: Tile, first: int) -> None:
        self._context, self._tile, self._xy = context, tile, tile.xy
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
                    yield self._from_origin(buffer, event, found)
        if self._context.symptom.hangs and not said:
            for buffer in self.buffers.values():
                yield from self._never(buffer)

    def _wrong(self, event: Event) -> Iterator[tuple[Buffer, Wrong]]:
        if event.kind in COUNTS:
            buffer = self.buffers.get(event.high)
            for wrong in () if buffer is None else self._counted(buffer, event):
                assert buffer is not None
                yield buffer, wrong
            return
        elsewhere = any(low <= event.low < high for low, high in self._ranges)
        for buffer in self.buffers.values():
            for wrong in buffer.accessed(event, elsewhere=elsewhere):
                if not self._strangers.keys() & {(buffer.spec.index, kind) for kind in COUNTS}:
                    yield buffer, wrong

    def _counted(self, buffer: Buffer, event: Event) -> Iterator[Wrong]:
        """What is wrong with a change of a count: that of a core which has another buffer."""
        stranger = self._strangers.get((buffer.spec.index, event.kind))
        found = list(buffer.counted(event))
        if stranger is None:
            yield from found
        elif stranger == event.who:
            others = " and ".join(sorted(buffer.owners[event.kind] - {stranger}))
            does = "announces pages of" if event.kind == "received" else "gives back pages of"
            text = f"{stranger} {does} buffer {buffer.spec.index}, as {others} does"
            yield Wrong(event, text, "open the buffer here whose pages nobody counts")

    @cached_property
    def _strangers(self) -> dict[tuple[int, str], str]:
        """By buffer and count which of two cores that count there has another buffer.

        Pages go from a core that moves data to one that computes, or back: who counts at the same
        side as its partner is wrong, where another buffer has nobody who counts there.
        """
        found: dict[tuple[int, str], str] = {}
        for index, buffer in self.buffers.items():
            for kind, other in (COUNTS, COUNTS[::-1]):
                both, partners = (buffer.owners.get(one, set()) for one in (kind, other))
                alike = [one for one in both if {_moves(one)} == {_moves(p) for p in partners}]
                lonely = any(kind not in one.owners for one in self.buffers.values())
                if len(both) == _TWO and len(alike) == 1 and lonely:
                    found[index, kind] = alike[0]
        return found

    def _never(self, buffer: Buffer) -> Iterator[Finding]:
        """In a hang: pages that are used again and again, or waited for, and never counted."""
        for verb, kind, missing, advice in (
            ("reads", "acked", "and gives none back", "cb_pop_front behind this"),
            ("writes", "received", "and announces none", "cb_push_back behind this"),
        ):
            event = buffer.last.get(verb)
            if event is None or kind in buffer.counters:
                continue
            begun = buffer.begun[verb]
            again = len(begun) > len(set(begun))  # it waits elsewhere where there is one only
            beside = self._beside(event, kind)
            stuck = event.who in self._waiting and beside is None  # it may count when it goes on
            if again or ((buffer.spec.index, kind) in self._awaited and not stuck):
                text = f"{event.who} {verb} pages {missing}: {buffer.state()}"
                yield self._finding(buffer, beside or event, text, advice, outer=True)

    def _beside(self, event: Event, kind: str) -> Event | None:
        """Where the same core counts pages of another buffer: there one count may be missing."""
        counts = [one.counters.get(kind) for one in self.buffers.values()]
        return next((one for one in counts if one is not None and one.core == event.core), None)

    def _finding(
        self, buffer: Buffer, event: Event, text: str, advice: str, *, outer: bool = False
    ) -> Finding:
        """outer: the line is that of the kernel itself, where its helpers are inlined."""
        victims = [one for one in (*buffer.counters.values(), *buffer.last.values())
                   if one.who != event.who]  # fmt: skip
        victim = place(self._where(victims[0]), victims[0].clock) if victims else {}
        where = self._where(event)
        if outer and where.inlined:
            function, file, line = where.inlined[-1]
            where = replace(where, function=function, file=file, line=line, inlined=())
        evidence = [f"{kind}: counted by {self._where(one)}" for kind, one in
                    buffer.counters.items()]  # fmt: skip
        culprit = place(where, event.clock)
        if event.thread is not None:
            culprit["thread"] = event.thread
        return Finding("buffers", "error", text, culprit, victim, tuple(evidence), advice)

    def _index(self, event: Event) -> int:
        """The buffer in which an access begins, -1 for none."""
        specs = [one.spec for one in self.buffers.values()]
        return next((s.index for s in specs if s.at <= event.low < s.at + s.size), -1)

    def _page(self, buffer: Buffer, found: Finding) -> Finding | None:
        """The size of its pages as culprit, where every request to the buffer is longer."""
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
        line = TomlLines(path).key(table, number, "page")
        text = f"a page of buffer {buffer.spec.index} has {buffer.spec.page} bytes, and every"
        text += f" request to it {min(lengths)} or more"
        who = place(Where(file=path.name, line=line), None)
        evidence = (*found.evidence, found.text)
        return replace(found, text=text, culprit=who, victim=found.culprit, evidence=evidence)

    def _from_origin(self, buffer: Buffer, event: Event, found: Finding) -> Finding:
        """With who made the address as culprit: of what lies past a buffer, of a wrong buffer."""
        past = event.kind in ("reads", "writes") and event.high > buffer.spec.at + buffer.spec.size
        if past and (of_page := self._page(buffer, found)) is not None:
            return of_page
        wrong = self._is_wrong_buffer(buffer, event)
        if event.core >= len(mm.CORE_NAMES) or not (wrong or (past and event.thread is None)):
            return found

        def arrived(step: Instruction) -> bool:
            return event.clock is not None and step.clock > event.clock

        known = makers(self._context, self._xy, arrived)
        pcs = self._origins(known, event, wrong=wrong)
        if not pcs:
            return found
        who = where_core(self._tile, event.core, pcs[0])  # a pointer wraps in a library
        evidence = (*found.evidence, f"used at {self._where(event)}")
        return replace(found, culprit=place(who, None), evidence=evidence)

    def _is_wrong_buffer(self, buffer: Buffer, event: Event) -> bool:
        """It counts pages as another core does, and those of another buffer nobody counts."""
        if self._strangers.get((buffer.spec.index, event.kind)) == event.who:
            return True
        first = buffer.counters.get(event.kind)
        counted = [one for one in self.buffers.values() if event.kind in one.owners]
        return first is not None and first.who != event.who and len(counted) < len(self.buffers)

    def _origins(self, known: Makers, event: Event, *, wrong: bool) -> list[int]:
        """The instructions that made the address of an access: of a counter from which number."""
        made = [
            one
            for (core, pc, value), pair in known.stored.items()
            for one in pair
            if core == event.core and (pc == event.pc if wrong else value == event.low)
        ]
        if wrong:
            loads = [pc for one in made for pc in sorted(one.loads)]
            return loads or self._opened(known, event) or [one.pc for one in made if one.pc]
        return [one.pc for one in made if one.pc]

    def _opened(self, known: Makers, event: Event) -> list[int]:
        """Who first looks up, in the core's own memory, the buffer whose pages it counts.

        A compiler that knows the number leaves nothing of it in the address of the counter.
        """
        for image in self._tile.core[mm.CORE_NAMES[event.core]].images:
            with suppress(InputError):
                low = image.address(_INTERFACES) + _INTERFACE * event.high
                return [
                    pc
                    for (core, at), pc in known.looked_up.items()
                    if core == event.core and low <= at < low + _INTERFACE
                ][:1]
        return []

    def _where(self, event: Event) -> Where:
        """Its line; of a header that several cores use, as of a library, the line that calls it."""
        return outside(where_core(self._tile, event.core, event.pc), self._shared)


def _moves(core: str) -> bool:
    """Whether a core moves data, and does not compute."""
    return core in _MOVERS


def _overlaps(context: Context) -> Iterator[Finding]:
    """Buffers of a tile that share bytes, of a run that went wrong: some share them on purpose."""
    path = context.program.path
    if path is None or context.symptom.fine:
        return
    number, table = 0, "tile.buffer" if context.program.tiles else "buffer"
    for part in context.program.placed():
        for i, one in enumerate(part.buffers):
            for other in part.buffers[:i]:
                if one.at < other.at + other.size and other.at < one.at + one.size:
                    line = TomlLines(path).key(table, number + i, "at")
                    text = (
                        f"buffer {one.index} ({one.at:#x} to {one.at + one.size:#x}) shares bytes"
                        f" with buffer {other.index} ({other.at:#x} to {other.at + other.size:#x})"
                    )
                    who = place(Where(file=path.name, line=line), None)
                    yield Finding("buffers", "error", text, who, {}, (), "give it its own bytes")
        number += len(part.buffers)


def _applies(seen: Outcome) -> int:
    return 95  # one run: before those that take the time of all others


def _run(context: Context) -> Sequence[Finding]:
    found: dict[tuple[Any, ...], Finding] = {(one.text,): one for one in _overlaps(context)}
    for kind in _kinds(context.program):
        machine = context.launch(engine="compiled")
        for one in _kind(context, machine, kind):
            culprit = one.culprit
            found.setdefault((culprit.get("core"), culprit.get("pc")), one)
    return list(found.values())


CHECK = Check(
    name="buffers",
    proves="that a page of a circular buffer (`[[buffer]]`) was written while it was not free, read"
    " while it was not there, or beyond the end; that more pages were announced or given back than"
    " there are, or by two cores; that two buffers share bytes; in a hang, that pages are used and"
    " never counted",
    misses="pages that a core itself loads and stores; pages announced before their data are there"
    " (see barriers); buffers that no [[buffer]] describes, or whose counts may be those of either"
    " of two builds (stream 0 or 8 for buffer 0); what comes after 150,000 words of a tile; of a"
    " chip all tiles but two of each part, and but 16 of those with the same code",
    cost="one more run, in which every Tensix word passes through Python (10 us each)",
    applies=_applies,
    run=_run,
)
