"""One frame of a call stack, where tt-exalens had it up to version 0.3.28."""

from ..elf import CallstackEntry

__all__ = ["CallstackEntry"]
