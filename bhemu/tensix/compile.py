"""Compiled code on demand: one entry per opcode, the loop, and what fills the pointer table.

The pointer of an opcode starts at an escape into Python; its first word compiles the entry (or
loads it from the cache), puts it into the table and executes the word. What the process has loaded
already is in the table of the next tile from the beginning.
"""

import ctypes
import functools
import time
from collections.abc import Callable
from typing import Any

from bhemu.jit import cache
from bhemu.jit.build import compiled, compiled_text
from bhemu.jit.callback import callback
from bhemu.jit.subset import JIT
from bhemu.tensix import cold, loop, units
from bhemu.tensix.insn import REGISTRY, Instruction
from bhemu.tensix.record import ENTRY, STEP
from bhemu.tensix.state import State
from bhemu.tensix.status import NOT_EXECUTED, RESERVED_BITS, UNKNOWN_OPCODE, error

assert units.MODULES  # importing the package declares the instructions

FAILED = error("INTERNAL", "Internal", "bhemu failed while compiling or running Python code")

Progress = Callable[[str, float], None]  # name of what was compiled, seconds
Before = Callable[[int, int], Any]  # (thread, word) -> what After gets with the word's status
After = Callable[[Any, int], None]

_ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32)

_TEMPLATE = """\"\"\"Generated from {name} by bhemu/tensix/compile.py; do not edit.\"\"\"

import numpy as np

from {module} import {name}
from bhemu.jit.subset import njit

_execute = njit({name}.execute)
{route}

def entry(s, t, word):
    w = np.int64(word)
{routed}{reserved}    return np.int64(_execute(s, t{arguments}))
"""


def entry_source(cls: type[Instruction]) -> str:
    """Text of the generated module with the entry function of an executable instruction."""
    reserved = ""
    if cls.reserved:
        reserved = (
            f"    if w & {cls.reserved:#x}:\n"
            f"        s.detail[0] = w & {cls.reserved:#x}\n"
            f"        return np.int64({RESERVED_BITS})\n"
        )
    fields = "".join(f", (w >> {f.lo}) & {f.max:#x}" for f in cls.fields)
    names = {"name": cls.__name__, "module": cls.__module__, "route": "", "routed": ""}
    if cls.route is not None:
        names["route"] = f"_route = njit({cls.__name__}.route)\n"
        names["routed"] = "    if s.route[0]:\n        return np.int64(_route(s, t, w))\n"
    return _TEMPLATE.format(**names, reserved=reserved, arguments=fields)


_LOADED: dict[int, int] = {}  # opcode -> address of its entry, once this process has it


def timed(compiling: Any, which: int) -> tuple[Any, float]:
    """(what a cached function gives, seconds it spent compiling now; 0 = not now)."""
    begin = time.perf_counter()
    before = compiling.cache_info().misses
    function = compiling(which)
    new = compiling.cache_info().misses > before and function.fresh
    return function, time.perf_counter() - begin if new else 0.0


@functools.cache
def _compile_entry(opcode: int) -> Any:
    cls = REGISTRY[opcode]
    function = compiled_text(ENTRY, cls.__name__, cls.__module__, entry_source(cls))
    _LOADED[opcode] = function.address
    return function


def entry(opcode: int) -> tuple[Any, float]:
    """(compiled entry of an executable opcode, seconds spent compiling it now; 0 = not now)."""
    return timed(_compile_entry, opcode)


def is_cached(opcode: int) -> bool:
    """Whether the entry of an executable opcode need not be compiled."""
    cls = REGISTRY[opcode]
    return cache.present(cache.folder(cls.__name__, cls.__module__, entry_source(cls)))


@functools.cache
def loop_entries() -> dict[str, Any]:
    """The compiled loop: `rounds` (scheduler), `tensix` (all threads), `thread` (one)."""
    return {
        "rounds": compiled(STEP, loop.run_rounds),
        "tensix": compiled(STEP, loop.tensix_entry),
        "thread": compiled(STEP, loop.thread_entry),
    }


@functools.cache
def _compile_cold(slot: int) -> Any:
    return compiled(ENTRY, cold.ENTRIES[slot])


