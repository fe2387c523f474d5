"""The entries by which Python lets a request arrive at an observed tile (tiles.py)."""

from typing import Any

import numpy as np

from bhemu.why.order import polls, requests
from bhemu.why.order import record as r

LEAVES, WRITES, SETS, ADDS, REGISTER = range(5)  # what a request does


def arrives(s: Any, does: Any) -> Any:
    """STEP: the request that o.arrival describes (requests.py) reaches this tile, after what
    o.arrived says."""
    o = r.at(s.profile_table[r.ADDRESS])
    a = o.arrival
    if does == REGISTER:
        requests.tell(o, a[r.F_LOW] & ~3, o.arrived)
        return np.int64(0)
    if does == SETS or does == ADDS:
        polls.arrives(o, a, does == ADDS)
    requests.arrival(o)
    return np.int64(0)
