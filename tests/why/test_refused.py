"""Programs that are refused: the line of PROGRAM.toml that is wrong."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import bhemu
from bhemu.cli import main
from bhemu.errors import EXIT_INPUT

ELFS = Path(bhemu.__file__).parent.parent / "elfs"

WRONG = [
    ("eltwise", "shape = [64, 32]", "shape = [32, 64]"),
    ("eltwise", 'dtype = "bf16"', 'dtype = "bf61"'),
    ("eltwise", 'file = "b.npy"', 'file = "bb.npy"'),
    ("eltwise", 'elf = "trisc1.elf"', 'elf = "trisc1.el"'),
    ("eltwise", 'at = "runtime_args"', 'at = "runtime_arg"'),
    ("eltwise", "u32:0x80000", "u32:0x80000z"),
    ("eltwise", "at = 0xC0000", "at = 0x17FF00"),
    ("eltwise", "limit = 50_000_000", "limits = 50_000_000"),
    ("eltwise", "word = 0x100", "word = 0x101"),
    ("eltwise", 'kind = "elf"', 'kind = "elff"'),
    ("eltwise", "[run]", "[run"),
    (
        "add1",
        'dtype = "bf16"\nlayout = "tile32"\nshape = [32, 32]\nexpect',
        'dtype = "int8"\nlayout = "tile32"\nshape = [32, 32]\nexpect',
    ),
    ("add1_chip", 'at = "1-2,2-3"', 'at = "8-9,2-3"'),
    ("add1_chip", "index = 16", "index = 0"),
    ("add1_chip", "pages = 2", "pages = 0"),
    ("add1_chip", "address = 0x200080", "address = 0x200084"),
    ("add1_chip", '"tile:index"', '"tile:indx"'),
    ("add1_chip", "at = 0x32080", "at = 0x1932080"),
    ("eltwise", 'trisc1 = { elf = "trisc1.elf"', 'trisc1 = { elf = "trisc2.elf"'),
    ("eltwise", "word = 0x100", 'word = "x"'),
    ("eltwise", "bhemu = 1\n", ""),
    ("add1_chip", "pages = 2\n", ""),
    ("add1_chip", "[firmware]", "[firmwares]"),
    ("add1_chip", "[[tile]]", "[tile]"),
    ("add1_chip", 'trisc2 = "firmware/trisc2.elf"\n', ""),
    ("add1_chip", 'brisc = "firmware/brisc.elf"', 'brisc = ""'),
    ("add1_chip", '"tile:count", "u32:16", "u32:16"', '"tile:count", "u32:16", "u32:"'),
]


@pytest.mark.parametrize(("program", "text", "instead"), WRONG)
def test_the_wrong_line_is_named(program: str, text: str, instead: str, tmp_path: Path) -> None:
    """The file and its line within two, besides the error as every command reports it."""
    folder = shutil.copytree(ELFS / program, tmp_path / program)
    path = folder / "PROGRAM.toml"
    before = path.read_text()
    path.write_text(before.replace(text, instead, 1))
    done = CliRunner().invoke(main, ["why", "-q", "--json", str(folder)])
    told = json.loads(done.stdout)
    (found,) = told["findings"]
    assert done.exit_code == told["exit_code"] == EXIT_INPUT
    assert told["error"] == "InputError"
    assert found["culprit"]["file"] == "PROGRAM.toml"
    assert abs(found["culprit"]["line"] - before.count("\n", 0, before.index(text)) - 1) <= 2
    shown = CliRunner().invoke(main, ["why", "-q", str(path)])
    assert f"at PROGRAM.toml:{found['culprit']['line']}\n" in shown.stderr
    assert shown.stdout == ""  # it is told once


def test_no_file(tmp_path: Path) -> None:
    """Without a file there is no line."""
    done = CliRunner().invoke(main, ["why", "-q", "--json", str(tmp_path / "none.toml")])
    told = json.loads(done.stdout)
    assert done.exit_code == EXIT_INPUT
    assert "findings" not in told
