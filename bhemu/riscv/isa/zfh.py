"""Zfh: half-precision floating point (RISC-V unprivileged ISA, chapter "Zfh").

By the Blackhole text the cores have some of these instructions, on FP16 or BF16 as cfg0 says; none
is modelled, all are declared by name.
"""

from bhemu.riscv.insn import form
from bhemu.riscv.isa.f import (
    Compared,
    Float,
    FloatLoad,
    FloatStore,
    FromInteger,
    FromOne,
    Fused,
    Moved,
    Rounded,
    SignOf,
    ToInteger,
)

HALF = 2


class FLH(FloatLoad, funct3=1):
    """fd = half word."""


class FSH(FloatStore, funct3=1):
    """Store fs2."""


class FMADD_H(Fused, opcode=0x43, fmt=HALF):
    """fd = fs1 * fs2 + fs3."""


class FMSUB_H(Fused, opcode=0x47, fmt=HALF):
    """fd = fs1 * fs2 - fs3."""


class FNMSUB_H(Fused, opcode=0x4B, fmt=HALF):
    """fd = -(fs1 * fs2) + fs3."""


class FNMADD_H(Fused, opcode=0x4F, fmt=HALF):
    """fd = -(fs1 * fs2) - fs3."""


class FADD_H(Rounded, funct7=0x02):
    """fd = fs1 + fs2."""


class FSUB_H(Rounded, funct7=0x06):
    """fd = fs1 - fs2."""


class FMUL_H(Rounded, funct7=0x0A):
    """fd = fs1 * fs2."""


class FDIV_H(Rounded, funct7=0x0E):
    """fd = fs1 / fs2."""


class FSQRT_H(FromOne, funct7=0x2E, rs2=0):
    """fd = square root of fs1."""


class FSGNJ_H(SignOf, funct7=0x12, funct3=0):
    """fd = fs1 with the sign of fs2."""

    same = "fmv.h"


class FSGNJN_H(SignOf, funct7=0x12, funct3=1):
    """fd = fs1 with the other sign than fs2."""

    same = "fneg.h"


class FSGNJX_H(SignOf, funct7=0x12, funct3=2):
    """fd = fs1 with the product of both signs."""

    same = "fabs.h"


class FMIN_H(Float, funct7=0x16, funct3=0):
    """fd = the smaller."""


class FMAX_H(Float, funct7=0x16, funct3=1):
    """fd = the larger."""


class FCVT_S_H(FromOne, funct7=0x20, rs2=2):
    """fd = fs1 in single precision, which is exact."""

    forms = (form("fcvt.s.h fd,fs1", funct3=0),)


class FCVT_H_S(FromOne, funct7=0x22, rs2=0):
    """fd = fs1 in half precision."""


class FLE_H(Compared, funct7=0x52, funct3=0):
    """rd = 1 when fs1 <= fs2."""


class FLT_H(Compared, funct7=0x52, funct3=1):
    """rd = 1 when fs1 < fs2."""


class FEQ_H(Compared, funct7=0x52, funct3=2):
    """rd = 1 when fs1 == fs2."""


class FCVT_W_H(ToInteger, funct7=0x62, rs2=0):
    """rd = fs1 as a signed integer."""


class FCVT_WU_H(ToInteger, funct7=0x62, rs2=1):
    """rd = fs1 as an unsigned integer."""


class FCVT_H_W(FromInteger, funct7=0x6A, rs2=0):
    """fd = rs1, signed."""


class FCVT_H_WU(FromInteger, funct7=0x6A, rs2=1):
    """fd = rs1, unsigned."""


class FMV_X_H(Moved, funct7=0x72, rs2=0, funct3=0):
    """rd = bits of fs1."""


class FCLASS_H(Moved, funct7=0x72, rs2=0, funct3=1):
    """rd = class of fs1."""


class FMV_H_X(Float, funct7=0x7A, rs2=0, funct3=0):
    """fd = bits of rs1."""

    text = "fd,rs1"
