"""What the cores of a tile have asked of the NoC, as the log of their stores tells."""

from collections.abc import Iterator
from dataclasses import dataclass

from bhemu import memmap as mm
from bhemu.devices import niu_request as niu
from bhemu.machine.word_text import Entry
from bhemu.tensix.observe import FIRST_CORE

_COORDINATE = 0x3F


@dataclass(frozen=True)
class Request:
    """A read or write of a range of the own L1, by the store of `core` at `pc` that sends it off.

    `remote` is the address at the other end, `given` the word that names it.
    """

    core: int
    pc: int
    noc: int
    reads: bool
    low: int
    high: int
    remote: int
    given: int
    multicast: bool

    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of where it goes."""
        x, y = self.given & _COORDINATE, self.given >> 6 & _COORDINATE
        if not self.multicast:
            return x, y, x, y
        u, v = self.given >> 12 & _COORDINATE, self.given >> 18 & _COORDINATE
        return min(x, u), min(y, v), max(x, u), max(y, v)


class Requests:
    """The request initiators of a tile, as far as stores of its cores tell."""

    def __init__(self) -> None:
        self._registers: dict[tuple[int, int], int] = {}

    def stored(self, entry: Entry) -> Iterator[Request]:
        """The request that a store of the log sends off, if any that moves data."""
        who, value, pc, address, _ = entry
        for noc, base in enumerate((mm.NOC0_BASE, mm.NOC1_BASE)):
            offset = address - base
            if not 0 <= offset < 4 * mm.NOC_CMD_BUF_OFFSET:
                continue
            buffer, register = divmod(offset, mm.NOC_CMD_BUF_OFFSET)
            self._registers[4 * noc + buffer, register] = value
            if register == mm.NOC_CMD_CTRL:
                yield from self._sent(4 * noc + buffer, who - FIRST_CORE, pc)

    def _sent(self, initiator: int, core: int, pc: int) -> Iterator[Request]:
        def held(register: int) -> int:
            return self._registers.get((initiator, register), 0)

        control, length = held(mm.NOC_CTRL), held(mm.NOC_AT_LEN_BE)
        target, back = ((held(first), held(first + 4) << 32, held(first + 8))
                        for first in (mm.NOC_TARG_ADDR_LO, mm.NOC_RET_ADDR_LO))  # fmt: skip
        reads = control & 3 == niu.READ
        if not reads and (control & 3 != niu.WRITE or control & (niu.INLINE | niu.BYTE_ENABLES)):
            return
        own, other = (back, target) if reads else (target, back)
        yield Request(
            *(core, pc, initiator >> 2, reads, own[0], own[0] + length, other[0] | other[1]),
            given=other[2],
            multicast=bool(control & niu.MULTICAST),
        )
