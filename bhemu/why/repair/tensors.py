"""Edits of what a core stores that is one tensor's or buffer's place and may be another one's."""

from collections.abc import Iterator
from itertools import permutations

from bhemu.program.specs import Program
from bhemu.riscv.asm import li
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import ADD
from bhemu.why.repair.edits import Edit
from bhemu.why.repair.places import Lines
from bhemu.why.repair.sites import Code, Site

_UNIT = 16  # bytes that packer and unpackers count addresses in
_MOST = 12  # distances that are tried
_COPIES = 8  # stores of one line
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
            step = by // _UNIT if used else by
            code_of = tuple((pc, _further(code, owner, pc, step)) for pc in group)
            text = f"what is stored is to lie {by:+#x} bytes on, where another tensor is"
            yield Edit(owner, code_of, text, _COST + _USED * used, given=True)


def _further(code: Code, core: int, pc: int, by: int) -> tuple[int, ...]:
    """A store of `by` more."""
    word, register = code.words[core][pc], code.free_registers(core)[-1]
    cls = decode(word)
    assert cls is not None
    assert issubclass(cls, Store)
    added = ADD.assemble(register, register, word >> 20 & 31)
    stored = cls.assemble(register, cls.rs1.get(word), cls.imm.get(word))
    return (*li(register, by & 0xFFFFFFFF), added, stored)
