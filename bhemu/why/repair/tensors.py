"""Edits of what a core stores that is one tensor's or buffer's place and may be another one's."""

from collections.abc import Iterator
from itertools import permutations

from bhemu.program.specs import Program
from bhemu.riscv.assembly import li
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import ADD, AND, SLTU, SRLI, SUB
from bhemu.why.findings import outside_headers
from bhemu.why.repair.edits import Code, Edit, Lines, Site

_UNIT = 16  # bytes that packer and unpackers count addresses in
_MOST = 12  # distances that are tried
_COPIES = 8  # stores of one line
_PAIR = 8  # bytes of the two words of Config that hold an address for both contexts
_PLACE = 12  # the lowest bit that only a place in memory has; in units of 16 bytes 4 less
_COST, _USED = 1.5, 0.05  # how much less likely it is that who uses a place is wrong


def _distances(program: Program) -> dict[int, str]:
    """How far the inputs in L1 are apart, and the circular buffers; and which they are."""
    inputs = [spec for spec in program.inputs if spec.dram is None]
    places = [
        [(one.at, one.file.name) for one in inputs if isinstance(one.at, int)],
        *([(one.at, f"buffer {one.index}") for one in part.buffers] for part in program.placed()),
    ]
    pairs = [pair for group in places for pair in permutations(group, 2)]
    found: dict[int, str] = {}
    for (a, one), (b, two) in pairs:
        found.setdefault(b - a, f"{two}, not {one}")
    return dict(list(found.items())[:_MOST])


def edits(code: Code, sites: list[Site], lines: Lines, program: Program) -> Iterator[Edit]:
    """All stores of each line, to memory or to a device, as far on as another tensor lies.

    Of a line that gives away several places, as of both operands, also each of them alone, whatever
    lines of headers store it.
    """
    distances = _distances(program)
    devices = {(site.core, site.pc): (site.address or 0) // _PAIR for site in sites}
    groups: dict[object, list[int]] = {}
    words: dict[tuple[object, ...], list[int]] = {}  # to one pair of words of a device
    for core, held in code.words.items() if distances else ():
        for pc, word in sorted(held.items()):
            cls = decode(word)
            if cls is not None and issubclass(cls, Store) and cls.size == 4:
                where, used = lines.where(core, pc), (core, pc) in devices
                key = core, where.file, where.line or pc, used
                groups.setdefault(key, []).append(pc)
                outer = outside_headers(where)
                pair = core, outer.file, outer.line or pc, devices.get((core, pc))
                words.setdefault(pair, []).append(pc)
    some = [g for key, g in words.items() if key[-1] is not None and g not in groups.values()]
    for group in (*groups.values(), *some):
        owner = code.owner(group[0])
        if owner is None or len(group) > _COPIES:
            continue
        used = (owner, group[0]) in devices
        for by, which in distances.items():
            step, least = (by // _UNIT, _PLACE - 4) if used else (by, _PLACE)
            code_of = tuple((pc, _further(code, owner, pc, step, least)) for pc in group)
            text = f"what is stored is to lie {by:+#x} bytes on, as of {which}"
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
