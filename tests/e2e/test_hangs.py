"""Programs that hang: each is reported with its outcome, the blocked instruction and the blocker.

What each wait means: SEMWAIT, STALLWAIT, ATGETM, ManualTTSync, PCBufs, Mailboxes (ISA).
"""

import pytest
from released import release

from bhemu.errors import EXIT_NO_PROGRESS, NoProgress
from bhemu.machine.hang.graph import WaitGraph
from bhemu.machine.hang.waits import Waiter
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    PARK,
    SP,
    T1,
    ZERO,
    add,
    addi,
    beq,
    bne,
    branch,
    code,
    jal,
    li,
    lui,
    lw,
    sw,
    tt,
)

FLAG, OTHER = 0x8000, 0x8004
CLOCK = 0xFFB121F0
SYNC, SEMAPHORES = 0xFFE80004, 0xFFE80020
PCBUF, MAILBOX, STREAM = 0xFFE80000, 0xFFEC0000, 0xFFB48028
SYNC_CLASS, ALL = 1 << 1, 0x1FF
WHILE_ZERO, WHILE_MAX = 1, 2
BLTU = 6


def tile_with(**programs: bytes) -> Tile:
    """Each program at its own place, its core released; brisc behind a jump at 0."""
    tile = Tile()
    release(tile, **programs)
    return tile


def hang(tile: Tile, category: str) -> WaitGraph:
    """Run into the hang; the graph of an outcome of that category."""
    with pytest.raises(NoProgress) as caught:
        tile.run(timeout_s=60)
    error = caught.value
    assert (error.category, error.rule) == (category, category.upper())
    assert error.exit_code == EXIT_NO_PROGRESS
    assert error.message.startswith(f"{category.lower()}: ")
    assert isinstance(error.graph, WaitGraph)
    assert error.as_dict()["graph"] == error.graph.as_dict()
    return error.graph


def waiter(graph: WaitGraph, who: str) -> Waiter:
    found = [w for w in graph.waiters if w.who == who]
    assert len(found) == 1, [str(w) for w in graph.waiters]
    return found[0]


def blockers(w: Waiter) -> list[str]:
    return [releaser.who for releaser in w.releasers]


def test_a_semaphore_that_nobody_posts() -> None:
    graph = hang(
        tile_with(
            trisc1=code(
                tt("SEMINIT", sem_sel=1 << 4, max_value=2),
                tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, sem_sel=1 << 4, stall_res=SYNC_CLASS),
                tt("SEMGET", sem_sel=1 << 4),
                PARK,
            )
        ),
        "Deadlock",
    )
    w = waiter(graph, "thread T1")
    assert (w.kind, w.resource) == ("semaphore", {"index": 4, "value": 0, "max": 2})
    assert w.where["pc"] == 0x10004
    assert str(w.where["decoded"]).startswith("SEMWAIT")
    assert "semaphore 4 = 0, max 2" in w.detail
    assert "holds back SEMGET" in w.detail
    assert w.releasers == ()
    assert "never posted" in w.history
    assert "found nothing that could release it" in str(graph)


def test_a_semaphore_at_its_maximum_that_its_taker_has_given_up() -> None:
    """T0 posts twice, T2 takes once and parks: the third post waits, and T2 is named as parked."""
    wait = {"sem_sel": 2, "stall_res": SYNC_CLASS}
    post = [tt("SEMWAIT", wait_sem_cond=WHILE_MAX, **wait), tt("SEMPOST", sem_sel=2)]
    take = [tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, **wait), tt("SEMGET", sem_sel=2)]
    graph = hang(
        tile_with(
            trisc0=code(tt("SEMINIT", sem_sel=2, max_value=1), post * 3, PARK),
            trisc2=code(take, PARK),
        ),
        "Deadlock",
    )
    w = waiter(graph, "thread T0")
    assert w.resource == {"index": 1, "value": 1, "max": 1}
    assert w.reason == "semaphore 1 to fall below its maximum"
    assert [(r.who, r.state) for r in w.releasers] == [("trisc2", "has parked")]
    assert w.where["pc"] == 0x10000 + 4 * 5
    assert "last taken by thread T2 at trisc2 pc 0x00014004" in w.history
    assert "last posted by thread T0 at trisc0 pc 0x00010010" in w.history


