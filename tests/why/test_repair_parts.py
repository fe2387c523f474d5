"""Edits of code that several parts of a program have, and that firmware calls."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import planted
import pytest

from bhemu import Program
from bhemu.errors import Where
from bhemu.program.specs import CoreSpec, TileSpec
from bhemu.riscv.assembly import A0, SP, addi, jal, lw, sw
from bhemu.why.repair import tiles
from bhemu.why.repair.copies import Copies
from bhemu.why.repair.cures import Cure, best
from bhemu.why.repair.edits import KEPT, Code, Edit, keeping
from bhemu.why.repair.search import SURE, Search
from bhemu.why.repair.tiles import other_elfs

S11 = 27
ADD1_CHIP = planted.ROOT / "elfs" / "add1_chip"


@pytest.fixture(scope="module")
def search(compiler: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Search:
    """blend: of its two parts only brisc's kernels differ, so that all others lie elsewhere."""
    folder = tmp_path_factory.mktemp("parts") / "blend"
    planted.own("blend", folder, compiler)
    return Search(Program.load(folder), 60_000)


def test_an_edit_moves_with_the_code_to_another_part(search: Search) -> None:
    one, other = search.parts
    copies = Copies(one.tile, one.code, other.tile, other.code)
    moved = {
        core: [
            (pc, copies.moved(Edit(core, ((pc, (addi(0, 0, 0),)),), "", 1.0)))
            for pc in one.code.words[core]
        ]
        for core in (0, 1)
    }
    assert [edit for _, edit in moved[0]] == [None] * len(moved[0])  # not the same kernel
    there = [(pc, edit) for pc, edit in moved[1] if edit is not None]
    assert len(there) > 0.8 * len(moved[1])  # but for addresses, which the loader has changed
    for pc, edit in there:
        assert other.code.words[1][edit.at] == one.code.words[1][pc]
        assert edit.at != pc


def test_a_line_of_both_parts_is_changed_in_both_and_tried_once(search: Search) -> None:
    one, other = search.parts
    pc = min(one.code.words[1])
    changed = search.changes(one, Edit(1, ((pc, (addi(A0, 0, 1),)),), "", 1.0))
    assert sorted(changed) == [one.number, other.number]
    assert any(number == other.number for number, _ in search._tried)


def test_the_instructions_of_no_core_come_after_all_of_another(search: Search) -> None:
    part = search.parts[0]
    edits = next(islice(part._of_cores(), 1, None))
    first = {edit.core for edit in islice(edits, 400)}
    assert first >= {1, 2, 3, 4}


def test_what_is_added_keeps_the_registers_of_the_caller() -> None:
    words = (addi(S11, 0, 7), sw(S11, A0, 0))
    kept = keeping(Edit(1, ((0x100, words),), "", 1.0), KEPT).code[0][1]
    assert kept == (sw(S11, SP, -4), *words, lw(S11, SP, -4))
    free = (addi(A0, 0, 7), sw(A0, SP, 0))
    assert keeping(Edit(1, ((0x100, free),), "", 1.0), KEPT).code[0][1] == free
    jumps = (addi(S11, 0, 7), jal(0, 8))
    assert keeping(Edit(1, ((0x100, jumps),), "", 1.0), KEPT).code[0][1] == jumps
    frame = (addi(SP, SP, -16), addi(S11, 0, 7))
    assert keeping(Edit(1, ((0x100, frame),), "", 1.0), KEPT).code[0][1] == frame


def test_free_registers_that_a_caller_does_not_keep_come_last() -> None:
    every = {4 * n: addi(n, n, 0) for n in range(32) if n not in (8, 9, 17, 27)}
    assert Code({0: every}).free_registers(0) == [8, 9, 27, 17]


def _argument_costs(*given: str) -> dict[str, float]:
    names = ("brisc", "trisc0", "trisc1", "trisc2")
    cores = {
        name: CoreSpec(name, Path("x.elf"), args=("u32:7", value))
        for name, value in zip(names, given, strict=False)
    }
    part = TileSpec(at=((1, 2),), cores=cores)
    program = Program.load(ADD1_CHIP)
    return dict(tiles._others(program, part, "trisc2", 1))


