"""Which values end a poll, and who could store them: through memory, and not with another value."""

from collections.abc import Callable

import pytest
from released import hung, waits

from bhemu.machine.hang.explore import Wanted
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
    SP,
    ZERO,
    addi,
    beq,
    bne,
    code,
    li,
    lw,
    sw,
)

WORD, OTHER, CELL = 0x8000, 0x8010, 0x8020  # CELL holds the address of WORD
BLT, BLTU = 4, 6  # funct3
STREAM = 0xFFB48028  # tiles received of stream 8


def graph(*, held: int = 0, **programs: bytes) -> WaitGraph:
    tile = Tile()
    tile.write32(WORD, held)
    tile.write32(CELL, WORD)
    return hung(tile, **programs)


def until(leaves: Callable[[int], int], value: int) -> bytes:
    """Polls WORD; `leaves` is the branch back, as its offset decides."""
    return code(li(A0, WORD), li(A2, value), lw(A1, A0), leaves(-4), PARK)


def for_ever(address: int = OTHER) -> list[int]:
    return [*li(A0, address), lw(A1, A0), beq(A1, ZERO, -4)]


@pytest.mark.parametrize(
    ("held", "value", "leaves", "wanted"),
    [
        (0, 5, lambda back: bne(A1, A2, back), Wanted(5, more=False)),
        (7, 5, lambda back: bne(A1, A2, back), Wanted(5, more=False)),
        (2, 0, lambda back: bne(A1, ZERO, back), Wanted(0, more=False)),
        (2, 5, lambda back: asm.branch(BLT, A1, A2, back), Wanted(5, more=True)),
        (2, 3, lambda back: asm.branch(BLT, A1, A2, back), Wanted(3, more=True)),
        (0, 5, lambda back: asm.branch(BLTU, A1, A2, back), Wanted(5, more=True)),
        (2, 2, lambda back: beq(A1, A2, back), None),  # any other one
        (0, 0, lambda back: beq(A1, ZERO, back), None),
    ],
)
def test_the_value_with_which_a_poll_goes_on(held, value, leaves, wanted) -> None:
    wait = waits(graph(held=held, trisc0=until(leaves, value)), "trisc0")
    assert wait.wanted == wanted
    said = f"to become {wanted}" if wanted else "to change"
    assert wait.reason == f"L1 word 0x8000 {said}"


def test_a_store_of_another_value_ends_no_wait() -> None:
    """trisc1 would store 4, trisc2 the 5 that is waited for."""
    stores = {
        f"trisc{n}": code(for_ever(), li(A0, WORD), li(A2, value), sw(A2, A0), PARK)
        for n, value in ((1, 4), (2, 5))
    }
    found = graph(trisc0=until(lambda back: bne(A1, A2, back), 5), **stores)
    assert [one.who for one in waits(found, "trisc0").releasers] == ["trisc2"]


@pytest.mark.parametrize("at", [CELL, OTHER])
def test_a_store_through_an_address_that_memory_holds(at: int) -> None:
    """trisc1 takes the address from a word of L1; OTHER holds 0."""
    through = code(for_ever(), li(A0, at), lw(A3, A0), sw(A0, A3), PARK)
    wait = waits(graph(trisc0=code(for_ever(WORD), PARK), trisc1=through), "trisc0")
    assert [one.who for one in wait.releasers] == (["trisc1"] if at == CELL else [])


@pytest.mark.parametrize("pages", [1, 2])
def test_a_store_of_a_function_that_is_called_for_two_structures(pages: int) -> None:
    """One for STREAM, the other for the stream after it; with `pages` 1 for the other one alone."""
    push = [lw(A1, A0), addi(A2, A2, 1), sw(A2, A1), asm.word("jalr", ZERO, RA, 0)]
    first = [*li(SP, LOCAL_BASE + 0x100), *li(A1, STREAM + 0x1000), sw(A1, SP)]
    first += [*li(A1, STREAM if pages == 2 else STREAM + 0x2000), sw(A1, SP, 4)]
    calls = [addi(A0, SP, 0), asm.jal(RA, 0), addi(A0, SP, 4), asm.jal(RA, 0), PARK]
    body = [*first, *for_ever()]
    to = 4 * (len(body) + len(calls))
    calls[1], calls[3] = (asm.jal(RA, to - 4 * (len(body) + n)) for n in (1, 3))
    counts = code(li(A0, STREAM), lw(A1, A0), beq(A1, ZERO, -4), PARK)
    found = graph(trisc0=counts, ncrisc=code(body, calls, push))
    expected = ["ncrisc"] if pages == 2 else []
    assert [one.who for one in waits(found, "trisc0").releasers] == expected


