"""F: single-precision floating point (RISC-V unprivileged ISA, chapter "F").

By the Blackhole text the cores have some of these instructions, without saying here which; none is
modelled, all are declared by name.
"""

from typing import ClassVar

from bhemu.bits import bits
from bhemu.riscv.formats import FromImmediate, NotModelled, Store

SINGLE = 0


class FloatLoad(NotModelled, abstract=True, opcode=0x07):
    """fd from rs1 + imm."""

    imm = FromImmediate.imm
    text = "fd,imm(rs1)"


class FloatStore(NotModelled, abstract=True, opcode=0x27):
    """fs2 to rs1 + imm."""

    imm = Store.imm
    text = "fs2,store(rs1)"


class Fused(NotModelled, abstract=True):
    """A product and a sum, rounded once."""

    fmt = bits(26, 25)
    text = "fd,fs1,fs2,fs3,rm"


class Float(NotModelled, abstract=True, opcode=0x53):
    """fd from fs1 and fs2, without rounding."""

    text = "fd,fs1,fs2"


class Rounded(Float, abstract=True):
    """fd from fs1 and fs2, rounded as the word or fcsr says."""

    text = "fd,fs1,fs2,rm"


class FromOne(Float, abstract=True):
    """fd from fs1 alone, rounded."""

    text = "fd,fs1,rm"


class ToInteger(Float, abstract=True):
    """rd from fs1, rounded."""

    text = "rd,fs1,rm"


class FromInteger(Float, abstract=True):
    """fd from rs1, rounded."""

    text = "fd,rs1,rm"


class SignOf(Float, abstract=True):
    """fd from fs1, its sign from fs2 too; `same` names it where both are one register."""

    same: ClassVar[str]

    @classmethod
    def spelled(cls, word: int) -> str | None:
        """Mnemonic and operands, the short form of one register."""
        one = cls.rs1.get(word) == cls.rs2.get(word)
        return f"{cls.same} fd,fs1" if one else super().spelled(word)


class Compared(Float, abstract=True):
    """rd from fs1 and fs2."""

    text = "rd,fs1,fs2"


class Moved(Float, abstract=True):
    """Bits between the register files, or rd from fs1."""

    text = "rd,fs1"


class FLW(FloatLoad, funct3=2):
    """fd = word."""


class FSW(FloatStore, funct3=2):
    """Store fs2."""


class FMADD_S(Fused, opcode=0x43, fmt=SINGLE):
    """fd = fs1 * fs2 + fs3."""


class FMSUB_S(Fused, opcode=0x47, fmt=SINGLE):
    """fd = fs1 * fs2 - fs3."""


class FNMSUB_S(Fused, opcode=0x4B, fmt=SINGLE):
    """fd = -(fs1 * fs2) + fs3."""


class FNMADD_S(Fused, opcode=0x4F, fmt=SINGLE):
    """fd = -(fs1 * fs2) - fs3."""


class FADD_S(Rounded, funct7=0x00):
    """fd = fs1 + fs2."""


class FSUB_S(Rounded, funct7=0x04):
    """fd = fs1 - fs2."""


class FMUL_S(Rounded, funct7=0x08):
    """fd = fs1 * fs2."""


class FDIV_S(Rounded, funct7=0x0C):
    """fd = fs1 / fs2."""


class FSQRT_S(FromOne, funct7=0x2C, rs2=0):
    """fd = square root of fs1."""


class FSGNJ_S(SignOf, funct7=0x10, funct3=0):
    """fd = fs1 with the sign of fs2."""

    same = "fmv.s"


class FSGNJN_S(SignOf, funct7=0x10, funct3=1):
    """fd = fs1 with the other sign than fs2."""

    same = "fneg.s"


class FSGNJX_S(SignOf, funct7=0x10, funct3=2):
    """fd = fs1 with the product of both signs."""

    same = "fabs.s"


class FMIN_S(Float, funct7=0x14, funct3=0):
    """fd = the smaller."""


class FMAX_S(Float, funct7=0x14, funct3=1):
    """fd = the larger."""


class FLE_S(Compared, funct7=0x50, funct3=0):
    """rd = 1 when fs1 <= fs2."""


class FLT_S(Compared, funct7=0x50, funct3=1):
    """rd = 1 when fs1 < fs2."""


class FEQ_S(Compared, funct7=0x50, funct3=2):
    """rd = 1 when fs1 == fs2."""


class FCVT_W_S(ToInteger, funct7=0x60, rs2=0):
    """rd = fs1 as a signed integer."""


class FCVT_WU_S(ToInteger, funct7=0x60, rs2=1):
    """rd = fs1 as an unsigned integer."""


class FCVT_S_W(FromInteger, funct7=0x68, rs2=0):
    """fd = rs1, signed."""


class FCVT_S_WU(FromInteger, funct7=0x68, rs2=1):
    """fd = rs1, unsigned."""


class FMV_X_W(Moved, funct7=0x70, rs2=0, funct3=0):
    """rd = bits of fs1."""


class FCLASS_S(Moved, funct7=0x70, rs2=0, funct3=1):
    """rd = class of fs1."""


class FMV_W_X(Float, funct7=0x78, rs2=0, funct3=0):
    """fd = bits of rs1."""

    text = "fd,rs1"
