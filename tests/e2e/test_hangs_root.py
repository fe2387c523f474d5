"""What a report of a hang begins with: the wait that nobody can end; what else it says of it."""

from dataclasses import replace
from pathlib import Path

import pytest
from released import release

from bhemu.errors import NoProgress, from_dict
from bhemu.hang.waitgraph import Waiter, WaitGraph
from bhemu.launch import launch
from bhemu.machine.tile import Tile
from bhemu.program.schema import CoreSpec, Program, RunSpec, SetSpec
from bhemu.riscv.asm import A0, A1, PARK, ZERO, addi, beq, code, li, lw, sw, tt

SYNC, WHILE_ZERO, ALL = 0xFFE80004, 1, 0x1FF
ARGUMENT, START = 0x9000, 0x10000


def stuck(tile: Tile) -> NoProgress:
    with pytest.raises(NoProgress) as caught:
        tile.run(timeout_s=60)
    return caught.value


def above_zero(semaphore: int) -> int:
    return tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, sem_sel=1 << semaphore, stall_res=ALL)


def chain() -> Tile:
    """T0 waits for T1's post, T1 for T2's, and T2 for a post that is in no program."""
    sync = [*li(A0, SYNC), lw(A1, A0), PARK]
    tile = Tile()
    release(
        tile,
        trisc0=code(tt("SEMINIT", sem_sel=0b1110, max_value=1), above_zero(1), tt("NOP"), sync),
        trisc1=code(above_zero(2), tt("SEMPOST", sem_sel=1 << 1), sync),
        trisc2=code(above_zero(3), tt("SEMPOST", sem_sel=1 << 2), sync),
    )
    return tile


def test_the_wait_that_nobody_can_end_comes_first_and_its_consequences_behind_it() -> None:
    error = stuck(chain())
    who = [waiter.who for waiter in error.graph.waiters]
    assert who[0] == "thread T2"
    assert who.index("thread T1") < who.index("thread T0")
    assert sorted(who) == ["thread T0", "thread T1", "thread T2", "trisc0", "trisc1", "trisc2"]
    assert "find who should have ended the wait of thread T2" in error.hint


def test_a_ring_comes_before_who_only_waits_for_its_members() -> None:
    tile = Tile()
    release(
        tile,
        trisc0=code(above_zero(1), tt("NOP"), PARK),
        trisc1=code(above_zero(2), tt("SEMPOST", sem_sel=0b1010), PARK),
        trisc2=code(above_zero(3), tt("SEMPOST", sem_sel=1 << 2), PARK),
    )
    error = stuck(tile)
    assert set(error.graph.cycle) == {"thread T1", "thread T2"}
    assert [w.who for w in error.graph.waiters] == ["thread T1", "thread T2", "thread T0"]


def test_the_error_as_text_has_every_wait_also_when_it_came_as_data() -> None:
    error = stuck(chain())
    assert "thread T2 waits for semaphore 3" in str(error)
    assert str(from_dict(error.as_dict())) == str(error)


@pytest.mark.parametrize("overwritten", [True, False])
def test_an_argument_that_changed_is_named_before_a_core_is_said_to_have_ended(
    tmp_path: Path, overwritten: bool
) -> None:
    """trisc1 posts as often as an argument says; trisc0 cleared it, or parked a word further."""
    count = [*li(A0, ARGUMENT), lw(A1, A0), beq(A1, ZERO, 8), tt("SEMPOST", sem_sel=2), PARK]
    wait = [*li(A0, 0x8000), lw(A1, A0), beq(A1, ZERO, -4)]
    clear = [*li(A0, ARGUMENT + (0 if overwritten else 16)), addi(A1, ZERO, 0), sw(A1, A0)]
    raise_flag = [*li(A0, 0x8000), sw(A0, A0), PARK]
    start = tt("SEMINIT", sem_sel=2, max_value=1)
    parts = [start, clear, raise_flag], [wait, count], [above_zero(1), tt("NOP"), PARK]
    image, cores = bytearray(START), {}
    for n, part in enumerate(parts):
        cores[f"trisc{n}"] = CoreSpec(f"trisc{n}", pc=len(image))
        image += code(*part).ljust(0x400, b"\0")
    path = tmp_path / "l1.bin"
    path.write_bytes(image)
    value = SetSpec(ARGUMENT, (1 if overwritten else 0).to_bytes(4, "little"))
    program = Program("p", "image", cores, image=path, sets=(value,), run=RunSpec(limit=10**6))
    hint = stuck(launch(program)).hint
    if overwritten:
        assert "trisc1 has parked, and what it read may be overwritten" in hint
        assert "L1 0x9000 was set to 0x1 before the run and is 0x0" in hint
        assert "trisc0 has a store of 0x0 to 0x9000 at trisc0 pc 0x00010010" in hint
    else:
        assert hint == "trisc1 ended too early: count what both sides give and take"


def test_waiters_that_do_the_same_on_many_tiles_are_shown_once() -> None:
    def waiter(x: int, core: str, pc: int) -> Waiter:
        return Waiter(f"({x},2) {core}", "l1", "a word", f"tile ({x},2)", "", where={"pc": pc})

    alike = [waiter(x, "brisc", 16) for x in range(1, 8)]
    graph = WaitGraph((*alike, waiter(1, "ncrisc", 16), waiter(2, "brisc", 20)))
    lines = str(graph).splitlines()
    assert lines[0] == "  (1,2) brisc waits for a word, tile (1,2)"
    assert lines[1] == "      so do (2,2) brisc, (3,2) brisc, (4,2) brisc, (5,2) brisc and 2 more"
    assert [line for line in lines if "waits for" in line][1:] == [
        "  (1,2) ncrisc waits for a word, tile (1,2)",
        "  (2,2) brisc waits for a word, tile (2,2)",
    ]
    assert len(graph.as_dict()["waiters"]) == 9
    assert "      so does (2,2) brisc" in str(WaitGraph(tuple(alike[:2])))
    written = replace(alike[1], history="last written by (1,2)")
    for other in (waiter(1, "ncrisc", 16), written):
        assert "so do" not in str(WaitGraph((alike[0], other)))
