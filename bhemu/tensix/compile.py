"""Compiled code on demand: one entry per opcode, the loop, and what fills the pointer table.

The pointer of every opcode starts at an escape into Python; the first word of an opcode compiles
its entry (or loads it from the cache), puts it into the table and executes the word.
"""

import ctypes
import functools
import hashlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from bhemu.tensix import loop, units
from bhemu.tensix.insn import REGISTRY, Instruction
from bhemu.tensix.jit import CACHE, ENTRY, JIT, STEP, compiled
from bhemu.tensix.state import State
from bhemu.tensix.status import NOT_EXECUTED, RESERVED_BITS, UNKNOWN_OPCODE, error

assert units.MODULES  # importing the package declares the instructions

FAILED = error("INTERNAL", "Internal", "bhemu failed while compiling or running Python code")

Progress = Callable[[str, float], None]  # name of what was compiled, seconds

_ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32)

_TEMPLATE = """

{name}_execute = njit(_by_name["{name}"].execute)


def {name}_entry(s, t, word):
    w = np.int64(word)
{reserved}    return np.int64({name}_execute(s, t{arguments}))
"""


def _entry_source(cls: type[Instruction]) -> str:
    reserved = ""
    if cls.reserved:
        reserved = (
            f"    if w & {cls.reserved:#x}:\n"
            f"        s.detail[0] = w & {cls.reserved:#x}\n"
            f"        return np.int64({RESERVED_BITS})\n"
        )
    fields = "".join(f", (w >> {f.lo}) & {f.max:#x}" for f in cls.fields)
    return _TEMPLATE.format(name=cls.name, reserved=reserved, arguments=fields)


def entries_source() -> str:
    """Text of the generated module: one entry function per executable instruction."""
    head = (
        '"""Generated from the instruction classes by bhemu/tensix/compile.py; do not edit."""\n\n'
        "import numpy as np\n\n"
        "from bhemu.tensix import units\nfrom bhemu.tensix.insn import REGISTRY\n"
        "from bhemu.tensix.subset import njit\n\n"
        "assert units.MODULES\n_by_name = {c.name: c for c in REGISTRY.values()}\n"
    )
    executable = [REGISTRY[op] for op in sorted(REGISTRY) if REGISTRY[op].execute]
    return head + "".join(_entry_source(cls) for cls in executable)


@functools.cache
def _entries() -> ModuleType:
    """The generated module, as a real file named by its content (numba's cache needs one)."""
    text = entries_source()
    name = f"bhemu_entries_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    path = CACHE / f"{name}.py"
    if not path.exists():
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(text)
        os.replace(scratch, path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@functools.cache
def _compile_entry(opcode: int) -> tuple[Any, bool]:
    function = compiled(ENTRY, getattr(_entries(), f"{REGISTRY[opcode].name}_entry"))
    return function, bool(function.cache_hits)


def entry(opcode: int) -> tuple[Any, float]:
    """(compiled entry of an executable opcode, seconds spent compiling it now; 0 = not now)."""
    begin = time.perf_counter()
    before = _compile_entry.cache_info().misses
    function, cached = _compile_entry(opcode)
    new = _compile_entry.cache_info().misses > before and not cached
    return function, time.perf_counter() - begin if new else 0.0


@functools.cache
def loop_entries() -> dict[str, Any]:
    """The compiled loop: `rounds` (scheduler), `tensix` (all threads), `thread` (one)."""
    return {
        "rounds": compiled(STEP, loop.run_rounds),
        "tensix": compiled(STEP, loop.tensix_entry),
        "thread": compiled(STEP, loop.thread_entry),
    }


def refusal(opcode: int) -> int:
    """Status of an opcode that cannot execute: unknown, or declared but not modelled."""
    return NOT_EXECUTED if opcode in REGISTRY else UNKNOWN_OPCODE


class Table:
    """Fills the pointer table of one state record; keeps the callbacks alive."""

    def __init__(self, s: State, progress: Progress) -> None:
        self._s, self._progress = s, progress
        self.failure: BaseException | None = None
        for opcode, cls in REGISTRY.items():
            s.stall[opcode] = cls.stall_mask
        if not JIT:
            return
        self._escape = _ENTRY_TYPE(self._on_escape)
        address = ctypes.cast(self._escape, ctypes.c_void_p).value
        assert address is not None
        s.table[:] = address
        entries = loop_entries()
        s.run_tensix[0] = entries["tensix"].address
        s.run_thread[0] = entries["thread"].address

    def _on_escape(self, base: int, t: int, word: int) -> int:
        """First word of an opcode: compile its entry, then execute the word."""
        opcode = word >> 24
        try:
            if opcode not in REGISTRY or REGISTRY[opcode].execute is None:
                self._s.detail[0] = opcode
                return refusal(opcode)
            function, seconds = entry(opcode)
            if seconds:
                self._progress(REGISTRY[opcode].name, seconds)
            self._s.table[opcode] = function.address
            return int(_ENTRY_TYPE(function.address)(base, t, word))
        except BaseException as problem:  # must not cross the compiled frames
            self.failure = problem
            return FAILED


def interpret(s: State, t: int, word: int) -> int:
    """Execute one word without compiled code: the same checks as an entry."""
    w = int(word)
    cls = REGISTRY.get(w >> 24)
    if cls is None or cls.execute is None:
        s.detail[0] = w >> 24
        return refusal(w >> 24)
    if w & cls.reserved:
        s.detail[0] = w & cls.reserved
        return RESERVED_BITS
    return int(cls.execute(s, int(t), *(f.get(w) for f in cls.fields)))
