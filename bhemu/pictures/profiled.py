"""A profile as trace events of a viewer, and as a page: where modelled cycles go.

A process of the viewer is a tile, its threads are cores, Tensix threads and units; one microsecond
of the viewer is one cycle. An arrow goes from what changed a semaphore to the wait that it ended,
and from a request to the NoC to its answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bhemu.debug.profile import AGENTS, Link, MachineProfile, Profile, Row, waits
from bhemu.debug.spans import Operation, Request, Timeline, requests
from bhemu.devices.noc_map import HEIGHT, WIDTH
from bhemu.machine.machine import Machine
from bhemu.machine.tile import Tile
from bhemu.noc.grid import XY
from bhemu.pictures import html
from bhemu.pictures.recording import Event, metadata_event, tile_names

_LANE = {name: number for number, name in enumerate((*AGENTS[6:], *AGENTS[:6]), start=1)}


class Profiled(NamedTuple):
    """A run in modelled time as it is shown: by tile, and of the whole machine."""

    name: str
    profile: MachineProfile
    timelines: Mapping[XY, Timeline]
    requests: Sequence[Request]
    cut: bool  # not everything is in the timelines
    operations: Sequence[Operation]  # of a session

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Of each tile."""
        return tuple(self.profile.tiles.values())


def profiled(
    name: str,
    profile: MachineProfile,
    machine: Machine | Tile,
    operations: Sequence[Operation] = (),
) -> Profiled:
    """What the tiles of a machine have logged, beside their profile."""
    timelines = {tile.xy: Timeline(tile) for tile in machine.tiles_made()}
    network = machine.network
    sent, whole = ([], True) if network is None else requests(network)
    cut = not whole or any(one.cut for one in timelines.values())
    return Profiled(name, profile, timelines, sent, cut, operations)


def document(profiled: Profiled) -> dict[str, Any]:
    """The trace events, JSON-ready."""
    of: dict[XY, list[Request]] = defaultdict(list)
    for request in profiled.requests:
        of[request.tile].append(request)
    events = [
        event
        for pid, (xy, timeline) in enumerate(profiled.timelines.items(), start=1)
        for event in _tile(xy, timeline, of[xy], pid)
    ]
    for number, one in enumerate(profiled.operations, start=1):
        acts = {"acts": [one.first, one.last], "tiles": len(one.profiles)}
        event = {"ph": "X", "name": f"operation {number}", "cat": "operation", "pid": 0, "tid": 0}
        events.append({**event, "ts": one.begin, "dur": one.end - one.begin, "args": acts})
    if profiled.operations:
        events.append(metadata_event("process_name", 0, 0, "host"))
    report = profiled.profile.as_dict()
    told = {
        "program": profiled.name,
        "unit": "1 us = 1 modelled cycle",
        "sources": report["sources"],
    }
    told |= {"not modelled": report["not_modelled"], "bound": report["bound"]}
    if profiled.cut:
        told["cut"] = "only the first events are here"
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": told}


def _tile(xy: XY, timeline: Timeline, sent: Sequence[Request], pid: int) -> Iterator[Event]:
    yield from tile_names(xy, pid, _LANE)
    for span in timeline.spans:
        shown = f"waits for {span.waits_for}" if span.waits_for else span.text or "works"
        yield {"ph": "X", "name": shown, "cat": "waits" if span.waits_for else "works", "pid": pid,
               "tid": _LANE[span.agent], "ts": span.begin, "dur": span.end - span.begin,
               "args": {"from": span.place}}  # fmt: skip
    for change in timeline.changes:
        yield {"ph": "C", "name": change.name, "pid": pid, "ts": change.clock,
               "args": {"value": change.value}}  # fmt: skip
    for number, (change, span) in enumerate(timeline.posts()):
        if change.by:
            yield from _arrow("semaphore", f"{pid}.s{number}", pid, (change.by, change.clock),
                              (span.agent, span.end))  # fmt: skip
    # Requests as spans that may overlap, with arrows, and how many are under way on each NoC
    steps: list[tuple[int, int, int]] = []
    for number, one in enumerate(sent):
        event = {"name": one.what, "cat": "noc", "id": f"{pid}.{number}", "pid": pid}
        told = {"bytes": one.size, "noc": one.noc, "core": one.core, "pc": f"{one.pc:#x}",
                "performed at": one.arrives, "figures": one.source}  # fmt: skip
        tid = _LANE.get(one.core, 0)
        yield {**event, "ph": "b", "tid": tid, "ts": one.begin, "args": told}
        yield {**event, "ph": "e", "tid": tid, "ts": one.end}
        if one.core in _LANE:
            ends = (one.core, one.begin), (one.core, one.end)
            yield from _arrow("request and answer", f"{pid}.n{number}", pid, *ends)
        steps += [(one.begin, one.noc, 1), (one.end, one.noc, -1)]
    under_way = [0, 0]
    for clock, noc, step in sorted(steps):
        under_way[noc] += step
        yield {"ph": "C", "name": f"requests under way on NoC {noc}", "pid": pid, "ts": clock,
               "args": {"value": under_way[noc]}}  # fmt: skip


