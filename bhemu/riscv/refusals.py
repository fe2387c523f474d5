"""What a core may not execute: how an error stops its slice, misaligned accesses, atomics."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.jit.subset import by_name, njit
from bhemu.memmap import L1_SIZE
from bhemu.riscv.formats import Atomic, Store
from bhemu.riscv.isa import zaamo
from bhemu.riscv.primitives import emu_stop, x_register
from bhemu.tensix.quirks import note
from bhemu.tensix.status import UB, error

# stop_kind: why the last slice ended
NONE, TURN_OVER, WAITS, PARKS, BREAKPOINT, LIMIT, ASSERT, FAULT, UNTIL, FLUSHES = range(10)

AMO, STORE = Atomic.code(), Store.code()
_LR, _SC = (cls.funct5.get(cls.match) for cls in (zaamo.LR_W, zaamo.SC_W))

RESERVATION = error("RV-LRSC", UB, "lr.w and sc.w ({word:#010x}) do not exist on these cores")
ATOMIC = error(
    "RV-AMO", UB, "atomic access to {address:#010x}: atomics work on L1 only (word {word:#010x})"
)


@by_name(note)
def fail(s: Any, c: Any, rule: Any) -> None:
    """Record an error of core `c`, its details by name; the slice stops before the next one."""
    s.status[0] = rule
    s.status_core[0] = c
    s.status_thread[0] = -1
    s.stop_kind[c] = FAULT
    emu_stop(s, c)


@njit
def misaligned(s: Any, c: Any, word: Any, mask: Any) -> None:
    """Refuse a load or store; the sentence needs its address, with the sign of the offset."""
    offset = word >> 20
    if word & 0x7F == STORE:
        offset = (word >> 25) << 5 | (word >> 7) & 31
    elif word & 0x7F == AMO:
        offset = np.int64(0)
    base = x_register(s, c, (word >> 15) & 31)
    s.detail[2] = mask + 1  # the rule is one of the devices: address, value, size
    address = (base + offset - ((offset & 0x800) << 1)) & 0xFFFFFFFF
    fail(s, c, rules.MISALIGNED, address=address)


@njit
def atomic(s: Any, c: Any, word: Any) -> Any:
    """lr, sc and the AMOs: True when the engine must not execute the word itself."""
    function = word >> 27
    if function == _LR or function == _SC:
        fail(s, c, RESERVATION, word=word)
        return True
    address = x_register(s, c, (word >> 15) & 31)
    if address >= L1_SIZE:
        fail(s, c, ATOMIC, word=word, address=address)
        return True
    if address & 3:
        misaligned(s, c, word, 3)
        return True
    s.stored[c] = 1
    return False
