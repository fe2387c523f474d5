"""Ctrl-C that is not lost: an exception that a library or a callback swallows is raised again."""

import signal
import sys
from types import FrameType

_pending = False


def watch() -> None:
    """Remember every Ctrl-C from now on, where Python's own handler is in charge."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _on_interrupt)
        sys.unraisablehook = _on_swallowed


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    global _pending
    _pending = True
    raise KeyboardInterrupt


def _on_swallowed(problem: "sys.UnraisableHookArgs") -> None:
    """A C callback swallowed an exception: a Ctrl-C is raised again later, the rest is shown."""
    if problem.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(problem)


def check() -> None:
    """KeyboardInterrupt for one that arrived and was not acted on."""
    if _pending:
        raise KeyboardInterrupt


def done() -> None:
    """What arrived so far was acted on."""
    global _pending
    _pending = False
