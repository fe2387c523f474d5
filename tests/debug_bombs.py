"""ELFs of a few kilobytes whose debug information would be read for ever, or fill the memory."""

from __future__ import annotations

import struct
from collections.abc import Callable

from elf_builder import Elf, Raw, Seg

BASE = 0x1_0000
CODE = struct.pack("<II", 0x0010_0073, 0x0000_006F)  # ebreak; j .

# DWARF 5, section 7: codes of tags, attributes, forms and contents of tables.
COMPILE_UNIT, SUBPROGRAM, VARIABLE, STRUCTURE, MEMBER, ARRAY = 0x11, 0x2E, 0x34, 0x13, 0x0D, 0x01
SUBRANGE, BASE_TYPE, INLINED, NAMESPACE = 0x21, 0x24, 0x1D, 0x39
SIBLING, LOCATION, NAME, STMT_LIST, LOW_PC, HIGH_PC = 0x01, 0x02, 0x03, 0x10, 0x11, 0x12
UPPER_BOUND, ABSTRACT_ORIGIN, TYPE, RANGES, BYTE_SIZE = 0x2F, 0x31, 0x49, 0x55, 0x0B
ADDR, DATA1, DATA4, STRING, REF4, REF_ADDR, STRP = 0x01, 0x0B, 0x06, 0x08, 0x13, 0x10, 0x0E
SEC_OFFSET, EXPRLOC, FLAG_PRESENT, IMPLICIT_CONST, BLOCK = 0x17, 0x18, 0x19, 0x21, 0x09
UNIT_HEADER = 12  # bytes of a unit's header in DWARF 5


