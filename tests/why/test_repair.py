"""The check "repair": edits of code and of PROGRAM.toml, and the planted bugs that it finds."""

import os
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import own_programs
import planted
import pytest

from bhemu import Program
from bhemu.program.specs import Until
from bhemu.riscv.assembly import addi, branch
from bhemu.tensix.insn import assemble
from bhemu.why.repair import insertions
from bhemu.why.repair import search as search_module
from bhemu.why.repair.edits import Code, Edit, Site, alternatives, pushes, pushing
from bhemu.why.repair.files import FileEdits
from bhemu.why.repair.instructions import changes
from bhemu.why.repair.instructions import edits as code_edits
from bhemu.why.repair.lines import bounds, scaled
from bhemu.why.repair.search import Search
from bhemu.why.repair.tiles import TomlLines
from bhemu.why.repair.trial import Trials
from bhemu.why.repair.words import word_changes

ROOT = planted.ROOT
BUGS = planted.bugs()
WITH_TWIN = [bug for bug in BUGS if bug.also]
PLANTED, TWINS = BUGS[::40], WITH_TWIN[::4]  # one takes 3 to 60 s
if os.environ.get("BHEMU_LONG"):
    PLANTED, TWINS = BUGS, WITH_TWIN


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_planted_bug(bug: planted.Bug, compiler: ModuleType, tmp_path: Path) -> None:
    """2 points: the first finding names it; 1: another one does; 0: none."""
    made = planted.make(bug, tmp_path / "bug", compiler)
    findings = planted.why(made.folder)
    rank = planted.rank(made, findings)
    found = findings[0]["text"] if findings else "nothing was found"
    assert (0 if rank == 0 else 2 if rank == 1 else 1) >= bug.points, found


@pytest.mark.parametrize("name", sorted({bug.program for bug in BUGS}))
def test_the_corrected_twin(name: str, compiler: ModuleType, tmp_path: Path) -> None:
    path = ROOT / "elfs" / name
    if not path.is_dir():
        path = tmp_path / "twin"
        planted.own(name, path, compiler)
    assert planted.why(path) == []


@pytest.mark.parametrize("bug", TWINS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_corrected_twin_of_its_own(
    bug: planted.Bug, compiler: ModuleType, tmp_path: Path
) -> None:
    assert planted.why(planted.make(bug, tmp_path / "twin", compiler, twin=True).folder) == []


def test_an_unchanged_program_is_right_again_and_again() -> None:
    trials = Trials(Program.load(ROOT / "elfs" / "add1"), 5000)
    assert [trials.is_right() for _ in range(3)] == [True] * 3


def test_an_added_word_executes_and_the_rest_goes_on() -> None:
    search = Search(Program.load(ROOT / "elfs" / "add1"), 5000)
    site = next(one for one in search.parts[0].sites if one.core == 2 and pushes(one))
    held = search.parts[0].code.words[2][site.pc]
    nothing = Edit(2, ((site.pc, (held, addi(0, 0, 0), addi(0, 0, 0))),), "", 1.0)
    unknown = Edit(2, ((site.pc, (held, pushing(0xFF000000))),), "", 1.0)
    assert search.trials.is_right(lambda tile: nothing.apply(tile, 0xE0000))
    assert not search.trials.is_right(lambda tile: unknown.apply(tile, 0xE0000))
    assert search.trials.is_right(lambda tile: None)


def test_no_correct_program_is_changed_by_the_search() -> None:
    program = Program.load(ROOT / "elfs" / "add1")
    tile = program.launch()
    end = tile.run()
    Search(program, tile.clock)
    again = program.launch()
    assert again.run() == end
    assert (again.l1 == tile.l1).all()


def test_a_search_is_bounded_by_its_work_and_repeats_exactly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search_module, "_FILES", 5_000_000)
    found = []
    for _ in range(2):
        search = Search(Program.load(ROOT / "elfs" / "add1"), 5000)
        search.run(20_000_000)
        cures = [(cure.text, cure.where) for cure in search.cures]
        found.append((search.trials.count, search.trials.work.done, cures))
    assert found[0] == found[1]
    assert (
        5_000_000 < found[0][1] < 6_000_000
    )  # the program is right: no cure is looked for further


def test_a_bound_is_counted_in_or_not() -> None:
    less = branch(6, 10, 11, 8)  # bltu a0, a1
    assert dict(changes(less))[branch(7, 11, 10, 8)].endswith("way here: <= instead of <")
    assert dict(changes(branch(7, 11, 10, 8)))[less].endswith("way here: < instead of <=")


def test_values_near_are_tried_before_values_far_away() -> None:
    found = dict(alternatives(6, 8, frozenset({9})))
    assert found[9] < found[7] == found[5] == found[12] == found[3] < found[0x46]
    assert 6 not in found
    assert max(found) <= 255


