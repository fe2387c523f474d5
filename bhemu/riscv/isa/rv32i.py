"""RV32I and Zifencei (RISC-V unprivileged ISA); mret and wfi of the privileged ISA by name."""

from typing import Any

from bhemu.riscv import formats
from bhemu.riscv.insn import MASK, SIGN, form


class LUI(formats.Upper, opcode=0x37):
    """rd = upper immediate."""

    def execute(pc: Any, b: Any) -> Any:
        return b


class AUIPC(formats.Upper, opcode=0x17):
    """rd = pc + upper immediate."""

    def execute(pc: Any, b: Any) -> Any:
        return (pc + b) & MASK


class JAL(formats.Jump, opcode=0x6F):
    """Jump by the offset, rd = address of the next instruction."""

    forms = (form("j jump", rd=0), form("jal jump", rd=1))

    def execute(pc: Any, offset: Any) -> Any:
        return (pc + offset) & MASK


class JALR(formats.IndirectJump, opcode=0x67, funct3=0):
    """Jump to rs1 + imm with bit 0 cleared, rd = address of the next instruction."""

    forms = (
        form("ret", imm=0, rs1=1, rd=0),
        form("jr rs1", imm=0, rd=0),
        form("jr imm(rs1)", rd=0),
        form("jalr rs1", imm=0, rd=1),
        form("jalr imm(rs1)", rd=1),
        form("jalr rd,rs1", imm=0),
    )

    def execute(a: Any, offset: Any) -> Any:
        return (a + offset) & MASK & ~1


class BEQ(formats.Branch, funct3=0):
    """Branch when rs1 = rs2."""

    forms = (form("beqz rs1,branch", rs2=0),)

    def execute(a: Any, b: Any) -> Any:
        return a == b


class BNE(formats.Branch, funct3=1):
    """Branch when rs1 and rs2 differ."""

    forms = (form("bnez rs1,branch", rs2=0),)

    def execute(a: Any, b: Any) -> Any:
        return a != b


class BLT(formats.Branch, funct3=4):
    """Branch when rs1 < rs2, both signed."""

    forms = (form("bltz rs1,branch", rs2=0), form("bgtz rs2,branch", rs1=0))

    def execute(a: Any, b: Any) -> Any:
        return a ^ SIGN < b ^ SIGN


class BGE(formats.Branch, funct3=5):
    """Branch when rs1 >= rs2, both signed."""

    forms = (form("blez rs2,branch", rs1=0), form("bgez rs1,branch", rs2=0))

    def execute(a: Any, b: Any) -> Any:
        return a ^ SIGN >= b ^ SIGN


class BLTU(formats.Branch, funct3=6):
    """Branch when rs1 < rs2."""

    def execute(a: Any, b: Any) -> Any:
        return a < b


class BGEU(formats.Branch, funct3=7):
    """Branch when rs1 >= rs2."""

    def execute(a: Any, b: Any) -> Any:
        return a >= b


class LB(formats.Load, funct3=0):
    """rd = byte with its sign."""

    size = 1

    def execute(value: Any) -> Any:
        return ((value ^ 0x80) - 0x80) & MASK


class LH(formats.Load, funct3=1):
    """rd = 16 bits with their sign."""

    size = 2

    def execute(value: Any) -> Any:
        return ((value ^ 0x8000) - 0x8000) & MASK


class LW(formats.Load, funct3=2):
    """rd = word."""

    size = 4

    def execute(value: Any) -> Any:
        return value


class LBU(formats.Load, funct3=4):
    """rd = byte."""

    size = 1

    def execute(value: Any) -> Any:
        return value


class LHU(formats.Load, funct3=5):
    """rd = 16 bits."""

    size = 2

    def execute(value: Any) -> Any:
        return value


class SB(formats.Store, funct3=0):
    """Store a byte."""

    size = 1


class SH(formats.Store, funct3=1):
    """Store 16 bits."""

    size = 2


class SW(formats.Store, funct3=2):
    """Store a word."""

    size = 4


class ADD(formats.Register, funct7=0x00, funct3=0):
    """rd = rs1 + rs2."""

    def execute(a: Any, b: Any) -> Any:
        return (a + b) & MASK


class SUB(formats.Register, funct7=0x20, funct3=0):
    """rd = rs1 - rs2."""

    forms = (form("neg rd,rs2", rs1=0),)

    def execute(a: Any, b: Any) -> Any:
        return (a - b) & MASK


