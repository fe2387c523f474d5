"""A pytest plugin: runs a seeded sample of tt-llk's test files and records each test's outcome.

Used by scripts/llk_suite.py; tt-llk's tests themselves run unmodified.
"""

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from llk_sweep.recording import Recorder

_ran: Counter[str] = Counter()  # tests that were not skipped, by file
_begun: dict[str, float] = {}  # when a file's first test began
_config: list[Any] = []
_recorder = Recorder()


def pytest_addoption(parser: Any) -> None:
    """Options that llk_suite.py gives."""
    parser.addoption("--sample", type=int, default=20, help="tests a file; skipped ones are extra")
    parser.addoption("--budget", type=float, default=120.0, help="seconds a file")
    parser.addoption("--order", type=int, default=1, help="seed of the order")
    parser.addoption("--chosen", type=Path, help="file of test names, one a line: these only")
    parser.addoption("--record", type=Path, required=True, help="folder of files to append to")


def pytest_configure(config: Any) -> None:
    """Note what a test reads of L1, and slow the suite's clock down."""
    _config[:] = [config]
    _recorder.watch()


def _write(config: Any, file: str, record: dict[str, Any]) -> None:
    path = (config.getoption("--record") / file).with_suffix(".jsonl")
    with path.open("a") as lines:
        lines.write(json.dumps(record) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Put the tests in a seeded order; how many a file has is its first record.

    Files run one after the other, but for chosen tests: any may follow any.
    """
    for file, total in Counter(item.path.name for item in items).items():
        _write(config, file, {"total": total})
    order = random.Random(config.getoption("--order"))
    chosen = config.getoption("--chosen")
    if chosen:
        names = set(chosen.read_text().splitlines())
        items[:] = sorted((item for item in items if item.nodeid in names), key=str)
        order.shuffle(items)
    else:
        order.shuffle(items)
        items.sort(key=lambda item: str(item.path.name))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: Any) -> bool | None:
    """Leave out a test whose file's sample is complete or whose time is over."""
    _recorder.begin()
    if item.config.getoption("--chosen"):
        return None
    file = item.path.name
    begun = _begun.setdefault(file, time.monotonic())
    enough = _ran[file] >= item.config.getoption("--sample")
    late = time.monotonic() - begun > item.config.getoption("--budget")
    if enough or late:
        return True
    item.session._setupstate.teardown_exact(item)  # the next test was taken to be one left out
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: Any) -> None:
    """Keep the exception itself: tt-llk's report has its text only."""
    if call.excinfo is not None:
        _recorder.problem(call.excinfo.value)


def pytest_runtest_logreport(report: Any) -> None:
    """One record per test."""
    _recorder.report(report)


def pytest_runtest_logfinish(nodeid: str, location: tuple[str, int | None, str]) -> None:
    """Count what was not skipped."""
    file = Path(nodeid.partition("::")[0]).name
    _ran[file] += any(record["outcome"] != "skip" for record in _recorder.records)
    for record in _recorder.records:
        _write(_config[0], file, record)
    _recorder.records.clear()
