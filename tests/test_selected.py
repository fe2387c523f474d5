"""What `make test` chooses (selected.py), of a small package and of this one."""

import ast
import json
import lzma
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import selected
from fuzz.campaign import LONG
from selected import ROOT, Selection

MODULE = """
def one():
    return 1


class Two:
    def three(self):
        return 3


def four():
    return 4
"""
TESTS = """
import pytest


@pytest.mark.parametrize("n", range(4))
def test_it(n):
    pass
"""
CONFTEST = """
from selected import Selected


def pytest_addoption(parser):
    parser.addoption("--selected", action="store_true")


def pytest_configure(config):
    if config.getoption("--selected"):
        config.pluginmanager.register(Selected(config))
"""
STORE: dict[str, Any] = {
    "tests": [f"tests/test_{file}.py::test_it[{n}]" for file in "abcd" for n in range(4)],
    "seconds": [1.0] * 16,
    "modules": {
        "room/m.py": {"one": [0], "Two.three": [1], "four": [2]},
        "room/near.py": {"f": [4], "g": [0]},
        "far/other.py": {"h": [8]},
    },
    "default": [8, 12],
    "test_files": {f"tests/test_{file}.py": 4.0 for file in "abcd"},
    "plain": ["tests/test_b.py", "tests/test_d.py"],
}
A, B, C, D = (f"tests/test_{file}.py::test_it" for file in "abcd")


def git(folder: Path, *arguments: str) -> None:
    name = ("-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with tests and a selection, committed."""
    for name in ("room/m.py", "room/near.py", "far/other.py"):
        (tmp_path / "bhemu" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bhemu" / name).write_text(MODULE)
    tests = tmp_path / "tests"
    tests.mkdir()
    for file in "abcd":
        (tests / f"test_{file}.py").write_text(TESTS)
    (tests / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["tests"]\n')
    shutil.copy(selected.__file__, tests)
    (tests / "selection.json.xz").write_bytes(lzma.compress(json.dumps(STORE).encode()))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "all")
    monkeypatch.setattr(selected, "ROOT", tmp_path)
    monkeypatch.setattr(selected, "STORE", tests / "selection.json.xz")
    return tmp_path


def edit(house: Path, name: str, old: str, new: str) -> None:
    path = house / name
    path.write_text(path.read_text().replace(old, new))


def test_without_a_difference_the_choice_is_for_the_whole_package(house: Path) -> None:
    chosen = Selection(selected.differences())
    assert chosen.tests == {C + "[0]", D + "[0]"} and not chosen.files


def test_the_edited_function_comes_first_then_its_module_then_its_folder(house: Path) -> None:
    edit(house, "bhemu/room/m.py", "return 3", "return 33")
    changed = selected.differences()
    assert changed == {"bhemu/room/m.py": [(8, 8)]}
    assert Selection(changed, 1.0).tests == {A + "[1]"}
    assert Selection(changed, 3.0).tests == {A + "[0]", A + "[1]", A + "[2]"}
    everything = Selection(changed)
    assert everything.tests == {A + "[0]", A + "[1]", A + "[2]", B + "[0]"}
    assert Selection(changed, 3.0).left == 1


def test_a_difference_on_a_branch_counts_from_where_it_left_main(house: Path) -> None:
    git(house, "checkout", "-qb", "mine")
    edit(house, "bhemu/far/other.py", "return 4", "return 5")
    git(house, "commit", "-qam", "five")
    assert list(selected.differences()) == ["bhemu/far/other.py"]
    assert Selection(selected.differences()).tests == {C + "[0]"}


def test_a_module_that_moved_is_known_by_its_functions(house: Path) -> None:
    (house / "bhemu" / "new").mkdir()
    git(house, "mv", "bhemu/room/m.py", "bhemu/new/n.py")
    edit(house, "bhemu/new/n.py", "return 1", "return 11")
    chosen = Selection(selected.differences())
    assert chosen.tests == {A + "[0]", A + "[1]", A + "[2]"}


def test_a_test_file_that_moved_is_known_by_its_name(house: Path) -> None:
    (house / "tests" / "sub").mkdir()
    git(house, "mv", "tests/test_c.py", "tests/sub/test_c.py")
    chosen = Selection({})
    assert chosen.tests == {"tests/sub/test_c.py::test_it[0]", D + "[0]"} and not chosen.files


def test_test_files_that_differ_or_are_new_run_whole(house: Path) -> None:
    edit(house, "tests/test_b.py", "pass", "assert True")
    (house / "tests" / "test_new.py").write_text(TESTS)
    chosen = Selection(selected.differences())
    assert chosen.files == {"tests/test_b.py", "tests/test_new.py"}
    assert chosen.tests == {C + "[0]", D + "[0]"}
    assert Selection(selected.differences(), 9.0).files == {"tests/test_b.py"}


def run(house: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "--selected", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=house, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("options", [("-n", "0"), ("-n", "2")])
def test_the_chosen_tests_run(house: Path, options: tuple[str, ...]) -> None:
    edit(house, "bhemu/room/m.py", "return 1", "return 11")
    shown = run(house, *options)
    assert "selected: 4 tests for bhemu/room/m.py, 4 s" in shown
    assert "4 passed" in shown and "do not exist" not in shown


@pytest.mark.parametrize("options", [("-n", "0"), ("-n", "2")])
def test_what_needs_no_compiled_code_comes_first(house: Path, options: tuple[str, ...]) -> None:
    shown = run(house, "-v", *options)
    if options == ("-n", "0"):  # two workers run them at the same time
        assert shown.index("test_d.py::test_it") < shown.index("test_c.py::test_it")
    assert "1 tests that need no compiled code, then 1 others" in shown


@pytest.mark.parametrize("options", [("-n", "0"), ("-n", "2")])
def test_tests_that_do_not_exist_any_more_are_counted(
    house: Path, options: tuple[str, ...]
) -> None:
    edit(house, "tests/test_a.py", "range(4)", "range(2)")
    git(house, "commit", "-qam", "fewer")
    edit(house, "bhemu/room/m.py", "return 1", "return 11")
    shown = run(house, *options)
    assert "3 passed" in shown
    assert "1 of 4 selected tests do not exist any more: make select" in shown


def test_the_committed_selection_is_small_and_of_tests_that_are_there() -> None:
    """Tests and functions come and go; when a tenth is gone, it is time to measure again."""
    assert selected.STORE.stat().st_size < 1_000_000
    store = json.loads(lzma.decompress(selected.STORE.read_bytes()))
    whole = Selection({})
    assert whole.spent <= selected.SECONDS and whole.left < 20  # of some 1,400
    there = [name for name in store["test_files"] if (ROOT / name).exists()]
    assert len(there) > 0.9 * len(store["test_files"])


def test_every_test_has_a_bound(request: pytest.FixtureRequest) -> None:
    bound = request.node.get_closest_marker("timeout")
    if LONG:  # long campaigns take what they take
        assert bound is None
        return
    assert (bound.args, bound.kwargs) == ((600,), {"method": "thread"})


def _makes_machine(node: ast.AST) -> bool:
    """Whether a statement makes one as its module is imported."""
    if isinstance(node, ast.Lambda):
        return False
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return any(_makes_machine(one) for one in node.decorator_list)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("Tile", "Chip"):
            return True
    return any(_makes_machine(child) for child in ast.iter_child_nodes(node))


def test_no_file_makes_a_machine_while_tests_are_collected() -> None:
    """Nothing is compiled before the first test begins."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.parse(path.read_text()).body
        if _makes_machine(node)
    ]
    assert found == []
