"""Three threads in a ring of semaphores, stopped everywhere: L1, counters and trace are the same.

Each thread takes what the one before it gave, adds to a word of L1 (ATINCGET), and gives to the
next; its core counts turns in L1 too and waits for the thread at the end (SyncUnit, ManualTTSync).
"""

import functools
from typing import Any

import pytest
from test_stops import QUANTA, record

from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, A2, A3, PARK, ZERO, addi, bne, code, li, lw, sw, tt

TURNS, MOST = 12, 2
FIBONACCI = 144  # the 12th: each increment is what the one before it fetched
SYNC, GPRS = 0xFFE80004, 0xFFE00000
COUNTS, WORDS = 0x30000, 0x30100  # of the threads, 16 bytes each; of the cores
ALL = 0x1FF
WHILE_ZERO, WHILE_MAX = 1, 2
CORES = ("trisc0", "trisc1", "trisc2")


def program(t: int) -> bytes:
    """TURNS times: take from the thread before, count, give to the next; T0 begins."""
    mine, following = 1 << t, 1 << (t + 1) % 3
    wait = [tt("SEMWAIT", wait_sem_cond=WHILE_ZERO, sem_sel=mine, stall_res=ALL)]
    room = [tt("SEMWAIT", wait_sem_cond=WHILE_MAX, sem_sel=following, stall_res=ALL)]
    count = tt(
        "ATINCGET", mem_hier_sel=0, wrap_val=31, sel32b=0, data_reg_index=5, addr_reg_index=6
    )
    body = [wait, tt("SEMGET", sem_sel=mine), count, room, tt("SEMPOST", sem_sel=following)]
    words = [word for part in body for word in (part if isinstance(part, list) else [part])]
    loop = [*words, lw(A3, A1), addi(A3, A3, 1), sw(A3, A1), addi(A2, A2, -1)]
    begin = [tt("SEMINIT", sem_sel=mine, init_value=int(t == 0), max_value=MOST)]
    address = [*li(A0, GPRS), *li(A1, (COUNTS + 16 * t) >> 4), sw(A1, A0, 4 * 6)]
    increment = [*li(A1, 1), sw(A1, A0, 4 * 5)]
    setup = [*address, *increment, *begin, *li(A1, WORDS + 4 * t), *li(A2, TURNS)]
    sync = [*li(A0, SYNC), lw(A0, A0), *li(A0, WORDS + 0x10 + 4 * t), sw(A2, A0)]
    return code(setup, loop, bne(A2, ZERO, -4 * len(loop)), sync, PARK)


def started(quantum: int) -> Tile:
    tile = Tile(quantum=quantum)
    tile.state.trace[0] = 1
    tile.write(WORDS + 0x10, b"\xff" * 12)
    for t, name in enumerate(CORES):
        tile.write(0x10000 + 0x4000 * t, program(t))
        tile.core[name].set_reset_pc(0x10000 + 0x4000 * t)
        tile.core[name].release()
    return tile


@functools.cache
def free(quantum: int) -> dict[str, Any]:
    tile = started(quantum)
    assert tile.run(timeout_s=120).reason == "idle"
    assert [tile.read32(COUNTS + 16 * t) for t in range(3)] == [FIBONACCI] * 3
    assert [tile.read32(WORDS + 4 * t) for t in range(3)] == [TURNS] * 3
    assert tile.read(WORDS + 0x10, 12) == bytes(12)
    return record(tile)


@pytest.mark.parametrize("quantum", QUANTA)
def test_breakpoints_everywhere(quantum: int) -> None:
    """On every second instruction of the loop, of every core."""
    tile = started(quantum)
    s = tile.state
    for t, name in enumerate(CORES):
        c, size = tile.core[name].index, len(program(t))
        places = [0x10000 + 0x4000 * t + at for at in range(0, size, 8)][-16:]
        s.breakpoint[c, : len(places)], s.breakpoint_count[c] = places, len(places)
    stops = 0
    while tile.run(timeout_s=120).reason == "breakpoint":
        s.breakpoint_skip[int(s.agent[0])] = 1
        stops += 1
    assert stops > 3 * TURNS
    assert record(tile) == free(quantum)


@pytest.mark.parametrize("quantum", QUANTA)
def test_one_word_and_one_instruction_at_a_time(quantum: int) -> None:
    tile = started(quantum)
    for _ in range(40):
        for t, name in enumerate(CORES):
            if tile.core[name].state in ("running", "blocked"):
                tile.step(name)
            if tile.state.gate_full[t]:
                tile.tstep(t)
    assert tile.run(timeout_s=120).reason == "idle"
    assert record(tile) == free(quantum)


def test_quanta_agree_on_l1_counts_and_every_threads_words() -> None:
    """Nobody polls, so the counts of the cores are the same too."""
    runs = [free(quantum) for quantum in QUANTA]
    for run in runs:
        for key in ("l1", "local", "retired", "executed", "opcodes", "regs"):
            assert run[key] == runs[0][key], key
        for t in range(3):
            # all but the clocks, which count the turns of all cores
            words = [entry[:4] for entry in run["trace"] if entry[0] == t]
            assert words == [entry[:4] for entry in runs[0]["trace"] if entry[0] == t]
            assert len(words) == 1 + 5 * TURNS
