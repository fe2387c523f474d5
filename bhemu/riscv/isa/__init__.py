"""The instructions of the baby RISC-V cores by extension; how a word finds its class."""

import functools

from bhemu.riscv.formats import Load, Pushed, Store
from bhemu.riscv.insn import REGISTRY, Instruction
from bhemu.riscv.isa import b, f, rv32i, v

# Importing them declares the instructions.
MODULES = (rv32i, b, f, v)


@functools.cache
def _by_opcode() -> dict[tuple[int, int], tuple[type[Instruction], ...]]:
    """Classes by (opcode, funct3)."""
    found: dict[tuple[int, int], tuple[type[Instruction], ...]] = {}
    for opcode in {cls.match & 0x7F for cls in REGISTRY if not issubclass(cls, Pushed)}:
        for funct3 in range(8):
            key = opcode | funct3 << 12
            fits = (cls for cls in REGISTRY if (key ^ cls.match) & cls.mask & 0x707F == 0)
            found[opcode, funct3] = tuple(cls for cls in fits if not issubclass(cls, Pushed))
    return found


@functools.lru_cache(1 << 12)
def decode(word: int) -> type[Instruction] | None:
    """The class of a 32-bit word, or None for a word that is no instruction of these cores."""
    if word & 3 != 3:
        return next(cls for cls in REGISTRY if issubclass(cls, Pushed))
    for cls in _by_opcode().get((word & 0x7F, word >> 12 & 7), ()):
        if word & cls.mask == cls.match and cls.exists(word):
            return cls
    return None


def class_of(mnemonic: str) -> type[Instruction]:
    """The class of a mnemonic; KeyError when there is none."""
    for cls in REGISTRY:
        if cls.name == mnemonic:
            return cls
    raise KeyError(mnemonic)


def alignment_masks(kind: type[Load] | type[Store]) -> int:
    """Address bits that must be 0, a nibble per funct3, of all loads or stores."""
    masks = 0
    for cls in REGISTRY:
        if issubclass(cls, kind):
            masks |= cls.size - 1 << 4 * cls.funct3.get(cls.match)
    return masks
