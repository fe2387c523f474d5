"""What the author of a new kernel asks of it: from its folder, at the prompt, by wrong names."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from kernel.conftest import call

from bhemu import kernel

pytestmark = pytest.mark.skipif(kernel.zig() is None, reason="ziglang is not installed")
ELFS = Path(__file__).parents[2] / "elfs"


@pytest.fixture
def relu(built: Path, tmp_path: Path) -> Path:
    """A new kernel, built; a copy that may be changed."""
    return shutil.copytree(built, tmp_path / "relu")


def step(program: Path, commands: str) -> Any:
    return call("step", "-q", program, "-x", commands)


def test_the_program_of_the_current_folder_needs_no_name(relu, monkeypatch) -> None:
    monkeypatch.chdir(relu)
    assert "equal (4096 of 4096)" in call("run").stdout
    assert "unchanged" in call("build").stdout
    assert "y[0,0]: " in call("why", "-q", "y[0,0]").stdout
    assert call("why", "-q").stdout.startswith("nothing is wrong")
    assert "nothing wrong" in call("check").stdout
    missing = call("why", "-q", "no/such")
    assert (missing.exit_code, "no/such: no such file" in missing.stderr) == (2, True)
    monkeypatch.chdir(relu.parent)
    assert "no program: name a PROGRAM.toml, go to its folder" in call("run").stderr


def test_a_source_or_tensor_is_no_program_and_the_hint_says_what_is(relu, tmp_path) -> None:
    said = call("run", relu / "math.c").stderr
    assert f"{relu / 'math.c'} is a source of C or assembly, no program" in said
    assert f"bhemu build {relu} compiles it; bhemu run {relu} runs the program there" in said
    assert f"hint: bhemu run {relu} runs" in call("run", relu / "in.npy").stderr
    said = call("run", relu / "x.npy").stderr
    assert "x.npy: no such file" in said and "a program is a PROGRAM.toml, or its folder" in said
    alone = shutil.copy(relu / "in.npy", tmp_path / "x.npy")
    assert "bhemu new NAME --kernel writes a program" in call("why", alone).stderr


def test_quiet_runs_say_in_one_line_that_what_runs_is_old(relu) -> None:
    for name in ("math.c", "pack.c"):
        (relu / name).touch()
    quiet = call("run", "-q", relu)
    assert quiet.stdout == ""
    (line,) = quiet.stderr.splitlines()
    assert "is newer than" in line and line.endswith(f"bhemu build {relu} (and 1 more)")


def test_an_element_that_was_packed_with_the_value_it_had_names_its_pacr(relu) -> None:
    """y[0,3] is 0, and so was L1 before: that changes nothing."""
    first, second, *others = call("why", "-q", relu, "y[0,3]").stdout.splitlines()
    assert "from L1 0x31006" in first
    assert "0x31006: 0x0 -> 0x0" in second and "which it was before" in second
    assert "pack.c:12" in second and "PACR" in second
    assert any("it came over the NoC from in.npy" in line for line in others)


def test_an_element_of_an_output_can_be_watched(relu) -> None:
    """y[3,5] lies in row 3 and column 5 of the first page, which bank 0 of DRAM holds."""
    shown = step(relu, "watch y[3,5]; continue; info watchpoints").stdout
    at = 0x200000 + (3 * 16 + 5) * 2
    assert f"watchpoint 1 set: dram:0:{at:#x}:2" in shown
    assert "writer.c:12" in shown and "hit 1 time\n" in shown
    shown = step(ELFS / "add1", "watch y[0,2]; info watchpoints; info breakpoints").stdout
    assert shown.splitlines()[1:] == ["watchpoint 1: 0xc0004:2"] * 2
    assert "no output is called 'z'" in step(relu, "watch z[0,0]").stderr


def test_unknown_places_and_names_are_refused_with_what_can_be_written(relu) -> None:
    said = step(relu, "watch foo").stderr
    assert "no symbol or register foo" in said and "y[3,5]" in said and "sem:1" in said
    said = step(relu, "break cb_push").stderr
    assert "several cores: trisc2, ncrisc" in said and "break cb_push trisc2" in said
    assert step(relu, "info watchpoints").stdout.endswith("no watchpoints\n")


def test_a_variable_that_is_not_in_scope_is_known_where_it_is(relu) -> None:
    said = step(relu, "print half").stderr
    assert "half is not in scope here; it is a variable of main, math_tile" in said
    inside = "break operation trisc1; continue"
    assert "up selects the caller" in step(relu, f"{inside}; print half").stderr
    assert "half = 0" in step(relu, f"{inside}; up; print half").stdout


def test_a_lane_below_zero_is_below_zero_in_conditions(relu) -> None:
    shown = step(
        relu,
        "watch lreg:0:1 if lreg:0:1 < 0; continue; print lreg:0:1 < 0;"
        " print lreg:0:1 == 0xc0270000; print lreg:0:1 > 0",
    ).stdout
    assert "-> 0xc0270000" in shown
    assert "lreg:0:1<0 = 1" in shown
    assert "lreg:0:1==0xc0270000 = 1" in shown
    assert "lreg:0:1>0 = 0" in shown


def test_a_thread_may_be_named_as_everything_names_it(relu) -> None:
    first = call("trace", relu, "--thread", "1")
    assert first.exit_code == 0
    assert call("trace", relu, "--thread", "T1").stdout == first.stdout
    assert call("trace", relu, "--thread", "T3").exit_code == 2


def test_a_state_that_is_not_there_is_refused_with_the_nearest(relu) -> None:
    for_none = call("dump", relu, "--diff", relu / "x.npz").stderr
    assert "--save STATE.npz writes one" in for_none
    assert call("run", "-q", relu, "--save", relu / "after.npz").exit_code == 0
    assert "did you mean after.npz?" in call("dump", relu, "--diff", relu / "aftr.npz").stderr
