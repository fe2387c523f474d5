"""Waits for more pages than a circular buffer has."""

from pathlib import Path
from types import ModuleType

import planted
import pytest


@pytest.mark.parametrize(
    ("core", "old", "new", "what"),
    [
        ("trisc0", "cb_wait_pages(&in, 1);", "cb_wait_pages(&in, 3);", "3 pages of buffer 0"),
        (
            "ncrisc",
            "cb_wait_room(&cb, 1);",
            "cb_wait_room(&cb, 5);",
            "room for 5 pages of buffer 0",
        ),
        ("brisc", "cb_wait_pages(&cb, 1);", "cb_wait_pages(&cb, 4);", "4 pages of buffer 16"),
    ],
)
def test_it_is_the_headline(
    compiler: ModuleType, tmp_path: Path, core: str, old: str, new: str, what: str
) -> None:
    file = {"trisc0": "add1_chip/unpack.c", "ncrisc": "dataflow/reader.c"}
    change = file.get(core, "dataflow/writer.c"), old, new
    bug = planted.Bug("beyond", 1, "add1_chip", (change,), core)
    made = planted.make(bug, tmp_path / "p", compiler)
    first = planted.why(made.folder)[0]
    assert first["check"] == "waiting"
    assert first["text"] == f"livelock: (1,2) {core} waits for {what}, which has 2"
    assert (first["culprit"]["core"], first["culprit"]["role"]) == (core, "culprit")


def test_two_pages_of_two_are_no_mistake(compiler: ModuleType, tmp_path: Path) -> None:
    """The reader gives one page and ends; the unpacker waits for another one, which has room."""
    change = "add1_chip/unpack.c", "cb_wait_pages(&in, 1);", "cb_wait_pages(&in, 2);"
    bug = planted.Bug("two", 1, "add1_chip", (change,), "trisc0")
    made = planted.make(bug, tmp_path / "p", compiler)
    assert not any("which has" in one["text"] for one in planted.why(made.folder))
