"""The formats of RISC-V words: operands, and what `execute` of an instruction takes and gives.

Sources: RISC-V unprivileged ISA, chapter "RV32I", base instruction formats; Zaamo, Zicsr.
"""

from typing import ClassVar

from bhemu.bits import bits
from bhemu.riscv.insn import MASK, Immediate, Instruction

I_IMM = Immediate("imm", ((31, 20, 0),))
S_IMM = Immediate("imm", ((31, 25, 5), (11, 7, 0)))
B_IMM = Immediate("offset", ((31, 31, 12), (7, 7, 11), (30, 25, 5), (11, 8, 1)))
U_IMM = Immediate("imm", ((31, 12, 12),), unsigned=True)
J_IMM = Immediate("offset", ((31, 31, 20), (19, 12, 12), (20, 20, 11), (30, 21, 1)))


class Register(Instruction, abstract=True, opcode=0x33):
    """Register to register: execute(a, b) gives rd from rs1 and rs2."""

    text = "rd,rs1,rs2"
    arguments = "a, b"

    @classmethod
    def assemble(cls, rd: int, rs1: int, rs2: int) -> int:
        """The word."""
        return cls.match | rd << 7 | rs1 << 15 | rs2 << 20


class Unary(Instruction, abstract=True):
    """One register to another: execute(a) gives rd from rs1."""

    text = "rd,rs1"
    arguments = "a"

    @classmethod
    def assemble(cls, rd: int, rs1: int) -> int:
        """The word."""
        return cls.match | rd << 7 | rs1 << 15


class FromImmediate(Instruction, abstract=True):
    """rd, rs1 and a 12-bit immediate."""

    imm = I_IMM

    @classmethod
    def assemble(cls, rd: int, rs1: int, imm: int = 0) -> int:
        """The word."""
        return cls.imm.put(cls.match | rd << 7 | rs1 << 15, imm)


class RegisterImmediate(FromImmediate, abstract=True, opcode=0x13):
    """Register and 12-bit immediate: execute(a, b) gives rd; b is the immediate in 32 bits."""

    text = "rd,rs1,imm"
    arguments = f"a, ({I_IMM.expression()}) & {MASK}"


class Shift(Instruction, abstract=True, opcode=0x13):
    """Register and constant amount: execute(a, b) gives rd; b is the amount, 0 to 31."""

    text = "rd,rs1,shamt"
    arguments = "a, word >> 20 & 31"

    @classmethod
    def assemble(cls, rd: int, rs1: int, shamt: int) -> int:
        """The word."""
        return cls.match | rd << 7 | rs1 << 15 | (shamt & 31) << 20


class Upper(Instruction, abstract=True):
    """Upper immediate: execute(pc, b) gives rd; b is the immediate, low 12 bits clear."""

    imm = U_IMM
    text = "rd,upper"
    arguments = f"pc, {imm.expression()}"

    @classmethod
    def assemble(cls, rd: int, value: int) -> int:
        """The word; the low 12 bits of `value` have no place in it."""
        return cls.imm.put(cls.match | rd << 7, value)


class Branch(Instruction, abstract=True, opcode=0x63):
    """Conditional branch: execute(a, b) tells whether it is taken."""

    offset = B_IMM
    text = "rs1,rs2,branch"
    arguments = "a, b"

    @classmethod
    def assemble(cls, rs1: int, rs2: int, offset: int) -> int:
        """The word; offset in bytes from here."""
        return cls.offset.put(cls.match | rs1 << 15 | rs2 << 20, offset)


class Jump(Instruction, abstract=True):
    """Jump by an offset, rd = the next pc: execute(pc, offset) gives the target."""

    offset = J_IMM
    text = "rd,jump"
    arguments = f"pc, {offset.expression()}"

    @classmethod
    def assemble(cls, rd: int, offset: int) -> int:
        """The word; offset in bytes from here."""
        return cls.offset.put(cls.match | rd << 7, offset)


class IndirectJump(FromImmediate, abstract=True):
    """Jump to a register, rd = the next pc: execute(a, offset) gives the target."""

    text = "rd,imm(rs1)"
    arguments = f"a, {I_IMM.expression()}"


class Load(FromImmediate, abstract=True, opcode=0x03):
    """Load `size` bytes from rs1 + imm: execute(value) gives rd from the bytes."""

    size: ClassVar[int]
    text = "rd,imm(rs1)"

    @classmethod
    def loaded(cls, value: int) -> int:
        """`execute` of the low bytes of `value`, as plain Python."""
        assert cls.execute is not None
        return int(cls.execute(value & (1 << 8 * cls.size) - 1))


class Store(Instruction, abstract=True, opcode=0x23):
    """Store the low `size` bytes of rs2 to rs1 + imm."""

    imm = S_IMM
    size: ClassVar[int]
    text = "rs2,store(rs1)"

    @classmethod
    def assemble(cls, rs2: int, rs1: int, imm: int = 0) -> int:
        """The word."""
        return cls.imm.put(cls.match | rs1 << 15 | rs2 << 20, imm)


class Atomic(Instruction, abstract=True, opcode=0x2F, funct3=2):
    """Read, change and write the word at rs1, rd = what it was: execute(old, b), b from rs2."""

    funct5 = bits(31, 27)
    ordering = bits(26, 25)
    text = "rd,rs2,(rs1)"

    @classmethod
    def changed(cls, old: int, operand: int) -> int:
        """`execute`, as plain Python."""
        assert cls.execute is not None
        return int(cls.execute(old, operand))

    @classmethod
    def assemble(cls, rd: int, rs2: int, rs1: int, ordering: int = 0) -> int:
        """The word."""
        return cls.ordering.put(cls.match | rd << 7 | rs1 << 15 | rs2 << 20, ordering)


class Csr(Instruction, abstract=True, opcode=0x73):
    """Read and change a CSR, rd = what it was: execute(old, b) gives the new value, b from rs1.

    `immediate`: b is the rs1 field itself.  `always`: it writes whatever the rs1 field is; else a
    field of 0 only reads.
    """

    csr = bits(31, 20)
    immediate: ClassVar[bool] = False
    always: ClassVar[bool] = False
    text = "rd,csr,rs1"

    @classmethod
    def assemble(cls, rd: int, csr: int, rs1: int = 0) -> int:
        """The word; `rs1` is the register's number or the 5-bit immediate."""
        return cls.match | rd << 7 | rs1 << 15 | csr << 20

    @classmethod
    def writes(cls, source: int) -> bool:
        """Whether it writes its CSR with `source` in the rs1 field."""
        return cls.always or source != 0


class Fence(Instruction, abstract=True, opcode=0x0F):
    """Order of memory accesses, which is that of the program; drops the lines of the L0 cache."""

    imm = I_IMM
    mode = bits(31, 28)


class System(Instruction, abstract=True, opcode=0x73, funct3=0):
    """The whole word is fixed; what it does is the engine's."""

    imm = I_IMM
    text = ""


class NotModelled(Instruction, abstract=True):
    """An instruction that the cores have, or some of them, and that is not modelled here."""

    on_trisc2_only: ClassVar[bool] = False


class Pushed(Instruction, abstract=True):
    """A word that is no RISC-V instruction: its low two bits are not both set."""

    @classmethod
    def pushed(cls, word: int) -> int:
        """The word that the thread gets."""
        raise NotImplementedError
