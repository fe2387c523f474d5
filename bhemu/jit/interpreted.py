"""Whether this process interprets compiled functions, and what it has come to use of them."""

import os

chosen = False  # takes effect before bhemu.jit.subset is imported
used: set[str] = set()
"""Entries that interpreted code has called and no count of the record tells, by Entry.path."""


def disabled() -> bool:
    """Whether NUMBA_DISABLE_JIT is set, as numba reads it."""
    try:
        return bool(int(os.environ.get("NUMBA_DISABLE_JIT", "0")))
    except ValueError:
        return False
