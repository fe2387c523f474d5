"""Resources that an instruction reads and writes, as Auto TTSync tells them apart.

Source: Auto TTSync, Blackhole ISA.
"""

from typing import NamedTuple

GPRS, TDMA = 64, 128  # the thread's GPRs; state of TDMA-RISC
OWN, OWN_REST = 1 << 8, 1 << 9  # Config of the bank the thread uses: all of it; no unpacker's part


class Resources(NamedTuple):
    """Sets of resources, as bits."""

    reads: int = 0
    writes: int = 0


OTHERS = Resources(OWN_REST)  # of every instruction that declares nothing
NOTHING = Resources()
EVERYTHING = Resources(GPRS | TDMA | OWN, GPRS | TDMA | OWN)
BETWEEN_GPRS = Resources(GPRS, GPRS)