def _arrow(
    name: str, number: str, pid: int, start: tuple[str, int], end: tuple[str, int]
) -> Iterator[Event]:
    """An arrow from the span of an agent at a clock to the span that ends at another."""
    for phase, (agent, clock) in (("s", start), ("f", end)):
        event = {"ph": phase, "name": name, "cat": name, "id": number, "pid": pid, "ts": clock}
        yield {**event, "tid": _LANE[agent], **({"bp": "e"} if phase == "f" else {})}


_WIDTH, _LEFT, _ROW, _TOP = 1200, 90, 18, 20
_STEPS = 600  # pieces of time in which a lane is shown
_TILES = 16  # timelines
_SHOWN = 300  # rows of a table
_DEEPEST = 12  # calls of a flame
_CELL = 40
_KEY = (
    '<span class="key"><i style="background:#2e7d32"></i> works</span>'
    '<span class="key"><i style="background:#ef6c00"></i> waits</span>'
)


def page(profiled: Profiled) -> bytes:
    """The whole file: work and waits by agent, flame by source line, timeline, links, tables."""
    report = profiled.profile.as_dict()
    of_words = ", ".join(f"{name} {n}" for name, n in report["sources"].items())
    estimates = ", ".join(f"{name} ({n})" for name, n in report["estimates"].items()) or "none"
    heads = ("tile", "agent", "works", "share", "figures", "waits most for", "cycles")
    rows = []
    for one in (*report["agents"], *report["units"]):
        longest = max(one["waiting"], key=one["waiting"].__getitem__, default="")
        share = f"{100 * one['busy'] / max(report['cycles'], 1):.0f} %"
        wait = (longest, one["waiting"].get(longest))
        tile = "({},{})".format(*one["tile"])
        rows.append((tile, one["name"], one["busy"], share, one["source"], *wait))
    body = [
        f'<p id="cycles">{report["cycles"]} cycles in modelled time; works most:'
        f" {html.text(report['bound'])}</p>",
        html.quietly(
            f"words by where their figure is from: {of_words}", f"estimates: {estimates}",
            f"not modelled: {report['not_modelled']}",
            *(["the timeline holds the first events only"] if profiled.cut else []),
        ),
        "<h2>Cores, threads and units</h2>", html.scrolled(html.table(heads, rows, "agents")),
        f'<h2>Source lines</h2><p>{_KEY}</p><div class="over">{_flame(profiled)}</div>',
        f"<h2>Over time</h2><p>{_KEY} what a core works holds its polling and short waits for"
        " values</p>",
        *_timelines(profiled),
    ]  # fmt: skip
    if profiled.operations:
        body += ["<h2>Operations of the host</h2>", _operations(profiled.operations)]
    if links := profiled.profile.links:
        body += ["<h2>Links</h2>", *_links(links, report["cycles"])]
    body += ["<h2>Waits</h2>", _waits(profiled)]
    if moved := [*report["noc"], *report["dram"]]:
        body += ["<h2>Transfers</h2>", _transfers(moved)]
    return html.page(f"bhemu profile: {profiled.name}", "".join(body), "profile")


def _operations(operations: Sequence[Operation]) -> str:
    heads = ("number", "acts", "cycles", "tiles", "works most", "waits longest", "where")
    rows = []
    for number, one in enumerate(operations, start=1):
        told = next(((row.waits_for, str(row.where)) for row, _ in waits(one.profiles)), ("", ""))
        acts, bound = f"{one.first} to {one.last}", one.as_dict()["bound"]
        rows.append((number, acts, one.end - one.begin, len(one.profiles), bound, *told))
    return html.scrolled(html.table(heads, rows, "operations"))


def _waits(profiled: Profiled) -> str:
    named = ("cycles", "times", "figure", "tile", "agent", "waits for")
    heads = (*named, "bound of the line", "where")
    bounds = {
        (tuple(one["tile"]), one["core"], one["file"], one["line"]): one["bound"]
        for one in profiled.profile.as_dict()["lines"]
    }
    shown = []
    for row, xy in waits(profiled.profiles)[:_SHOWN]:
        where = row.where
        bound = bounds.get((xy, where.core, where.file, where.line), "")
        told = f"({xy[0]},{xy[1]})", row.agent, row.waits_for, bound, str(where)
        shown.append((row.cycles, row.times, row.source, *told))
    return html.scrolled(html.table(heads, shown, "waits"))


