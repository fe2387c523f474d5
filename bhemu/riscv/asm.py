"""A small RV32 assembler: one function per instruction, `code` joins words to bytes."""

from bhemu.tensix.insn import assemble

ZERO, RA, SP, T0, T1, T2, A0, A1, A2, A3 = 0, 1, 2, 5, 6, 7, 10, 11, 12, 13
PUSH = 0xFFE40000
EBREAK = 0x00100073


def _i(opcode: int, funct3: int, rd: int, rs1: int, imm: int) -> int:
    return (imm & 0xFFF) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode


def _r(funct7: int, funct3: int, rd: int, rs1: int, rs2: int) -> int:
    return funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33


def addi(rd: int, rs1: int, imm: int) -> int:
    """rd = rs1 + imm."""
    return _i(0x13, 0, rd, rs1, imm)


def add(rd: int, rs1: int, rs2: int) -> int:
    """rd = rs1 + rs2."""
    return _r(0, 0, rd, rs1, rs2)


def lui(rd: int, value: int) -> int:
    """rd = value with the low 12 bits cleared."""
    return value & 0xFFFFF000 | rd << 7 | 0x37


def li(rd: int, value: int) -> list[int]:
    """Two words: rd = value (32 bits)."""
    low = (value & 0xFFF) - ((value & 0x800) << 1)
    return [lui(rd, value - low), addi(rd, rd, low)]


def lw(rd: int, rs1: int, imm: int = 0) -> int:
    """rd = word at rs1 + imm."""
    return _i(0x03, 2, rd, rs1, imm)


def lh(rd: int, rs1: int, imm: int = 0) -> int:
    """rd = sign-extended half at rs1 + imm."""
    return _i(0x03, 1, rd, rs1, imm)


def lhu(rd: int, rs1: int, imm: int = 0) -> int:
    """rd = zero-extended half at rs1 + imm."""
    return _i(0x03, 5, rd, rs1, imm)


def lb(rd: int, rs1: int, imm: int = 0) -> int:
    """rd = sign-extended byte at rs1 + imm."""
    return _i(0x03, 0, rd, rs1, imm)


def lbu(rd: int, rs1: int, imm: int = 0) -> int:
    """rd = zero-extended byte at rs1 + imm."""
    return _i(0x03, 4, rd, rs1, imm)


def sw(rs2: int, rs1: int, imm: int = 0, width: int = 2) -> int:
    """Store rs2 at rs1 + imm; width 0, 1, 2 = byte, half, word."""
    high = (imm >> 5 & 0x7F) << 25 | rs2 << 20 | rs1 << 15
    return high | width << 12 | (imm & 31) << 7 | 0x23


def branch(funct3: int, rs1: int, rs2: int, offset: int) -> int:
    """Conditional branch by funct3; offset in bytes from here."""
    o = offset & 0x1FFF
    low = (o >> 1 & 0xF) << 8 | (o >> 11 & 1) << 7
    high = (o >> 12) << 31 | (o >> 5 & 0x3F) << 25
    return high | rs2 << 20 | rs1 << 15 | funct3 << 12 | low | 0x63


def beq(rs1: int, rs2: int, offset: int) -> int:
    """Branch when equal."""
    return branch(0, rs1, rs2, offset)


def bne(rs1: int, rs2: int, offset: int) -> int:
    """Branch when not equal."""
    return branch(1, rs1, rs2, offset)


def jal(rd: int, offset: int) -> int:
    """Jump by offset, rd = return address."""
    o = offset & 0x1FFFFF
    high = (o >> 20) << 31 | (o >> 1 & 0x3FF) << 21 | (o >> 11 & 1) << 20
    return high | (o >> 12 & 0xFF) << 12 | rd << 7 | 0x6F


def jalr(rd: int, rs1: int, imm: int = 0) -> int:
    """Jump to rs1 + imm, rd = return address."""
    return _i(0x67, 0, rd, rs1, imm)


def csrrs(rd: int, csr: int, rs1: int = 0) -> int:
    """rd = CSR; set the bits of rs1."""
    return csr << 20 | rs1 << 15 | 2 << 12 | rd << 7 | 0x73


def csrrw(rd: int, csr: int, rs1: int) -> int:
    """rd = CSR; write rs1."""
    return csr << 20 | rs1 << 15 | 1 << 12 | rd << 7 | 0x73


def cpop(rd: int, rs1: int) -> int:
    """rd = number of ones in rs1 (Zbb)."""
    return _i(0x13, 1, rd, rs1, 0x602)


def ttinsn(word: int) -> int:
    """The RISC-V word that pushes a Tensix word: rotated left by two."""
    return (word << 2 | word >> 30) & 0xFFFFFFFF


def tt(mnemonic: str, **fields: int) -> int:
    """`.ttinsn` of one instruction."""
    return ttinsn(assemble(mnemonic, **fields))


PARK = jal(ZERO, 0)


def code(*parts: int | list[int]) -> bytes:
    """Little-endian bytes of words and lists of words."""
    words = [w for part in parts for w in (part if isinstance(part, list) else [part])]
    return b"".join(w.to_bytes(4, "little") for w in words)
