"""Memory and records by their host address, with interpreted twins.

A record that interpreted code may find by its address is noted in `records`.
"""

import ctypes
import weakref
from typing import Any

import numpy as np

from bhemu.jit.subset import JIT, External, intrinsic, signature

records: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()
"""What stands for the record at an address when the code is interpreted."""


def record_at(dtype: "np.dtype[Any]") -> Any:
    """The function (address) -> record of this type."""
    if not JIT:
        return lambda address: records[int(address)]

    @intrinsic
    def at(typing: Any, address: Any) -> Any:
        from numba import from_dtype, types

        kind = from_dtype(dtype)

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(kind))

        return kind(types.int64), emit

    return at


if JIT:
    # (to, from, bytes), overlapping or not; (to, byte, bytes)
    move: Any = External("memmove", signature("int64", "int64", "int64", "int64"))
    fill: Any = External("memset", signature("int64", "int64", "int64", "int64"))

    @intrinsic
    def load_word(typing: Any, address: Any) -> Any:
        """The 32-bit word at a host address."""
        from llvmlite import ir
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = builder.load(builder.inttoptr(args[0], ir.IntType(32).as_pointer()), align=1)
            return builder.zext(word, ir.IntType(64))

        return types.int64(types.int64), emit

    @intrinsic
    def store_word(typing: Any, address: Any, value: Any) -> Any:
        """Store the low 32 bits of `value` at a host address."""
        from llvmlite import ir
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = builder.trunc(args[1], ir.IntType(32))
            builder.store(word, builder.inttoptr(args[0], ir.IntType(32).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), emit

else:

    def move(to: Any, source: Any, n: Any) -> None:
        """Interpreted twin: copy bytes."""
        ctypes.memmove(int(to), int(source), int(n))

    def fill(to: Any, byte: Any, n: Any) -> None:
        """Interpreted twin: fill bytes."""
        ctypes.memset(int(to), int(byte), int(n))

    def load_word(address: Any) -> Any:
        """Interpreted twin: one word."""
        return np.int64(ctypes.c_uint32.from_address(int(address)).value)

    def store_word(address: Any, value: Any) -> None:
        """Interpreted twin: store one word."""
        ctypes.c_uint32.from_address(int(address)).value = int(value) & 0xFFFFFFFF
