"""What goes wrong on a chip is traced to who made the number: counts, pointers, wrong buffers."""

from pathlib import Path
from types import ModuleType

import planted
import pytest
from corpus import checked

from bhemu.errors import NoProgress
from bhemu.launch import Launched
from bhemu.machine.hang.graph import WaitGraph
from bhemu.program.schema import load_program
from bhemu.why import question

BUGS = {bug.name: bug for bug in planted.bugs()}


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("ends with increments under way", "barriers"),
        ("writer waits some time", "races"),
        ("credit before the page has left", "transfers"),
        ("pages of half a tile", "buffers"),
    ],
)
def test_a_check_names_the_origin(
    name: str, check: str, compiler: ModuleType, tmp_path: Path
) -> None:
    made = planted.make(BUGS[name], tmp_path / "bug", compiler)
    first = checked(made.folder, check)[0]
    assert planted.hit(made, first), (first["culprit"], first["text"])


def test_a_run_to_the_limit_has_reached_its_last_transfer(
    compiler: ModuleType, tmp_path: Path
) -> None:
    """What goes on for ever after it is not run again and again."""
    made = planted.make(BUGS["senders of the operands exchanged"], tmp_path / "bug", compiler)
    target = Launched(load_program(made.folder))
    ended = target.finish()
    context = question.context(target, ended)
    assert target.clock >= 50_000_000
    assert context.last_activity < 1_000_000
    again = context.again()
    assert again.ending == context.symptom.ending == "Limit"
    assert again.machine.network.state.delivered == target.machine.network.state.delivered


def test_cores_that_idle_in_firmware_are_apart(compiler: ModuleType, tmp_path: Path) -> None:
    """The writer waits for a page that never comes; the others are done with their kernels."""
    made = planted.make(BUGS["writes one page too many"], tmp_path / "bug", compiler)
    error = Launched(load_program(made.folder)).finish().error
    assert isinstance(error, NoProgress)
    assert isinstance(error.graph, WaitGraph)
    waiters = {one.who.rpartition(" ")[2] for one in error.graph.waiters}
    assert waiters == {"brisc"}
    assert error.hint.endswith("brisc and 75 more") and "in firmware: " in error.hint
