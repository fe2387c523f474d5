"""Cores that poll sleep in timed runs; nothing that can be seen depends on it.

The same programs run with passes left out and with all of them executed: outcome, clocks, counts,
registers, memories, delays that were drawn and their log are the same.
"""

import os
import random
from pathlib import Path
from typing import Any

import golden_case
import golden_noc
import numpy as np
import pytest
from noc_program import READ, WRITE, hi, put, send, wait
from riscv.lockstep.pair import COMPARED, outcome
from riscv.polling_programs import DATA, FLAGS, STREAM, programs, start

from bhemu import Chip, Tile
from bhemu import memmap as mm
from bhemu.devices import debug_regs, niu
from bhemu.devices.bus.window import Effect
from bhemu.jit.record import plain
from bhemu.launch import Program
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.assembly import A0, A1, A2, PARK, T1, ZERO, addi, bne, branch, code, li, lw, sw, tt
from bhemu.timing import draws, polling

ELFS = Path(__file__).parents[2] / "elfs"
LONG = bool(os.environ.get("BHEMU_LONG"))
SEEDS = range(50 if LONG else 3)
TILES = ("add1", "eltwise", "matmul", "reduce", "sfpu")
CHIPS = ("add1_chip", "copy_dram", "all_gather", "matmul_mcast")
CASES = sorted(path.stem for path in golden_case.GOLDEN.glob("*.npz"))
WAYS: tuple[dict[str, Any], ...] = ({"timing": "model"}, *({"late": seed} for seed in SEEDS))
_BLTU = 6

# When an act is next is the same only of an agent that is not asked in vain; of the instruction
# that was executed last nothing remains.
_HOW = {"agent_next", "woken", "look_left", "leave_at", "time_slice", "look_every", "loaded"}
_LAST = {
    "core",
    "turn_pc",
    "turn_cycles",
    "turn_yield",
    "turn_given",
    "stored",
    "left",
    "stop_kind",
}
# Cycles from which something can be used again: those that are over are all alike.
_SINCE = {"core_ready": 1, "core_load": 16, "core_store": 16, "l1_port": 16}
VISIBLE = [name for name in COMPARED if name not in _HOW | _LAST]


def seen(tile: Any) -> dict[str, Any]:
    """What can be seen of a tile, by name; slow agents are drawn when a cycle is looked at."""
    s = tile.state
    with np.errstate(over="ignore"):
        plain(draws.renew)(s)
    found = {name: getattr(s, name).copy() for name in VISIBLE}
    for name, parts in _SINCE.items():
        found[name] = np.maximum(found[name], s.clock[0] * parts)
    return found | {"regs": [core.regs.tolist() for core in tile.core.values()]}


def different(one: Any, other: Any) -> list[str]:
    """What differs between two tiles."""
    a, b = seen(one), seen(other)
    names = [name for name in a if not np.array_equal(a[name], b[name])]
    return [f"{name}: {a[name]} {b[name]}" for name in names]


def compared(machines: list[Any]) -> None:
    """Two machines are the same in all that can be seen."""
    one, other = ([(t.xy, t) for t in machine.tiles_made()] for machine in machines)
    assert [xy for xy, _ in one] == [xy for xy, _ in other]
    for (xy, a), (_, b) in zip(one, other, strict=True):
        assert different(a, b) == [], xy
    pages = [getattr(getattr(machine, "network", None), "pages", {}) for machine in machines]
    assert sorted(pages[0]) == sorted(pages[1])
    assert all(np.array_equal(pages[0][at], pages[1][at]) for at in pages[0])
    assert machines[0].clock == machines[1].clock


def executes_all(machine: Any) -> Any:
    """No core of the machine sleeps in its loop from now on."""
    for tile in machine.tiles_made():
        tile.state.count_passes[0] = tile.backend.polling.counted[:] = 0
    return machine


def left_out(machine: Any) -> int:
    """Instructions that were left out."""
    return sum(int(tile.backend.polling.counted.sum()) for tile in machine.tiles_made())


