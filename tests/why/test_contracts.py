"""What PROGRAM.toml declares against what a run does: it goes before the order of accesses."""

import shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import planted
import pytest

from bhemu import Program
from bhemu.why.findings import Finding
from bhemu.why.overwritten import tensors


def changed(root: Path, program: str, *changes: tuple[str, str]) -> list[Any]:
    """The findings of a program after changes of its PROGRAM.toml, each at its first place."""
    out = root / program
    shutil.copytree(planted.ROOT / "elfs" / program, out)
    text = (out / planted.TOML).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (out / planted.TOML).write_text(text)
    return planted.why(out)


def test_requests_of_two_pages_and_an_announcement_of_one(tmp_path: Path) -> None:
    """Of four pages of half the size the second half of each request is lost to the next one."""
    smaller = ("pages = 2\npage = 2048", "pages = 4\npage = 1024")
    first, *others = changed(tmp_path, "add1_chip", smaller)
    assert (
        first["text"] == "a page of buffer 0 has 1024 bytes, and every request to it 2048 or more"
    )
    assert (first["check"], first["culprit"]["file"]) == ("contract", "PROGRAM.toml")
    assert not any(one["check"] == "order" for one in others)


def over(root: Path, address: str) -> list[Finding]:
    """What is said of a wrong output that lies at an address of each bank."""
    root.mkdir()
    shutil.copytree(planted.ROOT / "elfs" / "add1_chip", root, dirs_exist_ok=True)
    text = (root / planted.TOML).read_text()
    (root / planted.TOML).write_text(text.replace("= 0x200080", f"= {address}", 1))
    program = Program.load(root)
    symptom = SimpleNamespace(wrong=[SimpleNamespace(spec=program.outputs[0])])
    return list(tensors(SimpleNamespace(program=program, symptom=symptom)))


def test_an_output_over_an_input(tmp_path: Path) -> None:
    """Of two pages of each in a bank; one that lies at the same address is meant to replace it."""
    (found,) = over(tmp_path / "second", "0x100880")
    text = "output y overwrites input in.npy: both lie in DRAM bank 0 at 0x100880"
    assert found.text == f"PROGRAM.toml:{found.culprit['line']}: {text}"
    lines = (tmp_path / "second" / planted.TOML).read_text().splitlines()
    assert "0x100880" in lines[found.culprit["line"] - 1]
    assert over(tmp_path / "same", "0x100080") == []
    assert over(tmp_path / "after", "0x101080") == []


@pytest.mark.parametrize(
    ("core", "change", "check", "text"),
    [
        (
            "trisc2",
            ("add1_chip/pack.c", "pack_half(out.pointer, half)", "pack_half(out.first, half)"),
            "contract",
            "trisc2 announces page 1, which nothing has written, and page 0 was written: buffer 16",
        ),
    ],
)
def test_the_counts_of_a_buffer_go_before_the_order(
    compiler: ModuleType, tmp_path: Path, core: str, change: Any, check: str, text: str
) -> None:
    made = planted.make(planted.Bug("b", 1, "add1_chip", (change,), core), tmp_path / "p", compiler)
    first, *others = planted.why(made.folder)
    assert first["check"] == check
    assert first["text"].startswith(text)
    assert not any(one["check"] == "order" for one in others)
