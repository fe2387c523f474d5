"""A model of RV32IM, Zaamo, Zba and Zbb, written literally from the RISC-V unprivileged manual.

One table per format: mnemonic to encoding and meaning. Values are unsigned 32-bit integers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

M = 0xFFFFFFFF


def signed(x: int) -> int:
    """Two's complement value of a 32-bit register."""
    return x - (1 << 32) if x >> 31 else x


def extend(x: int, bits: int) -> int:
    """Sign-extend the low `bits` bits to a 32-bit register."""
    x &= (1 << bits) - 1
    return (x - (1 << bits) if x >> (bits - 1) else x) & M


def div(a: int, b: int) -> int:
    """Rounds towards zero; by zero: all bits set; overflow: the dividend."""
    if b == 0:
        return M
    q = abs(signed(a)) // abs(signed(b))
    return (-q if signed(a) * signed(b) < 0 else q) & M


def rem(a: int, b: int) -> int:
    """Takes the sign of the dividend; by zero: the dividend; overflow: 0."""
    if b == 0:
        return a
    r = abs(signed(a)) % abs(signed(b))
    return (-r if signed(a) < 0 else r) & M


def rotate_left(a: int, n: int) -> int:
    """By the low five bits of n."""
    n &= 31
    return (a << n | a >> (32 - n)) & M


# mnemonic: funct7, funct3, meaning of rs1 and rs2 (opcode OP)
REGISTER: dict[str, tuple[int, int, Callable[[int, int], int]]] = {
    "add": (0x00, 0, lambda a, b: a + b),
    "sub": (0x20, 0, lambda a, b: a - b),
    "sll": (0x00, 1, lambda a, b: a << (b & 31)),
    "slt": (0x00, 2, lambda a, b: signed(a) < signed(b)),
    "sltu": (0x00, 3, lambda a, b: a < b),
    "xor": (0x00, 4, lambda a, b: a ^ b),
    "srl": (0x00, 5, lambda a, b: a >> (b & 31)),
    "sra": (0x20, 5, lambda a, b: signed(a) >> (b & 31)),
    "or": (0x00, 6, lambda a, b: a | b),
    "and": (0x00, 7, lambda a, b: a & b),
    "mul": (0x01, 0, lambda a, b: a * b),
    "mulh": (0x01, 1, lambda a, b: (signed(a) * signed(b)) >> 32),
    "mulhsu": (0x01, 2, lambda a, b: (signed(a) * b) >> 32),
    "mulhu": (0x01, 3, lambda a, b: (a * b) >> 32),
    "div": (0x01, 4, div),
    "divu": (0x01, 5, lambda a, b: a // b if b else M),
    "rem": (0x01, 6, rem),
    "remu": (0x01, 7, lambda a, b: a % b if b else a),
    "sh1add": (0x10, 2, lambda a, b: b + (a << 1)),
    "sh2add": (0x10, 4, lambda a, b: b + (a << 2)),
    "sh3add": (0x10, 6, lambda a, b: b + (a << 3)),
    "xnor": (0x20, 4, lambda a, b: ~(a ^ b)),
    "orn": (0x20, 6, lambda a, b: a | ~b),
    "andn": (0x20, 7, lambda a, b: a & ~b),
    "min": (0x05, 4, lambda a, b: min(signed(a), signed(b))),
    "minu": (0x05, 5, min),
    "max": (0x05, 6, lambda a, b: max(signed(a), signed(b))),
    "maxu": (0x05, 7, max),
    "rol": (0x30, 1, rotate_left),
    "ror": (0x30, 5, lambda a, b: rotate_left(a, -b)),
}
# mnemonic: funct12, funct3, meaning of rs1 (opcode OP-IMM; zext.h: opcode OP)
UNARY: dict[str, tuple[int, int, int, Callable[[int], int]]] = {
    "clz": (0x600, 1, 0x13, lambda a: 32 - a.bit_length()),
    "ctz": (0x601, 1, 0x13, lambda a: (a & -a).bit_length() - 1 if a else 32),
    "cpop": (0x602, 1, 0x13, lambda a: a.bit_count()),
    "sext.b": (0x604, 1, 0x13, lambda a: extend(a, 8)),
    "sext.h": (0x605, 1, 0x13, lambda a: extend(a, 16)),
    "orc.b": (0x287, 5, 0x13, lambda a: sum(0xFF << i for i in (0, 8, 16, 24) if a >> i & 0xFF)),
    "rev8": (0x698, 5, 0x13, lambda a: int.from_bytes(a.to_bytes(4, "little"), "big")),
    "zext.h": (0x080, 4, 0x33, lambda a: a & 0xFFFF),
}
# mnemonic: funct3, meaning of rs1 and the sign-extended immediate (opcode OP-IMM)
IMMEDIATE: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "addi": (0, lambda a, i: a + i),
    "slti": (2, lambda a, i: signed(a) < signed(i)),
    "sltiu": (3, lambda a, i: a < i),
    "xori": (4, lambda a, i: a ^ i),
    "ori": (6, lambda a, i: a | i),
    "andi": (7, lambda a, i: a & i),
}
# mnemonic: funct7, funct3, meaning of rs1 and the shift amount (opcode OP-IMM)
SHIFT: dict[str, tuple[int, int, Callable[[int, int], int]]] = {
    "slli": (0x00, 1, lambda a, n: a << n),
    "srli": (0x00, 5, lambda a, n: a >> n),
    "srai": (0x20, 5, lambda a, n: signed(a) >> n),
    "rori": (0x30, 5, lambda a, n: rotate_left(a, -n)),
}
# mnemonic: funct3, taken when
BRANCH: dict[str, tuple[int, Callable[[int, int], bool]]] = {
    "beq": (0, lambda a, b: a == b),
    "bne": (1, lambda a, b: a != b),
    "blt": (4, lambda a, b: signed(a) < signed(b)),
    "bge": (5, lambda a, b: signed(a) >= signed(b)),
    "bltu": (6, lambda a, b: a < b),
    "bgeu": (7, lambda a, b: a >= b),
}
# mnemonic: funct3, bytes, sign-extends
LOAD = {
    "lb": (0, 1, True),
    "lh": (1, 2, True),
    "lw": (2, 4, False),
    "lbu": (4, 1, False),
    "lhu": (5, 2, False),
}
STORE = {"sb": (0, 1), "sh": (1, 2), "sw": (2, 4)}
# mnemonic: funct5, what memory becomes of its old value and rs2 (opcode AMO)
ATOMIC: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "amoadd.w": (0x00, lambda m, b: m + b),
    "amoswap.w": (0x01, lambda m, b: b),
    "amoxor.w": (0x04, lambda m, b: m ^ b),
    "amoor.w": (0x08, lambda m, b: m | b),
    "amoand.w": (0x0C, lambda m, b: m & b),
    "amomin.w": (0x10, lambda m, b: min(signed(m), signed(b))),
    "amomax.w": (0x14, lambda m, b: max(signed(m), signed(b))),
    "amominu.w": (0x18, min),
    "amomaxu.w": (0x1C, max),
}


