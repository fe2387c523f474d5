"""Calls with keywords of any name, as numba compiles them (subset.by_name)."""

import inspect
from typing import Any

from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global


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

    return call
