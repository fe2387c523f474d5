"""Marked functions as numba takes them.

numba looks names up in a function's globals.  So every function of the subset is copied with
globals of its own, in which the marked functions that it calls are numba's.
"""

import builtins
import functools
import inspect
from types import CellType, FunctionType, ModuleType
from typing import Any

import numba
from llvmlite import binding
from numba.extending import intrinsic

from bhemu.jit import keywords, machine_code
from bhemu.jit.graph import own, parts, plain
from bhemu.jit.subset import ByName, Compiled, External, Intrinsic, Signature

# LLVM unrolls a loop over 32 lanes before it looks for vectors, and then finds none: the copies
# read and write through one pointer. 16 keeps short loops unrolled. (SFPAND: 65 to 15 ns.)
binding.set_option("bhemu", "--unroll-full-max-count=16")

# numba makes functions callable from Python as well: a quarter of the time to compile them.
_BARE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_ALWAYS = {"no_rewrites": True}  # of array expressions, which nothing here has

_made: dict[Any, Any] = {}  # numba's form of what was marked
_callable: dict[Compiled, Any] = {}  # the same, callable from Python


@functools.cache
def numba_signature(signature: Signature) -> Any:
    """numba's form of a signature."""
    kinds = [
        getattr(numba.types, kind) if isinstance(kind, str) else numba.from_dtype(kind)
        for kind in signature.arguments
    ]
    return getattr(numba.types, signature.result)(*kinds)


def _resolved(value: Any) -> Any:
    """numba's form of a value that a function of the subset refers to."""
    if isinstance(value, External):
        return _external(value)
    if not isinstance(value, Intrinsic | Compiled | ByName):
        return value
    if value not in _made:
        if isinstance(value, Intrinsic):
            _made[value] = intrinsic(value.emitter)
        elif isinstance(value, ByName):
            _made[value] = _by_name(value)
        else:
            _made[value] = _dispatcher(value, {} if "inline" in value.options else _BARE)
    return _made[value]


@functools.cache
def _external(value: External) -> Any:
    return numba.types.ExternalFunction(value.symbol, numba_signature(value.signature))


def _dispatcher(value: Compiled, options: dict[str, Any]) -> Any:
    return numba.njit(**{**_ALWAYS, **options, **value.options})(copy(value))


def _by_name(value: ByName) -> Any:
    function, store = (
        _dispatcher(Compiled(each, {}), _BARE) for each in (value.py_func, value.store)
    )
    return keywords.compiled(function, store, len(inspect.signature(value.py_func).parameters))


def copy(function: Any) -> FunctionType:
    """A function of the subset as numba compiles it: calls of itself are not provided for."""
    for path in machine_code.libraries:
        binding.load_library_permanently(path)
    made, original = parts(function), plain(function)
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": original.__module__}
    for name, value in made.globals.items():
        names[name] = ModuleType(value.__name__) if own(value) else _resolved(value)
    for (module, attribute), value in made.attributes.items():
        setattr(names[module], attribute, _resolved(value))
    cells = tuple(CellType(_resolved(value)) for value in made.closure.values())
    copied = FunctionType(made.code, names, original.__name__, original.__defaults__, cells)
    copied.__kwdefaults__ = original.__kwdefaults__
    copied.__qualname__, copied.__module__ = original.__qualname__, original.__module__
    return copied


def called(function: Compiled, *arguments: Any) -> Any:
    """Call a function of the subset from Python, compiled for these arguments."""
    if function not in _callable:
        _callable[function] = _dispatcher(function, {})
    return _callable[function](*arguments)
