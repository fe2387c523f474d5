"""Sync unit: mutexes, semaphores and their RISC-V window (SyncUnit pages, Blackhole ISA)."""

import pytest
from unit_runner import ERROR, SILICON, WARN, count, push, run, sentence, view

from bhemu.machine import sentences
from bhemu.machine.tile import Tile
from bhemu.tensix import rules, semaphores
from bhemu.tensix.state import State
from bhemu.tensix.units import sync


@pytest.mark.parametrize("index", [0, 2, 3, 4])
def test_mutex_is_acquired_and_released(index: int) -> None:
    """ATGETM, ATRELM; Blackhole has four mutexes (ATGETM, Blackhole ISA)."""
    s = State()
    assert run(s, "ATGETM", 1, mutex_index=index) == rules.DONE
    assert s.mutex.tolist() == [2 if i == index else 0 for i in range(8)]
    assert run(s, "ATRELM", 1, mutex_index=index) == rules.DONE
    assert not s.mutex.any()


def test_mutex_held_by_another_thread_blocks_without_effect() -> None:
    s = State()
    run(s, "ATGETM", 0, mutex_index=2)
    before = s.buffer.copy()
    assert run(s, "ATGETM", 2, mutex_index=2) == sync.WAIT_MUTEX > 0
    assert (s.buffer == before).all()
    assert run(s, "ATGETM", 2, mutex_index=3) == rules.DONE  # another mutex is free
    run(s, "ATRELM", 0, mutex_index=2)
    assert run(s, "ATGETM", 2, mutex_index=2) == rules.DONE
    assert s.mutex[2] == 3


@pytest.mark.parametrize("mnemonic", ["ATGETM", "ATRELM"])
@pytest.mark.parametrize("index", [1, 5, 7, 8, 16, 0xFFFF])
def test_invalid_mutex_is_undefined_and_waits_for_ever_on_silicon(
    mnemonic: str, index: int
) -> None:
    """ "Invalid index causes infinite wait" (ATGETM, Blackhole ISA)."""
    s = State()
    assert run(s, mnemonic, mutex_index=index) == sync.MUTEX_INDEX
    assert sentence(s, sync.MUTEX_INDEX).startswith(f"mutex_index {index} does not exist")
    s.ub_mode[0] = SILICON
    for _ in range(3):
        blocked = run(s, mnemonic, mutex_index=index)
        assert blocked == sync.WAIT_NO_MUTEX > 0
        s.gate_blocked[0] = blocked
    assert count(s, sync.MUTEX_INDEX) == 1  # retries are the same violation
    assert not s.mutex.any()


def test_acquiring_twice() -> None:
    """The holder keeps the mutex (ATGETM, Blackhole ISA); the golden model stops."""
    s = State()
    run(s, "ATGETM", 2, mutex_index=4)
    assert run(s, "ATGETM", 2, mutex_index=4) == sync.MUTEX_TWICE
    assert sentence(s, sync.MUTEX_TWICE).startswith("ATGETM of mutex 4 by thread 2")
    s.ub_mode[0] = SILICON
    assert run(s, "ATGETM", 2, mutex_index=4) == rules.DONE
    assert s.mutex[4] == 3
    assert count(s, sync.MUTEX_TWICE) == 1


@pytest.mark.parametrize("owner", [0, 1])
def test_release_by_a_thread_that_does_not_hold_it(owner: int) -> None:
    """The instruction completes and changes nothing (ATRELM, ISA); the golden model stops."""
    s = State()
    s.mutex[0] = owner
    assert run(s, "ATRELM", 1, mutex_index=0) == sync.MUTEX_OWNER
    s.ub_mode[0] = WARN
    assert run(s, "ATRELM", 1, mutex_index=0) == rules.DONE
    assert s.mutex[0] == owner


def waiting(s: State, t: int, index: int) -> None:
    """Thread `t` stands at its gate with an ATGETM that was refused."""
    s.gate_word[t], s.gate_full[t] = 0xA0000000 | index, 1
    s.gate_blocked[t] = run(s, "ATGETM", t, mutex_index=index)
    assert s.gate_blocked[t] == sync.WAIT_MUTEX


