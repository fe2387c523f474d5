"""The two engines against each other: after every piece of a run nothing may differ.

Excepted is code that one core changes for another that does not invalidate its instruction cache
(docs/internals.md): the programs here change their own, and the host everybody's.
"""

import random
from dataclasses import replace
from pathlib import Path

import golden_case
import pytest
from fuzz.campaign import LONG
from riscv.lockstep.pair import Pair
from riscv.lockstep.programs import STARTS, WORDS, Draw

from bhemu.launch import launch
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.program.schema import load_program

ELFS = Path(__file__).parents[3] / "elfs"
QUANTA = (1, 7, 1000)
SEEDS = range(12)
TRANSLATE = (0, 1, 20, 300)  # instructions of a page that Unicorn leaves to the loop
modes = pytest.mark.parametrize(("quantum", "translate_after"), [(1, 0), (7, 50), (1000, 4096)])
LONG_INSTRUCTIONS = 10_000_000


def load(pair: Pair, seed: int, draw: type[Draw] = Draw) -> None:
    """Five random programs, all cores released."""
    programs = {core: draw((seed, core), core).body() for core in CORE_NAMES}

    pair.tiles[0].state.translate_after[0] = TRANSLATE[seed % len(TRANSLATE)]

    def put(tile: Tile) -> None:
        tile.reset()
        for core, program in programs.items():
            tile.write(STARTS[core], program)
            tile.core[core].set_reset_pc(STARTS[core])
            tile.core[core].release()

    pair.both(put)


def rewrite(pair: Pair, r: random.Random) -> None:
    """The host changes some words of a program."""
    core = r.choice(CORE_NAMES)
    at = STARTS[core] + 4 * r.randrange(10, WORDS)
    word = Draw(r.random(), core).word().to_bytes(4, "little")
    pair.both(lambda tile: tile.write(at, word))


def hold(pair: Pair, r: random.Random) -> None:
    """What stopped is held; after a stop by nobody all are released again."""
    s = pair.tiles[0].state
    stopped = int(s.status_core[0])
    if stopped < 0:
        stopped = r.randrange(5)
    pair.both(lambda tile: tile.core[CORE_NAMES[stopped]].hold())
    if r.randrange(2):
        pair.both(lambda tile: tile.core[CORE_NAMES[stopped]].release())


def follow(pair: Pair, seed: int, pieces: int, most: int) -> int:
    """Run random programs in pieces of 1 to `most` instructions; the clock reached."""
    r = random.Random(seed)
    load(pair, seed)
    for piece in range(pieces):
        one, other = pair.outcomes(limit=r.randint(1, most), resume=True)
        where = f"seed {seed}, piece {piece}: {one}"
        assert one == other, where
        first, second = pair.positions()
        assert first == second, where
        if not one.startswith("limit"):
            assert pair.differences() == [], where
            hold(pair, r)
        if r.randrange(30) == 0:
            rewrite(pair, r)
    assert pair.differences() == [], f"seed {seed}"
    return pair.tiles[0].clock


@pytest.mark.parametrize("quantum", QUANTA)
def test_random_programs_instruction_by_instruction(quantum: int) -> None:
    pair = Pair(quantum=quantum)
    for seed in SEEDS:
        follow(pair, 1000 * quantum + seed, 60, 1)
        follow(pair, 2000 * quantum + seed, 20, 300)


@pytest.mark.skipif(not LONG, reason="BHEMU_LONG is not set")
def test_a_long_campaign() -> None:
    done, seed = 0, 10_000_000
    pairs = [Pair(quantum=quantum) for quantum in (*QUANTA, 64)]
    while done < LONG_INSTRUCTIONS:
        seed += 1
        done += follow(pairs[seed % 4], seed, 40, random.Random(seed).choice((1, 30, 3000)))


def runs_equal(tiles: list[Tile], translate_after: int, **how: object) -> None:
    """Both run to the same end with the same state."""
    tiles[0].state.translate_after[0] = translate_after
    pair = Pair.__new__(Pair)
    pair.tiles = tiles
    one, other = pair.outcomes(**how)
    assert one == other
    assert pair.differences() == []


GOLDEN = sorted(path.stem for path in golden_case.GOLDEN.glob("*.npz"))


@modes
@pytest.mark.parametrize("name", GOLDEN if LONG else ("core_windows", "sem_ring", "mutex_count"))
def test_golden_cases(name: str, quantum: int, translate_after: int) -> None:
    case = golden_case.load(name)
    tiles = [golden_case.start(case, engine=e, quantum=quantum) for e in ("unicorn", "compiled")]
    runs_equal(tiles, translate_after, until=golden_case.DONE, limit=20_000_000)


PROGRAMS = sorted(
    path.parent.name
    for path in ELFS.glob("*/PROGRAM.toml")
    if load_program(path).is_alone  # tests/noc runs those of a chip on both engines
)


@modes
@pytest.mark.parametrize("name", PROGRAMS if LONG else ("add1", "hang_cycle"))
def test_programs_of_elfs(name: str, quantum: int, translate_after: int) -> None:
    program = load_program(ELFS / name)
    runs = [program.run.with_options({"engine": engine}) for engine in ("unicorn", "compiled")]
    tiles = [launch(replace(program, run=run), quantum=quantum) for run in runs]
    until = [(at, value) for _, at, value in tiles[0].loop.end.words] or None
    limit = 2_000_000 if quantum == 1 else 20_000_000
    runs_equal(tiles, translate_after, until=until, limit=limit)
