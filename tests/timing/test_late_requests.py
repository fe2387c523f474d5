"""NoC requests of late runs: what nothing orders shows, and what keeps its order does not."""

import os

import pytest
from noc_program import READ, WRITE, hi, put, send, wait

from bhemu import Chip
from bhemu.devices import niu
from bhemu.devices.niu_request import STATIC_CHANNEL
from bhemu.riscv.assembly import A0, A1, A2, ZERO, addi, bne, li, lw, sw

SEEDS = range(50 if os.environ.get("BHEMU_LONG") else 16)
HERE, THERE = (1, 2), (3, 4)
DATA, FLAG, RESULT = 0x30000, 0x40000, 0x50000
VALUE = 0x600D
ANY_CHANNEL = WRITE & ~STATIC_CHANNEL


def pause(n: int) -> list[int]:
    return [*li(A2, n), addi(A2, A2, -1), bne(A2, ZERO, -4)]


def copied(source: int) -> list[int]:
    """A word goes to RESULT."""
    return [*li(A0, source), lw(A1, A0), *li(A0, RESULT), sw(A1, A0)]


def read_by(*after: list[int], **options: object) -> int:
    """A word of another tile is read, and used after `after`."""
    chip = Chip(**options)  # type: ignore[arg-type]
    chip.tile[THERE].write32(DATA, VALUE)
    put(chip, HERE, send(READ, (DATA, hi(THERE)), (DATA, hi(HERE)), 64), *after, copied(DATA))
    assert chip.run().reason == "idle"
    return chip.tile[HERE].read32(RESULT)


def test_a_word_that_is_used_before_its_answer_shows() -> None:
    late = [read_by(pause(400), late=seed) for seed in SEEDS]
    on_time = read_by(pause(400), quantum=100), read_by(pause(400), timing="model")
    assert on_time == (VALUE, VALUE)
    assert 0 in late
    assert late == [read_by(pause(400), late=seed) for seed in SEEDS]
    assert {read_by(wait(niu.READ_ANSWERS, 1), late=seed) for seed in SEEDS} == {VALUE}


def flagged(control: int, *between: list[int], **options: object) -> int:
    """What a tile finds where a flag says that a word has been sent to it."""
    chip = Chip(**options)  # type: ignore[arg-type]
    chip.tile[HERE].write32(DATA, VALUE)
    chip.tile[HERE].write32(FLAG, 1)
    sent = [
        *send(control, (DATA, hi(HERE)), (DATA, hi(THERE)), 64),
        *(word for words in between for word in words),
        *send(control, (FLAG, hi(HERE)), (FLAG, hi(THERE)), 4),
    ]
    put(chip, HERE, sent)
    polls = [*li(A0, FLAG), *li(A2, 1), lw(A1, A0), bne(A1, A2, -4)]
    put(chip, THERE, polls, copied(DATA))
    assert chip.run().reason == "idle"
    return chip.tile[THERE].read32(RESULT)


def test_a_flag_that_overtakes_its_data_shows() -> None:
    assert flagged(ANY_CHANNEL) == flagged(ANY_CHANNEL, timing="model") == VALUE
    assert {flagged(ANY_CHANNEL, late=seed) for seed in SEEDS} == {0, VALUE}


@pytest.mark.parametrize("late", ["", ":noc"])
def test_order_that_is_kept_or_waited_for_is_right(late: str) -> None:
    """One static virtual channel; the acknowledgement before the flag."""
    for seed in SEEDS:
        assert flagged(WRITE, late=f"{seed}{late}") == VALUE, seed
        assert flagged(ANY_CHANNEL, wait(niu.ACKS, 1), late=f"{seed}{late}") == VALUE, seed


def test_requests_of_one_pc_alone_are_late() -> None:
    """The log of arrivals names the pc; seed 2 delays by up to 4,096 cycles."""
    chip = Chip(timing="model")
    put(chip, HERE, send(WRITE, (DATA, hi(HERE)), (DATA, hi(THERE)), 64), wait(niu.ACKS, 1))
    chip.run()
    pc = int(chip.tile[THERE].state.noc_arrived[0, 4])

    def ends(late: str) -> int:
        one = Chip(late=late)
        put(one, HERE, send(WRITE, (DATA, hi(HERE)), (DATA, hi(THERE)), 64), wait(niu.ACKS, 1))
        one.run()
        return one.clock

    assert ends("2:noc@0x4") <= chip.clock + 64 < ends(f"2:noc@{pc:#x}")
