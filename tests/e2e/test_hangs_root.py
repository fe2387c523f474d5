"""What a report of a hang begins with: the wait that nobody can end; what else it says of it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from released import release

from bhemu.errors import NoProgress, from_dict
from bhemu.launch import launch
from bhemu.machine.hang.givers import Releaser
from bhemu.machine.hang.graph import WaitGraph, graph_of
from bhemu.machine.hang.waits import Waiter
from bhemu.machine.tile import Tile
from bhemu.program.schema import load_program
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, beq, code, li, lw, sw, tt

ROOT = Path(__file__).parents[2]
SYNC, WHILE_ZERO, ALL = 0xFFE80004, 1, 0x1FF


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
    assert "find the agent that should have ended the wait of thread T2" in error.hint


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


def test_nobody_is_blamed_because_it_has_ended() -> None:
    """trisc1 posts once, and trisc2 takes twice: either may be wrong."""
    tile = Tile()
    twice = [above_zero(1), tt("SEMGET", sem_sel=2), tt("NOP")] * 2
    once = [tt("SEMINIT", sem_sel=2, max_value=1), tt("SEMPOST", sem_sel=2), PARK]
    release(tile, trisc1=code(once), trisc2=code(twice, PARK))
    error = stuck(tile)
    assert error.hint.startswith("find the agent that should have ended the wait of thread T2")
    assert error.graph.headline() == (
        "thread T2 waits for semaphore 1 to become non-zero, which trisc1 could give"
        " (SEMPOST sem_sel=0x2 in its program); trisc1 has parked"
    )


def test_a_semaphore_that_is_set_up_is_not_given_by_who_sets_it_up() -> None:
    """Its SEMINIT was executed, or the wait would be for another reason: no cycle goes by it."""
    tile = Tile()
    wait_full = tt("SEMWAIT", wait_sem_cond=2, sem_sel=2, stall_res=ALL)
    flag = [*li(A0, 0x8000), lw(A1, A0), beq(A1, ZERO, -4), PARK]
    sync, raise_flag = [*li(A0, SYNC), lw(A1, A0)], [*li(A0, 0x8000), sw(A0, A0), PARK]
    release(
        tile,
        trisc0=code(tt("SEMINIT", sem_sel=2, max_value=1, init_value=1), flag),
        trisc1=code([addi(0, 0, 0)] * 40, wait_full, tt("NOP"), sync, raise_flag),
    )  # fmt: skip
    error = stuck(tile)
    assert error.graph.waiters[0].who == "thread T1"
    assert "trisc0" not in error.graph.cycle
    assert error.graph.headline().endswith("and nothing that could give it was found")


def test_who_could_be_released_by_another_one_is_in_no_cycle() -> None:
    """brisc waits for trisc0, and trisc0 for a word that brisc and trisc2 store."""
    tile = Tile()
    done, word = 0x8100, 0x8110
    release(
        tile,
        brisc=code(
            [*li(A0, done), lw(A1, A0), beq(A1, ZERO, -4)], *[li(A0, word), sw(A0, A0)], PARK
        ),
        trisc0=code(
            [*li(A0, word), lw(A1, A0), beq(A1, ZERO, -4)], *[li(A0, done), sw(A0, A0)], PARK
        ),
        trisc2=code(beq(ZERO, ZERO, 20), *[li(A0, word), sw(A0, A0)], PARK, PARK, PARK),
    )
    graph = stuck(tile).graph
    assert graph.cycle == ()
    assert "brisc (goes round in a loop itself) or trisc2 (" in graph.headline()


def test_a_semaphore_that_nobody_sets_up_is_the_root() -> None:
    """However many words take from it."""
    tile = Tile()
    wait_full = tt("SEMWAIT", wait_sem_cond=2, sem_sel=2, stall_res=ALL)
    release(
        tile,
        trisc1=code(wait_full, tt("SEMPOST", sem_sel=2), PARK),
        trisc2=code(above_zero(1), tt("SEMGET", sem_sel=2), PARK),
    )
    error = stuck(tile)
    assert error.graph.waiters[0].who == "thread T1" and error.graph.cycle == ()
    assert error.hint == "no SEMINIT has given semaphore 1 a maximum"


@pytest.mark.parametrize("polled", [False, True])
def test_a_maximum_is_missed_by_who_waits_for_room_alone(polled: bool) -> None:
    """A semaphore that nobody sets up, as shipped programs have: its value alone is waited for."""
    tile = Tile()
    poll = [*li(A0, 0xFFE80024), lw(A1, A0), beq(A1, ZERO, -4)]
    release(tile, trisc1=code(poll if polled else [above_zero(1), tt("NOP")], PARK))
    error = stuck(tile)
    assert error.graph.waiters[0].resource == {"index": 1, "value": 0, "max": 0}
    who = "trisc1" if polled else "thread T1"
    assert error.hint.startswith(f"find the agent that should have ended the wait of {who}; ")


def test_the_root_of_a_chip_is_the_tile_that_waits_for_no_other_one() -> None:
    def waiter(who: str, *givers: str) -> Waiter:
        return Waiter(
            who, "l1", "a word", "", "", releasers=tuple(Releaser(g, "", "", "") for g in givers)
        )

    last = waiter("(3,2) brisc", "tile (2,2)")
    middle = [waiter("(2,2) brisc", "(2,2) ncrisc"), waiter("(2,2) ncrisc", "tile (1,2)")]
    root = waiter("(1,2) trisc0")
    assert [one.who for one in graph_of([last, *middle, root]).waiters] == [
        "(1,2) trisc0", "(2,2) ncrisc", "(3,2) brisc", "(2,2) brisc"
    ]  # fmt: skip


def test_a_request_to_the_awaited_word_of_a_tile_without_a_program_is_the_hint(
    tmp_path: Path,
) -> None:
    """The receivers of A take column 5 for that of its sender; of B nothing is wrong."""
    folder = shutil.copytree(ROOT / "elfs" / "matmul_mcast", tmp_path / "wrong")
    path = folder / "PROGRAM.toml"
    path.write_text(path.read_text().replace('"tile:first_x"', '"u32:5"', 1))
    with pytest.raises(NoProgress) as caught:
        launch(load_program(folder)).run()
    error = caught.value
    assert isinstance(error.graph, WaitGraph)
    assert error.graph.waiters[0].who == "(1,2) ncrisc"  # and not who waits for its tiles
    awaited = error.graph.waiters[0].resource["address"]
    assert f"name {awaited:#x} of (5,2) as the destination, where nothing" in error.hint


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
