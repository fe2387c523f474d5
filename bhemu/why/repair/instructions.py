"""Edits of the cores' own instructions: constants, branches, widths, stores to memory."""

from collections.abc import Iterator

from bhemu.riscv.asm import li
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
from bhemu.riscv.isa.rv32i import (
    ADD,
    ADDI,
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
    SB,
    SH,
    SUB,
    SW,
)
from bhemu.riscv.isa.zba import SH1ADD, SH2ADD, SH3ADD
from bhemu.tensix.insn import decode as decode_word
from bhemu.tensix.insn import disassemble
from bhemu.why.repair.edits import NOP, Edit
from bhemu.why.repair.sites import Code
from bhemu.why.repair.words import sisters as sister_words

_SISTERS = (
    (BEQ, BNE), (BLT, BGE), (BLTU, BGEU), (LB, LBU, LH, LHU, LW), (SB, SH, SW), (ADD, SUB),
    (SH1ADD, SH2ADD, SH3ADD, ADD),
)  # fmt: skip
_SP = 2


def _numbers(value: int, step: int) -> Iterator[int]:
    seen = {value}
    for one in (value + step, value - step, 2 * value, value // 2, 0, -value,
                value + 4 * step, value - 4 * step):  # fmt: skip
        if one not in seen:
            seen.add(one)
            yield one


def changes(word: int) -> Iterator[tuple[int, str]]:
    """(other instruction, what is different)."""
    cls = decode(word)
    if cls is None:
        return
    for sisters in _SISTERS:
        for other in sisters if cls in sisters else ():
            if other is not cls:
                yield word & ~cls.mask | other.match, f"{other.name} instead of {cls.name}"
    pushed = decode_word(word & ~0xFFF) if cls is LUI else None
    for one in () if pushed is None else sister_words(pushed, word & ~0xFFF):
        yield one | word & 0xFFF, f"{disassemble(one)} instead of {disassemble(word & ~0xFFF)}"
    if issubclass(cls, Shift):
        for amount in _numbers(word >> 20 & 31, 1):
            if 0 <= amount < 32:
                yield word & ~(31 << 20) | amount << 20, f"{cls.name} by {amount}"
    elif issubclass(cls, Upper):
        for value in _numbers(cls.imm.get(word), 0x1000):
            if 0 <= value <= 0xFFFFF000:
                yield cls.imm.put(word, value), f"{value:#x} in the upper bits"
    elif issubclass(cls, FromImmediate | Store):
        imm = cls.imm.get(word)
        step = 4 if issubclass(cls, Load | Store) else 1
        more = [imm ^ 1 << bit for bit in range(11)] if issubclass(cls, RegisterImmediate) else []
        for value in dict.fromkeys([*_numbers(imm, step), *more]):
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


def edits(code: Code, core: int) -> Iterator[Edit]:
    """Each instruction of a core changed; those that serve the stack stay."""
    for pc, word in sorted(code.words[core].items()):
        cls = decode(word)
        if cls is None or issubclass(cls, Jump | IndirectJump):
            continue
        if (word >> 7 & 31) == _SP or (word >> 15 & 31) == _SP:
            continue
        if issubclass(cls, Store | Branch):
            yield Edit(core, ((pc, (NOP,)),), f"leave out this {cls.name}", 1.8)
        for number, (other, text) in enumerate(changes(word)):
            yield Edit(core, ((pc, (other,)),), text, 1.7 + number / 100)
        for instead, text in _constant(word):
            yield Edit(core, ((pc, instead),), text, 1.75)
