"""A small RV32 assembler: the words of instructions by function, `code` joins words to bytes.

Operands are those of the instruction's format (insn.py); any other mnemonic: `word`.
"""

from typing import Any

from bhemu.memmap import INSTRN_BUF_BASE
from bhemu.riscv.formats import Branch
from bhemu.riscv.isa import named, rv32i, zbb, zicsr
from bhemu.riscv.isa.ttinsn import TTINSN
from bhemu.tensix.insn import assemble

ZERO, RA, SP, GP, T0, T1, T2, A0, A1, A2, A3 = 0, 1, 2, 3, 5, 6, 7, 10, 11, 12, 13
PUSH = INSTRN_BUF_BASE
EBREAK = rv32i.EBREAK.match

addi, add = rv32i.ADDI.assemble, rv32i.ADD.assemble
lui = rv32i.LUI.assemble
lw, lh, lhu, lb, lbu = (
    cls.assemble for cls in (rv32i.LW, rv32i.LH, rv32i.LHU, rv32i.LB, rv32i.LBU)
)
beq, bne = rv32i.BEQ.assemble, rv32i.BNE.assemble
jal, jalr = rv32i.JAL.assemble, rv32i.JALR.assemble
csrrs, csrrw = zicsr.CSRRS.assemble, zicsr.CSRRW.assemble
cpop = zbb.CPOP.assemble
ttinsn = TTINSN.assemble

_BRANCHES: dict[int, type[Branch]] = {
    cls.funct3.get(cls.match): cls
    for cls in (rv32i.BEQ, rv32i.BNE, rv32i.BLT, rv32i.BGE, rv32i.BLTU, rv32i.BGEU)
}


def word(mnemonic: str, *operands: int) -> int:
    """The word of any instruction by mnemonic: word("sh1add", A0, A1, A2)."""
    cls: Any = named(mnemonic)
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
