"""The L0 data caches: what a core loads after others have written, on both engines."""

import functools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from riscv.lockstep.pair import Pair
from riscv.lockstep.programs import STARTS, Draw
from riscv.lockstep.test_lockstep import load

from bhemu.errors import InputError
from bhemu.machine.hang import explore
from bhemu.machine.saved import Snapshot
from bhemu.machine.tile import Tile
from bhemu.memmap import LOCAL_BASE
from bhemu.program.schema import ENGINES
from bhemu.riscv import csr
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    A3,
    PARK,
    T0,
    T1,
    T2,
    ZERO,
    addi,
    beq,
    code,
    csrrs,
    csrrw,
    jal,
    lb,
    lhu,
    li,
    lw,
    sw,
    word,
)
from bhemu.riscv.formats import Load, Store
from bhemu.riscv.insn import REGISTRY

DATA, LINE = 0x8000, 16
OLD, NEW = 0x11112222, 0x8899AABB
FENCE, FENCE_TSO, FENCE_I = 0x0FF0000F, 0x8330000F, 0x0000100F
AMOADD_ZERO = word("amoadd.w", ZERO, ZERO, A1)
KEPT = [*li(T0, 1 << 24), csrrs(ZERO, csr.CFG0, T0)]  # no periodic flush
engines = pytest.mark.parametrize("engine", ENGINES)


def prepared(engine: str, *parts: int | list[int], core: str = "trisc1", **options: object) -> Tile:
    """A core that runs `parts`, A1 = DATA, which holds OLD in every word."""
    tile = Tile(engine=engine, l0="model", **options)  # type: ignore[arg-type]
    tile.write(DATA, OLD.to_bytes(4, "little") * 64)
    started(tile, core, [*KEPT, *li(A1, DATA)], *parts)
    return tile


def started(tile: Tile, core: str, *parts: int | list[int]) -> None:
    """The core runs `parts` and parks."""
    tile.write(STARTS[core], code(*parts, PARK))
    tile.core[core].set_reset_pc(STARTS[core])
    tile.core[core].release()


def loads(tile: Tile, core: str = "trisc1", at: int = DATA) -> int:
    """Run up to the load into A2, write NEW at `at`, run to the end: A3."""
    while tile.core[core].regs[A2] == 0:
        tile.step(core)
    tile.write(at, NEW.to_bytes(4, "little"))
    assert tile.run(limit=10_000).reason == "idle"
    return int(tile.core[core].regs[A3])


@engines
@pytest.mark.parametrize("core", STARTS)
def test_what_the_host_writes_is_not_seen(engine: str, core: str) -> None:
    tile = prepared(engine, lw(A2, A1), lw(A3, A1), core=core)
    assert loads(tile, core) == OLD
    number = list(STARTS).index(core)
    assert tile.state.l0_stale[number].tolist() == [1, DATA, tile.core[core].pc - 4]
    assert tile.state.l0_stale.sum(axis=0)[0] == 1


@engines
def test_it_is_off_unless_asked_for(engine: str) -> None:
    tile = Tile(engine=engine)
    tile.restore(prepared(engine, lw(A2, A1), lw(A3, A1)).snapshot())
    tile.state.l0[0] = 0
    assert loads(tile) == NEW
    assert not tile.state.l0_line.any() and not Tile(engine=engine).state.l0[0]


STORE_T1 = [*li(T1, 5), *li(T2, DATA + 12)]


@engines
@pytest.mark.parametrize(
    "between",
    [
        [FENCE],
        [FENCE_I],
        [FENCE_TSO],
        [AMOADD_ZERO],
        [*STORE_T1, sw(T1, T2)],
        [*STORE_T1, sw(T1, T2, 3, 0)],
        [*STORE_T1, sw(T1, T2, 2, 1)],
        [*li(T1, 8), csrrs(ZERO, csr.CFG0, T1)],
        [addi(T1, ZERO, 1), csrrw(ZERO, csr.PMACFG0, T1)],
        [addi(T1, ZERO, 1), csrrw(ZERO, csr.PMACFG0 + 1, T1)],
        [lw(T1, A1, LINE * n) for n in range(1, 5)],
    ],
    ids=(
        "fence fence.i fence.tso amo word byte half cfg0.DisLowCash pmacfg0 pmacfg1 evicted"
    ).split(),
)
def test_what_drops_a_line(engine: str, between: list[int]) -> None:
    assert loads(prepared(engine, lw(A2, A1), between, lw(A3, A1))) == NEW


