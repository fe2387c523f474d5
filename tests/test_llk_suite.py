"""The table of tt-llk's tests is counted from the records that the plugin wrote."""

import json
from pathlib import Path
from types import ModuleType

import pytest
from script_module import script

ROOT = Path(__file__).parents[1]


@pytest.fixture
def suite() -> ModuleType:
    return script("scripts/llk_suite.py")


def test_both_checkouts_are_known(suite: ModuleType, tmp_path: Path) -> None:
    assert suite.python_tests(tmp_path) == tmp_path / "tests" / "python_tests"
    inside = tmp_path / "tt_metal" / "tt-llk"
    inside.mkdir(parents=True)
    assert suite.python_tests(tmp_path) == inside / "tests" / "python_tests"


def test_a_test_counts_as_it_ended_last(suite: ModuleType, tmp_path: Path) -> None:
    records = [
        {"total": 1234},
        {"test": "a", "outcome": "refused", "rule": "ONE"},
        {"test": "b", "outcome": "refused", "rule": "TWO"},
        {"test": "c", "outcome": "skip"},
        {"test": "a", "outcome": "pass"},
    ]
    path = tmp_path / "test_x.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    result = suite.read(path)
    assert (result.file, result.total, result.ran) == ("test_x.py", 1234, 2)
    assert suite.row(result) == "| test_x.py | 1,234 | 2 | 1 | 1 |  |  |  |  |  |  | 1 | TWO 1 |"


def test_a_file_that_was_not_collected_says_so(suite: ModuleType, tmp_path: Path) -> None:
    result = suite.read(tmp_path / "test_y.jsonl")
    assert suite.row(result).startswith("| test_y.py | not collected | 0 |")


def test_the_sums_are_the_last_row(suite: ModuleType) -> None:
    one = suite.Result("a", 10)
    one.outcomes.update({"pass": 2, "refused": 1})
    one.rules["R"] = 1
    lines = suite.table([one, suite.Result("b")]).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[-1] == "| all | 10 | 3 | 2 | 1 |  |  |  |  |  |  |  | R 1 |"


def test_an_order_is_the_same_when_a_test_ends_and_reads_the_same(suite: ModuleType) -> None:
    ended = {"outcome": "pass", "digest": "of another run"}
    first = {"outcome": "pass", "digest": "a"}
    assert suite._same(first, ended, first)
    assert not suite._same({"outcome": "pass", "digest": "b"}, ended, first)
    assert not suite._same({"outcome": "refused", "digest": "a"}, ended, first)
    assert not suite._same(first, ended, {})
