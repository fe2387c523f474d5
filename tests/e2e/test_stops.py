"""add1 run free, with breakpoints everywhere and in small pieces: L1, counters, trace are the same.

Under one quantum everything is equal, the order between threads included; between quanta the words
of each thread, their results and the counts of every core that does not poll are.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bhemu
from bhemu.machine.tile import Tile

ADD1 = Path(bhemu.__file__).parent.parent / "elfs" / "add1"
SOURCE, TARGET, TILES = 0x40000, 0xC0000, 1
CORES = ("brisc", "trisc0", "trisc1", "trisc2")
QUANTA = (1, 7, 1000)
MOST_BREAKPOINTS = 16


def started(quantum: int) -> Tile:
    tile = Tile(quantum=quantum)
    for name in CORES:
        image = tile.core[name].load_elf(ADD1 / f"{name}.elf")
    args = image.symbols.address("runtime_args")
    for i, value in enumerate((TILES, 0x3F800000, SOURCE, TARGET)):
        tile.write32(args + 4 * i, value)
    data = np.random.default_rng(3).integers(0, 1 << 16, (TILES, 1024), np.uint16)
    tile.write(SOURCE, data.tobytes())
    tile.state.trace[0] = 1
    tile.core["brisc"].release()
    return tile


def record(tile: Tile) -> dict[str, Any]:
    tile.drain_log()
    s = tile.state
    return {
        "clock": tile.clock,
        "round": int(s.round[0]),
        "retired": [core.retired for core in tile.core.values()],
        "executed": list(s.executed),
        "opcodes": s.op_count.tobytes(),
        "trace": tile.log,
        "l1": bytes(tile.l1),
        "local": s.local.tobytes(),
        "dst": s.dst.tobytes(),
        "regs": [list(core.regs) for core in tile.core.values()],
    }


@functools.cache
def free(quantum: int) -> dict[str, Any]:
    tile = started(quantum)
    assert tile.run(timeout_s=120).reason == "idle"
    return record(tile)


def code_addresses(name: str) -> list[int]:
    """Breakpoints spread over the text of a core, the entry among them."""
    image = Tile().core[name].load_elf(ADD1 / f"{name}.elf")
    text = next(segment for segment in image.segments if not segment.is_local)
    step = max(text.memsz // MOST_BREAKPOINTS, 4) & -4
    return [image.entry + i * step for i in range(MOST_BREAKPOINTS)]


def run_with_breakpoints(tile: Tile) -> int:
    """Stops on the way; every core has as many breakpoints as there can be."""
    s = tile.state
    for name in CORES:
        c = tile.core[name].index
        s.breakpoint[c, :] = code_addresses(name)
        s.breakpoint_count[c] = MOST_BREAKPOINTS
    for stops in range(1_000_000):
        stop = tile.run(timeout_s=120)
        if stop.reason == "idle":
            return stops
        assert stop.reason == "breakpoint"
        s.breakpoint_skip[int(s.agent[0])] = 1
    raise AssertionError("never idle")


@pytest.mark.parametrize("quantum", QUANTA)
def test_breakpoints_everywhere(quantum: int) -> None:
    tile = started(quantum)
    assert run_with_breakpoints(tile) > 50
    assert record(tile) == free(quantum)


@pytest.mark.parametrize("quantum", QUANTA)
def test_one_instruction_or_word_at_a_time(quantum: int) -> None:
    tile = started(quantum)
    stops = 0
    running = True
    while running:
        running = False
        for name in CORES:
            if tile.core[name].state in ("running", "blocked"):
                running = tile.step(name, 1).reason == "step" or running
                stops += 1
        for t in range(3):
            if tile.state.gate_full[t]:
                tile.tstep(t, 1)
    assert tile.run(timeout_s=120).reason == "idle"
    assert stops > 50
    assert record(tile) == free(quantum)


@pytest.mark.parametrize("limit", [1, 37])
@pytest.mark.parametrize("quantum", QUANTA)
def test_clock_limits(quantum: int, limit: int) -> None:
    tile = started(quantum)
    clock = 0
    while (stop := tile.run(limit=limit)).reason == "limit":
        assert stop.clock == clock + limit
        clock = stop.clock
    assert record(tile) == free(quantum)


@pytest.mark.parametrize("look_every", [1, 3])
@pytest.mark.parametrize("quantum", QUANTA)
def test_compiled_code_that_returns_after_every_few_words(quantum: int, look_every: int) -> None:
    tile = started(quantum)
    tile.state.look_every[0], tile.state.time_slice[0] = look_every, 0
    assert tile.run(timeout_s=120).reason == "idle"
    assert record(tile) == free(quantum)


def test_quanta_agree_on_what_each_thread_does() -> None:
    runs = [free(quantum) for quantum in QUANTA]
    for run in runs:
        for key in ("executed", "opcodes", "dst"):
            assert run[key] == runs[0][key]
        assert run["l1"][SOURCE:] == runs[0]["l1"][SOURCE:]
        for t in range(3):
            words = [entry[:4] for entry in run["trace"] if entry[0] == t]
            assert words == [entry[:4] for entry in runs[0]["trace"] if entry[0] == t]


def test_a_different_program_would_be_noticed() -> None:
    tile = started(7)
    tile.write32(SOURCE, tile.read32(SOURCE) ^ 0x4000)
    tile.run(timeout_s=120)
    changed = record(tile)
    assert changed["l1"] != free(7)["l1"]
    assert changed["trace"] == free(7)["trace"]
