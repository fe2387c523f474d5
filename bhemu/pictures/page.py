"""The report of a run: findings with source, waits, timeline, tiles, outputs; one HTML file."""

import base64
import itertools
import math
import struct
import textwrap
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.debug.places import Sources
from bhemu.errors import BhemuError, NoProgress, Where
from bhemu.launch import Launched
from bhemu.noc.grid import XY
from bhemu.pictures import html
from bhemu.pictures.recording import LANES, Origin, Recording, tree
from bhemu.program.specs import OutputSpec
from bhemu.program.tensor import EDGE
from bhemu.why.findings import Finding, in_words

# Where outputs differ: an image with a point per element, and a grid of their tiles.

_MOST_POINTS = 512  # points of the image on either side
_MOST_CELLS = 4096  # cells of the grid
_SIDE = 384  # of the image on the page, in pixels, at least
_EQUAL, _DIFFERS = np.array([222, 235, 222]), np.array([198, 40, 40])

_Share = npt.NDArray[np.float64]


def section(spec: OutputSpec, data: bytes) -> str:
    """What the page shows of one output: in words, the image, the grid."""
    shape = " x ".join(str(n) for n in spec.shape)
    head = f"<h3>{html.text(spec.name)}</h3><p>{shape} {html.text(spec.dtype)}"
    if (bad := spec.differing(data)) is None:
        return f"{head}, not compared</p>"
    head += f", compared by {html.text(spec.compare)}: {int(bad.sum())} of {bad.size} differ</p>"
    grid = _grid(spec, bad)
    if bad.any():
        head += '<p class="quiet">a point per element, red where it differs'
        head += f"{'; beside it its tiles, the redder the more do' if grid else ''}</p>"
    # The share of elements that differ, in at most `most` x `most` rectangles
    shares = bad.reshape(-1, bad.shape[-1]).astype(np.float64)
    for axis in (0, 1):
        block = -(-shares.shape[axis] // _MOST_POINTS)
        if block > 1:
            edges = np.arange(0, shares.shape[axis], block)
            count = np.diff(np.append(edges, shares.shape[axis]))
            shares = np.add.reduceat(shares, edges, axis=axis)
            shares = shares / (count[:, None] if axis == 0 else count)
    return f'{head}<div class="heat">{_image(spec.name, shares)}{grid}</div>'


def _image(name: str, shares: _Share) -> str:
    rows, columns = shares.shape
    scale = max(_SIDE // max(rows, columns), 1)
    address = base64.b64encode(png(_colours(shares))).decode()
    size = f'width="{columns * scale}" height="{rows * scale}"'
    title = f"{name}: a point per element, red where it differs"
    return f'<img {size} alt="{html.text(title)}" src="data:image/png;base64,{address}">'


def _colours(shares: _Share) -> npt.NDArray[np.uint8]:
    """Red for what differs; a rectangle with a single one is seen too."""
    weight = np.where(shares > 0, 0.35 + 0.65 * shares, 0.0)[..., None]
    colours: npt.NDArray[np.uint8] = (_EQUAL + (_DIFFERS - _EQUAL) * weight).astype(np.uint8)
    return colours


def png(colours: npt.NDArray[np.uint8]) -> bytes:
    """A PNG file of red, green, blue (rows, columns, 3)."""
    height, width, _ = colours.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), colours.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def _grid(spec: OutputSpec, bad: npt.NDArray[np.bool_]) -> str:
    """The tiles of an output, each with how many of its elements differ."""
    if (edge := EDGE.get(spec.layout)) is None or bad.ndim < 2:
        return ""
    flat = bad.reshape(-1, bad.shape[-1])
    rows, columns = flat.shape[0] // edge, flat.shape[1] // edge
    if rows * columns > _MOST_CELLS or not rows * columns:
        return ""
    counts = flat.reshape(rows, edge, columns, edge).sum(axis=(1, 3))
    side = max(min(_SIDE // max(rows, columns), 32), 6)
    colours = _colours(counts / edge**2)
    cells = "".join(
        f'<rect x="{c * side}" y="{r * side}" width="{side - 1}" height="{side - 1}"'
        f' fill="rgb({",".join(map(str, colours[r, c]))})">'
        f"<title>tile ({r}, {c}): {int(counts[r, c])} of {edge * edge} differ</title></rect>"
        for r in range(rows)
        for c in range(columns)
    )
    size = f'width="{columns * side}" height="{rows * side}"'
    return f'<svg class="tiles" {size} role="img" aria-label="tiles">{cells}</svg>'


_TIMELINE_WIDTH, _LEFT, _ROW, _TOP = 1200, 70, 18, 20
_TICKS = 8
_KINDS = {  # of segments: the colour, and what it means
    "works": ("#2e7d32", "executes"),
    "turn": ("#a5d6a7", "could go on; others had their turn"),
    "polls": ("#f9a825", "goes round in a loop without effect"),
    "waits": ("#ef6c00", "is blocked"),
    "parked": ("#90a4ae", "has ended"),
    "stopped": ("#c62828", "assert, or held"),
}


def timeline_picture(recording: Recording, xy: XY) -> str:
    """SVG of one tile; lanes on which nothing ever was are left out."""
    begin, end = recording.clocks[0], max(recording.clocks[-1], recording.clocks[0] + 1)
    scale = (_TIMELINE_WIDTH - _LEFT) / (end - begin)
    parts, row = [], 0
    for lane in LANES:
        segments = [one for one in recording.lane(xy, lane) if one.kind not in ("idle", "reset")]
        if not segments:
            continue
        y = _TOP + row * _ROW
        parts.append(f'<text x="0" y="{y + 12}">{lane}</text>')
        row += 1
        for one in segments:
            text = " ".join(filter(None, (lane, one.kind, one.text)))
            text += f", clock {one.begin} to {one.end}"
            x, width = _LEFT + (one.begin - begin) * scale, (one.end - one.begin) * scale
            parts.append(
                f'<rect x="{x:.2f}" y="{y}" width="{max(width, 0.5):.2f}" height="{_ROW - 4}"'
                f' fill="{_KINDS[one.kind][0]}"><title>{html.text(text)}</title></rect>'
            )
    height = _TOP + row * _ROW
    for tick in range(_TICKS + 1):
        clock = begin + (end - begin) * tick // _TICKS
        x = _LEFT + (clock - begin) * scale
        anchor = "end" if tick == _TICKS else "middle" if tick else "start"
        parts.append(
            f'<path class="tick" d="M{x:.1f} {_TOP - 4}V{height}"/>'
            f'<text x="{x:.1f}" y="12" text-anchor="{anchor}">{clock}</text>'
        )
    view = f'viewBox="0 0 {_TIMELINE_WIDTH} {height}" width="{_TIMELINE_WIDTH}" height="{height}"'
    label = f"tile ({xy[0]},{xy[1]}) over the clock"
    return f'<svg class="time" {view} role="img" aria-label="{label}">{"".join(parts)}</svg>'


# The wait-for graph of a hang as a picture: waiting agents, what they wait for, what could end it.

_WAITS_WIDTH, _ROW = 250, 15  # of a box, of a line in it
_MARGIN = 30
_MOST_WAITERS = 24  # boxes
_LETTERS = 40  # of a line


class _Edge(NamedTuple):
    """`waiter` waits for `reason`, which `giver` can give; of the ring or not."""

    waiter: str
    giver: str
    reason: str
    ring: bool


def waits_picture(graph: dict[str, Any]) -> str:
    """SVG of a graph as `WaitGraph.as_dict` gives it; "" without waiters."""
    waiters = graph.get("waiters", [])
    ring = [str(name) for name in graph.get("cycle", [])]
    turns = set(zip(ring, ring[1:] + ring[:1], strict=True))
    edges = [
        _Edge(one["who"], other["who"], one["reason"], (one["who"], other["who"]) in turns)
        for one in waiters
        for other in one["releasers"]
        if other["who"] != one["who"]
    ]
    states = {one["who"]: f"waits for {one['reason']}" for one in waiters}
    for one in waiters:
        for other in one["releasers"]:
            states.setdefault(other["who"], str(other.get("state", "")))
    names = [*dict.fromkeys([*ring, *states])][:_MOST_WAITERS]
    if not names:
        return ""
    shown = [e for e in edges if {e.waiter, e.giver} <= {*names}]
    lines = {one["who"]: _line(one.get("where") or {}) for one in waiters}
    texts = {
        name: [
            ("name", name),
            *(("state", row) for row in textwrap.wrap(states[name], _LETTERS)),
            *(("line", line) for line in (lines.get(name),) if line),
        ]
        for name in names
    }
    n = len(names)
    tall = _ROW * (max(map(len, texts.values())) + 1)
    radius = 0.0 if n == 1 else max(1.5 * _WAITS_WIDTH * n / (2 * math.pi), 150.0)
    width, height = 2 * (radius + _MARGIN) + _WAITS_WIDTH, 2 * (0.7 * radius + _MARGIN) + tall
    turn = 2 * math.pi / n
    middle = {
        name: (
            width / 2 + radius * math.sin(i * turn),
            height / 2 - 0.7 * radius * math.cos(i * turn),
        )
        for i, name in enumerate(names)
    }
    parts = [_edge(edge, middle[edge.waiter], middle[edge.giver], tall) for edge in shown]
    parts += [_box(rows, middle[name], tall, name in ring) for name, rows in texts.items()]
    view = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg id="waits" class="waits" {view} role="img" aria-label="wait-for graph"><defs>'
        '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
        ' orient="auto"><path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>'
        f"{''.join(parts)}</svg>"
    )


def _line(where: dict[str, Any]) -> str:
    """The line of source where it waits: that of the code which called what was inlined."""
    at = where["inlined"][-1] if where.get("inlined") else where
    return f"{at['file']}:{at['line']}" if at.get("file") else ""


def _box(rows: Sequence[tuple[str, str]], at: tuple[float, float], tall: float, ring: bool) -> str:
    """`rows`: what kind of text each is, and the text; `tall`: the height of every box."""
    x, y = at[0] - _WAITS_WIDTH / 2, at[1] - tall / 2
    top = at[1] - _ROW * (len(rows) / 2 - 0.75)
    lines = "".join(
        f'<text x="{at[0]:.1f}" y="{top + _ROW * i:.1f}" class="{kind}">{html.text(text)}</text>'
        for i, (kind, text) in enumerate(rows)
    )
    title = html.text(" ".join(text for _, text in rows))
    return (
        f'<g class="{"box ring" if ring else "box"}"><title>{title}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{_WAITS_WIDTH}" height="{tall}" rx="6"/>'
        f"{lines}</g>"
    )


def _edge(edge: _Edge, start: tuple[float, float], end: tuple[float, float], tall: float) -> str:
    (x0, y0), (x1, y1) = _border(start, end, tall), _border(end, start, tall)
    # Bent to the left, so that two that wait for each other are two arrows.
    bent = (x0 + x1) / 2 + (y1 - y0) / 8, (y0 + y1) / 2 - (x1 - x0) / 8
    title = f"{edge.waiter} waits for {edge.reason}, which {edge.giver} can give"
    return (
        f'<path class="{"wait ring" if edge.ring else "wait"}" marker-end="url(#tip)"'
        f' d="M{x0:.1f} {y0:.1f}Q{bent[0]:.1f} {bent[1]:.1f} {x1:.1f} {y1:.1f}">'
        f"<title>{html.text(title)}</title></path>"
    )


def _border(
    inside: tuple[float, float], to: tuple[float, float], tall: float
) -> tuple[float, float]:
    """Where the line between the middles of two boxes leaves the first one."""
    dx, dy = to[0] - inside[0], to[1] - inside[1]
    wide = _WAITS_WIDTH / 2 / abs(dx) if dx else math.inf
    part = min(wide, tall / 2 / abs(dy) if dy else math.inf)
    return inside[0] + part * dx, inside[1] + part * dy


_TILES = 16  # timelines
_NAMED = 4  # tiles that share one
_AROUND = 4  # lines of source before and after
_CELL = 42  # of the grid of tiles, in pixels
_ENDED = {"until": "its end condition held", "idle": "nothing was left to do"}


def page(
    name: str,
    launched: Launched,
    recording: Recording,
    error: BhemuError | None,
    findings: Sequence[Finding],
    causes: Sequence[Origin] = (),
) -> bytes:
    """The whole file; `launched` stands where the run ended, `causes` are of wrong elements.

    It begins with the first finding, its source and the picture that shows it.
    """
    sources = {
        tile.xy: Sources(part) for tile in launched.tiles for part in (launched.part(tile.xy),)
    }
    first = next(iter(sources))
    shown = _named_first(launched, error, findings)
    stop = recording.stop
    ended = "" if stop is None else _ENDED.get(stop.reason, stop.reason)
    ended = ended if error is None else error.message
    kind = "bad" if error is not None else ""
    head = f'<p id="ended" class="{kind}">ended: {html.text(ended)}</p>'
    body = [head + html.quietly(f"clock {launched.clock}")]
    if not findings:
        body.append("<p>Nothing is wrong with this run: it ended, and no output differs.</p>")
    told = "".join(_finding(one, sources, first) for one in findings[:1])
    picture = "".join((*_waits(error), *_outputs(launched, differing=True)))
    body.append(f'<div class="first"><div>{told}</div><div>{picture}</div></div>')
    body += _causes(causes, sources)
    if findings[1:]:
        body += ["<h2>What else is wrong</h2>"]
        body += [_finding(one, sources, first) for one in findings[1:]]
    body += _timelines(recording, shown)
    if len(recording.seen) > 1:
        told = "the bluer, the more instructions and words a tile has executed"
        body.append(f'<h2>Tiles</h2><p class="quiet">{told}</p><div class="over">')
        body.append(f"{_chip(recording)}</div>")
    body += _outputs(launched, differing=False)
    body += ["<h2>What ran</h2>", _counts(launched, shown[:_TILES])]
    return html.page(f"bhemu report: {name}", "".join(body), "report")


def _waits(error: BhemuError | None) -> Iterator[str]:
    """The picture of a hang."""
    graph = error.as_dict()["graph"] if isinstance(error, NoProgress) else None
    if isinstance(graph, dict) and (drawn := waits_picture(graph)):
        told = "an arrow goes to what could end the wait; a ring is red"
        yield f'<h2>Wait-for graph</h2><p class="quiet">{told}</p>'
        yield f'<div class="over">{drawn}</div>'


def _causes(causes: Sequence[Origin], sources: dict[XY, Sources]) -> Iterator[str]:
    """The trees of causes of wrong elements."""

    def excerpt(xy: XY, where: Where) -> str:
        return "".join(_excerpts({**where.as_dict(), "tile": xy}, sources, xy))

    if causes:
        told = "what an element was made from, and that in turn: a click opens a step"
        yield f'<h2>Where wrong elements come from</h2><p class="quiet">{told}</p>'
    for one in causes:
        yield tree(one, excerpt)


def _named_first(
    launched: Launched, error: BhemuError | None, findings: Sequence[Finding]
) -> list[XY]:
    """The tiles: those that a finding or the hang names, then the others."""
    graph: Any = getattr(error, "graph", None)
    places = [*(one.culprit for one in findings), *(one.victim for one in findings)]
    places += [waiter.where for waiter in getattr(graph, "waiters", ())]
    named = [tuple(place["tile"]) for place in places if place.get("tile")]
    there = [tile.xy for tile in launched.tiles]
    return [
        *dict.fromkeys(xy for xy in named if xy in there),
        *(xy for xy in there if xy not in named),
    ]


def _counts(launched: Launched, shown: Sequence[XY]) -> str:
    by_place = {tile.xy: tile for tile in launched.tiles}
    tiles = [by_place[xy] for xy in shown]
    rows = [
        (f"({tile.xy[0]},{tile.xy[1]})", core.name, core.state, core.retired, core.source(core.pc))
        for tile in tiles
        for core in tile.core.values()
        if core.state != "reset"
    ]
    words = [
        (f"({tile.xy[0]},{tile.xy[1]})", f"T{t}", "", int(n), "")
        for tile in tiles
        for t, n in enumerate(tile.state.executed)
        if n
    ]
    heads = ("tile", "agent", "state", "instructions or words", "source")
    table = html.table(heads, [*rows, *words], "counts")
    left = len(by_place) - len(tiles)
    return html.scrolled(table) + (f"<p>and {left} tiles more</p>" if left else "")


def _finding(one: Finding, sources: dict[XY, Sources], first: XY) -> str:
    parts = [f"<p><b>[{html.text(one.check)}]</b> {html.text(one.text)}</p>"]
    made = one.culprit.get("role", "culprit")
    for role, who in ((made, one.culprit), ("victim", one.victim)):
        if who.get("core"):
            parts.append(f"<p>{role}: <code>{html.text(in_words(who))}</code></p>")
            parts += _excerpts(who, sources, first)
    if one.evidence:
        lines = "\n".join(html.text(line) for line in one.evidence)
        parts.append(f"<details><summary>how this is known</summary><pre>{lines}</pre></details>")
    if one.advice:
        parts.append(f"<p>hint: {html.text(one.advice)}</p>")
    kind = one.severity if one.severity in ("error", "warning", "note") else "note"
    return f'<div class="finding {kind}">{"".join(parts)}</div>'


def _excerpts(where: dict[str, Any], sources: dict[XY, Sources], first: XY) -> Iterator[str]:
    """The source around a place, then around the calls that were inlined there."""
    tile = where.get("tile")
    xy = (int(tile[0]), int(tile[1])) if isinstance(tile, list | tuple) else first
    source = sources.get(xy)
    lines = [(where.get("file"), where.get("line"))]
    lines += [(call.get("file"), call.get("line")) for call in where.get("inlined", ())]
    for file, line in lines:
        if source is not None and file and line:
            if shown := "\n".join(_excerpt(source, str(where["core"]), str(file), int(line))):
                yield f"<pre><i>{html.text(file)}</i>\n{shown}</pre>"


def _excerpt(source: Sources, core: str, file: str, line: int) -> Iterator[str]:
    for number in range(max(line - _AROUND, 1), line + _AROUND + 1):
        if (text := source.line(core, file, number)) is not None:
            shown = html.text(f"{number:>5}  {text.expandtabs(4).rstrip()}")
            yield f"<b>{shown}</b>" if number == line else shown


def _timelines(recording: Recording, shown: Sequence[XY]) -> Iterator[str]:
    """A timeline of each tile; tiles that did the same at the same time share one."""
    yield "<h2>Over time</h2>"
    steps = [b - a for a, b in itertools.pairwise(recording.clocks) if b > a] or [1]
    step = sorted(steps)[len(steps) // 2]
    yield f'<p class="quiet">left to right the clock of the tile; a sample every {step}</p>'
    legend = (
        f'<span class="key"><i style="background:{colour}"></i>{kind}: {said}</span> '
        for kind, (colour, said) in _KINDS.items()
    )
    yield f"<p>{''.join(legend)}</p>"
    alike: dict[Any, list[XY]] = {}
    for xy in (xy for xy in shown if xy in recording.seen):
        alike.setdefault(tuple(tuple(recording.lane(xy, lane)) for lane in LANES), []).append(xy)
    groups = list(alike.values())
    for tiles in groups[:_TILES]:
        names = ", ".join(f"({x},{y})" for x, y in tiles[:_NAMED])
        names += f" and {len(tiles) - _NAMED} more that did the same" if tiles[_NAMED:] else ""
        drawn = timeline_picture(recording, tiles[0])
        yield f'<h3>tile {names}</h3><div class="over">{drawn}</div>'
    if groups[_TILES:]:
        yield f"<p>and {sum(map(len, groups[_TILES:]))} tiles more</p>"


def _chip(recording: Recording) -> str:
    """The tiles where they are on the chip, the bluer the more they executed."""
    work = {
        xy: sum(looks[-1].retired) + sum(looks[-1].executed) for xy, looks in recording.seen.items()
    }
    most = max([*work.values(), 1])
    left, top = (_CELL * min(xy[i] for xy in work) for i in (0, 1))
    width, height = (_CELL * (max(xy[i] for xy in work) + 1) for i in (0, 1))
    cells = []
    for (x, y), n in work.items():
        sent = recording.seen[x, y][-1].requests
        title = f"tile ({x},{y}): {n} instructions and words, {sent} NoC requests"
        at = f'x="{x * _CELL}" y="{y * _CELL}" width="{_CELL - 2}" height="{_CELL - 2}"'
        cells.append(
            f'<rect {at} fill="#1565c0" fill-opacity="{0.1 + 0.4 * n / most:.2f}">'
            f"<title>{title}</title></rect>"
            f'<text x="{x * _CELL + 3}" y="{y * _CELL + 14}">{x},{y}</text>'
        )
    view = f'viewBox="{left} {top} {width - left} {height - top}"'
    size = f'{view} width="{width - left}" height="{height - top}"'
    return f'<svg id="chip" {size} role="img" aria-label="tiles of the chip">{"".join(cells)}</svg>'


def _outputs(launched: Launched, *, differing: bool) -> Iterator[str]:
    """The outputs that differ, or the others."""
    held = [(spec, launched.machine.output(spec)[1]) for spec in launched.program.outputs]
    shown = []
    for spec, data in held:
        bad = spec.differing(data)
        if differing == (bad is not None and bool(bad.any())):
            shown.append(section(spec, data))
    if shown:
        yield f"<h2>Outputs that {'differ' if differing else 'do not differ'}</h2>"
    yield from shown
    if not held and not differing:
        yield "<h2>Outputs</h2><p>The program names no output.</p>"
