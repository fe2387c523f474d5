"""Words that a loop takes from a table and pushes: edits of one of them, and its line."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bhemu.debug.places import Sources
from bhemu.errors import Where
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program import dwarf, elf
from bhemu.program.symbols import Symbols
from bhemu.tensix.insn import decode
from bhemu.why.repair.constants import HIGH, LOW
from bhemu.why.repair.edits import Code, Edit, Site, pushes
from bhemu.why.repair.words import Known, word_changes

_COST = 1.15  # of a word in a table
_FEW, _MOST = 2, 48  # words of one
_COPIES = 2  # of a word in L1
_LONGEST = 64  # lines of an initializer
_NUMBERS, _NEAR, _EXCHANGED = 64, 3, 0.03  # of a table, those that are exchanged, how far that is
_SIGN, _ONE_EXPONENT, _BITS = 0x80000000, 0x00800000, range(31)
_UNMISTAKABLE = 1 << 16  # a number that is in a source for one reason alone
_LINES = 2000  # of a file in which a number is looked for
_NUMBER = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|[1-9][0-9]*)")


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


def numbers(code: Code, sites: list[Site], tile: Tile) -> Iterator[Edit]:
    """Each number of a table that a core loads into an LReg in two halves, with another value."""
    for core in code.words:
        halves = _halves(core, sites)
        if len(halves) < 2:
            continue
        site = next(iter(halves[LOW].values()))
        held = code.words[core][site.pc]
        places = list(_numbers(tile.core[CORE_NAMES[core]].images, halves))
        for n, (at, value) in enumerate(places[:_NUMBERS]):
            for other, text, far in _values(value):
                changed = ((site.pc, (held,)), (at, (other,)))
                yield Edit(core, changed, text, _COST + far, datum=value)
            for to, instead in places[n + 1 : n + 1 + _NEAR]:
                both = ((site.pc, (held,)), (at, (instead,)), (to, (value,)))
                text = f"exchange {value:#x} and {instead:#x}"
                yield Edit(core, both, text, _COST + _EXCHANGED, datum=value)


def _halves(core: int, sites: list[Site]) -> dict[int, dict[int, Site]]:
    """By which half of an LReg it is: the values that stores of a core push in turn."""
    found: dict[int, dict[int, Site]] = {}
    for site in sites:
        if site.core != core or not pushes(site) or site.address is None:
            continue
        for word in site.taken if len(site.taken) > 1 else ():
            cls = decode(word)
            if cls is not None and cls.name == "SFPLOADI":
                mode = cls.operands(word)["instr_mod0"]
                if mode in (LOW, HIGH):
                    found.setdefault(mode, {}).setdefault(word & 0xFFFF, site)
    return found


def _numbers(
    images: list[Symbols], halves: dict[int, dict[int, Site]]
) -> Iterator[tuple[int, int]]:
    """(address, number) of the words in L1 of an ELF's data whose both halves are loaded."""
    for image in images:
        for section in elf.sections(image.data, image.path):
            flags = section.flags & (elf.SHF_ALLOC | elf.SHF_EXECINSTR)
            if flags != elf.SHF_ALLOC or section.address + image.offset >= L1_SIZE:
                continue
            data = section.bytes_of(image.data)
            for n, word in enumerate(np.frombuffer(data[: len(data) & ~3], "<u4").tolist()):
                if word and word & 0xFFFF in halves[LOW] and word >> 16 in halves[HIGH]:
                    yield section.address + image.offset + 4 * n, word


def _values(now: int) -> Iterator[tuple[int, str, float]]:
    """What a number, of fp32 in most tables, may have been meant to be, and how far away it is."""
    for far, group in enumerate(
        ((now ^ _SIGN,), (now + _ONE_EXPONENT, now - _ONE_EXPONENT), (now ^ 1 << n for n in _BITS))
    ):
        for other in group:
            if 0 <= other < 1 << 32:
                yield other, f"{other:#x} instead of {now:#x}", far / 100


def line_of(images: list[Symbols], where: Where, word: int, sources: Sources) -> Where:
    """The line of the table that holds a word; `where`, who pushes it, where that is not known."""
    for image in images:
        for address, index, size in _held(image, word):
            found = image.lookup(address)
            entry = None if found is None else image.debug.globals.get(found[0].partition("+")[0])
            if entry is None or where.core is None or image.debug.info is None:
                continue
            files = image.debug.info.files(entry.cu)
            number = dwarf.number(entry, "DW_AT_decl_file")
            line = dwarf.number(entry, "DW_AT_decl_line")
            if not line or not 0 <= number < len(files):
                continue
            if (literal := _literal(where.core, files, word, sources)) is not None:
                return replace(where, function=None, file=literal[0], line=literal[1], inlined=())
            text = [
                sources.line(where.core, files[number], n) for n in range(line, line + _LONGEST)
            ]
            within = _element([one or "" for one in text], index, size)
            return Where(tile=where.tile, core=where.core, pc=where.pc, function=where.function,
                         file=files[number], line=line + within)  # fmt: skip
    return where


def _literal(core: str, files: list[str], word: int, sources: Sources) -> tuple[str, int] | None:
    """The one line of the files of a unit that has a number, written as one."""
    found: list[tuple[str, int]] = []
    for file in dict.fromkeys(files) if word >= _UNMISTAKABLE else ():
        for number in range(1, _LINES):
            if (text := sources.line(core, file, number)) is None:
                break
            if word in [int(one, 0) for one in _NUMBER.findall(text)]:
                found.append((file, number))
    return found[0] if len(found) == 1 else None


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
