"""Compiling an entry with numba: names resolved, calls with keywords, machine code emitted."""

import builtins
import functools
import inspect
from contextlib import AbstractContextManager, nullcontext
from types import CellType, FunctionType, ModuleType
from typing import Any

import numba
from llvmlite import binding
from numba import types
from numba.core import registry
from numba.core.imputils import lower_builtin
from numba.core.typing import signature as numba_types_signature
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic as numba_intrinsic

from bhemu.jit import host, machine_code
from bhemu.jit.keys import own, parts, plain
from bhemu.jit.lowering import Source, lowered, target
from bhemu.jit.machine_code import Image
from bhemu.jit.subset import ByName, Compiled, External, Intrinsic, Signature

# Calls with keywords of any name, as numba compiles them (subset.by_name).


def compiled(function: Any, store: Any, fixed: int) -> Any:
    """What stands for `function` in compiled code; it has `fixed` arguments that are no keywords.

    Both are numba's.  A call of it is a call of `store` for each keyword, in the order of their
    names, then one of `function`.
    """

    def call() -> None:
        """Known to numba as a name only."""

    def resolved(typing: Any, callee: Any, args: Any) -> tuple[Any, Any]:
        kind = typing.resolve_value_type(callee)
        return kind, kind.get_call_type(typing, args, {})

    class ByName(AbstractTemplate):  # type: ignore[misc, unused-ignore]
        key = call

        def generic(self, args: Any, kws: Any) -> Any:
            names = sorted(kws)
            listed = [*(f"_{i}" for i in range(len(args))), *names]
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters = inspect.Signature([inspect.Parameter(name, kind) for name in listed])
            result = resolved(self.context, function, args)[1].return_type
            made = numba_types_signature(result, *args, *(kws[name] for name in names))
            return made.replace(pysig=parameters)

    infer_global(call, types.Function(ByName))

    @lower_builtin(call, types.VarArg(types.Any))
    def emit(context: Any, builder: Any, made: Any, args: Any) -> Any:
        kinds = (made.args[0], types.int64, types.int64)
        callee, each = resolved(context.typing_context, store, kinds)
        for i in range(fixed, len(args)):
            value = context.cast(builder, args[i], made.args[i], types.int64)
            number = context.get_constant(types.int64, i - fixed)
            context.get_function(callee, each)(builder, (args[0], number, value))
        callee, last = resolved(context.typing_context, function, made.args[:fixed])
        return context.get_function(callee, last)(builder, args[:fixed])

    return call


# Marked functions as numba takes them.
#
# numba looks names up in a function's globals.  So every function of the subset is copied with
# globals of its own, in which the marked functions that it calls are numba's.

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
            _made[value] = numba_intrinsic(value.emitter)
        elif isinstance(value, ByName):
            function, store = (
                _dispatcher(Compiled(each, {}), _BARE) for each in (value.py_func, value.store)
            )
            _made[value] = compiled(
                function, store, len(inspect.signature(value.py_func).parameters)
            )
        else:
            _made[value] = _dispatcher(value, {} if "inline" in value.options else _BARE)
    return _made[value]


@functools.cache
def _external(value: External) -> Any:
    return numba.types.ExternalFunction(value.symbol, numba_signature(value.signature))


def _dispatcher(value: Compiled, options: dict[str, Any]) -> Any:
    return numba.njit(**{**_ALWAYS, **options, **value.options})(copy(value))


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


# Compiling: numba and LLVM make one function of C from a function of the subset.

_LEAN = ("0.68.0", "0.68.1")  # versions of numba whose internals numba_patches.py was tested with


def _faster() -> AbstractContextManager[None]:
    """What makes this version of numba compile faster."""
    if numba.__version__ not in _LEAN:
        return nullcontext()
    from bhemu.jit.numba_patches import lean

    return lean()


def front_end(signature: Signature, function: Any) -> Source:
    """What numba makes of `function` as a function of C with this signature."""
    registry.cpu_target.target_context  # noqa: B018  # LLVM is ready once numba's target is
    with _faster():
        made = numba.cfunc(numba_signature(signature))(copy(function))
    return Source(made.inspect_llvm(), made.native_name)


def emit(signature: Signature, function: Any) -> Image:
    """Compile `function` as a function of C with this signature, for this machine's level."""
    return lowered(front_end(signature, function), target(host.level()))
