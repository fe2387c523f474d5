"""Edits of the cores' own instructions: constants, branches, widths, stores to memory."""

from collections.abc import Iterator
from typing import Any

from bhemu.riscv.assembly import SP, addi, li
from bhemu.riscv.assembly import disassemble as riscv_text
from bhemu.riscv.formats import (
    Branch,
    FromImmediate,
    IndirectJump,
    Jump,
    Load,
    RegisterImmediate,
    Shift,
    Store,
    Upper,
)
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.b import SH1ADD, SH2ADD, SH3ADD, ZEXT_H
from bhemu.riscv.isa.m import DIV, DIVU, MUL, REM, REMU
from bhemu.riscv.isa.rv32i import (
    ADD,
    ADDI,
    AND,
    BEQ,
    BGE,
    BGEU,
    BLT,
    BLTU,
    BNE,
    LB,
    LBU,
    LH,
    LHU,
    LUI,
    LW,
    OR,
    SB,
    SH,
    SUB,
    SW,
    XOR,
)
from bhemu.tensix.insn import REGISTRY, disassemble
from bhemu.tensix.insn import decode as decode_word
from bhemu.why.repair.edits import NOP, Code, Edit, Lines
from bhemu.why.repair.lines import compared
from bhemu.why.repair.words import sisters as sister_words

_SISTERS = (
    (BEQ, BNE), (BLT, BGE), (BLTU, BGEU), (LB, LBU, LH, LHU, LW), (SB, SH, SW), (ADD, SUB),
    (SH1ADD, SH2ADD, SH3ADD, ADD), (DIV, REM), (DIVU, REMU),
)  # fmt: skip
_BOUNDS, _LESS = ((BGEU, BLTU), (BGE, BLT)), (BLTU, BLT)  # a >= b and b < a
_ORDERED = (SUB, SH1ADD, SH2ADD, SH3ADD)  # the order of operands matters
add = ADD.assemble
_OPCODES = 0xD0  # above are no opcodes of Tensix words
_UNROLLED = 16  # stores of one line
_FACTOR = 1.68
_CHANGED, _CLOSE = 1.7, 5  # cost of a change, changes of a constant that are likeliest
_CONDITION, _STORE, _LOOP = 1.7, 1.8, 1.86  # costs of leaving out: a loop may be a wait


