"""Where wrong elements of outputs come from: a tree of causes that opens step by step."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from bhemu.errors import InputError, Where
from bhemu.launch.session import Launched
from bhemu.noc.grid import XY
from bhemu.pictures import html
from bhemu.program.outputs import OutputResult
from bhemu.why.origin.chain import Link, links_behind

_OPEN = 2  # steps of a tree that are open at first

Excerpt = Callable[[XY, Where], str]
"""The source around a place of a tile, as markup; "" where there is none."""


class Origin(NamedTuple):
    """An element of an output, "y[0,2]", and the causes of its value."""

    output: str
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
                    found.append(Origin(spec.name, name, at.tile, links))
            continue
        if spec.tile not in machines:
            machines[spec.tile] = launch(spec.tile or (1, 2))
        target = machines[spec.tile]
        wrong = dict.fromkeys(one.index for one in (report.first, report.worst) if one is not None)
        for index in wrong:
            name = element_name(spec.name, index)
            links = links_behind(target.tile, target.program, "brisc", name)
            found.append(Origin(spec.name, name, target.tile.xy, links))
    return found


def element_name(output: str, index: Sequence[int]) -> str:
    """As `bhemu why` names an element of an output: "y[0,2]"."""
    return f"{output}[{','.join(str(n) for n in index)}]"


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
