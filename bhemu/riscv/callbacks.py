"""The engine's C callbacks around the hooks (their signatures are the engine's)."""

from typing import Any

import numpy as np

from bhemu.memmap import DEVICE_BASE
from bhemu.riscv import hooks


def code(engine: Any, address: Any, size: Any, s: Any) -> None:
    """UC_HOOK_CODE."""
    hooks.on_code(s, np.int64(address))


def trap(engine: Any, cause: Any, s: Any) -> None:
    """UC_HOOK_INTR."""
    hooks.on_trap(s, np.int64(cause))


def load(engine: Any, offset: Any, size: Any, s: Any) -> Any:
    """Read callback of the device region."""
    return np.uint64(hooks.on_load(s, np.int64(offset) + DEVICE_BASE, np.int64(size)))


def store(engine: Any, offset: Any, size: Any, value: Any, s: Any) -> None:
    """Write callback of the device region."""
    hooks.on_store(s, np.int64(offset) + DEVICE_BASE, np.int64(size), np.int64(value))


def run_core(s: Any, c: Any) -> Any:
    """STEP entry: one slice of core `c`."""
    return hooks.run_core(s, c)