def both(machines: list[Any], **how: Any) -> str:
    """Run both: the outcome is one, and so is the state."""
    one, other = (outcome(machine, **how) for machine in machines)
    assert one == other
    compared(machines)
    assert left_out(machines[1]) == 0
    return one


def launched(name: str, **options: Any) -> list[Any]:
    """A program of elfs/ twice: with passes left out, with all executed."""
    program = Program.load(ELFS / name)
    return [program.launch(**options), executes_all(program.launch(**options))]


@pytest.mark.parametrize("name", TILES + CHIPS)
def test_programs(name: str) -> None:
    total = 0
    for way in WAYS:
        machines = launched(name, **way)
        both(machines)
        total += left_out(machines[0])
    assert total > 0 or name not in CHIPS


@pytest.mark.parametrize("name", CHIPS)
def test_programs_in_pieces(name: str) -> None:
    """Limits hit every place of a pass, and of the windows of a chip."""
    for seed in SEEDS:
        dice = random.Random(f"{name} {seed}")
        machines = launched(name, late=seed)
        while both(machines, limit=dice.choice((1, 3, 30, 300, 3000))).startswith("limit"):
            pass


@pytest.mark.parametrize("name", CASES)
def test_golden_cases(name: str) -> None:
    case = golden_case.load(name)
    for way in WAYS if LONG else WAYS[:2]:
        tiles = [golden_case.start(case, **way), executes_all(golden_case.start(case, **way))]
        both(tiles, until=golden_case.DONE)


@pytest.mark.parametrize("name", golden_noc.names())
def test_golden_cases_of_chips(name: str) -> None:
    case = golden_noc.load(name)
    for way in WAYS if LONG else WAYS[:2]:
        chips = [Chip(**way), Chip(**way)]
        for chip in chips:
            golden_noc.put(case, chip)
        executes_all(chips[1])
        for chip in chips:
            golden_noc.release(case, chip)
        both(chips, until=case.done)


def poke(tiles: list[Any], r: random.Random) -> None:
    """What a host may do between two runs."""
    at, value = r.choice((FLAGS + 4 * r.randrange(5), DATA, STREAM + 0x2000)), r.randrange(20)
    for tile in tiles:
        tile.write32(at, value)


def test_random_pollers() -> None:
    """In pieces of random length, with a host that writes what they read, breakpoints and steps."""
    total = 0
    for seed in range(200 if LONG else 12):
        r = random.Random(seed)
        way = {"timing": "model"} if seed % 4 == 0 else {"late": seed}
        texts = programs(r.randrange(1 << 30), 20)
        tiles = [Tile(ub="silicon", livelock=0, **way) for _ in range(2)]
        executes_all(tiles[1])
        for tile in tiles:
            start(tile, texts)
        for _ in range(25):
            if not both(tiles, limit=r.choice((1, 10, 333, 5000, 30_000))).startswith("limit"):
                break
            if r.random() < 0.2:
                poke(tiles, r)
            if r.random() < 0.2:
                core = r.choice(CORE_NAMES)
                point = max(int(tiles[0].core[core].pc) + 4 * r.randrange(-2, 3), 0)
                for tile in tiles:
                    tile.break_at(core, point)
                both(tiles, limit=3000)
                for tile in tiles:
                    tile.delete()
            if r.random() < 0.2 and tiles[0].core["brisc"].state == "running":
                n = r.randrange(1, 9)
                assert len({repr(tile.step("brisc", n)) for tile in tiles}) == 1
                compared(tiles)
        total += left_out(tiles[0])
    assert total > 10_000


def loop(address: int, *body: list[int]) -> bytes:
    """`body`, which uses what stands from `address` on, for ever."""
    words = [word for part in body for word in part]
    return code(li(A1, address), words, branch(0, ZERO, ZERO, -4 * len(words)))


