"""What a core may not execute: how an error stops its slice, misaligned accesses, atomics."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.jit.subset import by_name, njit
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.riscv.formats import Atomic, Load, NotModelled, Store
from bhemu.riscv.isa import alignment_masks, decode, zaamo
from bhemu.tensix.rules import GUEST, UB, UNIMPLEMENTED, error, note

# stop_kind: why the last slice ended
NONE, TURN_OVER, WAITS, PARKS, BREAKPOINT, LIMIT, ASSERT, FAULT, UNTIL, FLUSHES, WATCH = range(11)

_TRISC2 = CORE_NAMES.index("trisc2")
_LR, _SC = (cls.funct5.get(cls.match) for cls in (zaamo.LR_W, zaamo.SC_W))
LOAD_MASKS = alignment_masks(Load)
STORE_MASKS = alignment_masks(Store)
_STORE, _ATOMIC = Store.code(), Atomic.code()

RESERVATION = error("RV-LRSC", UB, "lr.w and sc.w ({word:#010x}) do not exist on these cores")
ATOMIC = error(
    "RV-AMO", UB, "atomic access to {address:#010x}: atomics work on L1 only (word {word:#010x})"
)
ILLEGAL = error("RV-ILLEGAL", GUEST, "{word:#010x} is no instruction of these cores")
_EXTENSION = error(
    "RV-EXTENSION",
    UNIMPLEMENTED,
    "{word:#010x} is an instruction of F, Zfh or V, which are not modelled",
    "build this code without them: -march=rv32im_zba_zbb -mabi=ilp32",
)
_VECTOR = error(
    "RV-VECTOR",
    UB,
    "{word:#010x} is a vector instruction: trisc2 alone has them",
    "build this code without V: -march=rv32im_zba_zbb -mabi=ilp32",
)
SYSTEM = error(
    "RV-SYSTEM", GUEST, "{word:#010x} (ecall, wfi or xret) has no meaning on these cores"
)
TRAP = error("RV-TRAP", GUEST, "trap with cause {cause} at {address:#010x}")


def illegal(core: int, word: int) -> int:
    """The rule that a word breaks at which a slice ended with ILLEGAL, which covers three."""
    rule, cls = ILLEGAL, decode(word)
    if cls is not None and issubclass(cls, NotModelled):
        rule = _VECTOR if cls.on_trisc2_only and core != _TRISC2 else _EXTENSION
    return rule


@by_name(note)
def fail(s: Any, c: Any, rule: Any) -> None:
    """Record an error of core `c`, its details by name; the engine must stop before the next."""
    s.status[0] = rule
    s.status_core[0] = c
    s.status_thread[0] = -1
    s.stop_kind[c] = FAULT


@njit
def misaligned(s: Any, c: Any, word: Any, mask: Any, base: Any) -> None:
    """Refuse a load or store; the sentence needs its address, with the sign of the offset."""
    offset = word >> 20
    if word & 0x7F == _STORE:
        offset = (word >> 25) << 5 | (word >> 7) & 31
    elif word & 0x7F == _ATOMIC:
        offset = np.int64(0)
    s.detail[2] = mask + 1  # the rule is one of the devices: address, value, size
    address = (base + offset - ((offset & 0x800) << 1)) & 0xFFFFFFFF
    fail(s, c, rules.MISALIGNED, address=address)


@njit
def atomic(s: Any, c: Any, word: Any, address: Any) -> Any:
    """lr, sc and the AMOs: True when the word may not execute."""
    function = word >> 27
    if function == _LR or function == _SC:
        fail(s, c, RESERVATION, word=word)
        return True
    if address >= L1_SIZE:
        fail(s, c, ATOMIC, word=word, address=address)
        return True
    if address & 3:
        misaligned(s, c, word, 3, address)
        return True
    s.stored[c] = 1
    return False
