"""What an MMIO window and a register inside one declare, once; everything else is made from it.

`WINDOW = Window(...)` stands in the file of its functions. A function of a window or register
names those of `s, c, offset, size, value` that it needs, and what `given` adds; c is 0-4 (brisc
trisc0 trisc1 trisc2 ncrisc) or HOST. It returns DONE, a condition to wait for or the number of a
rule, before any effect; a load leaves its value in `s.loaded[0]`. All run compiled.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from bhemu import memmap as mm
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


Function = Callable[..., Any]

TRISCS = (1, 2, 3)
TENSIX_CORES = (0, *TRISCS)  # those with a way to the coprocessor
CORES = (*TENSIX_CORES, 4)
EVERYONE = (*CORES, mm.HOST)

# Widths of an access, in bytes, as a mask
WORD, ANY = 4, 1 | 2 | 4
BY_BYTES = 8  # the function gets the byte offset and the size; others give the aligned word

# What goes before a core's access: nothing; its thread runs until its head blocks; and as which
# resource Auto TTSync then tracks it (access_order.py).
AT_ONCE, AFTER_WORDS, TRACKED_GPRS, TRACKED_TDMA, TRACKED_CONFIG = range(5)


class Effect(Enum):
    """What an access does beyond its value, for an analysis that must not perform it.

    `s.load_acted` is 1 after a load that has a side effect, or whose value changes by itself: the
    bus sets it where the declaration says so, the function where the effect depends on the state.
    """

    NONE = "nothing else happens"
    VARIES = "a load gives what changes by itself"
    CLOCK = "a load gives the time"
    STORAGE = "a store changes what a load gives, and nothing else"
    CHANGES = "others may see the access"


Waits = int  # the condition that an access would wait for
EffectOf = Callable[[Any, int, int], Effect | Waits]  # of (s, core, offset)


class _Kept(Enum):
    KEPT = "the word as stored, in the window's storage"
    DROPPED = "a store has no effect"


KEPT, DROPPED = _Kept.KEPT, _Kept.DROPPED


@dataclass(frozen=True)
class Register:
    """Words of a window under one name, as tt-exalens writes it (a name of memmap, if it is there).

    load, store: a function, KEPT, or None where there is none (a rule says so); a load may be the
    number that it gives, a store DROPPED. place: where KEPT keeps it, a place of the record over
    `c` and `offset`, "": in the window's storage.
    inert: why its writes change nothing that bhemu models. It has a word of its own, its accesses
    are counted, and `mask` selects the bits that a store keeps. modelled=False: refused, with the
    name in the message.
    """

    name: str
    offset: int
    load: Function | _Kept | int | None = KEPT
    store: Function | _Kept | None = KEPT
    words: int = 1
    effect: Effect = Effect.NONE
    inert: str = ""
    mask: int = 0xFFFFFFFF
    modelled: bool = True
    place: str = ""

    @property
    def end(self) -> int:
        """Offset after its last byte."""
        return self.offset + 4 * self.words

    @property
    def access(self) -> str:
        """ "inert", "not modelled", "load", "store" or "load, store"."""
        if self.inert or not self.modelled:
            return "inert" if self.inert else "not modelled"
        ways = (("load", self.load), ("store", self.store))
        return ", ".join(name for name, way in ways if way is not None)


def debug_register(name: str, *ways: Any, effect: Effect = Effect.NONE) -> Register:
    """A register of the tile's debug block, which memmap names."""
    name = f"RISCV_DEBUG_REG_{name}"
    return Register(name, getattr(mm, name), *ways, effect=effect)


def inert(name: str, offset: int, why: str, mask: int = 0xFFFFFFFF) -> Register:
    """A register whose writes change nothing that bhemu models."""
    return Register(name, offset, inert=why, mask=mask)


def not_modelled(name: str, offset: int, end: int) -> Register:
    """Registers that are refused by the name of what they belong to."""
    return Register(name, offset, None, None, (end - offset) // 4, modelled=False)


@dataclass(frozen=True, eq=False)
class Window:
    """Addresses low to high - 1 and what an access to them does.

    load, store: functions; a window of registers has them at its registers, and `storage` names the
    member of the record that keeps their words. loads, stores: widths. agents: may access
    it. order: what goes before an access. unknown: the rule of an offset without a register.
    load_effect, store_effect: for analyses, where the registers do not say it. power_up(s, xy):
    puts into the record what is there at power-up and is not 0.
    """

    name: str
    low: int
    high: int
    load: Function | None = None
    store: Function | None = None
    registers: tuple[Register, ...] = ()
    storage: str = ""
    loads: int = ANY
    stores: int = WORD
    agents: tuple[int, ...] = EVERYONE
    order: int = AFTER_WORDS
    unknown: int = NOT_MODELLED
    given: Mapping[str, int] = field(default_factory=dict)
    load_effect: Effect | EffectOf = Effect.NONE
    store_effect: Effect | EffectOf = Effect.CHANGES
    power_up: Callable[[Any, tuple[int, int]], None] | None = None

    def __post_init__(self) -> None:
        at = 0
        for register in sorted(self.registers, key=lambda register: register.offset):
            assert at <= register.offset, f"{self.name}: {register.name} overlaps"
            at = register.end
        assert at <= self.high - self.low, f"{self.name}: {at:#x} is outside"

    def way(self, store: bool) -> Function | None:
        """The function of loads or stores."""
        return self.store if store else self.load

    def register(self, offset: int) -> Register | None:
        """The register that holds a byte of the window."""
        return next((r for r in self.registers if r.offset <= offset < r.end), None)

    def effect(self, store: bool, s: Any, core: int, offset: int) -> Effect | Waits:
        """What a load or store by a core (0-4) would do."""
        register = self.register(offset)
        if register is not None and not store and register.effect is not Effect.NONE:
            return register.effect
        effect = self.store_effect if store else self.load_effect
        return effect if isinstance(effect, Effect) else effect(s, core, offset)

    def load_acts(self, register: Register | None) -> bool:
        """True when every load, of a register or else of the window, may do more than load."""
        effect = self.load_effect
        if register is not None and (register.inert or register.effect is not Effect.NONE):
            return True
        return isinstance(effect, Effect) and effect is not Effect.NONE

    def refuses(self, store: bool, agent: int) -> int:
        """The rule that every load or store by an agent breaks, or 0."""
        if not self.registers:
            if self.load is None and self.store is None:
                return NOT_MODELLED
            if self.way(store) is None:
                return READ_ONLY if store else WRITE_ONLY
        return 0 if agent in self.agents else WRONG_CORE


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
