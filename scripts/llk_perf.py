"""A pytest plugin: writes what tt-llk's performance tests measure on the emulated tile.

    export PYTHONPATH=$(bhemu llk --path):scripts BHEMU_LLK=timing=model,reference=ttsim,ub=warn
    pytest -p llk_perf --cycles FILE.csv --speed-of-light perf_eltwise_binary.py -k "..."

FILE.csv gets a row for each test, zone and run type: cycles of the zone, and its tiles. The tests
run unmodified, but for the readout of performance counters, whose events are not modelled: it is
left out as tt-llk leaves it out for ttsim, by TT_METAL_TTSIM. A test has 60 s, not 2 (docs/llk.md).
"""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

DEADLINE = 60  # seconds of a test, on a machine that is busy
ZONE = re.compile(r"mean\((\w+)\)")
HEAD = ("test", "zone", "run", "cycles", "tiles")

_test = [""]


def pytest_addoption(parser: Any) -> None:
    """The file to write to."""
    parser.addoption("--cycles", type=Path, required=True, help="CSV file of the cycles")


def rows(test: str, record: dict[str, Any]) -> list[tuple[str, ...]]:
    """The rows of a record of tt-llk's report, a zone of a test: one for each run type."""
    tiles = int(record.get("tile_cnt", 1)) * int(record.get("loop_factor", 1))
    found = ((ZONE.fullmatch(name), value) for name, value in record.items())
    return [
        (test, str(record["marker"]), match[1], f"{float(value):g}", str(tiles))
        for match, value in found
        if match
    ]


def pytest_configure(config: Any) -> None:
    """Note what tests append to their report."""
    from helpers.perf.core import PerfReport  # type: ignore[import-not-found] # of tt-llk's suite

    file, append = config.getoption("--cycles"), PerfReport.append
    with file.open("w", newline="") as text:
        csv.writer(text).writerow(HEAD)

    def appended(report: Any, frame: Any, *more: Any, **named: Any) -> None:
        with file.open("a", newline="") as text:
            for record in frame.to_dict("records"):
                csv.writer(text).writerows(rows(_test[0], record))
        append(report, frame, *more, **named)

    PerfReport.append = appended


def pytest_collection_modifyitems() -> None:
    """Kernels without the readout of counters; more time for each."""
    from helpers.test_config import TestConfig  # type: ignore[import-not-found] # as above

    TestConfig.INITIAL_OPTIONS_COMPILE += " -DTT_METAL_TTSIM "
    wait = TestConfig.wait_for_tensix_operations_finished

    def longer(test: Any, timeout: float = 0, poll_callback: Any = None) -> None:
        wait(test, DEADLINE, poll_callback)

    TestConfig.wait_for_tensix_operations_finished = longer


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """The test whose report comes next."""
    _test[0] = item.nodeid