def _transfers(moved: Iterable[dict[str, Any]]) -> str:
    named = ("cycles", "requests", "waits: NIUs", "links", "DRAM")
    heads = (*named, "figures", "tile", "what", "where")
    keys = ("cycles", "requests", "niu", "links", "dram", "source", "tile", "what", "place")
    rows = sorted(moved, key=lambda one: -int(one["cycles"]))[:_SHOWN]
    return html.scrolled(html.table(heads, ([one[key] for key in keys] for one in rows), "moved"))


class _Frame:
    """A part of the flame: cycles of what is below it, and the parts."""

    def __init__(self, kind: str = "frame") -> None:
        self.kind, self.cycles = kind, 0
        self.parts: dict[str, _Frame] = {}


def _stack(row: Row) -> Iterator[tuple[str, str]]:
    """The agent, its calls from the outermost in with their lines, the activity: text, kind."""
    yield row.agent, "frame"
    where = row.where
    calls = [(where.function, where.file, where.line)]
    calls += [(call.function, call.file, call.line) for call in where.inlined]
    for function, file, line in reversed(calls[:_DEEPEST]):
        at = f" {file}:{line}" if file else ""
        yield f"{function or where.symbol or 'no symbol'}{at}", "frame"
    if row.waits_for:
        yield f"waits for {row.waits_for} ({row.source})", "waits"
    else:
        yield f"{row.word or 'works'} ({row.source})", "works"


def _flame(profiled: Profiled) -> str:
    """SVG: the wider, the more cycles; of all tiles together."""
    root = _Frame()
    for profile in profiled.profiles:
        for row in profile.rows:
            at = root
            at.cycles += row.cycles
            for text, kind in _stack(row):
                at = at.parts.setdefault(text, _Frame(kind))
                at.cycles += row.cycles
    drawn = list(_drawn(root, 0, 0, _WIDTH / max(root.cycles, 1)))
    height = _ROW * (1 + max((depth for depth, _ in drawn), default=0))
    view = f'viewBox="0 0 {_WIDTH} {height}"'
    return f'<svg class="flame" {view} role="img" aria-label="cycles by source line">' + (
        "".join(text for _, text in drawn) + "</svg>"
    )


def _drawn(frame: _Frame, depth: int, x: float, scale: float) -> Iterator[tuple[int, str]]:
    for name, part in sorted(frame.parts.items(), key=lambda one: -one[1].cycles):
        width, y = part.cycles * scale, depth * _ROW
        if width >= 0.5:
            said, room = html.text(f"{name}: {part.cycles} cycles"), int(width / 6.5)
            label = html.text(name[:room]) if room > 3 else ""
            yield (
                depth,
                (
                    f'<g><title>{said}</title><rect class="{part.kind}" x="{x:.1f}" y="{y}"'
                    f' width="{width:.1f}" height="{_ROW - 1}"/><text x="{x + 3:.1f}" y="{y + 13}">'
                    f"{label}</text></g>"
                ),
            )
            yield from _drawn(part, depth + 1, x, scale)
        x += width


def _timelines(profiled: Profiled) -> Iterator[str]:
    """A timeline of each tile."""
    shown = list(profiled.timelines.items())
    for (x, y), timeline in shown[:_TILES]:
        yield f'<h3>tile ({x},{y})</h3><div class="over">{_timeline(timeline)}</div>'
    if shown[_TILES:]:
        yield f"<p>and {len(shown) - _TILES} tiles more</p>"


