"""Requests to the NoC whose answers nobody looks for before their core is done."""

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.tile import Tile
from bhemu.why.walk import Access, Instruction

KINDS = {request.ATOMIC: "atomic", request.WRITE: "write", request.READ: "read"}
_COUNTERS = {0x200: request.ATOMIC, 0x204: request.WRITE, 0x208: request.READ}
_INITIATORS = 4 * mm.NOC_CMD_BUF_OFFSET

Key = tuple[int, int, int]  # core, NoC, kind


class Unanswered:
    """The last request of each core, NoC and kind that no load of its counter has come after."""

    def __init__(self, tile: Tile) -> None:
        self._tile = tile
        self.sent: dict[Key, Instruction] = {}

    def instruction(self, step: Instruction, access: Access | None) -> None:
        """A core has executed an instruction."""
        if access is None or not mm.NOC0_BASE <= access.address < mm.OVERLAY_BASE:
            return
        noc, offset = divmod(access.address - mm.NOC0_BASE, mm.NOC_SIZE)
        if access.reads and offset in _COUNTERS:
            self.sent.pop((step.core, noc, _COUNTERS[offset]), None)
        elif access.writes and offset < _INITIATORS:
            initiator, register = divmod(offset, mm.NOC_CMD_BUF_OFFSET)
            if register == mm.NOC_CMD_CTRL and access.value & 1:
                registers = self._tile.state.niu_command[noc, initiator]
                control = int(registers[mm.NOC_CTRL >> 2])
                read = control & 3 == request.READ
                if read or (control & 3 in KINDS and control & request.ANSWERED):
                    self.sent[step.core, noc, control & 3] = step
