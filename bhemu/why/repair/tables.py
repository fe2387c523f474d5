"""Words that a loop takes from a table and pushes: edits of one of them, and its line."""

import re
from collections.abc import Iterator

import numpy as np

from bhemu.debug.places import Sources
from bhemu.errors import Where
from bhemu.program import dwarf, elf
from bhemu.program.symbols import Symbols
from bhemu.tile import Tile
from bhemu.why.repair.edits import Edit
from bhemu.why.repair.sites import Code, Site, pushes
from bhemu.why.repair.words import Known, word_changes

_COST = 1.15  # of a word in a table
_FEW, _MOST = 2, 48  # words of one
_COPIES = 2  # of a word in L1
_LONGEST = 64  # lines of an initializer


def edits(code: Code, groups: list[list[Site]], known: Known, tile: Tile) -> Iterator[Edit]:
    """Each field of each word that a store takes in turn, in the table in L1."""
    memory = tile.state.l1.view("<u4").copy()
    for group in groups:
        site = group[0]
        if not pushes(site) or site.address is None or len(group) > 1:
            continue
        if not _FEW < len(site.taken) <= _MOST:
            continue
        held = code.words[site.core][site.pc]
        for word in site.taken:
            places = [4 * int(n) for n in np.flatnonzero(memory == word)]
            for at in places[:_COPIES]:
                for other, text, far in word_changes(word, known):
                    changed = ((site.pc, (held,)), (at, (other,)))
                    yield Edit(site.core, changed, text, _COST + far, datum=word)


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
