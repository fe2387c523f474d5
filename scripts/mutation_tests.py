"""Runs the tests that execute a changed line, interpreted, in a fork of one warm process.

python scripts/mutation_tests.py JOB RESULTS COVER TEST...

JOB is a list of changes, RESULTS gets a line of JSON for each as it is decided, COVER keeps which
test executes which line.  The tests are collected once; for a change a fork replaces the code of
the function and runs the tests of the line, quickest first, up to the first that fails.

This is no work for the processes of bhemu.sweeps: they are made from one that has compiled code
and no collected tests, where a fork of this one has both the interpreted functions and the tests.
"""

import ast
import gc
import hashlib
import json
import os
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from mutations import ROOT, TENSIX, Mutant, changed

IDLE = 400  # lines of a function without a new one after which a test is not watched there
SAMPLE = 6  # sets of parameters of a long test that are measured, at least if it has as many
QUICK = 0.4  # seconds up to which a test is measured with all its sets of parameters, one by one
WATCHED = 5.0  # seconds after which a test is ended while its lines are noted
PATIENCE = 10.0  # seconds beyond ten times what a test took before it counts as endless
ENOUGH = 30.0  # seconds of tests of a statement, and again of a function
KILLED, ALIVE, BROKEN = 10, 11, 12  # exit codes of a fork


