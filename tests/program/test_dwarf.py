"""Inlined calls: read from .debug_info, shown in errors, backtraces and traces."""

import subprocess
import sys

import pytest
from elf_builder import Elf, Raw, Seg

from bhemu import Program
from bhemu.errors import Assert, Call, Where, from_dict
from bhemu.launch import launch
from bhemu.machine.error_text import backtrace
from bhemu.machine.tile import Tile
from bhemu.program import files
from bhemu.program.dwarf import Debug
from bhemu.program.loader import read_elf
from bhemu.program.schema import CoreSpec

SOURCE = """\
volatile int out;
static inline void check(int ok) {
  if (!ok) __asm__ volatile("ebreak");
}
static inline void both(int a, int b) {
  check(a);
  check(b);
}
__attribute__((noinline)) int apart(int x) { check(x != 3); return x + 1; }
__attribute__((section(".init"), naked)) void _start(void) { __asm__("lui sp, 0x20\\n j work"); }
__attribute__((used)) void work(void) {
  both(out == 0, out + 1);
  out = 3;
  out = apart(out);
  for (;;) ;
}
"""
COMPILE = "cc -target riscv32-freestanding-none -mcpu=generic_rv32+m+relax -O2 -c k.c -o k.o"
LINK = "ld.lld --emit-relocs -e _start --image-base=0x10000 k.o -o k.elf"


@pytest.fixture(scope="module", params=[4, 5], ids=["dwarf4", "dwarf5"])
def elf(request, tmp_path_factory):
    """An ELF with two inlined calls inside each other, linked with --emit-relocs."""
    folder = tmp_path_factory.mktemp("inlined")
    (folder / "k.c").write_text(SOURCE)
    cache = {f"ZIG_{kind}_CACHE_DIR": str(folder / kind) for kind in ("GLOBAL", "LOCAL")}
    for arguments in (f"{COMPILE} -gdwarf-{request.param}", LINK):
        command = [sys.executable, "-m", "ziglang", *arguments.split()]
        subprocess.run(command, cwd=folder, env=cache, check=True, capture_output=True)
    return folder / "k.elf"


def line(text: str) -> int:
    return next(n for n, one in enumerate(SOURCE.splitlines(), start=1) if text in one)


def started(elf) -> Tile:
    return launch(Program("p", "elf", {"trisc0": CoreSpec("trisc0", elf=elf)}))


def test_kept_relocations_do_not_damage_it(elf) -> None:
    image = read_elf(elf)
    assert ".rela.debug_info" in image.sections
    debug = image.symbols.debug
    assert debug.problem == ""
    copies = [image.symbols.inlined(at) for at in image.symbols.entries("check")]
    assert {found.function for found in copies} == {"check"}
    assert {found.calls for found in copies} == {
        (Call("both", "k.c", line("check(a);")), Call("work", "k.c", line("  both(out"))),
        (Call("both", "k.c", line("check(b);")), Call("work", "k.c", line("  both(out"))),
        (Call("apart", "k.c", line("int apart")),),
    }
    assert image.symbols.entries("apart") == [image.symbols.address("apart")]
    assert image.symbols.entries("nothing") == []


def test_an_assert_names_the_caller_of_the_inlined_check(elf) -> None:
    with pytest.raises(Assert) as caught:
        started(elf).run()
    error = caught.value
    assert error.where.function == "check"
    assert error.where.inlined == (Call("apart", "k.c", line("int apart")),)
    assert f"(k.c:3 check, inlined at k.c:{line('int apart')})" in str(error)
    assert from_dict(error.as_dict()).where == error.where


def test_the_caller_of_the_function_that_asserted_is_named_too(elf) -> None:
    """What is not inlined is found by the return address."""
    with pytest.raises(Assert) as caught:
        started(elf).run()
    assert "called from work+" in caught.value.hint
    assert f"(k.c:{line('out = apart')})" in caught.value.hint


def test_a_backtrace_has_a_line_for_every_inlined_call(elf) -> None:
    tile = started(elf)
    symbols = tile.core["trisc0"].images[0]
    first = next(a for a in symbols.entries("check") if symbols.inlined(a).calls[0].line == 6)
    tile.run_to("trisc0", first)
    frames = list(backtrace(tile.core["trisc0"]))
    assert [frame.split()[2].partition("+")[0] for frame in frames[:3]] == ["check", "both", "work"]
    assert frames[1].endswith(f"both (k.c:{line('check(a);')}), inlined")
    assert "work+0x" in frames[2]
    assert f"(k.c:{line('  both(out')})" in frames[2]


def test_a_place_without_inlined_calls_is_shown_as_before() -> None:
    assert str(Where(file="k.c", line=4)) == "(k.c:4)"
    assert str(Where(file="k.c", line=4, function="f")) == "(k.c:4)"


@pytest.mark.parametrize("fill", [b"", b"\x00", b"\xff" * 64, bytes(range(256))])
def test_a_damaged_section_is_a_problem_and_no_error(fill: bytes) -> None:
    sections = [Raw(".debug_info", fill), Raw(".debug_abbrev", fill), Raw(".debug_str", fill)]
    debug = Debug(bytes(Elf([Seg(0x10000)], raw=sections)), "k.elf")
    assert debug.blocks == []
    assert debug.calls(0x10000) == (None, ())


def test_an_elf_without_it_says_so() -> None:
    debug = Debug(bytes(Elf([Seg(0x10000)])), "k.elf")
    assert debug.problem == "k.elf: no .debug_info; compile with -g"


@pytest.mark.parametrize("name", ["DWARF_BYTES", "DWARF_ENTRIES"])
def test_it_is_read_within_limits(elf, monkeypatch, name: str) -> None:
    assert name in files.LIMITS
    monkeypatch.setenv(f"BHEMU_LIMIT_{name}", "3")
    debug = Debug(elf.read_bytes(), "k.elf")
    assert debug.blocks == []
    assert "the limit is 3" in debug.problem
