"""Calls through the pointers of compiled code, with interpreted twins.

With NUMBA_DISABLE_JIT=1 the same sources run as plain Python; the calls then go to `s.py`, with
the methods `entry(t, word)`, `step(token, n)` and `access(token, core, address, size, value)`.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import JIT, intrinsic


def _pointer_call(codegen_args: Any, builder: Any, address: Any) -> Any:
    from llvmlite import ir

    kind = ir.FunctionType(ir.IntType(64), [a.type for a in codegen_args])
    return builder.call(builder.inttoptr(address, kind.as_pointer()), codegen_args)


if JIT:

    @intrinsic
    def call_entry(typing: Any, address: Any, s: Any, t: Any, word: Any) -> Any:
        """Call the entry of an opcode: (s, t, word) -> status."""
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _pointer_call(args[1:], builder, args[0])

        return types.int64(types.uint64, s, types.int64, types.uint32), emit

    @intrinsic
    def call_step(typing: Any, address: Any, s: Any, n: Any) -> Any:
        """Call a STEP entry: (s, n) -> int64."""
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _pointer_call(args[1:], builder, args[0])

        return types.int64(types.uint64, s, types.int64), emit

    @intrinsic
    def call_access(
        typing: Any, address: Any, s: Any, core: Any, where: Any, size: Any, value: Any
    ) -> Any:
        """Call an ACCESS entry: (s, core, address, size, value) -> value."""
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _pointer_call(args[1:], builder, args[0])

        number = types.int64
        return number(types.uint64, s, number, number, number, number), emit

    @intrinsic
    def l1_word(typing: Any, s: Any, address: Any) -> Any:
        """The aligned 32-bit word of L1 that holds `address` (the caller keeps it inside)."""
        from llvmlite import ir
        from numba import types

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