class Cover:
    """Which test executes which line of the model, and how long it takes.

    Lines are known by their text, so that an edit elsewhere in a module loses nothing; a test file
    is measured again when its text changes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        self.ended = False  # whether the last test was ended, so that it failed
        self._seen: set[tuple[str, int]] = set()
        self._left: dict[CodeType, set[int]] = {}
        self._idle: dict[CodeType, int] = {}
        self._by_place: dict[str, list[Any]] = {}

    def missing(self, test_file: Path) -> bool:
        """True when a test file was not measured as it is now."""
        return self.files.get(_name(test_file), {}).get("text") != _digest(test_file)

    def measure(self, test_file: Path, items: list[pytest.Item]) -> None:
        """Note the lines of a file's tests.

        Of the parameters of a long test a few are run; the others count as taking the same time
        and executing what those execute together.
        """
        groups: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            groups[item.nodeid.partition("[")[0]].append(item)
        measured = []
        for group in groups.values():
            chosen = group[:: max(1, len(group) // SAMPLE)]
            begin, places = time.process_time(), [self._executed(item) for item in chosen]
            spent = (time.process_time() - begin) / len(chosen)
            if spent <= QUICK:
                for item in group:
                    known = places[chosen.index(item)] if item in chosen else self._executed(item)
                    measured.append(_measured([item], spent, known))
            else:
                measured.append(_measured(group, spent, set().union(*places)))
        lines = sorted(set().union(*(group["places"] for group in measured)))
        number = {line: i for i, line in enumerate(lines)}
        for group in measured:
            group["places"] = sorted(number[line] for line in group["places"])
        entry = {"text": _digest(test_file), "lines": lines, "groups": measured}
        self.files[_name(test_file)] = entry
        self.path.write_text(json.dumps(self.files))

    def _executed(self, item: pytest.Item) -> set[str]:
        self._seen.clear()
        self._left.clear()
        self.ended = False
        signal.signal(signal.SIGPROF, self._end)
        signal.setitimer(signal.ITIMER_PROF, WATCHED)
        sys.settrace(self._call)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
        return {_place(name, _text(name, line)) for name, line in self._seen}

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ended = True
        raise TimeoutError(f"watched for {WATCHED} s")

    def _call(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(str(TENSIX)):
            return None
        if code not in self._left:
            self._left[code] = {line for _, _, line in code.co_lines() if line is not None}
            self._idle[code] = 0
        return self._line if self._left[code] and self._idle[code] < IDLE else None

    def _line(self, frame: FrameType, event: str, _: object) -> Any:
        code, left = frame.f_code, self._left[frame.f_code]
        if frame.f_lineno in left:
            left.discard(frame.f_lineno)
            self._idle[code] = 0
            self._seen.add((code.co_filename, frame.f_lineno))
        self._idle[code] += 1
        return self._line if left and self._idle[code] < IDLE else None

    def tests(self, mutant: Mutant) -> dict[str, float]:
        """Tests of the changed statement, then those of its function, with their seconds.

        The latter because a line behind a long loop is not watched.  None has what runs when the
        module is imported: a fresh process must decide that.
        """
        path, groups = ROOT / mutant.path, self._groups()
        found: dict[str, float] = {}
        for kind in (ast.stmt, ast.FunctionDef):
            lines = _around(path, mutant, kind)
            places = {_place(str(path), _text(str(path), line)) for line in lines}
            chosen = [group for place in places for group in groups.get(place, [])]
            total = 0.0
            for group in sorted(chosen, key=lambda group: group["seconds"]):
                for test in group["tests"]:
                    if test not in found and total < ENOUGH:
                        found[test] = group["seconds"]
                        total += found[test]
        return found

    def _groups(self) -> dict[str, list[Any]]:
        """Groups of tests by place."""
        if not self._by_place:
            for entry in self.files.values():
                for group in entry["groups"]:
                    for i in group["places"]:
                        self._by_place.setdefault(entry["lines"][i], []).append(group)
        return self._by_place


def _measured(items: list[pytest.Item], seconds: float, places: set[str]) -> dict[str, Any]:
    return {"tests": [item.nodeid for item in items], "seconds": seconds, "places": places}


_SOURCES: dict[str, list[str]] = {}


def _text(name: str, line: int) -> str:
    if name not in _SOURCES:
        _SOURCES[name] = Path(name).read_text(encoding="utf-8").splitlines()
    return _SOURCES[name][line - 1].strip()


def _place(name: str, text: str) -> str:
    return f"{Path(name).relative_to(ROOT)}: {text}"


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _around(path: Path, mutant: Mutant, kind: type[ast.stmt]) -> range:
    """Lines of the innermost statement or function around the change; of a loop, its head."""
    best = range(mutant.line, mutant.line + 1)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, kind) and node.lineno <= mutant.line <= (node.end_lineno or 0):
            body = getattr(node, "body", None) if kind is ast.stmt else None
            last = body[0].lineno - 1 if body else node.end_lineno or 0
            if mutant.line <= last:
                best = range(node.lineno, last + 1)
    return best


def replace(mutant: Mutant, living: list[FunctionType]) -> bool:
    """Give the living functions of the module the code of the changed text; False if that fails."""
    path = ROOT / mutant.path
    text = changed(path.read_text(encoding="utf-8"), mutant)
    codes: dict[tuple[str, int], CodeType] = {}
    waiting = [compile(text, str(path), "exec")]
    while waiting:
        code = waiting.pop()
        codes[code.co_qualname, code.co_firstlineno] = code
        waiting += [c for c in code.co_consts if isinstance(c, CodeType)]
    for function in living:
        code = function.__code__
        try:
            function.__code__ = codes[code.co_qualname, code.co_firstlineno]
        except (KeyError, ValueError):
            return False
    return True


def living_functions() -> dict[str, list[FunctionType]]:
    """Every function of the model that exists, by the file it is from."""
    found: dict[str, list[FunctionType]] = defaultdict(list)
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(str(TENSIX)):
            found[thing.__code__.co_filename].append(thing)
    return found


class Forks:
    """The run loop: measure what is not known, then decide one change after the other."""

    def __init__(self, chosen: list[Mutant], results: Path, cover: Cover) -> None:
        self._chosen, self._results, self._cover = chosen, results, cover
        self._failed = ""

    def pytest_configure(self) -> None:
        """Let hypothesis draw the same examples each time, and stop at the first that fails."""
        from hypothesis import Phase, settings  # pytest loads its plugin first

        fast = tuple(phase for phase in Phase if phase not in (Phase.shrink, Phase.explain))
        settings.register_profile("mutation", phases=fast, database=None, derandomize=True)
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a failure."""
        if report.failed and not self._cover.ended:
            self._failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own loop."""
        files: dict[Path, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            files[item.path].append(item)
        for path, items in files.items():
            if self._cover.missing(path):
                self._cover.measure(path, items)
                print(f"\nmeasured {path.name}", flush=True)
                assert not self._failed, f"{self._failed} fails without a change"
        session.testsfailed = 0  # those that were ended
        self._items = {item.nodeid: item for item in session.items}
        self._living = living_functions()
        gc.freeze()  # what exists is not looked through again in every fork
        for mutant in self._chosen:
            begin = time.monotonic()
            decided = self.decide(mutant)
            row = {"key": mutant.place, **decided, "seconds": round(time.monotonic() - begin, 1)}
            with self._results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return True

    def decide(self, mutant: Mutant) -> dict[str, object]:
        """Whether a test of the line fails, and which."""
        chosen = self._cover.tests(mutant)
        spent = {test: seconds for test, seconds in chosen.items() if test in self._items}
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            self._child(mutant, spent, writer)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reader, encoding="utf-8") as file:
            name = file.read()
        code = os.waitstatus_to_exitcode(status)
        if code in (ALIVE, BROKEN):
            return {"killed_by": "", "tests": len(spent)}
        return {"killed_by": name or "no end", "tests": len(spent)}

    def _child(self, mutant: Mutant, spent: dict[str, float], writer: int) -> None:
        code = BROKEN
        try:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            self._cover.ended = False
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            if replace(mutant, self._living[str(ROOT / mutant.path)]):
                code = ALIVE
                for test in spent:
                    signal.setitimer(signal.ITIMER_PROF, PATIENCE + 10 * spent[test])
                    item = self._items[test]
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                    if self._failed:
                        os.write(writer, test.encode())
                        code = KILLED
                        break
        finally:
            os._exit(code)


def main() -> int:
    """Command line."""
    job, results, cover, *tests = sys.argv[1:]
    chosen = [Mutant(**row) for row in json.loads(Path(job).read_text())]
    forks = Forks(chosen, Path(results), Cover(Path(cover)))
    options = ["-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # bhemu is imported already
    return int(pytest.main([*options, *tests], plugins=[forks]))


if __name__ == "__main__":
    sys.exit(main())
