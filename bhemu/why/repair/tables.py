"""Words that a loop takes from a table and pushes: edits of one of them, and its line."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from bhemu.debug.places import Sources
from bhemu.errors import Where
from bhemu.program import dwarf, elf
from bhemu.program.symbols import Symbols
from bhemu.riscv.asm import addi, jal, li
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import BNE
from bhemu.why.repair.edits import Edit
from bhemu.why.repair.sites import Code, Site, pushes
from bhemu.why.repair.words import Known, word_changes

_COST = 1.15  # of a word in a table
_FEW, _MOST = 2, 48  # words of one
_LONGEST = 64  # lines of an initializer


def edits(code: Code, groups: list[list[Site]], known: Known) -> Iterator[Edit]:
    """Each field of each word that a store takes in turn."""
    for group in groups:
        site = group[0]
        held = code.words[site.core][site.pc]
        if not pushes(site) or site.address is None or len(group) > 1:
            continue
        if not _FEW < len(site.taken) <= _MOST:
            continue
        free = code.free_registers(site.core)[-1]
        for word in site.taken:
            for other, text, far in word_changes(word, known):
                instead = _replacing(held, word, other, free)
                yield Edit(site.core, ((site.pc, instead),), text, _COST + far, datum=word)


def _replacing(store: int, word: int, other: int, free: int) -> tuple[int, ...]:
    """In place of a store: the same, where it stores `word` of another one."""
    cls: Any = decode(store)
    assert issubclass(cls, Store)
    value = store >> 20 & 31
    first, second = li(free, word), li(free, other)
    skip = 4 * (len(second) + 2)
    return (
        *first,
        BNE.assemble(value, free, skip),
        *second,
        jal(0, 8),
        addi(free, value, 0),
        cls.assemble(free, cls.rs1.get(store), cls.imm.get(store)),
    )


def line_of(images: list[Symbols], where: Where, word: int, sources: Sources) -> Where:
    """The line of the table that holds a word; `where`, who pushes it, where that is not known."""
    for image in images:
        for address, index, size in _held(image, word):
            found = image.lookup(address)
            entry = None if found is None else image.debug.globals.get(found[0].partition("+")[0])
            if entry is None or where.core is None:
                continue
            files = dwarf.file_names(image.debug.info, entry.cu)
            number = dwarf.number(entry, "DW_AT_decl_file")
            line = dwarf.number(entry, "DW_AT_decl_line")
            if not line or not 0 <= number < len(files):
                continue
            text = [
                sources.line(where.core, files[number], n) for n in range(line, line + _LONGEST)
            ]
            within = _element([one or "" for one in text], index, size)
            return Where(tile=where.tile, core=where.core, pc=where.pc, function=where.function,
                         file=files[number], line=line + within)  # fmt: skip
    return where


def _held(image: Symbols, word: int) -> Iterator[tuple[int, int, int]]:
    """(address, index in its table, words of the table) where the data of an ELF hold a word."""
    entries = elf.sections(image.data, image.path)
    tables = [one for one in elf.symbols(image.data, entries, image.path) if one.size % 4 == 0]
    for section in entries:
        if section.flags & (elf.SHF_ALLOC | elf.SHF_EXECINSTR) != elf.SHF_ALLOC:
            continue
        data = section.bytes_of(image.data)
        for n in np.flatnonzero(np.frombuffer(data[: len(data) & ~3], "<u4") == word):
            address = section.address + 4 * int(n)
            for table in tables:
                if table.value <= address < table.value + table.size:
                    yield address, (address - table.value) // 4, table.size // 4


def _element(text: list[str], index: int, size: int) -> int:
    """How many lines behind its first an initializer of `size` words has word `index`.

    A macro may stand for several words, so that this is a guess where it has fewer elements.
    """
    places: list[int] = []  # line of each element
    depth, begins = 0, False
    for n, line in enumerate(text):
        for part in re.findall(r"[{}(),;]|[^{}(),;\s]+", line.partition("//")[0]):
            if part == ";" and depth == 0:
                return places[index * len(places) // size] if places else 0
            if depth == 1 and begins and part not in "{}(),":
                places.append(n)
            depth += (part in "({") - (part in ")}")
            begins = depth == 1 and part in ",{"
    return 0
