"""Memory behind endpoints that are no tile of ours: DRAM banks and the like, made page by page."""

from typing import Any

import numpy as np

from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.jit.address import fill, move, store_word
from bhemu.jit.subset import njit
from bhemu.noc.record import (
    ARC_MEMORY,
    ETHERNET_MEMORY,
    MEMORY_PAGE,
    MEMORY_SHIFT,
    PCIE_MEMORY,
)

WANT_TILE, WANT_PAGE = 0, 1


@njit
def number(endpoint: Any) -> Any:
    """The memory behind an endpoint, as the record counts them."""
    kind = noc_map.kind(endpoint)
    if kind == noc_map.PCIE:
        return np.int64(PCIE_MEMORY)
    if kind == noc_map.ARC:
        return np.int64(ARC_MEMORY)
    first = ETHERNET_MEMORY if kind == noc_map.ETHERNET else 0
    return np.int64(noc_map.index(endpoint) + first)


@njit
def offset(endpoint: Any, address: Any) -> Any:
    """Where an address of the endpoint stands in its memory."""
    return address - noc_map.PCIE_HOST if noc_map.kind(endpoint) == noc_map.PCIE else address


@njit
def has(chip: Any, memory: Any, at: Any, n: Any) -> Any:
    """Whether every page of a range is made; notes the first that is not."""
    for page in range(at >> MEMORY_SHIFT, ((at + n - 1) >> MEMORY_SHIFT) + 1):
        if chip.page[memory, page] == 0:
            chip.wanted[0], chip.wanted[1], chip.wanted[2] = WANT_PAGE, memory, page
            return False
    return True


@njit
def host_address(chip: Any, memory: Any, at: Any) -> Any:
    """The host address of a byte of a page that is made."""
    return np.int64(chip.page[memory, at >> MEMORY_SHIFT]) + (at & (MEMORY_PAGE - 1))


@njit
def write(chip: Any, memory: Any, at: Any, source: Any, n: Any) -> None:
    """Copy bytes from a host address into pages that are made."""
    while n > 0:
        part = min(n, MEMORY_PAGE - (at & (MEMORY_PAGE - 1)))
        move(host_address(chip, memory, at), source, part)
        at, source, n = at + part, source + part, n - part


@njit
def read(chip: Any, memory: Any, at: Any, to: Any, n: Any) -> None:
    """Copy bytes to a host address; a page that is not made is blank."""
    while n > 0:
        part = min(n, MEMORY_PAGE - (at & (MEMORY_PAGE - 1)))
        if chip.page[memory, at >> MEMORY_SHIFT] == 0:
            fill(to, chip.blank[0], part)
        else:
            move(to, host_address(chip, memory, at), part)
        at, to, n = at + part, to + part, n - part


@njit
def reach(chip: Any, row: Any) -> Any:
    """Whether the pages of a request are there; a read of DRAM needs none where blank is one byte.

    The host's memory gets a page at the first access of any kind: so Python hears of it.
    """
    control, endpoint = row[request.CONTROL], row[request.ENDPOINT]
    which = number(endpoint)
    if request.kind(control) == request.READ and chip.blank[0] >= 0 and which < PCIE_MEMORY:
        return True
    at = offset(endpoint, row[request.REMOTE])
    first = at & ~15  # of the line that an atomic changes, or byte enables
    begin = first if request.has_enables(control) else at
    return has(chip, which, first, begin - first + request.size(row))


@njit
def write_enabled(to: Any, source: Any, mask: Any) -> None:
    """Copy those of 64 bytes whose bit of the mask is set, between host addresses."""
    for i in range(request.BE_BYTES):
        if (mask >> i) & 1:
            move(to + i, source + i, np.int64(1))


@njit
def store(chip: Any, endpoint: Any, address: Any, value: Any) -> None:
    """Store a word to a page that is made."""
    store_word(host_address(chip, number(endpoint), offset(endpoint, address)), value)