def test_numbers_of_larger_steps_are_tried() -> None:
    found = dict(alternatives(48, 8))
    assert {64, 32, 16} <= set(found)  # a step more or less, powers of two


def test_a_semaphore_that_nobody_sets_up_is_set_up_next_to_another() -> None:
    site = Site(1, 0x100, None, 0, [assemble("SEMINIT", sem_sel=1, max_value=2)])
    used = Site(1, 0x104, None, 0, [assemble("SEMPOST", sem_sel=2)])
    code = Code({1: {0x100: 0x13, 0x104: 0x13}})
    found = list(insertions.set_up(code, [[site], [used]], [site, used]))
    wanted = pushing(assemble("SEMINIT", sem_sel=2, max_value=2))
    first = min(found, key=lambda edit: edit.cost)
    assert first.code == ((0x100, (0x13, wanted)),)
    both = Site(1, 0x108, None, 0, [assemble("SEMINIT", sem_sel=2, max_value=2)])
    assert not list(insertions.set_up(code, [[site]], [site, used, both]))
    waits = Site(1, 0x104, None, 0, [assemble("SEMWAIT", sem_sel=2, wait_sem_cond=1)])
    assert not list(insertions.set_up(code, [[site], [waits]], [site, waits]))


def test_a_row_of_end_words_is_likely_right() -> None:
    program = Program.load(ROOT / "elfs" / "matmul")
    row = tuple(Until(0x104 + 4 * n, 0xD0E1 + n) for n in range(3))
    run = replace(program.run, until=row)
    edits = FileEdits(Trials(Program(**{**vars(program), "run": run}), 5000))
    assert edits._leaves_row(1, 0x100)
    assert not edits._leaves_row(1, 0x108)
    alone = FileEdits(Trials(program, 5000))
    assert not alone._leaves_row(0, 0x200)


def test_stores_of_a_line_take_their_value_in_another_unit(
    compiler: ModuleType, tmp_path: Path
) -> None:
    planted.own("colsum", tmp_path / "colsum", compiler)
    part = Search(Program.load(tmp_path / "colsum"), 600).parts[0]
    found = list(scaled(part.code, part.sites, part.lines))
    several = [edit for edit in found if len(edit.code) > 1]
    assert several
    for edit in several:
        for pc, (*_, stored) in edit.code:
            word = part.code.words[edit.core][pc]
            assert stored & ~(31 << 20) == word & ~(31 << 20)  # another register, the same place


def test_a_change_of_a_header_is_made_in_all_cores(compiler: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "mail"
    planted.own("mail", path, compiler)
    part = Search(Program.load(path), 600).parts[0]
    every = [
        edit
        for core in part.code.words
        for one in code_edits(part.code, core, part.lines)
        if (edit := part.lines.in_all_cores(one))
    ]
    assert every
    for edit in every:
        made: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        for pc, instead in edit.code:
            core = part.code.owner(pc)
            assert core is not None
            made.setdefault(core, []).append((part.code.words[core][pc], instead))
        assert len(made) > 1
        own = made.pop(edit.core)
        assert all(other == own * (len(other) // len(own)) for other in made.values())
        assert all(len(other) >= len(own) for other in made.values())
        assert str(part.lines.inner(edit.core, edit.at).file).endswith(".h")


def test_operands_of_a_word_are_exchanged() -> None:
    word = assemble("SFPMAD", lreg_dest=2, lreg_src_a=1, lreg_src_b=4, lreg_src_c=0)
    right = assemble("SFPMAD", lreg_dest=2, lreg_src_a=0, lreg_src_b=4, lreg_src_c=1)
    assert right in {other for other, _, _ in word_changes(word, {})}


def test_the_branches_of_a_line_are_changed_together(compiler: ModuleType, tmp_path: Path) -> None:
    path = own_programs.built("ring", tmp_path / "ring", compiler)
    search = Search(Program.load(path), 6000)
    part = search.parts[0]
    edits = list(bounds(part.code, 0, part.lines))
    assert edits
    for edit in edits:
        (at, (kept,)), *constants = edit.code
        assert kept == part.code.words[0][at]
        assert len(constants) > 1
        assert all(words != (part.code.words[0][pc],) for pc, words in constants)


def test_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "PROGRAM.toml"
    path.write_text(
        '[[set]] # first\nat = 1\nvalues = ["u32:1", # one\n  "u32:2",\n  "u32:3"]\n'
        '[[set]]\nvalues = ["u32:4", "u32:5"]\n[run]\nlimit = 3\n'
    )
    lines = TomlLines(path)
    assert [lines.value("set", 0, "values", k) for k in range(3)] == [3, 4, 5]
    assert [lines.value("set", 1, "values", k) for k in range(2)] == [7, 7]
    assert (lines.table("set", 1), lines.key("set", 1, "at"), lines.key("run", 0, "limit")) == (
        *(6, 6, 9),
    )
