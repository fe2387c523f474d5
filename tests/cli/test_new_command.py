"""`bhemu new`: the file parses, explains every key, and is never written over another."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elf_builder import Elf, Seg

from bhemu.program.options import KINDS
from bhemu.program.schema import load_program
from bhemu.program.toml import Table


def fill(folder: Path) -> None:
    """The files that the placeholders name."""
    for name in ("brisc", "unpack", "math", "pack", "ncrisc"):
        (folder / f"{name}.elf").write_bytes(bytes(Elf([Seg(0x10000)])))
    for name in ("a", "c_expected"):
        np.save(folder / f"{name}.npy", np.zeros((32, 32), np.float32))
    np.savez(
        folder / "l1.npz",
        in_addr=np.array([0]),
        in_len=np.array([4]),
        in_data=np.zeros(4, np.uint8),
    )


def uncommented(text: str) -> str:
    """With the keys that are commented out."""
    return re.sub(r"(?m)^# (?=\w+ = )", "", text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prepare", [str, uncommented])
def test_the_file_is_a_program_once_its_files_exist(
    bhemu, tmp_path, kind, prepare: Callable[[str], str]
) -> None:
    path = tmp_path / "my.toml"
    result = bhemu("new", path, "--kind", kind)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"bhemu check {path}" in result.stdout
    fill(tmp_path)
    path.write_text(prepare(path.read_text()))
    program = load_program(path)
    assert (program.name, program.kind) == ("my", kind)


def test_every_key_that_a_program_can_have_is_in_one_of_the_files(
    bhemu, tmp_path, monkeypatch
) -> None:
    asked: set[str] = set()
    take = Table.take

    def taken(self: Table, key: str, *more: Any) -> Any:
        asked.add(key)
        return take(self, key, *more)

    monkeypatch.setattr(Table, "take", taken)
    fill(tmp_path)
    texts = []
    for kind in KINDS:
        path = tmp_path / f"{kind}.toml"
        bhemu("new", path, "--kind", kind)
        load_program(path)
        texts.append(path.read_text())
    assert {"until", "max_ulp", "pc", "convert"} <= asked
    for key in asked:
        assert re.search(rf"\b{key}\b( =|\])", "\n".join(texts)), key


def test_every_assignment_has_its_explanation(bhemu, tmp_path) -> None:
    """A comment on the line, in the block above, or at an earlier line of the same key."""
    for kind in KINDS:
        path = tmp_path / f"{kind}.toml"
        bhemu("new", path, "--kind", kind)
        explained = {"at", "file", "name", "expect", "shape", "values", "elf", "local"}
        above = ""
        for line in path.read_text().splitlines():
            key = re.match(r"#? ?(\w+) = ", line)
            if line.startswith("[") or not line.strip():
                above = above if line.startswith("[[") else ""
            elif key is None:
                above += line
            else:
                comment = line.partition("=")[2].partition("#")[2].strip()
                assert comment or above or key[1] in explained, line
                explained.add(key[1])


def test_a_folder_gets_its_program_with_its_name(bhemu, tmp_path) -> None:
    folder = tmp_path / 'odd "name"'
    folder.mkdir()
    assert bhemu("new", folder).exit_code == 0
    parsed = tomllib.loads((folder / "PROGRAM.toml").read_text())
    assert parsed["name"] == 'odd "name"'


def test_a_folder_that_does_not_exist_yet_is_made(bhemu, tmp_path) -> None:
    folder = tmp_path / "mine"
    assert bhemu("new", folder).exit_code == 0
    assert tomllib.loads((folder / "PROGRAM.toml").read_text())["name"] == "mine"
    assert bhemu("new", folder).exit_code == 2, "it exists now"
    assert bhemu("new", tmp_path / "no" / "such" / "folder").exit_code == 2


def test_nothing_is_written_over(bhemu, tmp_path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("mine")
    result = bhemu("new", path)
    assert result.exit_code == 2
    assert "p.toml exists" in result.stderr
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("program.json",), "ends in .toml"),
        (("no/such/folder.toml",), "cannot be written: No such file or directory"),
        (("p.toml", "--kind", "metal"), "Invalid value for '--kind'"),
    ],
)
def test_bad_input_is_exit_code_2(bhemu, tmp_path, monkeypatch, args, message) -> None:
    monkeypatch.chdir(tmp_path)
    result = bhemu("new", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.splitlines()[0]


def test_a_missing_program_points_here(bhemu, tmp_path) -> None:
    assert "hint: bhemu new writes one" in bhemu("run", tmp_path / "none.toml").stderr
