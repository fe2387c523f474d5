"""V: vectors (RISC-V unprivileged ISA, chapter "V").

By the Blackhole text TRISC2 alone has some of these instructions; none is modelled. A class per
format: the names of the others stand in data/vector_words.txt.
"""

import functools
from pathlib import Path
from typing import ClassVar

from bhemu.bits import bits
from bhemu.riscv.formats import NotModelled

_WIDTHS = {0: 8, 5: 16, 6: 32, 7: 64}  # funct3 of a load or store: bits of an element
_FUNCT3 = "VV FVV MVV VI VX FVF MVX SET".split()  # of an arithmetic word
_TABLE = Path(__file__).parents[2] / "data" / "vector_words.txt"
# Spellings where vs1 is vs2, and where vd is too.
_TWICE = {
    "vfsgnjn.vv": "vfneg.v vd,vs2,vm",
    "vfsgnjx.vv": "vfabs.v vd,vs2,vm",
    "vmand.mm": "vmmv.m vd,vs2",
    "vmnand.mm": "vmnot.m vd,vs2",
}
_THRICE = {"vmxor.mm": "vmclr.m vd", "vmxnor.mm": "vmset.m vd"}


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
        lines = _TABLE.read_text(encoding="utf-8").splitlines()
        for funct3, given, rest, names in (one.split(" | ") for one in lines if one[0] != "#"):
            fixed = {
                name: int(value, 16) for name, value in (one.split("=") for one in given.split())
            }
            number = "rs1" if "funct6" in fixed else "funct6"
            words = names.split()
            for name, value in zip(words[::2], words[1::2], strict=True):
                fields = fixed if value == "-" else {**fixed, number: int(value, 16)}
                placed = [(getattr(cls, one), n) for one, n in fields.items() if one != "funct6"]
                mask = sum(field.mask for field, _ in placed)
                match = sum(n << field.lo for field, n in placed)
                text = f"{name}{rest if rest[0] == '.' else ' ' + rest}"
                key = _FUNCT3.index(funct3), fields["funct6"]
                found.setdefault(key, []).append((mask, match, text))
        return found

    @classmethod
    def spelled(cls, word: int) -> str | None:
        """Mnemonic and operands; None where the table has none."""
        funct3 = cls.funct3.get(word)
        if _FUNCT3[funct3] == "SET":
            if word >> 31 == 0:
                return "vsetvli rd,rs1,vtype"
            if word >> 30 == 3:
                return "vsetivli rd,uimm,vtypei"
            return "vsetvl rd,rs1,rs2" if cls.funct7.get(word) == 0x40 else None
        for mask, match, text in cls.table().get((funct3, cls.funct6.get(word)), ()):
            if word & mask == match:
                name, vs2 = text.partition(" ")[0], cls.rs2.get(word)
                if cls.rs1.get(word) != vs2:
                    return text
                thrice = _THRICE.get(name) if cls.rd.get(word) == vs2 else None
                return _TWICE.get(name) or thrice or text
        return None


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


for _base in (VectorLoad, VectorStore):
    for _funct3, _width in _WIDTHS.items():
        _name = f"{_base.verb.upper()}{_width}"
        _base.declare(_name, f"Elements of {_width} bits.", funct3=_funct3)
