"""The MMIO window of the scalar unit: 0xFFB11000 to 0xFFBFFFFF, as the NoC sees the tile.

The memory map gives the Tensix coprocessor what it gives the NoC, so the device bus answers as for
the host: TDMA-RISC, MOP configuration and the Dst window are not mapped (BabyRISCV, Blackhole ISA).
"""

from typing import Any

import numpy as np

from bhemu.jit.calls import call_access
from bhemu.jit.subset import njit
from bhemu.memmap import HOST, LOCAL_BASE, TDMA_BASE
from bhemu.tensix import streams
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, UB, UNIMPLEMENTED, error

BASE = LOCAL_BASE
FIRST = TDMA_BASE  # below it is core-local memory, out of reach

LOW = error(
    "THCON-MMIO-LOW",
    UB,
    "address {address:#010x} is below 0xffb11000, out of reach of the scalar unit",
    "reg_addr of STOREREG and LOADREG is (address - 0xffb00000) / 4",
)
WAITS = error(
    "THCON-MMIO-WAITS",
    UNIMPLEMENTED,
    "the load from {address:#010x} by the scalar unit would have to wait, which is not modelled",
    "let a RISC-V core load it",
)


@njit
def _bus(s: Any, pointer: Any, address: Any, value: Any) -> Any:
    """Status of one access of the device bus."""
    host, size = np.int64(HOST), np.int64(4)
    return call_access(pointer, s, host, np.int64(address), size, np.int64(value))


@njit
def load(s: Any, address: Any) -> Any:
    """Load the 32-bit register at `address` into `s.loaded`; DONE or the error number."""
    if address < FIRST:
        return np.int64(refuse(s, LOW, address=address))
    at = address - streams.BASE
    if 0 <= at < streams.SIZE:
        return np.int64(streams.stream_read(s, at >> 12, (at & 0xFFF) >> 2))
    status = _bus(s, s.bus_read[0], address, 0)
    if status > DONE:
        return np.int64(refuse(s, WAITS, address=address))
    return status


@njit
def store(s: Any, address: Any, value: Any) -> Any:
    """Store the 32-bit `value` to the register at `address`; DONE or the error number."""
    if address < FIRST:
        return np.int64(refuse(s, LOW, address=address))
    at = address - streams.BASE
    if 0 <= at < streams.SIZE:
        return np.int64(streams.stream_write(s, at >> 12, (at & 0xFFF) >> 2, value))
    return _bus(s, s.bus_write[0], address, value)
