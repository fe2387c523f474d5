"""The map of the tile's addresses, made of what each device declares (window.py)."""

import importlib
import itertools
import pkgutil
from typing import NamedTuple

from bhemu import devices
from bhemu import memmap as mm
from bhemu.devices import ethernet, niu
from bhemu.devices.bus.window import Register, Window


def _declared() -> dict[Window, str]:
    """Every window of this package's modules by address, and the module that declares it."""
    found: dict[Window, str] = {}
    for about in pkgutil.iter_modules(devices.__path__, f"{devices.__name__}."):
        if not about.ispkg:
            for value in vars(importlib.import_module(about.name)).values():
                if isinstance(value, Window):
                    found.setdefault(value, about.name)
    return dict(sorted(found.items(), key=lambda item: item[0].low))


MODULE_OF = _declared()
_OWN = tuple(window for window in ethernet.WINDOWS if window not in (niu.NOC0, niu.NOC1))
WINDOWS = tuple(window for window in MODULE_OF if window not in _OWN)
"""Those of a Tensix tile."""
ETHERNET = ethernet.WINDOWS
"""Those of an Ethernet tile."""
for one in (WINDOWS, ETHERNET):
    assert all(a.high <= b.low for a, b in itertools.pairwise(one)), "windows overlap"


class Block(NamedTuple):
    """A range of addresses that something answers."""

    low: int
    high: int
    name: str


BLOCKS = (
    Block(0, mm.L1_SIZE, "L1"),
    Block(mm.LOCAL_BASE, mm.LOCAL_BASE + max(mm.LOCAL_SIZES), "local data RAM"),
    *(Block(window.low, window.high, window.name) for window in WINDOWS),
)

NAMED: dict[int, Register] = {
    window.low + register.offset: register for window in WINDOWS for register in window.registers
}
"""Registers that have a declaration of their own, by address, in the order of addresses."""

INERT = {address: register for address, register in NAMED.items() if register.inert}

REGISTERS = {register.name: address for address, register in NAMED.items() if register.modelled}
"""Address of each named register; those of the debug block also without RISCV_DEBUG_REG_."""
REGISTERS |= {name.removeprefix("RISCV_DEBUG_REG_"): at for name, at in REGISTERS.items()}


def find(address: int, windows: tuple[Window, ...] = WINDOWS) -> Window | None:
    """The window of a tile that holds an address."""
    return next((window for window in windows if window.low <= address < window.high), None)


def block_name(address: int) -> str:
    """Name of the block that holds `address`, with its part if that has no model; or "unmapped"."""
    window = find(address) or find(address, ETHERNET)
    if window is not None:
        register = window.register(address - window.low)
        part = [register.name] if register is not None and not register.modelled else []
        return ": ".join([window.name, *part])
    return next((name for low, high, name in BLOCKS if low <= address < high), "unmapped")
