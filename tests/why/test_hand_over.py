"""A hang at a semaphore is one finding, whatever else is told of what the semaphore hands over."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import corpus
import planted
import pytest

from bhemu.errors import NoProgress
from bhemu.machine.hang.givers import Releaser
from bhemu.machine.hang.graph import WaitGraph
from bhemu.machine.hang.waits import Waiter
from bhemu.why.findings import Ends, Finding, of_error
from bhemu.why.waiting import apart, with_hand_over

BUGS = {bug.name: bug for bug in planted.bugs()}
TILE = [1, 2]
MATH, PACK = 1, 2


def hang(kind: str = "semaphore", index: int = 7, giver: str = "") -> NoProgress:
    where: dict[str, Any] = {"tile": TILE, "core": "trisc1", "thread": MATH, "pc": 0x14000}
    givers = (Releaser(giver, "SEMGET", "", ""),) if giver else ()
    waiter = Waiter(
        "thread T1", kind, f"semaphore {index} to fall below its maximum", "", "",
        {"index": index}, givers, where,
    )  # fmt: skip
    return NoProgress("deadlock", graph=WaitGraph((waiter,)), category="Deadlock", hint="look")


def raced(text: str = "", semaphores: tuple[int, ...] = (7,), tile: int = 2) -> Finding:
    who = {"tile": TILE, "core": "trisc2", "thread": PACK, "pc": 0x18000, "line": 5}
    given = Ends((1, tile), frozenset(("semaphore", i) for i in semaphores), text)
    return Finding("races", "error", "only their speed decides", who, {}, (), "SEMGET", given)


KEPT = "trisc2 has waited for it and takes nothing"


def test_what_is_told_of_the_hand_over_is_evidence_of_the_hang() -> None:
    error = hang()
    told = with_hand_over(of_error(error, 9), error, [raced(), raced(semaphores=(1, 7))])
    assert [line.partition(":")[0] for line in told.evidence[-2:]] == [
        "only their speed decides"
    ] * 2
    assert told.culprit["core"] == "trisc1" and told.advice == "look"
    assert apart(error, [raced(), raced(semaphores=(1, 7))]) == []


def test_who_does_not_take_from_the_semaphore_is_the_culprit() -> None:
    error = hang()
    told = with_hand_over(of_error(error, 9), error, [raced(), raced(KEPT)])
    assert told.text.endswith("nothing that could give it was found: trisc2 has waited for it and"
                              " takes nothing")  # fmt: skip
    assert (told.culprit["core"], told.victim["core"]) == ("trisc2", "trisc1")
    assert told.advice == "SEMGET"
    given = hang(giver="thread T2")
    assert with_hand_over(of_error(given, 9), given, [raced(KEPT)]).culprit["core"] == "trisc1"


@pytest.mark.parametrize(
    ("error", "other"),
    [
        (hang(), raced(semaphores=(1,))),
        (hang(), raced(tile=3)),
        (hang(), replace(raced(), ends=None)),
        (hang(kind="src"), raced()),
        (NoProgress("idle"), raced()),
    ],
)
def test_a_finding_about_something_else_stays(error: NoProgress, other: Finding) -> None:
    first = of_error(error, 9)
    assert apart(error, [other]) == [other]
    assert with_hand_over(first, error, [other]) == first


def test_a_get_that_is_left_out_is_the_only_finding(compiler: ModuleType, tmp_path: Path) -> None:
    """And so are the race and the rows packed too early that come of it."""
    made = planted.make(BUGS["count of filled halves never taken"], tmp_path / "bug", compiler)
    (told,) = planted.why(made.folder)
    assert told["check"] == "waiting" and planted.hit(made, told)
    assert [line for line in told["evidence"] if "only their speed decides" in line]


def test_the_value_with_which_a_poll_goes_on_is_told(tmp_path: Path) -> None:
    """Of a grid that is said to have a column more, which the sender of A waits for."""
    wrong = Path(shutil.copytree(corpus.ROOT / "elfs" / "matmul_mcast", tmp_path / "wrong"))
    path = wrong / "PROGRAM.toml"
    path.write_text(path.read_text().replace('"tile:columns"', '"u32:3"', 1))
    (told,) = corpus.found(wrong)
    assert "a cycle of waits: (1,2) ncrisc needs L1 word" in told["text"]
    assert "(semaphores[0]) to become 2 (it is 1)" in told["text"]
    lines = [line for line in told["evidence"] if "(2,2) ncrisc waits for L1 word" in line]
    assert len(lines) == 1 and "(semaphores[1]) to become 1 (it polls" in lines[0]