def test_a_mutex_that_its_owner_never_releases() -> None:
    flag = [*li(A0, FLAG), sw(A0, A0), PARK]
    acquire = tt("ATGETM", mutex_index=3)
    poll = [*li(A0, FLAG), lw(A1, A0), beq(A1, ZERO, -4)]
    sync = [*li(A0, SYNC), lw(A1, A0)]
    graph = hang(
        tile_with(
            trisc0=code(tt("NOP"), acquire, sync, flag),
            trisc1=code(poll, acquire, tt("ATRELM", mutex_index=3), PARK),
        ),
        "Deadlock",
    )
    w = waiter(graph, "thread T1")
    assert (w.kind, w.resource) == ("mutex", {"index": 3, "owner": 0})
    assert w.reason == "mutex 3"
    assert blockers(w) == ["thread T0"]
    assert "thread T0 acquired it at trisc0 pc 0x00010004" in w.history
    assert "holds no ATRELM" in w.history
    assert w.where["decoded"] == "ATGETM mutex_index=0x3"


def test_a_full_fifo_names_the_head_of_its_thread() -> None:
    wait = tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, sem_sel=1, stall_res=ALL)
    graph = hang(tile_with(trisc2=code(wait, [tt("NOP")] * 60, PARK)), "Deadlock")
    w = waiter(graph, "trisc2")
    assert (w.kind, w.resource) == ("fifo", {"thread": 2, "queued": 32})
    assert blockers(w) == ["thread T2"]
    assert w.releasers[0].how == "NOP at its head"
    assert waiter(graph, "thread T2").kind == "semaphore"


def test_a_source_bank_that_no_unpacker_hands_over() -> None:
    graph = hang(tile_with(trisc1=code(tt("MVMUL"), PARK)), "Deadlock")
    w = waiter(graph, "thread T1")
    assert (w.kind, w.resource["bank"], w.resource["valid"]) == ("src", 0, 0)
    assert w.reason == "SrcA bank 0 to become valid"
    assert "the unpacker has it" in w.detail
    assert "MVMUL" in w.detail
    assert w.releasers == ()


def test_a_source_bank_names_the_unpacr_behind_a_blocked_head() -> None:
    wait = tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, sem_sel=1, stall_res=ALL)
    hand_over = tt("UNPACR", set_dat_valid=1, last=1, ovrd_thread_id=1)
    stall = tt("STALLWAIT", wait_res=1 << 7, stall_res=1 << 6)
    graph = hang(
        tile_with(
            trisc0=code(wait, hand_over, PARK),
            trisc1=code(stall, tt("MVMUL"), tt("SEMPOST", sem_sel=1), PARK),
        ),
        "Deadlock",
    )
    w = waiter(graph, "thread T1")
    assert w.reason == "SrcA bank 0 to become valid"
    assert blockers(w) == ["thread T0"]
    assert w.releasers[0].how.startswith("UNPACR ")
    assert graph.cycle == ("thread T0", "thread T1")


def test_a_mailbox_that_its_writer_never_fills() -> None:
    read = [*li(A0, MAILBOX + 0x1000), lw(A1, A0)]  # trisc2 pops what trisc0 wrote
    graph = hang(tile_with(trisc2=code(read, PARK), trisc0=code(PARK)), "Deadlock")
    w = waiter(graph, "trisc2")
    assert (w.kind, w.resource) == ("mailbox", {"writer": 1, "reader": 3})
    assert w.reason == "a mailbox message from trisc0"
    assert [(r.who, r.state) for r in w.releasers] == [("trisc0", "has parked")]
    assert w.where["decoded"] == "lw a1,0(a0)"


def test_mailboxes_that_their_reader_never_empties() -> None:
    write = [*li(A0, MAILBOX), *[sw(A0, A0)] * 5]  # trisc1 writes to brisc
    graph = hang(tile_with(trisc1=code(write, PARK), brisc=code(PARK)), "Deadlock")
    w = waiter(graph, "trisc1")
    assert w.kind == "mailbox"
    assert "4 for brisc" in w.detail
    assert [(r.who, r.how) for r in w.releasers] == [("brisc", "has not taken its messages")]


def test_a_pcbuf_that_brisc_never_fills() -> None:
    load = [*li(A0, PCBUF), lw(A1, A0)]
    spin = [*li(A0, FLAG), lw(A1, A0), beq(A1, ZERO, -4), *li(A0, PCBUF + 0x10000), sw(A0, A0)]
    graph = hang(tile_with(trisc1=code(load, PARK), brisc=code(spin, PARK)), "Livelock")
    w = waiter(graph, "trisc1")
    assert (w.kind, w.resource) == ("pcbuf", {"trisc": 1})
    assert blockers(w) == ["brisc"]
    assert w.releasers[0].how == "store of 0xffe90000 to 0xffe90000"
    assert w.releasers[0].state == "goes round in a loop itself"


