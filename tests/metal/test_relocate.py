"""Kernels moved in L1: relocations applied anew give what the linker gives for that address."""

import subprocess
import sys
from pathlib import Path

import pytest
from elf_builder import Elf, Seg
from test_firmware import toolchain

from bhemu.errors import InputError
from bhemu.program.loader import Image, block, read_elf, relocated

SOURCE = """
static const unsigned table[4] = {1, 2, 3, 5};
unsigned counter = 7, cleared;
extern volatile unsigned outside;
unsigned twice(unsigned);
const void *const places[2] = {&table[1], (const void *)twice};
int main(void) { counter++; return twice(table[outside & 3] + counter) + cleared; }
__attribute__((noinline)) unsigned twice(unsigned x) { return x * ((unsigned)places[x & 1]); }
"""
SCRIPT = """
outside = 0xFFB00018;
ENTRY(main)
SECTIONS {
  .text BASE : { *(.text*) *(.rodata*) *(.srodata*) . = ALIGN(16); }
  .data 0xFFB00830 : AT(LOADADDR(.text) + SIZEOF(.text)) { *(.data*) *(.sdata*) }
  .bss : { *(.bss*) *(.sbss*) }
  /DISCARD/ : { *(.eh_frame*) *(.comment*) }
}
"""


def linked(folder: Path, base: int, model: str, *options: str) -> Image:
    """The program linked for `base`."""
    build = toolchain()
    (folder / "k.c").write_text(SOURCE)
    (folder / "k.ld").write_text(SCRIPT.replace("BASE", hex(base)))
    flags = [f for f in build.FLAGS if not f.startswith("-W")]
    zig, out = [sys.executable, "-m", "ziglang"], folder / f"{base:x}.elf"
    compile_ = [*zig, "cc", *flags, f"-mcmodel={model}", "-c", "k.c", "-o", "k.o"]
    link = [*zig, "ld.lld", *build.LINKED, *options, "-T", "k.ld", "k.o", "-o", str(out)]
    for command in (compile_, link):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return read_elf(out)


@pytest.mark.parametrize("model", ["medlow", "medany"])
@pytest.mark.parametrize("to", [0x82C0, 0x10800, 0xFFFF0])
def test_moved_code_is_what_the_linker_makes_for_that_address(
    tmp_path: Path, model: str, to: int
) -> None:
    image, there = linked(tmp_path, 0x10000, model), linked(tmp_path, to, model)
    moved = relocated(image, to - 0x10000)
    assert block(moved)[1] == block(there)[1]
    assert block(moved)[1] != block(image)[1]
    assert relocated(image, 0) is image


def test_without_relocations_data_cannot_be_moved(tmp_path: Path) -> None:
    path = tmp_path / "k.elf"
    path.write_bytes(bytes(Elf([Seg(0x5000), Seg(0xFFB00830, b"data", paddr=0x5004, flags=6)])))
    image = read_elf(path)
    assert block(image) == (0x5000, b"\x13\0\0\0data")
    with pytest.raises(InputError, match="no relocations") as caught:
        relocated(image, 16)
    assert "--emit-relocs" in caught.value.hint


def test_text_alone_is_moved_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "k.elf"
    path.write_bytes(bytes(Elf([Seg(0x5000)])))
    image = read_elf(path)
    assert relocated(image, 0x100) is image


def test_data_without_a_load_address_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.elf"
    path.write_bytes(bytes(Elf([Seg(0x5000), Seg(0xFFB00830, b"data", flags=6)])))
    with pytest.raises(InputError, match="no load address in L1"):
        block(read_elf(path))
