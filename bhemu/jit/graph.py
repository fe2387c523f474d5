"""What a compiled function can reach: its code and the values of the names that it loads."""

import dis
import functools
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from bhemu.errors import Internal
from bhemu.jit.subset import ByName, Compiled, Intrinsic

_PACKAGE = __name__.partition(".")[0]
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")


class Parts(NamedTuple):
    """A function's code, the options of its compilation, and what its names stand for.

    Of a module of this package only the attributes that the code loads count: `attributes` has
    them by (name of the module in the code, attribute).
    """

    code: CodeType
    options: dict[str, Any]
    defaults: tuple[Any, ...]
    globals: dict[str, Any]
    attributes: dict[tuple[str, str], Any]
    closure: dict[str, Any]


def own(module: Any) -> bool:
    """Whether a value is a module of this package."""
    return isinstance(module, ModuleType) and module.__name__.partition(".")[0] == _PACKAGE


def plain(function: Any) -> FunctionType:
    """The Python function that numba compiles for a function of the subset.

    The one place where a function is changed before it is keyed and compiled.
    """
    if isinstance(function, Compiled):
        function = function.py_func
    if isinstance(function, Intrinsic):
        function = function.emitter
    if not isinstance(function, FunctionType):
        raise Internal(f"{function!r} is no function that can be compiled")
    return function


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _loads(code: CodeType) -> Iterator[tuple[str, str]]:
    """(global name, attribute loaded from it at once or "") of a code object."""
    pending = ""
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME" and str(step.argval).partition(".")[0] == _PACKAGE:
            raise Internal(f"{code.co_qualname} imports {step.argval}: a key cannot follow that")
        if pending:
            yield pending, str(step.argval) if step.opname in _ATTRIBUTE else ""
        pending = str(step.argval) if step.opname in _GLOBAL else ""


@functools.cache
def parts(function: Any) -> Parts:
    """What a function of the subset is made of."""
    plain_function = plain(function)
    code, known = plain_function.__code__, plain_function.__globals__
    names: dict[str, Any] = {}
    attributes: dict[tuple[str, str], Any] = {}
    for name, attribute in sorted({load for inner in _codes(code) for load in _loads(inner)}):
        if name not in known:
            continue  # a builtin: its name is in the code
        names[name] = value = known[name]
        if own(value):
            if not attribute:
                raise Internal(f"{code.co_qualname} uses the module {name} as a value")
            attributes[name, attribute] = getattr(value, attribute)
    cells = plain_function.__closure__ or ()
    closure = dict(zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=True))
    defaults = (
        *(plain_function.__defaults__ or ()),
        *(plain_function.__kwdefaults__ or {}).items(),
    )
    options = function.options if isinstance(function, Compiled) else {}
    return Parts(code, options, defaults, names, attributes, closure)


@functools.cache
def names(function: Any) -> frozenset[str]:
    """Every name in the code that a function reaches, attributes included."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        one = one.py_func if isinstance(one, ByName) else one
        if id(one) in seen or not isinstance(one, Compiled | Intrinsic | FunctionType):
            continue
        seen.add(id(one))
        part = parts(one)
        for code in _codes(part.code):
            found.update((*code.co_names, code.co_name))
        found.update(value for value in part.closure.values() if isinstance(value, str))
        values = (*part.globals.values(), *part.attributes.values(), *part.closure.values())
        waiting += [inner for value in values for inner in _within(value)]
    return frozenset(found)


def _within(value: Any) -> Iterable[Any]:
    """A value, or those of a table of functions."""
    return value.values() if isinstance(value, dict) else (value,)
