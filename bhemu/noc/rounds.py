"""The compiled loop of a chip: rounds of all tiles that are awake, then delivery.

A tile falls asleep when it is idle or cannot go on, and wakes when something is delivered to it.
One that only polls is left out (record.py). A tile that stops in the middle of its round
is resumed before the round goes on.

A tile with until conditions stops at the store, or Tensix word, that makes its own hold
(tensix/thread.py). When the other tiles have had their turns of the round, that ends the run if all
conditions hold; if not, the tile goes on. A tile whose own hold when a round begins is not
stopped in it.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu.jit import Later
from bhemu.jit.intrinsics import call_step, l1_word
from bhemu.jit.subset import njit
from bhemu.noc import record
from bhemu.noc.record import BETWEEN, DELIVERY, TILES_RUN, tile_of
from bhemu.tensix.loop import period
from bhemu.tensix.rules import STOP_DEADLOCK, STOP_IDLE, STOP_LIMIT, STOP_UNTIL

if TYPE_CHECKING:
    from bhemu.noc import delivery, timed
else:
    delivery, timed = Later("bhemu.noc.delivery"), Later("bhemu.noc.timed")

# Why `run_rounds` returned before the last of its rounds
CHIP_TILES = 2001  # tiles have stopped: see `stopped`
CHIP_MAKE = 2002  # Python must make what `wanted` says
CHIP_REFUSED = 2003  # a target refused a request: see `refused`
CHIP_UNTIL = 2004
CHIP_LIMIT = 2005
CHIP_IDLE = 2006
CHIP_DEADLOCK = 2007
CHIP_POLLING = 2008  # every core that runs only polls, and `until_polling` asks for that
CHIP_WATCH = 2009  # a request has touched a watchpoint on DRAM: see `dram_hit`
EVERY = -1  # all tiles


@njit
def _until(chip: Any, only: Any) -> Any:
    """Whether every until condition holds: of tile `only`, or EVERY."""
    for i in range(chip.until_count[0]):
        t = chip.until_tile[i]
        if only >= 0 and t != only:
            continue
        if chip.tile[t] == 0:
            return False
        if l1_word(tile_of(chip, t), chip.until_address[i]) != np.int64(chip.until_value[i]):
            return False
    return chip.until_count[0] > 0


@njit
def _open(chip: Any) -> Any:
    """Begin a round: every tile that is awake and not left out has a turn; 0, or CHIP_TILES."""
    for t in range(chip.tiles[0]):
        # Whether a tile that is left out has a turn again: a time is over, or a limit is near.
        near = chip.limit[0] >= 0 and chip.clock[0] + chip.skip_progress[t] >= chip.limit[0]
        if (near or chip.round[0] >= chip.skip_until[t]) and record.catch_up(chip, t) != 0:
            return np.int64(CHIP_TILES)
    chip.phase[0] = TILES_RUN
    for t in range(chip.tiles[0]):
        chip.due[t] = 0
        if chip.awake[t] and not record.is_skipped(chip, t):
            s = tile_of(chip, t)
            chip.due[t] = 1
            chip.begun[t] = s.clock[0]
            if chip.limit[0] >= 0:
                s.limit[0] = s.clock[0] + chip.limit[0] - chip.clock[0]
    if chip.timed[0]:
        timed.open_window(chip)
    # Tiles stop where their until conditions come to hold, but for those that hold by now.
    ends = _until(chip, np.int64(EVERY))
    for i in range(chip.until_count[0]):
        t = chip.until_tile[i]
        if chip.due[t]:
            s = tile_of(chip, t)
            s.until_count[0] = 0 if not ends and _until(chip, t) else chip.until_own[t]
    return np.int64(0)


@njit
def _has_closed(chip: Any, s: Any) -> Any:
    """Whether a tile that stopped has closed its round: a resumed tile would begin the next.

    In modelled time a tile stops within its window alone.
    """
    return chip.timed[0] == 0 and s.agent[0] == 0 and s.turn_open[0] == 0 and s.sweep_open[0] == 0


@njit
def _run_tile(chip: Any, t: Any) -> None:
    """Run or resume the round of a tile; a limit at its end is the chip's, once all have run."""
    s = tile_of(chip, t)
    status = call_step(s.run_rounds[0], s, np.int64(1))
    if status == STOP_LIMIT and _has_closed(chip, s):
        status = np.int64(0)
    if status == STOP_IDLE or status == STOP_DEADLOCK:
        chip.asleep[t] = status
        chip.awake[t] = 0
        status = np.int64(0)
    chip.stopped[t] = status
    if status == 0:
        chip.due[t] = 0


