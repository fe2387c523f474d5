"""The verdict: what the JSON of a command says of a program in a word, one of six."""

from collections.abc import Iterable, Mapping
from typing import Any

from bhemu.errors import (
    EXIT_ASSERT,
    EXIT_DIFFERS,
    EXIT_GUEST,
    EXIT_INPUT,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_LIMIT,
    EXIT_NO_PROGRESS,
    EXIT_NOT_MODELLED,
    EXIT_OK,
)

OK = "ok"
BUG = "kernel bug"
RACE = "race"
NOT_MODELLED = "not modelled"
INPUT = "bad input"
LIMIT = "limit"

MEANINGS = {
    OK: "it ended as the program says, no output differs, and no requested check found anything",
    BUG: "the program is wrong: an output differs, it hangs, breaks a rule, faults or asserts",
    RACE: "nothing orders two accesses: their order decides, or may where the finding is a note",
    NOT_MODELLED: "bhemu cannot say: it does not model this, or is itself defective (code 70)",
    INPUT: "nothing was run: a file, flag, address or value cannot be used",
    LIMIT: "bhemu cannot say: a limit, a time-out or an interrupt came before the end",
}

BY_EXIT_CODE = {
    EXIT_OK: OK,
    EXIT_DIFFERS: BUG,
    EXIT_INPUT: INPUT,
    EXIT_NO_PROGRESS: BUG,
    EXIT_NOT_MODELLED: NOT_MODELLED,
    EXIT_GUEST: BUG,
    EXIT_ASSERT: BUG,
    EXIT_LIMIT: LIMIT,
    EXIT_INTERNAL: NOT_MODELLED,
    EXIT_INTERRUPTED: LIMIT,
}
"""By the exit code of a run; the class of an error has one code (errors.py)."""

BY_FINDING = {
    "error": BUG,
    "waiting": BUG,
    "order": RACE,
    "unwritten": BUG,
    "contract": BUG,
    "origin": BUG,
    "cure": BUG,
}
"""By the class of a finding (`check`), where the run itself came to its end or to a fault."""


def of(code: int, findings: Iterable[Mapping[str, Any]] = ()) -> str:
    """The verdict of a run that ended with `code`, and of the findings of its JSON.

    Notes count where there is nothing else. A race is told before what it led to. A finding of
    waits decides over a limit, which is only where the wait was cut off.
    """
    verdict, shown = BY_EXIT_CODE[code], list(findings)
    some = [one for one in shown if one["severity"] != "note"] or shown
    told = {BY_FINDING[one["check"]] for one in some}
    if verdict == LIMIT and any(one["check"] == "waiting" for one in some):
        verdict = BUG
    if verdict in (OK, BUG) and told:
        verdict = RACE if RACE in told else BUG
    return verdict


def worst(codes: Iterable[int]) -> str:
    """The verdict of several runs: what is wrong with a program counts first, then what is open."""
    found = {BY_EXIT_CODE.get(code, NOT_MODELLED) for code in codes}
    ranked = (BUG, INPUT, NOT_MODELLED, LIMIT)
    return next((one for one in ranked if one in found), OK)
