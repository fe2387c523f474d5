"""Which requests are held back when delivery is late: any that the ordering rules let wait.

Two requests of a tile keep their order when they go to the same place on the same NoC and static
virtual channel, or within a linked transaction; all others may overtake each other. Source: NoC
Ordering, ISA.
"""

from typing import Any

import numpy as np

from bhemu.devices import niu_request as request
from bhemu.jit.subset import njit

_CHANNEL = 7 << 13 | request.STATIC_CHANNEL


@njit
def _random(chip: Any, t: Any, sequence: Any) -> Any:
    """A number of 31 bits that the chip's seed, the tile and the request decide."""
    x = np.uint64(chip.seed[0]) ^ np.uint64(sequence * 256 + t + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(33))


@njit
def _in_order(a: Any, b: Any) -> Any:
    """Whether `b`, which was sent after `a`, must arrive after it."""
    if a[request.NOC] != b[request.NOC] or a[request.GIVEN] != b[request.GIVEN]:
        return False
    if a[request.CONTROL] & request.LINKED:
        return True
    static = a[request.CONTROL] & b[request.CONTROL] & request.STATIC_CHANNEL
    return static != 0 and (a[request.CONTROL] ^ b[request.CONTROL]) & _CHANNEL == 0


@njit
def may_go(chip: Any, t: Any, s: Any, i: Any) -> Any:
    """Whether request `i` of tile `t` is delivered in this round."""
    if chip.late[0] == 0:
        return True
    row = s.noc_request[i]
    if row[request.DUE] == 0:
        delay = _random(chip, t, row[request.SEQUENCE]) % (chip.late[0] + 1)
        if chip.late_pc[0] >= 0 and chip.late_pc[0] != row[request.PC]:
            delay = np.int64(0)
        row[request.DUE] = chip.round[0] + 1 + delay
    if row[request.DUE] > chip.round[0] + 1:
        return False
    for k in range(i):
        earlier = s.noc_request[k]
        if earlier[request.SEQUENCE] != request.GONE and _in_order(earlier, row):
            return False
    return True
