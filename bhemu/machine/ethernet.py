"""Ethernet: its tiles, which execute what a host loads, and the links that connect chips.

A tile has two cores, in the places of brisc and ncrisc. What the chip's own firmware does on the
first of them is not modelled: what it leaves in L1 is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from bhemu.devices import ethernet
from bhemu.devices.bus.address_map import ETHERNET
from bhemu.devices.noc_map import ETHERNET_L1_SIZE
from bhemu.errors import InputError, NotModelled
from bhemu.machine.tile import Tile
from bhemu.noc import firmware
from bhemu.noc.grid import TILES, Grid, links, number_at
from bhemu.program.options import TileOptions
from bhemu.program.recorded import ARRIVED, SENT, Recorder

if TYPE_CHECKING:
    from bhemu.machine.machine import Machine

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


# Chips that Ethernet links connect: what the TX queues of one end send arrives at the other.


class Packet(NamedTuple):
    """What a command of a TX queue sends: bytes of L1, or the word of a register."""

    command: int
    queue: int
    to: int
    data: bytes

    @property
    def place(self) -> int:
        """All but the bytes as one number, as a session keeps it."""
        return self.command << 40 | self.queue << 32 | self.to

    def arrive(self, tile: Tile) -> None:
        """At the other end."""
        if self.command == ethernet.COPY:
            tile.write(self.to, self.data)
        else:
            tile.write32(self.to, int.from_bytes(self.data, "little"))


def packet_of(place: int, data: bytes) -> Packet:
    """The packet that a session has kept; InputError for no packet."""
    command, queue, to = place >> 40, place >> 32 & 0xFF, place & 0xFFFFFFFF
    if command not in (ethernet.COPY, ethernet.STORE) or queue >= ethernet.QUEUES:
        raise InputError(f"a link carries no command {command} of TX queue {queue}")
    return Packet(command, queue, to, data)


def waiting_packet(tile: Tile, queue: int) -> Packet | None:
    """What a queue is to send, if it has a command."""
    words = tile.state.ethernet[ethernet.queue(queue)]
    command = int(words[ethernet.COMMAND])
    if command == 0:
        return None
    start, size, to, value = (int(word) for word in words[ethernet.TAKEN : ethernet.TAKEN + 4])
    copied = command == ethernet.COPY
    data = tile.read(start, size) if copied else value.to_bytes(4, "little")
    return Packet(command, queue, to, data)


def set_sent(tile: Tile, queue: int) -> None:
    """The queue's command is carried out."""
    tile.state.ethernet[ethernet.COMMANDS[queue]] = 0


class Links:
    """The links between chips, which are in the order of their numbers (noc/grid.py).

    recorders: of what passes, one for each chip; none: nobody records it.
    """

    def __init__(self, chips: Sequence[Machine]) -> None:
        self.recorders: Sequence[Recorder] = ()
        self._chips = chips
        self._ends = tuple(
            (
                (chip, chips[chip].tile_at_index(TILES + own)),
                (other, chips[other].tile_at_index(TILES + channel)),
            )
            for (chip, own), (other, channel) in links(len(chips)).items()
        )

    def waiting(self) -> list[Tile]:
        """Both ends of each link of which a TX queue has a command that is not carried out."""
        return [
            tile
            for ends in self._ends
            if ends[0][1].state.ethernet[ethernet.COMMANDS].any()
            for _, tile in ends
        ]

    def carry(self) -> None:
        """Carry out one command of each queue that has one; between rounds.

        NotModelled where the other end refuses it.
        """
        for end, other in self._ends:
            tile, there = end[1], other[1]
            for queue in range(ethernet.QUEUES):
                try:
                    packet = waiting_packet(tile, queue)
                    if packet is None:
                        continue
                    packet.arrive(there)
                except InputError as problem:
                    text = f"the link of Ethernet tile {tile.xy} to {there.xy}: {problem.message}"
                    raise NotModelled(text, rule="ETH-REMOTE", hint=problem.hint) from problem
                set_sent(tile, queue)
                for kind, (chip, one) in ((SENT, end), (ARRIVED, other)) if self.recorders else ():
                    number = self._chips[chip].round
                    self.recorders[chip].act(kind, number, one.xy, packet.place, packet.data)
