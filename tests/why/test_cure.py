"""The check "cure": one change of each kind, and where it tells nothing."""

import shutil
from pathlib import Path

import pytest
from corpus import ROOT, Line, checked, folder
from test_races import GPR, SYNC, gpr

from bhemu.riscv.assembly import A0, A1, li, lw, sw, tt
from bhemu.why.checks import cure, named

X, OUT = 0x20000, 0x20200
TOML = "PROGRAM.toml"


def result(number: int, at: int = OUT) -> Line:
    """One line: GPR `number` of the core's thread to L1."""
    return [*li(A0, GPR + 4 * number), lw(A1, A0), *li(A0, at), sw(A1, A0)]


def cured(path: Path) -> tuple[str, int, str] | None:
    """(core or file, line, what is changed) of the one finding of the check."""
    found = checked(path, "cure")
    if not found:
        return None
    (one,) = found
    assert (one["check"], one["severity"], one["victim"]) == ("cure", "note", {})
    who = one["culprit"]
    start, change = one["text"].split(" is changed: ")
    assert start.startswith("the run also ends correctly if ")
    return who["core"] or who["file"], who["line"], change


def words(path: Path, *lines: Line, wanted: int, number: int = 4) -> tuple[str, int, str] | None:
    """The cure of a thread's words, where a GPR is to hold something after them."""
    kernel = [*lines, SYNC, result(number)]
    return cured(folder(path, {"trisc0": kernel}, outputs={OUT: [wanted]}))


def test_a_word_that_is_left_out(tmp_path: Path) -> None:
    again = tt("SETDMAREG", reg_index_16b=8, payload_sig_sel=5)
    found = words(tmp_path / "bug", gpr(4, 77), again, wanted=77)
    assert found == ("trisc0", 2, "SETDMAREG reg_index_16b=0x8 payload_sig_sel=0x5 is left out")


def test_a_field_as_it_stands_elsewhere(tmp_path: Path) -> None:
    found = words(tmp_path / "bug", gpr(5, 77), gpr(4, 76), wanted=77)
    assert found == ("trisc0", 2, "SETDMAREG payload_sig_sel = 0x4d instead of 0x4c")


def test_two_operands_that_are_exchanged(tmp_path: Path) -> None:
    less = tt("SUBDMAREG", result_reg_index=6, op_a_reg_index=5, op_b_reg_index=4)
    found = words(tmp_path / "bug", gpr(4, 9), gpr(5, 5), less, wanted=4, number=6)
    assert found is not None
    assert found[:2] == ("trisc0", 3)
    assert found[2].startswith("SUBDMAREG")


def test_two_lines_that_cure_are_not_told(tmp_path: Path) -> None:
    add = tt("ADDDMAREG", result_reg_index=6, op_a_reg_index=5, op_b_reg_index=4)
    lines = gpr(7, 5), gpr(4, 3), gpr(5, 3), add
    assert words(tmp_path / "bug", *lines, wanted=8, number=6) is None


def test_a_right_program_and_one_without_expected_outputs_are_not_asked(tmp_path: Path) -> None:
    assert words(tmp_path / "right", gpr(4, 77), wanted=77) is None
    kernel: list[Line] = [gpr(4, 77), tt("SFPLUTFP32"), SYNC, result(4)]
    assert cured(folder(tmp_path / "free", {"trisc0": kernel}, outputs={OUT: 1})) is None


@pytest.mark.parametrize(
    ("program", "table", "right", "wrong"),
    [
        ("add1", "[[output]]", 'dtype = "bf16"', 'dtype = "fp32"'),
        ("reduce", "[[input]]", 'layout = "tile32"', 'layout = "rows"'),
    ],
)
def test_a_dtype_or_layout(
    program: str, table: str, right: str, wrong: str, tmp_path: Path
) -> None:
    path, line = changed_file(tmp_path / program, program, table, right, wrong)
    found = cured(path)
    assert found is not None
    assert found[:2] == (TOML, line)
    assert right.replace('"', "") in found[2]


def test_a_layout_of_the_input_or_of_the_output_is_not_told(tmp_path: Path) -> None:
    """Each element of add1 is one of the input: either layout may be the wrong one."""
    given = "[[output]]", 'layout = "tile32"', 'layout = "rows"'
    assert cured(changed_file(tmp_path / "add1", "add1", *given)[0]) is None


def changed_file(path: Path, program: str, table: str, right: str, wrong: str) -> tuple[Path, int]:
    """A copy of elfs/`program` with one line of a table changed, and its number."""
    shutil.copytree(ROOT / "elfs" / program, path)
    before, name, after = (path / TOML).read_text().partition(table)
    assert right in after
    (path / TOML).write_text(before + name + after.replace(right, wrong, 1))
    return path, (before + name + after.partition(right)[0]).count("\n") + 1


def test_a_search_is_bounded_and_repeats_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder(
        tmp_path / "bug", {"trisc0": [gpr(5, 77), gpr(4, 76), SYNC, result(4)]},
        outputs={OUT: [77]},
    )  # fmt: skip
    assert checked(path, "cure") == checked(path, "cure") != []
    monkeypatch.setattr(cure, "_RUNS", 0)
    monkeypatch.setattr(cure, "_MORE", -1)
    assert checked(path, "cure") == []


def test_the_check_has_the_name_of_an_earlier_release_too() -> None:
    assert named("repair") == named("cure")
