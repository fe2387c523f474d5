"""Hangs of whole programs: who could give, what came last, and a word that two cores count in."""

from pathlib import Path
from types import ModuleType
from typing import Any

import planted
import pytest

SEND, IN1 = "matmul_mcast/send.h", "matmul_mcast/in1.c"
SENT = "    noc_writes_sent(&o->noc);\n"


def found(
    compiler: ModuleType,
    out: Path,
    program: str,
    core: str,
    *changes: planted.Change,
    line: str = "",
) -> tuple[planted.Made, list[dict[str, Any]]]:
    """The findings of a program with changes; `line` is of the first changed file."""
    bug = planted.Bug("own", 1, program, changes, core, line)
    made = planted.make(bug, out / "p", compiler)
    return made, planted.why(made.folder)


@pytest.mark.parametrize("wiped", [True, False])
def test_a_word_that_was_wiped_before_it_was_sent(
    compiler: ModuleType, tmp_path: Path, wiped: bool
) -> None:
    """The sender sets its VALID to 0 for the next step; without that it sends too few times."""
    line = "semaphore_set(o->valid, 0); /* wiped */"
    if wiped:
        change = SEND, SENT, f"{SENT}    {line}\n"
    else:
        change = SEND, SENT, f"{SENT}    o->valid += 4; /* wiped */\n"
    made, told = found(compiler, tmp_path, "matmul_mcast", "brisc, ncrisc", change, line="/* wiped")
    first = told[0]
    assert first["check"] == "waiting"
    assert ("has sent L1" in first["text"] and "which is 0, to" in first["text"]) == wiped
    assert planted.hit(made, first) == wiped
    if wiped:
        assert "waits for 1" in first["text"]
        assert any("a cycle of waits" in one for one in first["evidence"])


@pytest.mark.parametrize("shared", ["A_READY", "B_READY + 0u"])
def test_a_word_in_which_two_cores_count(compiler: ModuleType, tmp_path: Path, shared: str) -> None:
    """brisc takes the semaphore of ncrisc, or its own."""
    change = IN1, "kernel_semaphore(B_READY)", f"kernel_semaphore({shared})"
    _, told = found(compiler, tmp_path, "matmul_mcast", "brisc", change)
    texts = [one["text"] for one in told]
    if shared != "A_READY":
        assert texts == []
        return
    assert "brisc waits for L1 word" in texts[0] and "(semaphores[0]) to become 1" in texts[0]
    assert "(it is 2 already), and (1,2) ncrisc for the same word to become" in texts[0]


@pytest.mark.parametrize("last", ["args->end", "args->end - 1"])
def test_a_reader_that_gives_a_page_too_few(
    compiler: ModuleType, tmp_path: Path, last: str
) -> None:
    """It gives pages through the structure of its buffer, and has ended."""
    change = "dataflow/reader.c", "page < args->end", f"page < {last}"
    _, told = found(compiler, tmp_path, "add1_chip", "ncrisc", change)
    if last == "args->end":
        assert told == []
        return
    (first,) = told
    assert "trisc0 waits for pages of buffer 0 to be announced (" in first["text"]
    assert "ncrisc could give (announces pages with its store, reader.c:13)" in first["text"]
    assert "ncrisc has ended: it is back in firmware" in first["text"]
    assert first["advice"].startswith("compare how often")
