"""The processor's time stamp counter, for compiled code; interpreted, nanoseconds."""

import platform
import time
from typing import Any

from bhemu.jit.subset import JIT, intrinsic

# A counter that programs may read: ARM's cycle counter is the kernel's.
_COUNTER = "llvm.readcyclecounter" if platform.machine() == "x86_64" else "llvm.readsteadycounter"

if JIT:

    @intrinsic
    def ticks(typing: Any) -> Any:
        """Ticks of a constant rate: on x86-64 1 to 5 per nanosecond."""
        from llvmlite import ir
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [])
            function = builder.module.declare_intrinsic(_COUNTER, fnty=kind)
            return builder.call(function, [])

        return types.int64(), emit

else:

    def ticks() -> Any:
        """Interpreted twin."""
        return time.perf_counter_ns()
