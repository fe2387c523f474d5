"""The results of a sweep: a journal that grows run by run, a table, and a page."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from bhemu import __version__
from bhemu.arguments import did_you_mean
from bhemu.errors import InputError
from bhemu.pictures import html
from bhemu.program import files
from bhemu.sweeps.spec import COUNTS, RESULTS, SCHEMA, Plan, Record, Run, Scalar, Sweep

if TYPE_CHECKING:
    from bhemu.sweeps.api import Results


LINES: Final = "runs.jsonl"
TABLE: Final = "runs.parquet"
_TEXTS = (
    *("program", "outcome", "stop", "digest", "category", "rule", "message", "where"),
    *("tile", "core", "function", "file", "tolerated", "command", "key"),
)
_SYNCED = 1.0  # seconds of runs that a power failure may take
_NOT_DONE = ("WorkerLost", "MEMORY")
"""Rules of runs that say nothing about the program: they are done again."""


class Journal:
    """`runs.jsonl` in a folder: one line per run as it ends, in the order of the plan at last.

    `done` are the records that `resume` finds there, by key. InputError where there are results
    already and they are neither to be resumed nor replaced.
    """

    def __init__(self, folder: Path, *, resume: bool = False, replace: bool = False) -> None:
        self.folder, self.path = folder, folder / LINES
        self.done: dict[str, Record] = {}
        self._file: IO[str] | None = None
        self._synced = 0.0  # when it was brought to the disk
        try:
            folder.mkdir(exist_ok=True)
        except OSError as problem:
            raise InputError(f"{folder} cannot be made: {problem.strerror}") from problem
        files.check_writable(self.path, "results")
        files.check_writable(folder / TABLE, "results")
        if resume:
            self.done = dict(_read(self.path))
        elif self.path.exists() and not replace:
            raise InputError(
                f"{self.path} has results already",
                hint="--resume goes on, --replace begins anew, --out FOLDER puts them elsewhere",
            )

    def begin(self, kept: Sequence[Record]) -> None:
        """A new file with the rows of `kept`, to which runs are added."""
        files.write_whole(self.path, lambda file: file.write(_lines(kept)), "results")
        self._file = self.path.open("a", encoding="utf-8")

    def add(self, row: Record) -> None:
        """Keep the row of a run: in the file when this returns, on the disk a second later."""
        assert self._file is not None
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        if time.monotonic() - self._synced > _SYNCED:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def finish(self, plan: Plan, rows: Sequence[Record]) -> bool:
        """Both files, in the order of the plan; False where pyarrow is missing for the table."""
        if self._file is not None:
            self._file.close()
        files.write_whole(self.path, lambda file: file.write(_lines(rows)), "results")
        try:
            import pyarrow  # noqa: F401 - whether it is there
        except ImportError:
            return False
        path = self.folder / TABLE
        files.write_whole(path, lambda file: write_table(file, plan, rows), "results")
        return True


def _lines(rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _read(path: Path) -> Iterator[tuple[str, Record]]:
    """The finished runs of a journal; what a power failure cut off is no run."""
    if files.is_missing(path):
        return
    for line in path.read_bytes().splitlines():
        try:
            row = json.loads(line)
            key, rule = row["key"], row.get("rule")
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
        if rule not in _NOT_DONE and isinstance(key, str):
            yield key, row


def row(run: Run, record: Mapping[str, Any]) -> Record:
    """A line of the results: the run's parameters, what came of it, how to repeat it."""
    known = {name: value for name, value in record.items() if name != "number"}
    named = {"run": run.job.number, "program": run.program, **run.parameters}
    return {**named, **known, "command": run.command, "key": run.key}


def table(plan: Plan, rows: Sequence[Record]) -> Any:
    """The rows as a pyarrow Table: the columns of RESULTS, the parameters after `program`."""
    import pyarrow as pa

    columns = [*RESULTS[:2], *plan.columns, *RESULTS[2:]]
    kinds = {name: _kind(pa, plan, name) for name in columns}
    schema = pa.schema(list(kinds.items()), metadata={"bhemu": __version__, "sweep": str(SCHEMA)})
    arrays = [pa.array([_cell(r.get(n), k) for r in rows], k) for n, k in kinds.items()]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_table(file: Any, plan: Plan, rows: Sequence[Record]) -> None:
    """The table as Parquet."""
    import pyarrow.parquet as pq

    pq.write_table(table(plan, rows), file, compression="zstd")


def _kind(pa: Any, plan: Plan, name: str) -> Any:
    """The type of a column: of a parameter as its values are."""
    if name == "seconds":
        return pa.float64()
    if name in RESULTS:
        return pa.string() if name in _TEXTS else pa.int64()
    found: set[type] = set()
    for part in plan.sweep.parts:
        values: Sequence[Scalar] = part.parameters.get(name, ())
        found |= {int} if isinstance(values, range) else {type(value) for value in values}
    if found == {bool}:
        return pa.bool_()
    if found <= {int, float}:
        return pa.int64() if found == {int} else pa.float64()
    return pa.string()


def _cell(value: Any, kind: Any) -> Any:
    return str(value) if value is not None and str(kind) == "string" else value


@dataclass(frozen=True)
class Failure:
    """Runs that ended alike: outcome, rule, place; how many, an example and its command."""

    outcome: str
    rule: str
    place: str
    message: str
    runs: tuple[int, ...]
    command: str

    def __str__(self) -> str:
        named = f"[{self.rule}] {self.message}" if self.rule else self.message
        at = f", at {self.place}" if self.place else ""
        return f"{len(self.runs)} x {self.outcome}: {named}{at}"