def _numbers(value: int, step: int) -> Iterator[int]:
    seen = {value}
    for one in (value + step, value - step, 2 * value, value // 2, 0, -value,
                value + 4 * step, value - 4 * step, 4 * value, value // 4):  # fmt: skip
        if one not in seen:
            seen.add(one)
            yield one


def _sisters(word: int, cls: Any) -> Iterator[tuple[int, str]]:
    """Another instruction with the same operands; a bound counted in or not."""
    for one, two in _BOUNDS:
        if cls in (one, two):
            bound = two if cls is one else one
            a, b = word >> 15 & 31, word >> 20 & 31
            swapped = word & ~(0x3FF << 15) & ~cls.mask | bound.match | b << 15 | a << 20
            how = "<= instead of <" if cls in _LESS else "< instead of <="
            yield swapped, f"equal values are to go the other way here: {how}"
    for sisters in _SISTERS:
        for other in sisters if cls in sisters else ():
            if other is not cls:
                yield word & ~cls.mask | other.match, f"{other.name} instead of {cls.name}"


def changes(word: int) -> Iterator[tuple[int, str]]:
    """(other instruction, what is different)."""
    cls = decode(word)
    if cls is None:
        return
    yield from _sisters(word, cls)
    pushed = decode_word(word & ~0xFFF) if cls is LUI else None
    if cls is LUI and pushed is None and 0 < word >> 24 < _OPCODES:
        for opcode in REGISTRY:
            yield opcode << 24 | word & 0xFFFFFF, f"{REGISTRY[opcode].name}, not {word >> 24:#x}"
    for one in () if pushed is None else sister_words(pushed, word & ~0xFFF):
        yield one | word & 0xFFF, f"{disassemble(one)} instead of {disassemble(word & ~0xFFF)}"
    if cls in (OR, XOR, ADD, SUB) and word >> 20 & 31:
        yield addi(word >> 7 & 31, word >> 15 & 31, 0), "without the second operand"
        if cls is not SUB:
            yield addi(word >> 7 & 31, word >> 20 & 31, 0), "without the first operand"
    if cls in (ADD, SUB) and word >> 7 & 31 == word >> 15 & 31 != word >> 20 & 31:
        by = 1 if cls is ADD else -1
        yield addi(word >> 7 & 31, word >> 15 & 31, by), f"by {by}, not by another value"
    if cls in _ORDERED:
        a, b = word >> 15 & 31, word >> 20 & 31
        yield word & ~(0x3FF << 15) | b << 15 | a << 20, "with its operands exchanged"
    if cls is AND:
        yield ZEXT_H.assemble(word >> 7 & 31, word >> 15 & 31), "and with 0xffff"
        yield addi(word >> 7 & 31, word >> 15 & 31, 0), "no mask"
    yield from _immediates(word, cls)


def _immediates(word: int, cls: Any) -> Iterator[tuple[int, str]]:
    """An instruction with another constant."""
    if issubclass(cls, Shift):
        for amount in dict.fromkeys([*_numbers(word >> 20 & 31, 1), *range(32)]):
            if 0 <= amount < 32 and amount != word >> 20 & 31:
                yield word & ~(31 << 20) | amount << 20, f"{cls.name} by {amount}"
    elif issubclass(cls, Upper):
        for value in _numbers(cls.imm.get(word), 0x1000):
            if 0 <= value <= 0xFFFFF000:
                yield cls.imm.put(word, value), f"{value:#x} in the upper bits"
    elif issubclass(cls, FromImmediate | Store):
        imm = cls.imm.get(word)
        step = 4 if issubclass(cls, Load | Store) else 1
        flips = [imm ^ 1 << bit for bit in range(11)] if issubclass(cls, RegisterImmediate) else []
        near = [imm + 8, imm - 8, imm + 12, imm - 12] if step > 1 else []
        for value in dict.fromkeys([*_numbers(imm, step), *near, *flips]):
            if -2048 <= value < 2048:
                yield cls.imm.put(word, value), f"{cls.name} with {value} instead of {imm}"


def _constant(word: int) -> Iterator[tuple[tuple[int, ...], str]]:
    """A constant (li) replaced by a power of two or a multiple."""
    cls = decode(word)
    if cls is not ADDI or word >> 15 & 31 or not word >> 7 & 31:
        return
    value, rd = ADDI.imm.get(word), word >> 7 & 31
    for other in dict.fromkeys([*(1 << n for n in range(4, 16)), 2 * value, 4 * value]):
        if other != value:
            yield tuple(li(rd, other & 0xFFFFFFFF)), f"{other} instead of {value}"


def _operands(word: int, used: list[int]) -> Iterator[tuple[int, str]]:
    """A factor or what a branch compares taken from another register."""
    cls = decode(word)
    if cls is None or not (cls is MUL or issubclass(cls, Branch)):
        return
    for field in (cls.rs2, cls.rs1):
        for register in used:
            if register != field.get(word):
                yield field.put(word, register), f"{cls.name} with another variable"


def _lines(code: Code, core: int, lines: Lines) -> Iterator[Edit]:
    """All stores of one line left out together, where there are several."""
    found: dict[object, list[int]] = {}
    for pc, word in sorted(code.words[core].items()):
        cls = decode(word)
        if cls is not None and issubclass(cls, Store) and (word >> 15 & 31) != SP:
            where = lines.where(core, pc)
            found.setdefault((where.file, where.line), []).append(pc)
    for stores in found.values():
        if 1 < len(stores) <= _UNROLLED:
            yield Edit(core, tuple((pc, (NOP,)) for pc in stores), "leave out these stores", 1.79)


def edits(code: Code, core: int, lines: Lines) -> Iterator[Edit]:
    """Each instruction of a core changed; those that serve the stack stay."""
    yield from sorted(_changed(code, core), key=lambda edit: edit.cost)
    yield from _lines(code, core, lines)
    used = sorted({word >> 7 & 31 for word in code.words[core].values()} - {0, SP})
    for pc, word in sorted(code.words[core].items()):
        for other, text in _operands(word, used):
            yield Edit(core, ((pc, (other,)),), text, 1.85)
    for pc, word in sorted(code.words[core].items()):
        if _computes(word):
            rd = word >> 7 & 31
            for one in (-1, 1):
                instead = (word, addi(rd, rd, one))
                yield Edit(core, ((pc, instead),), f"{one:+} behind this", 1.8)
    yield from _stored(code, core)
    for pc, word in sorted(code.words[core].items()):
        if _computes(word) or _loads(word):
            rd = word >> 7 & 31
            for register in used:
                instead = (word, add(rd, rd, register))
                text = f"{riscv_text(instead[1], pc + 4)} added behind this"
                yield Edit(core, ((pc, instead),), text, 1.9)


def _stored(code: Code, core: int) -> Iterator[Edit]:
    """Each store of one more or one less."""
    register = code.free_registers(core)[-1]
    for pc, word in sorted(code.words[core].items()):
        cls = decode(word)
        if cls is not None and issubclass(cls, Store) and word >> 15 & 31 != SP:
            stored = cls.assemble(register, cls.rs1.get(word), cls.imm.get(word))
            for one in (1, -1):
                instead = (addi(register, word >> 20 & 31, one), stored)
                yield Edit(core, ((pc, instead),), f"store {one:+}", 1.78)


def factors(code: Code, core: int) -> Iterator[Edit]:
    """Each factor of a product taken from another register: a row counted by another dimension."""
    held = code.words[core]
    used = sorted({word >> 7 & 31 for word in held.values()} - {0, SP})
    for pc, word in sorted(held.items()):
        for other, text in _operands(word, used) if decode(word) is MUL else ():
            yield Edit(core, ((pc, (other,)),), text, _FACTOR)


def _loads(word: int) -> bool:
    """Whether it loads a word that is nobody's local variable."""
    cls = decode(word)
    loads = cls is not None and issubclass(cls, Load)
    return loads and word >> 7 & 31 != 0 and word >> 15 & 31 != SP


def _computes(word: int) -> bool:
    """Whether a shift gives a number that others go on with: places in units of 16 bytes."""
    cls = decode(word)
    return cls is not None and issubclass(cls, Shift) and word >> 7 & 31 not in (0, SP)


def left_out(code: Code, core: int) -> Iterator[Edit]:
    """Each store and each condition left out."""
    for pc, word in sorted(code.words[core].items()):
        cls = decode(word)
        if cls is None or not issubclass(cls, Store | Branch) or word >> 15 & 31 == SP:
            continue
        ahead = issubclass(cls, Branch) and cls.offset.get(word) > 0
        cost = _CONDITION if ahead else _STORE if issubclass(cls, Store) else _LOOP
        yield Edit(core, ((pc, (NOP,)),), f"leave out this {cls.name}", cost)


def conditions(code: Code, core: int) -> Iterator[Edit]:
    """Each branch under another condition, and what it is compared with close before it changed.

    The same as among all changes of instructions, of which a long run allows only some.
    """
    held = code.words[core]
    for pc, word in sorted(held.items()):
        cls = decode(word)
        if cls is None or not issubclass(cls, Branch):
            continue
        for at in (pc, *compared(held, pc)):
            tried = list(enumerate(changes(held[at])))
            for number, (other, text) in tried[: None if at == pc else _CLOSE]:
                yield Edit(core, ((at, (other,)),), text, _CHANGED + number / 100)


def _changed(code: Code, core: int) -> Iterator[Edit]:
    for pc, word in sorted(code.words[core].items()):
        cls = decode(word)
        if cls is None or issubclass(cls, Jump | IndirectJump):
            continue
        if (word >> 7 & 31) == SP or (word >> 15 & 31) == SP:
            continue
        for number, (other, text) in enumerate(changes(word)):
            yield Edit(core, ((pc, (other,)),), text, _CHANGED + number / 100)
        for instead, text in _constant(word):
            yield Edit(core, ((pc, instead),), text, 1.75)
