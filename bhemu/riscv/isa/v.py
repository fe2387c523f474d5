"""V: vectors (RISC-V unprivileged ISA, chapter "V").

By the Blackhole text TRISC2 alone has some of these instructions; none is modelled. A class per
format: the instructions' names stand in tables, by the rest of the word.
"""

import functools
from collections.abc import Iterator
from typing import ClassVar

from bhemu.bits import bits
from bhemu.riscv.formats import NotModelled

_WIDTHS = {0: 8, 5: 16, 6: 32, 7: 64}  # funct3 of a load or store: bits of an element
_VV, _FVV, _MVV, _VI, _VX, _FVF, _MVX, _SET = range(8)  # funct3 of an arithmetic word
_ANY = -1

# (funct3, vm or _ANY, suffix, operands), then names with their funct6.
_TWO_SOURCES: tuple[tuple[int, int, str, str, str], ...] = (
    (
        *(_VV, _ANY, ".vv", "vd,vs2,vs1,vm"),
        "vadd 00 vsub 02 vminu 04 vmin 05 vmaxu 06 vmax 07 vand 09 vor 0a vxor 0b vrgather 0c"
        " vrgatherei16 0e vmseq 18 vmsne 19 vmsltu 1a vmslt 1b vmsleu 1c vmsle 1d vsaddu 20 vsadd"
        " 21 vssubu 22 vssub 23 vsll 25 vsmul 27 vsrl 28 vsra 29 vssrl 2a vssra 2b",
    ),
    (
        *(_VX, _ANY, ".vx", "vd,vs2,rs1,vm"),
        "vadd 00 vsub 02 vrsub 03 vminu 04 vmin 05 vmaxu 06 vmax 07 vand 09 vor 0a vxor 0b"
        " vrgather 0c vslideup 0e vslidedown 0f vmseq 18 vmsne 19 vmsltu 1a vmslt 1b vmsleu 1c"
        " vmsle 1d vmsgtu 1e vmsgt 1f vsaddu 20 vsadd 21 vssubu 22 vssub 23 vsll 25 vsmul 27 vsrl"
        " 28 vsra 29 vssrl 2a vssra 2b",
    ),
    (
        *(_VI, _ANY, ".vi", "vd,vs2,simm,vm"),
        "vadd 00 vrsub 03 vand 09 vor 0a vxor 0b vmseq 18 vmsne 19 vmsleu 1c vmsle 1d vmsgtu 1e"
        " vmsgt 1f vsaddu 20 vsadd 21",
    ),
    (
        *(_VI, _ANY, ".vi", "vd,vs2,uimm,vm"),
        "vrgather 0c vslideup 0e vslidedown 0f vsll 25 vsrl 28 vsra 29 vssrl 2a vssra 2b",
    ),
    (_VV, 0, ".vvm", "vd,vs2,vs1,v0", "vadc 10 vmadc 11 vsbc 12 vmsbc 13 vmerge 17"),
    (_VX, 0, ".vxm", "vd,vs2,rs1,v0", "vadc 10 vmadc 11 vsbc 12 vmsbc 13 vmerge 17"),
    (_VI, 0, ".vim", "vd,vs2,simm,v0", "vadc 10 vmadc 11 vmerge 17"),
    (_VV, 1, ".vv", "vd,vs2,vs1", "vmadc 11 vmsbc 13"),
    (_VX, 1, ".vx", "vd,vs2,rs1", "vmadc 11 vmsbc 13"),
    (_VI, 1, ".vi", "vd,vs2,simm", "vmadc 11"),
    (_VV, _ANY, ".wv", "vd,vs2,vs1,vm", "vnsrl 2c vnsra 2d vnclipu 2e vnclip 2f"),
    (_VX, _ANY, ".wx", "vd,vs2,rs1,vm", "vnsrl 2c vnsra 2d vnclipu 2e vnclip 2f"),
    (_VI, _ANY, ".wi", "vd,vs2,uimm,vm", "vnsrl 2c vnsra 2d vnclipu 2e vnclip 2f"),
    (_VV, _ANY, ".vs", "vd,vs2,vs1,vm", "vwredsumu 30 vwredsum 31"),
    (
        *(_MVV, _ANY, ".vs", "vd,vs2,vs1,vm"),
        "vredsum 00 vredand 01 vredor 02 vredxor 03 vredminu 04 vredmin 05 vredmaxu 06 vredmax 07",
    ),
    (
        *(_MVV, _ANY, ".vv", "vd,vs2,vs1,vm"),
        "vaaddu 08 vaadd 09 vasubu 0a vasub 0b vdivu 20 vdiv 21 vremu 22 vrem 23 vmulhu 24 vmul 25"
        " vmulhsu 26 vmulh 27 vwaddu 30 vwadd 31 vwsubu 32 vwsub 33 vwmulu 38 vwmulsu 3a vwmul 3b",
    ),
    (
        *(_MVX, _ANY, ".vx", "vd,vs2,rs1,vm"),
        "vaaddu 08 vaadd 09 vasubu 0a vasub 0b vslide1up 0e vslide1down 0f vdivu 20 vdiv 21 vremu"
        " 22 vrem 23 vmulhu 24 vmul 25 vmulhsu 26 vmulh 27 vwaddu 30 vwadd 31 vwsubu 32 vwsub 33"
        " vwmulu 38 vwmulsu 3a vwmul 3b",
    ),
    (_MVV, _ANY, ".wv", "vd,vs2,vs1,vm", "vwaddu 34 vwadd 35 vwsubu 36 vwsub 37"),
    (_MVX, _ANY, ".wx", "vd,vs2,rs1,vm", "vwaddu 34 vwadd 35 vwsubu 36 vwsub 37"),
    (
        *(_MVV, _ANY, ".vv", "vd,vs1,vs2,vm"),
        "vmadd 29 vnmsub 2b vmacc 2d vnmsac 2f vwmaccu 3c vwmacc 3d vwmaccsu 3f",
    ),
    (
        *(_MVX, _ANY, ".vx", "vd,rs1,vs2,vm"),
        "vmadd 29 vnmsub 2b vmacc 2d vnmsac 2f vwmaccu 3c vwmacc 3d vwmaccus 3e vwmaccsu 3f",
    ),
    (
        *(_MVV, 1, ".mm", "vd,vs2,vs1"),
        "vmandn 18 vmand 19 vmor 1a vmxor 1b vmorn 1c vmnand 1d vmnor 1e vmxnor 1f",
    ),
    (_MVV, 1, ".vm", "vd,vs2,vs1", "vcompress 17"),
    (
        *(_FVV, _ANY, ".vv", "vd,vs2,vs1,vm"),
        "vfadd 00 vfsub 02 vfmin 04 vfmax 06 vfsgnj 08 vfsgnjn 09 vfsgnjx 0a vmfeq 18 vmfle 19"
        " vmflt 1b vmfne 1c vfdiv 20 vfmul 24 vfwadd 30 vfwsub 32 vfwmul 38",
    ),
    (
        *(_FVF, _ANY, ".vf", "vd,vs2,fs1,vm"),
        "vfadd 00 vfsub 02 vfmin 04 vfmax 06 vfsgnj 08 vfsgnjn 09 vfsgnjx 0a vfslide1up 0e"
        " vfslide1down 0f vmfeq 18 vmfle 19 vmflt 1b vmfne 1c vmfgt 1d vmfge 1f vfdiv 20 vfrdiv 21"
        " vfmul 24 vfrsub 27 vfwadd 30 vfwsub 32 vfwmul 38",
    ),
    (
        *(_FVV, _ANY, ".vs", "vd,vs2,vs1,vm"),
        "vfredusum 01 vfredosum 03 vfredmin 05 vfredmax 07 vfwredusum 31 vfwredosum 33",
    ),
    (
        *(_FVV, _ANY, ".vv", "vd,vs1,vs2,vm"),
        "vfmadd 28 vfnmadd 29 vfmsub 2a vfnmsub 2b vfmacc 2c vfnmacc 2d vfmsac 2e vfnmsac 2f"
        " vfwmacc 3c vfwnmacc 3d vfwmsac 3e vfwnmsac 3f",
    ),
    (
        *(_FVF, _ANY, ".vf", "vd,fs1,vs2,vm"),
        "vfmadd 28 vfnmadd 29 vfmsub 2a vfnmsub 2b vfmacc 2c vfnmacc 2d vfmsac 2e vfnmsac 2f"
        " vfwmacc 3c vfwnmacc 3d vfwmsac 3e vfwnmsac 3f",
    ),
    (_FVV, _ANY, ".wv", "vd,vs2,vs1,vm", "vfwadd 34 vfwsub 36"),
    (_FVF, _ANY, ".wf", "vd,vs2,fs1,vm", "vfwadd 34 vfwsub 36"),
    (_FVF, 0, ".vfm", "vd,vs2,fs1,v0", "vfmerge 17"),
)
# (funct3, funct6, vm or _ANY, operands), then names with the value of the vs1 field.
_ONE_SOURCE: tuple[tuple[int, int, int, str, str], ...] = (
    (_MVV, 0x10, 1, "rd,vs2", "vmv.x.s 00"),
    (_MVV, 0x10, _ANY, "rd,vs2,vm", "vcpop.m 10 vfirst.m 11"),
    (
        *(_MVV, 0x12, _ANY, "vd,vs2,vm"),
        "vzext.vf8 02 vsext.vf8 03 vzext.vf4 04 vsext.vf4 05 vzext.vf2 06 vsext.vf2 07",
    ),
    (_MVV, 0x14, _ANY, "vd,vs2,vm", "vmsbf.m 01 vmsof.m 02 vmsif.m 03 viota.m 10"),
    (_VI, 0x27, 1, "vd,vs2", "vmv1r.v 00 vmv2r.v 01 vmv4r.v 03 vmv8r.v 07"),
    (_FVV, 0x10, 1, "fd,vs2", "vfmv.f.s 00"),
    (
        *(_FVV, 0x12, _ANY, "vd,vs2,vm"),
        "vfcvt.xu.f.v 00 vfcvt.x.f.v 01 vfcvt.f.xu.v 02 vfcvt.f.x.v 03 vfcvt.rtz.xu.f.v 06"
        " vfcvt.rtz.x.f.v 07 vfwcvt.xu.f.v 08 vfwcvt.x.f.v 09 vfwcvt.f.xu.v 0a vfwcvt.f.x.v 0b"
        " vfwcvt.f.f.v 0c vfwcvt.rtz.xu.f.v 0e vfwcvt.rtz.x.f.v 0f vfncvt.xu.f.w 10 vfncvt.x.f.w 11"
        " vfncvt.f.xu.w 12 vfncvt.f.x.w 13 vfncvt.f.f.w 14 vfncvt.rod.f.f.w 15 vfncvt.rtz.xu.f.w 16"
        " vfncvt.rtz.x.f.w 17",
    ),
    (_FVV, 0x13, _ANY, "vd,vs2,vm", "vfsqrt.v 00 vfrsqrt7.v 04 vfrec7.v 05 vfclass.v 10"),
)
# (funct3, funct6, vm or _ANY, vs1 or _ANY, spelling): words whose vs2 field is 0.
_NO_VS2: tuple[tuple[int, int, int, int, str], ...] = (
    (_VV, 0x17, 1, _ANY, "vmv.v.v vd,vs1"),
    (_VX, 0x17, 1, _ANY, "vmv.v.x vd,rs1"),
    (_VI, 0x17, 1, _ANY, "vmv.v.i vd,simm"),
    (_MVV, 0x14, _ANY, 0x11, "vid.v vd,vm"),
    (_MVX, 0x10, 1, _ANY, "vmv.s.x vd,rs1"),
    (_FVF, 0x10, 1, _ANY, "vfmv.s.f vd,fs1"),
    (_FVF, 0x17, 1, _ANY, "vfmv.v.f vd,fs1"),
)
# (funct3, funct6, rs1, spelling): a scalar that makes another name of a word.
_SCALARS: tuple[tuple[int, int, int, str], ...] = (
    (_VX, 0x03, 0, "vneg.v vd,vs2,vm"),
    (_VI, 0x0B, 31, "vnot.v vd,vs2,vm"),
    (_VX, 0x2C, 0, "vncvt.x.x.w vd,vs2,vm"),
    (_MVX, 0x30, 0, "vwcvtu.x.x.v vd,vs2,vm"),
    (_MVX, 0x31, 0, "vwcvt.x.x.v vd,vs2,vm"),
)
# Spellings where vs1 is vs2, and where vd is too.
_TWICE = {
    "vfsgnjn.vv": "vfneg.v vd,vs2,vm",
    "vfsgnjx.vv": "vfabs.v vd,vs2,vm",
    "vmand.mm": "vmmv.m vd,vs2",
    "vmnand.mm": "vmnot.m vd,vs2",
}
_THRICE = {"vmxor.mm": "vmclr.m vd", "vmxnor.mm": "vmset.m vd"}


