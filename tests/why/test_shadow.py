"""The shadow of contents: who uses a place before it is written, who writes it, what decides."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from corpus import Line, folder, store

import bhemu.tensix.units  # noqa: F401  (declares the instructions)
from bhemu.launch import Program
from bhemu.riscv.assembly import A0, A1, li, lw, tt
from bhemu.tensix.insn import Instruction, assemble, instructions
from bhemu.tensix.state import DTYPE, OFFSET
from bhemu.why.order import describe
from bhemu.why.order.observe import Observer
from bhemu.why.order.record import TOUCHED
from bhemu.why.unwritten.trials import Fill, Trials

READ, MADE, BOTH = 0x20000, 0x20100, 0x20200
START = 0x10000  # of trisc0


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of a kernel that loads, stores, stores and loads, and moves a GPR and an LReg."""
    load, load_both = [*li(A0, READ), lw(A1, A0)], [*li(A0, BOTH), lw(A1, A0)]
    words = [tt("SFPLOADI", lreg_ind=1), tt("SFPMOV", lreg_c=2, lreg_dest=3)]
    kernel: list[Line] = [load, store(MADE, 1), store(BOTH, 2), load_both, *words]
    path = folder(tmp_path_factory.mktemp("p") / "p", {"trisc0": kernel})
    tile = Program.load(path).launch(engine="compiled")
    observer = Observer(tile)
    tile.run("idle")
    return observer.record


def actor(record: Any, number: int) -> int:
    """The pc of an actor; 0: nobody."""
    return int(record.actor[number - 1, 0]) if number else 0


def test_a_word_has_the_user_that_came_before_its_maker(record: Any) -> None:
    users = [actor(record, int(record.user[at >> 2])) for at in (READ, MADE, BOTH)]
    makers = [actor(record, int(record.maker[at >> 2])) for at in (READ, MADE, BOTH)]
    assert [bool(one) for one in users] == [True, False, False]
    assert [bool(one) for one in makers] == [False, True, True]
    assert START < users[0] < makers[1] < makers[2]


def test_lregs_are_used_and_made_one_by_one(record: Any) -> None:
    at = [(OFFSET["lreg"] + 128 * n) >> 2 for n in range(4)]
    assert [record.user[one] > 0 for one in at] == [False, False, True, False]
    assert [record.maker[one] > 0 for one in at] == [False, True, False, True]


@pytest.mark.parametrize("cls", instructions().values(), ids=lambda cls: cls.name)
def test_all_that_a_word_is_declared_to_touch_has_room(cls: type[Instruction]) -> None:
    for fields in (0, *(f.mask for f in cls.fields), sum(f.mask for f in cls.fields)):
        values = cls.operands(cls.opcode << 24 | fields)
        for clause in (cls.reads, cls.writes):
            ranges = {one for term in clause.of(values) for one in describe._ranges(term, values)}
            assert len(describe._joined(sorted(ranges))) <= TOUCHED


def test_a_gpr_is_that_of_the_thread_that_reads_it() -> None:
    reads, _ = describe.touched(assemble("WRCFG", gpr_address=5))
    at, size, of_thread, _ = next(one for one in reads.tolist() if one[0] >= OFFSET["gpr"])
    assert (at, size, of_thread) == (OFFSET["gpr"] + 20, 4, DTYPE["gpr"].itemsize // 3)


@pytest.mark.parametrize("needed", [{2}, {0, 4}, {1, 2, 3}])
def test_of_many_parts_those_are_found_that_decide_together(needed: set[int]) -> None:
    parts = [Fill(np.array([n]), np.array([n], np.uint8)) for n in range(6)]
    trials: Any = SimpleNamespace(differs=lambda fill: needed <= set(fill.at.tolist()))
    assert set(Trials.needed(trials, parts)) == needed
