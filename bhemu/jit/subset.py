"""The decorator of compiled functions.

numba makes every function callable from Python as well; that costs a quarter of the compile time
and nothing but unit tests uses it. With BHEMU_PYTHON_WRAPPERS=1 the functions are callable.

Two ways to inline: `forceinline=True` leaves it to LLVM, for large functions with few callers
(tuples among the arguments then stay in registers); `inline="always"` copies numba's own form,
which costs compile time for every statement around the call, for small ones that many call.
"""

import os
from collections.abc import Callable
from typing import Any

import numba

JIT = not numba.config.DISABLE_JIT
_WRAPPED = bool(os.environ.get("BHEMU_PYTHON_WRAPPERS"))


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """numba.njit, for functions that only compiled code calls; bare or with options."""
    options = {"no_rewrites": True, **options}  # of array expressions, which nothing here has
    if not _WRAPPED and "inline" not in options:
        options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
    decorate = numba.njit(**options)
    return decorate if function is None else decorate(function)