@njit
def _runs(chip: Any, t: Any) -> Any:
    """Whether the tile has not finished the round, and does not stand where its conditions hold."""
    return chip.due[t] != 0 and chip.stopped[t] != STOP_UNTIL


@njit
def _goes_on(chip: Any, t: Any) -> Any:
    """Whether a tile has not finished the round, and does not wait for Python to look at it."""
    return chip.due[t] != 0 and chip.stopped[t] == 0


def run_tiles(chip: Any, share: Any) -> Any:
    """STEP of a chip: run the due tiles of one share; `share`: which, and from bit 16 how many."""
    which, shares = share & 0xFFFF, share >> 16
    for t in range(chip.tiles[0]):
        if _goes_on(chip, t) and chip.place[t] % shares == which:
            _run_tile(chip, t)
    return np.int64(0)


@njit
def _stopped(chip: Any) -> Any:
    """Whether a tile has stopped in the round for Python to look at."""
    for t in range(chip.tiles[0]):
        if _runs(chip, t):
            return True
    return False


@njit
def _progress(chip: Any, least: Any) -> Any:
    """The largest progress of a tile that has had a turn of the open round."""
    most = least
    for t in range(chip.tiles[0]):
        if chip.begun[t] >= 0:
            most = max(most, tile_of(chip, t).clock[0] - chip.begun[t])
    return most


@njit
def _completed(chip: Any) -> Any:
    """Whether a tile stands where it has completed the conditions; those that have not go on."""
    for t in range(chip.tiles[0]):
        while chip.due[t] and chip.stopped[t] == STOP_UNTIL:
            if _until(chip, np.int64(EVERY)):
                for u in range(chip.tiles[0]):
                    if chip.stopped[u] == STOP_UNTIL:
                        chip.stopped[u] = 0
                return True
            s = tile_of(chip, t)
            s.until_count[0] = 0
            if _has_closed(chip, s):
                chip.stopped[t] = chip.due[t] = 0
            else:
                _run_tile(chip, t)
    return False


@njit
def idle_or_deadlock(chip: Any) -> Any:
    """Why nothing can move: CHIP_IDLE, CHIP_DEADLOCK, or 0 when something can."""
    status = np.int64(CHIP_IDLE)
    for t in range(chip.tiles[0]):
        if chip.awake[t]:
            return np.int64(0)
        if chip.tile[t] != 0 and chip.asleep[t] == STOP_DEADLOCK:
            status = np.int64(CHIP_DEADLOCK)
    return np.int64(0) if delivery.under_way(chip) else status


@njit
def _only_polls(chip: Any) -> Any:
    """Whether every tile that is awake would do its last round again, for ever."""
    for t in range(chip.tiles[0]):
        if record.is_skipped(chip, t):
            continue
        if chip.awake[t] and period(tile_of(chip, t)) == 0:
            return False
    return not delivery.under_way(chip)


@njit
def _reaches_limit(chip: Any) -> Any:
    """Whether the round ends at the limit of the machine, or at that of a tile that took part."""
    if chip.limit[0] >= 0:
        return chip.clock[0] >= chip.limit[0]
    for t in range(chip.tiles[0]):
        if chip.begun[t] >= 0:
            s = tile_of(chip, t)
            if 0 <= s.limit[0] <= s.clock[0]:
                return True
    return False


