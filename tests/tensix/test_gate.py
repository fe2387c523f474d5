"""The wait gate: what a latched STALLWAIT or SEMWAIT holds, and until when (Blackhole ISA)."""

import random

import pytest
from unit_runner import run, view

from bhemu.tensix import rules, thread, units
from bhemu.tensix.insn import instructions
from bhemu.tensix.state import State

assert units.MODULES  # importing the units declares all instructions

B0, B1, B2, B3, B4, B5, B6, B7, B8 = (1 << i for i in range(9))
ALL = 0x1FF

# Block bits that hold an instruction (block mask table of STALLWAIT, Blackhole ISA).
HELD_BY = {
    "ADDDMAREG": B0 | B5,
    "STOREREG": B0 | B5,
    "SETADCXX": B0,
    "RSTDMA": B0,
    "XMOV": B0 | B4,
    "PACR": B0 | B2,
    "UNPACR": B0 | B3,
    "UNPACR_NOP": B0 | B3,
    "ATGETM": B1,
    "SEMPOST": B1,
    "MVMUL": B6,
    "SETRWC": B6,
    "CFGSHIFTMASK": B7,
    "SETC16": B7,
    "SFPMAD": B8,
    "SFPLOADMACRO": B8,
    "STALLWAIT": ALL,
    "SEMWAIT": ALL,
    "STREAMWAIT": ALL,
    "MOP": 0,
    "REPLAY": 0,
}


def opcode(mnemonic: str) -> int:
    return next(c.opcode for c in instructions().values() if c.name == mnemonic)


def fresh() -> State:
    s = State()
    for cls in instructions().values():
        s.stall[cls.opcode] = cls.stall_mask
    return s


def hold(s: State, mnemonic: str, t: int = 0) -> int:
    return int(thread.hold(view(s), t, opcode(mnemonic)))


def test_without_a_latch_nothing_is_held() -> None:
    s = fresh()
    assert {hold(s, name) for name in HELD_BY} == {0}


@pytest.mark.parametrize("block", [1 << i for i in range(9)])
def test_each_block_bit_holds_its_class(block: int) -> None:
    s = fresh()
    assert run(s, "STALLWAIT", wait_res=1 << 7, stall_res=block) == rules.DONE
    for name, held_by in HELD_BY.items():
        assert (hold(s, name) == thread.WAIT_SRCA_VALID) == bool(held_by & block), name
    assert hold(s, "NOP") == 0


def test_nop_is_held_by_all_nine_bits_only() -> None:
    s = fresh()
    run(s, "STALLWAIT", wait_res=1 << 7, stall_res=ALL)
    assert hold(s, "NOP") == thread.WAIT_SRCA_VALID
    s = fresh()
    run(s, "STALLWAIT", wait_res=1 << 7, stall_res=ALL & ~B4)
    assert hold(s, "NOP") == 0


def test_several_block_bits() -> None:
    s = fresh()
    run(s, "STALLWAIT", wait_res=1 << 8, stall_res=B2 | B7)
    assert hold(s, "PACR") == hold(s, "WRCFG") == thread.WAIT_SRCB_VALID
    assert hold(s, "UNPACR") == hold(s, "MVMUL") == 0


def test_empty_block_mask_means_the_matrix_unit() -> None:
    """BlockMask 0 stands for B6 (STALLWAIT, SEMWAIT)."""
    s = fresh()
    run(s, "STALLWAIT", wait_res=1 << 7, stall_res=0)
    run(s, "SEMWAIT", 1, wait_sem_cond=1, sem_sel=1, stall_res=0)
    for t, number in ((0, thread.WAIT_SRCA_VALID), (1, thread.WAIT_SEM_ZERO)):
        assert hold(s, "MVMUL", t) == number
        assert hold(s, "PACR", t) == hold(s, "SFPMAD", t) == hold(s, "SEMGET", t) == 0


@pytest.mark.parametrize("bit", [0, 1, 2, 3, 4, 9, 10, 11, 12])
def test_conditions_about_busy_units_are_never_true(bit: int) -> None:
    """C0-C4 and C9-C12: an instruction is complete when it leaves the gate."""
    s = fresh()
    s.src_valid[:] = 1
    run(s, "STALLWAIT", wait_res=1 << bit, stall_res=ALL)
    run(s, "STALLWAIT", 1, wait_res=0, stall_res=ALL)  # stands for C0-C3
    assert not s.latch.any()
    assert hold(s, "NOP") == hold(s, "SEMPOST", 1) == 0


