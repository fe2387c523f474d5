"""A limit that falls on the end of a turn: the run goes on as if it had not stopped."""

import pytest

from bhemu.machine.machine import Chip
from bhemu.riscv.assembly import ZERO, addi, code, jal, li, sw

QUANTUM = 100
WORD = 0x20000


def two_counters(**options: object) -> Chip:
    """Two tiles that count in L1 for ever, one of them by a longer loop."""
    chip = Chip(quantum=QUANTUM, livelock=0, **options)
    for xy, more in (((1, 2), 0), ((2, 2), 3)):
        loop = [addi(10, 10, 1), *[addi(12, 12, 1)] * more, sw(10, 11)]
        tile = chip.tile[xy]
        tile.write(0, code(li(10, 0), li(11, WORD), *loop, jal(ZERO, -4 * len(loop))))
        tile.core["brisc"].release()
    return chip


def state(chip: Chip) -> tuple[object, ...]:
    """Round, clock, and what both tiles have counted."""
    counts = [chip.tile[xy].read32(WORD) for xy in ((1, 2), (2, 2))]
    return int(chip.network.state.round[0]), chip.clock, *counts


@pytest.mark.parametrize("limit", [5 * QUANTUM, 5 * QUANTUM - 1, 5 * QUANTUM + 1])
def test_a_limit_at_the_end_of_a_turn_costs_no_turn(limit: int) -> None:
    plain, stopped = two_counters(), two_counters()
    plain.run(limit=10 * QUANTUM)
    assert stopped.run(limit=limit).clock == limit
    stopped.run(limit=10 * QUANTUM - limit)
    assert state(stopped) == state(plain)
    assert state(plain)[0] == 10


def test_going_back_to_the_end_of_a_turn_costs_no_turn() -> None:
    plain, stepped = two_counters(), two_counters()
    plain.run(limit=10 * QUANTUM)
    history = stepped.tile[1, 2].keep_history()
    stepped.run(limit=8 * QUANTUM)
    history.goto(5 * QUANTUM)
    stepped.run(limit=10 * QUANTUM - stepped.clock)
    assert state(stepped) == state(plain)
