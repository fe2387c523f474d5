"""Slow programs that live: nothing of this may be called a livelock.

Each polls, waits or counts for far more rounds than a look takes to come (50 here), and finishes.
"""

import pytest
from released import release

from bhemu.machine.hang.explore import explore
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    A3,
    PARK,
    PUSH,
    T1,
    T2,
    ZERO,
    add,
    addi,
    beq,
    bne,
    branch,
    code,
    csrrs,
    jal,
    li,
    lui,
    lw,
    sw,
    tt,
)

FLAG, COUNT = 0x8000, 0x8010
CLOCK, CLOCK_HIGH = 0xFFB121F0, 0xFFB121F4
GPR, MAILBOX, STREAM = 0xFFE00000, 0xFFEC0000, 0xFFB48028
MCYCLE = 0xB00
BLTU = 6
LOOK = 50


def finished(rounds: int, **programs: bytes) -> Tile:
    """Run until everything is parked; it takes at least `rounds` rounds."""
    tile = Tile(livelock=LOOK)
    release(tile, **programs)
    assert tile.run(timeout_s=120).reason == "idle"
    assert int(tile.state.round[0]) >= rounds
    return tile


def wait_flag(address: int = FLAG) -> list[int]:
    return [*li(A0, address), lw(A1, A0), beq(A1, ZERO, -4)]


def set_flag(address: int = FLAG) -> list[int]:
    return [*li(A0, address), *li(A1, 1), sw(A1, A0)]


def delay(ticks: int) -> list[int]:
    """Wait until the clock has advanced by `ticks`."""
    return [
        *li(A0, CLOCK),
        *li(A2, ticks),
        lw(A1, A0),
        add(A1, A1, A2),
        lw(T1, A0),
        branch(BLTU, T1, A1, -4),
    ]


def test_a_long_poll_of_a_core_that_waits_for_the_clock() -> None:
    tile = finished(
        40 * LOOK, trisc0=code(wait_flag(), PARK), trisc1=code(delay(300_000), set_flag(), PARK)
    )
    assert tile.clock > 300_000


def test_a_deadline_that_is_a_constant() -> None:
    until = [*li(A0, CLOCK), lui(A2, 0x80000), lw(T1, A0), branch(BLTU, T1, A2, -4)]
    finished(10 * LOOK, trisc0=code(wait_flag(), PARK), ncrisc=code(until, set_flag(), PARK))


@pytest.mark.parametrize("csr", [MCYCLE, 0xC02])
def test_a_deadline_in_a_counter_register(csr: int) -> None:
    until = [lui(A2, 0x80000), csrrs(T1, csr), branch(BLTU, T1, A2, -4)]
    finished(10 * LOOK, trisc0=code(until, PARK))


def test_back_pressure_of_a_producer() -> None:
    """T0's FIFO stays full while T0 waits for the semaphore that trisc1 posts much later."""
    hold = tt("SEMWAIT", wait_sem_cond=1, sem_sel=1, stall_res=0x1FF)
    tile = finished(
        10 * LOOK,
        trisc0=code(tt("SEMINIT", sem_sel=1, max_value=2), hold, [tt("NOP")] * 100, PARK),
        trisc1=code(delay(100_000), tt("SEMPOST", sem_sel=1), PARK),
    )
    assert int(tile.state.executed[0]) == 102


def test_a_slow_producer_of_many_items() -> None:
    """Ten items, each handed over by a word and taken back by its consumer."""
    produce, consume = [], []
    for _ in range(10):
        give = [*li(A0, FLAG), *li(A3, 1), sw(A3, A0), lw(A1, A0), bne(A1, ZERO, -4)]
        produce += [*delay(20_000), *give]
        take = [*li(T2, COUNT), lw(A2, T2), addi(A2, A2, 1), sw(A2, T2), sw(ZERO, A0)]
        consume += [*wait_flag(), *take]
    tile = finished(20 * LOOK, trisc0=code(produce, PARK), trisc2=code(consume, PARK))
    assert tile.read32(COUNT) == 10


@pytest.mark.parametrize("poller", [False, True])
def test_a_core_that_counts_in_a_register(poller: bool) -> None:
    count = [*li(A0, 1_000_000), addi(A0, A0, -1), bne(A0, ZERO, -4)]
    programs = {"trisc0": code(wait_flag(), PARK)} if poller else {}
    finished(10 * LOOK, trisc1=code(count, set_flag(), PARK), **programs)


def test_a_core_that_counts_for_ever_and_waits_for_nothing_is_at_work() -> None:
    tile = Tile(livelock=LOOK)
    tile.write(0x10000, code(addi(A0, A0, 1), jal(ZERO, -4)))
    tile.core["trisc0"].set_reset_pc(0x10000)
    tile.core["trisc0"].release()
    assert tile.run(limit=LOOK * 100_000).reason == "limit"


def test_a_bounded_number_of_attempts() -> None:
    """The flag never comes: the core gives up after 200000 looks, and parks."""
    attempts = [
        *li(A0, FLAG),
        *li(A2, 200_000),
        lw(A1, A0),
        bne(A1, ZERO, 12),
        addi(A2, A2, -1),
        bne(A2, ZERO, -12),
    ]
    finished(10 * LOOK, brisc=code(attempts, PARK))


