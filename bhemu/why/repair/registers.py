"""Edits of an LReg that serves two purposes: who writes it and who reads that take another one."""

from collections.abc import Iterator
from typing import NamedTuple

from bhemu.tensix.insn import decode, disassemble
from bhemu.why.repair.edits import Code, Edit, Site, pushes, pushing, storing

_LREGS = 8  # those that a program writes
_AHEAD = 8  # words behind the one that writes
_FREE = 2  # registers that are tried
_COST = 1.22
_STORES = ("SFPSTORE",)  # whose lreg_ind is read


class _Use(NamedTuple):
    """A word with LRegs: where it is pushed, the fields that it writes and reads them by."""

    site: Site
    word: int
    writes: dict[str, int]
    reads: dict[str, int]


def _use(site: Site) -> _Use | None:
    cls = decode(site.values[0]) if pushes(site) and len(site.values) == 1 else None
    if cls is None or cls.unit != "vector":
        return None
    word = site.values[0]
    named = {f.name: f.get(word) for f in cls.fields if f.name.startswith("lreg")}
    written = {"lreg_dest"} if cls.name in _STORES else {"lreg_dest", "lreg_ind"}
    writes = {name: n for name, n in named.items() if name in written}
    return _Use(site, word, writes, {n: v for n, v in named.items() if n not in written})


def edits(code: Code, sites: list[Site]) -> Iterator[Edit]:
    """Each word that writes an LReg, with one that reads it, or all of them, in another LReg."""
    for core in code.words:
        own = sorted((one for one in sites if one.core == core), key=lambda one: one.pc)
        uses = [use for site in own if (use := _use(site)) is not None]
        named = {n for use in uses for n in (*use.writes.values(), *use.reads.values())}
        free = [n for n in range(_LREGS) if n not in named][:_FREE]
        for n, use in enumerate(uses):
            for field, register in use.writes.items():
                readers = list(_readers(uses[n + 1 : n + 1 + _AHEAD], register))
                for other in free if register < _LREGS else ():
                    for chosen in _choices(readers):
                        yield _edit(code, use, field, other, chosen)


def _readers(behind: list[_Use], register: int) -> Iterator[tuple[_Use, str]]:
    """The fields of later words that read a register, until one writes it anew."""
    for use in behind:
        yield from ((use, name) for name, n in use.reads.items() if n == register)
        if register in use.writes.values():
            return


def _choices(readers: list[tuple[_Use, str]]) -> Iterator[list[tuple[_Use, str]]]:
    yield from ([one] for one in readers)
    if len(readers) > 1:
        yield readers


def _edit(
    code: Code, use: _Use, field: str, register: int, readers: list[tuple[_Use, str]]
) -> Edit:
    changed = {use.site.pc: (use.site, _put(use.word, field, register))}
    for reader, name in readers:
        word = changed.get(reader.site.pc, (reader.site, reader.word))[1]
        changed[reader.site.pc] = reader.site, _put(word, name, register)
    core = use.site.core
    held, free = code.words[core], code.free_registers(core)
    code_of = tuple(
        (pc, (pushing(word),) if site.address is None else storing(held[pc], word, free))
        for pc, (site, word) in changed.items()
    )
    text = f"{disassemble(use.word).partition(' ')[0]} {field}={register:#x}, and so who reads it"
    return Edit(core, code_of, text, _COST)


def _put(word: int, field: str, value: int) -> int:
    cls = decode(word)
    assert cls is not None
    return next(one.put(word, value) for one in cls.fields if one.name == field)
