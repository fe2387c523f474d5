"""Runs the tests that execute a changed line in a fork of one warm process.

python scripts/mutation_tests.py JOB RESULTS FOLDER

JOB is a list of changes, each with the tests to be tried first, RESULTS gets a line of JSON for
each as it is decided, FOLDER is what test_cover.py has measured: interpreted where this
process is (NUMBA_DISABLE_JIT=1).  The tests are collected once; for a change a fork replaces the
code of the function and runs the tests of the line, quickest first, up to the first that fails.

This is no work for the processes of bhemu.sweeps: they are made from one that has compiled code
and no collected tests, where a fork of this one has both the interpreted functions and the tests.
"""

import gc
import json
import os
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType, FunctionType

import pytest
import test_cover
from mutations import PACKAGE, ROOT, Mutant, changed

PATIENCE = 10.0  # seconds beyond ten times what a test took before it counts as endless
ENOUGH = 30.0  # seconds of tests of a statement, and again of a function
KILLED, ALIVE, BROKEN = 10, 11, 12  # exit codes of a fork


class Cover:
    """Which tests execute the statements of the changes, and how long they take (test_cover.py)."""

    def __init__(self, folder: Path, interpreted: bool, chosen: list[Mutant]) -> None:
        wanted = {_function(mutant) for mutant in chosen} - {""}
        self.known: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for test, seconds, places in test_cover.rows(folder, interpreted):
            for place in places:
                if place.rpartition("+")[0] in wanted:
                    self.known[place].append((seconds, test))

    def all_tests(self) -> set[str]:
        """Of all changes."""
        return {test for rows in self.known.values() for _, test in rows}

    def tests(self, mutant: Mutant) -> dict[str, float]:
        """Tests of the changed statement, then those of its function, with their seconds.

        None has what runs when the module is imported: a fresh process must decide that.
        """
        own = test_cover.place(ROOT / mutant.path, mutant.line)
        function = own.rpartition("+")[0]
        others = [place for place in self.known if place.rpartition("+")[0] == function]
        found: dict[str, float] = {}
        for places in ([own], others):
            total = 0.0
            for seconds, test in sorted({row for at in places for row in self.known.get(at, [])}):
                if test not in found and total < ENOUGH:
                    found[test] = seconds
                    total += seconds
        return found


def _function(mutant: Mutant) -> str:
    return test_cover.place(ROOT / mutant.path, mutant.line).rpartition("+")[0]


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
        if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(str(PACKAGE)):
            found[thing.__code__.co_filename].append(thing)
    return found


class Forks:
    """The run loop: measure what is not known, then decide one change after the other."""

    def __init__(self, chosen: list[Mutant], first: dict[str, list[str]], results: Path) -> None:
        self.chosen, self._first, self._results = chosen, first, results
        self._failed = ""
        self.cover: Cover

    def pytest_configure(self) -> None:
        """Let hypothesis draw the same examples each time, and stop at the first that fails."""
        from hypothesis import Phase, settings  # pytest loads its plugin first

        fast = tuple(phase for phase in Phase if phase not in (Phase.shrink, Phase.explain))
        settings.register_profile("mutation", phases=fast, database=None, derandomize=True)
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a failure."""
        if report.failed:
            self._failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own loop."""
        self._items = {item.nodeid: item for item in session.items}
        self._living = living_functions()
        gc.freeze()  # what exists is not looked through again in every fork
        for mutant in self.chosen:
            begin = time.monotonic()
            decided = self.decide(mutant)
            row = {"key": mutant.place, **decided, "seconds": round(time.monotonic() - begin, 1)}
            with self._results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return True

    def decide(self, mutant: Mutant) -> dict[str, object]:
        """Whether a test of the line fails, and which."""
        known = self.cover.tests(mutant)
        spent = {test: seconds for test, seconds in known.items() if test in self._items}
        first = set(self._first.get(mutant.place, []))
        spent = dict(sorted(spent.items(), key=lambda row: row[0] not in first))
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            self._child(mutant, spent, writer)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reader, encoding="utf-8") as file:
            tried = file.read().splitlines()
        code = os.waitstatus_to_exitcode(status)
        found = {"tests": len(spent), "first": len(first & {*spent}), "broken": code == BROKEN}
        if code in (ALIVE, BROKEN):
            return {"killed_by": "", **found}
        last = tried[-1] if tried else "no end"
        return {"killed_by": last, "by_first": last in first, **found}

    def _child(self, mutant: Mutant, spent: dict[str, float], writer: int) -> None:
        code = BROKEN
        try:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            if replace(mutant, self._living[str(ROOT / mutant.path)]):
                code = ALIVE
                for test in spent:
                    signal.setitimer(signal.ITIMER_PROF, PATIENCE + 10 * spent[test])
                    os.write(writer, f"{test}\n".encode())
                    item = self._items[test]
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                    if self._failed:
                        code = KILLED
                        break
        finally:
            os._exit(code)


def main() -> int:
    """Command line."""
    job, results, folder = sys.argv[1:]
    rows = json.loads(Path(job).read_text())
    first = {Mutant(**row["mutant"]).place: row["first"] for row in rows}
    forks = Forks([Mutant(**row["mutant"]) for row in rows], first, Path(results))
    interpreted = os.environ.get("NUMBA_DISABLE_JIT") == "1"
    forks.cover = Cover(Path(folder), interpreted, forks.chosen)
    tests = sorted({test.partition("::")[0] for test in forks.cover.all_tests()})
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(ROOT)]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # bhemu is imported already
    return int(pytest.main([*options, *tests], plugins=[forks]))


if __name__ == "__main__":
    sys.exit(main())
