"""Ctrl-C that is not lost: an exception that a library or a callback swallows is raised again."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN = 0.02  # seconds until the next look whether an import has ended
_pending = False
_waiting = 0  # blocks of `later` that are under way
_acted_on = 0  # how many have ended a run, or were taken for a command's own


def watch() -> None:
    """Remember every Ctrl-C from now on; one in an import, or in `later`, waits for its end."""
    signal.signal(signal.SIGINT, _on_interrupt)
    signal.signal(signal.SIGALRM, _on_interrupt)  # looks again for one that waits
    sys.unraisablehook = _on_swallowed


@contextmanager
def later() -> Iterator[None]:
    """Ctrl-C waits for the end of the block, which must not be left half done."""
    global _waiting
    _waiting += 1
    try:
        yield
    finally:
        _waiting -= 1


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    """Raise, but not in an import: Python and libraries make other errors of it there."""
    global _pending
    if number == signal.SIGALRM and not _pending:
        return  # acted on meanwhile
    if _waiting or _imports(frame):
        if _pending and number == signal.SIGINT:  # a second one
            os.write(2, b"interrupted\n")
            os._exit(130)
        _pending = True
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        return
    _pending = True
    raise KeyboardInterrupt


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


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
    global _pending, _acted_on
    _pending = False
    _acted_on += 1
    if signal.getsignal(signal.SIGALRM) is _on_interrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)


def count() -> int:
    """How many were acted on so far."""
    return _acted_on
