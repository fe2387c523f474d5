"""What a core's device access would give or change while nothing else moves, without doing it."""

from typing import Any

from bhemu import memmap as mm
from bhemu.devices.bus import Window
from bhemu.devices.inert import InertRegister
from bhemu.parts import TilePart
from bhemu.tensix.frontend import FIFO_FULL
from bhemu.tensix.state import FIFO_DEPTH

_CLOCKS = {
    mm.DEBUG_BASE + offset
    for offset in (
        mm.RISCV_DEBUG_REG_WALL_CLOCK_0,
        mm.RISCV_DEBUG_REG_WALL_CLOCK_1_LIVE,
        mm.RISCV_DEBUG_REG_WALL_CLOCK_1,
    )
}
_DISCARDED = (mm.PC_BUF_BASE, mm.PC_BUF_BASE + 4, mm.PC_BUF_BASE + 8)  # stores of a TRISC


class Escape(Exception):  # noqa: N818 - an answer, not an error
    """The core may do something that others see, or that is not followed."""


class Waits(Exception):  # noqa: N818 - an answer, not an error
    """The access would wait for `condition`, a number of tensix.status.CONDITIONS."""

    def __init__(self, condition: int) -> None:
        super().__init__(condition)
        self.condition = condition


def is_clock(address: int) -> bool:
    """True for the registers that count time."""
    return address in _CLOCKS


def load(tile: TilePart, core: int, address: int, size: int) -> int | None:
    """Value of a device load, None when it varies by itself; raises Waits or Escape."""
    if is_clock(address) or mm.PC_SNAPSHOT_BASE <= address < mm.PC_SNAPSHOT_END:
        return None
    slow = mm.LOCAL_SLOW_BASE <= address < mm.LOCAL_SLOW_END  # a core may be storing there
    if address < mm.DEVICE_BASE or slow or _takes(tile.state, core, address):
        raise Escape
    window = tile.bus.find(address)
    if window is not None:
        return _python(window, core, address, size)
    s = tile.state
    before = int(s.core_address[core]), s.detail.copy()
    value = tile.backend.read(address, size, core)
    status = int(s.access[0])
    s.core_address[core], s.detail[:] = before
    if status < 0:
        raise Escape
    if status > 0:
        raise Waits(status)
    return int(value)


def _takes(s: Any, core: int, address: int) -> bool:
    """A load that would take an entry out of a queue."""
    if mm.MAILBOX_BASE <= address < mm.MAILBOX_END and core < 4 and not address & 4:
        n = (address - mm.MAILBOX_BASE) >> 12
        return bool(s.mailbox_write[n, core] != s.mailbox_read[n, core])
    if address == mm.PC_BUF_BASE and 1 <= core <= 3:
        return bool(s.pcbuf_write[core - 1] != s.pcbuf_read[core - 1])
    return False


def _python(window: Window, core: int, address: int, size: int) -> int:
    """A device in Python; a look must not count as an access."""
    device = window.peripheral
    if isinstance(device, InertRegister):
        return device.value >> 8 * (address & 3)
    try:
        return device.read(core, address - window.low, size)
    except Exception as refused:
        raise Escape from refused


def store(tile: TilePart, core: int, address: int, value: int | None) -> None:
    """Nothing, for a device store that would change nothing; else raises Waits or Escape."""
    s = tile.state
    if 1 <= core <= 3 and address in _DISCARDED:
        return
    if mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END and core < 4:
        t = (address - mm.INSTRN_BUF_BASE) >> 16 if core == 0 else core - 1
        if s.fifo_write[t] - s.fifo_read[t] >= FIFO_DEPTH:
            raise Waits(FIFO_FULL)
        raise Escape
    plain = mm.GPR_BASE <= address < mm.GPR_END
    if not plain or value is None or load(tile, core, address, 4) != value:
        raise Escape
