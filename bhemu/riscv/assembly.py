"""RISC-V and Tensix words as text: assembler and disassembler."""

import re
from collections.abc import Callable
from typing import Any

from bhemu.memmap import INSTRN_BUF_BASE
from bhemu.riscv import csr
from bhemu.riscv.formats import B_IMM, I_IMM, J_IMM, S_IMM, Atomic, Pushed
from bhemu.riscv.insn import Instruction
from bhemu.riscv.isa import class_of, decode, rv32i
from bhemu.riscv.isa.b import CPOP
from bhemu.tensix.insn import assemble

# A small RV32 assembler: the words of instructions by function, `code` joins words to bytes.
#
# Operands are those of the instruction's format (insn.py); any other mnemonic: `word`.

ZERO, RA, SP, GP, T0, T1, T2, A0, A1, A2, A3 = 0, 1, 2, 3, 5, 6, 7, 10, 11, 12, 13
PUSH = INSTRN_BUF_BASE
EBREAK = rv32i.EBREAK.match

addi, add = rv32i.ADDI.assemble, rv32i.ADD.assemble
lui = rv32i.LUI.assemble
NOP = addi(ZERO, ZERO, 0)
lw, lh, lhu, lb, lbu = (
    cls.assemble for cls in (rv32i.LW, rv32i.LH, rv32i.LHU, rv32i.LB, rv32i.LBU)
)
beq, bne = rv32i.BEQ.assemble, rv32i.BNE.assemble
jal, jalr = rv32i.JAL.assemble, rv32i.JALR.assemble
csrrs, csrrw = rv32i.CSRRS.assemble, rv32i.CSRRW.assemble
cpop = CPOP.assemble
ttinsn = rv32i.TTINSN.assemble

_BRANCHES: dict[int, type[Instruction]] = {
    cls.funct3.get(cls.match): cls
    for cls in (rv32i.BEQ, rv32i.BNE, rv32i.BLT, rv32i.BGE, rv32i.BLTU, rv32i.BGEU)
}


def word(mnemonic: str, *operands: int) -> int:
    """The word of any instruction by mnemonic: word("sh1add", A0, A1, A2)."""
    cls: Any = class_of(mnemonic)
    return int(cls.assemble(*operands))


def li(rd: int, value: int) -> list[int]:
    """Two words: rd = value (32 bits)."""
    low = (value & 0xFFF) - ((value & 0x800) << 1)
    return [lui(rd, value - low), addi(rd, rd, low)]


def sw(rs2: int, rs1: int, imm: int = 0, width: int = 2) -> int:
    """Store rs2 at rs1 + imm; width 0, 1, 2 = byte, half, word."""
    return (rv32i.SB, rv32i.SH, rv32i.SW)[width].assemble(rs2, rs1, imm)


def branch(funct3: int, rs1: int, rs2: int, offset: int) -> int:
    """Conditional branch by funct3; offset in bytes from here."""
    return _BRANCHES[funct3].assemble(rs1, rs2, offset)


def tt(mnemonic: str, **fields: int) -> int:
    """`.ttinsn` of one instruction."""
    return ttinsn(assemble(mnemonic, **fields))


PARK = jal(ZERO, 0)
RET = jalr(ZERO, RA)


def code(*parts: int | list[int]) -> bytes:
    """Little-endian bytes of words and lists of words."""
    words = [w for part in parts for w in (part if isinstance(part, list) else [part])]
    return b"".join(w.to_bytes(4, "little") for w in words)


# Disassembly of the baby RISC-V cores' words, `.ttinsn` words included, as GNU objdump prints.

ABI_NAMES = """zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7
    s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6""".split()
FLOAT_NAMES = """ft0 ft1 ft2 ft3 ft4 ft5 ft6 ft7 fs0 fs1 fa0 fa1 fa2 fa3 fa4 fa5 fa6 fa7
    fs2 fs3 fs4 fs5 fs6 fs7 fs8 fs9 fs10 fs11 ft8 ft9 ft10 ft11""".split()