def test_brisc_waits_for_a_trisc_to_take_its_pcbuf_entries() -> None:
    write = [*li(A0, PCBUF + 0x20000), *[sw(A0, A0)] * 17]
    graph = hang(tile_with(brisc=code(write, PARK), trisc2=code(PARK)), "Deadlock")
    w = waiter(graph, "brisc")
    assert (w.kind, w.resource) == ("pcbuf", {"trisc": 2, "held": 16})
    assert [(r.who, r.state) for r in w.releasers] == [("trisc2", "has parked")]


def test_an_l1_flag_names_the_core_that_would_set_it() -> None:
    poll = [*li(A0, FLAG), lw(A1, A0), beq(A1, ZERO, -4)]
    wait = [*li(A0, OTHER), lw(A1, A0), beq(A1, ZERO, -4)]
    graph = hang(
        tile_with(trisc0=code(poll, PARK), ncrisc=code(wait, li(A0, FLAG), sw(A0, A0), PARK)),
        "Livelock",
    )
    w = waiter(graph, "trisc0")
    assert (w.kind, w.resource) == ("l1", {"address": FLAG, "value": 0})
    assert "it polls 0x8000, which is 0x0" in w.detail
    assert "its loop is 0x00010008..0x0001000C" in w.detail
    assert w.where["pc"] == 0x10008
    assert w.where["decoded"] == "lw a1,0(a0)"
    assert blockers(w) == ["ncrisc"]
    assert waiter(graph, "ncrisc").resource["address"] == OTHER


@pytest.mark.parametrize("is_pointed_at", [False, True])
def test_an_address_that_a_core_keeps_in_its_stack_frame(is_pointed_at: bool) -> None:
    """It is followed as long as no pointer to the frame is made; a store may go through one."""
    poll = [*li(A0, FLAG), lw(A1, A0), beq(A1, ZERO, -4)]
    kept = [*li(SP, 0xFFB00800), *li(A0, FLAG), sw(A0, SP, 4)]
    pointer = [addi(A2, SP, 4), sw(A2, A2)] if is_pointed_at else [addi(A2, ZERO, 4)]
    wait = [*li(A0, OTHER), lw(A1, A0), beq(A1, ZERO, -4)]
    other = code(kept, pointer, wait, lw(A0, SP, 4), sw(A0, A0), PARK)
    graph = hang(tile_with(trisc0=code(poll, PARK), ncrisc=other), "Livelock")
    assert blockers(waiter(graph, "trisc0")) == ([] if is_pointed_at else ["ncrisc"])


def test_a_stream_counter_names_the_storereg_that_would_move_it() -> None:
    poll = [*li(A0, STREAM), lw(A1, A0), beq(A1, ZERO, -4)]
    wait = tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, sem_sel=1, stall_res=ALL)
    count = tt("STOREREG", reg_addr=(STREAM - 0xFFB00000) // 4, tdma_data_reg_index=4)
    graph = hang(tile_with(trisc0=code(poll, PARK), trisc2=code(wait, count, PARK)), "Livelock")
    w = waiter(graph, "trisc0")
    assert w.kind == "stream"
    assert w.resource == {"address": STREAM, "value": 0, "stream": 8, "register": 10}
    counted = "(tiles received; in tt-metal of circular buffer 8, in older builds 0)"
    assert w.reason == f"register 10 of stream 8 {counted} to change"
    assert blockers(w) == ["thread T2"]
    assert w.releasers[0].how.startswith("STOREREG")


def test_a_clock_time_out_that_never_gives_up() -> None:
    """Inner loop: flag or 3000 ticks; outer loop: count the attempt and start again."""
    program = code(
        [*li(A0, CLOCK), *li(A1, FLAG), *li(A2, 3000)],
        [lw(T1, A0), add(T1, T1, A2)],  # deadline
        [lw(14, A1), bne(14, ZERO, 20), lw(15, A0), branch(BLTU, 15, T1, -12)],
        [addi(16, 16, 1), jal(ZERO, -28)],
        PARK,
    )
    graph = hang(tile_with(trisc1=program), "Livelock")
    w = waiter(graph, "trisc1")
    assert w.resource == {"address": FLAG, "value": 0}
    assert "the clock it reads ends nothing" in w.detail


def test_two_threads_that_wait_for_each_other() -> None:
    def half(wait: int, post: int) -> bytes:
        hold = tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, sem_sel=1 << wait, stall_res=SYNC_CLASS)
        return code(hold, tt("SEMGET", sem_sel=1 << wait), tt("SEMPOST", sem_sel=1 << post), PARK)

    graph = hang(tile_with(trisc0=half(3, 5), trisc1=half(5, 3)), "Deadlock")
    assert graph.cycle == ("thread T0", "thread T1")
    for who, other, semaphore in (("thread T0", "thread T1", 3), ("thread T1", "thread T0", 5)):
        w = waiter(graph, who)
        assert w.resource["index"] == semaphore
        assert blockers(w) == [other]
        assert w.releasers[0].state == "is blocked itself"
    ring = graph.ring()
    assert "thread T0 needs semaphore 3 to become non-zero: only thread T1 can give it" in ring
    assert "thread T1 needs semaphore 5 to become non-zero: only thread T0 can give it" in ring
    assert f"cycle: {ring}" in str(graph)
    assert graph.as_dict()["cycle"] == ["thread T0", "thread T1"]


