"""The line table: equal to what a full DWARF reader finds, and read under a budget."""

import io
import struct
import time
import zlib
from pathlib import Path, PurePosixPath

import pytest
from elf_builder import Elf, Raw, Seg
from elftools.elf.elffile import ELFFile

from bhemu.program import dwarf as lines
from bhemu.program import elf
from bhemu.program.elf import Symbols

ROOT = Path(__file__).resolve().parents[2]
ELFS = sorted((ROOT / "elfs").glob("**/*.elf"))


def full_reader(data: bytes) -> list[tuple[int, int, str, int]]:
    """Rows by pyelftools."""
    found = []
    dwarf = ELFFile(io.BytesIO(data)).get_dwarf_info(relocate_dwarf_sections=False)
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        entries = program["file_entry"]
        first = 0 if program["version"] >= 5 else 1
        names = {i: PurePosixPath(e.name.decode()).name for i, e in enumerate(entries, first)}
        last = None
        for state in (e.state for e in program.get_entries() if e.state is not None):
            if last is not None and state.address > last.address:
                found.append((last.address, state.address, names[last.file], last.line))
            last = None if state.end_sequence else state
    return sorted(found)


@pytest.mark.parametrize("path", ELFS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_row_is_that_of_a_full_reader(path: Path) -> None:
    data = path.read_bytes()
    assert Symbols(data, "k")._lines == (full_reader(data), "")


@pytest.mark.parametrize("path", ELFS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_file_is_that_of_a_full_reader(path: Path) -> None:
    data = path.read_bytes()
    wanted = set()
    dwarf = ELFFile(io.BytesIO(data)).get_dwarf_info(relocate_dwarf_sections=False)
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program["version"] >= 5:
            folders = [entry.name.decode() for entry in program["include_directory"]]
        else:
            folders = ["", *(name.decode() for name in program["include_directory"])]
        for entry in program["file_entry"]:
            path = PurePosixPath(folders[entry.dir_index], entry.name.decode())
            wanted.add((path.name, str(path.parent).removeprefix(".")))
    found = lines.files(data, elf.sections(data, "k"))
    assert {(f.name, f.folder) for f in found if f.name != "?"} == wanted


def test_headers_of_tt_metal_are_a_library() -> None:
    files = b"/x/tt_metal/hw/inc/api\0/x/tt_llk_blackhole/llk_lib\0src/lib\0\0"
    for number, name in ((1, b"cb_api.h"), (2, b"llk_pack.h"), (3, b"own.h"), (0, b"k.cpp")):
        files += name + bytes([0, number, 0, 0])
    files += b"both.h\0\1\0\0" + b"both.h\0\3\0\0" + b"\0"
    made = unit(ADDRESS + b"\x01\x02\x04" + END, files, folders=b"")
    assert symbols(Raw(".debug_line", made)).library == {"cb_api.h", "llk_pack.h"}


def unit(
    program: bytes, files: bytes = b"a.c\0\0\0\0\0", version: int = 4, folders: bytes = b"\0"
) -> bytes:
    """A line program of DWARF 4; `files` is the table of files, behind that of the folders."""
    lengths = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    header = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + lengths + folders + files
    body = struct.pack("<HI", version, len(header)) + header + program
    return struct.pack("<I", len(body)) + body


ADDRESS = b"\0\x05\x02" + (0x10000).to_bytes(4, "little")
END = b"\0\x01\x01"


def symbols(*sections: Raw) -> Symbols:
    return Symbols(bytes(Elf([Seg(0x10000)], raw=list(sections))), "k.elf")


def test_every_opcode_of_a_line_program() -> None:
    program = ADDRESS + b"\x03\x06\x01"  # line 7 at 0x10000
    program += b"\x02\x04\x03\x7f\x01"  # 4 bytes on, a line back
    program += b"\x09\x06\x00\x04\x02\x05\x03\x06\x07\x0a\x0b\x0c\x01\x01"  # 6 on, file 2
    program += b"\x08" + bytes([13 + 14 * 2 + 5 + 3])  # 17 on, then 2 on and 3 lines
    program += b"\x02\x02" + END
    files = b"dir/a.c\0\0\0\0b\x1b.c\0\0\0\0\0"
    found = symbols(Raw(".debug_line", unit(program, files)))
    assert [found.line(pc) for pc in (0x10000, 0x10003, 0x10004, 0x1000A)] == [
        ("a.c", 7),
        ("a.c", 7),
        ("a.c", 6),
        ("b\\x1b.c", 6),
    ]
    assert found.line(0x1000A + 17 + 2) == ("b\\x1b.c", 9)
    assert found.line(0x1000A + 17 + 4) is None


def packed(data: bytes) -> Raw:
    head = struct.pack("<III", 1, len(data), 1)
    return Raw(".debug_line", head + zlib.compress(data), flags=0x800)


@pytest.mark.parametrize("kind", ["section", "name"])
def test_compressed_line_numbers(kind: str) -> None:
    data = unit(ADDRESS + b"\x01\x02\x04" + END)
    named = Raw(".zdebug_line", b"ZLIB" + struct.pack(">Q", len(data)) + zlib.compress(data))
    assert symbols(packed(data) if kind == "section" else named).line(0x10002) == ("a.c", 1)


def directories_without_end() -> Raw:
    """DWARF 5: 2^40 folders."""
    header = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + bytes(12)
    header += b"\x01\x01\x08" + b"\x80\x80\x80\x80\x80\x20" + b"x\0" * 200
    body = struct.pack("<HBBI", 5, 4, 0, len(header)) + header
    return Raw(".debug_line", struct.pack("<I", len(body)) + body)


HOSTILE = {
    "2^40 folders in 632 bytes": directories_without_end,
    "3 MB that unpack to 3 GB": lambda: Raw(
        ".debug_line",
        struct.pack("<III", 1, 0xC0000000, 1) + zlib.compress(bytes(100_000_000))[:3_000_000],
        flags=0x800,
    ),
    "a size that is a lie": lambda: Raw(
        ".debug_line", struct.pack("<III", 1, 100, 1) + zlib.compress(bytes(50_000_000)), 0x800
    ),
    "420 KB of units": lambda: Raw(".debug_line", unit(b"") * (420_000 // len(unit(b"")))),
    "3 MB of rows": lambda: Raw(".debug_line", unit(ADDRESS + b"\x2f" * 3_000_000 + END)),
    "a number without end": lambda: Raw(".debug_line", unit(b"\x02" + b"\xff" * 1_000_000)),
    "files without end": lambda: Raw(".debug_line", unit(b"", b"a\0\0\0\0" * 2_000_000 + b"\0")),
    "an unknown packing": lambda: Raw(".debug_line", struct.pack("<III", 2, 100, 1), flags=0x800),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_line_numbers_cost_the_lines_and_little_time(name: str) -> None:
    found = symbols(HOSTILE[name]())
    begin = time.process_time()
    assert found.line(0x20000) is None
    assert time.process_time() - begin < 5
    if name != "420 KB of units":
        assert found.line_problem.startswith("k.elf: ")


def test_the_budget_can_be_set(monkeypatch) -> None:
    data = unit(ADDRESS + b"\x2f" * 100 + END)
    assert symbols(Raw(".debug_line", data)).line_problem == ""
    monkeypatch.setenv("BHEMU_LIMIT_LINE_STEPS", "50")
    problem = symbols(Raw(".debug_line", data)).line_problem
    assert "no source lines: line numbers: 51, the limit is 50" in problem
    assert "BHEMU_LIMIT_LINE_STEPS sets the limit" in problem
    monkeypatch.setenv("BHEMU_LIMIT_LINE_BYTES", "1K")
    assert "no source lines" in symbols(packed(bytes(1025))).line_problem
    assert lines.rows(b"", []) is None
