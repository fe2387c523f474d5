"""What single rules of the check "repair" and of findings say, and where they are silent."""

import shutil
from pathlib import Path

from bhemu import Program
from bhemu.tensix.frontend import MOP, REPLAY
from bhemu.why.outputs.special_values import given
from bhemu.why.repair.edits import pushes
from bhemu.why.repair.search import Search
from bhemu.why.repair.words import several

ROOT = Path(__file__).resolve().parents[2]
NAN = 0xFFFFFFFF


def test_words_of_the_front_end_that_a_store_pushes_are_known() -> None:
    sites = Search(Program.load(ROOT / "elfs" / "sfpu"), 5000).parts[0].sites
    stored = [site for site in sites if site.address is not None and pushes(site)]
    opcodes = {value >> 24 for site in stored for value in site.values}
    assert REPLAY in opcodes
    found = [(site.core, site.pc) for site in sites]
    assert len(found) == len(set(found))


def test_a_program_of_constant_words_has_no_more_of_them() -> None:
    sites = Search(Program.load(ROOT / "elfs" / "add1"), 5000).parts[0].sites
    stored = [site for site in sites if site.address is not None and pushes(site)]
    assert not any(value >> 24 in (MOP, REPLAY) for site in stored for value in site.values)


def test_values_that_alternate_are_exchanged_sooner_than_those_of_a_count() -> None:
    def cost(values: list[int]) -> float:
        return min(far for _, text, far in several(values, iter(())) if "in turn" in text)

    assert cost([512, 0]) < cost([0, 512]) < cost([1, 2, 3, 4])


def _program(tmp_path: Path, values: str) -> Program:
    """add1 with some more values."""
    folder = tmp_path / "add1"
    shutil.copytree(ROOT / "elfs" / "add1", folder)
    with (folder / "PROGRAM.toml").open("a") as file:
        file.write(f"\n[[set]]\nat = 0x90000\nvalues = [{values}]\n")
    return Program.load(folder)


def test_nan_of_program_toml_is_named_where_it_is_no_float(tmp_path: Path) -> None:
    program = _program(tmp_path, '"u32:7", "i32:-1"')
    line = len((tmp_path / "add1" / "PROGRAM.toml").read_text().splitlines())
    assert given(program, NAN) == (line, "i32:-1")
    assert given(program, 7) is None  # no special value
    assert given(program, 0x7FC00000) is None  # not there


def test_nan_that_is_meant_is_not_named(tmp_path: Path) -> None:
    assert given(_program(tmp_path, '"f32:nan"'), 0x7FC00000) is None
