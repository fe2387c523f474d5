"""Keys of compiled code: the graph of what an entry calls, and the compiler that made it."""

import dis
import enum
import functools
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from bhemu.errors import Internal
from bhemu.jit import host
from bhemu.jit.subset import ByName, Compiled, Intrinsic, Signature

# What a compiled function can reach: its code and the values of the names that it loads.

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
        for value in values:
            waiting += value.values() if isinstance(value, dict) else (value,)
    return frozenset(found)


# The key of a compiled entry: a hash of all it is made from, and of nothing else.
#
# That is the code of every function that the entry can reach (without names of files, line numbers
# and docstrings), the values of the global names, defaults and closures that this code loads, the
# options of compilation, the layout of the record, the tools, what calls them and the CPU.  A
# value whose kind is unknown here is an error: what is not in the key must not be in the machine
# code.

_FUNCTIONS = (Compiled, Intrinsic, FunctionType)
_FOREIGN = ("builtins", "llvmlite", "math", "numba", "numpy", "operator", "typing")  # see host.py
_COMPILER = ("emit", "machine_code", "numba_patches", "vectors")  # modules of jit
_NUMBERS = (bool, int, float, complex, str, bytes, type(None), type(...))
_HAS_DOCSTRING = 0x4000000 if sys.version_info >= (3, 13) else 0  # inspect.CO_HAS_DOCSTRING


def _foreign(value: Any) -> str:
    """`module.name` of a function, type or module of a library whose version is in the key."""
    if isinstance(value, ModuleType):
        module, name = value.__name__, ""
    elif isinstance(value, np.ufunc):
        module, name = "numpy", value.__name__
    elif isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        module, name = value.__module__ or "", value.__qualname__
    else:
        return ""
    return f"{module}.{name}" if module.partition(".")[0] in _FOREIGN else ""


def layout(dtype: np.dtype[Any]) -> str:
    """Members of a structured type with type, shape and offset; other types by their name."""
    if dtype.fields is None:
        return dtype.str if dtype.subdtype is None else repr(dtype.subdtype)
    members = [(name, *dtype.fields[name][:2]) for name in dtype.names or ()]
    return f"{dtype.itemsize}:" + ";".join(f"{n} {layout(t)} {at}" for n, t, at in members)


def _has_docstring(code: CodeType) -> bool:
    """Whether the first constant of a code object is a docstring."""
    if _HAS_DOCSTRING:
        return bool(code.co_flags & _HAS_DOCSTRING)
    first = code.co_consts[0] if code.co_consts else None
    return isinstance(first, str) and not code.co_name.startswith("<")


class _Writer:
    """Code and values as text; the functions they refer to stand aside, in order."""

    def __init__(self) -> None:
        self.references: list[Any] = []

    def function(self, function: Any) -> str:
        """What a function is made of."""
        part = parts(function)
        values = (part.options, part.defaults, part.globals, part.attributes, part.closure)
        return self.code(part.code) + "".join(f"\n{self._value(v)}" for v in values)

    def code(self, code: CodeType) -> str:
        constants = [*code.co_consts]
        if _has_docstring(code):
            constants[0] = None
        numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        shown = [self._value(constant) for constant in constants]
        flags = code.co_flags & ~_HAS_DOCSTRING
        instructions = code.co_code.hex(), code.co_exceptiontable.hex()
        return repr((numbers, flags, names, instructions, shown))

    def _value(self, value: Any) -> str:
        if foreign := _foreign(value):
            return foreign
        if isinstance(value, _FUNCTIONS):
            self.references.append(value)
            return f"function {len(self.references)}"
        if isinstance(value, ByName):
            return f"by name {self._value(value.py_func)} {self._value(value.store)}"
        if isinstance(value, CodeType):
            return self.code(value)
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name} {value.value!r}"
        if type(value) in _NUMBERS:
            return f"{type(value).__name__} {value!r}"
        return self._collection(value)

    def _collection(self, value: Any) -> str:
        if isinstance(value, dict):
            items = [f"{self._value(k)}: {self._value(value[k])}" for k in sorted(value)]
            return f"{{{'; '.join(items)}}}"
        if isinstance(value, tuple | list):
            return f"{self._kind(type(value))}({'; '.join(self._value(item) for item in value)})"
        if isinstance(value, frozenset):
            return f"frozenset({'; '.join(sorted(self._value(item) for item in value))})"
        if isinstance(value, np.dtype):
            return f"dtype {layout(value)}"
        if isinstance(value, np.ndarray | np.generic):
            shape = f"{value.dtype.str}{value.shape}{value.strides}"
            return f"array {shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, ModuleType):
            return "module"  # of this package: what is loaded from it is listed
        if isinstance(value, type):
            return self._kind(value)
        raise Internal(f"{value!r}: a key cannot hold values of type {type(value).__qualname__}")

    def _kind(self, kind: type) -> str:
        if kind in (tuple, list):
            return kind.__name__
        if issubclass(kind, tuple) and (fields := getattr(kind, "_fields", None)):
            defaults = self._value(getattr(kind, "_field_defaults", {}))
            return f"{kind.__name__} {fields} {defaults}"
        raise Internal(f"a key cannot hold the type {kind.__qualname__}")


@functools.cache
def _written(function: Any) -> tuple[str, list[Any]]:
    writer = _Writer()
    return writer.function(function), writer.references


@functools.cache
def _compiler() -> str:
    """What hands functions to the tools and makes images of what they give, as text."""
    code = ""
    for name in _COMPILER:
        text = Path(__file__).with_name(f"{name}.py").read_text()
        code += _Writer().code(compile(text, name, "exec", optimize=2))  # without docstrings
    return code


def key(signature: Signature, function: Any) -> str:
    """The key of `function` compiled as a function of C with this signature."""
    digest = hashlib.sha256(f"{host.tools()} {_compiler()}".encode())
    record = [layout(a) if isinstance(a, np.dtype) else a for a in signature.arguments]
    digest.update(repr((signature.result, record)).encode())
    numbers: dict[Any, int] = {function: 0}
    todo = [function]
    for each in todo:
        text, found = _written(each)
        for reference in found:
            if reference not in numbers:
                numbers[reference] = len(numbers)
                todo.append(reference)
        digest.update(f"\n{[numbers[reference] for reference in found]}\n{text}".encode())
    return digest.hexdigest()[:32]
