"""Cores that poll are not executed pass by pass; nothing that can be seen depends on it.

The same programs run with passes counted and with passes executed, on both engines.
"""

import random
import time
from typing import Any

import numpy as np
import pytest
from fuzz.campaign import LONG
from riscv.lockstep.pair import OWN, outcome
from riscv.polling_programs import (
    CLOCK,
    DATA,
    FENCE,
    FLAGS,
    MCYCLE,
    SEMAPHORES,
    STREAM,
    programs,
    start,
)

from bhemu import memmap as mm
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    PARK,
    T0,
    T1,
    ZERO,
    addi,
    beq,
    bne,
    code,
    li,
    lw,
    sw,
    tt,
    word,
)
from bhemu.tensix.state import MEMBERS

VISIBLE = [m.name for m in MEMBERS if m.name not in OWN | {"loaded"}]
engines = pytest.mark.parametrize("engine", ENGINES)
quanta = pytest.mark.parametrize("quantum", [1, 7, 64, 1000])


def loaded(engine: str, texts: dict[str, bytes], **options: Any) -> list[Tile]:
    """Two tiles with the same programs: passes counted, passes executed."""
    tiles = [Tile(engine=engine, ub="silicon", **options) for _ in range(2)]
    for tile, counted in zip(tiles, (1, 0), strict=True):
        tile.state.count_passes[0] = counted
        start(tile, texts)
    return tiles


def differences(tiles: list[Tile]) -> list[str]:
    one, other = tiles
    found = [
        f"{name}: {getattr(one.state, name)} {getattr(other.state, name)}"
        for name in VISIBLE
        if not np.array_equal(getattr(one.state, name), getattr(other.state, name))
    ]
    registers = [[list(core.regs) for core in tile.core.values()] for tile in tiles]
    return found + ([f"registers: {registers}"] if registers[0] != registers[1] else [])


def equal(tiles: list[Tile], where: str = "", **how: Any) -> str:
    """Run both: the same outcome and the same state."""
    one, other = (outcome(tile, **how) for tile in tiles)
    assert one == other, where
    assert differences(tiles) == [], where
    return one


def poke(tiles: list[Tile], r: random.Random) -> None:
    """What a host may do between two runs."""
    at, value = r.choice((FLAGS + 4 * r.randrange(5), DATA, STREAM + 0x2000)), r.randrange(20)
    for tile in tiles:
        tile.write32(at, value)


@engines
@quanta
def test_random_pollers(engine: str, quantum: int) -> None:
    """In pieces of random length, with a host that writes what they read, and breakpoints."""
    for seed in range(60 if LONG else 6):
        r = random.Random(1000 * quantum + seed)
        tiles = loaded(engine, programs(r.randrange(1 << 30), 30), quantum=quantum, livelock=0)
        for piece in range(25):
            where = f"quantum {quantum}, seed {seed}, piece {piece}"
            done = equal(tiles, where, limit=r.choice((1, 10, 333, 5000, 100_000)))
            if not done.startswith("limit"):
                break
            if r.random() < 0.2:
                poke(tiles, r)
            if r.random() < 0.2:
                core = r.choice(CORE_NAMES)
                point = int(tiles[0].core[core].pc) + 4 * r.randrange(-2, 3)
                for tile in tiles:
                    tile.break_at(core, max(point, 0))
                equal(tiles, where, limit=3000)
                for tile in tiles:
                    tile.delete()


@engines
@pytest.mark.parametrize("quantum", [7, 1000])
def test_random_pollers_step_by_step(engine: str, quantum: int) -> None:
    """Steps of one core, with the others running and held."""
    r = random.Random(quantum)
    tiles = loaded(engine, programs(3, 8), quantum=quantum, livelock=0)
    for _ in range(60):
        core, n, hold = r.choice(CORE_NAMES), r.choice((1, 2, 50)), r.random() < 0.3
        if all(tile.core[core].state == "running" for tile in tiles):
            stops = [repr(tile.step(core, n, hold=hold)) for tile in tiles]
            assert stops[0] == stops[1]
            assert differences(tiles) == []


POLL_L1 = code(li(A1, DATA), lw(A0, A1), addi(A2, A0, 1), bne(A1, ZERO, -8))
POLL_STREAM = code(li(A1, STREAM), lw(A0, A1), bne(A1, ZERO, -4))
POLL_TWO = code(li(A1, STREAM), li(T0, DATA), lw(A0, A1), lw(T1, A1, 0x1000), bne(A1, ZERO, -8))
POLL_LOCAL = code(li(A1, mm.LOCAL_BASE), lw(A0, A1), FENCE, bne(A1, ZERO, -8))
POLL_SEMAPHORE = code(li(A1, SEMAPHORES), lw(A0, A1), bne(A1, ZERO, -4))
HELD = code(tt("SEMWAIT", sem_sel=1, stall_res=0x1FF, wait_sem_cond=1), tt("NOP")) + POLL_SEMAPHORE
ALL = {
    "brisc": POLL_L1,
    "trisc0": POLL_STREAM,
    "trisc1": HELD,
    "trisc2": POLL_TWO,
    "ncrisc": POLL_LOCAL,
}