def failures(rows: Sequence[Record]) -> list[Failure]:
    """The runs that are not ok by outcome, rule and place, the most frequent first."""
    groups: dict[tuple[str, str, str, str], list[Record]] = {}
    for each in rows:
        if each["outcome"] != "ok":
            key = (each["program"], each["outcome"], each.get("rule") or "", place(each))
            groups.setdefault(key, []).append(each)
    found = [
        Failure(
            outcome,
            rule,
            at,
            f"{program}: {_message(same[0])}",
            tuple(r["run"] for r in same),
            same[0]["command"],
        )
        for (program, outcome, rule, at), same in groups.items()
    ]
    return sorted(found, key=lambda one: (-len(one.runs), one.runs))


def place(row: Record) -> str:
    """Core, function, file:line of an error; without the pc, which may differ."""
    line = f"{row['file']}:{row['line']}" if row.get("file") and row.get("line") else ""
    tile = f"tile {row['tile']}" if row.get("tile") else ""
    return " ".join(
        str(part) for part in (tile, row.get("core"), row.get("function"), line) if part
    )


def _message(row: Record) -> str:
    if row.get("message"):
        return str(row["message"])
    wrong = next((o for o in row.get("outputs", ()) if o.get("differing")), None)
    return f"{wrong['name']}: {wrong['first']}" if wrong else "the outputs differ"


def counts(rows: Sequence[Record]) -> Counter[str]:
    """How many runs ended how."""
    return Counter(each["outcome"] for each in rows)


def folder_of(sweep: Sweep) -> Path:
    """Where the results of a SWEEP.toml go by default: beside it."""
    return sweep.folder / f"{Path(sweep.origin).stem}-results"


_SCRIPT = Path(__file__).parents[1] / "data" / "sweep.js"
_MOST = 2000  # rows of runs that are drawn at once
_FAILED = "failed"
_NUMBERS = ("clock", "differing", "worst_ulp", "exit_code", "seconds", *COUNTS)


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


def page(results: Results, first: View | None) -> bytes:
    """The whole file."""
    counts = ", ".join(f"{n} {outcome}" for outcome, n in results.counts.items())
    missing = len(results.plan.runs) - len(results)
    rest = f"; {missing} have not run" if missing else ""
    programs = ", ".join(dict.fromkeys(run.program for run in results.plan.runs))
    what = f"{len(results)} runs of {html.text(programs)}: {html.text(counts)}{rest}"
    body = [f'<p id="summary">{what}</p>{html.quietly()}', _failures(results)]
    if first is not None:
        axes = _axes(results.plan)
        x, y = _select("heat-x", axes, first.x), _select("heat-y", axes, first.y)
        value = _select("heat-value", (_FAILED, *_NUMBERS), first.value)
        body.append(
            f"<h2>Heat map</h2><p><label>across {x}</label><label>down {y}</label>"
            f'<label>shown {value}</label><span id="heat-note" class="quiet"></span></p>'
            f"{html.scrolled('', 'heat')}"
        )
    body.append(
        '<h2>Runs</h2><p><input id="filter" placeholder="filter" aria-label="filter">'
        ' <span id="runs-note" class="quiet"></span></p>'
        + html.scrolled('<table id="runs"></table>')
    )
    body.append(html.data("sweep", _data(results)))
    script = _SCRIPT.read_text(encoding="utf-8")
    return html.page(f"Sweep {results.plan.sweep.name}", "".join(body), "sweep", script)


def _failures(results: Results) -> str:
    groups = results.failures
    if not groups:
        return "<h2>Failures</h2><p>None: every run is ok.</p>"
    rows = [
        (len(one.runs), one.outcome, one.rule, one.place, one.message, one.command)
        for one in groups
    ]
    heads = ("runs", "outcome", "rule", "place", "first message", "command that repeats it")
    table = html.table(heads, rows, "failures")
    return f"<h2>Failures by rule and place</h2>{html.scrolled(table)}"


def _select(name: str, values: Sequence[str], chosen: str) -> str:
    options = "".join(
        f"<option{' selected' if value == chosen else ''}>{html.text(value)}</option>"
        for value in values
    )
    return f'<select id="{name}">{options}</select>'


def _data(results: Results) -> dict[str, Any]:
    """What the script draws: columns by name, and which of them the table shows."""
    left_out = {"message", "where", "command", "key", "tile", "thread", "pc", "file", "line"}
    names = ["run", "program", *results.plan.columns, *RESULTS[2:]]
    columns = {name: [row.get(name) for row in results.rows] for name in names}
    columns[_FAILED] = [int(row["outcome"] != "ok") for row in results.rows]
    columns["place"] = [place(row) or None for row in results.rows]
    used = [
        n for n in names if n not in left_out and any(v not in (None, "", 0) for v in columns[n])
    ]
    table = [name for name in used if name not in ("core", "function")]
    kept = {*table, *_NUMBERS, *results.plan.columns, "run", "program", "message", _FAILED, "place"}
    if any(columns["place"]):
        table.insert(table.index("outcome") + 1, "place")
    return {
        "columns": {name: columns[name] for name in columns if name in kept},
        "shown": table,
        "most": _MOST,
    }
