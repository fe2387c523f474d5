"""Tiles that only poll are left out of rounds, which are counted when somebody needs the tile.

Behind a round that a tile would do again (tensix/loop.py), with nothing of its own under
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
from bhemu.tensix.loop import period, room, skip
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
def _counted(s: Any, rounds: Any) -> Any:
    """Count what can be of `rounds` rounds that repeat the tile's last one; how many are left."""
    if s.agent[0] != 0 or s.turn_open[0] != 0:
        return rounds  # it has stopped in the middle of one
    left = rounds % period(s)
    if rounds > left:
        skip(s, rounds - left)
    return left


@njit
def catch_up(chip: Any, t: Any) -> Any:
    """The tile has its turns again, and stands where it would if it had had them all along.

    0, or the status with which the tile stopped on the way, also in `stopped`: a page of code that
    the engine is to translate. Calling it again goes on from there.
    """
    if not is_skipped(chip, t):
        return np.int64(0)
    s = tile_of(chip, t)
    behind = chip.round[0] + (0 if chip.phase[0] == BETWEEN else 1)
    left, status = _counted(s, behind - chip.skip_from[t]), np.int64(0)
    while left > 0 and (status == 0 or status == STOP_TIME):
        status = call_step(s.run_rounds[0], s, np.int64(1))
        left -= 1 if status == 0 else 0
    chip.stopped[t] = status
    if status != 0:
        chip.skip_from[t] = behind - left
        return status
    if chip.phase[0] == TILES_RUN:
        chip.begun[t] = s.clock[0] - chip.skip_progress[t]
    chip.skip_from[t] = -1
    return status


@njit
def most_progress(chip: Any, most: Any) -> Any:
    """The largest progress of a tile in the round, those included that are left out."""
    for t in range(TILES):
        if is_skipped(chip, t):
            most = max(most, chip.skip_progress[t])
    return most


def catch_up_all(chip: Any, _unused: Any) -> Any:
    """STEP of a chip: every tile is where it would be; before Python looks at tiles.

    Not 0: a tile has stopped on the way.
    """
    status = np.int64(0)
    for t in range(TILES):
        stopped = catch_up(chip, t)
        status = stopped if stopped != 0 else status
    return status
