"""When a NoC write takes the bytes of its source, in drawn and in modelled times."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noc_program import ATOMIC, INCREMENT, INLINE, POSTED, WRITE, hi, put, send, wait

from bhemu import Chip
from bhemu.devices import niu
from bhemu.machine import saved
from bhemu.machine.saved import Snapshot
from bhemu.riscv.assembly import A0, A1, A2, ZERO, addi, bne, li, lw, sw

SEEDS = range(50 if os.environ.get("BHEMU_LONG") else 12)
HERE, THERE = (1, 2), (3, 4)
SOURCE, TARGET, NUMBERS = 0x30000, 0x40000, 0x50000
PAGES, BYTES = 8, 256
SENT, POSTED_SENT = niu.WRITES_SENT, niu.WRITES_SENT + 1


def store(address: int, value: int) -> list[int]:
    """A store that is there before what follows."""
    return [*li(A0, address), *li(A1, value), sw(A1, A0), lw(A1, A0), addi(A1, A1, 0)]


def pause(n: int) -> list[int]:
    return [*li(A2, n), addi(A2, A2, -1), bne(A2, ZERO, -4)]


def page(i: int, after: list[int], control: int = WRITE) -> list[int]:
    """Page `i` is stored to the one source, sent, and what is `after` goes before the next one."""
    target = (TARGET + BYTES * i, hi(THERE))
    return [
        *store(SOURCE, 0x600D0 + i),
        *send(control, (SOURCE, hi(HERE)), target, BYTES, tag=3 << 10),
        *after,
    ]


def no_wait(_: int) -> list[int]:
    return pause(100)  # a plain run has sent it


def flushed(i: int) -> list[int]:
    return wait(SENT, i + 1)


def posted(i: int) -> list[int]:
    return wait(POSTED_SENT, i + 1)


def answered(i: int) -> list[int]:
    return wait(niu.ACKS, i + 1)


def not_outgoing(_: int) -> list[int]:
    return wait(niu.OUTGOING + 3, 0)


def words_left(i: int) -> list[int]:
    return wait(niu.WRITE_WORDS, (i + 1) * BYTES // 64)


WAITS = {
    "flushed": flushed, "answered": answered, "outgoing": not_outgoing, "words": words_left,
}  # fmt: skip


def chip_of(after: Any, control: int = WRITE, **options: Any) -> Chip:
    chip = Chip(**options)
    put(chip, HERE, *(page(i, after(i), control) for i in range(PAGES)))
    return chip


def pages(chip: Chip) -> list[int]:
    return [chip.tile[THERE].read32(TARGET + BYTES * i) - 0x600D0 for i in range(PAGES)]


def ended(chip: Chip) -> list[int]:
    assert chip.run().reason == "idle"
    return pages(chip)


RIGHT = list(range(PAGES))
DONE = [(THERE, TARGET + BYTES * PAGES, 1)]


def chip_that_ends(**options: Any) -> Chip:
    """The same without a wait, up to a flag behind the last page."""
    chip = Chip(**options)
    flag = [*store(NUMBERS, 1), *send(WRITE, (NUMBERS, hi(HERE)), (DONE[0][1], hi(THERE)))]
    put(chip, HERE, *(page(i, no_wait(i)) for i in range(PAGES)), wait(niu.ACKS, PAGES), flag)
    return chip


def test_a_source_that_is_reused_before_it_has_left_shows() -> None:
    assert ended(chip_of(no_wait)) == RIGHT
    seen = {seed: ended(chip_of(no_wait, late=seed)) for seed in SEEDS}
    wrong = [seed for seed, found in seen.items() if found != RIGHT]
    assert len(wrong) > len(SEEDS) // 4
    assert ended(chip_of(no_wait, late=wrong[0])) == seen[wrong[0]]


@pytest.mark.parametrize("name", WAITS)
def test_each_way_to_wait_for_it_is_right(name: str) -> None:
    for seed in SEEDS:
        assert ended(chip_of(WAITS[name], late=seed)) == RIGHT, seed


def test_posted_writes_are_as_late() -> None:
    assert ended(chip_of(no_wait, POSTED)) == RIGHT
    assert any(ended(chip_of(no_wait, POSTED, late=seed)) != RIGHT for seed in SEEDS)
    for seed in SEEDS:
        assert ended(chip_of(posted, POSTED, late=seed)) == RIGHT, seed


def test_named_requests_are_late_and_those_behind_them_on_their_noc() -> None:
    chip = chip_of(no_wait)
    chip.run()
    state = chip.tile[HERE].state
    arrived = chip.tile[THERE].state.noc_arrived
    pc = int(arrived[2, 4])  # of the third page
    assert int(state.noc_issued[0]) == PAGES
    for late, right in ((f"3:noc@{pc:#x}", False), ("3:noc@0x4", True), ("3:brisc#999999", True)):
        found = ended(chip_of(no_wait, late=late))
        assert (found == RIGHT) is right, late
        assert found[:2] == [0, 1]


def test_what_a_request_carries_itself_is_not_late() -> None:
    """An inline write and an atomic: the registers may be stored to at once."""
    register = 0xFFB40000 + 4 * 8  # of an overlay: storage
    program = [
        *send(INLINE, (register, hi(THERE)), (0, hi(HERE)), data=0x600D),
        *send(ATOMIC, (NUMBERS, hi(THERE)), (4, hi(HERE)), INCREMENT, data=5),
    ]
    for seed in SEEDS:
        chip = Chip(late=seed)
        put(chip, HERE, program)
        counter = chip.tile[HERE].state.niu_counter
        while not counter[0, niu.ATOMICS_STARTED]:
            chip.run(limit=1)
        assert counter[0, SENT] == 1 and counter[0, niu.ATOMICS_SENT] == 1
        assert not chip.tile[HERE].state.noc_source.any()


def test_the_first_byte_leaves_while_counters_say_so() -> None:
    """In the cycle in which the count of requests sent grows, bytes are taken, and not before."""
    chip = chip_of(no_wait, late="3:noc")
    state = chip.tile[HERE].state
    while not state.noc_source_next[0]:
        chip.run(limit=1)
    due = int(state.noc_source_next[0])
    assert state.niu_counter[0, niu.WRITES_STARTED] == 1
    assert state.niu_counter[0, SENT] == 0
    assert state.niu_counter[0, niu.OUTGOING + 3] == 1
    assert not state.noc_data[:4].any()
    chip.run(limit=due - chip.clock)
    assert state.niu_counter[0, SENT] == 0
    chip.run(limit=1)
    assert state.niu_counter[0, SENT] >= 1
    assert state.noc_data[:4].any()


@pytest.mark.parametrize("options", [{"late": 5}, {"late": "1:noc"}, {"timing": "model"}])
def test_a_saved_state_keeps_what_has_still_to_leave(options: Any, tmp_path: Path) -> None:
    whole = chip_that_ends(**options)
    pending, chip = 0, chip_that_ends(**options)
    while chip.run(DONE, limit=97).reason == "limit":
        whole.run(DONE, limit=97)
        pending += int(chip.tile[HERE].state.noc_source.any())
        chip.snapshot().save(tmp_path / "state.npz")
        chip = chip_that_ends(**options)
        chip.restore(Snapshot.load(tmp_path / "state.npz"))
    assert whole.run(DONE).reason == "until"
    assert pending
    assert (chip.clock, pages(chip)) == (whole.clock, pages(whole))


def test_it_can_go_back_to_before_it_leaves() -> None:
    chip = chip_that_ends(late=2)
    history = chip.keep_history(tile=HERE)
    assert chip.run(DONE).reason == "until"
    found, end = pages(chip), chip.clock
    state, kept = chip.tile[HERE].state, 0
    for moment in range(end - 100, history.first + 500, -100):
        history.goto(moment)
        kept += int(state.noc_source.any())
    assert kept
    assert chip.run(DONE).reason == "until"
    assert (chip.clock, pages(chip)) == (end, found)


def test_a_state_of_an_older_layout_has_what_it_sent() -> None:
    assert saved._SOURCES == ("noc_source", "noc_source_next", "noc_source_late")
    assert len({name for name in saved._SOURCES if name in saved.LATER}) == 3
    assert len(saved._layouts()) == len(saved._ADDED) + 1


def test_in_modelled_time_a_long_write_takes_its_flits_to_leave() -> None:
    taken = []
    for n in (64, 64 * 64):
        chip = Chip(timing="model")
        put(chip, HERE, send(WRITE, (SOURCE, hi(HERE)), (TARGET, hi(THERE)), n), wait(SENT, 1))
        chip.run()
        taken.append(chip.tile[HERE].clock)
    assert taken[1] - taken[0] == pytest.approx(63 * 1.03, abs=32)


def test_in_modelled_time_reuse_shows_and_waiting_is_right() -> None:
    assert ended(chip_of(flushed, timing="model")) == RIGHT
    assert ended(chip_of(lambda _: [], timing="model")) != RIGHT
    assert ended(chip_of(answered, timing="model")) == RIGHT
    assert np.array_equal(ended(chip_of(no_wait, timing="model")), RIGHT)
