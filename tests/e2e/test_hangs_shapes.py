"""More shapes of hanging programs: rings of three, MOP and REPLAY, what no thread ever gives.

What each wait means: SEMWAIT, STALLWAIT, ATGETM, REPLAY, MOPExpander, PCBufs, Mailboxes (ISA).
"""

import pytest
from test_hangs import (
    ALL,
    FLAG,
    MAILBOX,
    OTHER,
    PCBUF,
    SYNC,
    SYNC_CLASS,
    WHILE_MAX,
    WHILE_ZERO,
    blockers,
    hang,
    tile_with,
    waiter,
)

from bhemu.cli import output
from bhemu.errors import NoProgress
from bhemu.machine.hang.graph import WaitGraph, advice
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    PARK,
    RA,
    RET,
    T0,
    ZERO,
    beq,
    code,
    jal,
    jalr,
    li,
    lw,
    sw,
    tt,
)
from bhemu.tensix.insn import assemble

GPRS, MOP_CFG, MOP_DONE = 0xFFE00000, 0xFFB80000, 0xFFE80008
SRCA_VALID = 1 << 7  # condition C7 of STALLWAIT


def above_zero(i: int, hold: int = ALL) -> int:
    return tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, sem_sel=1 << i, stall_res=hold)


def init(i: int, most: int) -> int:
    return tt("SEMINIT", sem_sel=1 << i, max_value=most)


def post(i: int) -> int:
    return tt("SEMPOST", sem_sel=1 << i)


def take(i: int) -> int:
    return tt("SEMGET", sem_sel=1 << i)


def poll(address: int) -> list[int]:
    return [*li(A0, address), lw(A1, A0), beq(A1, ZERO, -4)]


def give(address: int) -> list[int]:
    return [*li(A0, address), *li(A1, 1), sw(A1, A0)]


def load(address: int) -> list[int]:
    return [*li(A0, address), lw(A1, A0)]


def hint(graph: WaitGraph, **programs: bytes) -> str:
    return advice(tile_with(**programs), graph)


def test_three_threads_in_a_ring() -> None:
    def third(wait: int, gives: int) -> bytes:
        return code(above_zero(wait, SYNC_CLASS), take(wait), post(gives), PARK)

    graph = hang(tile_with(trisc0=third(1, 2), trisc1=third(2, 3), trisc2=third(3, 1)), "Deadlock")
    assert graph.cycle == ("thread T0", "thread T2", "thread T1")
    for who, semaphore, other in (
        ("thread T0", 1, "thread T2"),
        ("thread T1", 2, "thread T0"),
        ("thread T2", 3, "thread T1"),
    ):
        assert waiter(graph, who).resource == {"index": semaphore, "value": 0, "max": 0}
        assert blockers(waiter(graph, who)) == [other]
    assert "one in the cycle must give before it takes" in hint(graph)


def test_a_poster_that_is_its_own_taker() -> None:
    hold = tt("SEMWAIT", wait_sem_cond=WHILE_MAX, sem_sel=1 << 4, stall_res=ALL)
    program = code(init(4, 2), post(4), post(4), hold, post(4), take(4), PARK)
    graph = hang(tile_with(trisc1=program), "Deadlock")
    w = waiter(graph, "thread T1")
    assert w.resource == {"index": 4, "value": 2, "max": 2}
    assert w.reason == "semaphore 4 to fall below its maximum"
    assert w.where["pc"] == 0x1000C
    assert graph.cycle == ("thread T1",)


def test_an_unpacker_that_meets_a_bank_the_matrix_unit_keeps() -> None:
    """T1 would give the bank back, but waits first; without T1's CLEARDVALID nobody would."""
    hand_over = tt("UNPACR_NOP", set_dvalid=1, unpack_pop=1)
    consumer = [above_zero(2), tt("MVMUL"), tt("CLEARDVALID", cleardvalid=1), PARK]
    graph = hang(tile_with(trisc0=code([hand_over] * 3, PARK), trisc1=code(consumer)), "Deadlock")
    w = waiter(graph, "thread T0")
    assert (w.kind, w.reason) == ("src", "SrcA bank 0 to become free")
    assert "the matrix unit has it" in w.detail
    assert blockers(w) == ["thread T1"]
    assert w.releasers[0].how == "CLEARDVALID cleardvalid=0x1 queued behind its head"
    graph = hang(tile_with(trisc0=code([hand_over] * 3, PARK)), "Deadlock")
    assert waiter(graph, "thread T0").releasers == ()


