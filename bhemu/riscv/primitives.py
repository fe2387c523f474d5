"""What the hooks ask of the engine: registers, stop, start; compiled, with interpreted twins.

The engine library must be loaded into the process before these compile (see unicorn_engine).
"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from bhemu.jit.subset import JIT, External, intrinsic, njit, signature
from bhemu.memmap import FAR_UNTIL
from bhemu.tensix.state import OFFSET

REG_X0 = 1  # the engine's numbers, asserted by unicorn_core
REG_PC = 190
PROT_READ_WRITE, PROT_ALL = 3, 7


def _library() -> str:
    """The path of the engine's library, found without importing its Python side (20 ms)."""
    found = importlib.util.find_spec("unicorn")
    if found is None or found.origin is None:
        raise ImportError("unicorn is not installed")
    return str(Path(found.origin).parent / "lib" / "libunicorn.so.2")


LIBRARY = _library()
_SCRATCH = np.uint64(OFFSET["scratch"])
_FAR_UNTIL = np.uint64(FAR_UNTIL)

if JIT:
    _reg_read: Any = External("uc_reg_read", signature("int32", "uint64", "int32", "uint64"))
    _reg_write: Any = External("uc_reg_write", signature("int32", "uint64", "int32", "uint64"))
    _emu_stop: Any = External("uc_emu_stop", signature("int32", "uint64"))
    _emu_start: Any = External("uc_emu_start", signature("int32", *["uint64"] * 5))

    @njit
    def reg_read(s: Any, c: Any, reg: Any) -> Any:
        """Register `reg` of core `c`, as int64 0 .. 2^32-1."""
        s.scratch[0] = np.uint32(0)
        _reg_read(s.engine[c], np.int32(reg), s.host[0] + _SCRATCH)
        return np.int64(s.scratch[0])

    @intrinsic
    def _word_at(typing: Any, address: Any) -> Any:
        """The 32-bit word at a host address."""
        from llvmlite import ir
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], ir.IntType(32).as_pointer()))

        return types.uint32(types.uint64), emit

    @njit
    def x_register(s: Any, c: Any, number: Any) -> Any:
        """x0-x31 of core `c` as reg_read gives it, straight from the engine where that is known."""
        if s.registers[c] != np.uint64(0):
            return np.int64(_word_at(s.registers[c] + np.uint64(4 * number)))
        return reg_read(s, c, REG_X0 + number)

    @intrinsic
    def _set_word_at(typing: Any, address: Any, value: Any) -> Any:
        """Set the 32-bit word at a host address."""
        from llvmlite import ir
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[1], builder.inttoptr(args[0], ir.IntType(32).as_pointer()))
            return context.get_dummy_value()

        return types.void(types.uint64, types.uint32), emit

    @njit
    def reg_write(s: Any, c: Any, reg: Any, value: Any) -> None:
        """Set register `reg` of core `c`."""
        s.scratch[0] = np.uint32(value & 0xFFFFFFFF)
        _reg_write(s.engine[c], np.int32(reg), s.host[0] + _SCRATCH)

    @njit
    def _set_x_register(s: Any, c: Any, number: Any, value: Any) -> None:
        if s.registers[c] != np.uint64(0):
            _set_word_at(s.registers[c] + np.uint64(4 * number), np.uint32(value))
        else:
            reg_write(s, c, REG_X0 + number, np.int64(value))

    @njit
    def emu_stop(s: Any, c: Any) -> None:
        """Stop core `c` before its next instruction (see hooks.py for loads and stores)."""
        _emu_stop(s.engine[c])

    @njit
    def emu_start(s: Any, c: Any) -> Any:
        """Run core `c` from s.pc[c] until it stops; returns the engine's error number."""
        zero = np.uint64(0)
        return np.int64(_emu_start(s.engine[c], np.uint64(s.pc[c]), _FAR_UNTIL, zero, zero))

else:

    def reg_read(s: Any, c: Any, reg: Any) -> Any:
        """Interpreted twin."""
        return s.py.engine.reg_read(c, reg)

    def x_register(s: Any, c: Any, number: Any) -> Any:
        """Interpreted twin."""
        return s.py.engine.reg_read(c, REG_X0 + int(number))

    def reg_write(s: Any, c: Any, reg: Any, value: Any) -> None:
        """Interpreted twin."""
        s.py.engine.reg_write(c, reg, int(value) & 0xFFFFFFFF)

    def _set_x_register(s: Any, c: Any, number: Any, value: Any) -> None:
        s.py.engine.reg_write(c, REG_X0 + number, int(value))

    def emu_stop(s: Any, c: Any) -> None:
        """Interpreted twin."""
        s.py.engine.emu_stop(c)

    def emu_start(s: Any, c: Any) -> Any:
        """Interpreted twin."""
        return s.py.engine.emu_start(c, int(s.pc[c]))


@njit
def registers_from(s: Any, c: Any) -> None:
    """Copy x1-x31 of core `c` from its engine, if there is one yet, into the record."""
    if s.engine[c] == np.uint64(0):
        return
    for i in range(1, 32):
        s.regs[c, i] = np.uint32(x_register(s, c, i))


@njit
def registers_into(s: Any, c: Any) -> None:
    """Copy x1-x31 of core `c` from the record into its engine, if any, while it does not run."""
    if s.engine[c] == np.uint64(0):
        return
    for i in range(1, 32):
        _set_x_register(s, c, i, s.regs[c, i])
