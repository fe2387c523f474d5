"""The Zba and Zbb instructions of the baby RISC-V cores, which the engine does not know."""

import numpy as np

from bhemu.jit.subset import njit

MASK = 0xFFFFFFFF
SIGN = 0x80000000
NOT_EMULATED = -1

OP = 0b0110011
OP_IMM = 0b0010011


@njit(cache=False)
def _count_ones(x: int) -> int:
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) & MASK) >> 24


@njit(cache=False)
def _leading_zeros(x: int) -> int:
    x |= x >> 1
    x |= x >> 2
    x |= x >> 4
    x |= x >> 8
    x |= x >> 16
    return 32 - _count_ones(x)


@njit(cache=False)
def _trailing_zeros(x: int) -> int:
    return _count_ones(~x & (x - 1) & MASK)


@njit(cache=False)
def _rotate_right(x: int, amount: int) -> int:
    amount &= 31
    return (x >> amount) | ((x << (32 - amount)) & MASK)


@njit(cache=False)
def _or_combine_bytes(x: int) -> int:
    x |= (x & 0xF0F0F0F0) >> 4
    x |= (x & 0x0C0C0C0C) >> 2
    x |= (x & 0x02020202) >> 1
    return (x & 0x01010101) * 0xFF


@njit(cache=False)
def _reverse_bytes(x: int) -> int:
    return (x & 0xFF) << 24 | (x & 0xFF00) << 8 | (x & 0xFF0000) >> 8 | (x & 0xFF000000) >> 24


@njit(cache=False)
def _sign_extend(x: int, bits: int) -> int:
    sign = 1 << (bits - 1)
    return (((x & ((1 << bits) - 1)) ^ sign) - sign) & MASK


@njit(cache=False)
def _logical(funct3: int, a: int, b: int) -> int:
    if funct3 == 0b111:  # andn
        return a & (b ^ MASK)
    if funct3 == 0b110:  # orn
        return a | (b ^ MASK)
    if funct3 == 0b100:  # xnor
        return a ^ b ^ MASK
    return NOT_EMULATED


@njit(cache=False)
def _min_max(funct3: int, a: int, b: int) -> int:
    # Flipping the sign bit turns signed order into unsigned order.
    bias = 0 if funct3 & 1 else SIGN
    less = (a ^ bias) < (b ^ bias)
    if funct3 == 0b100 or funct3 == 0b101:  # min, minu
        return a if less else b
    if funct3 == 0b110 or funct3 == 0b111:  # max, maxu
        return b if less else a
    return NOT_EMULATED


@njit(cache=False)
def _register(word: int, a: int, b: int) -> int:
    funct7 = (word >> 25) & 0x7F
    funct3 = (word >> 12) & 7
    if funct7 == 0b0010000 and (funct3 == 0b010 or funct3 == 0b100 or funct3 == 0b110):
        return ((a << (funct3 >> 1)) + b) & MASK  # sh1add, sh2add, sh3add
    if funct7 == 0b0100000:
        return _logical(funct3, a, b)
    if funct7 == 0b0000101:
        return _min_max(funct3, a, b)
    if funct7 == 0b0110000 and funct3 == 0b001:  # rol
        return _rotate_right(a, 32 - (b & 31))
    if funct7 == 0b0110000 and funct3 == 0b101:  # ror
        return _rotate_right(a, b)
    if funct7 == 0b0000100 and funct3 == 0b100 and (word >> 20) & 0x1F == 0:  # zext.h
        return a & 0xFFFF
    return NOT_EMULATED


@njit(cache=False)
def _immediate(word: int, a: int) -> int:
    immediate = (word >> 20) & 0xFFF
    funct3 = (word >> 12) & 7
    if funct3 == 0b001:
        if immediate == 0x600:  # clz
            return _leading_zeros(a)
        if immediate == 0x601:  # ctz
            return _trailing_zeros(a)
        if immediate == 0x602:  # cpop
            return _count_ones(a)
        if immediate == 0x604:  # sext.b
            return _sign_extend(a, 8)
        if immediate == 0x605:  # sext.h
            return _sign_extend(a, 16)
    if funct3 == 0b101:
        if immediate >> 5 == 0b0110000:  # rori
            return _rotate_right(a, immediate)
        if immediate == 0x287:  # orc.b
            return _or_combine_bytes(a)
        if immediate == 0x698:  # rev8
            return _reverse_bytes(a)
    return NOT_EMULATED


@njit(cache=False)
def execute(word: int, a: int, b: int) -> int:
    """Result of one Zba or Zbb instruction (RISC-V unprivileged ISA, chapter "B").

    `word` is the instruction, `a` the value of rs1 and `b` the value of rs2, each 0..2**32-1.
    Returns the value for rd as an int64 in 0..2**32-1, or `NOT_EMULATED` (-1) for every other
    word, reserved encodings of the same opcodes included. The caller skips the write to x0.
    """
    # A uint32 would wrap in its own width when interpreted, a uint64 turn into a float compiled.
    word, a, b = int(np.int64(word)), int(np.int64(a)), int(np.int64(b))
    opcode = word & 0x7F
    if opcode == OP:
        return _register(word, a, b)
    if opcode == OP_IMM:
        return _immediate(word, a)
    return NOT_EMULATED
