"""A pytest plugin: runs a seeded sample of tt-llk's test files and records each test's outcome.

Used by scripts/llk_suite.py; tt-llk's tests themselves run unmodified.
"""

import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bhemu.errors import BhemuError
from bhemu.llk import harness
from bhemu.llk.device import Device

OUTCOMES = {
    "AssertionError": "mismatch",
    "TimeoutError": "timeout",
    "LLKAssertException": "assert",
    "RuntimeError": "compile",  # tt-llk's run_shell_command: compiler or linker
}
SLOWER = 4  # by how much the suite's clock, of processor time, is slower than ours
_ran: Counter[str] = Counter()  # tests that were not skipped, by file
_begun: dict[str, float] = {}  # when a file's first test began
_cause: dict[str, Any] = {}  # of the test that runs
_touched = False
_config: list[Any] = []
_read = hashlib.sha256()  # what it read of L1 but for the words of the harness
_begins = False  # whether the test has not touched the device yet
DATA = range(0x21000, 0x160000)  # of L1: operands and results


def pytest_addoption(parser: Any) -> None:
    """Options that llk_suite.py gives."""
    parser.addoption("--sample", type=int, default=20, help="tests a file; skipped ones are extra")
    parser.addoption("--budget", type=float, default=120.0, help="seconds a file")
    parser.addoption("--order", type=int, default=1, help="seed of the order")
    parser.addoption("--chosen", type=Path, help="file of test names, one a line: these only")
    parser.addoption("--record", type=Path, required=True, help="folder of files to append to")


def pytest_configure(config: Any) -> None:
    """Note what a test reads of L1: results that are equal bit for bit have one digest.

    The suite waits for 1 or 2 s; an emulator on a busy machine may need longer.
    """
    begun, used = time.time(), time.process_time()
    time.time = lambda: begun + (time.process_time() - used) / SLOWER
    _config[:] = [config]
    plain, words = Device.read, Device.read_words
    write, write_words = Device.write, Device.write_words

    def fresh(device: Device) -> None:
        global _begins
        if _begins:  # a test reads more than its kernel writes: nothing that another test left
            write(device, DATA.start, bytes(len(DATA)))
            _begins = False

    def written(device: Device, address: int, data: bytes) -> None:
        fresh(device)
        write(device, address, data)

    def words_written(device: Device, address: int, values: Sequence[int]) -> None:
        fresh(device)
        write_words(device, address, values)

    def read(device: Device, address: int, size: int) -> bytes:
        data = plain(device, address, size)
        _note(address, data)
        return data

    def read_words(device: Device, address: int, count: int = 1) -> list[int]:
        found = words(device, address, count)
        _note(address, b"".join(word.to_bytes(4, "little") for word in found))
        return found

    Device.read, Device.read_words = read, read_words  # type: ignore[method-assign]
    Device.write, Device.write_words = written, words_written  # type: ignore[method-assign]


def _note(address: int, data: bytes) -> None:
    global _touched
    if address not in harness.WORDS:
        _touched = True
        _read.update(f"{address:x} {len(data):x}:".encode() + data)


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
    global _read, _touched, _begins
    _read, _touched, _begins = hashlib.sha256(), False, True
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
    if report.when == "call" or not report.passed:
        record = {"test": report.nodeid, "outcome": _outcome(report)}
        if report.failed:
            record.update(_cause)
        elif report.skipped:
            record["text"] = str(report.longrepr)[-200:]
        elif not _touched:
            record["outcome"] = "host"
        else:
            record["digest"] = _read.hexdigest()[:16]
        _records.append(record | {"seconds": round(report.duration, 2)})
    _cause.clear()


_records: list[dict[str, Any]] = []


def pytest_runtest_logfinish(nodeid: str, location: tuple[str, int | None, str]) -> None:
    """Count what was not skipped."""
    file = Path(nodeid.partition("::")[0]).name
    _ran[file] += any(record["outcome"] != "skip" for record in _records)
    for record in _records:
        _write(_config[0], file, record)
    _records.clear()
