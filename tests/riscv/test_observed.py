"""Cores that are observed: nothing else changes, and every instruction is counted once."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from riscv.lockstep import test_lockstep as lockstep
from riscv.lockstep.pair import Pair

from bhemu import Program, Tile
from bhemu.debug.line_coverage import watching
from bhemu.memmap import CORE_NAMES
from bhemu.riscv import core_loop
from bhemu.riscv.assembly import A0, A1, A2, PARK, ZERO, addi, bne, code, jal, li, lw, sw
from bhemu.riscv.core_loop import PC, READS, WRITES, ObservedRecord

ELFS = Path(__file__).parents[2] / "elfs"
START = 0x10000


def counted(tile: Tile) -> ObservedRecord:
    record = tile.observe_cores()
    record.counts[0] = 1
    return record


def total(record: ObservedRecord, tile: Tile) -> tuple[list[int], list[int]]:
    """Instructions counted, and retired, by core."""
    core_loop.settle(record, tile.state)
    return record.count[:, :, 0].sum(axis=1).tolist(), tile.state.retired.tolist()


def start(*parts: int | list[int], engine: str = "compiled") -> Tile:
    tile = Tile(engine=engine)
    tile.write(START, code(*parts))
    tile.core["trisc1"].set_reset_pc(START)
    tile.core["trisc1"].release()
    return tile


@pytest.mark.parametrize("quantum", [1, 7, 1000])
@pytest.mark.parametrize("tells", [False, True])
def test_random_programs_run_as_if_nobody_looked(quantum: int, tells: bool) -> None:
    told: list[int] = []
    ran = 0
    for seed in range(8):
        pair = Pair(quantum=quantum)
        tile = pair.tiles[0]
        lockstep.load(pair, seed)
        record = tile.observe_cores((lambda *what: told.append(what[1])) if tells else None)
        record.counts[0] = 1
        if tells:
            record.range[0] = 0x1F, PC | READS | WRITES, 0, 1 << 32
            record.ranges[0], record.kinds[0] = 1, PC | READS | WRITES
        r = random.Random(seed)
        for piece in range(12):
            one, other = pair.outcomes(limit=r.choice((1, 5, 300)), resume=True)
            assert one == other, (seed, piece)
            assert pair.positions()[0] == pair.positions()[1], (seed, piece)
            if not one.startswith("limit"):
                lockstep.hold(pair, r)
        assert pair.differences() == [], seed
        found, retired = total(record, tile)
        assert found == retired
        ran += sum(retired)
    assert ran > 500
    if tells:
        assert told.count(PC) >= ran
        assert READS in told and WRITES in told


def test_a_loop_is_counted_by_pc_and_by_the_way_it_went() -> None:
    tile = start(addi(A0, ZERO, 500), addi(A0, A0, -1), bne(A0, ZERO, -4), PARK)
    record = counted(tile)
    tile.run()
    words = record.count[CORE_NAMES.index("trisc1"), START // 4 :][:4].tolist()
    assert words == [[1, 0], [500, 0], [500, 499], [0, 0]]


def test_passes_that_are_not_executed_are_counted() -> None:
    """Both cores poll for long: what is skipped counts as if it had been executed."""
    found = []
    for passes in (1, 0):
        tile = Tile(engine="compiled", livelock=0)
        loop = [li(A0, 0x8000), lw(A1, A0), addi(A2, A2, 0), bne(A1, ZERO, 8), jal(0, -12), PARK]
        for core, at in (("trisc0", 0x10000), ("trisc1", 0x12000)):
            tile.write(at, code(*loop))
            tile.core[core].set_reset_pc(at)
            tile.core[core].release()
        tile.state.count_passes[0] = passes
        record = counted(tile)
        tile.run(limit=1_000_003)
        counts, retired = total(record, tile)
        assert counts == retired
        tile.write32(0x8000, 1)
        tile.run()
        assert total(record, tile)[0] == total(record, tile)[1]
        found.append((tile.clock, record.count[:, 0x10000 // 4 : 0x12020 // 4].copy()))
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("add1", {}),
        ("add1", {"quantum": 7}),
        ("add1", {"l0": "model"}),
        ("add1", {"timing": "model"}),
        ("matmul", {"late": 3}),
        ("matmul_mcast", {}),
        ("matmul_mcast", {"threads": 2}),
        ("matmul_mcast", {"timing": "model"}),
        ("add1_chip", {}),
    ],
)
def test_programs_retire_what_is_counted(name: str, options: dict[str, Any]) -> None:
    plain = Program.load(ELFS / name).launch(**options)
    plain.run()
    with watching() as tiles:
        machine = Program.load(ELFS / name).launch(**options)
        machine.run()
    assert machine.clock == plain.clock and all(one.equal for one in machine.check())
    for tile, one in zip(machine.tiles_made(), tiles, strict=True):
        counts, retired = total(one.record, tile)
        assert counts == retired and sum(counts) > 100


def test_what_a_restored_state_had_retired_is_not_counted_again() -> None:
    tile = start(addi(A0, ZERO, 500), lw(A1, A2), bne(A1, ZERO, 8), jal(0, -8), PARK)
    tile.state.livelock[0] = 0
    record = counted(tile)
    tile.run(limit=100)
    here = tile.snapshot()
    tile.run(limit=50_000)
    later = tile.snapshot()
    before = int(record.count[:, :, 0].sum())
    assert before == tile.core["trisc1"].retired
    tile.restore(here)
    tile.restore(later)
    tile.run(limit=10)
    assert record.count[:, :, 0].sum() == before + 10


@pytest.mark.parametrize("engine", ["unicorn", "compiled"])
def test_a_run_that_has_begun_goes_on_in_the_loop_that_counts(engine: str) -> None:
    body = [addi(A1, A1, 1), addi(A0, A0, -1), bne(A0, ZERO, -8)]
    tile = start(li(A0, 30_000), *body, PARK, engine=engine)
    tile.run(limit=50_000)
    before = tile.core["trisc1"].retired
    record = counted(tile)
    assert tile.engine == "compiled"
    tile.run()
    assert tile.core["trisc1"].regs[A1] == 30_000
    assert record.count[:, :, 0].sum() == tile.core["trisc1"].retired - before


def test_accesses_are_told_with_what_was_moved() -> None:
    told: list[tuple[int, ...]] = []
    tile = start(
        *(li(A0, 0x8000), li(A1, 0x1234), sw(A1, A0), lw(A2, A0), lw(ZERO, A0), sw(A1, A0, 16)),
        PARK,
    )
    record = tile.observe_cores(lambda *what: told.append(what))
    record.range[0] = 0x1F, READS | WRITES, 0x8000, 0x8004
    record.ranges[0], record.kinds[0] = 1, READS | WRITES
    tile.run()
    assert told == [(2, way, 0x8000, 4, 0x1234) for way in (WRITES, READS, READS)]


def test_what_the_callback_raises_stops_the_run() -> None:
    def fail(*what: int) -> None:
        raise ZeroDivisionError(what[2])

    tile = start(li(A0, 5), addi(A0, A0, 1), addi(A0, A0, 1), PARK)
    record = tile.observe_cores(fail)
    record.range[0] = 0x1F, PC, START + 4, START + 8
    record.ranges[0], record.kinds[0] = 1, PC
    with pytest.raises(ZeroDivisionError):
        tile.run()
    assert tile.core["trisc1"].pc == START + 4
