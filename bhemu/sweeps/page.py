"""The results of a sweep as one HTML file: failures, a heat map over two parameters, all runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bhemu.arguments import did_you_mean
from bhemu.errors import InputError
from bhemu.pictures import html
from bhemu.sweeps.plan import Plan
from bhemu.sweeps.results import place
from bhemu.sweeps.spec import COUNTS, RESULTS

if TYPE_CHECKING:
    from bhemu.sweeps.api import Results

_SCRIPT = Path(__file__).parents[1] / "data" / "sweep.js"
_MOST = 2000  # rows of runs that are drawn at once
_FAILED = "failed"
_NUMBERS = ("clock", "differing", "worst_ulp", "exit_code", "seconds", *COUNTS)
_STYLE = """
td.heat { text-align: right; min-width: 3.5rem; } #runs th { cursor: pointer; white-space: nowrap; }
#failures td { vertical-align: top; } label { margin-right: 1rem; }
"""


@dataclass(frozen=True)
class View:
    """What the heat map shows at first: a column over two parameters, None without a map."""

    x: str
    y: str
    value: str


def view(plan: Plan, heat: str | None, value: str | None) -> View | None:
    """The view that --heat and --value ask for; InputError for what the sweep has not."""
    axes = _axes(plan)
    chosen = [name.strip() for name in heat.split(",")] if heat is not None else axes[:2]
    if heat is not None and len(chosen) != 2:
        raise InputError(f"--heat {heat}: want two parameters", hint="for example --heat m,k")
    for name in chosen if heat is not None else ():
        if name not in axes:
            near = did_you_mean(name, axes)
            raise InputError(f"--heat: no parameter {name}", hint=near or ", ".join(axes))
    values = (_FAILED, *_NUMBERS)
    if value is not None and value not in values:
        near = did_you_mean(value, values)
        raise InputError(f"--value: no column {value}", hint=near or ", ".join(values))
    return View(chosen[0], chosen[1], value or _FAILED) if len(chosen) == 2 else None


def _axes(plan: Plan) -> list[str]:
    """The parameters (and the program) that have several values, as they stand in the sweep."""
    several = [
        name for name in plan.columns if len({r.parameters.get(name) for r in plan.runs}) > 1
    ]
    programs = {run.program for run in plan.runs}
    return [*several, *(["program"] if len(programs) > 1 else [])]


def page(found: Results, first: View | None) -> bytes:
    """The whole file."""
    body = [_summary(found), _failures(found)]
    if first is not None:
        body.append(_heat(_axes(found.plan), first))
    body.append(
        '<h2>Runs</h2><p><input id="filter" placeholder="filter" aria-label="filter">'
        ' <span id="runs-note" class="quiet"></span></p>'
        + html.scrolled('<table id="runs"></table>')
    )
    body.append(html.data("sweep", _data(found)))
    script = _SCRIPT.read_text(encoding="utf-8")
    return html.page(f"Sweep {found.plan.sweep.name}", "".join(body), _STYLE, script)


def _summary(found: Results) -> str:
    counts = ", ".join(f"{n} {outcome}" for outcome, n in found.counts.items())
    missing = len(found.plan.runs) - len(found)
    rest = f"; {missing} have not run" if missing else ""
    programs = ", ".join(dict.fromkeys(run.program for run in found.plan.runs))
    return (
        f'<p id="summary">{len(found)} runs of {html.text(programs)}: {html.text(counts)}{rest}</p>'
        f"{html.quietly()}"
    )


def _failures(found: Results) -> str:
    groups = found.failures
    if not groups:
        return "<h2>Failures</h2><p>None: every run is ok.</p>"
    rows = [
        (len(one.runs), one.outcome, one.rule, one.place, one.message, one.command)
        for one in groups
    ]
    heads = ("runs", "outcome", "rule", "place", "first message", "command that repeats it")
    table = html.table(heads, rows, "failures")
    return f"<h2>Failures by rule and place</h2>{html.scrolled(table)}"


def _heat(axes: Sequence[str], first: View) -> str:
    x, y = _select("heat-x", axes, first.x), _select("heat-y", axes, first.y)
    value = _select("heat-value", (_FAILED, *_NUMBERS), first.value)
    return (
        f"<h2>Heat map</h2><p><label>across {x}</label><label>down {y}</label>"
        f'<label>shown {value}</label><span id="heat-note" class="quiet"></span></p>'
        f"{html.scrolled('', 'heat')}"
    )


def _select(name: str, values: Sequence[str], chosen: str) -> str:
    options = "".join(
        f"<option{' selected' if value == chosen else ''}>{html.text(value)}</option>"
        for value in values
    )
    return f'<select id="{name}">{options}</select>'


def _data(found: Results) -> dict[str, Any]:
    """What the script draws: columns by name, and which of them the table shows."""
    left_out = {"message", "where", "command", "key", "tile", "thread", "pc", "file", "line"}
    names = ["run", "program", *found.plan.columns, *RESULTS[2:]]
    columns = {name: [row.get(name) for row in found.rows] for name in names}
    columns[_FAILED] = [int(row["outcome"] != "ok") for row in found.rows]
    columns["place"] = [place(row) or None for row in found.rows]
    used = [
        n for n in names if n not in left_out and any(v not in (None, "", 0) for v in columns[n])
    ]
    table = [name for name in used if name not in ("core", "function")]
    kept = {*table, *_NUMBERS, *found.plan.columns, "run", "program", "message", _FAILED, "place"}
    if any(columns["place"]):
        table.insert(table.index("outcome") + 1, "place")
    return {
        "columns": {name: columns[name] for name in columns if name in kept},
        "shown": table,
        "most": _MOST,
    }
