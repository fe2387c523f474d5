"""The tests of someone who edits: pytest --selected, which `make test` runs (docs/tests.md).

tests/selection.json.xz (scripts/select_tests.py) holds, for every function of the package, a few
quick tests that execute its statements.  Chosen are those of the functions, modules and folders
that differ from main, in this order until the seconds are spent; without a difference, a choice for
the whole package.  Test files that differ or are new run whole, in at most half of the seconds, and
some tests always run.  Test files that need no compiled code come first; where nothing was ever
compiled, another process compiles meanwhile.
"""

import ast
import json
import lzma
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from bhemu.jit import cache
from bhemu.jit.subset import JIT

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "tests" / "selection.json.xz"
SECONDS = 240.0  # of processor time, beside the tests that always run
ALWAYS = (
    "tests/test_golden.py::test_l1_equals_the_golden_model[unicorn-",
    "tests/test_golden.py::test_the_golden_set_is_whole",
    "tests/noc/test_golden_noc.py::test_memory_equals_the_golden_model[compiled-",
    "tests/riscv/lockstep/test_lockstep.py::test_random_programs_instruction_by_instruction",
    "tests/cli/test_outcomes.py",
    "tests/test_imports.py",
    "tests/test_docs.py::test_every_",
    "tests/test_docs.py::test_generated_files_are_up_to_date[make_",
    "tests/test_docs.py::test_no_",
    "tests/test_docs.py::test_the_",
)
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_NEW = 5.0  # seconds of a test file that was not measured, for want of better
_MANY = 0.1  # share of unknown tests from which the selection is too old


def git(*arguments: str) -> str:
    """What git prints; nothing where there is none."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def differences() -> dict[str, list[tuple[int, int]]]:
    """The files that differ from main, each with the first and last line of every difference."""
    bases = (git("merge-base", "HEAD", branch).strip() for branch in ("origin/main", "main"))
    base = next(filter(None, bases), "HEAD")
    found: dict[str, list[tuple[int, int]]] = {}
    name = ""
    for line in git("diff", "-U0", "-M", "--no-color", "--no-ext-diff", base).splitlines():
        if line.startswith("+++ "):
            name = line.removeprefix("+++ b/")
            found[name] = []
        elif name and (hunk := _HUNK.match(line)):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found[name].append((first, first + max(count, 1) - 1))
    for new in git("ls-files", "--others", "--exclude-standard").splitlines():
        found[new] = [(1, 1 << 30)]
    return {name: lines for name, lines in found.items() if name != "/dev/null"}


def functions(path: Path) -> dict[str, tuple[int, int]]:
    """First and last line of every function of a module, by its name with those around it."""
    found: dict[str, tuple[int, int]] = {}

    def walk(node: ast.AST, scope: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{scope}.{child.name}" if scope else child.name
                if not isinstance(child, ast.ClassDef):
                    first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                    found[name] = (first, child.end_lineno or first)
                walk(child, name)
            else:
                walk(child, scope)

    try:
        walk(ast.parse(path.read_text(encoding="utf-8")), "")
    except (OSError, SyntaxError):  # removed, or being edited: the tests of its folder
        return {}
    return found


def former(name: str, known: dict[str, Any], defined: set[str]) -> str:
    """The measured module that a module is: its own name, or the one with most of its functions."""
    if name in known:
        return name
    shared = {old: len(defined & known[old].keys()) / len(known[old]) for old in known}
    best = max(shared, key=lambda old: (shared[old], len(known[old])), default="")
    return best if best and shared[best] >= 0.5 and not (ROOT / "bhemu" / best).exists() else ""


class Selection:
    """What runs: `tests` by id, and every test of `files`."""

    def __init__(self, changed: dict[str, list[tuple[int, int]]], seconds: float = SECONDS) -> None:
        store = json.loads(lzma.decompress(STORE.read_bytes()))
        self.ids, self.costs, self._known = store["tests"], store["seconds"], store["modules"]
        present = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("test_*.py")}
        self.plain = frozenset(store.get("plain", ()))
        known: dict[str, float] = store["test_files"]
        modules = [n for n in changed if n.startswith("bhemu/") and n.endswith(".py")]
        moved = {Path(n).name: n for n in sorted(present - known.keys())}
        self.ids = [_there(test, present, moved) for test in self.ids]
        new = present - known.keys() - {test.partition("::")[0] for test in self.ids}
        whole = {name: known.get(name, _NEW) for name in present if name in changed or name in new}
        self.tests: set[str] = set()
        self.files: set[str] = set()
        self.spent, left = 0.0, set()
        for name in sorted(whole, key=lambda name: (whole[name], name)):
            if self.spent + whole[name] <= seconds / 2:
                self.spent += whole[name]
                self.files.add(name)
            else:
                left.add(name)
        for number in self._wanted(changed, modules) if modules else store["default"]:
            test, cost = self.ids[number], self.costs[number]
            if test in self.tests or test.partition("::")[0] in self.files:
                continue
            if self.spent + cost <= seconds:
                self.spent += cost
                self.tests.add(test)
            else:
                left.add(test)
        self.left = len(left)
        self.of_files = {test.partition("::")[0] for test in self.tests} | self.files
        self.about = ", ".join(sorted(modules)[:3]) + (", ..." if len(modules) > 3 else "")

    def _wanted(
        self, changed: dict[str, list[tuple[int, int]]], modules: list[str]
    ) -> Iterator[int]:
        """Numbers of tests, the nearest to the differences first."""
        near: list[dict[str, list[int]]] = []
        touched: list[list[int]] = []
        for name in modules:
            defined = functions(ROOT / name)
            own = self._known.get(former(name.removeprefix("bhemu/"), self._known, {*defined}), {})
            near.append(own)
            for function, (first, last) in defined.items():
                if any(first <= high and low <= last for low, high in changed[name]):
                    touched.append(own.get(function, []))
        yield from _in_turn(touched)
        yield from _in_turn([numbers for own in near for numbers in own.values()])
        rooms = {Path(name).parent.as_posix().removeprefix("bhemu") for name in modules}
        beside = [n for n in self._known if "/" + Path(n).parent.as_posix() in rooms]
        yield from _in_turn([numbers for n in beside for numbers in self._known[n].values()])

    def __str__(self) -> str:
        """For the report."""
        text = f"selected: {len(self.tests)} tests for {self.about or 'the whole package'}"
        text += f", {len(self.files)} test files that differ" if self.files else ""
        text += f", {self.spent:.0f} s"
        return text + (f"; {self.left} more with make test-ci" if self.left else "")


def _there(test: str, present: set[str], moved: dict[str, str]) -> str:
    """A test's id where its file is now."""
    file, _, name = test.partition("::")
    return test if file in present else f"{moved.get(Path(file).name, file)}::{name}"


