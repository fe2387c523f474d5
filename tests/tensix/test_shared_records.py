"""What the shared pieces record for whoever asks: latches, semaphore users, numbers of sentences.

Sources: STALLWAIT, SEMWAIT, STREAMWAIT, SyncUnit, MOPExpander (Blackhole ISA); NoC overlay.
"""

import pytest
from test_streams import WORD, read, write
from unit_runner import run, sentence, view

from bhemu.errors import Undefined
from bhemu.machine.tile import Tile
from bhemu.memmap import MOP_CFG_BASE
from bhemu.riscv.assembly import PUSH
from bhemu.tensix import rules, semaphores, thread
from bhemu.tensix.insn import assemble
from bhemu.tensix.state import State


def latched(s: State, t: int) -> dict[str, int]:
    names = ("latch", "latch_block", "latch_cond", "latch_sem", "latch_stream", "latch_target")
    return {name: int(getattr(s, name)[t]) for name in names}


def test_a_latch_holds_what_its_instruction_names_and_nothing_else() -> None:
    s = State()
    s.sem_max[:] = 1
    run(s, "STALLWAIT", 0, wait_res=0x180, stall_res=0x24)
    run(s, "SEMWAIT", 1, wait_sem_cond=3, sem_sel=0x5A, stall_res=0x81)
    run(s, "STREAMWAIT", 2, wait_stream_sel=1, target_sel=0, target_value=9, stall_res=0x42)
    names = ("latch", "latch_block", "latch_cond", "latch_sem", "latch_stream", "latch_target")
    assert latched(s, 0) == dict(zip(names, (thread.STALL, 0x24, 0x180, 0, 0, 0), strict=True))
    assert latched(s, 1) == dict(zip(names, (thread.SEMAPHORE, 0x81, 3, 0x5A, 0, 0), strict=True))
    wanted = latched(s, 2)
    assert wanted["latch"] == thread.STREAM
    assert (wanted["latch_block"], wanted["latch_sem"], wanted["latch_target"]) == (0x42, 0, 9)


@pytest.mark.parametrize("i", range(8))
@pytest.mark.parametrize("taken", [0, 1])
def test_who_touched_a_semaphore_last(i: int, taken: int) -> None:
    """1 + thread (3 for a core) + 8 * core, and the pc."""
    s = State()
    semaphores.note(view(s), i, taken, 2, 0, 0x1234)
    semaphores.note(view(s), (i + 1) % 8, taken, 3, 4, 0xFFFFFFFC)
    assert (s.sem_by[i, taken], s.sem_pc[i, taken]) == (3, 0x1234)
    assert (s.sem_by[(i + 1) % 8, taken], s.sem_pc[(i + 1) % 8, taken]) == (36, 0xFFFFFFFC)
    assert int(s.sem_by.astype(bool).sum()) == 2


@pytest.mark.parametrize("i", range(8))
def test_stores_to_a_semaphore_that_are_refused(i: int) -> None:
    s = State()
    s.sem[:] = 7
    number = semaphores.store(view(s), i, 0x12)
    assert number == semaphores.STORE_VALUE
    assert sentence(s, number).startswith(f"store of 0x12 to the window of semaphore {i}:")
    s.sem[i] = 0
    number = semaphores.store(view(s), i, 1)
    assert number == semaphores.GET_EMPTY
    assert sentence(s, number).startswith(f"semaphore {i} is taken")
    s.sem[i] = 15
    number = semaphores.store(view(s), i, 0)
    assert number == semaphores.POST_FULL
    assert sentence(s, number) == (f"semaphore {i} is posted although its value 15 is not below 15")
    assert s.sem.tolist() == [15 if k == i else 7 for k in range(8)]


@pytest.mark.parametrize("i", range(8))
def test_stores_count_one_semaphore(i: int) -> None:
    s = State()
    s.sem[:] = 14
    assert semaphores.store(view(s), i, 0) == rules.DONE
    assert s.sem.tolist() == [15 if k == i else 14 for k in range(8)]
    s.sem[:] = 1
    assert semaphores.store(view(s), i, 1) == rules.DONE
    assert s.sem.tolist() == [0 if k == i else 1 for k in range(8)]


def test_the_space_available_has_17_bits() -> None:
    """A store to REMOTE_DEST_BUF_SIZE sets it, to what that register keeps."""
    s = State()
    assert write(s, 5, 10, WORD) == rules.DONE
    assert [read(s, 5, register) for register in (10, 297)] == [0x1FFFF, 0x1FFFF]
    assert write(s, 5, 10, 0x20) == rules.DONE
    assert [read(s, 5, register) for register in (10, 297)] == [0x20, 0x20]


@pytest.mark.parametrize(
    ("mop", "word", "text"),
    [
        ([1, 1], assemble("MOP", mop_type=1) | 0x7FFFFF, "non-zero bits 0x7fffff in"),
        ([1, 1], assemble("MOP", mop_type=1) | 0x10, "non-zero bits 0x10 in"),
        ([0, 5], assemble("MOP", mop_type=1), "outer count 0, inner count 5:"),
        ([9, 128], assemble("MOP", mop_type=1), "outer count 9, inner count 128:"),
        ([128, 3], assemble("MOP", mop_type=1), "outer count 128, inner count 3:"),
        ([7, 0], assemble("MOP", mop_type=1), "outer count 7, inner count 0:"),
        ([7, 4], assemble("MOP"), "flag word 0x4:"),
    ],
)
def test_a_mop_that_is_refused(mop: list[int], word: int, text: str) -> None:
    tile = Tile()
    for i, value in enumerate(mop):
        tile.core["trisc0"].write32(MOP_CFG_BASE + 4 * i, value)
    tile.core["trisc0"].write32(PUSH, word)
    with pytest.raises(Undefined) as caught:
        tile.run()
    assert text in caught.value.message
