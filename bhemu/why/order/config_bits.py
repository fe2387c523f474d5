"""Bits of Config that words read, as they declare it, and what follows for who may change them."""

import re
from functools import cache, lru_cache
from itertools import product

import numpy as np

from bhemu.tensix import config_fields
from bhemu.tensix.config import bits_read
from bhemu.tensix.insn import REGISTRY
from bhemu.tensix.spaces import fields_named
from bhemu.tensix.units.unpack.unpacr import UNPACR

FOLLOWED = ("unpack", "pack", "src")
"""Formats in force for the words whose reads of Config are followed. Kernels set the modes of
ZEROACC and of the vector unit once, before they begin, and nothing orders that."""


@lru_cache(4096)
def read_by(word: int, context: int) -> tuple[int, ...]:
    """Bits of a Config bank, in order, that a word reads; of an unpacker in this context."""
    cls = REGISTRY[word >> 24]
    read = bits_read(cls.reads, cls.operands(word), context)
    bits = np.unpackbits(read.view(np.uint8), bitorder="little")
    return tuple(int(bit) for bit in np.flatnonzero(bits))


@cache
def threads() -> dict[int, int]:
    """The thread whose unit alone reads a bit of Config: 0 unpacks, 2 packs."""
    read: dict[int, set[int]] = {}
    for cls in REGISTRY.values():
        thread = {"unpack": 0, "pack": 2}.get(cls.unit, 1)
        for unpacker, context in product((0, 1), range(8)) if cls.formats else ():
            word = cls.opcode << 24 | unpacker << UNPACR.unpack_block_selection.lo
            for bit in read_by(word, context):
                read.setdefault(bit, set()).add(thread)
    for field in fields_named("CFG", ("ALU_*",)).values():
        for bit in range(field.mask.bit_length()):
            read.setdefault(32 * field.word + field.shift + bit, set()).add(1)
    return {bit: next(iter(by)) for bit, by in read.items() if len(by) == 1 and 1 not in by}


@cache
def addresses() -> frozenset[int]:
    """Words of a bank that say where in L1 the next UNPACR or PACR begins.

    A unit reads them when the word is issued to it: kernels give unpackers and the packer their
    next address while these are still at work.
    """
    names = re.compile(r"THCON_SEC[01]_REG[34]_Base_(cntx\d_)?address|THCON_SEC0_REG1_L1_Dest_addr")
    return frozenset(f.word for title, f in vars(config_fields).items() if names.fullmatch(title))
