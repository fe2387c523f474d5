"""Campaigns of generated programs against the golden model, on several processes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from bhemu.errors import Internal
from bhemu.oracle import generators
from bhemu.oracle.compare import Judge
from bhemu.oracle.libttsim import Library
from bhemu.sweeps.engine import Lost, calls

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
    campaign = generators.load("campaign")
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
    campaign = generators.load("campaign")
    named = question.library, question.reference
    if getattr(_judges, "named", None) != named:
        _judges.own, _judges.named = Judge(Library(question.library), question.reference), named
    judge, unit, seed = _judges.own, question.unit, question.seed
    return [campaign.run(judge, unit, seed, range(i, i + 1)) for i in question.indices]