def _pairs(text: str) -> Iterator[tuple[str, int]]:
    words = text.split()
    yield from ((words[i], int(words[i + 1], 16)) for i in range(0, len(words), 2))


class Vector(NotModelled, abstract=True):
    """A word of V."""

    on_trisc2_only = True
    vm = bits(25, 25)
    funct6 = bits(31, 26)

    @classmethod
    def exists(cls, word: int) -> bool:
        """Whether the table has a name for the word."""
        return cls.spelled(word) is not None


class VOP(Vector, opcode=0x57):
    """Vectors from vectors, or vl and vtype."""

    @classmethod
    @functools.cache
    def table(cls) -> dict[tuple[int, int], list[tuple[int, int, str]]]:
        """(mask, match, spelling) by (funct3, funct6); the first that fits."""
        found: dict[tuple[int, int], list[tuple[int, int, str]]] = {}

        def declare(funct3: int, funct6: int, text: str, **fixed: int) -> None:
            mask = match = 0
            for name, value in fixed.items():
                if value != _ANY:
                    field = getattr(cls, name)
                    mask, match = mask | field.mask, field.put(match, value)
            found.setdefault((funct3, funct6), []).append((mask, match, text))

        for funct3, funct6, rs1, text in _SCALARS:
            declare(funct3, funct6, text, rs1=rs1)
        for funct3, vm, suffix, operands, names in _TWO_SOURCES:
            for name, funct6 in _pairs(names):
                declare(funct3, funct6, f"{name}{suffix} {operands}", vm=vm)
        for funct3, funct6, vm, operands, names in _ONE_SOURCE:
            for name, vs1 in _pairs(names):
                declare(funct3, funct6, f"{name} {operands}", vm=vm, rs1=vs1)
        for funct3, funct6, vm, vs1, text in _NO_VS2:
            declare(funct3, funct6, text, vm=vm, rs1=vs1, rs2=0)
        return found

    @classmethod
    def spelled(cls, word: int) -> str | None:
        """Mnemonic and operands; None where the table has none."""
        funct3 = cls.funct3.get(word)
        if funct3 == _SET:
            if word >> 31 == 0:
                return "vsetvli rd,rs1,vtype"
            if word >> 30 == 3:
                return "vsetivli rd,uimm,vtypei"
            return "vsetvl rd,rs1,rs2" if cls.funct7.get(word) == 0x40 else None
        for mask, match, text in cls.table().get((funct3, cls.funct6.get(word)), ()):
            if word & mask == match:
                return cls._shorter(word, text)
        return None

    @classmethod
    def _shorter(cls, word: int, text: str) -> str:
        name, vs2 = text.partition(" ")[0], cls.rs2.get(word)
        if cls.rs1.get(word) != vs2:
            return text
        return _TWICE.get(name) or (_THRICE.get(name) if cls.rd.get(word) == vs2 else "") or text