def _in_turn(lists: list[list[int]]) -> Iterator[int]:
    """The first of each list, then the second of each: the best of every function comes early."""
    for row in zip_longest(*lists):
        yield from (number for number in row if number is not None)


class Selected:
    """The plugin; what differs is found once and told to the workers of pytest -n."""

    def __init__(self, config: pytest.Config) -> None:
        told = getattr(config, "workerinput", {}).get("selected")
        self.changed = differences() if told is None else told
        self.chosen, self.unknown = Selection(self.changed), 0
        self.done = {True: 0, False: 0}  # tests that have run, by whether compiled code is needed
        self.compiler: subprocess.Popen[bytes] | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Compile beside the first tests, once a worker has collected them."""
        if self.compiler is None and JIT and not any(cache.root().glob("run_rounds-*")):
            self.compiler = subprocess.Popen([sys.executable, "-m", "bhemu", "warm", "-q"])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """The same without workers."""
        if not hasattr(session.config, "workerinput"):
            self.pytest_xdist_node_collection_finished()

    def _compiled(self, nodeid: str) -> bool:
        """Whether a test is of a file that needs compiled code."""
        return nodeid.partition("::")[0] not in self.chosen.plain

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the tests that have run."""
        if report.when == "call":
            self.done[self._compiled(report.nodeid)] += 1

    def pytest_report_header(self) -> str:
        """How many tests, and why these."""
        return str(self.chosen)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what differs."""
        node.workerinput["selected"] = self.changed

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out test files of which nothing runs."""
        if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
            return None
        name = collection_path.relative_to(ROOT).as_posix()
        always = any(test.startswith(name) or name.startswith(test) for test in ALWAYS)
        return None if always or name in self.chosen.of_files else True

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep what was chosen; count what was chosen and does not exist."""
        chosen, dropped = self.chosen, []
        self.unknown = len(chosen.tests - {item.nodeid for item in items})
        for item in items:
            if not (
                item.nodeid in chosen.tests
                or item.nodeid.partition("::")[0] in chosen.files
                or item.nodeid.startswith(ALWAYS)
            ):
                dropped.append(item)
        gone = set(dropped)
        items[:] = [item for item in items if item not in gone]
        items.sort(key=lambda item: self._compiled(item.nodeid))
        config.hook.pytest_deselected(items=dropped)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the first process how many were unknown; nothing is compiled any more."""
        if self.compiler is not None:
            self.compiler.terminate()
            self.compiler.wait()
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["unknown"] = self.unknown

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear that from a worker."""
        self.unknown = max(self.unknown, getattr(node, "workeroutput", {}).get("unknown", 0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Count the tests of both kinds; say when the selection is too old."""
        terminalreporter.write_line(
            f"{self.done[False]} tests that need no compiled code, then {self.done[True]} others"
        )
        if self.unknown:
            text = (
                f"{self.unknown} of {len(self.chosen.tests)} selected tests do not exist any more"
            )
            old = self.unknown > _MANY * len(self.chosen.tests)
            terminalreporter.write_line(text + (": make select" if old else ""))
