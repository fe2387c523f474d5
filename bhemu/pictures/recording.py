"""What a report shows of a run: words, values, origins.

The run stops every few clock units, which changes nothing of it, and is looked at. Where there are
too many looks every second one is forgotten and the steps become twice as long.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from bhemu.debug.numerics import element_name
from bhemu.errors import BhemuError, InputError, Where
from bhemu.launch import Launched
from bhemu.machine.sentences import CONDITIONS
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry, Places
from bhemu.memmap import CORE_NAMES
from bhemu.pictures import html
from bhemu.program.coordinates import XY
from bhemu.program.outputs import OutputResult
from bhemu.tensix.observe import FIRST_CORE, WORDS_AND_STORES
from bhemu.tensix.state import CORES, THREADS
from bhemu.why.chain import Link, links_behind

MOST = 800  # looks that are kept
LANES = (*CORE_NAMES, *(f"T{t}" for t in range(THREADS)), "NoC")
# What a core or thread does in a piece of time; "turn": it could go on, but others had their turn.
KINDS = ("works", "turn", "polls", "waits", "parked", "reset", "stopped", "idle")


class Seen(NamedTuple):
    """One look at a tile: (state, function) of each core, counts, what threads wait for."""

    cores: tuple[tuple[str, str], ...]
    polls: tuple[bool, ...]
    retired: tuple[int, ...]
    executed: tuple[int, ...]
    waits: tuple[str, ...]
    requests: int
    under_way: int


class Segment(NamedTuple):
    """A stretch of time in which a lane does one thing."""

    begin: int
    end: int
    kind: str
    text: str


@dataclass
class Recording:
    """A run as it was seen: clocks of the looks, looks and executed words of each tile."""

    clocks: list[int] = field(default_factory=list)
    seen: dict[XY, list[Seen]] = field(default_factory=dict)
    words: dict[XY, list[Entry]] = field(default_factory=dict)
    places: dict[XY, Places] = field(default_factory=dict)
    stop: Stop | None = None
    error: BhemuError | None = None
    cut: bool = False  # not all words are there

    def lane(self, xy: XY, name: str) -> list[Segment]:
        """What a core, thread or the NoC interface of a tile does, equal neighbours joined."""
        found: list[Segment] = []
        looks = self.seen[xy]
        clocks = self.clocks[-len(looks) :]  # a tile of a chip that was not there yet has fewer
        for (begin, before), (end, after) in pairwise(zip(clocks, looks, strict=True)):
            if end == begin:
                continue
            kind, text = _lane_change(name, before, after)
            if found and found[-1][2:] == (kind, text):
                found[-1] = found[-1]._replace(end=end)
            else:
                found.append(Segment(begin, end, kind, text))
        return found


def _lane_change(name: str, before: Seen, after: Seen) -> tuple[str, str]:
    """(kind, text) of a lane between two looks."""
    if name == "NoC":
        sent = after.requests - before.requests
        if sent or after.under_way:
            return "works", f"{after.under_way} requests under way" if after.under_way else "sends"
        return "idle", ""
    if name in CORE_NAMES:
        c = CORE_NAMES.index(name)
        state, function = after.cores[c]
        moved = after.retired[c] != before.retired[c]
        kind = {"running": "works", "blocked": "waits", "assert": "stopped"}.get(state, state)
        if kind == "works" and after.polls[c]:
            kind = "polls"
        elif kind == "works" and not moved:
            kind = "turn"
        return kind if kind in KINDS else "stopped", function
    t = int(name[1])
    if after.executed[t] != before.executed[t]:
        return "works", ""
    return ("waits", after.waits[t]) if after.waits[t] else ("idle", "")


class Recorder:
    """Runs a launched program to its end and looks at it on the way.

    words: keep executed words and device stores too, at most so many.
    """

    def __init__(self, launched: Launched, *, words: int = 0) -> None:
        self._launched, self._words = launched, words
        self._functions: dict[tuple[XY, int, int], str] = {}
        self.recording = Recording()
        if words:
            for tile in self._launched.tiles:
                tile.state.trace[0] = WORDS_AND_STORES

    def run(self) -> Recording:
        """The whole run; its error, if it has one, is in the recording."""
        found, spec = self.recording, self._launched.program.run
        began, period = time.monotonic(), 1
        loop = self._launched.machine.loop
        loop.continues_last_run = False
        self._look()
        try:
            while True:
                piece, timeout = period, spec.timeout_s
                if spec.limit is not None:
                    piece = max(min(period, spec.limit - self._launched.clock), 1)
                if timeout is not None:
                    timeout = max(timeout - (time.monotonic() - began), 0.001)
                found.stop = stop = self._launched.machine.run(limit=piece, timeout_s=timeout)
                loop.continues_last_run = True
                self._look()
                over = spec.limit is not None and self._launched.clock >= spec.limit
                if stop.reason != "limit" or over:
                    found.error = self._launched.error_if_incomplete(stop)
                    break
                if len(found.clocks) > MOST:
                    period *= 2
                    keep = range(0, len(found.clocks), 2)
                    for xy, looks in found.seen.items():
                        late = len(found.clocks) - len(looks)
                        found.seen[xy] = [looks[i - late] for i in keep if i >= late]
                    found.clocks = [found.clocks[i] for i in keep]
        except BhemuError as error:
            found.error = error
            self._look()
        finally:
            loop.continues_last_run = False
            self._take_words()
        return found

    def _look(self) -> None:
        found = self.recording
        found.clocks.append(self._launched.clock)
        for tile in self._launched.tiles:
            found.seen.setdefault(tile.xy, []).append(self._observe(tile))
        self._take_words()

    def _observe(self, tile: Tile) -> Seen:
        s = tile.state
        blocked = (int(s.gate_blocked[t]) if s.gate_full[t] else 0 for t in range(THREADS))
        return Seen(
            tuple(
                (core.state, self._function(tile, c, int(s.pc[c])))
                for c, core in enumerate(tile.core.values())
            ),
            tuple(bool(s.loop_length[c]) for c in range(CORES)),
            tuple(int(n) for n in s.retired),
            tuple(int(n) for n in s.executed),
            tuple(CONDITIONS[n].text if n in CONDITIONS else "" for n in blocked),
            int(s.noc_issued[0]),
            int(s.noc_requests[0]),
        )

    def _function(self, tile: Tile, core: int, pc: int) -> str:
        key = tile.xy, core, pc
        if key not in self._functions:
            self._functions[key] = (tile.locate(core, pc)[0] or "").split("+")[0]
        return self._functions[key]

    def _take_words(self) -> None:
        found = self.recording
        for tile in self._launched.tiles if self._words else ():
            found.places.setdefault(tile.xy, Places(tile))
            tile.drain_log()
            taken = found.words.setdefault(tile.xy, [])
            room = self._words - sum(map(len, found.words.values()))
            taken += tile.log[:room]
            found.cut |= len(tile.log) > room
            tile.log.clear()
            if found.cut:
                tile.state.trace[0] = 0


# A run as Chrome trace events, which ui.perfetto.dev and chrome://tracing open.
#
# A process is a tile, its threads are cores, Tensix threads and the NoC; one microsecond of the
# viewer is one unit of the clock. Words and stores stand at their exact clocks; what cores do
# between two looks at the run is as exact as the looks are close.

Event = dict[str, Any]
_NOC = LANES.index("NoC") + 1
_COMMAND = "NOC_CMD_CTRL"  # the store to it sends a request


def document(recording: Recording, name: str) -> dict[str, Any]:
    """The whole file, JSON-ready."""
    events = [event for i, xy in enumerate(recording.seen) for event in _tile(recording, xy, i + 1)]
    other = {"program": name, "unit": "1 us = 1 clock unit of the emulator"}
    if recording.cut:
        other["words"] = "only the first ones are here"
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}


def _tile(recording: Recording, xy: XY, pid: int) -> Iterator[Event]:
    yield from tile_names(xy, pid, LANES)
    for tid, lane in enumerate(LANES, start=1):
        for begin, end, kind, text in recording.lane(xy, lane):
            if kind in ("idle", "reset", "turn") or (lane[0] == "T" and kind == "works"):
                continue
            shown = text if kind == "works" and text else f"{kind} {text}".strip()
            yield {"ph": "X", "name": shown, "cat": kind, "pid": pid, "tid": tid,
                   "ts": begin, "dur": end - begin}  # fmt: skip
    yield from _words(recording, xy, pid)


def tile_names(xy: XY, pid: int, lanes: Iterable[str]) -> Iterator[Event]:
    """The events that name a tile and its lanes, from thread 1 on, in this order."""
    yield metadata_event("process_name", pid, 0, f"tile ({xy[0]},{xy[1]})")
    for tid, lane in enumerate(lanes, start=1):
        yield metadata_event("thread_name", pid, tid, lane)
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid,
               "args": {"sort_index": tid}}  # fmt: skip


def metadata_event(kind: str, pid: int, tid: int, name: str) -> Event:
    """The event that names a process or thread of the viewer."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _words(recording: Recording, xy: XY, pid: int) -> Iterator[Event]:
    places = recording.places.get(xy)
    registers: dict[str, str] = {}  # of the NoC interfaces, as the stores left them
    for number, entry in enumerate(recording.words.get(xy, ())):
        assert places is not None
        if entry[0] >= FIRST_CORE:
            store = places.store(entry)
            value = f"{store.value:#x}"
            told = {"address": f"{store.address:#x}", "value": value, "from": store.place}
            event: Event = {"ph": "i", "s": "t", "cat": "store", "pid": pid, "ts": entry[4]}
            event["args"] = told
            yield {**event, "name": store.name or "store", "tid": CORE_NAMES.index(store.core) + 1}
            registers[store.name] = value
            initiator, command, _ = store.name.partition(_COMMAND)
            if command and store.value:
                asked = {name: n for name, n in registers.items() if name.startswith(initiator)}
                about = {**event, "args": {**asked, "from": store.place}}
                yield {**about, "name": f"request by {store.core}", "cat": "noc", "tid": _NOC}
            continue
        word = places.word(number, entry)
        yield {
            "ph": "X", "name": word.text.split()[0], "cat": "word", "pid": pid,
            "tid": LANES.index(f"T{word.thread}") + 1, "ts": entry[4] - 1, "dur": 1,
            "args": {"word": f"{word.word:#010x}", "text": word.text, "pc": f"{word.pc:#x}",
                     "from": word.place},
        }  # fmt: skip


