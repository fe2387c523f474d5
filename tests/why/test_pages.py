"""Pages of a tensor in DRAM that are moved twice while others never are."""

from pathlib import Path
from types import ModuleType

import planted

from bhemu import Program
from bhemu.errors import Where
from bhemu.program.specs import InputSpec
from bhemu.why.requests import Moves, _again

COPY = Program.load(planted.ROOT / "elfs" / "copy_dram")


def said(*tiles: dict[str, list[int]]) -> list[tuple[str, int | None]]:
    """What is found in the input of copy_dram: the text, the line; the pages by file and tile."""
    (spec,) = COPY.inputs
    assert isinstance(spec, InputSpec)
    given: Moves = {
        ((1, number), 0, file, 7): [(n, Where(file=file, line=7), n) for n in pages]
        for number, moves in enumerate(tiles, 2)
        for file, pages in moves.items()
    }
    return [(one.text, one.culprit.get("line")) for one in _again(spec, given)]


def test_a_page_again_while_another_is_left_out() -> None:
    pages = [*range(63), 3]
    assert said({"a.c": pages}) == [
        ("page 63 of in.npy is never read, and this line reads page 3 of it again", 7)
    ]
    beside = said({"a.c": [*range(63), -1]})
    assert [text.partition(", and ")[2] for text, _ in beside] == [
        "this line reads beside every page of it"
    ]


def test_no_page_is_missed_where_all_are_moved_or_none_again() -> None:
    assert said({"a.c": [*range(64), 3, 3]}) == []
    assert said({"a.c": list(range(60))}) == []
    assert said({"a.c": list(range(32)), "b.c": list(range(31))}) == []


def test_a_page_of_another_tile() -> None:
    assert said({"a.c": [0, 1, 2, 3]}, {"a.c": [1, 2, 3, 4]}) == [
        ("page 5 of in.npy is never read, and this line reads page 1 of it as another tile does", 7)
    ]
    assert said({"a.c": [0, 1, 2]}, {"a.c": [0, 1, 2]}) == []  # each tile reads all of it
    assert said({"a.c": [0, 2, 4]}, {"a.c": [1, 3, 5]}) == []


def test_a_wrong_page_is_named_by_its_line(compiler: ModuleType, tmp_path: Path) -> None:
    (bug,) = [one for one in planted.bugs() if one.name == "the first pair again and again"]
    made = planted.make(bug, tmp_path / "bug", compiler)
    assert planted.rank(made, planted.why(made.folder)) == 1
