"""`Tile.why`: the findings of `bhemu why` in Python."""

import shutil
from pathlib import Path

import numpy as np
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


def test_a_zero_that_was_zero_before_has_its_causes(tmp_path: Path) -> None:
    """-1 + 1: the word of L1 is not changed by the PACR that writes it."""
    shutil.copytree(ELFS / "add1", tmp_path, dirs_exist_ok=True)
    held = np.load(tmp_path / "in.npy")
    held[0, 0] = -1
    np.save(tmp_path / "in.npy", held)
    (one,) = Program.load(tmp_path).launch().why("y[0,0]")
    assert (one.culprit["core"], one.culprit["file"]) == ("trisc2", "pack.c")
    assert one.text.startswith("y[0,0]: 0x0 -> 0x0")
    assert ["SFPSTORE" in one.evidence[0], "SFPADD" in one.evidence[1]] == [True, True]


def test_what_came_over_the_noc_names_its_input() -> None:
    (one,) = Program.load(ELFS / "add1_chip").launch().why("y[0,32]", tile=(2, 2))
    assert any("it came over the NoC from in.npy, 0x800 bytes from its" in t for t in one.evidence)
