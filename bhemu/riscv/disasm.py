"""Disassembly of the baby RISC-V cores' words, `.ttinsn` words included, as GNU objdump prints."""

import re
from collections.abc import Callable

from bhemu.riscv import csr
from bhemu.riscv.formats import B_IMM, I_IMM, J_IMM, S_IMM, Atomic, Pushed
from bhemu.riscv.insn import Form, Instruction
from bhemu.riscv.isa import decode

ABI_NAMES = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{i}" for i in range(8)),
    *(f"s{i}" for i in range(2, 12)),
    *(f"t{i}" for i in range(3, 7)),
)
_ORDERING = ("", ".rl", ".aq", ".aqrl")


def _csr_name(word: int) -> str:
    number = word >> 20
    return csr.NAMES.get(number) or csr.UNMODELLED_NAMES.get(number) or f"{number:#x}"


def _fence_set(bits: int) -> str:
    return "".join(name for i, name in enumerate("iorw") if bits >> 3 - i & 1) or "unknown"


# What each operand of a form prints; the branch and jump offsets become addresses.
_OPERANDS: dict[str, Callable[[int], str]] = {
    "rd": lambda w: ABI_NAMES[Instruction.rd.get(w)],
    "rs1": lambda w: ABI_NAMES[Instruction.rs1.get(w)],
    "rs2": lambda w: ABI_NAMES[Instruction.rs2.get(w)],
    "imm": lambda w: str(I_IMM.get(w)),
    "store": lambda w: str(S_IMM.get(w)),
    "upper": lambda w: f"{w >> 12:#x}",
    "shamt": lambda w: f"{Instruction.rs2.get(w):#x}",
    "uimm": lambda w: str(Instruction.rs1.get(w)),
    "csr": _csr_name,
    "pred": lambda w: _fence_set(w >> 24 & 15),
    "succ": lambda w: _fence_set(w >> 20 & 15),
}
_OFFSETS = {"branch": B_IMM, "jump": J_IMM}
_OPERAND = re.compile("|".join(rf"\b{name}\b" for name in (*_OPERANDS, *_OFFSETS)))


def _render(
    cls: type[Instruction],
    form: Form,
    word: int,
    pc: int,
    symbol: Callable[[int], str | None] | None,
) -> str:
    def operand(found: re.Match[str]) -> str:
        if found[0] in _OPERANDS:
            return _OPERANDS[found[0]](word)
        target = pc + _OFFSETS[found[0]].get(word) & 0xFFFFFFFF
        name = symbol(target) if symbol else None
        return f"{target:#x} <{name}>" if name else f"{target:#x}"

    mnemonic, _, operands = form.text.partition(" ")
    if issubclass(cls, Atomic):
        mnemonic += _ORDERING[cls.ordering.get(word)]
    text = f"{mnemonic} {_OPERAND.sub(operand, operands)}".rstrip()
    return f"{text}  # {cls.note}" if cls.note else text


def disassemble(
    word: int,
    pc: int = 0,
    symbol: Callable[[int], str | None] | None = None,
    tensix: Callable[[int], str] | None = None,
) -> str:
    """Text of the 32-bit `word` at address `pc`, pseudo-instructions as GNU objdump prints them.

    Covers RV32I, M, Zaamo, Zicsr, Zifencei, Zba and Zbb; any other word is `.word 0x...`.
    `symbol` names a branch target ("main+0x10", or None for no name) and appears in <>. A word
    whose low two bits are not 0b11 pushes the Tensix instruction `word` rotated right by 2
    (`.ttinsn`); `tensix` describes that instruction and follows as a comment.
    """
    word &= 0xFFFFFFFF
    cls = decode(word)
    if cls is not None and issubclass(cls, Pushed):
        pushed = cls.pushed(word)
        return f".ttinsn {pushed:#010x}" + (f"  # {tensix(pushed)}" if tensix else "")
    for form in cls.forms if cls is not None else ():
        if word & form.mask == form.match:
            return _render(cls, form, word, pc, symbol)  # type: ignore[arg-type]
    return f".word {word:#010x}"
