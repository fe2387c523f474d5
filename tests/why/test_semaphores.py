"""A thread waits for a semaphore that its other side never posts or takes: that side is named."""

from pathlib import Path
from types import ModuleType

import planted
import pytest

from bhemu.launched import Launched
from bhemu.program.schema import load_program
from bhemu.why import question
from bhemu.why.failures.semaphores import taken, unreleased

BUGS = {bug.name: bug for bug in planted.bugs()}
ELFS = Path(__file__).resolve().parents[2] / "elfs"


@pytest.mark.parametrize(
    ("name", "core", "text"),
    [
        ("post missing", "trisc1", "T1 never posts semaphore 1, for which T2 waits"),
        ("get missing", "trisc2", "T2 never takes from semaphore 1, for which T1 waits"),
    ],
)
def test_the_other_side_is_named(
    name: str, core: str, text: str, compiler: ModuleType, tmp_path: Path
) -> None:
    made = planted.make(BUGS[name], tmp_path / "bug", compiler)
    target = Launched(load_program(made.folder))
    ended = target.finish()
    (found,) = unreleased(question.context(target, ended), ended.error)
    assert found.text == text
    assert found.culprit["core"] == core
    assert "waits for semaphore 1" in "".join(found.evidence)


@pytest.mark.parametrize("name", ["hang_cycle", "hang_flag"])
def test_two_that_do_release_are_not(name: str) -> None:
    """In the cycle each has the release in its program, behind its own wait."""
    target = Launched(load_program(ELFS / name))
    ended = target.finish()
    assert list(unreleased(question.context(target, ended), ended.error)) == []


def test_a_semaphore_taken_without_a_wait(compiler: ModuleType, tmp_path: Path) -> None:
    made = planted.make(BUGS["takes in place of waiting"], tmp_path / "bug", compiler)
    target = Launched(load_program(made.folder))
    ended = target.finish()
    (found,) = taken(question.context(target, ended), ended.error)
    assert planted.hit(made, found.as_dict()), found
    assert found.text == "T2 takes from semaphore 1 and does not wait for it before"