def test_a_stallwait_whose_condition_never_clears() -> None:
    program = code(tt("STALLWAIT", wait_res=SRCA_VALID, stall_res=ALL), post(1), PARK)
    w = waiter(hang(tile_with(trisc0=program), "Deadlock"), "thread T0")
    assert (w.kind, w.reason) == ("src", "SrcA bank 0 to become valid")
    assert w.detail.endswith("holds back SEMPOST sem_sel=0x2")
    assert (w.where["pc"], w.releasers) == (0x10000, ())


def test_a_wait_inside_a_replay_names_the_slot() -> None:
    record = tt("REPLAY", len=3, load_mode=1)
    play = tt("REPLAY", len=3)
    program = code(record, tt("NOP"), above_zero(5), tt("NOP"), play, post(6), PARK)
    w = waiter(hang(tile_with(trisc1=program), "Deadlock"), "thread T1")
    assert (w.kind, w.resource["index"]) == ("semaphore", 5)
    assert w.detail.endswith("holds back NOP from replay slot 2")
    assert w.where["pc"] == 0x10008


def test_a_wait_inside_a_mop_names_the_mop_and_the_core_that_waits_for_it() -> None:
    nop, wait = assemble("NOP"), assemble("SEMWAIT", wait_sem_cond=1, sem_sel=1, stall_res=ALL)
    words = [2, 2, nop, nop, nop, wait, nop, wait, wait]
    setup = [x for i, word in enumerate(words) for x in (*li(A1, word), sw(A1, A0, 4 * i))]
    program = code(li(A0, MOP_CFG), setup, tt("MOP", mop_type=1), load(MOP_DONE), PARK)
    graph = hang(tile_with(trisc1=program), "Deadlock")
    w = waiter(graph, "thread T1")
    assert (w.kind, w.resource["index"]) == ("semaphore", 0)
    assert w.detail.endswith(" of the MOP it expands")
    core = waiter(graph, "trisc1")
    assert core.reason == "the MOP expander of its thread to finish (TTSync)"
    assert blockers(core) == ["thread T1"]


def test_a_full_mailbox_whose_reader_looks_into_another() -> None:
    write = [*li(A0, MAILBOX + 0x2000), *[sw(A0, A0)] * 5]  # trisc0 to trisc1
    programs = {"trisc0": code(write, PARK), "trisc1": code(load(MAILBOX + 0x2000), PARK)}
    graph = hang(tile_with(**programs), "Deadlock")
    assert "4 for trisc1" in waiter(graph, "trisc0").detail
    w = waiter(graph, "trisc1")
    assert w.reason == "a mailbox message from trisc1"
    assert [(r.who, r.able) for r in w.releasers] == [("trisc1", False)]
    assert "only trisc1 may release it, and no store to 0xffec2000 was found in " in str(graph)
    assert graph.cycle == ()  # it cannot give itself what it never sends
    assert hint(graph).startswith("find the agent that should have ended the wait of ")


@pytest.mark.parametrize("called", [False, True])
def test_an_answer_behind_the_wait_for_the_question_is_found(called: bool) -> None:
    """Its address has been in a register since before the loop, or before the call."""
    ask, answer = lw(A1, A2), sw(A1, A0)
    before = [*li(A0, MAILBOX), *li(A2, MAILBOX)]
    if called:  # by what is only reached by a jump to an address in memory
        jump = [*li(A1, 0x1402C), *li(T0, 0x9000), sw(A1, T0), lw(A1, T0), jalr(ZERO, A1)]
        then = [*jump, jal(RA, 12), answer, PARK, ask, RET]
    else:
        then = [ask, answer, jal(ZERO, -8)]
    asks = code(li(A0, MAILBOX + 0x3000), lw(A1, A0), sw(A1, A0), PARK)
    graph = hang(tile_with(brisc=asks, trisc2=code(before, then)), "Deadlock")
    assert blockers(waiter(graph, "brisc")) == ["trisc2"]
    assert graph.cycle == ("brisc", "trisc2")


def test_two_cores_that_wait_for_each_others_word() -> None:
    graph = hang(
        tile_with(
            trisc0=code(poll(FLAG), give(OTHER), PARK), ncrisc=code(poll(OTHER), give(FLAG), PARK)
        ),
        "Livelock",
    )
    assert graph.cycle == ("trisc0", "ncrisc")
    assert waiter(graph, "trisc0").resource == {"address": FLAG, "value": 0}
    assert waiter(graph, "ncrisc").resource == {"address": OTHER, "value": 0}