@engines
@pytest.mark.parametrize(
    "between",
    [
        [*STORE_T1, sw(T1, T2, 4)],
        [lw(T1, A1, LINE * n) for n in range(1, 4)],
        [lw(T1, A1, LINE * n) for n in (1, 2, 3, 1, 2, 3, 1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9)],
        [*li(T1, 0xFFB00100), sw(T1, T1), lw(T1, T1)],
        [addi(T1, ZERO, 2), csrrw(ZERO, csr.PMACFG0, T1)],
        [word("mul", T1, T1, T1), word("cpop", T1, T1)],
    ],
    ids="next_line three_more used_since local_memory reserved_bit others".split(),
)
def test_what_keeps_a_line(engine: str, between: list[int]) -> None:
    assert loads(prepared(engine, lw(A2, A1), between, lw(A3, A1))) == OLD


@engines
def test_a_line_is_16_bytes_and_aligned(engine: str) -> None:
    for at, stale in ((-4, False), (0, True), (12, True), (16, False)):
        tile = prepared(engine, lw(A2, A1, LINE + 4), lw(A3, A1, LINE + at))
        assert loads(tile, at=DATA + LINE + at) == (OLD if stale else NEW), at


@engines
def test_bytes_and_halves_of_a_line(engine: str) -> None:
    bytes_of = [lb(T1, A1, 3), lhu(T2, A1, 2), lb(A3, A1)]
    tile = prepared(engine, lw(A2, A1), bytes_of)
    tile.write(DATA, 0xF1F23344.to_bytes(4, "little"))
    assert loads(tile) == 0x44
    regs = tile.core["trisc1"].regs
    assert (regs[T1], regs[T2]) == (0xFFFFFFF1, 0xF1F2)


@engines
def test_each_core_has_its_own_and_a_store_goes_through(engine: str) -> None:
    """trisc0 holds a line, trisc1 stores to it: L1 has it, trisc0 does not see it."""
    tile = prepared(engine, lw(A2, A1), li(T0, DATA + 64), beq_loop(), lw(A3, A1), core="trisc0")
    flag = [*li(A0, NEW), sw(A0, A1), *li(T0, DATA + 64), sw(A0, T0)]
    tile.write(DATA + 64, bytes(4))
    tile.step("trisc0", 8)
    started(tile, "trisc1", li(A1, DATA), flag, lw(A3, A1))
    assert tile.run(limit=20_000).reason == "idle"
    assert tile.read32(DATA) == NEW == tile.core["trisc1"].regs[A3]
    assert tile.core["trisc0"].regs[A3] == NEW  # the loop has a fence


def beq_loop() -> list[int]:
    """Until the word at T0 is not 0, with a fence."""
    return [FENCE, lw(T1, T0), beq(T1, ZERO, -8)]


@engines
def test_a_poller_without_a_fence_waits_for_a_periodic_flush(engine: str) -> None:
    """The flush comes after about 128 hits; without it, never."""
    hits = []
    for seed in range(8):
        tile = Tile(engine=engine, l0="model", seed=seed)
        started(tile, "brisc", li(A1, DATA), lw(A2, A1), beq(A2, ZERO, -4))
        tile.step("brisc", 4)
        tile.write(DATA, b"\1")
        assert tile.run(limit=100_000).reason == "idle"
        hits.append(int(tile.state.l0_stale[0, 0]))
    assert len(set(hits)) > 4 and 20 < np.mean(hits) < 400
    tile = prepared(engine, lw(A2, A1), lw(A3, A1), beq(A3, A2, -4), jal(ZERO, -8))
    tile.step("trisc1", 20)
    tile.write(DATA, NEW.to_bytes(4, "little"))
    assert tile.run(limit=20_000).reason == "limit"


def test_a_stale_word_proves_no_livelock() -> None:
    """The core polls a line that others have overwritten: a flush could end the loop."""
    tile = Tile(engine="compiled", l0="model")
    started(tile, "brisc", li(A1, DATA), lw(A2, A1), beq(A2, ZERO, -4))
    tile.step("brisc", 4)
    assert explore.explore(tile, 0, 1000) is not None
    tile.write(DATA, b"\1")
    assert explore.explore(tile, 0, 1000) is None


