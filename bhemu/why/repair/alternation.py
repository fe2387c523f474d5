"""Edits of words that are the same in each round of a loop: every second one is another.

So a Dst half, bank or context is named where there are two of them, and others of the loop take
turns.
"""

from collections.abc import Iterator

from bhemu.riscv.assembly import ZERO, beq, li, lw, sw
from bhemu.riscv.isa.rv32i import XORI
from bhemu.tensix import thread_fields
from bhemu.tensix.insn import decode, disassemble
from bhemu.why.repair.edits import Code, Edit, Site, moves, pushes, pushing, xoring

_IN_TURN, _ALONE = 1.25, 1.65  # costs: where another word of the core takes turns, and where none
_COUNTER = 0x3E0  # in the room for added instructions
_HALF = 0x200  # rows
_OFFSET = thread_fields.DEST_TARGET_REG_CFG_MATH_Offset.word


def edits(code: Code, sites: list[Site], core: int, room: int) -> Iterator[Edit]:
    """Each word of a core that is pushed more than once, other in every second round."""
    own = [site for site in sites if site.core == core and pushes(site)]
    rounds = {site.count for site in own if len(site.values) == 2}
    free = code.free_registers(core)
    if len(free) < 2:
        return
    for site in own:
        held = code.words[core][site.pc]
        if len(site.values) != 1 or site.count < 2 or not moves(held):
            continue
        cost = _IN_TURN if site.count in rounds else _ALONE
        word = site.values[0]
        for other, name in _others(word):
            one: tuple[int, ...] = (pushing(word),) if site.address is None else (held,)
            two: tuple[int, ...] = (pushing(other),)
            if site.address is not None:
                two = xoring(held, word ^ other, free[:-2] or free)
            text = f"{disassemble(word)}: {name} the other one every second time"
            yield Edit(core, ((site.pc, _in_turn(free, room, one, two)),), text, cost)


def _others(word: int) -> Iterator[tuple[int, str]]:
    """The word with the lowest bit of one of its fields the other way round, and that field."""
    cls = decode(word)
    if cls is None or cls.unit == "sync":
        return
    if cls.name == "SETC16":
        if cls.operands(word)["setc16_reg"] == _OFFSET:
            yield word ^ _HALF, "Dst's half"
        return
    for field in cls.fields:
        yield field.put(word, field.get(word) ^ 1), field.name


def _in_turn(
    free: list[int], room: int, one: tuple[int, ...], two: tuple[int, ...]
) -> tuple[int, ...]:
    """Instructions that do `one`, the next time `two`, and so on."""
    at, count = free[-1], free[-2]
    flip = XORI.assemble(count, count, 1)
    turn = (*li(at, room + _COUNTER), lw(count, at), flip, sw(count, at))
    over = beq(count, ZERO, 4 * (len(one) + 2))
    return (*turn, over, *one, beq(ZERO, ZERO, 4 * (len(two) + 1)), *two)
