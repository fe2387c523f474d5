"""Tiles that only poll are left out of rounds, which are counted when somebody needs the tile.

Behind a round that a tile would do again (tensix/polling_rounds.py), with nothing of its own under
way, only a delivery or the host can change what it does. So it has no turns until then; before a
delivery touches it, and before Python looks, `catch_up` does what it has missed: the multiple of
its period by counting, the rest by running.
"""

from typing import Any

import numpy as np

from bhemu.jit.calls import call_step
from bhemu.jit.subset import njit
from bhemu.noc.grid import TILES
from bhemu.noc.record import BETWEEN, TILES_RUN
from bhemu.noc.tile_records import tile_of
from bhemu.tensix.polling_rounds import period, room, skip
from bhemu.tensix.stops import STOP_TIME

_LONGEST_PERIOD = 64  # rounds, of which one less may have to be run to catch up


@njit
def is_skipped(chip: Any, t: Any) -> Any:
    """Whether the tile has no turns."""
    return chip.skip_from[t] >= 0


@njit
def begin(chip: Any) -> None:
    """Behind a round: leave out the tiles that would only repeat it from now on."""
    if chip.skipping[0] == 0:
        return
    now = chip.round[0]
    for t in range(TILES):
        if chip.awake[t] == 0 or is_skipped(chip, t) or chip.touched[t] == now - 1:
            continue
        s = tile_of(chip, t)
        every = period(s)
        if every == 0 or every > _LONGEST_PERIOD or s.noc_requests[0]:
            continue
        rounds = room(s)
        if rounds > _LONGEST_PERIOD:
            chip.skip_from[t], chip.skip_until[t] = now, now + rounds
            chip.skip_progress[t] = s.round_progress[0]


@njit
def _pass(s: Any, rounds: Any) -> None:
    """Bring a tile forward by rounds that repeat its last one."""
    every = period(s)
    left = rounds % every
    if rounds > left:
        skip(s, rounds - left)
    for _ in range(left):
        while call_step(s.run_rounds[0], s, np.int64(1)) == STOP_TIME:
            pass


@njit
def catch_up(chip: Any, t: Any) -> None:
    """The tile has its turns again, and stands where it would if it had had them all along."""
    if not is_skipped(chip, t):
        return
    s = tile_of(chip, t)
    inside = chip.phase[0] != BETWEEN
    _pass(s, chip.round[0] - chip.skip_from[t] + (1 if inside else 0))
    if chip.phase[0] == TILES_RUN:
        chip.begun[t] = s.clock[0] - chip.skip_progress[t]
    chip.skip_from[t] = -1


@njit
def most_progress(chip: Any, most: Any) -> Any:
    """The largest progress of a tile in the round, those included that are left out."""
    for t in range(TILES):
        if is_skipped(chip, t):
            most = max(most, chip.skip_progress[t])
    return most


def catch_up_all(chip: Any, _unused: Any) -> Any:
    """STEP of a chip: every tile is where it would be; before Python looks at tiles."""
    for t in range(TILES):
        catch_up(chip, t)
    return np.int64(0)
