"""bhemu: an emulator of a Tenstorrent Blackhole Tensix tile."""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bhemu.errors import BhemuError as BhemuError
    from bhemu.machine import Stop as Stop
    from bhemu.program.loader import read_elf as load_elf
    from bhemu.program.schema import Program as Program
    from bhemu.tile import Tile as Tile

__version__ = "0.1.0"
__all__ = ["BhemuError", "Program", "Stop", "Tile", "load_elf"]

_HOME = {
    "BhemuError": "bhemu.errors",
    "Program": "bhemu.program.schema",
    "Stop": "bhemu.machine",
    "Tile": "bhemu.tile",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: the compiled core takes long to import and many uses need none of it.
    if name == "load_elf":
        return importlib.import_module("bhemu.program.loader").read_elf
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'bhemu' has no attribute {name!r}")


if os.environ.get("BHEMU_COVERAGE"):  # debug/coverage.py: every process of a test suite notes
    importlib.import_module("bhemu.debug.coverage").from_environment()