def _timeline(timeline: Timeline) -> str:
    """SVG of a tile: in each piece of time the share of it that a lane works, and waits."""
    first = min((span.begin for span in timeline.spans), default=0)
    step = max((timeline.until - first) / _STEPS, 1)
    scale = (_WIDTH - _LEFT) / max(timeline.until - first, 1) * step
    # Of each lane, by piece of time: its share of work and of waits, and what for at last
    lanes: dict[str, dict[int, tuple[float, float, str]]] = defaultdict(dict)
    for span in timeline.spans:
        last = int((span.end - first) / step)
        for piece in range(int((span.begin - first) / step), last + 1):
            low, high = first + piece * step, first + (piece + 1) * step
            part = (min(span.end, high) - max(span.begin, low)) / step
            if part <= 0:
                continue
            works, waits, text = lanes[span.agent].get(piece, (0.0, 0.0, ""))
            if span.waits_for:
                text = f"waits for {span.waits_for}"
                waits = min(waits + part, 1.0)
            else:
                works, text = min(works + part, 1.0), text or span.text
            lanes[span.agent][piece] = works, waits, text
    parts = []
    for row, lane in enumerate(name for name in _LANE if name in lanes):
        y = _TOP + row * _ROW
        parts.append(f'<text x="0" y="{y + 12}">{lane}</text>')
        for begin, end, works, waits, text in _joined(lanes[lane]):
            x, width, bottom = _LEFT + begin * scale, (end - begin) * scale, y + _ROW - 4.0
            said = f"{lane}, cycle {first + begin * step:.0f}: {text}"
            for kind, share in (("works", works), ("waits", waits)):
                height = share * (_ROW - 4)
                bottom -= height
                if height:
                    parts.append(
                        f'<rect class="{kind}" x="{x:.1f}" y="{max(bottom, y):.1f}"'
                        f' width="{width:.2f}" height="{height:.1f}">'
                        f"<title>{html.text(said)}</title></rect>"
                    )
    height = _TOP + _ROW * len(lanes)
    ends = ((_LEFT, "start", first), (_WIDTH, "end", timeline.until))
    parts += [f'<text x="{x}" y="12" text-anchor="{how}">{n}</text>' for x, how, n in ends]
    view = f'viewBox="0 0 {_WIDTH} {height}"'
    return f'<svg class="time" {view} role="img" aria-label="over time">{"".join(parts)}</svg>'


def _joined(
    pieces: Mapping[int, tuple[float, float, str]],
) -> Iterator[tuple[int, int, float, float, str]]:
    """(begin, end, work, waits, text) of equal neighbours, shares in quarters."""
    open_: tuple[int, int, float, float, str] | None = None
    for piece in sorted(pieces):
        works, waits, text = pieces[piece]
        what = (round(works * 4) / 4, round(waits * 4) / 4, text)
        if open_ and open_[1] == piece and open_[2:] == what:
            open_ = (open_[0], piece + 1, *what)
            continue
        if open_:
            yield open_
        open_ = (piece, piece + 1, *what)
    if open_:
        yield open_


def _links(used: Sequence[Link], cycles: int) -> Iterator[str]:
    """Each NoC at physical coordinates: the redder a link, the more of the time it is taken."""
    routers = "".join(
        f'<rect class="router" x="{x * _CELL}" y="{y * _CELL}" width="{_CELL - 14}"'
        f' height="{_CELL - 14}"/><text x="{x * _CELL + 2}" y="{y * _CELL + 16}">{x},{y}</text>'
        for x in range(WIDTH)
        for y in range(HEIGHT)
    )
    for noc in sorted({link.noc for link in used}):
        own = [link for link in used if link.noc == noc]
        most = max(link.flits for link in own)
        told = f"the busiest link is taken in {100 * most / max(cycles, 1):.1f} % of the cycles"
        yield f"<h3>NoC {noc}</h3>"
        yield f'<p class="quiet">{told}; the redder, the nearer to it</p><div class="over">'
        size = f'width="{WIDTH * _CELL}" height="{HEIGHT * _CELL}"'
        yield f'<svg id="noc{noc}" {size} role="img" aria-label="links of NoC {noc}">{routers}'
        yield f"{''.join(_link(link, most, cycles) for link in own)}</svg></div>"


def _link(link: Link, most: int, cycles: int) -> str:
    """NoC 0 goes to the right and down, NoC 1 to the left and up."""
    (x, y), gap = link.xy, _CELL - 14
    left, top, width, height = x * _CELL + gap, y * _CELL + 2, 12, 9
    if link.axis == "y":
        left, top, width, height = x * _CELL + 2, y * _CELL + gap, 9, 12
    if link.noc == 1:  # the link ends where the coordinate is one less
        left, top = (left - _CELL, top) if link.axis == "x" else (left, top - _CELL)
        left, top = left % (WIDTH * _CELL), top % (HEIGHT * _CELL)  # round the edges
    said = (
        f"from ({x},{y}) along {link.axis}: {link.flits} flits of 64 bytes, taken in"
        f" {100 * link.flits / max(cycles, 1):.1f} % of the cycles; packets waited {link.waited}"
    )
    return (
        f'<rect class="link" x="{left}" y="{top}" width="{width}" height="{height}"'
        f' fill-opacity="{0.1 + 0.9 * link.flits / most:.2f}"><title>{said}</title></rect>'
    )