class VectorMemory(Vector, abstract=True):
    """A load or store of vectors; the class fixes its width."""

    nf = bits(31, 29)
    mew = bits(28, 28)
    mop = bits(27, 26)
    verb: ClassVar[str]

    @classmethod
    def spelled(cls, word: int) -> str | None:
        """Mnemonic and operands; None where the word is reserved."""
        if cls.mew.get(word):
            return None
        width, fields = _WIDTHS[cls.funct3.get(word)], cls.nf.get(word) + 1
        seg, mop = f"seg{fields}" if fields > 1 else "", cls.mop.get(word)
        if mop == 2:
            return f"{cls.verb}s{seg}e{width}.v vd,(rs1),rs2,vm"
        if mop:
            order = "ux" if mop == 1 else "ox"
            return f"{cls.verb}{order}{seg}ei{width}.v vd,(rs1),vs2,vm"
        mode = cls.rs2.get(word)
        every = bool(cls.vm.get(word))
        loads = cls.verb == "vl"
        if mode == 0:
            return f"{cls.verb}{seg}e{width}.v vd,(rs1),vm"
        if mode == 16 and loads:
            return f"{cls.verb}{seg}e{width}ff.v vd,(rs1),vm"
        if mode == 11 and every and width == 8 and fields == 1:
            return f"{cls.verb}m.v vd,(rs1)"
        if mode == 8 and every and fields in (1, 2, 4, 8) and (loads or width == 8):
            return f"{cls.verb}{fields}r{f'e{width}' if width > 8 else ''}.v vd,(rs1)"
        return None


class VectorLoad(VectorMemory, abstract=True, opcode=0x07):
    """vd from memory."""

    verb = "vl"


class VectorStore(VectorMemory, abstract=True, opcode=0x27):
    """vd to memory."""

    verb = "vs"


class VL8(VectorLoad, funct3=0):
    """Elements of 8 bits."""


class VL16(VectorLoad, funct3=5):
    """Elements of 16 bits."""


class VL32(VectorLoad, funct3=6):
    """Elements of 32 bits."""


class VL64(VectorLoad, funct3=7):
    """Elements of 64 bits."""


class VS8(VectorStore, funct3=0):
    """Elements of 8 bits."""


class VS16(VectorStore, funct3=5):
    """Elements of 16 bits."""


class VS32(VectorStore, funct3=6):
    """Elements of 32 bits."""


class VS64(VectorStore, funct3=7):
    """Elements of 64 bits."""
