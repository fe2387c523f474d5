"""The program that stock tt-exalens debugs: it has what tt-exalens loads, and it counts."""

import itertools
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from script_module import script

from bhemu.machine.tile import Tile

pytest.importorskip("ziglang")
SESSION = "scripts/stock_exalens/session.py"


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = script(SESSION).build(tmp_path_factory.mktemp("exalens"))
    return made


def test_tt_exalens_loads_all_of_it(elf: Path) -> None:
    with elf.open("rb") as file:
        sections = {s.name: s for s in ELFFile(file).iter_sections() if s["sh_flags"] & 4}
    assert sections.keys() == {".init", ".text"}
    assert sections[".init"]["sh_addr"] == 0


def test_it_counts_rounds(elf: Path) -> None:
    tile, at = Tile(), script(SESSION).symbols(elf)
    tile.core["brisc"].load_elf(elf)
    tile.core["brisc"].release()
    seen = []
    for _ in range(3):
        tile.run(limit=5000)
        seen.append(tile.read32(at["rounds"]))
    assert 0 < seen[0] < seen[1] < seen[2]


def test_every_command_is_checked_for_something_or_by_the_next(elf: Path) -> None:
    wanted = script(SESSION).commands(elf)
    assert len(wanted) >= 20
    for (_, says), (_, then) in itertools.pairwise(wanted):
        assert says or then