@pytest.mark.parametrize("owner", range(3))
@pytest.mark.parametrize("index", [0, 4])
def test_release_with_two_waiters_chooses_the_next_in_order(owner: int, index: int) -> None:
    """ "thread (i + 1) % 3 is always chosen to be the acquirer" (ATRELM, ISA)."""
    s = State()
    chosen, other = (owner + 1) % 3, (owner + 2) % 3
    run(s, "ATGETM", owner, mutex_index=index)
    waiting(s, other, index)
    waiting(s, chosen, index)
    assert run(s, "ATRELM", owner, mutex_index=index) == rules.DONE
    assert s.mutex[index] == 0
    for t in (other, owner):
        assert run(s, "ATGETM", t, mutex_index=index) == sync.WAIT_MUTEX
    assert run(s, "ATGETM", chosen, mutex_index=index) == rules.DONE
    assert s.mutex[index] == chosen + 1
    assert not s.mutex_next.any()


@pytest.mark.parametrize("case", ["one", "another mutex", "held by a latch"])
def test_release_with_fewer_than_two_waiters_leaves_the_mutex_to_any(case: str) -> None:
    """The ISA names an order only when both other threads are trying to acquire that mutex."""
    s = State()
    for t, index in ((0, 2), (1, 3)):
        assert run(s, "ATGETM", t, mutex_index=index) == rules.DONE
    waiting(s, 2, 2)
    if case == "another mutex":
        s.mutex[3] = 1
        waiting(s, 1, 3)
    elif case == "held by a latch":
        s.gate_word[1], s.gate_full[1], s.gate_blocked[1] = 0xA0000002, 1, 12345
    assert run(s, "ATRELM", 0, mutex_index=2) == rules.DONE
    assert not s.mutex_next.any()
    assert run(s, "ATGETM", 1, mutex_index=2) == rules.DONE


def test_three_threads_take_turns_at_a_mutex() -> None:
    """All three compete for mutex 2; a store notes each owner: cyclic order (ATRELM, ISA)."""
    tile = Tile()
    s = tile.state
    s.l1[0x4000:0x4400] = 0xFF
    s.gpr[:, 1] = 0x4000 // 16
    s.gpr[:, 4] = [10, 11, 12]
    note = (
        ("ATGETM", {"mutex_index": 2}),
        ("ATINCGET", {"addr_reg_index": 1, "data_reg_index": 5, "wrap_val": 31}),
        ("ATRELM", {"mutex_index": 2}),
    )
    tile.write32(0x4000, 0)
    s.mutex[2] = 3
    for t in range(3):
        if t == 2:
            push(tile, 2, "ATRELM", mutex_index=2)
        for mnemonic, fields in note:
            s.gpr[t, 5] = 1
            push(tile, t, mnemonic, **fields)
    assert tile.run().reason == "idle"
    assert tile.read32(0x4000) == 3
    assert s.gpr[:, 5].tolist() == [0, 1, 2]  # T2 released: T0 first, then T1 (its next), then T2


def test_seminit_sets_all_selected() -> None:
    s = State()
    s.sem[:], s.sem_max[:] = 9, 10
    assert run(s, "SEMINIT", sem_sel=0b10000101, init_value=3, max_value=15) == rules.DONE
    assert s.sem.tolist() == [3, 9, 3, 9, 9, 9, 9, 3]
    assert s.sem_max.tolist() == [15, 10, 15, 10, 10, 10, 10, 15]


def test_seminit_above_its_maximum() -> None:
    s = State()
    assert run(s, "SEMINIT", sem_sel=1, init_value=4, max_value=3) == sync.SEM_INIT
    assert not s.sem.any()
    assert not s.sem_max.any()
    assert run(s, "SEMINIT", sem_sel=2, init_value=3, max_value=3) == rules.DONE
    s.ub_mode[0] = SILICON
    assert run(s, "SEMINIT", sem_sel=1, init_value=4, max_value=3) == rules.DONE
    assert (s.sem[0], s.sem_max[0]) == (4, 3)


