"""A walk sees every instruction and word of a run, and changes nothing."""

from collections import Counter

import numpy as np
import pytest
from corpus import ROOT
from order_walk.steps import Executed, StepWalk, Taken

from bhemu import Program, Tile
from bhemu.riscv.assembly import NOP, PARK, branch, code, ttinsn, word
from bhemu.tensix.frontend import FROM_REPLAY
from bhemu.tensix.insn import assemble
from bhemu.why.order.observe import is_one_of_two
from bhemu.why.steps import where


@pytest.mark.parametrize("name", ["add1", "llk_like"])
def test_a_walk_is_the_run(name: str) -> None:
    program = Program.load(ROOT / "elfs" / name)
    plain, walked = (program.launch(engine="compiled") for _ in range(2))
    retired, executed = plain.state.retired.copy(), plain.state.executed.copy()
    plain.run()
    seen: Counter[tuple[type, int]] = Counter()
    steps: list[Executed | Taken] = []

    def note(step: Executed | Taken) -> None:
        seen[type(step), step.thread if isinstance(step, Taken) else step.core] += 1
        steps.append(step)

    assert StepWalk(walked, instruction=note, after=lambda word, _: note(word)).run()
    assert (walked.l1 == plain.l1).all()
    assert walked.clock == plain.clock
    for c, n in enumerate(plain.state.retired - retired):
        assert seen[Executed, c] == n
    for t, n in enumerate(plain.state.executed - executed):
        assert seen[Taken, t] == n
    assert len({step.clock for step in steps if isinstance(step, Executed)}) > 100


def test_accesses_and_places() -> None:
    tile = Program.load(ROOT / "elfs" / "add1").launch(engine="compiled")
    steps: list[Executed] = []
    StepWalk(tile, instruction=steps.append).run()
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

    def compare(word: Taken, before: np.ndarray) -> None:
        changed.append(bool((tile.state.dst != before).any()))

    assert StepWalk(tile, before=lambda word: tile.state.dst.copy(), after=compare).run()
    assert len(changed) == tile.state.executed.sum()
    assert any(changed) and not all(changed)


def test_a_load_that_only_orders_is_no_poll() -> None:
    tile = Tile()
    load, keep = word("lw", 10, 11, 0), word("and", 0, 0, 10)  # what x0 is given is nowhere
    other, away = word("lw", 12, 13, 0), branch(0, 12, 0, -16)
    for at, each in ((0x4000, (load, keep, other, away)), (0x5000, (load, other, away))):
        tile.write(at, code(*each))
        assert not is_one_of_two(tile.state.l1, at)
    both = (load, other, word("sub", 12, 12, 10), branch(0, 12, 0, -16))
    tile.write(0x6000, code(*both))
    assert is_one_of_two(tile.state.l1, 0x6000)


def test_a_played_word_was_pushed_by_its_replay() -> None:
    """However full the FIFO is by the time at which the word leaves its gate."""
    waits = assemble("SEMWAIT", stall_res=0x1FF, wait_sem_cond=1, sem_sel=1)
    count = assemble("SETDMAREG", payload_sig_sel=1, reg_index_16b=2)
    record = assemble("REPLAY", len=2, load_mode=1)
    played = [record, waits, count, assemble("REPLAY", len=2)]
    tile = Tile(engine="compiled")
    tile.write(0x4000, code(*(ttinsn(one) for one in (*played, *[count] * 60)), PARK))
    started = [assemble("SEMINIT", max_value=1, sem_sel=1), *[assemble("NOP")] * 20]
    words = [ttinsn(one) for one in (*started, assemble("SEMPOST", sem_sel=1))]
    tile.write(0x6000, code(*[NOP] * 200, *words, PARK))
    for core, pc in (("trisc0", 0x4000), ("trisc1", 0x6000)):
        tile.core[core].set_reset_pc(pc)
        tile.core[core].release()
    seen: list[Taken] = []
    StepWalk(tile, before=seen.append).run(until="idle")
    replayed = [one for one in seen if one.thread == 0 and one.origin >= FROM_REPLAY]
    assert [one.pushed for one in replayed] == [0x400C, 0x400C]
    assert [one.pc for one in replayed] == [0x4004, 0x4008]
