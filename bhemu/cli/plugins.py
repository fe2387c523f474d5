"""Plugins of `bhemu run`: files of Python whose functions a run calls (docs/plugins.md)."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import CodeType
from typing import Any

from bhemu.errors import InputError
from bhemu.machine.callbacks import failure
from bhemu.program import files

_HINT = "def install(machine): calls machine.on_word, on_pc or on_access (docs/plugins.md)"


def install(paths: Iterable[str], machine: Any, ended: ExitStack) -> None:
    """Run the `install` of each file; what it returns is called when `ended` is closed.

    InputError names file and line of what is wrong in one.
    """
    for name in paths:
        names: dict[str, Any] = {"__name__": Path(name).stem, "__file__": name}
        code = _compiled(Path(name))
        _called(code, exec, code, names)
        function = names.get("install")
        if not callable(function):
            raise InputError(f"--plugin: {name} has no function install", hint=_HINT)
        end = _called(function, function, machine)
        if end is not None and not callable(end):
            hint = "return nothing, or a function that is called when the run has ended"
            raise InputError(f"--plugin: {name}: install returns {type(end).__name__}", hint=hint)
        if end is not None:
            ended.callback(_called, end, end)


def _compiled(path: Path) -> CodeType:
    source = files.read_bytes(path, "SOURCE_BYTES", "--plugin")
    try:
        return compile(source, str(path), "exec")
    except (SyntaxError, ValueError) as problem:
        line = getattr(problem, "lineno", None) or 1
        text = f"{path}:{line}: {type(problem).__name__}: {getattr(problem, 'msg', problem)}"
        raise InputError(text, hint="correct the plugin") from None


def _called(function: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns; the error of what it raises, in `function` or below."""
    try:
        return call(*arguments)
    except Exception as problem:
        raise failure(problem, function) from None
