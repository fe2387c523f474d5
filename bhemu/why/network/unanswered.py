"""Requests to the NoC whose answers nobody looks for before their core is done."""

from dataclasses import dataclass
from typing import Any

from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.devices import niu_request as request
from bhemu.devices.niu import OUTGOING
from bhemu.machine.tile import Tile
from bhemu.tensix.state import NOC_ARRIVED
from bhemu.why.walk import Access, Instruction

_KINDS = request.READ, request.ATOMIC, request.WRITE
_SENT = 0x228  # the counter of writes that have left
_COUNTERS = {0x200: request.ATOMIC, 0x204: request.WRITE, 0x208: request.READ}
OUTSTANDING = range(mm.NIU_COUNTERS + 4 * niu.OUTSTANDING, mm.NIU_COUNTERS + 4 * OUTGOING)
"""Counters of the requests of each transaction id that have no answer yet."""
_MOST = 16
_INITIATORS = 4 * mm.NOC_CMD_BUF_OFFSET

Key = tuple[int, int, int]  # core, NoC, kind


@dataclass(frozen=True)
class Leaving:
    """A write whose source may still be read: L1 `low` to `high`."""

    core: int
    noc: int
    low: int
    high: int
    step: Instruction


@dataclass(frozen=True)
class Overwritten:
    """Core `core` of tile `tile` has written over the source of a write, by the store at `pc`."""

    write: Leaving
    tile: int
    core: int
    pc: int
    clock: int


class Unanswered:
    """The last request of each core, NoC and kind that no load of its counter has come after."""

    def __init__(self, tile: Tile) -> None:
        self._tile = tile
        self.sent: dict[Key, Instruction] = {}
        self._ids: dict[Key, int] = {}  # their transaction ids
        self.overwritten: list[Overwritten] = []
        self._leaving: list[Leaving] = []
        self._arrivals = int(tile.state.noc_arrivals[0])

    def instruction(self, step: Instruction, access: Access | None) -> None:
        """A core has executed an instruction."""
        if int(self._tile.state.noc_arrivals[0]) != self._arrivals:
            self._arrived(step.clock)
        if access is None or not mm.NOC0_BASE <= access.address < mm.OVERLAY_BASE:
            return
        noc, offset = divmod(access.address - mm.NOC0_BASE, mm.NOC_SIZE)
        if access.reads and offset in (_SENT, 0x204):
            mine = (step.core, noc)
            self._leaving = [one for one in self._leaving if (one.core, one.noc) != mine]
        if access.reads and offset in _COUNTERS:
            self.sent.pop((step.core, noc, _COUNTERS[offset]), None)
        elif access.reads and offset in OUTSTANDING:
            seen = (offset - OUTSTANDING.start) >> 2
            known = {(step.core, noc, kind) for kind in _KINDS} & self.sent.keys()
            for key in (key for key in known if self._ids[key] == seen):
                del self.sent[key]
        elif access.writes and offset < _INITIATORS:
            initiator, register = divmod(offset, mm.NOC_CMD_BUF_OFFSET)
            if register == mm.NOC_CMD_CTRL and access.value & 1:
                registers = self._tile.state.niu_command[noc, initiator]
                control = int(registers[mm.NOC_CTRL >> 2])
                read = control & 3 == request.READ
                if read or (control & 3 in _KINDS and control & request.ANSWERED):
                    key = step.core, noc, control & 3
                    self.sent[key], self._ids[key] = step, _transaction(registers)
                if control & 3 == request.WRITE and not control & request.INLINE:
                    low, length = int(registers[0]), int(registers[mm.NOC_AT_LEN_BE >> 2])
                    self._leaving.append(Leaving(step.core, noc, low, low + length, step))

    def _arrived(self, clock: int) -> None:
        """Others have written over the NoC since the last instruction."""
        s = self._tile.state
        count = int(s.noc_arrivals[0])
        for k in range(max(self._arrivals, count - NOC_ARRIVED), count):
            at, n, t, core, pc, _ = (int(word) for word in s.noc_arrived[k % NOC_ARRIVED])
            for one in self._leaving:
                if one.low < at + n and at < one.high and len(self.overwritten) < _MOST:
                    self.overwritten.append(Overwritten(one, t, core, pc, clock))
        self._arrivals = count


def _transaction(registers: Any) -> int:
    """The transaction id that an initiator's registers name."""
    return int(registers[mm.NOC_PACKET_TAG >> 2]) >> 10 & 15