@engines
@pytest.mark.parametrize("quantum", [64, 1000])
def test_every_kind_of_poller_sleeps(engine: str, quantum: int) -> None:
    """As many rounds as no machine executes: a clock of 10^12, twice, to the unit."""
    tile, _ = loaded(engine, ALL, quantum=quantum, livelock=0)
    begin = time.process_time()
    for _ in range(2):
        before, clock = tile.core["ncrisc"].retired, tile.clock
        assert tile.run(limit=10**12).clock == clock + 10**12
        assert tile.core["ncrisc"].retired - before > 10**11
    assert time.process_time() - begin < 20


@engines
@pytest.mark.parametrize("core", ALL)
def test_one_poller_of_each_kind(engine: str, core: str) -> None:
    """Alone a core has whole turns; limits hit every place of a pass."""
    tiles = loaded(engine, {core: ALL[core]}, livelock=0)
    for limit in (5000, 1, 1, 1, 2, 3, 100_003, 64):
        assert equal(tiles, limit=limit).startswith("limit")


@engines
def test_the_look_for_a_livelock_comes_at_the_same_clock(engine: str) -> None:
    tiles = loaded(engine, {"brisc": POLL_L1, "trisc0": POLL_STREAM}, livelock=3000)
    assert equal(tiles, limit=10**9).startswith("NoProgress LIVELOCK")
    assert int(tiles[0].state.round[0]) >= 3000


@engines
def test_saved_states_between_passes(engine: str) -> None:
    """A state taken while all poll goes on in another tile, of either kind, as in the first."""
    tiles = loaded(engine, ALL, livelock=0)
    equal(tiles, limit=123_457)
    saved = tiles[0].snapshot()
    for other in ENGINES:
        fresh = loaded(other, {}, livelock=0)
        for tile in fresh:
            tile.restore(saved)
        assert differences(fresh) == []
        equal(fresh, limit=77_777)
        poke(fresh, random.Random(1))
        equal(fresh, limit=77_777)


@engines
@pytest.mark.parametrize("delay", [10, 100, 5000, 100_000])
def test_a_core_wakes_when_another_stores(engine: str, delay: int) -> None:
    """A poller of L1, one of a stream register, one of a semaphore: each sees the change."""
    count = [*li(A0, delay), addi(A0, A0, -1), bne(A0, ZERO, -4)]
    change = [*li(A1, DATA), sw(A1, A1), *li(A1, STREAM), sw(A1, A1)]
    post = [tt("SEMINIT", max_value=3, sem_sel=1), tt("SEMPOST", sem_sel=1)]
    wait = {"brisc": DATA, "trisc0": STREAM, "trisc2": SEMAPHORES}
    texts = {
        core: code(li(A1, at), lw(A0, A1), word("beq", A0, ZERO, -4), li(A2, FLAGS), PARK)
        for core, at in wait.items()
    }
    tiles = loaded(engine, texts | {"trisc1": code(count, change, post, PARK)})
    assert equal(tiles).startswith("idle")
    assert [int(tiles[0].core[core].regs[A2]) for core in wait] == [FLAGS] * 3


INERT = mm.DEBUG_BASE + 0x70  # accesses to it are counted
ACTING = {
    "a counted register": [*li(A1, INERT), lw(A0, A1), bne(A1, ZERO, -4)],
    "the top of a clock": [*li(A1, CLOCK), lw(A0, A1), word("srli", A0, A0, 31), beq(A0, ZERO, -8)],
    "the top of mcycle": [
        word("csrrs", A0, MCYCLE, ZERO),
        word("srli", A0, A0, 31),
        beq(A0, ZERO, -8),
    ],
    "equal messages": [*li(A1, mm.MAILBOX_BASE), lw(A0, A1), bne(A0, ZERO, -4)],
}


@engines
@pytest.mark.parametrize("what", ACTING)
def test_a_load_that_acts_is_executed_though_the_registers_come_back(
    engine: str, what: str
) -> None:
    """What is counted, what tells the time, what takes an entry: nobody sleeps over it."""
    tiles = loaded(engine, {"trisc0": code(ACTING[what], PARK)}, livelock=0)
    for tile in tiles:
        tile.state.clock[0] = 2**31 - 5000
        tile.state.mailbox[0, 1], tile.state.mailbox_write[0, 1] = 7, 4
    outcomes = [equal(tiles, limit=100), equal(tiles, limit=20_000)]
    if what != "equal messages":
        assert outcomes[0].startswith("limit")
    if "top" in what:
        assert outcomes[1].startswith("idle")


@engines
def test_time_passes_for_who_polls_a_clock(engine: str) -> None:
    """A core that waits for the wall clock among cores that poll ends at the same clock."""
    wait = [*li(A1, CLOCK), *li(A2, 1_000_000), lw(A0, A1), word("bltu", A0, A2, -4), PARK]
    tiles = loaded(engine, ALL | {"brisc": code(wait)}, livelock=0)
    assert equal(tiles, limit=1_500_000).startswith("limit")
    assert tiles[0].core["brisc"].state == "parked"
