"""The decorator of compiled functions.

numba makes every function callable from Python as well; that costs a quarter of the compile time
and nothing but unit tests uses it. With BHEMU_PYTHON_WRAPPERS=1 the functions are callable.
"""

import dis
import os
from collections.abc import Callable
from typing import Any

import numba

_WRAPPED = bool(os.environ.get("BHEMU_PYTHON_WRAPPERS"))
OPTIMISED: set[str] = set()  # names of functions that are optimised alone too, see lean.py


def _note(function: Callable[..., Any]) -> None:
    """Functions with loops, and those in which the parts of an instruction meet."""
    found = {i.opname for i in dis.get_instructions(function)}
    if found & {"FOR_ITER", "JUMP_BACKWARD"} or function.__name__ == "execute":
        OPTIMISED.add(function.__qualname__)


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """numba.njit, for functions that only compiled code calls; bare or with options."""
    options = {"no_rewrites": True, **options}  # of array expressions, which nothing here has
    if not _WRAPPED and "inline" not in options:
        options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
    decorate = numba.njit(**options)

    def decorated(function: Callable[..., Any]) -> Any:
        _note(function)
        return decorate(function)

    return decorated if function is None else decorated(function)
