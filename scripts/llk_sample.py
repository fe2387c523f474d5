"""A pytest plugin: runs a seeded sample of a tt-llk test file and records each test's outcome.

Used by scripts/llk_suite.py; tt-llk's tests themselves run unmodified.
"""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from bhemu.errors import BhemuError

OUTCOMES = {
    "AssertionError": "mismatch",
    "TimeoutError": "timeout",
    "LLKAssertException": "assert",
    "RuntimeError": "compile",  # tt-llk's run_shell_command: compiler or linker
}
_begun = time.monotonic()
_ran = 0
_cause: dict[str, Any] = {}  # of the test that runs


def pytest_addoption(parser: Any) -> None:
    """Options that llk_suite.py gives."""
    parser.addoption("--sample", type=int, default=20, help="tests to run; skipped ones are extra")
    parser.addoption("--budget", type=float, default=120.0, help="seconds, collection not counted")
    parser.addoption("--order", type=int, default=1, help="seed of the order")
    parser.addoption("--record", type=Path, required=True, help="file of JSON lines to append to")


def _write(config: Any, record: dict[str, Any]) -> None:
    with Path(config.getoption("--record")).open("a") as lines:
        lines.write(json.dumps(record) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Put the tests in a seeded order; how many there are is the first record."""
    global _begun
    random.Random(config.getoption("--order")).shuffle(items)
    _write(config, {"total": len(items)})
    _begun = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: Any) -> None:
    """Keep the exception itself: tt-llk's report has its text only."""
    if call.excinfo is None:
        return
    problem = call.excinfo.value
    _cause["type"] = type(problem).__name__
    _cause["text"] = str(problem)[:2000]
    if isinstance(problem, BhemuError):
        _cause["rule"] = problem.rule or type(problem).__name__


def _outcome(report: Any) -> str:
    if report.skipped:
        return "skip"
    if report.passed:
        return "pass"
    if "rule" in _cause:
        return "refused"
    return OUTCOMES.get(_cause.get("type", ""), "error")


def pytest_runtest_logreport(report: Any) -> None:
    """One record per test, from the phase that decides."""
    global _ran
    if report.when == "call" or not report.passed:
        record = {"test": report.nodeid, "outcome": _outcome(report)}
        if report.failed:
            record.update(_cause)
        elif report.skipped:
            record["text"] = str(report.longrepr)[-200:]
        _records.append(record | {"seconds": round(report.duration, 2)})
        _ran += not report.skipped
    _cause.clear()


_records: list[dict[str, Any]] = []


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: Any) -> None:
    """Write what is known, and stop when enough has run."""
    for record in _records:
        _write(item.config, record)
    _records.clear()
    if _ran >= item.config.getoption("--sample"):
        item.session.shouldstop = "the sample is complete"
    elif time.monotonic() - _begun > item.config.getoption("--budget"):
        item.session.shouldstop = "the time is over"


def pytest_sessionfinish(session: Any) -> None:
    """The last test's record comes after its teardown."""
    for record in _records:
        _write(session.config, record)
