"""ELF symbols and DWARF lines."""

import io
import subprocess
import sys

import pytest
from elf_builder import LOCAL, Elf, Sec, Seg, Sym
from elftools.elf.elffile import ELFFile

from bhemu.errors import InputError
from bhemu.program.elf import Symbols

SOURCE = """\
volatile int out;
__attribute__((noinline)) int triple(int x) {
  out = x;
  return out * 3;
}
int start(int n) {
  int s = triple(n);
  out = s;
  return s;
}
"""


def built(*symbols: Sym, offset: int = 0) -> Symbols:
    sections = [Sec(".text", 0x10000, 0x200), Sec(".data", LOCAL, 0x40), Sec(".debug", 0, 0)]
    elf = Elf([Seg(0x10000)], sections, list(symbols))
    return Symbols(bytes(elf), "k.elf", offset)


@pytest.fixture(scope="module", params=[4, 5], ids=["dwarf4", "dwarf5"])
def compiled(request, tmp_path_factory):
    """A C file compiled with line numbers, and where its functions lie."""
    folder = tmp_path_factory.mktemp("dwarf")
    (folder / "kernel.c").write_text(SOURCE)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "riscv32-freestanding-none"]
    command += ["-mcpu=generic_rv32+m", f"-gdwarf-{request.param}", "-O1", "-nostdlib"]
    command += ["-Wl,-e,start", "-Wl,--image-base=0x10000", "kernel.c", "-o", "kernel.elf"]
    cache = {f"ZIG_{kind}_CACHE_DIR": str(folder / kind) for kind in ("GLOBAL", "LOCAL")}
    subprocess.run(command, cwd=folder, env=cache, check=True, capture_output=True)
    return (folder / "kernel.elf").read_bytes()


def test_a_compiled_file_has_names_and_lines(compiled):
    symbols = Symbols(compiled, "kernel.elf")
    start, triple = symbols.address("start"), symbols.address("triple")
    assert symbols.lookup(start + 4) == ("start", 4)
    assert symbols.line(start) == ("kernel.c", 6)
    assert symbols.line(triple)[0] == "kernel.c"
    inside = [
        pc for pc in range(triple, triple + 256, 4) if symbols.lookup(pc) == ("triple", pc - triple)
    ]
    assert {symbols.line(pc)[1] for pc in inside} == {2, 3, 4}
    assert symbols.line_problem == ""
    assert symbols.lookup(symbols.address("out")) == ("out", 0)
    assert symbols.line(symbols.address("out")) is None
    assert symbols.line(0) is None


def test_an_image_loaded_at_an_offset(compiled):
    plain = Symbols(compiled, "kernel.elf")
    moved = plain.moved(0x2000)
    start = plain.address("start")
    assert moved.address("start") == start + 0x2000
    assert moved.lookup(start + 0x2004) == ("start", 4)
    assert moved.line(start + 0x2000) == plain.line(start)


def test_lookup_prefers_functions_and_ends_where_they_end():
    symbols = built(
        Sym("main", 0x10010, 0x20),
        Sym("alias", 0x10010, 0, "NOTYPE"),
        Sym("inner", 0x10018, 0, "NOTYPE"),
        Sym("_start", 0x10000, 0, "NOTYPE"),
        Sym("tail", 0x10100, 0, "NOTYPE"),
        Sym("file.c", 0x10000, 0, "FILE", None),
    )
    assert symbols.lookup(0x10000) == ("_start", 0)
    assert symbols.lookup(0x1000C) == ("_start", 12)
    assert symbols.lookup(0x10010) == ("main", 0)
    assert symbols.lookup(0x1001C) == ("main", 12)
    assert symbols.lookup(0x10030) is None
    assert symbols.lookup(0x101FC) == ("tail", 0xFC)
    assert symbols.lookup(0x10200) is None
    assert symbols.lookup(0xFFFC) is None


def test_assembler_noise_has_no_name():
    noise = [Sym("$x", 0x10000, 0, "NOTYPE"), Sym(".L0", 0x10004, 0, "NOTYPE")]
    symbols = built(*noise, Sym("main", 0x10008, 8))
    assert symbols.names == ("main",)
    assert symbols.lookup(0x10004) is None


def test_data_in_local_ram_and_absolute_symbols_do_not_move():
    symbols = built(
        Sym("main", 0x10000, 8),
        Sym("counter", LOCAL + 8, 4, "OBJECT", ".data"),
        Sym("STACK_SIZE", 0x400, 0, "NOTYPE", None),
        offset=0x100,
    )
    assert symbols.address("main") == 0x10100
    assert symbols.address("counter") == LOCAL + 8
    assert symbols.lookup(LOCAL + 10) == ("counter", 2)
    assert symbols.address("STACK_SIZE") == 0x400
    assert symbols.lookup(0x400) is None


def test_an_unknown_name_is_answered_with_near_ones():
    symbols = built(Sym("runtime_args", 0x10000, 8), Sym("main", 0x10008, 8))
    with pytest.raises(InputError) as caught:
        symbols.address("runtime_arg")
    assert str(caught.value) == ("k.elf: no symbol runtime_arg\nhint: did you mean runtime_args?")
    with pytest.raises(InputError, match="no symbol zzz"):
        symbols.address("zzz")


def test_a_static_name_used_twice_is_refused_and_a_global_one_wins():
    twice = [Sym("s", 0x10000, 4, shared=False), Sym("s", 0x10004, 4, shared=False)]
    with pytest.raises(InputError, match="several addresses: 0x00010000, 0x00010004"):
        built(*twice).address("s")
    assert built(*twice, Sym("s", 0x10008, 4)).address("s") == 0x10008


def test_without_dwarf_there_are_no_lines_and_a_reason():
    symbols = built(Sym("main", 0x10000, 8))
    assert symbols.line(0x10000) is None
    assert symbols.line_problem == "k.elf: no DWARF line table; compile with -g"


def test_damaged_dwarf_costs_the_lines_and_nothing_else(compiled):
    start = Symbols(compiled, "k").address("start")
    header = ELFFile(io.BytesIO(compiled)).get_section_by_name(".debug_line").header
    at = header["sh_offset"] + 4  # behind the unit's length, its version
    damaged = Symbols(compiled[:at] + b"\xff" * 40 + compiled[at + 40 :], "k.elf")
    assert damaged.line(start) is None
    assert damaged.line_problem.startswith("k.elf: damaged DWARF line table: ")
    assert damaged.lookup(start) == ("start", 0)


def test_a_damaged_symbol_table_is_an_input_error():
    with pytest.raises(InputError, match=r"k\.elf: damaged symbol table"):
        Symbols(b"\x7fELF" + bytes(60), "k.elf").address("main")


def test_a_section_that_is_called_symtab_and_is_none_is_an_input_error(compiled):
    """The type of .symtab set to SHT_NULL: the parser then gives it no symbols to iterate."""
    elf = ELFFile(io.BytesIO(compiled))
    number = elf.get_section_index(".symtab")
    at = elf["e_shoff"] + number * elf["e_shentsize"] + 4  # sh_type
    damaged = Symbols(compiled[:at] + bytes(4) + compiled[at + 4 :], "k.elf")
    with pytest.raises(InputError, match=r"k\.elf: damaged symbol table"):
        damaged.address("start")