@njit
def finish_round(chip: Any, _unused: Any) -> Any:
    """STEP of a chip, when the tiles have run: deliver and close the round; 0, or why it stops."""
    if chip.phase[0] == TILES_RUN:
        if _stopped(chip):
            return np.int64(CHIP_TILES)
        if chip.until_count[0] and _completed(chip):
            return np.int64(CHIP_UNTIL)
        if _stopped(chip):
            return np.int64(CHIP_TILES)
        # The clock grows by the largest progress of a tile; in modelled time to the window's end.
        end = timed.close_window(chip) if chip.timed[0] else np.int64(-1)
        most = record.most_progress(chip)
        chip.clock[0] = end if end >= 0 else chip.clock[0] + _progress(chip, most)
        delivery.begin(chip)
        chip.phase[0] = DELIVERY
    status = timed.deliver(chip) if chip.timed[0] else delivery.deliver(chip)
    if status == delivery.MAKE:
        return np.int64(CHIP_MAKE)
    if status == delivery.STOPPED:
        return np.int64(CHIP_TILES)
    if status == delivery.WATCHED:
        return np.int64(CHIP_WATCH)
    if status != 0:
        return np.int64(CHIP_REFUSED)
    # End the round; one in which nothing could happen counts 0.
    chip.phase[0] = BETWEEN
    chip.round[0] += 1
    moved, limited = _progress(chip, np.int64(0)), _reaches_limit(chip)
    chip.begun[: chip.tiles[0]] = -1
    if _until(chip, np.int64(EVERY)):
        return np.int64(CHIP_UNTIL)
    status = idle_or_deadlock(chip)
    if status != 0 and moved == 0:
        chip.clock[0] -= 1
        chip.round[0] -= 1
    if status == 0 and chip.until_polling[0] and _only_polls(chip):
        return np.int64(CHIP_POLLING)
    if status == 0 and limited:
        return np.int64(CHIP_LIMIT)
    if status == 0:
        record.begin(chip)
    return status


def open_round(chip: Any, _unused: Any) -> Any:
    """STEP of a chip: begin a round, unless one is open; how many tiles are due, -1: CHIP_TILES."""
    if chip.phase[0] == BETWEEN and _open(chip) != 0:
        return np.int64(-1)
    due = np.int64(0)
    for t in range(chip.tiles[0]):
        chip.place[t] = due
        due += 1 if chip.due[t] else 0
    return due


@njit
def _pass(chip: Any, most: Any) -> Any:
    """Count up to `most` rounds in which no tile has a turn and nothing is delivered; how many."""
    looked_at = chip.until_count[0] or chip.until_polling[0] or chip.timed[0]
    if looked_at or chip.limit[0] >= 0 or chip.phase[0] != BETWEEN or delivery.under_way(chip):
        return np.int64(0)
    awake = False
    for t in range(chip.tiles[0]):
        if record.is_skipped(chip, t):
            most = min(most, chip.skip_until[t] - chip.round[0])
        elif chip.awake[t]:
            return np.int64(0)
        awake = awake or chip.awake[t] != 0
    if not awake or most <= 0:
        return np.int64(0)
    chip.round[0] += most
    chip.clock[0] += most * record.most_progress(chip)
    return most


def run_rounds(chip: Any, rounds: Any) -> Any:
    """STEP of a chip: run up to `rounds` rounds from where it stands; 0, or why it stopped."""
    left = rounds
    while left > 0:
        passed = _pass(chip, left)
        if passed > 0:
            left -= passed
            continue
        left -= 1
        if chip.phase[0] == BETWEEN and _open(chip) != 0:
            return np.int64(CHIP_TILES)
        for t in range(chip.tiles[0]):
            if _goes_on(chip, t):
                _run_tile(chip, t)
        status = finish_round(chip, np.int64(0))
        if status != 0:
            return status
    return np.int64(0)