class SLL(formats.Register, funct7=0x00, funct3=1):
    """rd = rs1 shifted left by the low 5 bits of rs2."""

    def execute(a: Any, b: Any) -> Any:
        return (a << (b & 31)) & MASK


class SLT(formats.Register, funct7=0x00, funct3=2):
    """rd = 1 when rs1 < rs2, both signed, else 0."""

    forms = (form("sltz rd,rs1", rs2=0), form("sgtz rd,rs2", rs1=0))

    def execute(a: Any, b: Any) -> Any:
        return 1 if a ^ SIGN < b ^ SIGN else 0


class SLTU(formats.Register, funct7=0x00, funct3=3):
    """rd = 1 when rs1 < rs2, else 0."""

    forms = (form("snez rd,rs2", rs1=0),)

    def execute(a: Any, b: Any) -> Any:
        return 1 if a < b else 0


class XOR(formats.Register, funct7=0x00, funct3=4):
    """rd = rs1 ^ rs2."""

    def execute(a: Any, b: Any) -> Any:
        return a ^ b


class SRL(formats.Register, funct7=0x00, funct3=5):
    """rd = rs1 shifted right by the low 5 bits of rs2, zeros from the left."""

    def execute(a: Any, b: Any) -> Any:
        return a >> (b & 31)


class SRA(formats.Register, funct7=0x20, funct3=5):
    """rd = rs1 shifted right by the low 5 bits of rs2, signs from the left."""

    def execute(a: Any, b: Any) -> Any:
        return ((a ^ SIGN) - SIGN) >> (b & 31) & MASK


class OR(formats.Register, funct7=0x00, funct3=6):
    """rd = rs1 | rs2."""

    def execute(a: Any, b: Any) -> Any:
        return a | b


class AND(formats.Register, funct7=0x00, funct3=7):
    """rd = rs1 & rs2."""

    def execute(a: Any, b: Any) -> Any:
        return a & b


class ADDI(formats.RegisterImmediate, funct3=0):
    """rd = rs1 + imm."""

    forms = (form("nop", imm=0, rs1=0, rd=0), form("li rd,imm", rs1=0), form("mv rd,rs1", imm=0))
    execute = ADD.execute


class SLTI(formats.RegisterImmediate, funct3=2):
    """rd = 1 when rs1 < imm, both signed, else 0."""

    execute = SLT.execute


class SLTIU(formats.RegisterImmediate, funct3=3):
    """rd = 1 when rs1 < imm, else 0."""

    forms = (form("seqz rd,rs1", imm=1),)
    execute = SLTU.execute


class XORI(formats.RegisterImmediate, funct3=4):
    """rd = rs1 ^ imm."""

    forms = (form("not rd,rs1", imm=-1),)
    execute = XOR.execute


class ORI(formats.RegisterImmediate, funct3=6):
    """rd = rs1 | imm."""

    execute = OR.execute


class ANDI(formats.RegisterImmediate, funct3=7):
    """rd = rs1 & imm."""

    forms = (form("zext.b rd,rs1", imm=0xFF),)
    execute = AND.execute


class SLLI(formats.Shift, funct7=0x00, funct3=1):
    """rd = rs1 shifted left."""

    execute = SLL.execute


class SRLI(formats.Shift, funct7=0x00, funct3=5):
    """rd = rs1 shifted right, zeros from the left."""

    execute = SRL.execute


class SRAI(formats.Shift, funct7=0x20, funct3=5):
    """rd = rs1 shifted right, signs from the left."""

    execute = SRA.execute


class FENCE(formats.Fence, funct3=0):
    """Order of memory accesses; reserved fields are not looked at, as the ISA asks."""

    forms = (
        form("fence", imm=0x0FF, rs1=0, rd=0),
        form("fence.tso", imm=-0x7CD, rs1=0, rd=0),
        form("pause", imm=0x010, rs1=0, rd=0),
        form("fence pred,succ", mode=0, rs1=0, rd=0),
    )


class FENCE_I(formats.Fence, funct3=1):
    """Order of stores and fetches: nothing to do, as a core sees its own stores at once."""

    forms = (form("fence.i", imm=0, rs1=0, rd=0),)


class ECALL(formats.System, imm=0, rs1=0, rd=0):
    """Environment call: has no meaning on these cores."""


class EBREAK(formats.System, imm=1, rs1=0, rd=0):
    """The device assert."""


class MRET(formats.System, imm=0x302, rs1=0, rd=0):
    """Return from a trap: has no meaning on these cores."""


class WFI(formats.System, imm=0x105, rs1=0, rd=0):
    """Wait for an interrupt: has no meaning on these cores."""
