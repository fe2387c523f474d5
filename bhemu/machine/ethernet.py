"""An Ethernet tile: two cores that execute what a host loads, in the places of brisc and ncrisc.

What the chip's own firmware does on the first core is not modelled: what it leaves in L1 is there.
"""

from typing import Any, Unpack

from bhemu.devices import ethernet
from bhemu.devices.bus.address_map import ETHERNET
from bhemu.devices.noc_map import ETHERNET_L1_SIZE
from bhemu.errors import NotModelled
from bhemu.machine.tile import Tile
from bhemu.noc import firmware
from bhemu.noc.grid import TILES, Grid, number_at
from bhemu.program.options import TileOptions

_MAILBOX, _MAILBOX_END = 0x7D000, 0x7D040  # where hosts call the chip's firmware
_CALL = 0xCA11


class EthernetTile(Tile):
    """A tile of linked chips; its options are those of Tile, its engine is always "compiled"."""

    _windows, _l1_end = ETHERNET, ETHERNET_L1_SIZE

    def __init__(self, grid: Grid, **options: Unpack[TileOptions]) -> None:
        self._grid = grid
        options["engine"] = "compiled"
        super().__init__(**options)

    @property
    def channel(self) -> int:
        """Which Ethernet tile of its chip it is."""
        return number_at(self.xy) - TILES

    def _power_up(self, fresh: bool = False) -> None:
        super()._power_up(fresh)
        words = self.state.l1.view("<u4")
        for at, value in firmware.boot_results(self._grid, self.channel).items():
            words[at >> 2] = value
        if self.channel in self._grid.links:
            ethernet.link(self.state)

    def write(self, at: int | str, data: Any) -> None:
        """As of every tile; NotModelled where it calls the chip's firmware."""
        address = self.address(at)
        if _MAILBOX <= address < _MAILBOX_END and bytes(data)[2:4] == _CALL.to_bytes(2, "little"):
            text = f"a call of the Ethernet tile's firmware: {bytes(data)[:4][::-1].hex()}"
            raise NotModelled(text, rule="ETH-MAILBOX", hint="its own firmware is not modelled")
        super().write(at, data)
