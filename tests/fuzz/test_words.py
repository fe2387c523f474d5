"""Random Tensix words on all threads: whatever they are, only bhemu's own errors come out."""

import os
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from campaign import LONG, campaign
from hypothesis import example, given
from hypothesis import strategies as st

from bhemu.errors import BhemuError, Internal
from bhemu.jit.subset import JIT
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import describe
from bhemu.memmap import L1_SIZE
from bhemu.riscv.assembly import PARK, code, ttinsn
from bhemu.tensix.insn import Instruction, instructions

STARTS = (0x10000, 0x20000, 0x30000)
BOUNDS = Path(__file__).parent / "bounds.py"
KNOWN = sorted(instructions())


def field_values(width: int) -> st.SearchStrategy[int]:
    """Corners more often than the rest."""
    top = (1 << width) - 1
    return st.one_of(st.sampled_from([0, 1, top, 1 << (width - 1)]), st.integers(0, top))


def known_word(opcode: int) -> st.SearchStrategy[int]:
    cls: type[Instruction] = instructions()[opcode]
    fields = {f.name: field_values(f.max.bit_length()) for f in cls.fields}
    return st.fixed_dictionaries(fields).map(lambda values: cls.assemble(**values))


words = st.one_of(
    st.sampled_from(KNOWN).flatmap(known_word),
    st.sampled_from(KNOWN).flatmap(lambda op: st.integers(op << 24, (op << 24) + 0xFFFFFF)),
    st.integers(0, 0xBFFFFFFF),  # what .ttinsn can hold
)
programs = st.tuples(*(st.lists(words, max_size=12) for _ in range(3)))


def execute(program: Iterable[list[int]], ub: str, seed: int) -> tuple[str, int, bytes]:
    """(outcome in words, clock, L1) of the three threads' words over random operands."""
    tile = Tile(ub=ub)
    tile.write(0x40000, random.Random(seed).randbytes(0x4000))
    for i, thread in enumerate(program):
        tile.write(STARTS[i], code([ttinsn(word) for word in thread], PARK))
        tile.core[f"trisc{i}"].set_reset_pc(STARTS[i])
        tile.core[f"trisc{i}"].release()
    problem: BhemuError | None = None
    outcome = ""
    try:
        outcome = tile.run("idle", limit=100_000, timeout_s=60).reason
    except BhemuError as raised:
        problem, outcome = raised, str(raised)
    if problem is not None:
        assert not isinstance(problem, Internal), outcome
        assert problem.exit_code in (3, 4, 5, 7)
        assert problem.rule
        with pytest.raises(type(problem)) as again:
            tile.run("idle")
        assert str(again.value) == outcome
    assert tile.tensix.dst16.shape == (1024, 16)
    assert tile.l1.shape == (L1_SIZE,)
    return outcome, tile.clock, tile.l1.tobytes()


@given(programs, st.sampled_from(["error", "warn", "silicon"]), st.integers(0, 3))
@campaign(60, 20_000)
def test_only_named_errors_come_out_and_every_run_is_the_same(
    program: tuple[list[int], ...], ub: str, seed: int
) -> None:
    assert execute(program, ub, seed) == execute(program, ub, seed)


@given(words, st.integers(0, 2), st.integers(0, 2**32 - 1))
@example(instructions()[0x41].assemble(ovrd_thread_id=1, addr_cnt_context=3), 2, 0)
@campaign(400, 100_000)
def test_what_a_word_would_do_is_told_whatever_the_state_is(
    word: int, thread: int, seed: int
) -> None:
    tile = Tile()
    numbers = np.random.default_rng(seed)
    tile.state.cfg[:] = numbers.integers(0, 2**32, tile.state.cfg.shape, dtype=np.uint32)
    tile.state.adc[:] = numbers.integers(0, 1 << 8, tile.state.adc.shape)
    assert isinstance(describe(tile, thread, word), str)


@pytest.mark.skipif(not JIT, reason="numpy checks every index in the interpreted mode")
@pytest.mark.skipif(not LONG, reason="compiles everything once more; part of make test-all")
def test_no_index_leaves_its_array(tmp_path: Path) -> None:
    """The same words with numba's bounds check, which is off otherwise."""
    environment = {
        **os.environ,
        "NUMBA_BOUNDSCHECK": "1",
        "BHEMU_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, str(BOUNDS)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "IndexError" not in done.stderr, done.stderr
    assert np.int64(done.stdout) >= 2000
