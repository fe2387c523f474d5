"""`bhemu.sweep`: many runs of programs; their results as a journal, a table and a page."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from bhemu import __version__, arguments
from bhemu.errors import InputError, Internal
from bhemu.oracle import programs
from bhemu.oracle.libttsim import Judge, Library
from bhemu.pictures import html
from bhemu.program import files
from bhemu.sweeps import spec
from bhemu.sweeps.engine import Cluster, Lost, Processes, calls, execute
from bhemu.sweeps.spec import Part, Plan, Record, Run, Scalar, Sweep, check, load_sweep
from bhemu.system import interrupts

LINES: Final = "runs.jsonl"
TABLE: Final = "runs.parquet"
_NUMBERS = ("clock", "differing", "worst_ulp", "exit_code", "seconds", *spec.COUNTS)
"""Columns of figures."""
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
            text = f"{folder} cannot be made: {problem.strerror}"
            raise InputError(text, hint=files.NAME_ANOTHER) from problem
        files.check_writable(self.path, "results")
        files.check_writable(folder / TABLE, "results")
        if resume:
            self.done = dict(_read(self.path))
        elif self.path.exists() and not replace:
            hint = "--resume goes on, --replace begins anew, --out FOLDER puts them elsewhere"
            raise InputError(f"{self.path} has results already", hint=hint)

    def begin(self, kept: Sequence[Record]) -> None:
        """A new file with the rows of `kept`, to which runs are added."""
        files.write_whole(self.path, _lines(kept), "results")
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
        files.write_whole(self.path, _lines(rows), "results")
        try:
            import pyarrow.parquet as pq
        except ImportError:
            return False
        write = partial(pq.write_table, table(plan, rows), compression="zstd")
        files.write_whole(self.folder / TABLE, write, "results")
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

    columns = [*spec.RESULTS[:2], *plan.columns, *spec.RESULTS[2:]]
    kinds = {name: _kind(pa, plan, name) for name in columns}
    schema = pa.schema(
        list(kinds.items()), metadata={"bhemu": __version__, "sweep": str(spec.SCHEMA)}
    )
    arrays = [pa.array([_cell(r.get(n), k) for r in rows], k) for n, k in kinds.items()]
    return pa.Table.from_arrays(arrays, schema=schema)


def _kind(pa: Any, plan: Plan, name: str) -> Any:
    """The type of a column: of a parameter as its values are."""
    if name == "seconds":
        return pa.float64()
    if name in spec.RESULTS:
        return pa.int64() if name in (*_NUMBERS, "run", "thread", "pc", "line") else pa.string()
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


_SCRIPT = Path(__file__).parents[1] / "data" / "sweep.js"
_MOST = 2000  # rows of runs that are drawn at once
_FAILED = "failed"


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
            near = arguments.did_you_mean(name, axes)
            raise InputError(f"--heat: no parameter {name}", hint=near or ", ".join(axes))
    values = (_FAILED, *_NUMBERS)
    if value is not None and value not in values:
        near = arguments.did_you_mean(value, values)
        raise InputError(f"--value: no column {value}", hint=near or ", ".join(values))
    return View(chosen[0], chosen[1], value or _FAILED) if len(chosen) == 2 else None


def _axes(plan: Plan) -> list[str]:
    """The parameters (and the program) that have several values, as they stand in the sweep."""
    several = [
        name for name in plan.columns if len({r.parameters.get(name) for r in plan.runs}) > 1
    ]
    return [*several, *(["program"] if len({run.program for run in plan.runs}) > 1 else [])]


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
    rows = [
        (len(one.runs), one.outcome, one.rule, one.place, one.message, one.command)
        for one in results.failures
    ]
    if not rows:
        return "<h2>Failures</h2><p>None: every run is ok.</p>"
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
    names = ["run", "program", *results.plan.columns, *spec.RESULTS[2:]]
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


# Many runs of programs: `bhemu.sweep`.

Values = Scalar | Sequence[Scalar]
Progress = Callable[[Record], None]


class Results:
    """What came of a sweep: `rows` in the order of the plan, one dictionary per run.

    `seconds` is how long the `new` runs took that were done now; `whole` is False where pyarrow was
    missing, so that there is no runs.parquet.
    """

    def __init__(
        self, plan: Plan, rows: Sequence[Record], seconds: float, new: int, whole: bool
    ) -> None:
        self.plan, self.rows = plan, list(rows)
        self.seconds, self.new, self.whole = seconds, new, whole

    @property
    def complete(self) -> bool:
        """Whether every run has a row: False after Ctrl-C."""
        return len(self.rows) == len(self.plan.runs)

    @property
    def failures(self) -> list[Failure]:
        """The runs that are not ok, by outcome, rule and place, the most frequent first."""
        groups: dict[tuple[str, str, str, str], list[Record]] = {}
        for each in self.rows:
            if each["outcome"] != "ok":
                key = (each["program"], each["outcome"], each.get("rule") or "", place(each))
                groups.setdefault(key, []).append(each)
        found = []
        for (program, outcome, rule, at), same in groups.items():
            message, runs = f"{program}: {_message(same[0])}", tuple(r["run"] for r in same)
            found.append(Failure(outcome, rule, at, message, runs, same[0]["command"]))
        return sorted(found, key=lambda one: (-len(one.runs), one.runs))

    @property
    def counts(self) -> Mapping[str, int]:
        """How many runs ended how."""
        return Counter(each["outcome"] for each in self.rows)

    def table(self) -> Any:
        """The rows as a pyarrow Table (its to_pandas() makes a DataFrame)."""
        try:
            return table(self.plan, self.rows)
        except ImportError as problem:
            hint = "pip install 'bhemu[sweep]'"
            raise InputError(f"a table needs pyarrow: {problem}", hint=hint) from problem

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        shown = ", ".join(f"{n} {outcome}" for outcome, n in self.counts.items())
        missing = len(self.plan.runs) - len(self.rows)
        rest = f", {missing} not run" if missing else ""
        return f"<Results of {self.plan.sweep.name}: {len(self.rows)} runs: {shown}{rest}>"


def sweep(
    what: str | Path | Sequence[str | Path],
    parameters: Mapping[str, Values] | None = None,
    *,
    choose: str = "grid",
    count: int | None = None,
    seed: int = 0,
    compare: bool = True,
    workers: int | None = None,
    scheduler: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    replace: bool = False,
    allow_outside: bool = False,
    progress: Progress | None = None,
    **templates: str | Sequence[str],
) -> Results:
    """Run programs with many values of parameters, on all processors or on a Dask cluster.

    what: a SWEEP.toml, or a program or several with `parameters`; the other arguments are those
    keys of a SWEEP.toml (docs/sweep.md). templates: `core`, `in_`, `expect`, `until`, `set` as the
    flags of `bhemu run`, where {name} stands for the value of a parameter. workers: processes,
    one per processor unless given; scheduler: the address of a Dask scheduler instead. out: a
    folder for runs.jsonl and runs.parquet; resume: what is there already is not run again;
    replace: it is forgotten. progress: called with each row. InputError for every mistake that
    shows without running; what a run ends with is in its row. Ctrl-C keeps what is done.
    """
    if parameters is None and not templates and isinstance(what, str | Path) and _is_sweep(what):
        chosen = load_sweep(what, allow_outside=allow_outside)
    else:
        if not isinstance(what, Iterable):
            raise InputError(f"{what!r} is no path")
        several = [what] if isinstance(what, str | Path) else list(what)
        # The sweep that the arguments describe; paths start from the working folder
        parameters = parameters or {}
        given = {"in" if name == "in_" else name: texts for name, texts in templates.items()}
        for name in given.keys() - spec.TEMPLATES.keys():
            near = arguments.did_you_mean(name, spec.TEMPLATES)
            raise InputError(f"sweep takes no {name}", hint=near or ", ".join(spec.TEMPLATES))
        arguments.choice("choose", choose, {name: name for name in spec.CHOICES})
        texts: dict[str, tuple[str, ...]] = {}
        for name in spec.TEMPLATES:
            own = given.get(name, ())
            texts[name] = (own,) if isinstance(own, str) else tuple(own)
        values: dict[str, Sequence[Scalar]] = {
            name: [each] if isinstance(each, str | int | float) else each
            for name, each in parameters.items()
        }
        parts = tuple(Part(str(program), values, texts) for program in several)
        chosen = Sweep("sweep", Path(), parts, choose, count, seed, compare)
        check(chosen)
    if resume and out is None:
        raise InputError("resume goes with out, the folder of the results")
    plan = Plan(chosen)
    journal = None
    if out is not None:
        journal = Journal(arguments.path(out), resume=resume, replace=replace)
    return perform(plan, journal, workers=workers, scheduler=scheduler, progress=progress)


def _is_sweep(source: str | Path) -> bool:
    path = arguments.path(source)
    folder = files.is_folder(path)
    return (path.suffix == ".toml" and path.name != "PROGRAM.toml") or (
        folder and (path / "SWEEP.toml").exists() and not (path / "PROGRAM.toml").exists()
    )


def perform(
    plan: Plan,
    journal: Journal | None,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run what the journal has not; the results of all, or at Ctrl-C of what is done."""
    began, rows = time.monotonic(), dict[str, Record]()  # by key
    done = {} if journal is None else journal.done
    for run in plan.runs:
        if run.key in done:  # of the journal, what the plan still has
            known = {n: v for n, v in done[run.key].items() if n not in run.parameters}
            rows[run.key] = row(run, {**known, "run": run.job.number})

    def in_order() -> list[Record]:
        return [rows[run.key] for run in plan.runs if run.key in rows]

    def take(record: Record) -> None:
        """A run has ended: into the journal, once."""
        run = plan.runs[record["number"]]
        if run.key in rows:
            return
        made = rows[run.key] = row(run, record)
        if journal is not None:
            journal.add(made)
        if progress is not None:
            progress(made)

    before, jobs = in_order(), [run.job for run in plan.runs if run.key not in rows]
    if journal is not None:
        journal.begin(before)
    try:
        if jobs:
            pool = Cluster(scheduler) if scheduler else Processes(workers)
            execute(plan, jobs, pool, take)
    except KeyboardInterrupt:
        interrupts.done()
    finally:
        seconds = time.monotonic() - began
        whole = journal is None or journal.finish(plan, in_order())
    return Results(plan, in_order(), seconds, len(rows) - len(before), whole)