def test_an_argument_that_all_others_have_is_likeliest() -> None:
    alike = _argument_costs("u32:3", "u32:3", "u32:3", "u32:9")
    assert alike["u32:3"] == tiles.AS_OTHERS
    assert min(_argument_costs("u32:3", "u32:3", "u32:9", "u32:9").values()) > tiles.AS_OTHERS
    assert min(_argument_costs("u32:3", "u32:4", "u32:5", "u32:9").values()) > tiles.AS_OTHERS


def test_as_many_as_a_tensor_has_pages_is_likely_meant() -> None:
    pages = _argument_costs("u32:1", "u32:2", "u32:3", "u32:16")  # of add1_chip's tensors
    others = _argument_costs("u32:1", "u32:2", "u32:3", "u32:9")
    assert others["u32:10"] <= SURE < pages["u32:17"]


class _Machine:
    """Trials that find arguments in L1 nowhere or twice; `launched`: programs of other launches."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.launched: list[Program] = []

    def is_right(self, change: Any = None, part: int = 0) -> bool:
        if change is not None:
            tile = SimpleNamespace(xy=(1, 2), state=SimpleNamespace(l1=np.zeros(64, np.uint8)))
            change(tile)
        return True

    def of(self, program: Program) -> "_Machine":
        self.launched.append(program)
        return self


def test_arguments_that_are_not_found_in_memory_are_given_to_another_launch() -> None:
    program = Program.load(ADD1_CHIP)
    core = CoreSpec("trisc1", Path("x.elf"), args=("u32:0",))
    part = replace(program.tiles[0], cores={"trisc1": core})
    program = replace(program, tiles=(part,))
    machine: Any = _Machine(program)
    assert tiles._put(machine, 0, core, ("u32:3",))()
    (other,) = machine.launched
    assert other.tiles[0].cores["trisc1"].args == ("u32:3",)


def _cores(folder: Path, **elfs: str) -> dict[str, CoreSpec]:
    return {name: CoreSpec(name, folder / elf) for name, elf in elfs.items()}


def test_a_core_with_the_elf_of_another_one_gets_its_own(tmp_path: Path) -> None:
    (tmp_path / "ncrisc.elf").touch()
    twice = other_elfs(_cores(tmp_path, brisc="brisc.elf", ncrisc="brisc.elf"), 1.4)
    assert [one.names for one in twice] == [("ncrisc",)]
    assert twice[0].cores["ncrisc"].elf == tmp_path / "ncrisc.elf"
    assert twice[0].cores["brisc"].elf == tmp_path / "brisc.elf"
    assert not other_elfs(_cores(tmp_path, trisc0="math.elf", trisc1="math.elf"), 1.4)
    three = _cores(tmp_path, brisc="brisc.elf", ncrisc="brisc.elf", trisc0="ncrisc.elf")
    assert all(len(one.names) == 2 for one in other_elfs(three, 1.4))


def test_two_cores_get_each_other_s_elf_and_the_names_of_the_files_say_how_likely(
    tmp_path: Path,
) -> None:
    cores = _cores(tmp_path, trisc0="trisc1.elf", trisc1="trisc0.elf", trisc2="trisc2.elf")
    first, *others = other_elfs(cores, 1.4)
    assert first.names == ("trisc0", "trisc1")
    assert first.cost < min(one.cost for one in others) == 1.4
    changed = [first.cores[name].elf for name in ("trisc0", "trisc1")]
    assert changed == [tmp_path / "trisc0.elf", tmp_path / "trisc1.elf"]


def _cure(line: int, cost: float, *code: tuple[int, int]) -> Cure:
    edit = Edit(1, tuple((pc, (word,)) for pc, word in code), "", cost)
    return Cure(Where(core="trisc0", file="a.c", line=line), "", cost, edit)


def test_a_change_that_holds_another_one_and_more_is_not_shown() -> None:
    alone, more = _cure(5, 1.8, (0x100, 7)), _cure(9, 1.7, (0x100, 7), (0x200, 8))
    other = _cure(12, 1.9, (0x100, 6), (0x200, 8))
    assert best([more, alone, other]) == [alone, other]
    assert best([more, other]) == [more, other]