def test_mailbox_ping_pong_with_delays() -> None:
    """trisc0 and trisc1 pass a word to and fro twenty times."""
    there, back = MAILBOX + 0x2000, MAILBOX + 0x1000  # as trisc0 and as trisc1 see the other
    ping, pong = [], []
    for _ in range(20):
        ping += [*delay(5000), *li(A0, there), sw(A2, A0), lw(A1, A0)]
        pong += [*li(A0, back), lw(A3, A0), *delay(5000), *li(A0, back), sw(A3, A0)]
    tile = finished(10 * LOOK, trisc0=code(ping, PARK), trisc1=code(pong, PARK))
    assert int(tile.core["trisc0"].regs[A1]) == 5000


def test_a_poll_of_a_stream_counter_that_toggles() -> None:
    """trisc1 sets the counter to 1 and back to 0 many times before it sets it to 2."""
    two = [*li(A0, STREAM), *li(A2, 2), lw(A1, A0), bne(A1, A2, -4)]
    toggle = [
        *li(A0, STREAM),
        *li(A3, 1),
        *li(T2, 30_000),
        sw(A3, A0),
        sw(ZERO, A0),
        addi(T2, T2, -1),
        bne(T2, ZERO, -12),
    ]
    done = [*li(A3, 2), sw(A3, A0)]
    finished(2 * LOOK, trisc0=code(two, PARK), trisc1=code(toggle, done, PARK))


def test_a_word_in_l1_that_toggles() -> None:
    """A look may fall on either state of the word: its writer is alive in both."""
    two = [*li(A0, FLAG), *li(A2, 2), lw(A1, A0), bne(A1, A2, -4)]
    toggle = [
        *li(A0, FLAG),
        *li(A3, 1),
        *li(T2, 100_000),
        sw(A3, A0),
        sw(ZERO, A0),
        addi(T2, T2, -1),
        bne(T2, ZERO, -12),
    ]
    finished(2 * LOOK, brisc=code(two, PARK), trisc1=code(toggle, li(A3, 2), sw(A3, A0), PARK))


def test_a_core_that_counts_in_its_local_memory() -> None:
    """The count lies in local RAM, where no other core looks."""
    count = [
        *li(A0, 0xFFB00100),
        *li(A1, 300_000),
        sw(A1, A0),
        lw(A1, A0),
        addi(A1, A1, -1),
        sw(A1, A0),
        bne(A1, ZERO, -12),
    ]
    finished(10 * LOOK, trisc2=code(count, PARK))


def test_a_poll_of_another_cores_local_memory() -> None:
    """trisc0 counts up in its local RAM; ncrisc looks there through the slow path."""
    count = [*li(A0, 0xFFB00100), *li(A2, 100_000)]
    step = [addi(A1, A1, 1), sw(A1, A0), bne(A1, A2, -8)]
    poll = [*li(A0, 0xFFB18100), *li(A2, 50_000), lw(A1, A0), branch(BLTU, A1, A2, -4)]
    finished(2 * LOOK, trisc0=code(count, step, PARK), ncrisc=code(poll, PARK))


def test_a_push_into_the_fifo_is_life() -> None:
    """Between two pushes of a brisc that waits for the clock no Tensix word executes."""
    push = [*li(A0, PUSH), *li(A1, 0x02000000), sw(A1, A0)]
    tile = finished(10 * LOOK, brisc=code(delay(100_000), push, delay(100_000), push, PARK))
    assert int(tile.state.executed[0]) == 2


def test_a_step_that_holds_the_others_proves_nothing() -> None:
    """trisc1 would set the flag, but the debugger holds it back: no livelock."""
    tile = Tile(livelock=LOOK)
    release(tile, trisc0=code(wait_flag(), PARK), trisc1=code(set_flag(), PARK))
    assert tile.step("trisc0", 200_000, hold=True).reason == "step"
    assert tile.run().reason == "idle"


def test_every_run_counts_its_own_rounds() -> None:
    """A host that runs in short pieces has not asked for a verdict."""
    tile = Tile(livelock=LOOK)
    tile.write(0x10000, code(wait_flag(), PARK))
    tile.core["trisc0"].set_reset_pc(0x10000)
    tile.core["trisc0"].release()
    for _ in range(10):
        assert tile.run(limit=(LOOK - 2) * 1000).reason == "limit"
    tile.write32(FLAG, 1)
    assert tile.run().reason == "idle"


def test_a_look_changes_nothing() -> None:
    """Device loads of a look, the clock's latch included, leave the record as it was."""
    loads = [[*li(A0, at), lw(A1, A0)] for at in (CLOCK, CLOCK_HIGH, GPR, STREAM, 0xFFB12240)]
    tile = Tile(livelock=0)
    tile.write(0x10000, code([w for part in loads for w in part], jal(ZERO, -4 * 15)))
    tile.core["trisc0"].set_reset_pc(0x10000)
    tile.core["trisc0"].release()
    tile.run(limit=5000)
    before = tile.state.buffer.copy()
    assert explore(tile, 1, 1000) is not None
    scratch = ("scratch",)
    for name in scratch:
        getattr(tile.state, name)[...] = 0
    after = tile.state.buffer.copy()
    tile.state.buffer[:] = before
    for name in scratch:
        getattr(tile.state, name)[...] = 0
    assert (tile.state.buffer == after).all()
