"""Random contents of an initiator's registers: refused by a rule, or done to bytes they name."""

import os
import random
from typing import Any

import noc_program as p
import numpy as np

from bhemu.errors import BhemuError, InputError
from bhemu.machine.machine import Chip
from bhemu.memmap import L1_SIZE
from bhemu.noc.grid import XY
from bhemu.tensix.state import POINTERS

TILES: tuple[XY, ...] = ((1, 2), (2, 2), (1, 3))
COUNT = 1_000_000 if os.environ.get("BHEMU_LONG") else 400
WHERE = [p.hi(xy) for xy in (*TILES, (17, 12), (18, 23), (19, 24), (8, 0), (20, 25), (1, 1))]
WHERE += [p.hi((30, 30)), p.hi((8, 3)), 0xFFFFFFFF, p.box((1, 2), (2, 3)), p.box((2, 3), (1, 2))]
LOW = (0, 4, 15, 64, 0x20000, 0x17FFF0, 0x17FFFF, 0x180000, 0xFFB48020, 0xFEFFFFC0, 0xFFFFFFFF)
MIDDLE = (0, 0, 0, 0, 1, 0x10000000, 0x7FFFFFFF, 0xFFFFFFFF)
LENGTHS = (0, 1, 4, 15, 16, 64, 4096, 16384, 16385, 0xFFFFFFFF, p.INCREMENT, 0x3FFC, 0x4000)
CONTROLS = (0x90, 0x2090, 0x92, 0x82, 0x9A, 0x8A, 0x91, 0x81, 0x96, 0x81B2, 0x81B1, 0x93, 0x81BA)
KEPT = (
    "local",
    "cfg",
    "thread_cfg",
    "gpr",
    "sem",
    "src",
    "dst",
    "lreg",
    "fifo",
    "mailbox",
    "pcbuf",
)
KEPT += ("debug", "regs", "pc", "retired", "core_state", "csr", "mop_cfg", "window", "window_at")
KEPT += ("breakpoint", "log", "pack_tmp", "unpack_tmp", "inert", "tdma_param", "stall", "wakes")
KEPT += tuple(name for name in POINTERS if name != "window_entry")  # filled on first use
"""Members that no request changes."""


def value(dice: random.Random, known: tuple[int, ...] | list[int]) -> int:
    """One of the known values, near one, or anything."""
    kind = dice.random()
    if kind < 0.75:
        return dice.choice(known)
    near = dice.choice(known) + dice.randrange(-64, 64)
    return (near if kind < 0.95 else dice.getrandbits(32)) & 0xFFFFFFFF


POOLS = {p.TARG: LOW, p.RET: LOW, p.TARG + 4: MIDDLE, p.RET + 4: MIDDLE, p.LEN: LENGTHS}
POOLS |= {p.TARG + 8: WHERE, p.RET + 8: WHERE, p.CTRL: CONTROLS}


def registers(dice: random.Random) -> dict[int, int]:
    """Contents of an initiator: a request that is all right, with up to two registers changed."""
    control, at = dice.choice(CONTROLS), 64 * dice.randrange(0x5000) + dice.randrange(64)
    data = control & 2 and not control & 8  # a write of bytes of its own: RET is the target
    remote, home = (p.RET, p.TARG) if data else (p.TARG, p.RET)
    where = dice.choice(WHERE[-2:] if control & 0x20 else WHERE[:9])
    found = {remote: at, home: 64 * dice.randrange(0x5000) + (at & 63)}
    found |= {remote + 4: 1 << 28 if where == WHERE[5] else 0, home + 4: 0}
    found |= {remote + 8: where, home + 8: WHERE[0], p.CTRL: control}
    if control & 8:
        found[remote] = 0xFFB40020 + 0x1000 * dice.randrange(64)
    n = p.INCREMENT if control & 1 else dice.choice((1, 4, 64, 100, 4096, 16384))
    found |= {p.LEN: n, p.LEN + 4: 0, p.DATA: dice.getrandbits(16) << 6}
    found[p.TAG] = dice.getrandbits(4) << 10
    for _ in range(dice.choice((0, 0, 1, 2))):
        at = dice.choice(list(POOLS))
        found[at] = value(dice, POOLS[at])
    return found


def ranges(found: dict[int, int]) -> list[tuple[int, int]]:
    """Bytes of L1, of any tile, that the request may change."""
    n = found[p.LEN] if found[p.LEN] <= 16384 else 64
    n = max(n, 64)
    return [(found[at] & ~15, found[at] + n) for at in (p.TARG, p.RET)]


def kept(tile: Any) -> dict[str, Any]:
    """The members that no request changes."""
    return {name: getattr(tile.state, name).copy() for name in KEPT}


class Watched:
    """A chip whose tiles hold noise, and what no request so far had to change."""

    def __init__(self) -> None:
        self.chip = Chip()
        self.noise = np.random.default_rng(1).integers(0, 256, L1_SIZE, np.uint8)
        for xy in TILES:
            self.chip.write(*xy, 0, self.noise.data)
        self.state = self.chip.tile[TILES[0]].state
        self.before = {xy: kept(self.chip.tile[xy]) for xy in TILES}
        self.sent: list[dict[int, int]] = []

    def send(self, noc: int, i: int, found: dict[int, int]) -> bool:
        """Whether the request was carried out; BhemuError where its target refuses it."""
        self.sent.append(found)
        for at, word in found.items():
            self.state.niu_command[noc, i, at >> 2] = word
        try:
            self.chip.write32(*TILES[0], p.NIU[noc] + 0x800 * i + p.CMD, 1)
            self.chip.run(rounds=1)
        except InputError:
            assert self.state.noc_requests[0] == 0
            return False
        finally:
            self.state.niu_linked[:] = 0
        return True

    def check(self) -> None:
        """Nothing but what the requests since the last check name has changed."""
        for xy in TILES:
            l1 = self.chip.tile[xy].l1
            changed = np.flatnonzero(l1 != self.noise)
            for low, high in (part for found in self.sent for part in ranges(found)):
                changed = changed[(changed < low) | (changed >= high)]
            assert changed.size == 0, (xy, changed[:4], self.sent)
            l1[:] = self.noise
            now = kept(self.chip.tile[xy])
            for name, was in self.before[xy].items():
                assert np.array_equal(now[name], was), (xy, name, self.sent)
        self.sent.clear()


def test_a_request_is_refused_or_changes_what_it_names() -> None:
    """Looked at after every request in a short run, after every 20 in a long one."""
    dice, watched = random.Random(1), Watched()
    together, done = (20 if COUNT > 1000 else 1), 0
    for number in range(COUNT):
        try:
            done += watched.send(dice.randrange(2), dice.randrange(4), registers(dice))
        except BhemuError:  # the target refuses it
            watched.check()
            watched = Watched()
        if number % together == 0:
            watched.check()
    watched.check()
    assert done > COUNT // 4
