"""A core that is past the instruction that gives ends no wait any more; where a path cannot be
followed, it still may."""

import pytest
from released import hung, waits

from bhemu.machine.hang.explore import Wanted
from bhemu.machine.hang.givers import NO_MORE, Releaser
from bhemu.machine.hang.graph import WaitGraph
from bhemu.machine.tile import Tile
from bhemu.memmap import LOCAL_BASE
from bhemu.riscv import assembly as asm
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    A3,
    PARK,
    RA,
    RET,
    SP,
    T0,
    ZERO,
    addi,
    beq,
    bne,
    code,
    jal,
    jalr,
    li,
    lw,
    sw,
    tt,
)

WORD, DONE, CELL = 0x8000, 0x8010, 0x8020  # CELL holds 1
FIVE = [*li(A0, WORD), *li(A2, 5), lw(A1, A0), bne(A1, A2, -4)]  # waits until WORD is 5
DELAY = [*li(A3, 200), addi(A3, A3, -1), bne(A3, ZERO, -4)]


def until(address: int) -> list[int]:
    """Polls a word until it is not 0."""
    return [*li(A0, address), lw(A1, A0), beq(A1, ZERO, -4)]


def give(value: int | None = None) -> list[int]:
    """Stores to WORD: a value, or what CELL holds."""
    held = [*li(A2, CELL), lw(A2, A2)] if value is None else li(A2, value)
    return [*li(A0, WORD), *held, sw(A2, A0)]


def graph(**programs: bytes) -> WaitGraph:
    tile = Tile()
    tile.write32(CELL, 1)
    return hung(tile, **programs)


def giver(program: list[int], *, awaited: list[int] = FIVE) -> tuple[WaitGraph, Releaser]:
    """trisc0 waits for WORD and then stores to DONE; trisc1 is the only one that may give it."""
    first = code(awaited, li(A0, DONE), sw(A2, A0), PARK)
    found = graph(trisc0=first, trisc1=code(program))
    (one,) = waits(found, "trisc0").releasers
    assert one.who == "trisc1"
    return found, one


def test_a_store_before_the_loop_closes_no_cycle() -> None:
    """trisc1 has stored 1, and waits for trisc0: the root is the wait for 5."""
    found, one = giver([*give(), *until(DONE), PARK])
    assert (one.able, one.passed, found.cycle) == (False, True, ())
    assert found.waiters[0].who == "trisc0"
    assert found.headline() == (
        f"trisc0 waits for L1 word 0x8000 to become 5 (it is 1): trisc1 (store to 0x8000) {NO_MORE}"
    )
    assert f"{NO_MORE}: it goes round in a loop itself" in str(found)
    assert "passed" not in found.as_dict()["waiters"][0]["releasers"][0]  # type: ignore[index]


def test_a_store_before_the_loop_and_one_after_it() -> None:
    found, one = giver([*give(), *until(DONE), *give(5), PARK])
    assert one.able and one.how == "store of 0x5 to 0x8000"
    assert set(found.cycle) == {"trisc0", "trisc1"}


def test_a_loop_around_the_store_comes_back_to_it() -> None:
    body = [*give(), *until(DONE)]
    _, one = giver([*body, jal(ZERO, -4 * len(body))])
    assert one.able


FRAME = LOCAL_BASE + 0x100


def deep(save: int, load: int) -> list[int]:
    """Calls a function that calls another one, in which it waits; then it stores to WORD.

    save, load: what the first function does with the address that it returns to.
    """
    leaf = [*until(DONE), RET]
    middle = [addi(SP, SP, -16), save, jal(RA, 16), load, addi(SP, SP, 16), RET]
    middle[2] = jal(RA, 4 * (len(middle) - 2))
    after = [*give(), PARK]
    return [*li(SP, FRAME), jal(RA, 4 * (len(after) + 1)), *after, *middle, *leaf]


def test_what_calls_the_function_in_which_a_core_waits_lies_ahead() -> None:
    """By its return address, and by the one that the function before it keeps in its frame."""
    _, one = giver(deep(sw(RA, SP, 12), lw(RA, SP, 12)))
    assert one.able


@pytest.mark.parametrize("known", [True, False])
def test_where_a_jump_cannot_be_followed_nothing_is_passed(known: bool) -> None:
    """Of the two words in L1 the one is an instruction's operand, the other is loaded."""
    to = li(T0, 0x20000) if known else [*li(T0, CELL), lw(T0, T0)]
    _, one = giver([*give(), *until(DONE), *to, jalr(ZERO, T0)])
    assert one.able != known


def test_a_return_to_an_unknown_place_may_lead_back() -> None:
    """The address is stored through a pointer that the core takes from memory."""
    _, one = giver([*give(), *until(DONE), *li(RA, CELL), asm.word("lhu", RA, RA, 0), RET])
    assert one.able


@pytest.mark.parametrize("other", [0x20000, 0x20010])
def test_a_function_that_returns_with_one_of_two_addresses(other: int) -> None:
    """The caller jumps to what it gets: with the second one it is not known where."""
    leaf = [*until(DONE), *li(T0, 0x20000), beq(A1, A0, 12), *li(T0, other), RET]
    _, one = giver([*give(), jal(RA, 8), jalr(ZERO, T0), *leaf])
    assert one.able == (other != 0x20000)


@pytest.mark.parametrize("again", [None, "REPLAY", "store", "queued"])
def test_a_word_that_was_pushed_before_the_loop(again: str | None) -> None:
    """Unless a REPLAY, ahead or queued, or a word that is not known, may bring it again."""
    words: dict[str | None, list[int]] = {
        None: [PARK],
        "REPLAY": [tt("REPLAY", start_idx=0, len=1), PARK],
        "store": [*li(A0, 0xFFE40000), *li(A2, CELL), lw(A2, A2), sw(A2, A0), PARK],
    }
    wait = tt("SEMWAIT", wait_sem_cond=1, sem_sel=2, stall_res=0x1FF)
    take = tt("SEMGET", sem_sel=2)
    held = [tt("SEMWAIT", wait_sem_cond=1, sem_sel=8, stall_res=0x1FF), tt("NOP")]
    queued = [*held, tt("REPLAY", start_idx=0, len=1)] if again == "queued" else []
    setup = tt("SEMINIT", sem_sel=2, max_value=1)
    found = graph(
        trisc0=code(setup, wait, take, wait, take, PARK),
        trisc1=code(DELAY, tt("SEMPOST", sem_sel=2), queued, until(DONE), words.get(again, [PARK])),
    )
    (one,) = waits(found, "thread T0").releasers
    assert (one.who, one.passed) == ("trisc1", again is None)


@pytest.mark.parametrize("held", [0, 1])
@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (0, 16, Wanted(0x10000, more=True)),
        (15, 31, None),  # bit 16 alone
    ],
)
def test_a_value_whose_low_bits_do_not_count(
    held: int, left: int, right: int, wanted: Wanted | None
) -> None:
    """Polls WORD until it is not 0, shifted to the left and to the right."""
    shifted = [asm.word("slli", A2, A1, left), asm.word("srli", A2, A2, right)]
    tile = Tile()
    tile.write32(WORD, held)
    poll = code(li(A0, WORD), lw(A1, A0), shifted, beq(A2, ZERO, -12), PARK)
    assert waits(hung(tile, trisc0=poll), "trisc0").wanted == wanted
