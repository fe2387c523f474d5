"""Loads by which a core waits: what the code around a load does with its value."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.riscv.formats import (
    Atomic,
    Branch,
    Csr,
    IndirectJump,
    Jump,
    Load,
    NotModelled,
    Store,
)
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.ttinsn import TTINSN

Memory = npt.NDArray[np.uint8]
_LOOK, _CLOSE = 8, 4  # instructions within which a polled word is compared, after another one
REACH = 4 * _LOOK
"""Bytes of code before and after a load that are looked at."""
_ACTS = TTINSN | Store | Jump | IndirectJump | Atomic | Csr | NotModelled


def is_polled(l1: Memory, pc: int) -> bool:
    """Whether the load at `pc` polls a word: a branch uses the loaded value first.

    Or a value that is computed from it decides a branch back to the load, and the loop only waits.
    """
    return comparison(l1, pc) is not None or spin(l1, pc) is not None


def spin(l1: Memory, pc: int) -> tuple[int, int] | None:
    """First and last pc of the loop in which a load waits for its word; None if there is none.

    Such a loop only loads, computes and branches, and the load reads one place.
    """
    words = l1[pc : pc + 4 * _LOOK].view(np.uint32).tolist()
    base, made = words[0] >> 15 & 31, {words[0] >> 7 & 31}
    for n, word in enumerate(words[1:], 1):
        cls: Any = decode(word)
        if not _is_quiet(cls, word, base):
            return None
        text = cls.text or ""
        used = [getattr(cls, name).get(word) for name in ("rs1", "rs2") if name in text]
        decides = not made.isdisjoint(used)
        if issubclass(cls, Branch):
            head, end = pc + 4 * n + int(cls.offset.get(word)), pc + 4 * n
            if decides and max(pc - 4 * _LOOK, 0) <= head <= pc:
                before = l1[head:pc].view(np.uint32).tolist()
                return (head, end) if all(_is_quiet(decode(o), o, base) for o in before) else None
            continue
        rd = {cls.rd.get(word)} if "rd" in text else set()
        made = made | rd if decides else made - rd
    return None


def _is_quiet(cls: Any, word: int, base: int) -> bool:
    """Whether an instruction has no effect outside of its core, and keeps the register `base`."""
    if cls is None or issubclass(cls, _ACTS):
        return False
    return not ("rd" in (cls.text or "") and base and cls.rd.get(word) == base)


def is_one_of_two(l1: Memory, pc: int) -> bool:
    """Whether a branch first uses a value computed from two words, one of them loaded at `pc`.

    Cores wait so for a queue that has a counter of each side.
    """
    words = l1[pc - 4 * _CLOSE : pc + 4 * _LOOK].view(np.uint32).tolist()
    loaded: dict[int, set[int]] = {}  # by register, the loads that it is computed from
    for n, word in enumerate(words):
        cls: Any = decode(word)
        if cls is None or issubclass(cls, TTINSN | Store | Jump | IndirectJump):
            loaded = {}
            if n >= _CLOSE:
                return False
            continue
        names = [name for name in ("rs1", "rs2") if name in (cls.text or "")]
        read = [loaded.get(getattr(cls, name).get(word), set()) for name in names]
        made = {n} if issubclass(cls, Load) else set().union(*read)
        if issubclass(cls, Branch) and n > _CLOSE:
            return _CLOSE in made and len(made) > 1
        if "rd" in (cls.text or "") and cls.rd.get(word):  # x0 keeps nothing
            loaded[cls.rd.get(word)] = made
    return False


def comparison(l1: Memory, pc: int) -> tuple[int, int] | None:
    """The first branch that compares a loaded word: its pc, and the other register."""
    words = l1[pc : pc + 4 * _LOOK].view(np.uint32).tolist()
    loaded = words[0] >> 7 & 31
    for n, word in enumerate(words[1:], 1):
        cls = decode(word)
        if cls is None or cls is TTINSN:
            return None
        if issubclass(cls, Branch):
            pair = [cls.rs1.get(word), cls.rs2.get(word)]
            return (pc + 4 * n, pair[1 - pair.index(loaded)]) if loaded in pair else None
        used = [getattr(cls, one).get(word) for one in ("rd", "rs1", "rs2") if hasattr(cls, one)]
        if issubclass(cls, Store | Jump | IndirectJump) or loaded in used:
            return None
    return None
