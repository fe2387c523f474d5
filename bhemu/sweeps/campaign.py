"""Campaigns of generated programs against the golden model, on several processes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from bhemu.errors import Internal
from bhemu.oracle import generators
from bhemu.oracle.compare import Judge
from bhemu.oracle.libttsim import Library
from bhemu.sweeps.pool import Processes

_CHUNK = 8  # programs that a process compares before it answers
_AHEAD = 2  # chunks per process that are given out before the first one is needed
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
    campaign = generators.load("campaign")
    tally = campaign.Tally(question.unit, question.seed)
    pool = Processes(workers)
    try:
        for index, one in _answers(pool, question):
            tally.add(one)
            progress(index)
            if len(tally.differences) >= stop_after:
                break
    except BrokenProcessPool as problem:
        text = "a process ended while it compared programs: the library may have failed"
        raise Internal(text, hint="--workers 1 --first N --count 1 runs one of them") from problem
    finally:
        pool.close()
    return tally


def _answers(pool: Processes, question: Question) -> Iterator[tuple[int, Any]]:
    """The tally of each program, in the order of indices; some chunks ahead are under way."""
    executor: Executor = pool.start()
    indices = question.indices
    parts = deque(indices[i : i + _CHUNK] for i in range(0, len(indices), _CHUNK))
    out: deque[tuple[range, Future[list[Any]]]] = deque()
    while parts or out:
        while parts and len(out) < _AHEAD * pool.slots():
            part = parts.popleft()
            out.append((part, executor.submit(compared, question._replace(indices=part))))
        part, future = out.popleft()
        yield from zip(part, future.result(), strict=True)


def compared(question: Question) -> list[Any]:
    """In a worker: a Tally for each program."""
    campaign = generators.load("campaign")
    named = question.library, question.reference
    if getattr(_judges, "named", None) != named:
        _judges.own, _judges.named = Judge(Library(question.library), question.reference), named
    judge, unit, seed = _judges.own, question.unit, question.seed
    return [campaign.run(judge, unit, seed, range(i, i + 1)) for i in question.indices]
