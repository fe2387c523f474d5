"""Infinity or NaN that PROGRAM.toml gives."""

import shutil
from pathlib import Path

from bhemu import Program
from bhemu.why.origin.outputs import given

ROOT = Path(__file__).resolve().parents[2]
NAN = 0xFFFFFFFF


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
