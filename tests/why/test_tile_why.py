"""`Tile.why`: the findings of `bhemu why` in Python."""

from pathlib import Path

import pytest

import bhemu
from bhemu import InputError, Program, Tile

ELFS = Path(bhemu.__file__).parent.parent / "elfs"


def test_nothing_is_wrong_and_the_tile_stays_where_it_is() -> None:
    tile = Program.load(ELFS / "add1").launch()
    tile.run(limit=100)
    clock = tile.clock
    assert tile.why() == []
    assert tile.clock == clock


def test_a_hang_is_a_finding() -> None:
    found = Program.load(ELFS / "hang_flag").launch().why()
    assert "waiting" in {one.check for one in found}
    assert any("brisc" in str(one.culprit) or "brisc" in one.text for one in found)


def test_a_place_has_its_causes() -> None:
    (one,) = Program.load(ELFS / "add1").launch().why("y[0,2]")
    assert (one.check, one.culprit["core"], one.culprit["file"]) == ("origin", "trisc2", "pack.c")
    assert any("UNPACR" in line for line in one.evidence)


def test_without_a_program_there_is_nothing_to_ask() -> None:
    with pytest.raises(InputError, match="no program was launched"):
        Tile().why()