def i_type(opcode: int, funct3: int, rd: int, rs1: int, imm: int) -> int:
    """imm[11:0] rs1 funct3 rd opcode."""
    return (imm & 0xFFF) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode


def r_type(opcode: int, funct3: int, funct7: int, rd: int, rs1: int, rs2: int) -> int:
    """funct7 rs2 rs1 funct3 rd opcode."""
    return funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode


def encode_store(name: str, rs2: int, rs1: int, imm: int) -> int:
    """imm[11:5] rs2 rs1 funct3 imm[4:0] opcode."""
    return r_type(0x23, STORE[name][0], imm >> 5 & 0x7F, imm & 31, rs1, rs2)


def encode_branch(name: str, rs1: int, rs2: int, offset: int) -> int:
    """imm[12|10:5] rs2 rs1 funct3 imm[4:1|11] opcode."""
    high = (offset >> 12 & 1) << 6 | offset >> 5 & 0x3F
    low = (offset >> 1 & 0xF) << 1 | offset >> 11 & 1
    return r_type(0x63, BRANCH[name][0], high, low, rs1, rs2)


def encode_jal(rd: int, offset: int) -> int:
    """imm[20|10:1|11|19:12] rd opcode."""
    high = (offset >> 20 & 1) << 19 | (offset >> 1 & 0x3FF) << 9 | (offset >> 11 & 1) << 8
    return (high | offset >> 12 & 0xFF) << 12 | rd << 7 | 0x6F


@dataclass
class Step:
    """One instruction: its word and what it does to a machine at its pc."""

    word: int
    act: Callable[["Machine"], None]