@engines
def test_a_reset_drops_the_lines(engine: str) -> None:
    tile = prepared(engine, lw(A2, A1), lw(A3, A1))
    assert loads(tile) == OLD
    tile.core["trisc1"].hold()
    tile.core["trisc1"].release()
    assert tile.run(limit=10_000).reason == "idle"
    assert tile.core["trisc1"].regs[A3] == NEW


@engines
def test_a_saved_state_holds_the_lines(engine: str, tmp_path: Path) -> None:
    tile = prepared(engine, lw(A2, A1), lw(A3, A1))
    while tile.core["trisc1"].regs[A2] == 0:
        tile.step("trisc1")
    tile.write(DATA, NEW.to_bytes(4, "little"))
    tile.snapshot().save(tmp_path / "state.npz")
    for other in ENGINES:
        again = Tile(engine=other)
        again.restore(Snapshot.load(tmp_path / "state.npz"))
        assert again.run(limit=10_000).reason == "idle"
        assert again.core["trisc1"].regs[A3] == OLD


@engines
def test_counts_and_clock_are_those_without_it(engine: str) -> None:
    """A program that nobody disturbs: only the lines tell."""
    tiles = []
    for l0 in ("off", "model"):
        tile = Tile(engine=engine, l0=l0)
        body = [lw(A2, A1), addi(A2, A2, 1), sw(A2, A1), lw(A2, A1, 64), addi(T1, T1, -1)]
        loop = [*body, beq(T1, ZERO, 8), jal(ZERO, -4 * len(body) - 4)]
        started(tile, "brisc", li(A1, DATA), li(T1, 2000), loop)
        assert tile.run(limit=1_000_000).reason == "idle"
        tiles.append(tile)
    one, other = tiles
    assert one.clock == other.clock and one.core["brisc"].retired == other.core["brisc"].retired
    assert one.read(0, 1 << 16) == other.read(0, 1 << 16)
    assert other.state.l0_uses[0] == 4000


LOADS = [cls for cls in REGISTRY if issubclass(cls, Load)]
STORES = [cls for cls in REGISTRY if issubclass(cls, Store)]


class Sharing(Draw):
    """Programs that load and store a few lines that all cores share, and change how."""

    def register(self) -> int:
        return self.r.randrange(26)  # the others hold addresses, 29 a bit of cfg0

    def values(self) -> list[int]:
        return [self.start, DATA, LOCAL_BASE, 1 << 24, DATA + 64]

    def word(self) -> int:
        r, base, kind = self.r, self.r.choice((27, 27, 27, 28, 30)), self.r.randrange(100)
        if kind < 75:
            cls: Any = r.choice(LOADS if kind < 60 else STORES)
            return int(cls.assemble(self.register(), base, r.randrange(0, 64, cls.size)))
        if kind < 78:
            return r.choice((FENCE, FENCE_I, word("amoadd.w", self.register(), 1, 27)))
        if kind < 81:
            number, value = r.choice(((csr.CFG0, 8), (csr.PMACFG0, 1)))
            turned = word("csrrwi", ZERO, number, r.choice((value, 0, 0, 0)))
            return r.choice((turned, csrrw(ZERO, csr.CFG0, 29)))
        return word("add", self.register(), self.register(), self.register())


@pytest.mark.parametrize("quantum", [1, 7, 1000])
def test_both_engines_go_alike_through_random_programs(quantum: int) -> None:
    pair, stale = Pair(quantum=quantum, l0="model", livelock=0), 0
    for seed in range(6):
        r = random.Random(1000 * quantum + seed)
        load(pair, 1000 * quantum + seed, Sharing)
        for _ in range(30):
            one, other = pair.outcomes(limit=r.choice((1, r.randrange(2000))))
            assert one == other and one.startswith("limit"), f"seed {seed}: {one}"
            first, second = pair.positions()
            assert first == second, f"seed {seed}: {one}"
            at, data = DATA + r.randrange(0, 128, 4), r.randbytes(4)
            pair.both(functools.partial(Tile.write, at=at, data=data))
        assert pair.differences() == [], f"seed {seed}"
        stale += int(pair.tiles[0].state.l0_stale[:, 0].sum())
    assert stale > 20


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InputError, match="l0 = 'on' is not known"):
        Tile(l0="on")