def test_post_and_get_change_the_selected_semaphores_only() -> None:
    s = State()
    s.sem[:], s.sem_max[:] = 2, 15
    assert run(s, "SEMPOST", sem_sel=0b00010010) == rules.DONE
    assert s.sem.tolist() == [2, 3, 2, 2, 3, 2, 2, 2]
    assert run(s, "SEMGET", sem_sel=0b10000010) == rules.DONE
    assert s.sem.tolist() == [2, 2, 2, 2, 3, 2, 2, 1]
    assert run(s, "SEMPOST", sem_sel=0) == run(s, "SEMGET", sem_sel=0) == rules.DONE
    assert s.sem.tolist() == [2, 2, 2, 2, 3, 2, 2, 1]


@pytest.mark.parametrize(
    ("value", "maximum", "after"), [(3, 3, 4), (5, 3, 6), (0, 0, 1), (15, 15, 15)]
)
def test_post_at_the_maximum(value: int, maximum: int, after: int) -> None:
    """Silicon stops at 15, whatever the maximum (SEMPOST, Blackhole ISA)."""
    s = State()
    s.sem[:] = s.sem_max[:] = 1
    s.sem[0] = 0
    s.sem[5], s.sem_max[5] = value, maximum
    assert run(s, "SEMPOST", sem_sel=0b100001) == semaphores.POST_FULL
    assert s.sem[0] == 0
    assert s.sem[5] == value
    text = f"semaphore 5 is posted although its value {value} is not below {maximum}"
    assert sentence(s, semaphores.POST_FULL) == text
    s.ub_mode[0] = SILICON
    assert run(s, "SEMPOST", sem_sel=0b100001) == rules.DONE
    assert s.sem[0] == 1
    assert s.sem[5] == after
    assert count(s, semaphores.POST_FULL) == 1


def test_the_hint_for_an_empty_semaphore_holds_where_another_one_was_waited_for() -> None:
    """That there was no wait is not known: it is to be the same semaphore."""
    hint = sentences.RULES[semaphores.GET_EMPTY].hint
    assert hint == (
        "take only from the semaphore that SEMWAIT wait_sem_cond=1, or a poll, has seen above 0"
    )


def test_get_at_zero() -> None:
    s = State()
    s.sem[0] = 2
    assert run(s, "SEMGET", sem_sel=0b1001) == semaphores.GET_EMPTY
    assert s.sem[0] == 2
    assert sentence(s, semaphores.GET_EMPTY).startswith("semaphore 3 ")
    s.ub_mode[0] = SILICON
    assert run(s, "SEMGET", sem_sel=0b1001) == rules.DONE
    assert s.sem.tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("mode", [ERROR, SILICON])
def test_semwait_without_a_condition_is_undefined(mode: int) -> None:
    """SEMWAIT with ConditionMask 0 (SEMWAIT, Blackhole ISA): no text says what happens."""
    s = State()
    s.ub_mode[0] = mode
    assert run(s, "SEMWAIT", wait_sem_cond=0, sem_sel=1) == sync.SEM_CONDITION
    assert s.latch[0] == 0


@pytest.mark.parametrize(
    ("value", "data", "after"), [(0, 0, 1), (14, 0, 15), (1, 1, 0), (15, 1, 14)]
)
def test_window_store(value: int, data: int, after: int) -> None:
    """A store of 0 posts, of 1 gets, whatever the maximum (SyncUnit, Blackhole ISA)."""
    s = State()
    s.sem[6] = value
    assert semaphores.store(view(s), 6, data) == rules.DONE
    assert s.sem[6] == after


@pytest.mark.parametrize(
    ("value", "data", "rule", "after"),
    [
        (15, 0, semaphores.POST_FULL, 15),
        (0, 1, semaphores.GET_EMPTY, 0),
        (4, 2, semaphores.STORE_VALUE, 5),
        (4, 0xFFFFFFFF, semaphores.STORE_VALUE, 3),
        (0, 3, semaphores.STORE_VALUE, 0),
    ],
)
def test_window_store_beyond_its_rules(value: int, data: int, rule: int, after: int) -> None:
    """Silicon tests bit 0 and saturates; the golden model refuses other values and both ends."""
    s = State()
    s.sem[7] = value
    assert semaphores.store(view(s), 7, data) == rule
    assert s.sem[7] == value
    s.ub_mode[0] = SILICON
    assert semaphores.store(view(s), 7, data) == rules.DONE
    assert s.sem[7] == after
    assert count(s, rule) == 1
