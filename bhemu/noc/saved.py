"""What a saved chip may hold: numbers that compiled code relies on, checked before it sees them."""

from collections.abc import Collection, Mapping
from typing import Any

from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.memmap import HOST, L1_SIZE, LOCAL_BASE
from bhemu.noc.grid import TILES
from bhemu.noc.record import BETWEEN, DELIVERY, MEMBERS
from bhemu.tensix.state import NOC_DATA, NOC_REQUESTS

_HOSTS = (
    *("until_count", "until_tile", "until_address", "until_value", "until_own", "limit"),
    *("wanted", "refused"),
)
_MADE = ("map", "tile", "column", "row", "page", "blank", "late", "late_pc", "seed", "place")
_SKIPS = ("skipping", "skip_from", "skip_until", "skip_progress", "touched")
_WATCHES = ("dram_watch_count", "dram_watch", "dram_seen", "dram_hit", "dram_before", "dram_after")
SAVED = tuple(m for m in MEMBERS if m.name not in (*_HOSTS, *_MADE, *_SKIPS, *_WATCHES))
"""Members of the chip's record that a saved chip holds; the others are made with the chip."""
_LINE = 16
_ADDRESSES = 1 << 32


def _size(control: int, length: int) -> int:
    """Bytes that a request moves."""
    if control & 3 == request.ATOMIC or (control & 3 == request.WRITE and control & request.INLINE):
        return 4
    enables = control & 3 == request.WRITE and control & request.BYTE_ENABLES
    return request.BE_BYTES if enables else length


def _remote(row: list[int], n: int, multicast: bool) -> bool:
    """Whether the other end of a request is within what its kind has."""
    at, kind = row[request.REMOTE], row[request.ENDPOINT] & 15
    if multicast or kind == noc_map.TENSIX:
        return 0 <= at <= L1_SIZE - n or LOCAL_BASE <= at < _ADDRESSES
    at -= noc_map.PCIE_HOST if kind == noc_map.PCIE else 0
    return kind in noc_map.MEMORIES and 0 <= at <= _ADDRESSES - n - _LINE


def _fine(row: list[int], endpoints: set[int]) -> bool:
    """Whether a row of a queue is a request that a tile may have sent."""
    control, n = row[request.CONTROL], _size(row[request.CONTROL], row[request.LENGTH])
    multicast = bool(control & request.MULTICAST)
    return (
        row[request.NOC] in (0, 1)
        and 0 <= row[request.INITIATOR] < 4
        and 0 <= control < _ADDRESSES
        and control & 3 != request.ILLEGAL
        and 1 <= n <= request.LONGEST
        and 0 <= row[request.LOCAL] <= L1_SIZE - n
        and 0 <= row[request.DATA] <= NOC_DATA - n
        and (multicast or row[request.ENDPOINT] in endpoints)
        and 0 <= row[request.CORE] <= HOST
        and row[request.SEQUENCE] >= -1
        and _remote(row, n, multicast)
    )


def check_tile(arrays: Mapping[str, Any], endpoints: set[int]) -> str:
    """What is wrong with the requests of a tile, or ""."""
    count, used = int(arrays["noc_requests"][0]), int(arrays["noc_data_used"][0])
    if not 0 <= count <= NOC_REQUESTS or not 0 <= used <= NOC_DATA:
        return f"noc_requests is {count}, noc_data_used is {used}"
    if int(arrays["noc_arrivals"][0]) < 0:
        return "noc_arrivals is negative"
    for i in range(count):
        if not _fine([int(word) for word in arrays["noc_request"][i]], endpoints):
            return f"noc_request {i} is no request"
    return ""


def check_chip(arrays: Mapping[str, Any], tiles: Collection[int]) -> str:
    """What is wrong with the members of a chip's record that has these tiles, or ""."""
    if not BETWEEN <= int(arrays["phase"][0]) <= DELIVERY:
        return "phase is unknown"
    made = [t in tiles for t in range(TILES)]
    for name in ("awake", "due"):
        if any(arrays[name][t] not in (0, int(made[t])) for t in range(TILES)):
            return f"{name} names a tile that is not there"
    left, at = arrays["left"], arrays["at"]
    if any(left[t] > 0 and not (made[t] and left[t] <= NOC_REQUESTS) for t in range(TILES)):
        return "left counts requests that are not there"
    if not 0 <= at[0] <= TILES or at[1] < 0:
        return "at is outside of every queue"
    if any(arrays["begun"][t] >= 0 and not made[t] for t in range(TILES)):
        return "begun names a tile that is not there"
    return ""
