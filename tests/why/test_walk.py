"""A walk sees every instruction and word of a run, and changes nothing."""

from collections import Counter

import numpy as np
import pytest
from corpus import ROOT

from bhemu import Program, Tile
from bhemu.riscv.asm import branch, code, word
from bhemu.why.ordering.recorder import is_one_of_two
from bhemu.why.walk import Instruction, Walk, Word, where


@pytest.mark.parametrize("name", ["add1", "llk_like"])
def test_a_walk_is_the_run(name: str) -> None:
    program = Program.load(ROOT / "elfs" / name)
    plain, walked = (program.launch(engine="compiled") for _ in range(2))
    retired, executed = plain.state.retired.copy(), plain.state.executed.copy()
    plain.run()
    seen: Counter[tuple[type, int]] = Counter()
    steps: list[Instruction | Word] = []

    def note(step: Instruction | Word) -> None:
        seen[type(step), step.thread if isinstance(step, Word) else step.core] += 1
        steps.append(step)

    assert Walk(walked, instruction=note, after=lambda word, _: note(word)).run()
    assert (walked.l1 == plain.l1).all()
    assert walked.clock == plain.clock
    for c, n in enumerate(plain.state.retired - retired):
        assert seen[Instruction, c] == n
    for t, n in enumerate(plain.state.executed - executed):
        assert seen[Word, t] == n
    assert len({step.clock for step in steps if isinstance(step, Instruction)}) > 100


def test_accesses_and_places() -> None:
    tile = Program.load(ROOT / "elfs" / "add1").launch(engine="compiled")
    steps: list[Instruction] = []
    Walk(tile, instruction=steps.append).run()
    stores = [(one, one.access()) for one in steps]
    done = [one for one, to in stores if to and to.writes and to.address == 0x104]
    assert [one.core for one in done] == [0, 1]  # brisc clears it, trisc0 is done
    place = where(tile, done[-1])
    assert (place.core, place.file) == ("trisc0", "unpack.c")
    assert done[-1].access() is not None
    assert done[-1].access().value == 0xD0E1  # type: ignore[union-attr]


def test_the_state_before_a_word() -> None:
    tile = Program.load(ROOT / "elfs" / "add1").launch(engine="compiled")
    changed = []

    def compare(word: Word, before: np.ndarray) -> None:
        changed.append(bool((tile.state.dst != before).any()))

    assert Walk(tile, before=lambda word: tile.state.dst.copy(), after=compare).run()
    assert len(changed) == tile.state.executed.sum()
    assert any(changed) and not all(changed)


def test_a_load_that_only_orders_is_no_poll() -> None:
    tile = Tile()
    load, keep = word("lw", 10, 11, 0), word("and", 0, 0, 10)  # what x0 is given is nowhere
    other, away = word("lw", 12, 13, 0), branch(0, 12, 0, -16)
    for at, each in ((0x4000, (load, keep, other, away)), (0x5000, (load, other, away))):
        tile.write(at, code(*each))
        assert not is_one_of_two(tile, at)
    both = (load, other, word("sub", 12, 12, 10), branch(0, 12, 0, -16))
    tile.write(0x6000, code(*both))
    assert is_one_of_two(tile, 0x6000)
