"""Functions of the compiled subset as plain Python, for looks at a record that nothing compiles."""

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from bhemu.jit.subset import ByName, Compiled

_made: dict[int, Any] = {}


class _Module:
    """A module whose compiled functions are plain."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _plain_value(getattr(self._module, name))


def plain(function: Any) -> Callable[..., Any]:
    """A function of the subset, and all that it calls, as plain Python over a State."""
    original = function.py_func if isinstance(function, Compiled | ByName) else function
    key = id(original)
    if key not in _made:
        names: dict[str, Any] = {}
        made = FunctionType(
            original.__code__,
            names,
            original.__name__,
            original.__defaults__,
            original.__closure__,
        )
        made.__kwdefaults__ = original.__kwdefaults__
        _made[key] = made  # before its names: functions may call each other
        for name, value in original.__globals__.items():
            if name in original.__code__.co_names or name == "__builtins__":
                names[name] = _plain_value(value)
    result: Callable[..., Any] = _made[key]
    return result


def _plain_value(value: Any) -> Any:
    if isinstance(value, ByName):
        return ByName(plain(value.py_func), plain(value.store))
    if isinstance(value, Compiled):
        return plain(value)
    if isinstance(value, ModuleType) and value.__name__.startswith("bhemu"):
        return _Module(value)
    return value