LOAD, NEXT = [lw(A0, A1)], [lw(T1, A1, 4)]
USE, USE_NEXT = [addi(A2, A0, 0)], [addi(A2, T1, 0)]
POLLS = {
    "L1": loop(DATA, LOAD, USE),
    "L1 twice": loop(DATA, LOAD, NEXT, USE),
    "L1 apart": loop(DATA, LOAD, USE, NEXT, USE_NEXT),
    "streams": loop(STREAM, LOAD, USE),
    "an NIU": loop(mm.NOC0_BASE + mm.NIU_COUNTERS, LOAD, USE),
    "local memory": loop(mm.LOCAL_BASE, LOAD, USE),
}
BUSY = {
    "loads": loop(DATA + 64, *[LOAD, NEXT] * 9),
    "stores": loop(DATA + 64, *[LOAD, [addi(A0, A0, 1)], [sw(A0, A1)]] * 3),
    "loads apart": loop(DATA + 64, *[LOAD, USE, NEXT, NEXT] * 5),
}


@pytest.mark.parametrize("busy", BUSY)
def test_loads_of_sleeping_cores_take_the_port_of_l1(busy: str) -> None:
    """A core that loads all the time waits for those of others as if they had all their turns."""
    for seed in range(40 if LONG else 8):
        r = random.Random(f"{busy} {seed}")
        chosen = {core: POLLS[r.choice(list(POLLS))] for core in CORE_NAMES}
        chosen[r.choice(CORE_NAMES)] = BUSY[busy]
        way = {"timing": "model"} if seed % 2 else {"late": seed}
        tiles = [Tile(livelock=0, **way), executes_all(Tile(livelock=0, **way))]
        for tile in tiles:
            start(tile, chosen)
        for _ in range(6):
            both(tiles, limit=r.randrange(1, 900))


@pytest.mark.parametrize("polled", POLLS)
def test_every_kind_of_poller_sleeps(polled: str) -> None:
    tile = Tile(livelock=0, timing="model")
    start(tile, {"brisc": POLLS[polled]})
    tile.run(limit=100_000)
    assert (left_out(tile) > 0.9 * tile.core["brisc"].retired) == (polled != "L1 twice")


def test_a_core_wakes_when_another_stores() -> None:
    for delay in (3, 50, 900):
        for at in (DATA, STREAM):
            change = [*li(A0, delay), addi(A0, A0, -1), bne(A0, ZERO, -4), *li(A1, at), sw(A1, A1)]
            polls = code(li(A1, at), lw(A0, A1), branch(0, A0, ZERO, -4), PARK)
            for poller, changer in (("brisc", "ncrisc"), ("ncrisc", "brisc"), ("trisc1", "trisc0")):
                tiles = [Tile(late=3), executes_all(Tile(late=3))]
                for tile in tiles:
                    start(tile, {poller: polls, changer: code(change, PARK)})
                assert both(tiles, limit=20_000).startswith("idle")


