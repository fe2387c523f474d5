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

    order = "rd rs1 rs2"
    encoding = "funct7 funct3"
    text = "rd,rs1,rs2"
    arguments = "a, b"


class Unary(Instruction, abstract=True, opcode=0x13):
    """One register to another: execute(a) gives rd from rs1."""

    order = "rd rs1"
    encoding = "funct7 rs2 funct3"
    parameters = "a"
    text = "rd,rs1"
    arguments = "a"


class FromImmediate(Instruction, abstract=True):
    """rd, rs1 and a 12-bit immediate."""

    order = "rd rs1 imm"
    imm = I_IMM


class RegisterImmediate(FromImmediate, abstract=True, opcode=0x13):
    """Register and 12-bit immediate: execute(a, b) gives rd; b is the immediate in 32 bits."""

    encoding = "funct3"
    text = "rd,rs1,imm"
    arguments = f"a, ({I_IMM.expression()}) & {MASK}"


class Shift(Instruction, abstract=True, opcode=0x13):
    """Register and constant amount: execute(a, b) gives rd; b is the amount, 0 to 31."""

    order = "rd rs1 rs2"
    encoding = "funct7 funct3"
    text = "rd,rs1,shamt"
    arguments = "a, word >> 20 & 31"


class Upper(Instruction, abstract=True):
    """Upper immediate: execute(pc, b) gives rd; b is the immediate, low 12 bits clear."""

    order = "rd imm"
    encoding = "opcode"
    parameters = "pc, b"
    imm = U_IMM
    text = "rd,upper"
    arguments = f"pc, {imm.expression()}"


class Branch(Instruction, abstract=True, opcode=0x63):
    """Conditional branch: execute(a, b) tells whether it is taken."""

    order = "rs1 rs2 offset"
    encoding = "funct3"
    offset = B_IMM
    text = "rs1,rs2,branch"
    arguments = "a, b"


class Jump(Instruction, abstract=True):
    """Jump by an offset, rd = the next pc: execute(pc, offset) gives the target."""

    order = "rd offset"
    encoding = "opcode"
    parameters = "pc, offset"
    offset = J_IMM
    text = "rd,jump"
    arguments = f"pc, {offset.expression()}"


class IndirectJump(FromImmediate, abstract=True):
    """Jump to a register, rd = the next pc: execute(a, offset) gives the target."""

    encoding = "opcode funct3"
    parameters = "a, offset"
    text = "rd,imm(rs1)"
    arguments = f"a, {I_IMM.expression()}"


class Load(FromImmediate, abstract=True, opcode=0x03):
    """Load `size` bytes from rs1 + imm: execute(value) gives rd from the bytes."""

    encoding = "funct3"
    parameters = "value"
    size: ClassVar[int]
    text = "rd,imm(rs1)"

    @classmethod
    def loaded(cls, value: int) -> int:
        """`execute` of the low bytes of `value`, as plain Python."""
        assert cls.execute is not None
        return int(cls.execute(value & (1 << 8 * cls.size) - 1))


class Store(Instruction, abstract=True, opcode=0x23):
    """Store the low `size` bytes of rs2 to rs1 + imm."""

    order = "rs2 rs1 imm"
    encoding = "funct3"
    imm = S_IMM
    size: ClassVar[int]
    text = "rs2,store(rs1)"


class Atomic(Instruction, abstract=True, opcode=0x2F, funct3=2):
    """Read, change and write the word at rs1, rd = what it was: execute(old, b), b from rs2."""

    size = 4
    order = "rd rs2 rs1 ordering"
    encoding = "funct5"
    parameters = "old, b"
    funct5 = bits(31, 27)
    ordering = bits(26, 25)
    text = "rd,rs2,(rs1)"

    @classmethod
    def changed(cls, old: int, operand: int) -> int:
        """`execute`, as plain Python."""
        assert cls.execute is not None
        return int(cls.execute(old, operand))


class Csr(Instruction, abstract=True, opcode=0x73):
    """Read and change a CSR, rd = what it was: execute(old, b) gives the new value, b from rs1.

    `immediate`: b is the rs1 field itself.  `always`: it writes whatever the rs1 field is; else a
    field of 0 only reads.
    """

    order = "rd csr rs1"
    encoding = "funct3"
    parameters = "old, b"
    csr = bits(31, 20)
    immediate: ClassVar[bool] = False
    always: ClassVar[bool] = False
    text = "rd,csr,rs1"

    @classmethod
    def writes(cls, source: int) -> bool:
        """Whether it writes its CSR with `source` in the rs1 field."""
        return cls.always or source != 0


class CsrImmediate(Csr, abstract=True):
    """The same with b from the rs1 field itself."""

    immediate = True
    text = "rd,csr,uimm"


class Fence(Instruction, abstract=True, opcode=0x0F):
    """Order of memory accesses, which is that of the program; drops the lines of the L0 cache."""

    encoding = "funct3"
    imm = I_IMM
    mode = bits(31, 28)


class System(Instruction, abstract=True, opcode=0x73, funct3=0):
    """The whole word is fixed; what it does is the engine's."""

    encoding = "imm rs1 rd"
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