def test_a_sync_before_the_post_that_its_own_thread_needs() -> None:
    program = code(init(3, 1), above_zero(3), tt("NOP"), load(SYNC), post(3), PARK)
    graph = hang(tile_with(trisc2=program), "Deadlock")
    assert graph.cycle == ("thread T2", "trisc2")
    assert waiter(graph, "trisc2").kind == "ttsync"
    assert blockers(waiter(graph, "thread T2")) == ["trisc2"]


def test_a_core_in_reset_is_what_to_look_at() -> None:
    tile = tile_with(brisc=code(poll(0x9000), PARK))
    tile.write(0x20000, code(give(0x9000), PARK))
    tile.core["ncrisc"].set_reset_pc(0x20000)
    graph = hang(tile, "Livelock")
    assert blockers(waiter(graph, "brisc")) == ["ncrisc"]
    assert advice(tile, graph) == "release ncrisc: nothing has cleared its bit of SOFT_RESET_0"


def test_a_packer_that_waits_for_a_math_that_has_ended() -> None:
    again = [above_zero(1), take(1)]
    graph = hang(
        tile_with(trisc1=code(init(1, 2), post(1), PARK), trisc2=code(again, again, PARK)),
        "Deadlock",
    )
    w = waiter(graph, "thread T2")
    assert w.resource == {"index": 1, "value": 0, "max": 2}
    assert w.where["pc"] == 0x14008
    assert [(r.who, r.state) for r in w.releasers] == [("trisc1", "has parked")]
    assert "last taken by thread T2 at trisc2 pc 0x00014004" in w.history
    assert hint(graph).startswith("find the agent that should have ended the wait of thread T2")


def test_two_mutexes_taken_in_opposite_order() -> None:
    def both(first: int, second: int, mine: int, theirs: int) -> list[int]:
        get = [tt("ATGETM", mutex_index=i) for i in (first, second)]
        release = [tt("ATRELM", mutex_index=i) for i in (second, first)]
        return [get[0], post(mine), above_zero(theirs), get[1], *release]

    graph = hang(
        tile_with(
            trisc0=code(init(0, 1), init(1, 1), both(2, 3, 0, 1), PARK),
            trisc1=code([tt("NOP")] * 3, both(3, 2, 1, 0), PARK),
        ),
        "Deadlock",
    )
    assert graph.cycle == ("thread T0", "thread T1")
    assert waiter(graph, "thread T0").resource == {"index": 3, "owner": 1}
    assert waiter(graph, "thread T1").resource == {"index": 2, "owner": 0}


def test_a_gpr_that_a_queued_word_would_write() -> None:
    """The thread that holds the word is named, and the wait that holds it."""
    write = tt("SETDMAREG", reg_index_16b=4, payload_sig_sel=1)
    program = code(init(4, 1), above_zero(4), write, poll(GPRS + 8), PARK)
    graph = hang(tile_with(trisc0=program), "Livelock")
    w = waiter(graph, "trisc0")
    assert w.resource == {"address": GPRS + 8, "value": 0}
    assert blockers(w) == ["thread T0"]
    assert w.releasers[0].how.startswith("SETDMAREG")
    assert waiter(graph, "thread T0").resource["index"] == 4


def test_brisc_waits_for_a_trisc_that_waits_for_brisc() -> None:
    """A load of brisc from its PCBuf is a barrier, that of the TRISC a pop."""
    graph = hang(
        tile_with(
            brisc=code(load(PCBUF), PARK),
            trisc0=code(above_zero(7), tt("NOP"), load(PCBUF), post(7), PARK),
        ),
        "Deadlock",
    )
    assert waiter(graph, "brisc").resource == {"trisc": 0, "held": 0}
    assert blockers(waiter(graph, "brisc")) == ["trisc0", "thread T0"]
    assert [(r.who, r.able) for r in waiter(graph, "trisc0").releasers] == [("brisc", False)]
    assert hint(graph).startswith("find the agent that should have ended the wait of ")


def test_a_hang_on_the_command_line_ends_with_what_to_do() -> None:
    error = NoProgress("deadlock: none moves", rule="DEADLOCK", hint="look there")
    assert output.lines(error)[-1] == "  hint: look there"
    with pytest.raises(NoProgress) as caught:
        tile_with(trisc0=code(above_zero(1), post(2), PARK)).run(timeout_s=60)
    last = output.lines(caught.value)[-1]
    assert last.startswith("  hint: find the agent that should have ended the wait of thread T0; ")
