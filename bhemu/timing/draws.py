"""Drawn times: which agents are slow at present, and by how many cycles an act is late.

Few agents are slow at a time, for some hundred or thousand cycles, and so much that others get
ahead of them: what nothing orders then happens in the other order (probabilistic concurrency
testing). A run may also be told which acts alone are late (program/options.py): then the seed
and the count of an act decide by how much, whatever else is late. Every delay has a number.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.noc.delivery import LEAST, MOST, SCALES, TILE_BITS, mixed
from bhemu.program.coordinates import XY
from bhemu.program.options import Lateness
from bhemu.tensix.state import DRAWN, LATE_AGENTS, LATE_LOG

_FACTOR, _TERM = np.uint64(6364136223846793005), np.uint64(1442695040888963407)  # Knuth's MMIX
_SHIFT = np.uint64(33)
_SLOW_AT_ONCE = 3  # agents, at most
_SHORTEST, _LONGEST = 8, 12  # of a time in which the same agents are slow: powers of 2
ANY = 1 << 11  # cycles: no text bounds how late it is


def begin(s: Any, late: Lateness, tile: int, xy: XY) -> None:
    """Draw times from the seed on, differently on each tile of a chip, or delay the named acts."""
    s.timed[0] = DRAWN
    own = late.seed << TILE_BITS | tile
    s.late_random[0] = own
    s.late_choices[0] = s.late_until[0] = 0
    for name in ("late_slow", "late_log", "late_seen", "store_due"):
        getattr(s, name)[...] = 0
    s.late_named[0] = len(late.acts)
    s.noc_source_late[0] = 1 + own if late.requests or not late.acts else 0
    pcs = [acts.pc for acts in late.requests if acts.pc is not None]
    s.noc_source_late[1] = pcs[0] if pcs else -1
    s.late_acts[:, 0] = -1
    for i, acts in enumerate(late.of_tile(xy)):
        s.late_acts[i] = acts.row


@njit
def _below(s: Any, n: Any) -> Any:
    """A random number of 0 to n - 1, n at most 2**31."""
    state = s.late_random[0] * _FACTOR + _TERM
    s.late_random[0] = state
    return np.int64(state >> _SHIFT) % n


@njit
def renew(s: Any) -> Any:
    """Choose other slow agents where the time of the present ones is over; whether it was."""
    if s.timed[0] != DRAWN or s.late_named[0] or s.clock[0] < s.late_until[0]:
        return False
    while s.clock[0] >= s.late_until[0]:  # whatever cycles were looked at between
        s.late_until[0] += np.int64(1) << (_SHORTEST + _below(s, _LONGEST - _SHORTEST + 1))
        s.late_slow[:] = 0
        for _ in range(1 + _below(s, _SLOW_AT_ONCE)):
            cycles = np.int64(1) << (LEAST + _below(s, MOST - LEAST + 1))
            s.late_slow[_below(s, LATE_AGENTS)] = cycles
    return True


@njit
def _drawn_by_name(s: Any, agent: Any, pc: Any, most: Any) -> Any:
    """Cycles by which an act is late in a run that says which acts are.

    The seed decides up to how many cycles (SCALES), and whether all of them are late or half. An
    act that no text bounds may be later than in a run that draws its agents: others are not.
    """
    cycles, seed = np.int64(0), np.int64(s.late_random[0] >> np.uint64(TILE_BITS))
    bound = np.int64(SCALES[seed & 3])
    bound = bound if most == ANY else min(bound, most)
    for i in range(s.late_acts.shape[0]):
        acts = s.late_acts[i]
        if acts[0] != agent or (acts[1] >= 0 and acts[1] != pc):
            continue
        s.late_seen[i] += 1
        count = s.late_seen[i]
        x = mixed(s.late_random[0], count * LATE_AGENTS + agent)  # seed and tile; the act
        if acts[2] <= count <= acts[3] and (seed & 4 == 0 or x >> 30 == 0):
            cycles = max(cycles, 1 + (x & 0xFFFF) % (bound - 1))
    return cycles


@njit
def late(s: Any, agent: Any, pc: Any, most: Any) -> Any:
    """Cycles by which the present act of an agent, at `pc`, is late, fewer than `most`."""
    if s.timed[0] != DRAWN or most == 0:
        return np.int64(0)
    if s.late_named[0]:
        cycles = _drawn_by_name(s, agent, pc, most)
    elif s.late_slow[agent] == 0:
        return np.int64(0)
    else:
        cycles = _below(s, min(s.late_slow[agent], most))
    if cycles == 0:
        return cycles
    choice = s.late_choices[0]
    s.late_choices[0] = choice + 1
    row = choice % LATE_LOG
    s.late_log[row, 0], s.late_log[row, 1], s.late_log[row, 2] = choice, agent, pc
    s.late_log[row, 3], s.late_log[row, 4] = s.clock[0], cycles
    return cycles