def uleb(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def abbreviation(code: int, tag: int, children: bool, *fields: tuple[int, int]) -> bytes:
    """One declaration; an implicit constant is 0."""
    pairs = b"".join(
        uleb(name) + uleb(form) + (b"\0" if form == IMPLICIT_CONST else b"")
        for name, form in fields
    )
    return uleb(code) + uleb(tag) + bytes([children]) + pairs + b"\0\0"


def unit(entries: bytes, abbreviations_at: int = 0) -> bytes:
    """A compilation unit of DWARF 5 with its header."""
    body = struct.pack("<HBBI", 5, 1, 4, abbreviations_at) + entries
    return struct.pack("<I", len(body)) + body


def elf(info: bytes, abbreviations: bytes, **sections: bytes) -> bytes:
    """An ELF whose code stops at an ebreak, with these debug sections."""
    raw = [Raw(".debug_info", info), Raw(".debug_abbrev", abbreviations)]
    raw += [Raw(f".debug_{name}", data) for name, data in sections.items()]
    text = [Raw(".text", CODE, 6)]
    built = bytearray(bytes(Elf([Seg(BASE, CODE)], raw=text + raw, entry=BASE)))
    headers = struct.unpack_from("<I", built, 32)[0]
    struct.pack_into("<I", built, headers + 40 * 4 + 12, BASE)  # .text, behind the three tables
    return bytes(built)


def line_program(table: bytes) -> bytes:
    """A line program of DWARF 5 with these tables of folders and files."""
    header = bytes([4, 1, 1, 0xFB, 14, 13]) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + table
    body = struct.pack("<HBBI", 5, 4, 0, len(header)) + header
    return struct.pack("<I", len(body)) + body


def _with_lines(table: bytes) -> bytes:
    top = abbreviation(1, COMPILE_UNIT, False, (STMT_LIST, SEC_OFFSET)) + b"\0"
    return elf(unit(b"\1" + struct.pack("<I", 0)), top, line=line_program(table))


MANY = 1 << 40
NOTHING = b"\1" + uleb(1) + uleb(FLAG_PRESENT)  # one field of no bytes: DW_LNCT_path
FORMATLESS = b"\0"  # no field at all


def folders() -> bytes:
    """2^40 folders, each of no bytes."""
    return _with_lines(NOTHING + uleb(MANY) + b"\0\0")


def files() -> bytes:
    """No folder, 2^40 files of no bytes."""
    return _with_lines(b"\0\0" + NOTHING + uleb(MANY))


def folders_without_format() -> bytes:
    """2^40 folders of which nothing is told."""
    return _with_lines(FORMATLESS + uleb(MANY) + FORMATLESS + uleb(MANY))


def sibling() -> bytes:
    """A subtree that is skipped, in which an entry's sibling is the entry itself."""
    tables = abbreviation(1, COMPILE_UNIT, True)
    tables += abbreviation(2, STRUCTURE, True) + abbreviation(3, STRUCTURE, True, (SIBLING, REF4))
    at = UNIT_HEADER + 2
    return elf(unit(b"\1\2\3" + struct.pack("<I", at) + b"\0\0\0"), tables + b"\0")


def ranges() -> bytes:
    """5,000 functions, each of one list of 5,000 ranges."""
    tables = abbreviation(1, COMPILE_UNIT, True)
    tables += abbreviation(2, SUBPROGRAM, False, (RANGES, SEC_OFFSET))
    entry = b"\2" + struct.pack("<I", 12)
    listed = b"\4" + uleb(BASE) + uleb(BASE)  # DW_RLE_offset_pair
    header = struct.pack("<IHBBI", 8 + 5_000 * len(listed) + 1, 5, 4, 0, 0)
    lists = header + listed * 5_000 + b"\0"
    return elf(unit(b"\1" + entry * 5_000 + b"\0"), tables + b"\0", rnglists=lists)


def strings() -> bytes:
    """20,000 entries, named by the ends of one text of 40,000 bytes."""
    tables = abbreviation(1, COMPILE_UNIT, True) + abbreviation(2, VARIABLE, False, (NAME, STRP))
    entries = b"".join(b"\2" + struct.pack("<I", n) for n in range(20_000))
    return elf(unit(b"\1" + entries + b"\0"), tables + b"\0", str=b"a" * 40_000)


def attributes(form: int) -> bytes:
    """10,000 entries of one byte with 5,000 attributes of no bytes."""
    tables = abbreviation(1, COMPILE_UNIT, True)
    tables += abbreviation(2, VARIABLE, False, *[(0x2000 + n % 0x1000, form) for n in range(5_000)])
    return elf(unit(b"\1" + b"\2" * 10_000 + b"\0"), tables + b"\0")


def tables() -> bytes:
    """3,000 units, each with a table of abbreviations of its own: ends of one of 3,000."""
    one = abbreviation(1, COMPILE_UNIT, False)
    info = b"".join(unit(b"\1", n * len(one)) for n in range(3_000))
    return elf(info, one * 3_000 + b"\0")


def depth() -> bytes:
    """100,000 blocks inside each other."""
    tables = abbreviation(1, COMPILE_UNIT, True) + abbreviation(2, NAMESPACE, True)
    return elf(unit(b"\1" + b"\2" * 100_000), tables + b"\0")


def origins() -> bytes:
    """5,000 functions whose origin is the next one."""
    tables = abbreviation(1, COMPILE_UNIT, True)
    tables += abbreviation(
        2, SUBPROGRAM, False, (ABSTRACT_ORIGIN, REF4), (LOW_PC, ADDR), (HIGH_PC, DATA1)
    )
    first, size = UNIT_HEADER + 1, 10
    entries = b"".join(
        b"\2" + struct.pack("<IIB", first + (n + 1) % 5_000 * size, BASE, 4) for n in range(5_000)
    )
    return elf(unit(b"\1" + entries + b"\0"), tables + b"\0")


def sections() -> bytes:
    """No section header, a count in a field of the first, which is everywhere: 2^32 of them."""
    built = bytearray(elf(unit(b"\1"), abbreviation(1, COMPILE_UNIT, False) + b"\0"))
    headers = struct.unpack_from("<I", built, 32)[0]
    struct.pack_into("<I", built, headers + 20, 0xFFFF_FFFF)
    struct.pack_into("<HH", built, 46, 0, 0)  # bytes and number of section headers
    return bytes(built)


def spanned() -> bytes:
    """A unit of 2^40 bytes, in the 64-bit format."""
    info = struct.pack("<IQHBBQ", 0xFFFF_FFFF, MANY, 5, 1, 4, 0) + b"\1"
    return elf(info, abbreviation(1, COMPILE_UNIT, True) + b"\0")


def records() -> bytes:
    """A global of a structure of 16 of another one, nine levels deep: 2^36 values to show."""
    tables = abbreviation(1, COMPILE_UNIT, True)
    tables += abbreviation(2, VARIABLE, False, (NAME, STRING), (TYPE, REF4), (LOCATION, EXPRLOC))
    tables += abbreviation(3, STRUCTURE, True, (NAME, STRING), (BYTE_SIZE, DATA1))
    tables += abbreviation(4, MEMBER, False, (NAME, STRING), (TYPE, REF4))
    first = UNIT_HEADER + 1 + 2 + 1 + 4 + 6
    size = 1 + 2 + 1 + 16 * (1 + 2 + 4) + 1
    entries = b"\2v\0" + struct.pack("<I", first) + b"\5\3" + struct.pack("<I", BASE)
    for n in range(1, 10):
        at = first + min(n, 8) * size
        entries += b"\3s\0\4" + (b"\4m\0" + struct.pack("<I", at)) * 16 + b"\0"
    return elf(unit(b"\1" + entries + b"\0"), tables + b"\0")


def array() -> bytes:
    """A global whose type is an array of itself."""
    tables = abbreviation(1, COMPILE_UNIT, True)
    tables += abbreviation(2, VARIABLE, False, (NAME, STRING), (TYPE, REF4), (LOCATION, EXPRLOC))
    tables += abbreviation(3, ARRAY, True, (TYPE, REF4))
    tables += abbreviation(4, SUBRANGE, False, (UPPER_BOUND, DATA1))
    at = struct.pack("<I", UNIT_HEADER + 1 + 2 + 1 + 4 + 6)
    entries = b"\2v\0" + at + b"\5\3" + struct.pack("<I", BASE) + b"\3" + at + b"\4\3\0"
    return elf(unit(b"\1" + entries + b"\0"), tables + b"\0")


def outside(form: int) -> bytes:
    """A global whose type lies outside of its unit, or of the section."""
    tables = abbreviation(1, COMPILE_UNIT, True)
    tables += abbreviation(2, VARIABLE, False, (NAME, STRING), (TYPE, form), (LOCATION, EXPRLOC))
    entries = b"\2v\0" + struct.pack("<I", 0x10_0000) + b"\5\3" + struct.pack("<I", BASE)
    return elf(unit(b"\1" + entries + b"\0"), tables + b"\0")


LINE_BOMBS: dict[str, Callable[[], bytes]] = {
    "folders": folders,
    "files": files,
    "folders_without_format": folders_without_format,
}
BOMBS: dict[str, Callable[[], bytes]] = {
    **LINE_BOMBS,
    "sibling": sibling,
    "ranges": ranges,
    "strings": strings,
    "flags": lambda: attributes(FLAG_PRESENT),
    "constants": lambda: attributes(IMPLICIT_CONST),
    "tables": tables,
    "depth": depth,
    "origins": origins,
    "sections": sections,
    "spanned": spanned,
}
