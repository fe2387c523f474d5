"""Rules that several windows share."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import call_step
from bhemu.jit.subset import njit
from bhemu.tensix.frontend import drained
from bhemu.tensix.loop import COPROCESSOR_TURN
from bhemu.tensix.rules import DONE, GUEST, NCB, UB, UNIMPLEMENTED, UNSUPPORTED, condition, error
from bhemu.tensix.thread import time_passes

# What any device access may be refused for.

ACCESS = ("address", "value", "size", "core")
"""What the bus notes of every access in `s.detail`, in this order (bus/entries.py)."""


def access_error(rule: str, category: str, text: str, hint: str = "") -> int:
    """Register a sentence about an access: it may name what the bus notes of it (ACCESS)."""
    return error(rule, category, text, hint, names=ACCESS)


RETRY = condition("the access to be repeated after a stop")

UNMAPPED = access_error("MMIO-UNMAPPED", GUEST, "address {address:#010x} is not mapped for this core", "check the pointer")  # fmt: skip
NOT_MODELLED = access_error("MMIO-NOT-MODELLED", UNIMPLEMENTED, "the register at {address:#010x} is not modelled")  # fmt: skip
WRONG_CORE = access_error("MMIO-CORE", UB, "this core has no access to the block at {address:#010x}")  # fmt: skip
STORE_SIZE = access_error("MMIO-STORE-SIZE", UB, "{size}-byte store to {address:#010x}: only 4-byte stores exist")  # fmt: skip
LOAD_SIZE = access_error("MMIO-LOAD-SIZE", UB, "{size}-byte load from {address:#010x}: only 4-byte loads exist")  # fmt: skip
MISALIGNED = access_error("RV-ALIGN", NCB, "{size}-byte access to {address:#010x} is not aligned", "align the pointer, or copy byte by byte")  # fmt: skip
READ_ONLY = access_error("MMIO-READ-ONLY", UB, "store of {value:#x} to the read-only register {address:#010x}")  # fmt: skip
WRITE_ONLY = access_error("MMIO-WRITE-ONLY", UB, "load from the write-only register {address:#010x}")  # fmt: skip
FIELD = access_error("MMIO-FIELD", UNSUPPORTED, "value {value:#x} stored to {address:#010x} asks for what is not modelled")  # fmt: skip


# Before a core looks at the coprocessor, the thread it pushes to may run until its head blocks.


@njit
def offer(s: Any, c: Any) -> Any:
    """Let the own thread of a TRISC run (brisc: all threads); DONE, or RETRY after a stop.

    An open sweep is one that a stop has cut short: the repeated access resumes it first.
    """
    if c == 0:
        if s.sweep_open[0] or not (drained(s, 0) and drained(s, 1) and drained(s, 2)):
            call_step(s.run_tensix[0], s, np.int64(COPROCESSOR_TURN))
    elif c <= 3:
        if s.sweep_open[0] or not drained(s, c - 1):
            call_step(s.run_thread[0], s, np.int64(c - 1))
    if c <= 3:
        low, high = (0, 3) if c == 0 else (c - 1, c)
        for t in range(low, high):
            if s.status[0] == 0:
                time_passes(s, t)
    return RETRY if s.status[0] != DONE else DONE
