"""Edits of the values that a line gives away one after the other: a step missing, two exchanged."""

from collections.abc import Iterator
from itertools import combinations

from bhemu.devices.bus.naming import device_name
from bhemu.memmap import (
    DEBUG_BASE,
    RISCV_DEBUG_REG_NCRISC_RESET_PC,
    RISCV_DEBUG_REG_TRISC0_RESET_PC,
)
from bhemu.riscv.assembly import addi, li, lw, sw
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.m import MUL
from bhemu.riscv.isa.rv32i import ADD, SLLI, SRAI
from bhemu.tensix.insn import disassemble
from bhemu.why.repair.edits import Code, Edit, Lines, Site, pushes
from bhemu.why.repair.words import is_template

_MOST = 8  # sites of a line that are copies of each other
_SEQUENCE, _STEP, _BACK, _EXCHANGED = 1.6, 1.66, 0.02, 1.28  # costs
_STARTED = 1.5  # of which cores start where: an exchange of their ELFs
_UNITS, _BITS = 1.8, (*range(1, 15), -1, -2, -3, -4)  # cost, shifts
_GOES_ON = 0.2  # how much less likely a step is missing where values change already
_STARTS = range(
    DEBUG_BASE + RISCV_DEBUG_REG_TRISC0_RESET_PC,
    DEBUG_BASE + RISCV_DEBUG_REG_NCRISC_RESET_PC + 4,
)
_COUNTER = 0x3F0  # in the room for added instructions
add, mul = ADD.assemble, MUL.assemble
Changed = tuple[int, tuple[int, ...]]


def _groups(sites: list[Site], lines: Lines, core: int) -> list[list[Site]]:
    """The sites of a line that give away values of one kind, in the order of their first time."""
    found: dict[object, list[Site]] = {}
    for site in sites:
        where = lines.where(site.core, site.pc)
        if site.core == core and not is_template(site) and where.line and site.count:
            kind = site.values[0] >> 24 if pushes(site) else "store"
            inlined = tuple((call.file, call.line) for call in where.inlined)
            found.setdefault((where.file, where.line, inlined, kind), []).append(site)
    return [group for group in found.values() if len(group) <= _MOST]


def steps(code: Code, sites: list[Site], lines: Lines, core: int, room: int) -> Iterator[Edit]:
    """What a line stores goes on by some step each time: an index is missing in an address."""
    for group in _groups(sites, lines, core):
        stores = all(_is_store(code.words[core][site.pc]) for site in group)
        if not stores or sum(site.count for site in group) < 2:
            continue
        name = _name(group[0])
        first = group[0].values[0]
        later = (group[1].values + group[0].values[1:])[:1] if len(group) > 1 else []
        for value in later:
            by = value - first
            if by:
                text = f"{name}: {first:#x}, {value:#x} and so on by {by:+#x}"
                code_of = tuple(_counted(code, site, room, by, first) for site in group)
                yield Edit(core, code_of, text, _SEQUENCE)
        more = _GOES_ON * any(len(site.values) > 1 for site in group)
        for bit in range(24 if pushes(group[0]) else 14):
            for by, cost in ((1 << bit, _STEP + more), (-1 << bit, _STEP + more + _BACK)):
                code_of = tuple(_counted(code, site, room, by, None) for site in group)
                yield Edit(core, code_of, f"{name} is to go on by {by:+#x} each time", cost)


def _counted(code: Code, site: Site, room: int, by: int, first: int | None) -> Changed:
    """A store of `first` (None: of what it stores) and `by` for each time the line has stored."""
    held, (one, two) = code.words[site.core][site.pc], (code.free_registers(site.core) * 2)[-2:]
    words = [*li(one, room + _COUNTER), lw(two, one), addi(two, two, 1), sw(two, one)]
    words += [addi(two, two, -1), *li(one, by & 0xFFFFFFFF), mul(two, two, one)]
    own = held >> 20 & 31
    if first is not None:
        words += li(one, first)
        own = one
    return site.pc, (*words, add(two, two, own), held & ~(31 << 20) | two << 20)