def test_a_thread_that_waits_for_itself() -> None:
    hold = tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, sem_sel=1, stall_res=SYNC_CLASS)
    graph = hang(tile_with(trisc0=code(hold, tt("SEMPOST", sem_sel=1), PARK)), "Deadlock")
    assert graph.cycle == ("thread T0",)
    assert "only itself can give it (SEMPOST sem_sel=0x1 at its own gate)" in graph.ring()


def test_a_core_kept_in_reset_that_another_waits_for() -> None:
    tile = tile_with(brisc=code(li(A0, FLAG), lw(A1, A0), beq(A1, ZERO, -4), PARK))
    tile.write(0x20000, code(li(A0, FLAG), sw(A0, A0), PARK))
    tile.core["trisc1"].set_reset_pc(0x20000)
    w = waiter(hang(tile, "Livelock"), "brisc")
    assert [(r.who, r.state) for r in w.releasers] == [
        ("trisc1", "is in reset: no core or host has released it")
    ]


@pytest.mark.parametrize(
    "body",
    [
        [addi(A0, ZERO, 1), jal(ZERO, -4)],
        [beq(ZERO, ZERO, 0)],
        [lui(A0, 0x8000), sw(ZERO, A0), jal(ZERO, -8)],  # stores what is there already
    ],
)
def test_a_loop_that_looks_at_nothing(body: list[int]) -> None:
    w = waiter(hang(tile_with(trisc0=code(body)), "Livelock"), "trisc0")
    assert w.kind == "loop"
    assert w.reason == "nothing: it goes round"
    assert w.releasers == ()


def test_a_lock_that_another_core_holds() -> None:
    """amoswap that finds the lock taken stores what is there: it waits like a load."""
    amoswap = 1 << 27 | A1 << 20 | A0 << 15 | 2 << 12 | A2 << 7 | 0x2F
    lock = [*li(A0, FLAG), *li(A1, 1), amoswap, bne(A2, ZERO, -4)]
    graph = hang(tile_with(trisc0=code(lock, lock, PARK)), "Livelock")
    w = waiter(graph, "trisc0")
    assert w.resource == {"address": FLAG, "value": 1}
    assert w.where["pc"] == 0x10000 + 4 * 6 + 16


def test_a_semaphore_that_a_core_polls() -> None:
    poll = [*li(A0, SEMAPHORES + 4 * 6), lw(A1, A0), beq(A1, ZERO, -4)]
    graph = hang(
        tile_with(
            trisc0=code(poll, PARK),
            trisc1=code(li(A0, FLAG), lw(A1, A0), beq(A1, ZERO, -4), tt("SEMPOST", sem_sel=1 << 6)),
        ),
        "Livelock",
    )
    w = waiter(graph, "trisc0")
    assert (w.kind, w.resource["index"], w.resource["value"]) == ("semaphore", 6, 0)
    assert blockers(w) == ["trisc1"]


def test_the_number_of_rounds_is_a_parameter() -> None:
    def rounds(livelock: int, limit: int) -> int:
        tile = tile_with(trisc0=code(li(A0, FLAG), lw(A1, A0), beq(A1, ZERO, -4), PARK))
        tile.state.livelock[0] = livelock
        try:
            assert tile.run(limit=limit).reason == "limit"
        except NoProgress:
            return int(tile.state.round[0])
        return -1

    assert rounds(50, 10**6) == 50
    assert rounds(2000, 10**7) == 2000
    assert rounds(0, 5 * 10**6) == -1
    assert Tile(livelock=7).state.livelock[0] == 7


def test_the_run_can_go_on_after_a_livelock() -> None:
    tile = tile_with(trisc0=code(li(A0, FLAG), lw(A1, A0), beq(A1, ZERO, -4), PARK))
    hang(tile, "Livelock")
    with pytest.raises(NoProgress):
        tile.run()
    tile.write32(FLAG, 1)
    assert tile.run(resume=True).reason == "idle"
