"""The decorators of compiled functions; they only mark, and import nothing that compiles.

`njit` notes a function and the options of its compilation; `intrinsic` and `External` do the same
for code that numba's own interfaces emit and for functions of C libraries. numba sees them when
something must be compiled (emit.py). With NUMBA_DISABLE_JIT=1, and in a run that began before its
code was compiled (interpreted.py), the functions are plain Python.

Two ways to inline: `forceinline=True` leaves it to LLVM, for large functions with few callers
(tuples among the arguments then stay in registers); `inline="always"` copies numba's own form,
which costs compile time for every statement around the call, for small ones that many call.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bhemu.jit import interpreted

JIT = not (interpreted.chosen or interpreted.always())


class Compiled:
    """A function of the compiled subset, with the options that numba gets."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._made: Callable[[], Any] = lambda: function
        self.options = options

    @classmethod
    def generated(cls, make: Callable[[], Any], options: dict[str, Any]) -> "Compiled":
        """One whose text is generated, when it is first asked for."""
        new = cls(make, options)
        new._made = make
        return new

    @functools.cached_property
    def py_func(self) -> Any:
        """The function itself, as Python sees it."""
        return self._made()

    def __call__(self, *arguments: Any) -> Any:
        """Compile for these arguments and run: for unit tests only."""
        from bhemu.jit.emit import called

        return called(self, *arguments)

    def __repr__(self) -> str:
        return f"<compiled function {self.py_func.__module__}.{self.py_func.__qualname__}>"


class Intrinsic:
    """A function that emits code, as numba.extending.intrinsic takes it; imports numba inside."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.emitter: Any = function


class Signature(NamedTuple):
    """Types of a function of C: scalars by NumPy's names, "void", or the dtype of a record."""

    result: str
    arguments: tuple["str | np.dtype[Any]", ...]


def signature(result: str, *arguments: "str | np.dtype[Any]") -> Signature:
    """signature("int64", DTYPE, "uint32"): the record by pointer and a number give a number."""
    return Signature(result, arguments)


class External(NamedTuple):
    """A function of a C library over numbers, called by compiled code, and as well interpreted."""

    symbol: str
    signature: Signature

    def __call__(self, *arguments: Any) -> Any:
        """Call it from Python."""
        return _in_c(self)(*map(int, arguments))


@functools.cache
def _in_c(external: External) -> Callable[..., Any]:
    from bhemu.jit.machine_code import address

    kinds = (external.signature.result, *external.signature.arguments)
    prototype = ctypes.CFUNCTYPE(*(getattr(ctypes, f"c_{kind}") for kind in kinds))
    return prototype(address(external.symbol))


class ByName:
    """A function that takes keywords of any name, and what stores their values (emit.py)."""

    def __init__(self, function: Callable[..., Any], store: Callable[..., None]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.store = function, store

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Called from Python: store the values in the order of their names, then call."""
        for i, name in enumerate(sorted(named)):
            self.store(arguments[0], i, named[name])
        return self.py_func(*arguments)


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Mark a function of the compiled subset; bare or with options of numba.njit."""
    if function is None:
        return functools.partial(njit, **options)
    return Compiled(function, options) if JIT and not isinstance(function, Compiled) else function


def intrinsic(function: Callable[..., Any]) -> Any:
    """Mark a function that emits code."""
    return Intrinsic(function)


def by_name(store: Callable[..., None]) -> Callable[[Callable[..., Any]], ByName]:
    """Let a function take keywords of any name, which `store(s, i, value)` gets; both unmarked.

    numba knows only keywords that a function declares.  `refuse(s, RULE, row=row, size=size)`
    stores the values, in the order of their names, and goes on with `refuse(s, RULE)`; `s` is the
    first argument of both functions.
    """
    return functools.partial(ByName, store=store)
