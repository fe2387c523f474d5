"""A request to the NoC in words, for messages."""

from typing import Any

from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.memmap import CORE_NAMES, HOST
from bhemu.noc.grid import TILES

_ATOMICS = {1: "increment", 3: "swap", 4: "compare and swap", 6: "swap", 7: "swap"}


def at(coordinate: int) -> str:
    """A coordinate as (x,y)."""
    return f"({coordinate & 63},{coordinate >> 6 & 63})"


def _request_text(row: Any) -> str:
    control, n = int(row[request.CONTROL]), int(row[request.LENGTH])
    kind = control & 3
    if kind == request.READ:
        return f"read of {n} bytes"
    how = "acknowledged" if control & request.ANSWERED else "posted"
    if control & request.MULTICAST:
        how += " multicast"
    if kind == request.ATOMIC:
        return f"{how} {_ATOMICS.get(n >> 12 & 15, 'atomic')} ({n:#x}, {row[request.OPERAND]:#x})"
    if control & request.INLINE:
        return f"{how} inline write of {row[request.OPERAND]:#x}"
    if control & request.BYTE_ENABLES:
        return f"{how} write with byte enables {n & (1 << 64) - 1:#x}"
    return f"{how} write of {n} bytes"


def _name(endpoint: int) -> str:
    ethernet = endpoint & 15 == noc_map.TENSIX and endpoint >> 4 & 0xFF >= TILES
    return noc_map.KIND_NAMES[noc_map.ETHERNET if ethernet else endpoint & 15]


def _where(row: Any) -> str:
    control, given = int(row[request.CONTROL]), int(row[request.GIVEN])
    kind, remote = control & 3, f"{row[request.REMOTE]:#x} of "
    if control & request.MULTICAST:
        remote += f"the tiles {at(given >> 12)} to {at(given)}"
    else:
        remote += f"{_name(int(row[request.ENDPOINT]))} {at(given)}"
    local = f"own {row[request.LOCAL]:#x}"
    if kind == request.WRITE and control & request.INLINE:
        return f"to {remote}"
    if kind == request.READ:
        return f"from {remote} to {local}"
    if kind == request.ATOMIC:
        return f"at {remote}, old value to {local}"
    return f"from {local} to {remote}"


def describe(row: Any) -> str:
    """One line: what it does, between which addresses, by which initiator."""
    control, core = int(row[request.CONTROL]), int(row[request.CORE])
    marks = [
        f"NoC {row[request.NOC]} initiator {row[request.INITIATOR]}",
        f"id {int(row[request.TAG]) >> 10 & 15}",
        f"channel {control >> 13 & 7}" if control & request.STATIC_CHANNEL else "",
        "linked" if control & request.LINKED else "",
        f"NOC_CTRL {control:#x}",
        "sent over the NoC" if core == HOST else f"sent by {CORE_NAMES[core]}",
    ]
    return f"{_request_text(row)} {_where(row)} ({', '.join(mark for mark in marks if mark)})"
