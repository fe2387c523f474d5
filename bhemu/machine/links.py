"""Chips that Ethernet links connect: what the TX queues of one end send arrives at the other."""

from collections.abc import Sequence
from typing import Unpack

from bhemu.devices import ethernet
from bhemu.errors import InputError, NotModelled
from bhemu.machine.machine import Chip, Machine
from bhemu.machine.tile import Tile
from bhemu.noc.grid import LINKS, TILES
from bhemu.program.options import ChipOptions


class LinkedChip(Chip):
    """Chip `number` (0 or 1) of two; its Ethernet tiles exist. Options as Chip's."""

    def __init__(self, number: int, **options: Unpack[ChipOptions]) -> None:
        self._number = number
        super().__init__(**options)


class Links:
    """The links between chips, which are in the order of their numbers (noc/grid.py)."""

    def __init__(self, chips: Sequence[Machine]) -> None:
        self._ends = tuple(
            (
                chips[chip].tile_at_index(TILES + own),
                chips[other].tile_at_index(TILES + channel),
            )
            for (chip, own), (other, channel) in sorted(LINKS.items())
        )

    def waiting(self) -> list[Tile]:
        """Both ends of each link of which a TX queue has a command that is not carried out."""
        return [
            tile
            for ends in self._ends
            if ends[0].state.ethernet[ethernet.COMMANDS].any()
            for tile in ends
        ]

    def carry(self) -> None:
        """Carry out one command of each queue that has one; between rounds.

        NotModelled where the other end refuses it.
        """
        for tile, other in self._ends:
            for queue in range(ethernet.QUEUES):
                _send(tile, other, tile.state.ethernet[ethernet.queue(queue)])


def _send(tile: Tile, other: Tile, words: ethernet.Words) -> None:
    command = int(words[ethernet.COMMAND])
    if command == 0:
        return
    start, size, to, value = (int(word) for word in words[ethernet.TAKEN : ethernet.TAKEN + 4])
    try:
        if command == ethernet.COPY:
            other.write(to, tile.read(start, size))
        else:
            other.write32(to, value)
    except InputError as problem:
        text = f"the link of Ethernet tile {tile.xy} to {other.xy}: {problem.message}"
        raise NotModelled(text, rule="ETH-REMOTE", hint=problem.hint) from problem
    words[ethernet.COMMAND] = 0
