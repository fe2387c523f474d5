"""Every rule and condition by its number; importing this imports all modules that register them.

Who puts a status into words takes them from here: a run with compiled code alone has imported few.
"""

from bhemu.devices.bus import access_order, address_map
from bhemu.riscv import hooks
from bhemu.tensix import compiled, units
from bhemu.tensix.rules import CONDITIONS, RULES
from bhemu.timing import loop

__all__ = ["CONDITIONS", "RULES"]

assert all((address_map, access_order, compiled, hooks, loop, units))
