"""RV32I and Zifencei (RISC-V unprivileged ISA); mret and wfi of the privileged ISA by name."""

from typing import Any

from bhemu.riscv import formats
from bhemu.riscv.insn import MASK, SIGN, form

LUI = formats.Upper.declare("LUI", "rd = upper immediate.", lambda pc, b: b, opcode=0x37)
AUIPC = formats.Upper.declare(
    "AUIPC", "rd = pc + upper immediate.", lambda pc, b: (pc + b) & MASK, opcode=0x17
)


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


BLTU = formats.Branch.declare("BLTU", "Branch when rs1 < rs2.", lambda a, b: a < b, funct3=6)
BGEU = formats.Branch.declare("BGEU", "Branch when rs1 >= rs2.", lambda a, b: a >= b, funct3=7)
LB = formats.Load.declare(
    "LB", "rd = byte with its sign.", lambda value: ((value ^ 0x80) - 0x80) & MASK, funct3=0, size=1
)


class LH(formats.Load, funct3=1):
    """rd = 16 bits with their sign."""

    size = 2

    def execute(value: Any) -> Any:
        return ((value ^ 0x8000) - 0x8000) & MASK


LW = formats.Load.declare("LW", "rd = word.", lambda value: value, funct3=2, size=4)
LBU = formats.Load.declare("LBU", "rd = byte.", lambda value: value, funct3=4, size=1)
LHU = formats.Load.declare("LHU", "rd = 16 bits.", lambda value: value, funct3=5, size=2)
SB = formats.Store.declare("SB", "Store a byte.", funct3=0, size=1)
SH = formats.Store.declare("SH", "Store 16 bits.", funct3=1, size=2)
SW = formats.Store.declare("SW", "Store a word.", funct3=2, size=4)
ADD = formats.Register.declare(
    "ADD", "rd = rs1 + rs2.", lambda a, b: (a + b) & MASK, funct7=0x00, funct3=0
)


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


XOR = formats.Register.declare("XOR", "rd = rs1 ^ rs2.", lambda a, b: a ^ b, funct7=0x00, funct3=4)


class SRL(formats.Register, funct7=0x00, funct3=5):
    """rd = rs1 shifted right by the low 5 bits of rs2, zeros from the left."""

    def execute(a: Any, b: Any) -> Any:
        return a >> (b & 31)


class SRA(formats.Register, funct7=0x20, funct3=5):
    """rd = rs1 shifted right by the low 5 bits of rs2, signs from the left."""

    def execute(a: Any, b: Any) -> Any:
        return ((a ^ SIGN) - SIGN) >> (b & 31) & MASK


OR = formats.Register.declare("OR", "rd = rs1 | rs2.", lambda a, b: a | b, funct7=0x00, funct3=6)
AND = formats.Register.declare("AND", "rd = rs1 & rs2.", lambda a, b: a & b, funct7=0x00, funct3=7)


class ADDI(formats.RegisterImmediate, funct3=0):
    """rd = rs1 + imm."""

    forms = (form("nop", imm=0, rs1=0, rd=0), form("li rd,imm", rs1=0), form("mv rd,rs1", imm=0))
    execute = ADD.execute


SLTI = formats.RegisterImmediate.declare(
    "SLTI", "rd = 1 when rs1 < imm, both signed, else 0.", SLT.execute, funct3=2
)


class SLTIU(formats.RegisterImmediate, funct3=3):
    """rd = 1 when rs1 < imm, else 0."""

    forms = (form("seqz rd,rs1", imm=1),)
    execute = SLTU.execute


XORI = formats.RegisterImmediate.declare(
    "XORI", "rd = rs1 ^ imm.", XOR.execute, funct3=4, forms=(form("not rd,rs1", imm=-1),)
)
ORI = formats.RegisterImmediate.declare("ORI", "rd = rs1 | imm.", OR.execute, funct3=6)
ANDI = formats.RegisterImmediate.declare(
    "ANDI", "rd = rs1 & imm.", AND.execute, funct3=7, forms=(form("zext.b rd,rs1", imm=0xFF),)
)
SLLI = formats.Shift.declare("SLLI", "rd = rs1 shifted left.", SLL.execute, funct7=0x00, funct3=1)
SRLI = formats.Shift.declare(
    "SRLI", "rd = rs1 shifted right, zeros from the left.", SRL.execute, funct7=0x00, funct3=5
)
SRAI = formats.Shift.declare(
    "SRAI", "rd = rs1 shifted right, signs from the left.", SRA.execute, funct7=0x20, funct3=5
)


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


ECALL = formats.System.declare(
    "ECALL", "Environment call: has no meaning on these cores.", imm=0, rs1=0, rd=0
)
EBREAK = formats.System.declare("EBREAK", "The device assert.", imm=1, rs1=0, rd=0)
MRET = formats.System.declare(
    "MRET", "Return from a trap: has no meaning on these cores.", imm=0x302, rs1=0, rd=0
)
WFI = formats.System.declare(
    "WFI", "Wait for an interrupt: has no meaning on these cores.", imm=0x105, rs1=0, rd=0
)
