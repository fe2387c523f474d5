"""What bugs in programs of foreign style showed to be missing: one of each kind, always planted."""

from pathlib import Path
from types import ModuleType

import foreign_programs
import planted
import pytest
from click.testing import CliRunner

from bhemu.cli import main

BUGS = {bug.name: bug for bug in planted.bugs()}


@pytest.mark.parametrize(
    "name",
    [
        "page counted before it is copied",  # a core's poll counts for the words that it pushes
        "progress over an argument",
        "each call keeps a copy on the stack",  # code without a line
        "relu on negative numbers",  # a table of Config words
        "x of fp16",  # tables of words and of values
        "last word of a block never queued",  # a bound that is computed in front of a loop
        "second row of a pair does not go back",  # a flag instead of another one
        "Dst of 16 bits",  # two fields that belong together
        "output one tile further on",
    ],
)
def test_it_is_named_first(name: str, compiler: ModuleType, tmp_path: Path) -> None:
    made = planted.make(BUGS[name], tmp_path / "bug", compiler)
    findings = planted.why(made.folder)
    assert planted.rank(made, findings) == 1, findings[0]["text"] if findings else "nothing"


@pytest.mark.parametrize("name", ["ringpk", "tilz"])
def test_nothing_is_found_in_programs_that_are_right(
    name: str, compiler: ModuleType, tmp_path: Path
) -> None:
    """Polls of two counters; rows of 16 numbers that are read as faces."""
    path = foreign_programs.folder(name, tmp_path / name)
    done = CliRunner().invoke(main, ["run", "-q", "--check", "all", str(path)])
    assert done.exit_code == 0, done.output
    assert planted.why(path) == []