# Campaigns of generated programs against the golden model, on several processes.

_CHUNK = 8  # programs that a process compares before it answers
_judges = threading.local()  # a process opens its library once


class Question(NamedTuple):
    """Programs to compare: of a unit by seed and index, on this library."""

    library: Path
    reference: str
    unit: str
    seed: int
    indices: range


def run(
    question: Question,
    *,
    stop_after: int,
    workers: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Any:
    """The campaign's Tally, the same for any number of processes; see random_programs.campaign."""
    tally = programs.load("campaign").Tally(question.unit, question.seed)
    indices = question.indices
    parts = [
        question._replace(indices=indices[i : i + _CHUNK]) for i in range(0, len(indices), _CHUNK)
    ]
    with contextlib.closing(calls(compared, parts, workers=workers)) as found:
        for part, tallies in found:
            if isinstance(tallies, Lost):
                raise _lost(part, tallies.problem)
            for index, one in zip(part.indices, tallies, strict=True):
                tally.add(one)
                progress(index)
                if len(tally.differences) >= stop_after:
                    return tally
    return tally


def _lost(part: Question, problem: BaseException) -> BaseException:
    """What the campaign ends with where a process did while it compared this part."""
    if not isinstance(problem, BrokenProcessPool):
        return problem
    first, count = part.indices.start, len(part.indices)
    text = f"a process ended while it compared programs {first} to {first + count - 1}"
    hint = f"the library may have failed: --workers 1 --first {first} --count {count} runs them"
    return Internal(text, hint=hint)


def compared(question: Question) -> list[Any]:
    """In a worker: a Tally for each program."""
    campaign = programs.load("campaign")
    named = question.library, question.reference
    if getattr(_judges, "named", None) != named:
        _judges.own, _judges.named = Judge(Library(question.library), question.reference), named
    judge, unit, seed = _judges.own, question.unit, question.seed
    return [campaign.run(judge, unit, seed, range(i, i + 1)) for i in question.indices]
