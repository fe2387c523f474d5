"""A pytest plugin, for the workers of `bhemu llk sweep`: files one by one, a sample of each.

A worker is one pytest that lives until no file is left: it takes a file, collects it, runs its
sample and takes the next. tt-llk's own code is not changed.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llk_sweep.kernels import Kernels
from llk_sweep.recording import Recorder

_TRIED = 10  # tests that are looked at for each that is not skipped
_CASES = 50  # cases of a test function for each that is asked for: enough to choose from
_SOURCES = ("tests/helpers", "tests/sources", "tests/hw_specific", "tests/sfpi", "common")
_ARCHITECTURE = "tt_llk_blackhole"
_recorder = Recorder()


class Job:
    """What the environment says of this worker: BHEMU_LLK_SWEEP is JSON."""

    def __init__(self) -> None:
        about = json.loads(os.environ["BHEMU_LLK_SWEEP"])
        self.folder, self.kernels = Path(about["folder"]), Path(about["kernels"])
        self.worker, self.seed, self.sample = about["worker"], about["seed"], about["sample"]
        self.files: list[str] = about["files"]
        self.left_out = 0  # cases of the file at hand that are not made

    def claimed(self) -> Iterator[str]:
        """The files that no other worker has taken."""
        for file in self.files:
            try:
                with (self.folder / f"{file}.claim").open("x") as claim:
                    claim.write(str(self.worker))
            except FileExistsError:
                continue
            yield file
            (self.folder / f"{file}.done").touch()

    def records(self, file: str) -> dict[str, str]:
        """How the tests of a file ended that have run already."""
        path = self.folder / f"{file}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return {record["test"]: record["outcome"] for record in found if "test" in record}

    def write(self, file: str, record: dict[str, Any]) -> None:
        """Append a record of a file."""
        with (self.folder / f"{file}.jsonl").open("a") as lines:
            lines.write(json.dumps(record) + "\n")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    """A build folder of this worker alone, and kernels that are compiled once for all."""
    import helpers.test_config as suite  # type: ignore[import-not-found]  # tt-llk's own

    job = config.stash[_JOB] = Job()
    suite.TestConfig.DEFAULT_ARTEFACTS_PATH = job.folder / f"build{job.worker}"
    root = Path(suite.__file__).resolve().parents[3]
    sources = [root / name for name in (*_SOURCES, _ARCHITECTURE)]
    suite.run_shell_command = Kernels(job.kernels, sources, suite.run_shell_command)
    _recorder.watch()


_JOB = pytest.StashKey[Job]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: Any) -> bool:
    """Nothing at first: files are collected when it is their turn."""
    session.items, session.testscollected = [], 0
    return True


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: Any) -> Iterator[None]:
    """A seeded choice of very many cases, which take longer to make than to run."""
    yield
    job: Job = metafunc.config.stash[_JOB]
    cases: list[Any] = getattr(metafunc, "_calls", [])  # pytest has no public name for them
    most = max(1000, _CASES * job.sample)
    if len(cases) > most:
        job.left_out += len(cases) - most
        chosen = random.Random(f"{job.seed} {metafunc.definition.nodeid}")
        cases[:] = chosen.sample(cases, most)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: Any) -> bool:
    """Take files until none is left."""
    gc.freeze()  # what the suite imports stays
    job: Job = session.config.stash[_JOB]
    for file in job.claimed():
        job.left_out = 0
        try:
            items = session.perform_collect([file])
        except pytest.UsageError as problem:
            job.write(file, {"problem": str(problem)[:500]})
            continue
        job.write(file, {"total": len(items) + job.left_out})
        _run(job, file, items)
    return True


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """End at once: taking the suite's modules down lasts as long as importing them."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def _run(job: Job, file: str, items: list[Any]) -> None:
    """A seeded sample of the file's tests: so many that are not skipped."""
    random.Random(f"{job.seed} {file}").shuffle(items)
    known, ran = job.records(file), 0
    for number, item in enumerate(items):
        if ran >= job.sample or number >= _TRIED * job.sample:
            return
        if item.nodeid not in known:
            (job.folder / f"now{job.worker}").write_text(json.dumps([file, item.nodeid]))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            known[item.nodeid] = ""
            for record in _recorder.records:
                job.write(file, record)
                known[item.nodeid] = record["outcome"]
        ran += known[item.nodeid] != "skip"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: Any) -> None:
    """A test begins."""
    _recorder.begin()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: Any) -> None:
    """Keep the exception itself: tt-llk's report has its text only."""
    if call.excinfo is not None:
        _recorder.problem(call.excinfo.value)


def pytest_runtest_logreport(report: Any) -> None:
    """One record per test."""
    _recorder.report(report)