def cold_entry(slot: int) -> tuple[Any, float]:
    """(compiled second entry of a slot of cold.py, seconds spent compiling it now; 0 = not now)."""
    return timed(_compile_cold, slot)


def refusal(opcode: int) -> int:
    """Status of an opcode that cannot execute: unknown, or declared but not modelled."""
    return NOT_EXECUTED if opcode in REGISTRY else UNKNOWN_OPCODE


class Table:
    """Fills the pointer table of one state record; keeps the callbacks alive."""

    def __init__(self, s: State, progress: Progress) -> None:
        self._s, self._progress = s, progress
        self.failure: BaseException | None = None
        self.seconds = 0.0  # spent compiling so far: no time of the program's
        self._watch: tuple[Before, After] | None = None
        for opcode, cls in REGISTRY.items():
            s.stall[opcode] = cls.stall_mask
            s.wakes[opcode] = cls.wakes
        if not JIT:
            return
        self._escape, self._escapes = callback(_ENTRY_TYPE, self._on_escape)
        s.table[:] = self._escapes
        for opcode, loaded in _LOADED.items():
            s.table[opcode] = loaded
        self._cold = {slot: callback(_ENTRY_TYPE, self._on_cold, slot) for slot in cold.ENTRIES}
        for slot, (_, address) in self._cold.items():
            s.cold[slot] = address
        entries = loop_entries()
        s.run_tensix[0] = entries["tensix"].address
        s.run_thread[0] = entries["thread"].address

    def _on_escape(self, base: int, t: int, word: int) -> int:
        """First word of an opcode: compile its entry, then execute the word."""
        opcode = int(self._s.route[0]) or word >> 24
        try:
            if opcode not in REGISTRY or REGISTRY[opcode].execute is None:
                self._s.detail[0] = opcode
                return refusal(opcode)
            function, seconds = entry(opcode)
            if seconds:
                self.compiled(REGISTRY[opcode].name, seconds)
            call = _ENTRY_TYPE(function.address)
            if self._watch is None:
                self._s.table[opcode] = function.address
                return int(call(base, t, word))
            return self.watched(t, word, lambda: int(call(base, t, word)))
        except BaseException as problem:  # must not cross the compiled frames
            self.failure = problem
            return FAILED

    def compiled(self, name: str, seconds: float) -> None:
        """Something was compiled within a run: no time of the program's."""
        self.seconds += seconds
        self._progress(name, seconds)

    def observe(self, before: Before, after: After) -> None:
        """Call `before` and `after` around every word; words run through Python from now on."""
        self._watch = before, after
        if JIT:
            self._s.table[:] = self._escapes

    def watched(self, t: int, word: int, execute: Callable[[], int]) -> int:
        """Status of `execute`, which runs `word`, with the observer around it."""
        if self._watch is None:
            return execute()
        before, after = self._watch
        seen = before(t, word)
        status = execute()
        after(seen, status)
        return status

    def _on_cold(self, slot: int, base: int, t: int, word: int) -> int:
        """First word that needs a second entry: compile it, then execute the word."""
        try:
            function, seconds = cold_entry(slot)
            if seconds:
                self.compiled(cold.NAMES[slot], seconds)
            self._s.cold[slot] = function.address
            return int(_ENTRY_TYPE(function.address)(base, t, word))
        except BaseException as problem:  # must not cross the compiled frames
            self.failure = problem
            return FAILED


def execute(s: State, t: int, word: int) -> int:
    """Status of one word of thread `t`, compiled or interpreted, without the loop around it."""
    if not JIT:
        return interpret(s, t, word)
    return int(_ENTRY_TYPE(int(s.table[word >> 24]))(s.base, t, word))


def interpret(s: State, t: int, word: int) -> int:
    """Execute one word without compiled code: the same checks as an entry."""
    w = int(word)
    if s.route[0]:
        route = REGISTRY[int(s.route[0])].route
        assert route is not None
        return int(route(s, int(t), w))
    cls = REGISTRY.get(w >> 24)
    if cls is None or cls.execute is None:
        s.detail[0] = w >> 24
        return refusal(w >> 24)
    if w & cls.reserved:
        s.detail[0] = w & cls.reserved
        return RESERVED_BITS
    return int(cls.execute(s, int(t), *(f.get(w) for f in cls.fields)))
