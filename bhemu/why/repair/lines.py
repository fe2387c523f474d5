"""Edits of a whole source line: what the compiler has spread over several instructions."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from bhemu.memmap import GPR_BASE, GPR_END, TENSIX_CFG_BASE, TENSIX_CFG_END
from bhemu.riscv.assembly import addi
from bhemu.riscv.formats import Branch, Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import ADDI, SLLI, SRLI
from bhemu.tensix.insn import disassemble
from bhemu.why.repair.edits import Code, Edit, Lines, Site, pushes, pushing, storing
from bhemu.why.repair.words import Known, known_values, word_changes

_MOST = 16  # sites of a line that are changed together
_BOUND, _ALIKE, _LATER = 1.72, 1.02, 0.05  # costs; the last of a first value that is later
_NEAR, _CONSTANTS = 8, 6  # instructions before a branch, constants of its line
_UNIT, _SCALED = 16, 1.25  # numbers that may be in a unit, cost of another one


def _kind(site: Site) -> object:
    """Sites of one line that do the same: words of an instruction, stores to a Config word."""
    if pushes(site):
        return site.values[0] >> 24
    assert site.address is not None
    return site.address


def alike(code: Code, sites: list[Site], lines: Lines) -> Iterator[Edit]:
    """Of a line that gives away another value each time (an unrolled loop) all changed alike."""
    found: dict[object, list[Site]] = {}
    for site in sites:
        where = lines.where(site.core, site.pc)
        if where.line is not None and len(site.values) == 1:
            key = site.core, where.function, where.file, where.line, _kind(site)
            found.setdefault(key, []).append(site)
    known = known_values(sites)
    for group in found.values():
        values = [site.values[0] for site in group]
        if len(set(values)) > 1 and len(group) <= _MOST:
            yield from _fields(code, group, values, known)
            yield from _changed_alike(code, group, values)


def _fields(code: Code, group: list[Site], values: list[int], known: Known) -> Iterator[Edit]:
    """A field that is the same in all words of a line changed in all of them."""
    if not pushes(group[0]):
        return
    first, same = values[0], (1 << 32) - 1
    for value in values:
        same &= ~(value ^ first)
    for other, text, far in word_changes(first, known):
        mask = other ^ first
        if mask and not mask & ~same and not mask >> 24:
            edit = _edit(code, group, [value ^ mask for value in values], "")
            yield replace(edit, text=text, cost=_ALIKE + far)


def _changed_alike(code: Code, group: list[Site], values: list[int]) -> Iterator[Edit]:
    first = values[0]
    masks = dict.fromkeys([*(first ^ value for value in values[1:]), *(1 << n for n in range(16))])
    masks.pop(0, None)
    for mask in masks:
        yield _edit(code, group, [value ^ mask for value in values], f"xor {mask:#x}")
    site = group[0]
    if not pushes(site) and not (TENSIX_CFG_BASE <= (site.address or 0) < TENSIX_CFG_END):
        return
    steps = dict.fromkeys(b - a for a, b in pairwise(values))
    for by in dict.fromkeys([1, -1, *steps, *(-step for step in steps)]):
        if by and all(0 <= value + by < 1 << 32 for value in values):
            yield _edit(code, group, [value + by for value in values], f"{by:+#x}")


def _edit(code: Code, group: list[Site], values: list[int], how: str) -> Edit:
    core = group[0].core
    held, free = code.words[core], code.free_registers(core)
    changed = tuple(
        (one.pc, (pushing(value),))
        if one.address is None
        else (one.pc, storing(held[one.pc], value, free))
        for one, value in zip(group, values, strict=True)
    )
    now = group[0].values[0]
    what = f"{now:#x} and so on"
    if pushes(group[0]):
        what = f"{disassemble(values[0])} instead of {disassemble(now)}"
    cost = _ALIKE + _LATER * (values[0] > now)
    return Edit(core, changed, f"{what}, all of this line: {how}", cost, given=True)


def bounds(code: Code, core: int, lines: Lines) -> Iterator[Edit]:
    """The constants of a line with a branch, and those it compares with, all more or all less."""
    held = code.words[core]
    found: dict[tuple[str | None, int | None], set[int]] = {}
    branches: dict[tuple[str | None, int | None], int] = {}
    for pc, word in sorted(held.items()):
        cls = decode(word)
        where = lines.where(core, pc)
        line = where.file, where.line
        if cls is not None and issubclass(cls, Branch):
            branches.setdefault(line, pc)
            found.setdefault(line, set()).update(compared(held, pc))
        elif _is_constant(word):
            found.setdefault(line, set()).add(pc)
    for line, at in branches.items():
        constants = sorted(found[line])
        least = min((ADDI.imm.get(held[pc]) for pc in constants), default=0)
        steps = dict.fromkeys((-1, 1, -least)) if 1 < len(constants) <= _CONSTANTS else {}
        for by in steps:
            if by:
                code_of = [(pc, (_moved(held[pc], by),)) for pc in constants]
                yield Edit(core, ((at, (held[at],)), *code_of), f"count with {by:+}", _BOUND)


def _is_constant(word: int) -> bool:
    return decode(word) is ADDI and not word >> 15 & 31 and word >> 7 & 31 != 0


def compared(held: dict[int, int], branch: int) -> Iterator[int]:
    """The constants that a branch compares: each the last that was set before it, or the only."""
    for register in (held[branch] >> 15 & 31, held[branch] >> 20 & 31):
        of_it = [pc for pc, word in held.items() if word >> 7 & 31 == register]
        constants = [pc for pc in of_it if _is_constant(held[pc])]
        near = [pc for pc in constants if branch - 4 * _NEAR <= pc < branch]
        yield from near[-1:] if near else constants if len(constants) == 1 else []


def _moved(word: int, by: int) -> int:
    value = ADDI.imm.get(word)
    return addi(word >> 7 & 31, 0, value + by if -2048 <= value + by < 2048 else value)


def scaled(code: Code, sites: list[Site], lines: Lines) -> Iterator[Edit]:
    """All that a line stores to Config or GPRs in another unit: twice as much, half, and so on.

    Of addresses in units of 16 bytes less one, as the packer and unpackers take them, too.
    """
    found: dict[tuple[int, object, int], set[int]] = {}
    for site in sites:
        at, where = site.address or 0, lines.where(site.core, site.pc)
        counted = GPR_BASE <= at < GPR_END or TENSIX_CFG_BASE <= at < TENSIX_CFG_END
        if counted and where.line is not None and max(site.values) >= _UNIT:
            found.setdefault((site.core, (where.file, where.line), at), set()).add(site.pc)
    for (core, _, _), pcs in found.items():
        for bits in (1, -1, 2, -2):
            for less in (0, 1):
                yield _scaled(code, core, sorted(pcs), bits, less)


def _scaled(code: Code, core: int, pcs: list[int], bits: int, less: int) -> Edit:
    """Stores of a value shifted left by `bits`, or right, `less` added before and taken behind."""
    register = code.free_registers(core)[-1]
    shift = (SLLI if bits > 0 else SRLI).assemble(register, register, abs(bits))
    changed = []
    for pc in pcs:
        word = code.words[core][pc]
        cls: Any = decode(word)
        stored = cls.assemble(register, cls.rs1.get(word), cls.imm.get(word))
        taken = addi(register, word >> 20 & 31, less)
        changed.append((pc, (taken, shift, addi(register, register, -less), stored)))
    many = f"{1 << abs(bits)} times" if bits > 0 else f"1/{1 << -bits} of"
    unit = ", counted from one more" if less else ""
    return Edit(core, tuple(changed), f"{many} what is stored here{unit}", _SCALED, given=True)


def targets(code: Code, sites: list[Site], lines: Lines) -> Iterator[Edit]:
    """Two neighbouring lines that store to Config, each to the place of the other."""
    found: dict[object, list[Site]] = {}
    for site in sites:
        if TENSIX_CFG_BASE <= (site.address or 0) < TENSIX_CFG_END:
            where = lines.where(site.core, site.pc)
            calls = tuple((call.file, call.line) for call in where.inlined)
            found.setdefault((site.core, where.file, where.line, calls), []).append(site)
    groups = list(found.values())
    for n, group in enumerate(groups):
        for other in groups[n + 1 : n + 4]:
            if other[0].core == group[0].core and (edit := _exchanged(code, group, other)):
                yield edit


def _exchanged(code: Code, group: list[Site], other: list[Site]) -> Edit | None:
    core, away = group[0].core, (other[0].address or 0) - (group[0].address or 0)
    changed = []
    for sites, by in ((group, away), (other, -away)):
        for pc in sorted({site.pc for site in sites}):
            word = code.words[core][pc]
            cls = decode(word)
            if cls is None or not issubclass(cls, Store):
                return None
            imm = cls.imm.get(word) + by
            if not -2048 <= imm < 2048:
                return None
            changed.append((pc, (cls.imm.put(word, imm),)))
    return Edit(core, tuple(changed), "exchange what both are given", 1.15, passed=True)
