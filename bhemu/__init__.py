"""bhemu: an emulator of a Tenstorrent Blackhole Tensix tile.

Tile is the hardware, Program a program on it, sweep() runs many, Stop why a run ended, Snapshot a
state to come back to; load_elf reads and checks an ELF; errors has every error. docs/api.md shows a
session.
"""

import os

TYPE_CHECKING = False  # typing is not imported: until a command has begun, Ctrl-C is a traceback
if TYPE_CHECKING:
    from bhemu import errors as errors
    from bhemu.errors import Assert as Assert
    from bhemu.errors import BhemuError as BhemuError
    from bhemu.errors import GuestFault as GuestFault
    from bhemu.errors import InputError as InputError
    from bhemu.errors import Internal as Internal
    from bhemu.errors import Limit as Limit
    from bhemu.errors import NoProgress as NoProgress
    from bhemu.errors import NotModelled as NotModelled
    from bhemu.errors import Undefined as Undefined
    from bhemu.errors import UnknownName as UnknownName
    from bhemu.launch import Program as Program
    from bhemu.machine.machine import Chip as Chip
    from bhemu.machine.machine import Machine as Machine
    from bhemu.machine.plugin import compiled as compiled
    from bhemu.machine.saved import Snapshot as Snapshot
    from bhemu.machine.stop import Stop as Stop
    from bhemu.machine.tile import Tile as Tile
    from bhemu.program.loader import read_elf
    from bhemu.sweeps.api import sweep as sweep

    ChipSnapshot = Snapshot  # its name in 0.1
    load_elf = read_elf

__version__ = "0.1.0"
# Imported on first use: they take long to import and many uses need none of them.
_ERRORS = """Assert BhemuError GuestFault InputError Internal Limit NoProgress NotModelled Undefined
UnknownName"""
_HOME = {name: ("bhemu.errors", name) for name in _ERRORS.split()}
_HOME |= {
    "Chip": ("bhemu.machine.machine", "Chip"),
    "ChipSnapshot": ("bhemu.machine.saved", "Snapshot"),  # its name in 0.1
    "Machine": ("bhemu.machine.machine", "Machine"),
    "Program": ("bhemu.launch", "Program"),
    "Snapshot": ("bhemu.machine.saved", "Snapshot"),
    "Stop": ("bhemu.machine.stop", "Stop"),
    "Tile": ("bhemu.machine.tile", "Tile"),
    "compiled": ("bhemu.machine.plugin", "compiled"),
    "sweep": ("bhemu.sweeps.api", "sweep"),
    "load_elf": ("bhemu.program.loader", "read_elf"),
}
__all__ = [*sorted(_HOME), "errors"]


if not TYPE_CHECKING:  # a type checker knows every name

    def __getattr__(name: str) -> object:
        import importlib  # late: until the command has begun, Ctrl-C is a traceback

        if name == "errors":
            return importlib.import_module("bhemu.errors")
        if name in _HOME:
            module, attribute = _HOME[name]
            return getattr(importlib.import_module(module), attribute)
        from bhemu.arguments import did_you_mean

        near = did_you_mean(name, __all__)
        raise AttributeError(
            f"module 'bhemu' has no attribute {name!r}{'; ' if near else ''}{near}"
        )


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


if os.environ.get("BHEMU_COVERAGE"):  # debug/trace.py: every process of a test suite notes
    from bhemu.debug.trace import from_environment

    from_environment()
