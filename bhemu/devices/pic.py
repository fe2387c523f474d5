"""The interrupt controller, 0xFFB13000: refused by name."""

from bhemu.devices.bus.window import Window
from bhemu.memmap import PIC_BASE, PIC_END

WINDOW = Window("PIC", PIC_BASE, PIC_END)
