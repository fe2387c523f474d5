"""Planted faults on a chip: each ends with an error or a report that names tile, core and place."""

from typing import Any

import noc_program as p
import pytest

from bhemu.errors import BhemuError, NoProgress, Undefined
from bhemu.machine.machine import Chip
from bhemu.riscv.assembly import A0, A1, A2, bne, li, lw

OWN, OTHER, THIRD = (1, 2), (3, 4), (5, 6)
HOME, AWAY = p.hi(OWN), p.hi(OTHER)
L1, FLAG = 0x20000, 0x400


def poll(address: int, value: int) -> list[int]:
    """Wait until a word of L1 has a value."""
    return [*li(A1, address), *li(A2, value), lw(A0, A1), bne(A0, A2, -4)]


def hang(chip: Chip) -> NoProgress:
    with pytest.raises(NoProgress) as caught:
        chip.run(timeout_s=60)
    return caught.value


def lines(error: BhemuError) -> str:
    return str(error)


@pytest.mark.usefixtures("both_engines")
def test_a_barrier_that_waits_for_more_acknowledgements_than_receivers() -> None:
    chip = Chip(livelock=50)
    box = p.box((1, 2), (3, 3))  # six tiles, the sender is one of them
    send = p.send(p.WRITE | p.MULTICAST, (L1, HOME), (L1, box), 16)
    p.put(chip, OWN, send, p.wait(1, 6))
    text = lines(hang(chip))
    for part in (
        *("LIVELOCK", "(1,2) brisc", "NIU_MST_WR_ACK_RECEIVED of NoC 0"),
        "5 acknowledgements have come for 1 acknowledged writes",
    ):
        assert part in text, text


def test_a_semaphore_that_nobody_increments_names_who_did_before() -> None:
    chip = Chip(livelock=50)
    p.put(chip, OTHER, poll(FLAG, 2))
    p.put(chip, OWN, p.send(p.ATOMIC, (FLAG, AWAY), (4, HOME), p.INCREMENT, data=1))
    text = lines(hang(chip))
    for part in (
        *("(3,4) brisc waits for L1 word 0x400", "which is 0x1"),
        *("last written over the NoC in round 0 by tile (1,2)", "brisc pc"),
        *(
            "(1,2) brisc (it has written there over the NoC once, last in round 0 at",
            "which has parked",
        ),
    ):
        assert part in text, text


def test_two_tiles_that_wait_for_each_other() -> None:
    chip = Chip(livelock=50)
    p.put(chip, OWN, poll(FLAG, 1))
    p.put(chip, OTHER, poll(FLAG, 1))
    error = hang(chip)
    assert "(1,2) brisc, (3,4) brisc" in error.message
    assert "nothing was ever written there over the NoC" in lines(error)


def test_a_tile_that_is_still_at_work_is_no_hang() -> None:
    """(3,4) polls for long while (1,2) counts; then the word comes."""
    chip = Chip(livelock=5, quantum=100)
    p.put(chip, OTHER, poll(FLAG, 7))
    count = [*li(A0, 0), *li(A2, 30_000), 0x00150513, bne(A0, A2, -4)]  # addi a0, a0, 1
    chip.write32(*OWN, L1, 7)
    p.put(chip, OWN, count, p.send(p.WRITE, (L1, HOME), (FLAG, AWAY), 4))
    assert chip.run(timeout_s=60).reason == "idle"


def test_a_linked_request_that_nothing_closes() -> None:
    chip = Chip()
    p.put(chip, OWN, p.send(p.WRITE | p.LINKED, (L1, HOME), (L1, AWAY), 16))
    with pytest.raises(Undefined) as caught:
        chip.run()
    assert caught.value.rule == "NOC-LINKED-OPEN"
    for part in ("tile (1,2)", "brisc pc", "(3,4)"):
        assert part in caught.value.message


def test_a_deadlock_of_one_tile_is_one_of_the_chip() -> None:
    """trisc1 waits for a mailbox message that brisc never sends."""
    chip = Chip()
    chip.tile[THIRD].core["trisc1"].set_reset_pc(0x10000)
    from bhemu.riscv.assembly import PARK, code

    chip.write(*THIRD, 0x10000, code(li(A1, 0xFFEC0000), lw(A0, A1), PARK))
    chip.tile[THIRD].core["trisc1"].release()
    text = lines(hang(chip))
    assert "DEADLOCK" in text
    assert "trisc1 waits for a mailbox message from brisc" in text and "tile (5,6) trisc1" in text


def test_without_livelock_a_polling_chip_runs_to_its_limit() -> None:
    chip = Chip(livelock=0)
    p.put(chip, OWN, poll(FLAG, 1))
    assert chip.run(limit=500_000).reason == "limit"
    stop: Any = chip.run(rounds=3)
    assert (stop.reason, chip.error) == ("rounds", None)


def read_without_barrier(delivery: str, seed: int) -> Chip:
    """(1,2) reads 4 bytes and passes them on at once, without waiting for the answer."""
    chip = Chip(delivery=delivery, seed=seed, quantum=20)
    chip.write32(*OTHER, L1, 0x1234)
    read = p.send(p.READ, (L1, AWAY), (FLAG, HOME), 4)
    p.put(chip, OWN, read, p.send(p.WRITE, (FLAG, HOME), (FLAG, p.hi(THIRD)), 4))
    chip.run()
    return chip


def test_a_missing_barrier_shows_when_delivery_is_late() -> None:
    assert read_without_barrier("round", 0).read32(*THIRD, FLAG) == 0x1234
    seen = {read_without_barrier("late", seed).read32(*THIRD, FLAG) for seed in range(20)}
    assert 0 in seen
