"""Whether this process interprets compiled functions, and what it has come to use of them."""

import functools
import importlib.util
import os
import warnings
from collections.abc import Callable

COMPILER = "pip install 'bhemu[compile]'"
"""The command that installs what compiles."""

chosen = False  # takes effect before bhemu.jit.subset is imported
used: set[str] = set()
"""Entries that interpreted code has called and no count of the record tells, by Entry.path."""
tell: Callable[[str], None] = warnings.warn
"""Takes the sentence of `announce`."""


def always() -> bool:
    """Whether nothing is compiled here: NUMBA_DISABLE_JIT is set, or there is no compiler."""
    try:
        set_so = bool(int(os.environ.get("NUMBA_DISABLE_JIT", "0")))  # as numba reads it
    except ValueError:
        set_so = False
    return set_so or lacks_compiler()


@functools.cache
def lacks_compiler() -> bool:
    """Whether numba is not installed, and no code of a wheel counts."""
    if importlib.util.find_spec("numba") is not None:
        return False
    from bhemu.jit import host

    return not host.carries()


@functools.cache
def announce() -> None:
    """Say once that a machine is interpreted because nothing here compiles."""
    if lacks_compiler() and not chosen:
        tell(f"interpreted, which is slow: nothing here compiles these sources; {COMPILER}")
