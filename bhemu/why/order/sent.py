"""NoC requests that observed tiles have sent, and the tiles that they reach."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.devices import niu_check, noc_map
from bhemu.devices import niu_request as request
from bhemu.jit.record import plain
from bhemu.noc.grid import TILES
from bhemu.why.steps import Instruction

_WORD = 4


@dataclass(eq=False)
class Sent:
    """Request `number` of tile `tile`, sent by core `core`; row: as niu_request.py defines it.

    epoch: the core's clock then. known: what came before it, by columns of all tiles (record.py).
    value: the first four bytes. reached: the observed tiles at which it has arrived.
    """

    tile: int
    number: int
    core: int
    epoch: int
    step: Instruction
    row: npt.NDArray[np.int64]
    known: npt.NDArray[np.int64]
    value: int
    arrived: bool = False
    reached: list[int] = field(default_factory=list)

    @property
    def kind(self) -> int:
        """READ, ATOMIC or WRITE."""
        return int(self.row[request.CONTROL]) & 3

    @property
    def reads(self) -> bool:
        """Whether it is a read."""
        return self.kind == request.READ

    @property
    def transaction(self) -> int:
        """Its transaction id."""
        return int(plain(request.transaction)(self.row))

    @property
    def increments(self) -> bool:
        """Whether it adds to a word."""
        opcode = plain(request.atomic_opcode)(int(self.row[request.LENGTH]))
        return self.kind == request.ATOMIC and opcode == request.INCREMENT

    @property
    def own(self) -> tuple[int, int]:
        """Its range of the sender's L1: first byte, byte after the last."""
        low = int(self.row[request.LOCAL])
        return low, low + int(plain(request.size)(self.row))

    @property
    def remote(self) -> tuple[int, int]:
        """Its range at the other end."""
        low = int(self.row[request.REMOTE])
        if plain(request.has_enables)(int(self.row[request.CONTROL])):
            mask, line = int(self.row[request.LENGTH]), low & ~15
            first = (mask & -mask).bit_length() - 1
            return line + max(first, 0), line + mask.bit_length()
        return low, low + int(plain(request.size)(self.row))

    @property
    def bank(self) -> int | None:
        """The DRAM bank at the other end, None elsewhere."""
        endpoint = int(self.row[request.ENDPOINT])
        goes_there = endpoint & 15 == noc_map.DRAM and not self.is_multicast
        return endpoint >> 4 & 0xFF if goes_there else None

    @property
    def is_multicast(self) -> bool:
        """Whether it goes to all tiles of a rectangle."""
        return bool(int(self.row[request.CONTROL]) & request.MULTICAST)

    @property
    def takes_data(self) -> bool:
        """Whether it reads its source in L1."""
        return bool(plain(request.takes_data)(int(self.row[request.CONTROL])))

    @property
    def is_flag(self) -> bool:
        """Whether it changes a single word, as flags and counts are changed."""
        return not self.reads and self.remote[1] - self.remote[0] <= _WORD

    @property
    def is_register(self) -> bool:
        """Whether it accesses a device of another tile."""
        return bool(plain(niu_check.is_register)(self.row))


def targets(chip: Any, masks: Any, sent: Sent, number: int) -> list[int]:
    """The numbers on the chip of the tiles that a request of tile `number` reaches.

    masks: by number the columns and rows that a tile leaves out, of each NoC.
    """
    row, state = sent.row, chip.network.state
    if not sent.is_multicast:
        endpoint = int(row[request.ENDPOINT])
        is_tile = endpoint & 15 == noc_map.TENSIX
        return [endpoint >> 4 & 0xFF] if is_tile else []
    found = []
    for u in range(TILES):
        x, y = int(state.column[u]), int(state.row[u])
        if x < 0 or (u == number and not int(row[request.CONTROL]) & request.SELF):
            continue
        if _within(row, x, y) and not (u in masks and _left_out(masks[u], row, x, y)):
            found.append(u)
    return found


def _within(row: Any, x: int, y: int) -> bool:
    box, noc = int(row[request.RECTANGLE]), int(row[request.NOC])
    if noc == 1:
        x, y = noc_map.WIDTH - 1 - x, noc_map.HEIGHT - 1 - y
    return _spans(box & 63, box >> 12 & 63, x) and _spans(box >> 6 & 63, box >> 18 & 63, y)


def _spans(first: int, last: int, at: int) -> bool:
    return first <= at <= last if first <= last else at <= last or at >= first


def _left_out(masks: Any, row: Any, x: int, y: int) -> bool:
    columns, rows = masks[int(row[request.NOC])]
    return bool(int(columns) >> x & 1 or int(rows) >> y & 1)
