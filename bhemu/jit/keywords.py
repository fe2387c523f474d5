"""Keyword arguments of any name in compiled code.

numba knows only keywords that a function declares.  A function decorated with `by_name` takes any:
`refuse(s, RULE, row=row, size=size)` stores the values, in the order of their names, with the
function `store(s, i, value)`, and goes on with `refuse(s, RULE)`.  The order is settled while the
caller is compiled; called from Python the same happens at once.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global

from bhemu.jit.subset import JIT, njit


def by_name(store: Callable[..., None]) -> Callable[[Callable[..., Any]], Any]:
    """Let a function take keywords of any name, which `store(s, i, value)` gets; both uncompiled.

    `s` is the first argument of both.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            for i, name in enumerate(sorted(named)):
                store(args[0], i, named[name])
            return function(*args)

        if JIT:
            _compile(call, njit(function), njit(store))
        return call

    return decorate


def _compile(call: Any, function: Any, store: Any) -> None:
    # Tell numba what a call of `call` is: calls of `store`, then one of `function`.
    fixed = len(inspect.signature(call).parameters)

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
            made = signature(result, *args, *(kws[name] for name in names))
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
