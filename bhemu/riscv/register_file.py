"""Where the engine keeps x0-x31 of a core in memory, found by looking for values put there.

A load or store is checked for alignment before it executes, which needs its base register; asking
the engine costs more than the rest of the hook.  The registers lie at a fixed distance from the
engine's CPU object, the address of which stands in the engine's handle.  Both places are found once
for every version of the engine and proved for each core; where they cannot be (no /proc), the
engine is asked.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from bhemu.riscv.primitives import REG_X0

UNKNOWN = 0
_HANDLE_BYTES = 1024  # of the engine's handle that are searched for addresses
_CPU_BYTES = 1 << 16  # of each object that is searched for the registers
_CORES = 4  # that are compared
_PROBES = (0x9E3779B9, 0x85EBCA6B)  # odd multipliers: two sets of 31 distinct values


def _read(address: int, size: int) -> bytes:
    """Bytes of this process, none when they cannot be read; never faults."""
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            return os.pread(memory.fileno(), size, address)
    except (OSError, OverflowError):
        return b""


def _put(uc: Any, probe: int) -> bytes:
    """Set x1-x31 to 31 distinct values; the bytes they have in memory."""
    values = [(i * probe) & 0xFFFFFFFF for i in range(1, 32)]
    for i, value in enumerate(values, 1):
        uc.reg_write(REG_X0 + i, value)
    return np.array(values, "<u4").tobytes()


def _clear(uc: Any) -> None:
    for i in range(1, 32):
        uc.reg_write(REG_X0 + i, 0)


def _pointer(address: int) -> int:
    return int.from_bytes(_read(address, 8), "little")


def _candidates(handle: int, wanted: bytes) -> Iterator[tuple[int, int]]:
    """(place in the handle, distance of x0 from the address found there)."""
    for place in range(0, _HANDLE_BYTES, 8):
        body = _read(_pointer(handle + place), _CPU_BYTES)
        at = body.find(wanted)
        if at >= 4:
            yield place, at - 4


Layout = list[tuple[int, int]]  # place of an address in the handle, distance of x0 from there


def search(fresh: Any) -> Layout:
    """Places and distances that hold for several cores; `fresh` makes (engine, handle).

    One core alone is not enough: an address of another object may lie near the registers by chance.
    """
    cores = [fresh() for _ in range(_CORES)]
    found = [set(_candidates(handle, _put(uc, _PROBES[0]))) for uc, handle in cores]
    return sorted(set.intersection(*found), key=lambda pair: pair[1])


def locate(uc: Any, handle: int, layout: Layout) -> int:
    """Host address of x0 of a core whose registers may be overwritten, or UNKNOWN."""
    for place, distance in layout:
        address = _pointer(handle + place) + distance
        if all(_put(uc, probe) == _read(address + 4, 31 * 4) for probe in _PROBES):
            _clear(uc)
            return address
    _clear(uc)
    return UNKNOWN
