"""Measures tests: which statements of the package each executes, and how long it takes.

python scripts/test_cover.py compiled FOLDER TEST...      statements of Python code, and the times
python scripts/test_cover.py again FOLDER TEST...         times of long tests, warm
python scripts/test_cover.py interpreted FOLDER TEST...   statements of compiled functions

FOLDER gets a file for each test file.  Interpreted, a few sets of parameters of a test stand for
all of them, and a test is ended after some seconds: what it executed by then counts.
"""

import ast
import functools
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import coverage
import pytest

from bhemu.tensix.state import State

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "bhemu"
SAMPLE = 5  # sets of parameters of a test that are run interpreted, more of them where
QUICK = 0.4  # seconds is the most that one of these takes
LONG = 0.5  # seconds from which a test is measured again
WATCHED = 2.0  # seconds of processor time after which a test is ended, interpreted


def digest(path: Path) -> str:
    """Of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def record(folder: Path, test_file: str, interpreted: bool) -> Path:
    """Where what is known about a test file is kept."""
    suffix = ".interpreted" if interpreted else ""
    return folder / f"{test_file.replace('/', '.')}{suffix}.json"


def known(folder: Path, test_file: str, kind: str) -> bool:
    """Whether a test file was measured as it is now; long tests a second time, for "again"."""
    path = record(folder, test_file, kind == "interpreted")
    if not path.exists():
        return False
    entry = json.loads(path.read_text())
    done = kind != "again" or entry.get("again") or all(row[1] < LONG for row in entry["tests"])
    return done and entry["text"] == digest(ROOT / test_file)


@functools.cache
def statements(path: Path) -> tuple[list[int], list[str]]:
    """First lines of the statements in functions, in order, and a name for each: function+line."""
    found: dict[int, str] = {}

    def walk(node: ast.AST, scope: str, function: int) -> None:
        for child in ast.iter_child_nodes(node):
            inner, first = scope, function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{scope}.{child.name}" if scope else child.name
                if not isinstance(child, ast.ClassDef):
                    first = child.lineno
            if isinstance(child, ast.stmt):
                outside = child is not node and first == child.lineno and first != function
                at = "" if outside or not function else f"{scope}+{child.lineno - function}"
                found[child.lineno] = at
            walk(child, inner, first)

    walk(ast.parse(path.read_text(encoding="utf-8")), "", 0)
    lines = sorted(found)
    return lines, [found[line] for line in lines]


def place(path: Path, line: int) -> str:
    """The statement of a line as "file:function+line of it"; "" outside of functions."""
    lines, names = statements(path)
    at = bisect_right(lines, line) - 1
    name = names[at] if at >= 0 else ""
    return f"{path.relative_to(PACKAGE)}:{name}" if name else ""


class Measure:
    """The plugin."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind, self.interpreted = folder, kind, kind == "interpreted"
        self.cover = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{PACKAGE}/*"], messages=False
        )
        self.running = False
        self.failed: set[str] = set()
        self.seconds: dict[str, float] = {}
        self.compiled = False  # the test file has used a machine, or a process that may

    def note_machines(self) -> None:
        """Notice whatever needs compiled code."""
        for cls in (State, subprocess.Popen):
            cls.__init__ = self._noticed(cls.__init__)  # type: ignore[misc, assignment]

    def _noticed(self, make: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(make)
        def noticed(*arguments: Any, **options: Any) -> None:
            self.compiled = True
            make(*arguments, **options)

        return noticed

    def pytest_configure(self) -> None:
        """Let hypothesis stop at the first example that fails, as one that is ended does."""
        self.note_machines()
        from hypothesis import Phase, settings  # pytest loads its plugin first

        fast = tuple(phase for phase in Phase if phase not in (Phase.shrink, Phase.explain))
        settings.register_profile("measure", phases=fast, database=None, derandomize=True)
        settings.load_profile("measure")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a failure."""
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own loop: file by file."""
        files: dict[Path, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            files[item.path].append(item)
        for path, items in files.items():
            name, begin = str(path.relative_to(ROOT)), time.monotonic()
            if known(self.folder, name, self.kind):  # by another process, meanwhile
                continue
            if self.kind == "again":
                self._again(record(self.folder, name, False), items)
            else:
                self._file(name, items)
            print(f"measured {name} {time.monotonic() - begin:.1f} s", flush=True)
        return True

    def _again(self, path: Path, items: list[pytest.Item]) -> None:
        entry = json.loads(path.read_text())
        self.seconds.clear()
        long = {row[0]: row for row in entry["tests"] if row[1] >= LONG}
        self._run([item for item in items if item.nodeid in long], items[-1])
        items[-1].session._setupstate.teardown_exact(None)
        for test, seconds in self.seconds.items():
            if test in long:
                long[test][1] = round(min(seconds, long[test][1]), 4)
        path.write_text(json.dumps({**entry, "again": True}))

    def _file(self, name: str, items: list[pytest.Item]) -> None:
        self.failed.clear()
        self.seconds.clear()
        self.compiled = False
        groups: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            groups[item.nodeid.partition("[")[0]].append(item)
        self.cover.start()
        for group in groups.values():
            first = group[:: max(1, len(group) // SAMPLE)] if self.interpreted else group
            self._run(first, items[-1])
            if all(self.seconds[item.nodeid] <= QUICK for item in first):
                self._run([item for item in group if item not in first], items[-1])
        items[-1].session._setupstate.teardown_exact(None)
        self.cover.stop()
        done = self._places()
        self.cover.erase()
        tests = []
        for group in groups.values():
            together: set[str] = set()
            for item in group:
                together |= done[item.nodeid]
            timed = [self.seconds[item.nodeid] for item in group if item.nodeid in self.seconds]
            for item in group:
                executed = done[item.nodeid] if item.nodeid in self.seconds else together
                seconds = self.seconds.get(item.nodeid, sum(timed) / len(timed))
                tests.append([item.nodeid, seconds, executed])
        self._write(name, tests)

    def _run(self, items: list[pytest.Item], last: pytest.Item) -> None:
        for i, item in enumerate(items):
            self._one(item, items[i + 1] if i + 1 < len(items) else last)

    def _one(self, item: pytest.Item, after: pytest.Item) -> None:
        if self.kind != "again":
            self.cover.switch_context(item.nodeid)
        begin, busy = time.monotonic(), os.times()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        spent = sum(os.times()[:4]) - sum(busy[:4])
        self.seconds[item.nodeid] = max(spent, (time.monotonic() - begin) / 4)  # some sleep

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        """End what takes long."""
        with self._watched():
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """The same."""
        with self._watched():
            return (yield)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        if self.interpreted:
            signal.signal(signal.SIGPROF, self._end)
            signal.setitimer(signal.ITIMER_PROF, WATCHED, 1.0)
        self.running = True
        try:
            yield
        finally:
            self.running = False
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self.running:  # not what pytest does after it
            raise TimeoutError(f"watched for {WATCHED} s")

    def _places(self) -> dict[str, set[str]]:
        data = self.cover.get_data()
        found: dict[str, set[str]] = defaultdict(set)
        for name in data.measured_files():
            for line, contexts in data.contexts_by_lineno(name).items():
                if at := place(Path(name), line):
                    for context in contexts:
                        found[context].add(at)
        return found

    def _write(self, name: str, tests: list[list[Any]]) -> None:
        places = sorted(set().union(*(executed for _, _, executed in tests)))
        number = {key: i for i, key in enumerate(places)}
        sets: dict[tuple[int, ...], int] = {}
        rows = []
        for test, seconds, executed in tests:
            key = tuple(sorted(number[at] for at in executed))
            rows.append([test, round(seconds, 4), sets.setdefault(key, len(sets))])
        entry = {
            "text": digest(ROOT / name),
            "again": False,
            "compiled": self.compiled,
            "places": places,
            "sets": list(sets),
            "tests": rows,
            "failed": sorted(self.failed),
        }
        path = record(self.folder, name, self.interpreted)
        path.with_suffix(".part").write_text(json.dumps(entry))
        path.with_suffix(".part").replace(path)


def rows(folder: Path, interpreted: bool) -> Iterator[tuple[str, float, list[str]]]:
    """Every measured test: its id, its seconds, the statements that it executes."""
    for path in sorted(folder.glob("*.json")):
        if path.name.endswith(".interpreted.json") == interpreted:
            entry = json.loads(path.read_text())
            for test, seconds, number in entry["tests"]:
                yield test, seconds, [entry["places"][i] for i in entry["sets"][number]]


def plain(folder: Path) -> dict[str, bool]:
    """Of every test file that was measured compiled: whether it needs no compiled code."""
    found = {}
    for path in folder.glob("*.json"):
        entry = json.loads(path.read_text())
        if entry["tests"] and not path.name.endswith(".interpreted.json"):
            found[entry["tests"][0][0].partition("::")[0]] = not entry.get("compiled", True)
    return found


def main() -> int:
    """Command line."""
    kind, folder, *tests = sys.argv[1:]
    if kind == "interpreted":
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    Path(folder).mkdir(parents=True, exist_ok=True)
    left = [test for test in tests if not known(Path(folder), test, kind)]
    if not left:
        return 0
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(ROOT)]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *left], plugins=[Measure(Path(folder), kind)]))


if __name__ == "__main__":
    sys.exit(main())