_ORDERING = ("", ".rl", ".aq", ".aqrl")
_ROUNDING = ("rne", "rtz", "rdn", "rup", "rmm", "unknown", "unknown", "")  # the last: as fcsr says


def _csr_name(word: int) -> str:
    number = word >> 20
    return csr.NAMES.get(number) or csr.UNMODELLED_NAMES.get(number) or f"{number:#x}"


def _fence_set(bits: int) -> str:
    return "".join(name for i, name in enumerate("iorw") if bits >> 3 - i & 1) or "unknown"


def _vtype(bits: int) -> str:
    multiplier = ("m1", "m2", "m4", "m8", "", "mf8", "mf4", "mf2")[bits & 7]
    if bits >> 8 or bits & 0x20 or not multiplier:
        return str(bits)
    tail, mask = "ta" if bits >> 6 & 1 else "tu", "ma" if bits >> 7 & 1 else "mu"
    return f"e{8 << (bits >> 3 & 7)},{multiplier},{tail},{mask}"


# What each operand of a form prints, "" to leave it out; the branch and jump offsets become
# addresses.
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
    "fd": lambda w: FLOAT_NAMES[Instruction.rd.get(w)],
    "fs1": lambda w: FLOAT_NAMES[Instruction.rs1.get(w)],
    "fs2": lambda w: FLOAT_NAMES[Instruction.rs2.get(w)],
    "fs3": lambda w: FLOAT_NAMES[w >> 27],
    "rm": lambda w: _ROUNDING[Instruction.funct3.get(w)],
    "vd": lambda w: f"v{Instruction.rd.get(w)}",
    "vs1": lambda w: f"v{Instruction.rs1.get(w)}",
    "vs2": lambda w: f"v{Instruction.rs2.get(w)}",
    "vm": lambda w: "" if w >> 25 & 1 else "v0.t",
    "simm": lambda w: str((Instruction.rs1.get(w) ^ 16) - 16),
    "vtype": lambda w: _vtype(w >> 20 & 0x7FF),
    "vtypei": lambda w: _vtype(w >> 20 & 0x3FF),
}
_OFFSETS = {"branch": B_IMM, "jump": J_IMM}
_OPERAND = re.compile("|".join(rf"\b{name}\b" for name in (*_OPERANDS, *_OFFSETS)))


def disassemble(
    word: int,
    pc: int = 0,
    symbol: Callable[[int], str | None] | None = None,
    tensix: Callable[[int], str] | None = None,
) -> str:
    """Text of the 32-bit `word` at address `pc`, pseudo-instructions as GNU objdump prints them.

    Covers RV32I, M, Zaamo, Zicsr, Zifencei, Zba, Zbb, and F, Zfh and V, which no core executes
    here; any other word is `.word 0x...`.
    `symbol` names a branch target ("main+0x10", or None for no name) and appears in <>. A word
    whose low two bits are not 0b11 pushes the Tensix instruction `word` rotated right by 2
    (`.ttinsn`); `tensix` describes that instruction and follows as a comment.
    """
    word &= 0xFFFFFFFF
    cls = decode(word)
    if cls is not None and issubclass(cls, Pushed):
        pushed = cls.pushed(word)
        return f".ttinsn {pushed:#010x}" + (f"  # {tensix(pushed)}" if tensix else "")
    spelled = cls.spelled(word) if cls is not None else None
    if cls is None or spelled is None:
        return f".word {word:#010x}"

    def operand(found: re.Match[str]) -> str:
        if found[0] in _OPERANDS:
            return _OPERANDS[found[0]](word)
        target = pc + _OFFSETS[found[0]].get(word) & 0xFFFFFFFF
        name = symbol(target) if symbol else None
        return f"{target:#x} <{name}>" if name else f"{target:#x}"

    mnemonic, _, operands = spelled.partition(" ")
    if issubclass(cls, Atomic):
        mnemonic += _ORDERING[cls.ordering.get(word)]
    text = f"{mnemonic} {_OPERAND.sub(operand, operands)}".rstrip(" ,")
    return f"{text}  # {cls.note}" if cls.note else text
