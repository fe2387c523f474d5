"""Hangs over bytes and half-words: who stores beside the polled bytes is not blamed."""

import pytest
from released import hung, waits

from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, beq, code, lbu, lhu, li, lw, sw

FLAGS = 0x68  # four bytes, a flag of one core each
BYTE, HALF, WORD = 0, 1, 2
_LOADS = {BYTE: lbu, HALF: lhu, WORD: lw}


def poll(address: int, width: int) -> list[int]:
    return [*li(A0, address), _LOADS[width](A1, A0), beq(A1, ZERO, -4)]


def give(address: int, width: int, value: int = 1) -> list[int]:
    return [*li(A0, address), addi(A1, ZERO, value), sw(A1, A0, 0, width)]


def test_a_store_to_the_next_byte_is_no_way_out() -> None:
    """trisc0 and trisc1 poll each other's byte; each would store to the byte behind it."""
    found = hung(
        Tile(),
        trisc0=code(poll(FLAGS, BYTE), give(FLAGS + 3, BYTE), PARK),
        trisc1=code(poll(FLAGS + 2, BYTE), give(FLAGS + 1, BYTE), PARK),
    )
    assert [w.releasers for w in found.waiters] == [(), ()]
    assert found.cycle == ()
    assert [w.reason for w in found.waiters] == ["L1 byte 0x68 to change", "L1 byte 0x6a to change"]


@pytest.mark.parametrize(
    ("polled", "stored", "how"),
    [
        ((FLAGS + 1, BYTE), (FLAGS + 1, BYTE, 1), "byte store of 0x1 to 0x69"),
        ((FLAGS + 2, BYTE), (FLAGS + 2, HALF, 1), "half-word store of 0x1 to 0x6a"),
        ((FLAGS, WORD), (FLAGS + 3, BYTE, 1), "byte store of 0x1 to 0x6b"),
        ((FLAGS + 2, HALF), (FLAGS + 3, BYTE, 1), "byte store of 0x1 to 0x6b"),
    ],
)
def test_a_store_to_any_polled_byte_is_one(polled, stored, how: str) -> None:
    found = hung(
        Tile(),
        trisc0=code(poll(*polled), PARK),
        trisc1=code(poll(0x200, WORD), give(*stored), PARK),
    )
    assert [(r.who, r.how) for r in waits(found, "trisc0").releasers] == [("trisc1", how)]


def test_a_word_store_that_leaves_the_polled_byte_as_it_is_is_none() -> None:
    found = hung(
        Tile(),
        trisc0=code(poll(FLAGS + 1, BYTE), PARK),
        trisc1=code(poll(0x200, WORD), give(FLAGS, WORD, 1), PARK),
    )
    assert waits(found, "trisc0").releasers == ()
