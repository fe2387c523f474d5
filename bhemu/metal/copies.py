"""What firmware copies from L1 to its core's local RAM at its start, read from its code.

A host cannot write local RAM. It writes initial data and tables to L1, and the firmware's start
code copies them, by calls of one function with constant arguments: (to, from, words). The calls
are found by following constants through the code in the order in which it lies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from bhemu.program import elf, files
from bhemu.program.loader import Image
from bhemu.riscv.assembly import A0, A1, GP
from bhemu.riscv.formats import Jump, Upper
from bhemu.riscv.insn import Instruction
from bhemu.riscv.isa import decode
from bhemu.riscv.semantics import COMPUTING

FUNCTION = "l1_to_local_mem_copy"


class Copy(NamedTuple):
    """The firmware copies to `local`, an address of its local RAM, from `source` in L1."""

    local: int
    source: int


def copies(image: Image) -> list[Copy]:
    """Every copy of constant addresses in the code of `image`, in the order of the calls."""
    names = {name for name in image.symbols.names if FUNCTION in name}
    targets = {image.symbols.address(name) for name in names}
    found = []
    for segment in image.segments:
        if segment.executable:
            whole = len(segment.data) // 4
            words = struct.unpack(f"<{whole}I", segment.data[: 4 * whole])
            found += list(_calls(image, segment.vaddr, words, targets))
    return found


def _calls(image: Image, base: int, words: tuple[int, ...], targets: set[int]) -> Iterator[Copy]:
    registers: list[int | None] = [0, *[None] * 31]
    if "__global_pointer$" in image.symbols.names:
        registers[GP] = image.symbols.address("__global_pointer$")
    for number, word in enumerate(words):
        pc = base + 4 * number
        cls, rd = decode(word), Instruction.rd.get(word)
        if cls is None:
            continue
        if issubclass(cls, Jump):
            local, source = registers[A0], registers[A1]
            called = cls.compute(word, pc, 0, 0) in targets
            if called and local is not None and source is not None:
                yield Copy(local, source)
        elif issubclass(cls, (*COMPUTING, Upper)) and rd:
            registers[rd] = cls.computed(word, pc, registers)


class Sized(NamedTuple):
    """A symbol of local RAM: its address and how many bytes it has."""

    address: int
    size: int


def objects(image: Image) -> dict[str, Sized]:
    """The named objects of an ELF, with their sizes."""
    data = files.read_bytes(image.path, "ELF_BYTES")
    table = elf.sections(data, str(image.path))
    found = elf.symbols(data, table, str(image.path))
    return {s.name: Sized(s.value, s.size) for s in found if s.kind in ("STT_OBJECT", "STT_NOTYPE")}
