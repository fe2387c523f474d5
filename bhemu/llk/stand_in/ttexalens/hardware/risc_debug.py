"""One frame of a call stack, under tt-exalens' name."""

from bhemu.llk.device import Frame as CallstackEntry

__all__ = ["CallstackEntry"]
