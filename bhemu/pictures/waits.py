"""The wait-for graph of a hang as a picture: who waits, for what, and who could give it."""

import math
from typing import Any, NamedTuple

from bhemu.pictures import html

_WIDTH, _HEIGHT = 250, 58  # of a box
_MARGIN = 30
_MOST = 24  # boxes
_LETTERS = 38


class _Edge(NamedTuple):
    """`waiter` waits for `reason`, which `giver` can give; of the ring or not."""

    waiter: str
    giver: str
    reason: str
    ring: bool


def picture(graph: dict[str, Any]) -> str:
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
    names = [*dict.fromkeys([*ring, *states])][:_MOST]
    if not names:
        return ""
    shown = [e for e in edges if {e.waiter, e.giver} <= {*names}]
    lines = {one["who"]: _line(one.get("where") or {}) for one in waiters}
    return _drawn({name: (states[name], lines.get(name, "")) for name in names}, shown, ring)


def _line(where: dict[str, Any]) -> str:
    """The line of source where it waits: that of the code which called what was inlined."""
    at = where["inlined"][-1] if where.get("inlined") else where
    return f"{at['file']}:{at['line']}" if at.get("file") else ""


def _drawn(names: dict[str, tuple[str, str]], edges: list[_Edge], ring: list[str]) -> str:
    """`names`: of each box its state and line of source."""
    n = len(names)
    radius = 0.0 if n == 1 else max(1.5 * _WIDTH * n / (2 * math.pi), 150.0)
    width, height = 2 * (radius + _MARGIN) + _WIDTH, 2 * (0.7 * radius + _MARGIN) + _HEIGHT
    turn = 2 * math.pi / n
    middle = {
        name: (
            width / 2 + radius * math.sin(i * turn),
            height / 2 - 0.7 * radius * math.cos(i * turn),
        )
        for i, name in enumerate(names)
    }
    parts = [_edge(edge, middle[edge.waiter], middle[edge.giver]) for edge in edges]
    parts += [_box(name, said, middle[name], name in ring) for name, said in names.items()]
    view = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg id="waits" class="waits" {view} role="img" aria-label="who waits for whom"><defs>'
        '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
        ' orient="auto"><path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>'
        f"{''.join(parts)}</svg>"
    )


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"


def _box(name: str, said: tuple[str, str], at: tuple[float, float], ring: bool) -> str:
    (state, line), rows = said, (18, 34, 50)
    x, y = at[0] - _WIDTH / 2, at[1] - _HEIGHT / 2
    lines = "".join(
        f'<text x="{at[0]:.1f}" y="{y + dy:.1f}" class="{kind}">{html.text(_short(text))}</text>'
        for dy, kind, text in zip(rows, ("name", "state", "line"), (name, state, line), strict=True)
        if text
    )
    title = html.text(f"{name} {state} {line}".strip())
    return (
        f'<g class="{"box ring" if ring else "box"}"><title>{title}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>{lines}</g>'
    )


def _edge(edge: _Edge, start: tuple[float, float], end: tuple[float, float]) -> str:
    (x0, y0), (x1, y1) = _border(start, end), _border(end, start)
    # Bent to the left, so that two that wait for each other are two arrows.
    bent = (x0 + x1) / 2 + (y1 - y0) / 8, (y0 + y1) / 2 - (x1 - x0) / 8
    title = f"{edge.waiter} waits for {edge.reason}, which {edge.giver} can give"
    return (
        f'<path class="{"wait ring" if edge.ring else "wait"}" marker-end="url(#tip)"'
        f' d="M{x0:.1f} {y0:.1f}Q{bent[0]:.1f} {bent[1]:.1f} {x1:.1f} {y1:.1f}">'
        f"<title>{html.text(title)}</title></path>"
    )


def _border(inside: tuple[float, float], to: tuple[float, float]) -> tuple[float, float]:
    """Where the line between the middles of two boxes leaves the first one."""
    dx, dy = to[0] - inside[0], to[1] - inside[1]
    part = min(_WIDTH / 2 / abs(dx) if dx else math.inf, _HEIGHT / 2 / abs(dy) if dy else math.inf)
    return inside[0] + part * dx, inside[1] + part * dy
