"""A sample of tt-llk's tests on several workers, each one pytest that lives to the end.

They are not processes of bhemu.sweeps.engine: the suite needs a Python of its own (`--python`), and
its tests exist only inside a pytest that has collected them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bhemu.errors import InputError
from llk_sweep.kernels import BEGINNINGS

_ROOT = Path(__file__).parents[2]
_STAND_IN = _ROOT / "bhemu" / "llk" / "stand_in"
_PLUGIN = "llk_sweep.plugin"
_RESTARTS = 20
_PERIOD = 0.2


def python_tests(checkout: Path) -> Path:
    """The tests' folder in a checkout of tt-llk or of tt-metal, which has it as tt_metal/tt-llk."""
    inside = checkout / "tt_metal" / "tt-llk"
    tests = (inside if inside.is_dir() else checkout) / "tests" / "python_tests"
    if not tests.is_dir():
        hint = "a checkout of tt-llk, or of tt-metal"
        raise InputError(f"{checkout} has no tests/python_tests", hint=hint)
    return tests


class Campaign:
    """Runs `sample` tests, spread over `files`; records of a file are in `folder`/FILE.jsonl.

    What is recorded there already is not run again. A worker that dies is replaced: the test that
    it was at has the outcome "crash", and its file goes on behind it.
    """

    def __init__(
        self,
        checkout: Path,
        folder: Path,
        sample: int,
        *,
        files: Sequence[str] = (),
        workers: int | None = None,
        seed: int = 1,
        python: str = sys.executable,
    ) -> None:
        self.tests = python_tests(checkout.resolve())
        self.folder = folder.resolve()
        self.files = self._chosen(files)
        self._each = -(-sample // len(self.files))
        self._seed, self._python = seed, python
        self._count = workers or len(os.sched_getaffinity(0))
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._read: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self.restarts = 0

    def _chosen(self, files: Sequence[str]) -> list[str]:
        known = sorted(path.name for path in self.tests.glob("test_*.py"))
        for file in files:
            if file not in known:
                from bhemu.program.toml import suggestion

                raise InputError(f"no test file {file}", hint=suggestion(file, known))
        if not known:
            raise InputError(f"{self.tests} has no test_*.py")
        return list(files) or known

    def begin(self, *, resume: bool) -> None:
        """Make the folder; without `resume` it has no records, InputError when it has some."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not resume and any(self.folder.glob("test_*.jsonl")):
            raise InputError(
                f"{self.folder} has records already",
                hint="--resume goes on, --out FOLDER puts them elsewhere",
            )
        for old in [*self.folder.glob("*.claim"), *self.folder.glob("*.done")]:
            old.unlink()

    def run(self, progress: Callable[[list[dict[str, Any]]], None] = lambda done: None) -> None:
        """Until every file's sample has run; Ctrl-C ends the workers and keeps the records."""
        for number in range(min(self._count, len(self.files))):
            self._start(number)
        try:
            while self._running:
                time.sleep(_PERIOD)
                for number, process in list(self._running.items()):
                    if process.poll() is not None:
                        self._ended(number)
                progress(self.records())
        finally:
            for process in self._running.values():
                process.kill()
                process.wait()
            for scratch in (*self.folder.glob("build*"), self.folder / "kernels" / BEGINNINGS):
                shutil.rmtree(scratch, ignore_errors=True)

    def _start(self, number: int) -> None:
        about = {
            "folder": str(self.folder),
            "kernels": str(self.folder / "kernels"),
            "worker": number,
            "seed": self._seed,
            "sample": self._each,
            "files": self.files,
        }
        packages = [
            str(_STAND_IN),
            str(_ROOT),
            str(_ROOT / "tools"),
            os.environ.get("PYTHONPATH", ""),
        ]
        own = {
            "PYTHONPATH": os.pathsep.join(filter(None, packages)),
            "BHEMU_LLK_SWEEP": json.dumps(about),
            "OMP_NUM_THREADS": "1",
        }
        environment = {"CHIP_ARCH": "blackhole", **os.environ, **own}
        command = [self._python, "-m", "pytest", "-p", _PLUGIN, "-p", "no:cacheprovider", "-q"]
        command += ["--tb=native"]  # the others read a test's whole file for each failure
        with (self.folder / f"worker{number}.log").open("ab") as log:
            self._running[number] = subprocess.Popen(
                command, cwd=self.tests, env=environment, stdout=log, stderr=log
            )

    def _ended(self, number: int) -> None:
        """A worker is through; where it died in a test, that is recorded and another one starts."""
        del self._running[number]
        left = [file for file in self.files if self._claimant(file) == number]
        left = [file for file in left if not (self.folder / f"{file}.done").exists()]
        if not left:
            if not any((self.folder / f"{file}.claim").exists() for file in self.files):
                log = self.folder / f"worker{number}.log"
                raise InputError(f"pytest does not begin: {_last(log)}", hint=f"see {log}")
            return
        self.restarts += 1
        now = self.folder / f"now{number}"
        if now.exists():
            file, test = json.loads(now.read_text())
            now.unlink()
            if test not in {record["test"] for record in self.records()}:
                with (self.folder / f"{file}.jsonl").open("a") as lines:
                    lines.write(json.dumps({"test": test, "outcome": "crash", "seconds": 0}) + "\n")
        for file in left:
            (self.folder / f"{file}.claim").unlink()
        if self.restarts <= _RESTARTS:
            self._start(number)

    def _claimant(self, file: str) -> int | None:
        claim = self.folder / f"{file}.claim"
        text = claim.read_text() if claim.exists() else ""
        return int(text) if text else None

    def finish(self) -> list[dict[str, Any]]:
        """The records, and in `runs.jsonl`, a line each."""
        found = self.records()
        text = "".join(json.dumps(record) + "\n" for record in found)
        (self.folder / "runs.jsonl").write_text(text)
        return found

    def records(self) -> list[dict[str, Any]]:
        """How each test ended, in the order of files and names; the last one counts."""
        found: dict[str, dict[str, Any]] = {}
        for file in self.files:
            for record in self._records(file):
                found[record["test"]] = {"file": file, **record}
        return [found[test] for test in sorted(found)]

    def _records(self, file: str) -> list[dict[str, Any]]:
        """Those of one file, which is read again when it has grown."""
        path = self.folder / f"{file}.jsonl"
        size = path.stat().st_size if path.exists() else 0
        if self._read.get(file, (0, []))[0] != size:
            lines = path.read_text().splitlines() if size else []
            records = [json.loads(line) for line in lines if line.endswith("}")]
            self._read[file] = size, [record for record in records if "test" in record]
        return self._read.get(file, (0, []))[1]


def _last(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it says nothing"
