"""The report of a run: findings with source, waits, timeline, tiles, outputs; one HTML file."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from bhemu.debug.places import Sources
from bhemu.errors import BhemuError, NoProgress
from bhemu.launch.session import Launched
from bhemu.noc.grid import XY
from bhemu.pictures import heat, html, timeline, waits
from bhemu.pictures.recording import LANES, Recording
from bhemu.why.findings import Finding, in_words

_TILES = 16  # timelines
_NAMED = 4  # tiles that share one
_AROUND = 4  # lines of source before and after
_CELL = 42  # of the grid of tiles, in pixels
_ENDED = {"until": "its end condition held", "idle": "nothing was left to do"}
_STYLE = """
svg text { font: 11px system-ui, sans-serif; fill: CanvasText; } .tick { stroke: var(--line); }
.waits .box rect { fill: Canvas; stroke: CanvasText; } .waits text { text-anchor: middle; }
.waits .name { font-weight: bold; } .waits .wait { fill: none; stroke: #888; stroke-width: 1.5; }
.waits .wait.ring, .waits .ring rect { stroke: var(--bad); stroke-width: 2; }
.time { width: 100%; min-width: 45rem; height: auto; } .over { overflow-x: auto; }
.key { margin-right: 1rem; white-space: nowrap; display: inline-block; }
.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; }
.heat { display: flex; gap: 1.5rem; align-items: flex-start;
flex-wrap: wrap; }
.heat img { image-rendering: pixelated; border: 1px solid var(--line); }
.finding { border-left: 4px solid var(--line); padding-left: .8rem; margin: 1rem 0; }
.finding.error { border-color: var(--bad); } .finding.warning { border-color: #f9a825; }
pre { background: var(--soft); padding: .5rem; overflow: auto; } pre b { color: var(--bad); }
"""


def page(
    name: str,
    launched: Launched,
    recording: Recording,
    error: BhemuError | None,
    findings: Sequence[Finding],
) -> bytes:
    """The whole file; `launched` stands where the run ended."""
    sources = {
        tile.xy: Sources(part) for tile in launched.tiles for part in (launched.part(tile.xy),)
    }
    first = next(iter(sources))
    shown = _named_first(launched, error, findings)
    body = [_summary(launched, recording, error, shown[:_TILES])]
    if isinstance(error, NoProgress):
        graph = error.as_dict()["graph"]
        drawn = waits.picture(graph) if isinstance(graph, dict) else ""
        if drawn:
            told = "an arrow goes to who could end the wait; a ring is red"
            body.append(f'<h2>Who waits for whom</h2><p class="quiet">{told}</p>')
            body.append(f'<div class="over">{drawn}</div>')
    body += ["<h2>Findings</h2>", *(_finding(one, sources, first) for one in findings)]
    if not findings:
        body.append("<p>Nothing is wrong with this run: it ended, and no output differs.</p>")
    body += _timelines(recording, shown)
    if not launched.program.is_alone:
        told = "the bluer, the more instructions and words a tile has executed"
        body.append(f'<h2>Tiles</h2><p class="quiet">{told}</p><div class="over">')
        body.append(f"{_chip(recording)}</div>")
    body += ["<h2>Outputs</h2>", *_outputs(launched)]
    return html.page(f"bhemu report: {name}", "".join(body), _STYLE)


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


def _summary(
    launched: Launched, recording: Recording, error: BhemuError | None, shown: Sequence[XY]
) -> str:
    stop = recording.stop
    ended = "" if stop is None else _ENDED.get(stop.reason, stop.reason)
    ended = ended if error is None else error.message
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
    heads = ("tile", "who", "state", "instructions or words", "source")
    table = html.table(heads, [*rows, *words], "counts")
    kind = "bad" if error is not None else ""
    left = len(by_place) - len(tiles)
    more = f"<p>and {left} tiles more</p>" if left else ""
    return (
        f'<p id="ended" class="{kind}">ended: {html.text(ended)}</p>'
        f"{html.quietly(f'clock {launched.clock}')}{html.scrolled(table)}{more}"
    )


def _finding(one: Finding, sources: dict[XY, Sources], first: XY) -> str:
    parts = [f"<p><b>[{html.text(one.check)}]</b> {html.text(one.text)}</p>"]
    for role, who in (("culprit", one.culprit), ("victim", one.victim)):
        if who.get("core"):
            parts.append(f"<p>{role}: <code>{html.text(in_words(who))}</code></p>")
            parts += _excerpts(who, sources, first)
    if one.evidence:
        lines = "\n".join(html.text(line) for line in one.evidence)
        parts.append(
            f"<details open><summary>how this is known</summary><pre>{lines}</pre></details>"
        )
    if one.advice:
        parts.append(f"<p>hint: {html.text(one.advice)}</p>")
    kind = one.severity if one.severity in ("error", "warning", "note") else "note"
    return f'<div class="finding {kind}">{"".join(parts)}</div>'


def _excerpts(who: dict[str, Any], sources: dict[XY, Sources], first: XY) -> Iterator[str]:
    """The source around a place, then around the calls that were inlined there."""
    tile = who.get("tile")
    xy = (int(tile[0]), int(tile[1])) if isinstance(tile, list | tuple) else first
    source = sources.get(xy)
    lines = [(who.get("file"), who.get("line"))]
    lines += [(call.get("file"), call.get("line")) for call in who.get("inlined", ())]
    for file, line in lines:
        if source is not None and file and line:
            shown = "\n".join(_excerpt(source, str(who["core"]), str(file), int(line)))
            if shown:
                yield f"<pre><i>{html.text(file)}</i>\n{shown}</pre>"


def _excerpt(source: Sources, core: str, file: str, line: int) -> Iterator[str]:
    for number in range(max(line - _AROUND, 1), line + _AROUND + 1):
        text = source.line(core, file, number)
        if text is not None:
            shown = html.text(f"{number:>5}  {text.expandtabs(4).rstrip()}")
            yield f"<b>{shown}</b>" if number == line else shown


def _timelines(recording: Recording, shown: Sequence[XY]) -> Iterator[str]:
    """A timeline of each tile; tiles that did the same at the same time share one."""
    yield "<h2>Over time</h2>"
    steps = [b - a for a, b in itertools.pairwise(recording.clocks) if b > a] or [1]
    step = sorted(steps)[len(steps) // 2]
    yield f'<p class="quiet">left to right the clock of the tile; a sample every {step}</p>'
    yield f"<p>{timeline.legend()}</p>"
    alike: dict[Any, list[XY]] = {}
    for xy in (xy for xy in shown if xy in recording.seen):
        lanes = tuple(tuple(recording.lane(xy, lane)) for lane in LANES)
        alike.setdefault(lanes, []).append(xy)
    groups = list(alike.values())
    for tiles in groups[:_TILES]:
        names = ", ".join(f"({x},{y})" for x, y in tiles[:_NAMED])
        names += f" and {len(tiles) - _NAMED} more that did the same" if tiles[_NAMED:] else ""
        drawn = timeline.picture(recording, tiles[0])
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


def _outputs(launched: Launched) -> Iterator[str]:
    for spec in launched.program.outputs:
        yield heat.section(spec, launched.machine.output(spec)[1])
    if not launched.program.outputs:
        yield "<p>The program names no output.</p>"
