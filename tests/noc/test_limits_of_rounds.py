"""A limit, wherever it cuts a round of a chip, changes nothing of what follows."""

import random

import pytest
from fuzz.campaign import LONG
from noc.test_skipped_rounds import POLLERS, chips, differences

from bhemu import Chip
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, ZERO, addi, code, jal, li

QUANTUM = 100


def changed(made: list[Chip]) -> list[str]:
    """What of two chips differs, but for `quiet`, which every run counts anew."""
    return [name for name in differences(made) if not name.endswith("quiet")]


def finish(chip: Chip, rounds: int) -> None:
    """Run to the end of the round that has this number."""
    while (left := rounds - int(chip.network.state.round[0])) > 0:
        chip.run(rounds=left)


def two_counters() -> Chip:
    """Two cores that count for ever: each turn ends with the quantum."""
    chip = Chip(quantum=QUANTUM)
    for xy in POLLERS[:2]:
        tile = chip.tile[xy]
        tile.write(0, code(li(A0, 0), addi(A0, A0, 1), jal(ZERO, -4)))
        tile.core["brisc"].release()
    return chip


@pytest.mark.parametrize("cut", [1, QUANTUM - 1, QUANTUM, QUANTUM + 1, 5 * QUANTUM])
def test_a_limit_at_the_end_of_a_turn_gives_no_other_turn(cut: int) -> None:
    made = [two_counters(), two_counters()]
    made[0].run(limit=cut)
    for chip in made:
        finish(chip, 8)
    assert changed(made) == []


@pytest.mark.parametrize("cut", [QUANTUM - 1, QUANTUM, 5 * QUANTUM])
def test_going_back_to_the_end_of_a_turn_gives_no_other_turn(cut: int) -> None:
    made = [two_counters(), two_counters()]
    history = made[0].tile[POLLERS[0]].keep_history()
    made[0].run(limit=8 * QUANTUM)
    history.goto(cut)
    assert made[0].tile[POLLERS[0]].clock == cut
    for chip in made:
        finish(chip, 8)
    assert changed(made) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("quantum", [7, 64, 1000])
def test_random_limits(engine: str, quantum: int) -> None:
    for seed in range(40 if LONG else 4):
        r = random.Random(1000 * quantum + seed)
        made = chips(seed, engine=engine, quantum=quantum)
        for _ in range(20):
            made[0].run(limit=r.choice((1, 7, 64, 333, 1000, r.randrange(1, 5000))))
        rounds = int(made[0].network.state.round[0]) + 2
        for chip in made:
            finish(chip, rounds)
        assert changed(made) == [], f"quantum {quantum}, seed {seed}"
