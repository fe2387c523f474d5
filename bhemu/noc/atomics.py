"""Atomics on a 16-byte line of L1: what NOC_AT_LEN_BE says.

Increment is what kernels use, and what the golden model knows; swap, compare and swap, and swap
with index follow the ISA text alone (NoC Atomics).
"""

from typing import Any

import numpy as np

from bhemu.devices import niu_request as request
from bhemu.jit.address import load_word, store_word
from bhemu.jit.subset import njit


@njit
def _swap(line: Any, mask: Any, operand: Any) -> None:
    """Each of the eight halves whose bit is set becomes the low or high half of the operand."""
    for i in range(4):
        old = load_word(line + 4 * i)
        low = operand & 0xFFFF if (mask >> (2 * i)) & 1 else old & 0xFFFF
        high = operand & 0xFFFF0000 if (mask >> (2 * i + 1)) & 1 else old & 0xFFFF0000
        store_word(line + 4 * i, low | high)


@njit
def perform(line: Any, at: Any, operands: Any, operand: Any) -> Any:
    """Change the line at a host address; `at`: the byte of it that was addressed. The old word."""
    opcode = request.atomic_opcode(operands)
    if opcode == request.SWAP:
        old = load_word(line + (at & 12))
        _swap(line, (operands >> 2) & 0xFF, operand)
        return old
    which = (operands >> 2) & 3 if opcode == request.SWAP_INDEX_HIGH else operands & 3
    word = line + 4 * which
    old = load_word(word)
    if opcode == request.INCREMENT:
        kept = np.int64(0xFFFFFFFF) << (((operands >> 2) & 31) + 1)
        store_word(word, (old & kept) | ((old + operand) & ~kept))
    elif opcode == request.COMPARE_AND_SWAP:
        if old == (operands >> 2) & 15:
            store_word(word, (operands >> 6) & 15)
    else:
        store_word(word, operand)
    return old
