"""What an RV32IM word of the baby RISC-V cores computes, for analyses that execute no program.

Runs do not come here: the engine executes them.  Sources: RISC-V unprivileged ISA, RV32I, M and
Zaamo; Zba and Zbb are bitmanip's.
"""

import ctypes
import functools
import operator
from collections.abc import Callable
from typing import Any

from numba import types

from bhemu.jit.build import compiled
from bhemu.jit.subset import JIT
from bhemu.riscv import bitmanip

MASK = 0xFFFFFFFF
LOAD, FENCE, OP_IMM, AUIPC, STORE = 0x03, 0x0F, 0x13, 0x17, 0x23
AMO, OP, LUI, BRANCH, JALR, JAL, SYSTEM = 0x2F, 0x33, 0x37, 0x63, 0x67, 0x6F, 0x73


def signed(value: int, bits: int = 32) -> int:
    """`value` as a two's complement number of `bits` bits."""
    sign = 1 << (bits - 1)
    return ((value & ((1 << bits) - 1)) ^ sign) - sign


def load_offset(word: int) -> int:
    """Immediate of loads, jalr and register-immediate instructions."""
    return signed(word >> 20, 12)


def store_offset(word: int) -> int:
    """Immediate of stores."""
    return signed((word >> 25) << 5 | (word >> 7 & 31), 12)


def branch_offset(word: int) -> int:
    """Distance of a conditional branch, bytes."""
    bits = (word >> 31) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3F) << 5
    return signed(bits | (word >> 8 & 0xF) << 1, 13)


def jump_offset(word: int) -> int:
    """Distance of jal, bytes."""
    bits = (word >> 31) << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11
    return signed(bits | (word >> 21 & 0x3FF) << 1, 21)


def _divide(a: int, b: int) -> int:
    if b == 0:
        return MASK
    x, y = signed(a), signed(b)
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _remainder(a: int, b: int) -> int:
    return a if b == 0 else signed(a) - signed(_divide(a, b)) * signed(b)


_BASE: dict[tuple[int, int], Callable[[int, int], int]] = {
    (0x00, 0): operator.add,
    (0x20, 0): operator.sub,
    (0x00, 1): lambda a, b: a << (b & 31),
    (0x00, 2): lambda a, b: int(signed(a) < signed(b)),
    (0x00, 3): lambda a, b: int(a < b),
    (0x00, 4): operator.xor,
    (0x00, 5): lambda a, b: a >> (b & 31),
    (0x20, 5): lambda a, b: signed(a) >> (b & 31),
    (0x00, 6): operator.or_,
    (0x00, 7): operator.and_,
    (0x01, 0): operator.mul,
    (0x01, 1): lambda a, b: (signed(a) * signed(b)) >> 32,
    (0x01, 2): lambda a, b: (signed(a) * b) >> 32,
    (0x01, 3): lambda a, b: (a * b) >> 32,
    (0x01, 4): _divide,
    (0x01, 5): lambda a, b: a // b if b else MASK,
    (0x01, 6): _remainder,
    (0x01, 7): lambda a, b: a % b if b else a,
}

_BRANCHES: dict[int, Callable[[int, int], bool]] = {
    0: operator.eq,
    1: operator.ne,
    4: lambda a, b: signed(a) < signed(b),
    5: lambda a, b: signed(a) >= signed(b),
    6: operator.lt,
    7: operator.ge,
}

_ATOMICS: dict[int, Callable[[int, int], int]] = {
    0x00: operator.add,
    0x01: lambda old, new: new,
    0x04: operator.xor,
    0x08: operator.or_,
    0x0C: operator.and_,
    0x10: lambda a, b: min(a, b, key=signed),
    0x14: lambda a, b: max(a, b, key=signed),
    0x18: min,
    0x1C: max,
}


@functools.cache
def _bitmanip() -> Callable[[int, int, int], Any]:
    """bitmanip.execute, callable from Python."""
    if not JIT:
        return bitmanip.execute
    number = types.int64
    entry = compiled(number(number, number, number), bitmanip.execute)
    call = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 4)(entry.address)
    return lambda word, a, b: (entry, call(word, a, b))[1]  # the entry must outlive the pointer


def result(word: int, a: int, b: int) -> int | None:
    """rd of a register or register-immediate instruction; None for a word that is none.

    `a` and `b` are the values of rs1 and rs2; for an immediate `b` is not looked at.
    """
    funct3, funct7 = word >> 12 & 7, word >> 25
    if word & 0x7F == OP_IMM:
        if funct3 not in (1, 5):
            return _BASE[0, funct3](a, load_offset(word) & MASK) & MASK
        b = word >> 20 & 31
        function = _BASE.get((funct7, funct3)) if funct7 in (0, 0x20) else None
    else:
        function = _BASE.get((funct7, funct3))
    if function is not None:
        return function(a, b) & MASK
    found = int(_bitmanip()(word, a, b))
    return None if found < 0 else found & MASK


def taken(word: int, a: int, b: int) -> bool | None:
    """Whether a conditional branch is taken; None for a word that is none."""
    function = _BRANCHES.get(word >> 12 & 7)
    return None if function is None else function(a, b)


def atomic(word: int, old: int, operand: int) -> int | None:
    """What an amo*.w writes over `old`; None for a word that is none."""
    function = _ATOMICS.get(word >> 27)
    return None if function is None else function(old, operand) & MASK


def loaded(word: int, value: int) -> int | None:
    """What a load puts into rd from the bytes `value` at its address; None for no load."""
    funct3 = word >> 12 & 7
    if funct3 not in (0, 1, 2, 4, 5):
        return None
    bits = 8 << (funct3 & 3)
    value &= (1 << bits) - 1
    return value if funct3 & 4 else signed(value, bits) & MASK