def units(code: Code, sites: list[Site], lines: Lines, core: int) -> Iterator[Edit]:
    """What the values of a line differ by, in another unit: an index that is not multiplied.

    The first value stays as it is, or without a number that was added to it.
    """
    for group in _groups(sites, lines, core):
        values = list(dict.fromkeys(value for site in group for value in site.values))
        if len(values) < 2 or not all(_is_store(code.words[core][site.pc]) for site in group):
            continue
        stores = _copies(code, lines, group)
        plain = values[0] & ~0xFFFF if pushes(group[0]) else 0
        for base in dict.fromkeys((values[0], plain)):
            for bits in _BITS:
                code_of = tuple(_in_unit(code, core, pc, values[0], base, bits) for pc in stores)
                many = f"{1 << bits} times" if bits > 0 else f"1/{1 << -bits} of"
                text = f"{_name(group[0])}: {base:#x} and {many} what it goes on by"
                yield Edit(core, code_of, text, _UNITS, given=True)


def _copies(code: Code, lines: Lines, group: list[Site]) -> list[int]:
    """The stores of a line, with copies of them that the run has not come to."""
    core, held = group[0].core, code.words[group[0].core]
    found = {site.pc for site in group}
    for pc, word in held.items():
        like = any((word ^ held[site.pc]) & ~(31 << 20) == 0 for site in group)
        if like and pc not in found:
            mine, other = lines.where(core, pc), lines.where(core, group[0].pc)
            if (mine.file, mine.line, mine.inlined) == (other.file, other.line, other.inlined):
                found.add(pc)
    return sorted(found)


def _in_unit(code: Code, core: int, pc: int, first: int, base: int, bits: int) -> Changed:
    """A store of `base`, and of what its value is more than `first`, shifted left or right."""
    held, (one, two) = code.words[core][pc], (code.free_registers(core) * 2)[-2:]
    shift = (SLLI if bits > 0 else SRAI).assemble(two, two, abs(bits))
    words = (*li(one, -first & 0xFFFFFFFF), add(two, one, held >> 20 & 31), shift)
    words += (*li(one, base), add(two, two, one))
    return pc, (*words, held & ~(31 << 20) | two << 20)


def exchanges(code: Code, sites: list[Site], lines: Lines, core: int) -> Iterator[Edit]:
    """Two copies of a line, as of an unrolled loop, that give away each other's values."""
    for group in _groups(sites, lines, core):
        for a, b in combinations(group, 2):
            by = b.values[0] - a.values[0]
            if not by:
                continue
            held, name = code.words[core], _name(a)
            if a.address is None and b.address is None:
                changed: tuple[Changed, ...] = ((a.pc, (held[b.pc],)), (b.pc, (held[a.pc],)))
            elif _is_store(held[a.pc]) and _is_store(held[b.pc]):
                changed = (_moved(code, a, by), _moved(code, b, -by))
            else:
                continue
            text = f"{name}: {b.values[0]:#x} before {a.values[0]:#x}"
            cost = _STARTED if a.address in _STARTS else _EXCHANGED
            yield Edit(core, changed, text, cost, given=True)


def _moved(code: Code, site: Site, by: int) -> Changed:
    """A store of `by` more."""
    held, free = code.words[site.core][site.pc], code.free_registers(site.core)[-1]
    words = (*li(free, by & 0xFFFFFFFF), add(free, free, held >> 20 & 31))
    return site.pc, (*words, held & ~(31 << 20) | free << 20)


def _is_store(word: int) -> bool:
    cls = decode(word)
    return cls is not None and issubclass(cls, Store)


def _name(site: Site) -> str:
    if pushes(site):
        return disassemble(site.values[0]).partition(" ")[0]
    assert site.address is not None
    return f"what is stored to {device_name(site.address, site.core)}"