@dataclass
class Machine:
    """Registers, pc and one range of memory."""

    base: int
    memory: bytearray
    pc: int = 0
    x: list[int] = field(default_factory=lambda: [0] * 32)
    retired: int = 0

    def set(self, rd: int, value: int) -> None:
        """Write a register; x0 stays 0."""
        if rd:
            self.x[rd] = value & M

    def load(self, address: int, size: int) -> int:
        """Little-endian, zero-extended."""
        at = address - self.base
        assert 0 <= at <= len(self.memory) - size
        return int.from_bytes(self.memory[at : at + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Little-endian."""
        at = address - self.base
        assert 0 <= at <= len(self.memory) - size
        self.memory[at : at + size] = (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")

    def run(self, start: int, steps: list[Step]) -> None:
        """Execute from `start` until the pc stands behind the last step."""
        self.pc, end = start, start + 4 * len(steps)
        while self.pc != end:
            at = self.pc
            self.pc = at + 4
            steps[(at - start) // 4].act(self)
            self.retired += 1


def register(name: str, rd: int, rs1: int, rs2: int) -> Step:
    """rd = rs1 op rs2."""
    funct7, funct3, meaning = REGISTER[name]
    word = r_type(0x33, funct3, funct7, rd, rs1, rs2)
    return Step(word, lambda m: m.set(rd, meaning(m.x[rs1], m.x[rs2])))


def unary(name: str, rd: int, rs1: int) -> Step:
    """rd = op rs1."""
    funct12, funct3, opcode, meaning = UNARY[name]
    word = i_type(opcode, funct3, rd, rs1, funct12)
    return Step(word, lambda m: m.set(rd, meaning(m.x[rs1])))


def immediate(name: str, rd: int, rs1: int, imm: int) -> Step:
    """rd = rs1 op imm, -2048 to 2047."""
    funct3, meaning = IMMEDIATE[name]
    word = i_type(0x13, funct3, rd, rs1, imm)
    return Step(word, lambda m: m.set(rd, meaning(m.x[rs1], imm & M)))


def shift(name: str, rd: int, rs1: int, amount: int) -> Step:
    """rd = rs1 shifted by a constant."""
    funct7, funct3, meaning = SHIFT[name]
    word = r_type(0x13, funct3, funct7, rd, rs1, amount)
    return Step(word, lambda m: m.set(rd, meaning(m.x[rs1], amount)))


def upper(name: str, rd: int, imm: int) -> Step:
    """lui, auipc: imm is the upper 20 bits."""
    word = imm << 12 | rd << 7 | (0x37 if name == "lui" else 0x17)
    if name == "lui":
        return Step(word, lambda m: m.set(rd, imm << 12))
    return Step(word, lambda m: m.set(rd, m.pc - 4 + (imm << 12)))


def load(name: str, rd: int, rs1: int, imm: int) -> Step:
    """rd = memory at rs1 + imm."""
    funct3, size, extends = LOAD[name]

    def act(m: Machine) -> None:
        value = m.load((m.x[rs1] + imm) & M, size)
        m.set(rd, extend(value, 8 * size) if extends else value)

    return Step(i_type(0x03, funct3, rd, rs1, imm), act)


def store(name: str, rs2: int, rs1: int, imm: int) -> Step:
    """Memory at rs1 + imm = rs2."""
    size = STORE[name][1]
    word = encode_store(name, rs2, rs1, imm)
    return Step(word, lambda m: m.store((m.x[rs1] + imm) & M, size, m.x[rs2]))


def atomic(name: str, rd: int, rs1: int, rs2: int) -> Step:
    """rd = memory at rs1, which becomes memory op rs2."""
    funct5, meaning = ATOMIC[name]

    def act(m: Machine) -> None:
        address, operand = m.x[rs1], m.x[rs2]
        old = m.load(address, 4)
        m.store(address, 4, meaning(old, operand))
        m.set(rd, old)

    return Step(r_type(0x2F, 2, funct5 << 2, rd, rs1, rs2), act)


def branch(name: str, rs1: int, rs2: int, offset: int) -> Step:
    """pc += offset when the condition holds."""
    taken = BRANCH[name][1]

    def act(m: Machine) -> None:
        if taken(m.x[rs1], m.x[rs2]):
            m.pc += offset - 4

    return Step(encode_branch(name, rs1, rs2, offset), act)


def jal(rd: int, offset: int) -> Step:
    """rd = pc + 4; pc += offset."""

    def act(m: Machine) -> None:
        m.set(rd, m.pc)
        m.pc += offset - 4

    return Step(encode_jal(rd, offset), act)


def jalr(rd: int, rs1: int, imm: int) -> Step:
    """pc = (rs1 + imm) with bit 0 cleared; rd = old pc + 4."""

    def act(m: Machine) -> None:
        target = (m.x[rs1] + imm) & M & ~1
        m.set(rd, m.pc)
        m.pc = target

    return Step(i_type(0x67, 0, rd, rs1, imm), act)
