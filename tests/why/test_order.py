"""The compiled order: an observed run is the plain run, its pairs are those of a walk."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import golden_case
import numpy as np
import order_compare
import planted
import pytest
import test_mutants
import test_races
from click.testing import CliRunner
from corpus import ROOT, Line, folder

from bhemu.cli import main
from bhemu.launch import Program
from bhemu.riscv.assembly import A0, A1, T0, T1, bne, li, lw, sw, tt
from bhemu.tensix.state import POINTERS
from bhemu.why.order.observe import Observer

ELFS = ["add1", "matmul", "eltwise", "reduce", "sfpu", "llk_like"]
CASES = sorted(path.stem for path in golden_case.GOLDEN.glob("*.npz"))
CASES = CASES if os.environ.get("BHEMU_LONG") else CASES[::6]
_HOW = ("loop_", "count_passes", "profile_", "page_count", "translated", "poll_began", "acted")

# Pairs that the walk, the compiled order finds alone, and who is right.
DIFFERENCES = {
    # A walk keeps 16 pairs, the compiled order 64: the others are of the same kind as the 16.
    "mm_2x3x2_int": (0, 6),
    "half cleared after the computation": (0, 48),
    "math begins with the second half": (0, 16),
    # One store to Config and words of one unit that read it: of two at one wait the compiled order
    # names the first.
    "math sets the formats as it knows them": (1, 0),
}
PLANTED = [
    *("math sets the formats as it knows them", "math writes the other half"),
    *("plain 2: the half is handed over without a wait for the matrix unit",),
    *("next word of Config cleared", "GPR taken over from the host's value"),
    *("the word of the other thread's place", "post does not wait for math"),
]
if os.environ.get("BHEMU_LONG"):
    PLANTED += [
        *("half cleared after the computation", "math begins with the second half"),
        *("packs the halves in the other order", "waits for the vector unit"),
        *("packs what is not handed over", "target row changed while the unpacker writes"),
        *("math thread writes the packer's relu word", "unpacks before Config is written"),
    ]


@pytest.mark.parametrize("name", ELFS)
def test_an_observed_run_is_the_plain_run(name: str) -> None:
    program = Program.load(ROOT / "elfs" / name)
    plain, seen = program.launch(engine="compiled"), program.launch(engine="compiled")
    observer = Observer(seen)
    assert plain.run().reason == seen.run().reason == "until"
    assert plain.clock == seen.clock
    for member, held in plain.state.members():
        if member.name not in POINTERS and not member.name.startswith(_HOW):
            assert np.array_equal(held, getattr(seen.state, member.name)), member.name
    assert observer.rows() == []
    assert observer.record.events[0] > 100


@pytest.mark.parametrize("bug", test_races.BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_the_pairs_of_a_race_are_those_of_a_walk(bug: test_races.Bug, tmp_path: Path) -> None:
    run = f"until = [{{ word = {bug.until}, equals = 1 }}]" if bug.until else ""
    for title, kernels in (("bad", bug.bad), ("good", bug.good)):
        path = folder(tmp_path / title, kernels, outputs={test_races.OUT: 1}, run=run)
        both = order_compare.both(*order_compare.program(path))
        assert both.walked.keys() == both.observed.keys(), both
        assert bool(both.observed) == (title == "bad")


@pytest.mark.parametrize("name", CASES)
def test_the_pairs_of_a_golden_program_are_those_of_a_walk(name: str) -> None:
    case = golden_case.load(name)
    both = order_compare.both(
        lambda: golden_case.start(case, engine="compiled"), until=golden_case.DONE
    )
    assert (len(both.missing), len(both.more)) == DIFFERENCES.get(name, (0, 0)), both


@pytest.mark.parametrize("name", PLANTED)
def test_the_pairs_of_a_planted_bug_are_those_of_a_walk(
    name: str, compiler: ModuleType, tmp_path: Path
) -> None:
    (bug,) = (one for one in planted.bugs() if one.name == name)
    made = planted.make(bug, tmp_path / "bug", compiler)
    both = order_compare.both(*order_compare.program(made.folder))
    assert (len(both.missing), len(both.more)) == DIFFERENCES.get(name, (0, 0)), both
    assert both.observed


def test_a_store_to_config_has_not_taken_place_when_the_next_word_is_pushed(tmp_path: Path) -> None:
    """Of UNPACR right after the stores of its addresses, without a wait for TRISC_CFG."""
    (mutant,) = (one for one in test_mutants.MUTANTS if one["name"] == "bases_without_stallwait")
    path = test_mutants.mutated(tmp_path, mutant)
    both = order_compare.both(*order_compare.program(path))
    assert both.walked.keys() == both.observed.keys() and both.observed, both


def waits_for_gpr(loop: bool) -> list[Line]:
    """A core reads what its thread sets in a GPR, waiting for it or not, and then another GPR."""
    wait = [lw(A1, A0), bne(A1, T1, -4)] if loop else [lw(A1, A0), 0x13]
    done = tt("STALLWAIT", wait_res=1, stall_res=1 << 5)
    return [
        *test_races.gpr(5, 9), done, *test_races.gpr(4, 1), [*li(A0, test_races.GPR + 16)],
        [*li(T1, 1)], wait, [lw(T0, A0, 4)], [*li(A0, test_races.OUT), sw(T0, A0)],
    ]  # fmt: skip


def test_a_gpr_that_a_core_polls_orders(tmp_path: Path) -> None:
    for loop in (True, False):
        path = folder(tmp_path / str(loop), {"trisc0": waits_for_gpr(loop)}, outputs={0x20200: [9]})
        launch, given = order_compare.program(path)
        pairs = order_compare.pairs(order_compare.observed(launch(), given))
        assert {one.kind for one in pairs} == (set() if loop else {"GPR"}), pairs


def test_without_compiled_code_it_is_refused_by_name_and_why_goes_without() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    add1 = str(ROOT / "elfs" / "add1")
    for command, code, told in (
        (("run", "-q", "--check", "races"), 2, "only compiled code can follow the order"),
        (("why", "-q"), 0, ""),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "bhemu", *command, add1],
            capture_output=True, text=True, env=environment,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert told in done.stderr


def test_a_run_that_is_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Observer, "full", property(lambda self: True))
    done = CliRunner().invoke(main, ["check", "-q", "--tool", "order", str(ROOT / "elfs" / "add1")])
    assert done.exit_code == 0
    assert "order is followed up to a part of the run alone: 1 tiles, (1,2)" in done.stderr
