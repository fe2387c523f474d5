"""ELFs as compilers and linkers emit them: kept relocations, .init, renamed statics, moved code."""

import subprocess
import sys

import pytest
from elf_builder import Elf, Sec, Seg, Sym

from bhemu.errors import InputError
from bhemu.program.loader import place, read_elf

SOURCE = """\
volatile int out;
static __attribute__((noinline)) int helper(int x) { out = x; return out * 3; }
__attribute__((section(".init"), naked)) void _start(void) { __asm__("lui sp, 0x20\\n j main"); }
__attribute__((used)) int main(void) {
  return helper(out);
}
"""
COMPILE = "cc -target riscv32-freestanding-none -mcpu=generic_rv32+m+relax -O1 -c k.c -o k.o"


def zig(folder, arguments: str) -> None:
    cache = {f"ZIG_{kind}_CACHE_DIR": str(folder / kind) for kind in ("GLOBAL", "LOCAL")}
    command = [sys.executable, "-m", "ziglang", *arguments.split()]
    subprocess.run(command, cwd=folder, env=cache, check=True, capture_output=True)


@pytest.fixture(scope="module", params=[4, 5], ids=["dwarf4", "dwarf5"])
def image(request, tmp_path_factory):
    """An ELF linked with --emit-relocs: 3 of 3 production kernels are."""
    folder = tmp_path_factory.mktemp("relocs")
    (folder / "k.c").write_text(SOURCE)
    zig(folder, f"{COMPILE} -gdwarf-{request.param}")
    zig(folder, "ld.lld --emit-relocs -e _start --image-base=0x10000 k.o -o k.elf")
    return read_elf(folder / "k.elf")


def test_kept_relocations_do_not_damage_line_numbers(image) -> None:
    assert ".rela.debug_line" in image.sections
    symbols = image.symbols
    assert symbols.line_problem == ""
    lines = {name: symbols.line(symbols.address(name)) for name in ("helper", "_start", "main")}
    assert lines == {"helper": ("k.c", 2), "_start": ("k.c", 3), "main": ("k.c", 4)}


def test_code_of_init_has_a_name_and_is_the_entry(image) -> None:
    assert image.entry == image.sections[".init"]
    assert image.symbols.lookup(image.entry + 4) == ("_start", 4)
    placed = place(image, local="direct", core="brisc")
    assert any(part.address <= image.entry < part.end for part in placed)


def built(tmp_path, *segments: Seg, symbols: list[Sym]):
    path = tmp_path / "k.elf"
    path.write_bytes(bytes(Elf(list(segments), [Sec(".text", 0x10000, 0x200)], symbols)))
    return read_elf(path).symbols


def test_a_static_that_lto_renamed_answers_to_its_name(tmp_path) -> None:
    symbols = built(
        tmp_path,
        Seg(0x10000),
        symbols=[
            Sym("counter.lto_priv.0", 0x10010, 4, shared=False),
            Sym("work.constprop.0.isra.0", 0x10020, 4, shared=False),
            Sym("main.cold", 0x10030, 4, shared=False),
            Sym("main", 0x10040, 4),
            Sym("twice.lto_priv.0", 0x10050, 4, shared=False),
            Sym("twice.lto_priv.1", 0x10060, 4, shared=False),
        ],
    )
    assert symbols.address("counter") == symbols.address("counter.lto_priv.0") == 0x10010
    assert symbols.address("work") == 0x10020
    assert symbols.address("main") == 0x10040
    assert symbols.lookup(0x10012) == ("counter.lto_priv.0", 2)
    with pytest.raises(InputError, match="twice stands for several addresses"):
        symbols.address("twice")


def test_code_that_runs_where_it_is_stored_keeps_its_names(tmp_path) -> None:
    """XIP: linked for 0x10000, stored and executed at 0x40000, moved once more by the loader."""
    main = Sym("main", 0x10040, 16)
    symbols = built(tmp_path, Seg(0x10000, bytes(0x200), paddr=0x40000), symbols=[main])
    assert symbols.lookup(0x40044) == ("main", 4)
    assert symbols.lookup(0x10044) == ("main", 4)
    assert symbols.lookup(0x40244) is None
    assert symbols.moved(0x1000).lookup(0x41044) == ("main", 4)