# Where wrong elements of outputs come from: a tree of causes that opens step by step.

_OPEN = 2  # steps of a tree that are open at first

Excerpt = Callable[[XY, Where], str]
"""The source around a place of a tile, as markup; "" where there is none."""


class Origin(NamedTuple):
    """An element of an output, "y[0,2]", and the causes of its value."""

    element: str
    xy: XY
    links: list[Link]


def origins(
    launch: Callable[[XY], Launched],
    results: Sequence[OutputResult],
    of_dram: Callable[[str], list[Link]],
) -> list[Origin]:
    """Of each output that differs the first and the worst wrong element, in DRAM the first.

    launch: the program, with a history of the tile at a coordinate, run to its end. of_dram: the
    causes of an element of an output in DRAM; InputError where they are not known.
    """
    found: list[Origin] = []
    machines: dict[Any, Launched] = {}
    for result in results:
        spec, report = result.spec, result.report
        if report is None or report.equal or report.first is None:
            continue
        if spec.dram is not None:
            name = element_name(spec.name, report.first.index)
            with suppress(InputError):
                links = of_dram(name)
                at = links[0].where
                if at is not None and isinstance(at.tile, tuple):
                    found.append(Origin(name, at.tile, links))
            continue
        if spec.tile not in machines:
            machines[spec.tile] = launch(spec.tile or (1, 2))
        target = machines[spec.tile]
        wrong = dict.fromkeys(one.index for one in (report.first, report.worst) if one is not None)
        for index in wrong:
            name = element_name(spec.name, index)
            links = links_behind(target.tile, target.program, "brisc", name)
            found.append(Origin(name, target.tile.xy, links))
    return found


