"""Edits of what a core stores that is one tensor's or buffer's place and may be another one's."""

from collections.abc import Iterator
from itertools import permutations

from bhemu.program.specs import Program
from bhemu.riscv.asm import li
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import ADD, AND, SLTU, SRLI, SUB
from bhemu.why.repair.edits import Edit
from bhemu.why.repair.places import Lines
from bhemu.why.repair.sites import Code, Site

_UNIT = 16  # bytes that packer and unpackers count addresses in
_MOST = 12  # distances that are tried
_COPIES = 8  # stores of one line
_PLACE = 12  # the lowest bit that only a place in memory has; in units of 16 bytes 4 less
_COST, _USED = 1.5, 0.05  # how much less likely it is that who uses a place is wrong


def _distances(program: Program) -> list[int]:
    """How far the inputs in L1 are apart, and the circular buffers."""
    places = [
        [spec.at for spec in program.inputs if spec.dram is None and isinstance(spec.at, int)],
        *([one.at for one in part.buffers] for part in program.placed()),
    ]
    found = [b - a for group in places for a, b in permutations(group, 2)]
    return list(dict.fromkeys(found))[:_MOST]


def edits(code: Code, sites: list[Site], lines: Lines, program: Program) -> Iterator[Edit]:
    """All stores of each line, to memory or to a device, as far on as another tensor lies."""
    distances = _distances(program)
    devices = {(site.core, site.pc) for site in sites}
    groups: dict[object, list[int]] = {}
    for core, held in code.words.items() if distances else ():
        for pc, word in sorted(held.items()):
            cls = decode(word)
            if cls is not None and issubclass(cls, Store) and cls.size == 4:
                where, used = lines.where(core, pc), (core, pc) in devices
                groups.setdefault((core, where.file, where.line or pc, used), []).append(pc)
    for group in groups.values():
        owner = code.owner(group[0])
        if owner is None or len(group) > _COPIES:
            continue
        used = (owner, group[0]) in devices
        for by in distances:
            step, least = (by // _UNIT, _PLACE - 4) if used else (by, _PLACE)
            code_of = tuple((pc, _further(code, owner, pc, step, least)) for pc in group)
            text = f"what is stored is to lie {by:+#x} bytes on, where another tensor is"
            yield Edit(owner, code_of, text, _COST + _USED * used, given=True)


def _further(code: Code, core: int, pc: int, by: int, least: int) -> tuple[int, ...]:
    """A store of `by` more, where what is stored has a bit from `least` on, as a place has."""
    word, (one, two) = code.words[core][pc], (code.free_registers(core) * 2)[-2:]
    cls, value = decode(word), word >> 20 & 31
    assert cls is not None
    assert issubclass(cls, Store)
    is_place = (SRLI.assemble(one, value, least), SLTU.assemble(one, 0, one))
    every_bit = SUB.assemble(one, 0, one)
    added = (AND.assemble(one, one, two), ADD.assemble(one, one, value))
    stored = cls.assemble(one, cls.rs1.get(word), cls.imm.get(word))
    return (*is_place, every_bit, *li(two, by & 0xFFFFFFFF), *added, stored)
