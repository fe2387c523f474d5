"""Memory as a core sees it, looked at without any effect."""

from bhemu.devices.bus.address_map import block_name, find
from bhemu.devices.bus.naming import device_name
from bhemu.errors import InputError
from bhemu.machine.core import Core
from bhemu.machine.hang import device_access
from bhemu.machine.hang.device_access import Escape, Waits
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.tensix.rules import CONDITIONS


class Memory:
    """L1, local RAM and devices of one core."""

    def __init__(self, tile: Tile, core: Core) -> None:
        self._tile, self._core = tile, core

    def read(self, address: int, size: int) -> bytes:
        """Bytes of L1 or local RAM, or an access of 1, 2 or 4 bytes to a device; InputError."""
        s, c = self._tile.state, self._core.index
        if 0 <= address <= L1_SIZE - size:
            return s.l1[address : address + size].tobytes()
        offset = address - LOCAL_BASE
        if 0 <= offset <= LOCAL_SIZES[c] - size:
            return s.local[c, offset : offset + size].tobytes()
        if size > 4:
            parts = [self.read(address + i, min(4, size - i)) for i in range(0, size, 4)]
            return b"".join(parts)
        return self._device(address, size).to_bytes(4, "little")[:size]

    def word(self, address: int) -> int:
        """One word."""
        return int.from_bytes(self.read(address, 4), "little")

    def _device(self, address: int, size: int) -> int:
        place = f"{address:#010x} ({block_name(address)})"
        try:
            value = device_access.load(self._tile, self._core.index, address, size)
        except Waits as wait:
            text = CONDITIONS[wait.condition].text
            raise InputError(f"a load from {place} would wait for {text}") from None
        except Escape:
            raise InputError(
                f"{self._core.name} cannot look at {place}: the load is refused, or has effects",
                hint="read32 makes the access all the same",
            ) from None
        if value is None:  # it changes by itself
            return self._core.read32(address)
        return value


def word_of(address: int, core: int | None = None) -> str:
    """The name of what stands at a device address, with blanks before it; "" for memory."""
    return f"  {device_name(address, core)}" if find(address) is not None else ""