def tree(one: Origin, excerpt: Excerpt) -> str:
    """The causes of an element, each within what it is a cause of."""
    children: list[list[int]] = [[] for _ in one.links]
    above: list[int] = []
    for i, link in enumerate(one.links):
        del above[link.depth :]
        if above:
            children[above[-1]].append(i)
        above.append(i)
    body = "".join(_node(one, i, children, excerpt) for i in range(min(len(one.links), 1)))
    return f'<div class="origin" id="{html.text(one.element)}">{body}</div>'


def _node(one: Origin, i: int, children: list[list[int]], excerpt: Excerpt) -> str:
    link = one.links[i]
    value = f"{link.after:#x}" if link.before is None else f"{link.before:#x} → {link.after:#x}"
    head = f"<code><b>{html.text(link.place)}</b> = {html.text(value)}</code>"
    inside = "".join(_inside(one, link, excerpt))
    inside += "".join(_node(one, k, children, excerpt) for k in children[i])
    shown = " open" if link.depth < _OPEN else ""
    return f"<details{shown}><summary>{head}</summary>{inside}</details>"


def _inside(one: Origin, link: Link, excerpt: Excerpt) -> Iterator[str]:
    if link.where is not None:
        yield f"<p>clock {link.clock}, by <code>{html.text(link.where)}</code></p>"
        yield excerpt(one.xy, link.where)
    if link.text:
        yield f"<p>{html.text(link.text)}</p>"
