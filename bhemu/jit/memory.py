"""Bytes, halves and words of the state record by their distance from its beginning."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu.jit.subset import JIT, intrinsic


def _pointer(builder: Any, record: Any, at: Any, bits: int) -> Any:
    from llvmlite import ir

    cells = builder.bitcast(record, ir.IntType(bits).as_pointer())
    shift = (bits // 8).bit_length() - 1
    return builder.gep(cells, [builder.lshr(at, ir.Constant(ir.IntType(64), shift))])


def _load(bits: int) -> Callable[..., Any]:
    if not JIT:
        kind = f"<u{bits // 8}"
        return lambda s, at: np.int64(s.buffer.view(kind)[int(at) // (bits // 8)])

    @intrinsic
    def load(typing: Any, s: Any, at: Any) -> Any:
        from llvmlite import ir
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            record, at = args
            value = builder.load(_pointer(builder, record, at, bits))
            return builder.zext(value, ir.IntType(64))

        return types.int64(s, types.int64), emit

    return load


def _store(bits: int) -> Callable[..., Any]:
    if not JIT:
        kind, mask = f"<u{bits // 8}", (1 << bits) - 1

        def plain(s: Any, at: Any, value: Any) -> None:
            s.buffer.view(kind)[int(at) // (bits // 8)] = int(value) & mask

        return plain

    @intrinsic
    def store(typing: Any, s: Any, at: Any, value: Any) -> Any:
        from llvmlite import ir
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            record, at, value = args
            cell = builder.trunc(value, ir.IntType(bits))
            builder.store(cell, _pointer(builder, record, at, bits))
            return context.get_dummy_value()

        return types.void(s, types.int64, types.int64), emit

    return store


# (record, distance) -> value as int64; the distance is a multiple of the size in bytes
LOAD = {1: _load(8), 2: _load(16), 4: _load(32)}
# (record, distance, value): its low bytes
STORE = {1: _store(8), 2: _store(16), 4: _store(32)}