@pytest.mark.parametrize(
    ("bit", "number", "source", "member", "waits_while"),
    [
        (5, thread.WAIT_SRCA_FREE, 0, "unpack_bank", 1),
        (6, thread.WAIT_SRCB_FREE, 1, "unpack_bank", 1),
        (7, thread.WAIT_SRCA_VALID, 0, "matrix_bank", 0),
        (8, thread.WAIT_SRCB_VALID, 1, "matrix_bank", 0),
    ],
)
@pytest.mark.parametrize("bank", [0, 1])
def test_bank_conditions(
    bit: int, number: int, source: int, member: str, waits_while: int, bank: int
) -> None:
    """C5-C8 look at one bank of one source: the unpacker's or the matrix unit's."""
    s = fresh()
    getattr(s, member)[source] = bank
    s.src_valid[:] = 1 - waits_while  # every other bank says go on
    s.src_valid[source, bank] = waits_while
    run(s, "STALLWAIT", wait_res=1 << bit, stall_res=B8)
    assert s.latch[0] == thread.STALL
    assert hold(s, "SFPMAD") == hold(s, "SFPMAD") == number
    s.src_valid[source, bank] = 1 - waits_while
    assert hold(s, "SFPMAD") == 0
    assert s.latch[0] == thread.NONE


def test_all_conditions_must_be_false_at_the_same_time() -> None:
    s = fresh()
    run(s, "STALLWAIT", wait_res=1 << 7 | 1 << 8, stall_res=B6)
    assert hold(s, "MVMUL") == thread.WAIT_SRCA_VALID
    s.src_valid[0, 0] = 1
    assert hold(s, "MVMUL") == thread.WAIT_SRCB_VALID
    s.src_valid[0, 0], s.src_valid[1, 0] = 0, 1
    assert hold(s, "MVMUL") == thread.WAIT_SRCA_VALID
    s.src_valid[0, 0] = 1
    assert hold(s, "MVMUL") == 0


def test_a_forgotten_latch_does_not_come_back() -> None:
    s = fresh()
    run(s, "SEMWAIT", wait_sem_cond=1, sem_sel=4, stall_res=B1)
    s.sem[2] = 1
    assert hold(s, "SFPMAD") == 0  # not held, and the conditions are met: forgotten here
    s.sem[2] = 0
    assert hold(s, "SEMGET") == 0
    assert not s.latch_block[0]
    assert not s.latch_cond[0]
    assert not s.latch_sem[0]


def test_a_word_of_another_class_passes_and_the_latch_stays() -> None:
    s = fresh()
    run(s, "SEMWAIT", wait_sem_cond=1, sem_sel=4, stall_res=B1)
    assert hold(s, "SFPMAD") == 0
    assert hold(s, "SEMGET") == thread.WAIT_SEM_ZERO
    assert s.latch[0] == thread.SEMAPHORE


def test_semwait_while_zero_looks_at_any_selected() -> None:
    """C0: any selected semaphore has value 0 (SEMWAIT, Blackhole ISA)."""
    s = fresh()
    s.sem[1] = 1
    run(s, "SEMWAIT", wait_sem_cond=1, sem_sel=0b110, stall_res=B1)
    assert hold(s, "SEMGET") == thread.WAIT_SEM_ZERO
    s.sem[2] = 1  # semaphore 0 stays 0 but is not selected
    assert hold(s, "SEMGET") == 0


def test_semwait_while_full_looks_at_any_selected() -> None:
    """C1: any selected semaphore has Value >= Max (SEMWAIT, Blackhole ISA)."""
    s = fresh()
    s.sem_max[3], s.sem_max[7] = 2, 5
    s.sem[3], s.sem[7] = 1, 6
    run(s, "SEMWAIT", wait_sem_cond=2, sem_sel=0x88, stall_res=B1)
    for value in (6, 5):
        s.sem[7] = value
        assert hold(s, "SEMPOST") == thread.WAIT_SEM_FULL
    s.sem[7] = 4
    assert hold(s, "SEMPOST") == 0


