"""Where the stepper and findings look for source files."""

import subprocess
import sys
from pathlib import Path

from bhemu import Program
from bhemu.debug.places import Sources

FLAGS = (
    "-target riscv32-freestanding-none -mcpu=generic_rv32+m -g -O1 -ffreestanding -nostdlib"
    " -fno-sanitize=all -x c -c"
).split()
CODE = "void _start(void)\n{\n    for (;;) {\n    }\n}\n"


def _program(tmp_path: Path, source: Path) -> Program:
    """One core with the ELF of `source`, far from it."""
    source.parent.mkdir(parents=True)
    source.write_text(CODE)
    folder = tmp_path / "elsewhere" / "and" / "further"
    folder.mkdir(parents=True)
    made, zig = folder / "kernel.o", [sys.executable, "-m", "ziglang"]
    subprocess.run([*zig, "cc", *FLAGS, source, "-o", made], check=True)
    link = ["ld.lld", "-m", "elf32lriscv", "-Ttext=0x11000", made, "-o", folder / "brisc.elf"]
    subprocess.run([*zig, *link], check=True)
    text = 'bhemu = 1\nname = "one"\nkind = "elf"\n[cores]\nbrisc = { elf = "brisc.elf" }\n'
    (folder / "PROGRAM.toml").write_text(text)
    return Program.load(folder)


def test_a_source_is_found_where_the_compiler_had_it(tmp_path: Path) -> None:
    program = _program(tmp_path, tmp_path / "sources" / "kernel.c")
    assert Sources(program).line("brisc", "kernel.c", 3) == "    for (;;) {"


def test_only_files_of_source_are_read_at_such_a_place(tmp_path: Path) -> None:
    program = _program(tmp_path, tmp_path / "sources" / "kernel.secret")
    assert Sources(program).line("brisc", "kernel.secret", 3) is None


def test_of_two_files_of_a_name_that_of_the_folder_is_taken(tmp_path: Path) -> None:
    source = tmp_path / "sources" / "kernel.c"
    program = _program(tmp_path, source)
    home = tmp_path / "elsewhere" / "and" / "further"
    for name in ("sources", "others"):
        (home / name).mkdir()
        (home / name / "kernel.c").write_text(f"{name}\n")
    source.unlink()
    assert Sources(program).line("brisc", "kernel.c", 1) == "sources"
