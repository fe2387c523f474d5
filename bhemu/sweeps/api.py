"""`bhemu.sweep`: many runs of programs, and their results."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from bhemu import arguments
from bhemu.errors import InputError, Internal
from bhemu.oracle import programs
from bhemu.oracle.libttsim import Judge, Library
from bhemu.program import files
from bhemu.sweeps import results
from bhemu.sweeps.engine import Lost, calls
from bhemu.sweeps.results import Failure, Journal
from bhemu.sweeps.spec import (
    CHOICES,
    TEMPLATES,
    Job,
    Part,
    Plan,
    Record,
    Scalar,
    Sweep,
    check,
    load_sweep,
)
from bhemu.system import interrupts

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
        """The runs that are not ok, by outcome, rule and place."""
        return results.failures(self.rows)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many runs ended how."""
        return results.counts(self.rows)

    def table(self) -> Any:
        """The rows as a pyarrow Table (its to_pandas() makes a DataFrame)."""
        try:
            return results.table(self.plan, self.rows)
        except ImportError as problem:
            raise InputError(
                f"a table needs pyarrow: {problem}", hint="pip install 'bhemu[sweep]'"
            ) from problem

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
        several = [what] if isinstance(what, str | Path) else list(what)
        # The sweep that the arguments describe; paths start from the working folder
        parameters = parameters or {}
        given = {"in" if name == "in_" else name: texts for name, texts in templates.items()}
        for name in given.keys() - TEMPLATES.keys():
            near = arguments.did_you_mean(name, TEMPLATES)
            raise InputError(f"sweep takes no {name}", hint=near or ", ".join(TEMPLATES))
        arguments.choice("choose", choose, {name: name for name in CHOICES})
        texts: dict[str, tuple[str, ...]] = {}
        for name in TEMPLATES:
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


class _Kept:
    """The rows so far, by key: those of the journal that the plan still has, and new ones."""

    def __init__(self, plan: Plan, journal: Journal | None, progress: Progress | None) -> None:
        self._plan, self._journal, self._progress = plan, journal, progress
        self._rows: dict[str, Record] = {}
        done = {} if journal is None else journal.done
        for run in plan.runs:
            if run.key in done:
                known = {n: v for n, v in done[run.key].items() if n not in run.parameters}
                self._rows[run.key] = results.row(run, {**known, "run": run.job.number})

    def rows(self) -> list[Record]:
        """In the order of the plan."""
        return [self._rows[run.key] for run in self._plan.runs if run.key in self._rows]

    def missing(self) -> list[Job]:
        """What is to be run."""
        return [run.job for run in self._plan.runs if run.key not in self._rows]

    def take(self, record: Record) -> None:
        """A run has ended: into the journal, once."""
        run = self._plan.runs[record["number"]]
        if run.key in self._rows:
            return
        row = self._rows[run.key] = results.row(run, record)
        if self._journal is not None:
            self._journal.add(row)
        if self._progress is not None:
            self._progress(row)


def perform(
    plan: Plan,
    journal: Journal | None,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run what the journal has not; the results of all, or at Ctrl-C of what is done."""
    from bhemu.sweeps.engine import Cluster, Processes, execute

    kept, began = _Kept(plan, journal, progress), time.monotonic()
    before, jobs = kept.rows(), kept.missing()
    if journal is not None:
        journal.begin(before)
    try:
        if jobs:
            pool = Cluster(scheduler) if scheduler else Processes(workers)
            execute(plan, jobs, pool, kept.take)
    except KeyboardInterrupt:
        interrupts.done()
    finally:
        seconds = time.monotonic() - began
        whole = journal is None or journal.finish(plan, kept.rows())
    return Results(plan, kept.rows(), seconds, len(kept.rows()) - len(before), whole)


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
    campaign = programs.load("campaign")
    tally = campaign.Tally(question.unit, question.seed)
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
