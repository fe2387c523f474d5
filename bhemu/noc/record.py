"""The record of the NoC: requests under way, rounds skipped, and what a saved state keeps of it."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.devices.noc_map import COORDINATES, HEIGHT, WIDTH
from bhemu.jit.intrinsics import call_step, record_at
from bhemu.jit.record import Member, Record, layout, members, offsets_of, plain
from bhemu.jit.subset import njit, signature
from bhemu.memmap import HOST, L1_SIZE, LOCAL_BASE
from bhemu.noc import times
from bhemu.noc.grid import ALL_TILES, BANKS, ETHERNET_COLUMNS, TILES
from bhemu.tensix.loop import period, room, skip
from bhemu.tensix.rules import STOP_TIME
from bhemu.tensix.state import DTYPE as TILE_DTYPE
from bhemu.tensix.state import NOC_DATA, NOC_REQUESTS

# The state of a chip between its tiles: one structured record, as a tile's (tensix/state.py).
#
# It holds the addresses of the tiles' records and of the pages of memory, so that compiled code
# finds them; which tiles run, how far the round and its delivery have come, and what ends a run.

# Memories at endpoints, by number: the banks of DRAM, the host at PCIe, ARC, Ethernet tiles
PCIE_MEMORY = BANKS
ARC_MEMORY = PCIE_MEMORY + 1
ETHERNET_MEMORY = ARC_MEMORY + 1
MEMORIES = ETHERNET_MEMORY + len(ETHERNET_COLUMNS)
MEMORY_SHIFT = 18
MEMORY_PAGE = 1 << MEMORY_SHIFT  # bytes of a page of memory
MEMORY_PAGES = (1 << 32) >> MEMORY_SHIFT
UNTIL_WORDS = 1024
DRAM_WATCHES, DRAM_WATCH_BYTES = 8, 64
NOC_SPENT = 1024  # places of a program that send requests, of which a profile knows
NOC_LOG = 1 << 16  # stages of requests that a profile keeps
NOC_WAITS = 3  # what a packet may wait for: NIUs, links, a bank of DRAM
PLACES, SPENT_FIELDS, SPANS = WIDTH * HEIGHT, 5 + NOC_WAITS, times.SPANS
BETWEEN, TILES_RUN, DELIVERY = range(3)  # phase of the round

_FILE = Path(__file__).parents[1] / "data" / "chip_record.txt"
MEMBERS = members(_FILE, globals() | {"COORDINATES": COORDINATES})
DTYPE = layout(MEMBERS)
OFFSET = offsets_of(DTYPE)
CHIP_STEP = signature("int64", DTYPE, "int64")  # run rounds, or one share of the tiles


class ChipState(Record):
    """A chip's record, with a view per member."""

    MEMBERS = MEMBERS
    DTYPE = DTYPE

    def __init__(self) -> None:
        super().__init__()
        self.limit[0], self.tiles[0] = -1, TILES
        self.begun[:] = self.skip_from[:] = self.touched[:] = -1
        self.skipping[0] = 1


# What a saved chip may hold: numbers that compiled code relies on, checked before it sees them.

_HOSTS = (
    *("until_count", "until_tile", "until_address", "until_value", "until_own", "limit"),
    *("wanted", "host", "refused"),
)
_MADE = ("map", "tiles", "tile", "column", "row", "page", "blank", "late", "seed", "place", "timed")
_WITHIN = ("receivers", "noc_held")  # one delivery
_PROFILE = ("noc_counts", "noc_spent", "link_used", "noc_logged", "noc_log")
_SKIPS = ("skipping", "skip_from", "skip_until", "skip_progress", "touched")
_WATCHES = ("dram_watch_count", "dram_watch", "dram_seen", "dram_hit", "dram_before", "dram_after")
_LEFT_OUT = (*_HOSTS, *_MADE, *_WITHIN, *_PROFILE, *_SKIPS, *_WATCHES)
SAVED = tuple(member for member in MEMBERS if member.name not in _LEFT_OUT)
"""Members of the chip's record that a saved chip holds; the others are made with the chip."""


def saved(tiles: int) -> tuple[Member, ...]:
    """SAVED, as a chip with so many tiles has them."""
    return tuple(m._replace(shape=(tiles,)) if m.shape == (ALL_TILES,) else m for m in SAVED)


def held(state: ChipState, tiles: int) -> dict[str, Any]:
    """What a saved chip with so many tiles holds of its record."""
    return {m.name: getattr(state, m.name)[: m.shape[0]].copy() for m in saved(tiles)}


LATER = (
    *("window_end", "event", "event_last", "niu_out", "cast", "taken", "dram_free"),
    "host_acts",
)
"""Those of them that a saved chip of this schema may lack: 0 is what they held."""
_LINE = 16
_ADDRESSES = 1 << 32


_size = plain(request.size)


def _remote(row: list[int], n: int, multicast: bool) -> bool:
    """Whether the other end of a request is within what its kind has."""
    at, kind = row[request.REMOTE], row[request.ENDPOINT] & 15
    if multicast or kind == noc_map.TENSIX:
        return 0 <= at <= L1_SIZE - n or LOCAL_BASE <= at < _ADDRESSES
    at -= noc_map.PCIE_HOST if kind == noc_map.PCIE else 0
    return kind in noc_map.MEMORIES and 0 <= at <= _ADDRESSES - n - _LINE