def test_a_core_wakes_when_a_word_stores_to_a_register() -> None:
    """STOREREG of a stream register, which trisc2 polls; and a reset of the core that sleeps."""
    words = code(
        tt("SETDMAREG", payload_sig_sel=7, reg_index_16b=8),
        tt("STOREREG", tdma_data_reg_index=4, reg_addr=(STREAM - 0xFFB00000) // 4 & 0x3FFFF),
        PARK,
    )
    polls = code(li(A1, STREAM), lw(A0, A1), branch(0, A0, ZERO, -4), PARK)
    tiles = [Tile(timing="model", ub="silicon"), executes_all(Tile(timing="model", ub="silicon"))]
    for tile in tiles:
        start(tile, {"trisc2": polls, "trisc0": words})
    both(tiles, limit=20_000)


def test_a_core_wakes_for_what_the_noc_brings() -> None:
    """A tile polls for an answer's bytes in L1, for a counter, and another tile for a reset."""
    soft_reset = mm.DEBUG_BASE + mm.RISCV_DEBUG_REG_SOFT_RESET_0
    for seed in SEEDS:
        chips = [Chip(late=seed), Chip(late=seed)]
        for chip in chips:
            chip.tile[3, 4].write32(DATA, 7)
            read = send(READ, (DATA, hi((3, 4))), (DATA, hi((1, 2))), 64)
            stop = [*li(A1, FLAGS), *li(A0, 0x47800), sw(A0, A1)]
            write = send(WRITE, (FLAGS, hi((1, 2))), (soft_reset, hi((3, 4))), 4)
            put(chip, (1, 2), read, wait(niu.READ_ANSWERS, 1), stop, write, wait(niu.ACKS, 1))
            put(chip, (3, 4), [*li(A1, DATA + 64), lw(A0, A1), branch(0, A0, ZERO, -4)])
        executes_all(chips[1])
        for _ in range(20):
            if not both(chips, limit=random.Random(seed).randrange(1, 500)).startswith("limit"):
                break


def test_what_is_compared_afterwards_loads_without_effect() -> None:
    """The windows that polling.py looks into declare it, and the addresses are theirs."""
    for window in (debug_regs.OVERLAY_WINDOW, niu.NOC0, niu.NOC1):
        assert window.load_effect is Effect.NONE
        assert all(register.effect is Effect.NONE for register in window.registers)
        for address in (window.low, window.high - 4):
            assert polling._is_known(0, address)
    windows = sorted(
        (window.low, window.high) for window in (debug_regs.OVERLAY_WINDOW, niu.NOC0, niu.NOC1)
    )
    assert windows[0][1] == windows[1][0] and windows[1][1] == windows[2][0]
    for other in (windows[0][0] - 4, windows[2][1], mm.DEBUG_BASE, mm.PC_BUF_BASE):
        assert not polling._is_known(0, other)


def test_who_asks_where_a_sleeping_core_is_finds_it_there() -> None:
    """The snapshots of pcs, loaded by another core and by LOADREG."""
    place = mm.PC_SNAPSHOT_BASE
    steps = [
        [lw(T1, A1), sw(T1, A0), addi(A0, A0, 4), *[addi(A2, A2, 1)] * (i % 7)] for i in range(40)
    ]
    looks = [*li(A0, DATA + 64), *(word for step in steps for word in step), PARK]
    loads = tt("LOADREG", tdma_data_reg_index=4, reg_addr=(place - 0xFFB00000) // 4)
    later = [[loads, *[tt("NOP")] * (13 + i % 7)] for i in range(30)]
    words = code([word for part in later for word in part], PARK)
    found: dict[str, set[int]] = {"ncrisc": set(), "trisc1": set()}
    for core, text in {"ncrisc": code(li(A1, place), looks), "trisc1": words}.items():
        for way in ({"timing": "model"}, {"late": 4}):
            tiles = [Tile(livelock=0, **way), executes_all(Tile(livelock=0, **way))]
            for tile in tiles:
                start(tile, {"brisc": POLLS["L1"], core: text})
            for _ in range(60):
                both(tiles, limit=13)
                found["trisc1"].add(int(tiles[0].state.gpr[1, 4]))
            stored = np.frombuffer(tiles[0].read(DATA + 64, 160), "<u4")
            found["ncrisc"] |= set(stored.tolist())
    assert all(len(pcs) > 2 for pcs in found.values())


def test_a_function_that_a_run_calls_finds_cores_where_they_stand() -> None:
    seen: list[list[tuple[int, int]]] = []
    for executed in (False, True):
        tile, looks = Tile(late=2, livelock=0), list[tuple[int, int]]()
        if executed:
            executes_all(tile)
        start(tile, {"brisc": POLLS["L1"], "trisc0": loop(DATA, [tt("NOP")])})
        core = tile.core["brisc"]
        tile.on_word("NOP", lambda word: looks.append((core.pc, core.retired)))  # noqa: B023
        tile.run(limit=3000)
        seen.append(looks)
    assert seen[0] == seen[1]
    assert len(set(seen[0])) > 100