def test_the_own_memory_of_a_core_is_not_waited_for() -> None:
    """Of a loop that loads its counter as well: the word that others store."""
    own = LOCAL_BASE + 4
    poll = [*li(A3, own), *li(A0, WORD), *li(A1, 5), sw(A1, A3)]
    poll += [lw(A1, A3), lw(A2, A0), asm.branch(BLT, A2, A1, -8), PARK]
    found = graph(held=4, trisc0=code(poll))
    wait = waits(found, "trisc0")
    assert (wait.kind, wait.resource["address"], wait.wanted) == ("l1", WORD, Wanted(5, True))
    alone = graph(trisc0=code(li(A3, own), lw(A1, A3), beq(A1, ZERO, -4), PARK))
    assert waits(alone, "trisc0").resource["address"] == own


def test_two_words_that_a_core_polls_are_two_lines() -> None:
    poll = [*li(A0, WORD), *li(A3, OTHER), lw(A1, A0), lw(A2, A3), asm.word("sub", A1, A1, A2)]
    text = str(graph(trisc0=code(poll, beq(A1, ZERO, -12), PARK)))
    assert "waits for L1 word 0x8000" in text and "waits for L1 word 0x8010" in text
    assert "so does" not in text


@pytest.mark.parametrize("held", [3, 0])
def test_two_cores_that_wait_for_different_values_of_one_word(held: int) -> None:
    """Each would give what the other needs; a word that is past both is the headline."""
    ring = {
        "trisc0": code(li(A0, WORD), li(A2, 1), lw(A1, A0), bne(A1, A2, -4), store(OTHER)),
        "trisc1": code(li(A0, WORD), li(A2, 2), lw(A1, A0), bne(A1, A2, -4), store(OTHER)),
        "trisc2": code(for_ever(), li(A0, CELL), lw(A3, A0), addi(A2, A2, 1), sw(A2, A3), PARK),
    }
    said = graph(held=held, **ring).headline()
    past = (
        "trisc0 waits for L1 word 0x8000 to become 1 (it is 3 already), and trisc1 for the same"
        " word to become 2"
    )
    assert (said == past) == (held == 3)
    assert ("for the same word" in said) == (held == 3)


def store(address: int) -> list[int]:
    return [*li(A0, address), sw(A0, A0), PARK]


def test_a_ring_begins_with_the_value_that_a_program_has_chosen() -> None:
    """trisc0 for the 5th, which trisc1 stores after its thread got a post, which trisc0 gives."""
    sync = [*li(A0, 0xFFE80004), lw(A1, A0)]
    wait = asm.tt("SEMWAIT", wait_sem_cond=1, sem_sel=2, stall_res=0x1FF)
    gives = [*li(A0, WORD), *li(A2, 5), sw(A2, A0), PARK]
    poll = [*li(A0, WORD), *li(A2, 5), lw(A1, A0), asm.branch(BLT, A1, A2, -4)]
    found = graph(
        held=4,
        trisc0=code(poll, asm.tt("SEMPOST", sem_sel=2), PARK),
        trisc1=code(asm.tt("SEMINIT", sem_sel=2, max_value=1), wait, asm.tt("NOP"), sync, gives),
    )
    assert found.cycle == ("trisc0", "trisc1", "thread T1")
    assert found.waiters[0].who == "trisc0"
    start = "a cycle of waits: trisc0 needs L1 word 0x8000 to become 5 or more (it is 4): trisc1"
    assert found.headline().startswith(start)
