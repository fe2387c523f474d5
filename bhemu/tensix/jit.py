"""Compiled or interpreted: the record type, calls through pointers, and the cache folder.

With NUMBA_DISABLE_JIT=1 the same sources run as plain Python; the calls through pointers then go
to `s.py`, an object with the methods `entry(t, word)`, `step(token, n)` and
`access(token, core, address, size, value)`.
"""

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from bhemu.tensix.state import DTYPE

JIT = not numba.config.DISABLE_JIT
REC = numba.from_dtype(DTYPE)
ENTRY = types.int64(REC, types.int64, types.uint32)  # execute one word of thread t
STEP = types.int64(REC, types.int64)  # run a core, or the coprocessor for n words
ACCESS = types.int64(REC, types.int64, types.int64, types.int64, types.int64)

_PACKAGE = Path(__file__).resolve().parent.parent
_COMPILED = ("tensix", "riscv", "devices")


def cache_key() -> str:
    """Hash of every source that is compiled, the versions of the tools and the CPU."""
    digest = hashlib.sha256()
    for part in (numba.__version__, llvmlite.__version__, np.__version__, sys.version):
        digest.update(part.encode())
    digest.update(llvmlite.binding.get_host_cpu_name().encode() + platform.machine().encode())
    for folder in _COMPILED:
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            digest.update(str(path.relative_to(_PACKAGE)).encode() + path.read_bytes())
    return digest.hexdigest()[:20]


def cache_folder() -> Path:
    """Folder of compiled code: $BHEMU_CACHE_DIR, else the user's cache folder, else a temporary."""
    root = os.environ.get("BHEMU_CACHE_DIR")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bhemu"
    folder = (Path(root) if root else base) / cache_key()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"bhemu-{os.getuid()}" / cache_key()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


CACHE = cache_folder()
if JIT:
    numba.config.CACHE_DIR = str(CACHE)


def _pointer_call(codegen_args: Any, builder: Any, address: Any) -> Any:
    kind = ir.FunctionType(ir.IntType(64), [a.type for a in codegen_args])
    return builder.call(builder.inttoptr(address, kind.as_pointer()), codegen_args)


if JIT:

    @intrinsic
    def call_entry(typing: Any, address: Any, s: Any, t: Any, word: Any) -> Any:
        """Call the entry of an opcode: (s, t, word) -> status."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _pointer_call(args[1:], builder, args[0])

        return types.int64(types.uint64, s, types.int64, types.uint32), emit

    @intrinsic
    def call_step(typing: Any, address: Any, s: Any, n: Any) -> Any:
        """Call a STEP entry: (s, n) -> int64."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _pointer_call(args[1:], builder, args[0])

        return types.int64(types.uint64, s, types.int64), emit

    @intrinsic
    def call_access(
        typing: Any, address: Any, s: Any, core: Any, where: Any, size: Any, value: Any
    ) -> Any:
        """Call an ACCESS entry: (s, core, address, size, value) -> value."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _pointer_call(args[1:], builder, args[0])

        number = types.int64
        return number(types.uint64, s, number, number, number, number), emit

    @intrinsic
    def l1_word(typing: Any, s: Any, address: Any) -> Any:
        """The aligned 32-bit word of L1 that holds `address` (the caller keeps it inside)."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            words = builder.bitcast(args[0], ir.IntType(32).as_pointer())
            index = builder.lshr(args[1], ir.Constant(ir.IntType(64), 2))
            word = builder.load(builder.gep(words, [index]))
            return builder.zext(word, ir.IntType(64))

        return types.int64(s, types.int64), emit

else:

    def l1_word(s: Any, address: Any) -> Any:
        """Interpreted twin: one word of L1."""
        return np.int64(s.l1.view(np.uint32)[int(address) >> 2])

    def call_entry(address: Any, s: Any, t: Any, word: Any) -> Any:
        """Interpreted twin: execute one word."""
        return s.py.entry(t, word)

    def call_step(address: Any, s: Any, n: Any) -> Any:
        """Interpreted twin: run a core or the coprocessor."""
        return s.py.step(int(address), n)

    def call_access(address: Any, s: Any, core: Any, where: Any, size: Any, value: Any) -> Any:
        """Interpreted twin: perform a device access."""
        return s.py.access(int(address), core, where, size, value)


def compiled(signature: Any, function: Callable[..., Any]) -> Any:
    """The C callback of `function` (an object with `.address`), from the cache when it is there."""
    return numba.cfunc(signature, cache=True)(function)