def test_semwait_that_is_satisfied_leaves_no_latch() -> None:
    s = fresh()
    s.sem[0], s.sem_max[0] = 1, 2
    run(s, "SEMWAIT", wait_sem_cond=3, sem_sel=1, stall_res=ALL)
    run(s, "SEMWAIT", 1, wait_sem_cond=3, sem_sel=0, stall_res=ALL)  # no semaphore, no wait
    assert not s.latch.any()


@pytest.mark.parametrize("later", ["STALLWAIT", "SEMWAIT", "STREAMWAIT"])
def test_a_second_wait_is_held_by_the_first(later: str) -> None:
    """A new wait instruction never replaces a latched one (STALLWAIT, Blackhole ISA)."""
    s = fresh()
    run(s, "SEMWAIT", wait_sem_cond=1, sem_sel=1, stall_res=B8)
    assert hold(s, later) == thread.WAIT_SEM_ZERO
    s.sem[0] = 1
    assert hold(s, later) == 0


def test_threads_have_their_own_latches() -> None:
    s = fresh()
    run(s, "SEMWAIT", 1, wait_sem_cond=1, sem_sel=1, stall_res=ALL)
    assert [hold(s, "MVMUL", t) for t in range(3)] == [0, thread.WAIT_SEM_ZERO, 0]


def test_the_latch_remembers_its_instruction() -> None:
    s = fresh()
    s.gate_word[2], s.gate_pc[2] = 0xA6000005, 0x1234
    run(s, "SEMWAIT", 2, wait_sem_cond=1, sem_sel=1)
    assert (s.latch_word[2], s.latch_pc[2]) == (0xA6000005, 0x1234)
    assert (s.latch_cond[2], s.latch_sem[2]) == (1, 1)


def test_poll_releases_a_thread_that_has_no_word_at_the_gate() -> None:
    s = fresh()
    run(s, "SEMWAIT", wait_sem_cond=1, sem_sel=1, stall_res=B1)
    poll = thread.poll
    assert poll(view(s), 0) == thread.WAIT_SEM_ZERO
    s.sem[0] = 1
    assert poll(view(s), 0) == 0
    assert s.latch[0] == thread.NONE


def still_waits(s: State, wait: tuple[str, int, int]) -> bool:
    """Literal reference: is any selected condition of (kind, conditions, semaphores) true?"""
    kind, conditions, selected = wait
    if kind == "SEMWAIT":
        values = [(s.sem[i], s.sem_max[i]) for i in range(8) if selected >> i & 1]
        empty = any(v == 0 for v, _ in values)
        full = any(v >= top for v, top in values)
        return bool((conditions & 1 and empty) or (conditions & 2 and full))
    conditions = conditions or 0xF
    for source in range(2):
        if conditions >> (5 + source) & 1 and s.src_valid[source, s.unpack_bank[source]]:
            return True
        if conditions >> (7 + source) & 1 and not s.src_valid[source, s.matrix_bank[source]]:
            return True
    return False


def test_random_waits_agree_with_the_reference() -> None:
    rng = random.Random(12)
    s = fresh()
    wait: tuple[str, int, int] | None = None
    blocks = held = 0
    for _ in range(3000):
        s.sem[rng.randrange(8)] = rng.randrange(4)
        s.sem_max[rng.randrange(8)] = rng.randrange(4)
        s.src_valid[rng.randrange(2), rng.randrange(2)] = rng.randrange(2)
        s.unpack_bank[rng.randrange(2)] = rng.randrange(2)
        s.matrix_bank[rng.randrange(2)] = rng.randrange(2)
        if wait and not still_waits(s, wait):
            wait = None
        name = rng.choice([*HELD_BY, "NOP"])
        mask = (ALL if blocks == ALL else 0) if name == "NOP" else HELD_BY[name] & blocks
        assert (hold(s, name) > 0) == bool(wait and mask)
        held += bool(wait and mask)
        if wait is None and rng.random() < 0.5:
            chosen = rng.choice([rng.randrange(512), 1 << rng.randrange(9), ALL, 0])
            if rng.random() < 0.5:
                wait = ("STALLWAIT", rng.choice([rng.randrange(1 << 13), 0x1E0]), 0)
                run(s, "STALLWAIT", wait_res=wait[1], stall_res=chosen)
            else:
                wait = ("SEMWAIT", rng.randrange(1, 4), rng.randrange(256))
                run(s, "SEMWAIT", wait_sem_cond=wait[1], sem_sel=wait[2], stall_res=chosen)
            blocks = chosen or B6
    assert held > 100
