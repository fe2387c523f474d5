"""Calls of compiled code into methods of Python objects that the call does not keep alive."""

import ctypes
import weakref
from collections.abc import Callable
from typing import Any


def callback(prototype: Any, method: Callable[..., int], *first: int) -> tuple[Any, int]:
    """(C function to keep as long as it may be called, its address): method(*first, ...).

    The object of the bound `method` may hold the function: that makes no reference cycle.
    """
    own = weakref.WeakMethod(method)

    def call(*arguments: int) -> int:
        target = own()
        assert target is not None, "called after the end of its object"
        return target(*first, *arguments)

    function = prototype(call)
    # ctypes.cast would make the function refer to itself
    return function, int(ctypes.c_void_p.from_buffer(function).value or 0)
