"""F and Zfh: floating point of single and half precision (RISC-V unprivileged ISA, both chapters).

The Blackhole text says that the cores have some of these instructions, half precision as FP16 or
BF16 by cfg0, but not which; none is modelled, all are declared by name.
"""

from typing import Any, ClassVar

from bhemu.bits import bits
from bhemu.riscv.formats import FromImmediate, NotModelled, Store
from bhemu.riscv.insn import form


class FloatLoad(NotModelled, abstract=True, opcode=0x07):
    """fd from rs1 + imm."""

    imm = FromImmediate.imm


class FloatStore(NotModelled, abstract=True, opcode=0x27):
    """fs2 to rs1 + imm."""

    imm = Store.imm


class Fused(NotModelled, abstract=True):
    """A product and a sum, rounded once."""

    fmt = bits(26, 25)


class Float(NotModelled, abstract=True, opcode=0x53):
    """fd or rd from registers."""

    kind, fmt = bits(31, 27), bits(26, 25)


class SignOf(Float, abstract=True):
    """fd from fs1, its sign from fs2 too; `same` names it where both are one register."""

    same: ClassVar[str]

    @classmethod
    def spelled(cls, word: int) -> str | None:
        """Mnemonic and operands, the short form of one register."""
        one = cls.rs1.get(word) == cls.rs2.get(word)
        return f"{cls.same} fd,fs1" if one else super().spelled(word)


# Base class, spelling with the letters of the precision (f, and x for bits), fixed fields, meaning.
_TABLE: tuple[tuple[type[NotModelled], str, dict[str, Any], str], ...] = (
    (Fused, "fmadd.{f} fd,fs1,fs2,fs3,rm", {"opcode": 0x43}, "fd = fs1 * fs2 + fs3."),
    (Fused, "fmsub.{f} fd,fs1,fs2,fs3,rm", {"opcode": 0x47}, "fd = fs1 * fs2 - fs3."),
    (Fused, "fnmsub.{f} fd,fs1,fs2,fs3,rm", {"opcode": 0x4B}, "fd = -(fs1 * fs2) + fs3."),
    (Fused, "fnmadd.{f} fd,fs1,fs2,fs3,rm", {"opcode": 0x4F}, "fd = -(fs1 * fs2) - fs3."),
    (Float, "fadd.{f} fd,fs1,fs2,rm", {"kind": 0x00}, "fd = fs1 + fs2."),
    (Float, "fsub.{f} fd,fs1,fs2,rm", {"kind": 0x01}, "fd = fs1 - fs2."),
    (Float, "fmul.{f} fd,fs1,fs2,rm", {"kind": 0x02}, "fd = fs1 * fs2."),
    (Float, "fdiv.{f} fd,fs1,fs2,rm", {"kind": 0x03}, "fd = fs1 / fs2."),
    (Float, "fsqrt.{f} fd,fs1,rm", {"kind": 0x0B, "rs2": 0}, "fd = square root of fs1."),
    (SignOf, "fsgnj.{f} fd,fs1,fs2", {"kind": 4, "funct3": 0}, "fd = fs1 with the sign of fs2."),
    (SignOf, "fsgnjn.{f} fd,fs1,fs2", {"kind": 4, "funct3": 1}, "fd = fs1, signed unlike fs2."),
    (SignOf, "fsgnjx.{f} fd,fs1,fs2", {"kind": 4, "funct3": 2}, "fd = fs1, both signs multiplied."),
    (Float, "fmin.{f} fd,fs1,fs2", {"kind": 0x05, "funct3": 0}, "fd = the smaller."),
    (Float, "fmax.{f} fd,fs1,fs2", {"kind": 0x05, "funct3": 1}, "fd = the larger."),
    (Float, "fle.{f} rd,fs1,fs2", {"kind": 0x14, "funct3": 0}, "rd = 1 when fs1 <= fs2."),
    (Float, "flt.{f} rd,fs1,fs2", {"kind": 0x14, "funct3": 1}, "rd = 1 when fs1 < fs2."),
    (Float, "feq.{f} rd,fs1,fs2", {"kind": 0x14, "funct3": 2}, "rd = 1 when fs1 == fs2."),
    (Float, "fcvt.w.{f} rd,fs1,rm", {"kind": 0x18, "rs2": 0}, "rd = fs1 as a signed integer."),
    (Float, "fcvt.wu.{f} rd,fs1,rm", {"kind": 0x18, "rs2": 1}, "rd = fs1 as an unsigned integer."),
    (Float, "fcvt.{f}.w fd,rs1,rm", {"kind": 0x1A, "rs2": 0}, "fd = rs1, signed."),
    (Float, "fcvt.{f}.wu fd,rs1,rm", {"kind": 0x1A, "rs2": 1}, "fd = rs1, unsigned."),
    (Float, "fmv.x.{x} rd,fs1", {"kind": 0x1C, "rs2": 0, "funct3": 0}, "rd = bits of fs1."),
    (Float, "fclass.{f} rd,fs1", {"kind": 0x1C, "rs2": 0, "funct3": 1}, "rd = class of fs1."),
    (Float, "fmv.{x}.x fd,rs1", {"kind": 0x1E, "rs2": 0, "funct3": 0}, "fd = bits of rs1."),
)  # fmt: skip
_SAME = {"fsgnj": "fmv", "fsgnjn": "fneg", "fsgnjx": "fabs"}
SINGLE, HALF = 0, 2


def _declare(base: type[NotModelled], spelling: str, fixed: dict[str, Any], meaning: str) -> None:
    name, _, text = spelling.partition(" ")
    first, _, rest = name.partition(".")
    same = f"{_SAME[first]}.{rest}" if first in _SAME else ""
    title = name.upper().replace(".", "_")
    globals()[title] = base.declare(title, meaning, text=text, same=same, **fixed)


for _letters, _fmt, _funct3, _memory in (
    ({"f": "s", "x": "w"}, SINGLE, 2, "word"),
    ({"f": "h", "x": "h"}, HALF, 1, "half word"),
):
    _declare(
        FloatLoad, "fl{x} fd,imm(rs1)".format(**_letters), {"funct3": _funct3}, f"fd = {_memory}."
    )
    _declare(
        FloatStore, "fs{x} fs2,store(rs1)".format(**_letters), {"funct3": _funct3}, "Store fs2."
    )
    for _base, _spelling, _fixed, _meaning in _TABLE:
        _declare(_base, _spelling.format(**_letters), {**_fixed, "fmt": _fmt}, _meaning)


class FCVT_S_H(Float, kind=0x08, fmt=SINGLE, rs2=2):
    """fd = fs1 in single precision, which is exact."""

    text = "fd,fs1,rm"
    forms = (form("fcvt.s.h fd,fs1", funct3=0),)


class FCVT_H_S(Float, kind=0x08, fmt=HALF, rs2=0):
    """fd = fs1 in half precision."""

    text = "fd,fs1,rm"
