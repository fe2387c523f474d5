"""A chip whose memory a host shares: tiles that only poll stay behind until somebody needs them."""

import random

import numpy as np
import pytest
from noc.test_skipped_rounds import POLLERS, SENDER, differences
from riscv.polling_programs import DATA, FLAGS, start

from bhemu.devices.noc_map import tile_number
from bhemu.hosts.shared import GRANULE, SharedChip, SharedChips
from bhemu.noc.grid import XY
from bhemu.riscv.assembly import A0, A1, A2, ZERO, addi, branch, code, jal, li, lw, sw
from bhemu.tensix.state import OFFSET

_BLTU = 6


def answering(nops: int) -> bytes:
    """Wait until DATA is at least 1, 2, ..., and say in FLAGS how far it came."""
    wait = [lw(A0, A1), *[addi(ZERO, ZERO, 0)] * nops]
    loop = [*wait, branch(_BLTU, A0, A2, -4 * len(wait)), sw(A2, A1, FLAGS - DATA & 0xFFF)]
    back = [addi(A2, A2, 1), jal(ZERO, -4 * (len(loop) + 1))]
    return code([*li(A1, DATA), *li(A2, 1), *loop, *back])


def chip() -> SharedChip:
    """Pollers whose loops have other lengths than their turns."""
    made = SharedChip(ub="silicon", livelock=0)
    for nops, xy in enumerate(POLLERS, start=1):
        start(made.tile[xy], {"brisc": answering(nops), "trisc0": answering(nops + 3)})
    counts = code(li(A0, 0), addi(A0, A0, 1), jal(ZERO, -4))
    start(made.tile[SENDER], {"brisc": counts})  # so that time passes
    return made


def put(made: SharedChip, xy: XY, address: int, data: bytes) -> None:
    """As libbhemu.so writes L1."""
    t = tile_number(*xy)
    if made.arena.head["behind"][t]:
        made.settle_for_host(t)
    at = OFFSET["l1"] + address
    made.arena.tile(t)[at : at + len(data)] = np.frombuffer(data, np.uint8)
    made.arena.marks[t, address // GRANULE] = made.arena.head["touched"][t] = 1


@pytest.mark.parametrize("seed", range(4))
def test_who_stays_behind_does_what_it_would(seed: int) -> None:
    made, r = [chip() for _ in range(2)], random.Random(seed)
    lazy, settled = made
    clocks = [SharedChips([one]) for one in made]
    for value in range(1, 60):
        rounds = r.randrange(100, 200)
        assert [clock.run_rounds(rounds) for clock in clocks] == [False, False]
        settled.settle()
        assert value == 1 or lazy.arena.head["behind"].any()
        assert not settled.arena.head["behind"].any()
        xy = r.choice(POLLERS)
        for one in made:
            put(one, xy, DATA, value.to_bytes(4, "little"))
        if value % 10 == 0:
            lazy.settle()
            assert differences([lazy, settled]) == []


def test_host_that_writes_many_tiles_has_them_settled_at_once() -> None:
    made = chip()
    clock = SharedChips([made])
    for _ in range(3):
        clock.run_rounds(150)
    first, second, *_ = (tile_number(*xy) for xy in POLLERS)
    behind = made.arena.head["behind"]
    assert behind[[first, second]].all()
    made.settle_for_host(first)
    assert (behind[first], behind[second]) == (0, 1)
    made.settle_for_host(second)
    assert not behind.any()
    for _ in range(3):
        clock.run_rounds(150)
    made.settle_for_host(first)
    assert (behind[first], behind[second]) == (0, 1)
