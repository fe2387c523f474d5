"""`bhemu check`: what would go where, and every mistake that shows without running."""

import json
from pathlib import Path

import numpy as np
import pytest
from elf_builder import Elf, Seg, Sym

import bhemu as package
from bhemu.riscv.assembly import EBREAK, PARK

ADD1 = Path(package.__file__).parent.parent / "elfs" / "add1"
INPUT = '[[input]]\nat = {at}\nfile = "a.npy"\ndtype = "bf16"\nlayout = "rows"\n'


@pytest.fixture
def folder(tmp_path):
    symbol = Sym("args", 0x10020, 16, "OBJECT", section=None)
    elf = Elf([Seg(0x10000, bytes(64))], symbols=[symbol])
    (tmp_path / "k.elf").write_bytes(bytes(elf))
    np.save(tmp_path / "a.npy", np.ones((2, 16), np.float32))
    np.save(tmp_path / "inexact.npy", np.full((2, 16), 1.0001, np.float32))
    return tmp_path


def program(folder: Path, more: str = "", cores: str = 'trisc0 = { elf = "k.elf" }') -> Path:
    path = folder / "PROGRAM.toml"
    path.write_text(f'bhemu = 1\nname = "p"\n[cores]\n{cores}\n{more}')
    return path


def test_add1_is_valid_and_its_parts_are_listed(bhemu) -> None:
    result = bhemu("check", ADD1)
    assert result.exit_code == 0
    assert "warning" not in result.stderr  # the core may have been compiled for the first time
    lines = result.stdout.splitlines()
    assert lines[0] == "add1: kind elf, nothing wrong"
    assert "L1      0x00040000..0x00040800  input   in.npy 32x32 bf16 tile32 exact" in lines
    assert "trisc0  0xFFB00000..0xFFB00004  data    trisc0.elf trisc0" in lines
    assert "brisc   released by bhemu, starts at 0x00000000" in lines
    assert lines[-1] == "ends when word 0x100 is 0xd0e0, limit 50000000, time-out 60 s"


def test_json(bhemu) -> None:
    report = json.loads(bhemu("check", ADD1, "--json").stdout)
    assert (report["program"], report["exit_code"], report["warnings"]) == ("add1", 0, [])
    assert report["cores"]["trisc1"] == {"start": 0x14000, "release": False}
    output = next(part for part in report["parts"] if part["kind"] == "output")
    assert (output["low"], output["high"]) == (0xC0000, 0xC0800)


def test_nothing_runs(write, bhemu) -> None:
    result = bhemu("check", write(EBREAK))
    assert result.exit_code == 0
    assert "trisc0  released by bhemu, starts at 0x00010000" in result.stdout.splitlines()
    assert "image   l1.bin" in result.stdout
    assert "ends when everything is idle" in result.stdout
    assert bhemu("check", write(PARK), "-q").stdout == ""


def test_what_lies_on_code_or_on_other_values_is_a_warning(folder, bhemu) -> None:
    over = INPUT.format(at="0x10010") + '[[set]]\nat = 0x10014\nvalues = ["u32:1"]\n'
    result = bhemu("check", program(folder, over))
    assert result.exit_code == 0
    warnings = result.stderr.splitlines()
    assert len(warnings) == 3
    assert all(line.startswith("warning: ") for line in warnings)
    assert "overlap at 0x10014" in result.stderr
    assert bhemu("check", program(folder, INPUT.format(at="0x20000"))).stderr == ""


EXPECT = '[[output]]\nat = {at}\ndtype = "bf16"\nlayout = "rows"\nexpect = "{file}"\n'


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("bogus = 1\n", "unknown key bogus"),
        (INPUT.format(at='"nowhere"'), "no symbol or register nowhere"),
        (INPUT.format(at="0x17fff0"), "are not inside L1"),
        (INPUT.format(at=0).replace("a.npy", "b.npy"), "no such file"),
        (INPUT.format(at=0).replace("a.npy", "inexact.npy"), "is not exact in bf16"),
        ('[[set]]\nat = "arg"\ncore = "trisc0"\nvalues = ["u32:1"]\n', "no symbol arg"),
        ('[[set]]\nat = 0\nvalues = ["u8:256"]\n', "does not fit into u8"),
        (EXPECT.format(at='"args+0x180000"', file="a.npy"), "are not inside L1"),
        (EXPECT.format(at=0, file="inexact.npy"), "is not exact in bf16"),
        ("[run]\nuntil = [{ word = 2, equals = 1 }]\n", "is not the address of a 32-bit word"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(folder, bhemu, more, message) -> None:
    path = program(folder, more)
    result = bhemu("check", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert message in result.stderr.splitlines()[0]
    assert json.loads(bhemu("check", path, "--json").stdout)["exit_code"] == 2


@pytest.mark.parametrize(
    ("cores", "message"),
    [
        ('trisc0 = { elf = "k.elf" }\ntrisc1 = { elf = "k.elf" }', "would overwrite"),
        ('trisc0 = { elf = "a.npy" }', "not an ELF file"),
        ('trisc0 = { elf = "k.elf", release = false }', "no core is released"),
    ],
)
def test_elfs_are_checked(folder, bhemu, cores, message) -> None:
    result = bhemu("check", program(folder, cores=cores))
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[0]


def test_flags_are_checked_as_well(folder, bhemu) -> None:
    assert bhemu("check", "--core", f"trisc0={folder / 'k.elf'}").exit_code == 0
    result = bhemu("check", program(folder), "--set", "0x200=u32:x")
    assert (result.exit_code, "is not a number" in result.stderr) == (2, True)
    assert bhemu("check").exit_code == 2
