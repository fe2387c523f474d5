"""pyelftools' reader of .debug_info, over sections whose reads are counted, so that it ends.

A file of a few hundred bytes may describe a tree without end, strings and lists that are read again
and again, or an abbreviation of a million attributes. Whatever pyelftools reads, seeks or asks is a
step here, and so is every entry that is walked over; DWARF_STEPS and the size of the sections bound
them. Trees are walked here too: an entry's next sibling lies after it, whatever the file says.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo

from bhemu.errors import InputError
from bhemu.program import dwarf, elf, files
from bhemu.program.elf import WORD, CountedBytes, DamagedError, Section
from bhemu.text import printable

_LEAST, _PER_BYTE = 100_000, 8  # steps of the smallest file; compilers' files take 1.5 a byte
_SIBLINGS = ("DW_FORM_ref1", "DW_FORM_ref2", "DW_FORM_ref4", "DW_FORM_ref8", "DW_FORM_ref_udata")
_STRINGS, _LINE_STRINGS = "debug_str_sec", "debug_line_str_sec"


class Info(DWARFInfo):
    """The debug information of an ELF; `present`: whether there is a .debug_info at all.

    InputError when it takes more steps than it may, DamagedError where it contradicts itself;
    pyelftools raises anything else.
    """

    def __init__(self, data: bytes, table: list[Section], path: str) -> None:
        self.path = path
        parameters = [name for name in inspect.signature(DWARFInfo).parameters if name != "config"]
        held = {name: _section(data, table, name) for name in parameters}
        self._size, self.steps = sum(len(one) for one, _ in held.values()), 0
        self._most = min(files.limit("DWARF_STEPS"), _LEAST + _PER_BYTE * self._size)
        self._texts = {name: held[name][0] for name in (_STRINGS, _LINE_STRINGS)}
        self._strings: dict[tuple[str, int], bytes] = {}
        self._ends: dict[int, int] = {}  # where the entry after one with children begins
        found = {
            name: DebugSectionDescriptor(CountedBytes(one, self._take), name, 0, len(one), address)
            if one
            else None
            for name, (one, address) in held.items()
        }
        super().__init__(DwarfConfig(True, "RISC-V", 4), **found)
        self.present = self.debug_info_sec is not None
        self.file_names: dict[int, list[str]] = {}
        with suppress(InputError, DamagedError):  # told where line numbers are read
            self.file_names = dwarf.names(data, table)

    def _take(self, count: int) -> None:
        """Spend steps."""
        self.steps += count
        if self.steps > self._most:
            files.check_limit("DWARF_STEPS", self.steps, f"{self.path}: steps through .debug_info")
            raise DamagedError(f"{self._size} bytes of debug sections are read again and again")

    def renew(self) -> None:
        """A new question begins, with steps of its own."""
        self.steps = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """InputError for whatever pyelftools raises of a damaged file; Gone goes on."""
        try:
            yield
        except (InputError, dwarf.Gone):
            raise
        except Exception as problem:
            text = str(problem) if isinstance(problem, DamagedError) else repr(problem)
            raise InputError(
                f"{self.path}: damaged debug information: {printable(text)}",
                hint="rebuild the file",
            ) from problem

    def get_string_from_table(self, offset: int) -> bytes:
        """The text at an offset of .debug_str, cut where it is longer than any name."""
        return self._string(_STRINGS, offset)

    def get_string_from_linetable(self, offset: int) -> bytes:
        """The text at an offset of .debug_line_str, cut likewise."""
        return self._string(_LINE_STRINGS, offset)

    def _string(self, name: str, offset: int) -> bytes:
        self._take(1)
        if (known := self._strings.get((name, offset))) is None:
            known = self._strings[name, offset] = elf.text_at(self._texts[name], offset)
            self._take(len(known) // WORD)
        return known

    def units(self) -> Iterator[Any]:
        """The compilation units."""
        for unit in self.iter_CUs():
            self._take(1)
            yield unit

    def entries(self, unit: Any) -> Iterator[Any]:
        """All entries of a unit, in order."""
        at, end = unit.cu_die_offset, unit.cu_offset + unit.size
        while at < end:
            self._take(1)
            die = unit.get_DIE_from_refaddr(at)
            if not die.is_null():
                yield die
            at += die.size

    def children(self, die: Any) -> Iterator[Any]:
        """The entries right below an entry."""
        if not die.has_children:
            return
        at = die.offset + die.size
        while True:
            with self.reading():
                self._take(1)
                child = die.cu.get_DIE_from_refaddr(at)
            if child.is_null():
                self._ends[die.offset] = at + child.size
                return
            yield child
            with self.reading():
                at = self._next(child)

    def _next(self, die: Any) -> int:
        """Where the entry after an entry and all that is below it begins."""
        after: int = die.offset + die.size
        if not die.has_children:
            return after
        sibling = die.attributes.get("DW_AT_sibling")
        if sibling is not None and sibling.form in _SIBLINGS:
            at: int = sibling.value + die.cu.cu_offset
            if at < after:
                raise DamagedError("an entry's sibling lies before it")
            return at
        if die.offset not in self._ends:
            for _ in self.children(die):
                pass
        return self._ends[die.offset]

    def referred(self, die: Any, attribute: str) -> Any:
        """The entry that an attribute refers to; InputError where there is none."""
        with self.reading():
            self._take(1)
            return die.get_DIE_from_attribute(attribute)


def _section(data: bytes, table: list[Section], parameter: str) -> tuple[bytes, int]:
    """Contents and address of a section by DWARFInfo's name for it: debug_info_sec."""
    name = parameter.removesuffix("_sec")
    if name.startswith("debug_"):
        return elf.debug_section(data, table, name[6:], "DWARF_BYTES") or b"", 0
    for section in table:
        if section.name == f".{name}":
            return section.bytes_of(data), section.address
    return b"", 0
