"""A core that polls: a loop that comes back to the same registers without any effect.

Nobody else changes anything within a core's turn, so such a loop goes on until the turn is over.
Its passes are counted instead of executed: they are taken from the fuel, and what is left of the
last one is executed. Every turn begins with a pass that is executed; so whoever writes what the
loop reads need not tell. Both engines ask `look` before each instruction while LOOKING is set.
"""

from typing import Any

import numpy as np

from bhemu.devices import debug_port
from bhemu.jit.subset import njit
from bhemu.tensix.state import THREADS

MEMBERS = (
    *("count_passes", "acted", "load_acted", "poll_began", "loop_pc", "loop_regs", "loop_fuel"),
    *("loop_polls", "loop_front", "loop_length", "loop_loads", "loop_yields", "loop_wait"),
)
"""Members of the record that say how a poller is run, and nothing about the tile."""

LOOKING = 8  # attention: is this slice a polling loop?
POLLS = 8  # repeated device loads after which the turn of a polling core is over
LONGEST_PASS = 64  # instructions
_SHORTEST_SLICE = 4
_LONGEST_WAIT = 31  # turns without a look, at a core that does other things


@njit
def _front_end(s: Any) -> Any:
    """Changes whenever the threads have taken, expanded, executed or latched something."""
    taken, held = np.int64(0), np.int64(0)
    for t in range(THREADS):
        taken += s.executed[t] + s.fifo_read[t]
        held = held << 3 | s.gate_full[t] << 2 | s.latch[t]
    return taken << 9 | held


@njit
def _note(s: Any, c: Any) -> None:
    """The state that a pass must come back to; the registers stand in s.regs."""
    s.loop_pc[c] = s.pc[c]
    s.loop_fuel[c] = s.fuel[c]
    s.loop_polls[c, 0], s.loop_polls[c, 1] = s.poll_pc[c], s.poll_count[c]
    s.loop_front[c] = _front_end(s)
    s.poll_began[c] = 0
    for i in range(1, 32):
        s.loop_regs[c, i] = s.regs[c, i]


@njit
def due(s: Any, c: Any) -> Any:
    """True when the slice that begins is to be looked at; `begin` then wants the registers."""
    s.acted[c] = s.loop_length[c] = 0
    s.loop_fuel[c] = -1
    if s.count_passes[0] == 0 or s.breakpoint_count[c] or s.watch_count[0] or s.stored[c]:
        return False
    if s.l0[0] or debug_port.watches(s, c):  # a load may change the lines of the L0 cache
        return False
    if s.fuel[c] < _SHORTEST_SLICE:
        return False
    if s.loop_wait[c, 0] > 0:
        s.loop_wait[c, 0] -= 1
        return False
    return True


@njit
def begin(s: Any, c: Any) -> None:
    """Look at the slice that begins; the registers stand in s.regs."""
    _note(s, c)
    s.attention[0] |= LOOKING


@njit
def returns(s: Any, c: Any, address: Any) -> Any:
    """True when the pc is where the pass began: `look` then wants the registers."""
    return np.uint32(address) == s.loop_pc[c] and s.fuel[c] != s.loop_fuel[c]


@njit
def _same_registers(s: Any, c: Any) -> Any:
    for i in range(1, 32):
        if s.loop_regs[c, i] != s.regs[c, i]:
            return False
    return True


@njit
def look(s: Any, c: Any, address: Any) -> None:
    """Before the instruction at `address` while LOOKING: a pass is over, or this is no such loop.

    A pass may count one and the same device load up, which ends the turn (access.py): the passes
    up to the last but one are skipped, counted as loads too.
    """
    length = s.loop_fuel[c] - s.fuel[c]
    if s.stored[c] or s.acted[c] or length > LONGEST_PASS:
        s.attention[0] &= ~LOOKING
        return
    if not returns(s, c, address) or not _same_registers(s, c):
        return
    loads = s.poll_count[c] - s.loop_polls[c, 1]
    counts = s.poll_pc[c] == s.loop_polls[c, 0] and (loads == 0 or not s.poll_began[c])
    if not counts or _front_end(s) != s.loop_front[c]:
        _note(s, c)  # the first pass was another one
        return
    s.attention[0] &= ~LOOKING
    if s.turn_yield[0] or loads < 0:
        return
    s.loop_length[c], s.loop_loads[c] = length, loads
    passes = s.fuel[c] // length
    if loads > 0:
        passes = min(passes, (POLLS - 1 - s.poll_count[c]) // loads)
    s.fuel[c] -= passes * length
    s.poll_count[c] += passes * loads


@njit
def end(s: Any, c: Any) -> None:
    """The slice is over: whether every later turn repeats it, and when to look again."""
    s.attention[0] &= ~LOOKING
    if s.loop_fuel[c] < 0:
        return
    if s.loop_length[c] == 0:
        s.loop_wait[c, 1] = min(2 * s.loop_wait[c, 1] + 1, _LONGEST_WAIT)
        s.loop_wait[c, 0] = s.loop_wait[c, 1]
        return
    s.loop_wait[c, 1] = 0
    used = s.fuel_given[c] - s.fuel[c]
    s.loop_yields[c] = s.turn_yield[0]
    recurs = used % s.loop_length[c] == 0 and s.poll_count[c] == s.loop_polls[c, 1]
    from_begin = s.loop_fuel[c] == s.fuel_given[c] and s.fuel_given[c] == s.turn_given[0]
    if not from_begin or (s.loop_loads[c] > 0 and not recurs):
        s.loop_length[c] = 0