def check_tile(arrays: Mapping[str, Any], endpoints: set[int], clock: int) -> str:
    """What is wrong with the requests of a tile, or "". clock: of the chip."""
    count, used = int(arrays["noc_requests"][0]), int(arrays["noc_data_used"][0])
    if not 0 <= count <= NOC_REQUESTS or not 0 <= used <= NOC_DATA:
        return f"noc_requests is {count}, noc_data_used is {used}"
    if int(arrays["noc_arrivals"][0]) < 0:
        return "noc_arrivals is negative"
    for i in range(count):
        row = [int(word) for word in arrays["noc_request"][i]]
        control, n = row[request.CONTROL], int(_size(row))
        multicast = bool(control & request.MULTICAST)
        if not (
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
        ):
            return f"noc_request {i} is no request"
        due = int(arrays["noc_request"][i, request.DUE])
        if arrays["timed"][0] and 0 < due < (clock - times.WINDOW) * times.STAGES:
            return (
                f"noc_request {i} was due long ago (late runs of older versions had rounds there)"
            )
    return ""


def check_chip(arrays: Mapping[str, Any], tiles: Collection[int]) -> str:
    """What is wrong with the members of a chip's record that has these tiles, or ""."""
    if not BETWEEN <= int(arrays["phase"][0]) <= DELIVERY:
        return "phase is unknown"
    count = len(arrays["awake"])
    made = [t in tiles for t in range(count)]
    for name in ("awake", "due"):
        if any(arrays[name][t] not in (0, int(made[t])) for t in range(count)):
            return f"{name} names a tile that is not there"
    left, at = arrays["left"], arrays["at"]
    if any(left[t] > 0 and not (made[t] and left[t] <= NOC_REQUESTS) for t in range(count)):
        return "left counts requests that are not there"
    if not 0 <= at[0] <= count or at[1] < 0:
        return "at is outside of every queue"
    if any(arrays["begun"][t] >= 0 and not made[t] for t in range(count)):
        return "begun names a tile that is not there"
    return ""


# The records of a chip's tiles, as compiled code finds them.

_record = record_at(TILE_DTYPE)


@njit
def tile_of(chip: Any, t: Any) -> Any:
    """The record of a tile that is made."""
    return _record(np.int64(chip.tile[t]))


# Tiles that only poll are left out of rounds, which are counted when the tile is needed.
#
# After a round that a tile would do again (tensix/loop.py), with nothing of its own under
# way, only a delivery or the host can change what it does. So it has no turns until then; before a
# delivery touches it, and before Python looks, `catch_up` does what it has missed: the multiple of
# its period by counting, the rest by running: never more rounds than it has missed.


@njit
def is_skipped(chip: Any, t: Any) -> Any:
    """Whether the tile has no turns."""
    return chip.skip_from[t] >= 0


@njit
def begin(chip: Any) -> None:
    """After a round: leave out the tiles that would only repeat it from now on."""
    if chip.skipping[0] == 0:
        return
    now = chip.round[0]
    for t in range(chip.tiles[0]):
        if chip.awake[t] == 0 or is_skipped(chip, t) or chip.touched[t] == now - 1:
            continue
        s = tile_of(chip, t)
        every = period(s)
        if every == 0 or s.noc_requests[0]:
            continue
        rounds = room(s)
        if rounds > every:
            chip.skip_from[t], chip.skip_until[t] = now, now + rounds
            chip.skip_progress[t] = s.round_progress[0]


@njit
def catch_up(chip: Any, t: Any) -> Any:
    """The tile has its turns again, and stands where it would if it had had them all along.

    0, or the status with which the tile stopped on the way, also in `stopped`: a page of code that
    the engine is to translate. Calling it again goes on from there.
    """
    if not is_skipped(chip, t):
        return np.int64(0)
    s = tile_of(chip, t)
    reached = chip.round[0] + (0 if chip.phase[0] == BETWEEN else 1)
    left, status = reached - chip.skip_from[t], np.int64(0)
    if s.agent[0] == 0 and s.turn_open[0] == 0:  # else it has stopped in the middle of a round
        rounds, left = left, left % period(s)
        if rounds > left:
            skip(s, rounds - left)
    while left > 0 and (status == 0 or status == STOP_TIME):
        status = call_step(s.run_rounds[0], s, np.int64(1))
        left -= 1 if status == 0 else 0
    chip.stopped[t] = status
    if status != 0:
        chip.skip_from[t] = reached - left
        return status
    if chip.phase[0] == TILES_RUN:
        chip.begun[t] = s.clock[0] - chip.skip_progress[t]
    chip.skip_from[t] = -1
    return status


@njit
def stand(s: Any) -> None:
    """In modelled times cores of a tile that poll have no turns: they stand where they would."""
    if s.timed[0]:
        call_step(s.run_rounds[0], s, np.int64(0))


@njit
def most_progress(chip: Any) -> Any:
    """The largest progress of a tile in the round among those that are left out; 1 without."""
    most = np.int64(1)
    for t in range(chip.tiles[0]):
        if is_skipped(chip, t):
            most = max(most, chip.skip_progress[t])
    return most


def catch_up_some(chip: Any, number: Any) -> Any:
    """STEP of a chip: a tile is where it would be, before Python looks; its number + 1, or 0: all.

    Not 0: a tile has stopped on the way.
    """
    status = np.int64(0)
    for t in range(chip.tiles[0]):
        if number == 0 or number == t + 1:
            if chip.tile[t] != 0:
                stand(tile_of(chip, t))
            stopped = catch_up(chip, t)
            status = stopped if stopped != 0 else status
    return status
