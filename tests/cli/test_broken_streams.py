"""Streams that are closed, full or left, options out of range: an exit code and words."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bhemu.machine.tile import Tile
from bhemu.program.options import LONGEST_TURN
from bhemu.riscv.assembly import EBREAK, PARK, addi, jal

ROOT = Path(__file__).parents[2]
HUGE = "9" * 30
A0 = 10


def shell(arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """The command line `bhemu ARGUMENTS` of a shell, redirections included."""
    return subprocess.run(
        ["sh", "-c", f"{before}{sys.executable} -m bhemu {arguments}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
    )


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [[PARK], [EBREAK]])
def test_a_closed_stream_changes_no_exit_code(redirection, words, write) -> None:
    result = shell(f"run -q {write(*words)} {redirection}")
    assert result.returncode == (0 if words == [PARK] else 6)
    assert "Error" not in result.stderr


def test_a_stepper_without_input_ends_at_once(write) -> None:
    result = shell(f"step {write(PARK)} <&-")
    assert (result.returncode, result.stdout) == (0, "")


def test_output_that_finds_no_room_is_said_and_is_no_success() -> None:
    result = shell("isa >/dev/full")
    assert result.returncode == 2
    assert result.stderr == "error: the output cannot be written: No space left on device\n"
    assert shell("run nosuch.toml 2>/dev/full").returncode == 2


@pytest.mark.parametrize("option", ["--help", "--version", "run --help"])
def test_what_parsing_writes_is_no_exception(option: str) -> None:
    result = shell(f"{option} >/dev/full")
    assert result.returncode == 2
    assert result.stderr == "error: the output cannot be written: No space left on device\n"
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "bhemu", *option.split()]
    left = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    os.close(writer)
    assert (left.returncode, left.stderr) == (141, "")


@pytest.mark.parametrize("command", ["new x", "simulator x"])
def test_a_folder_that_is_gone_is_no_defect(command: str, tmp_path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    result = shell(f"{command}", before=f"cd {gone}; rmdir {gone}; ")
    assert result.returncode == 2
    assert result.stderr.startswith("error: the current folder is gone\n  hint: cd to one")


@pytest.mark.parametrize("option", ["--limit", "--quantum", "--livelock", "--seed"])
def test_a_number_that_no_counter_holds_is_refused(option, write, bhemu) -> None:
    result = bhemu("run", write(PARK), option, HUGE)
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--quantum", "99999999999999999999", "1 to 10000000"),
        ("--quantum", "0", "1 to 10000000"),
        ("--limit", "1e9", f"1 to {(1 << 63) - 1}"),
        ("--threads", "65", "1 to 64"),
    ],
)
def test_a_number_out_of_bounds_is_told_the_bounds(option, value, told, write, bhemu) -> None:
    result = bhemu("run", write(PARK), option, value)
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': {value} is no integer of {told}\n" in result.stderr


def test_what_is_late_ends_after_it_begins(write, bhemu) -> None:
    result = bhemu("run", write(PARK), "--late", "5:packer#5-3")
    assert result.exit_code == 2
    assert "'packer#5-3' counts from 1 up, and 3 comes before 5" in result.stderr


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_a_time_out_that_is_no_time_is_refused(text, write, bhemu) -> None:
    result = bhemu("run", write(PARK), "--timeout", text)
    assert result.exit_code == 2
    assert "'--timeout'" in result.stderr


def test_numbers_of_any_length_are_refused_in_few_words(write, bhemu) -> None:
    """Python itself gives up at 4300 digits."""
    assert bhemu("run", write(PARK), "--until", f"0x100={'9' * 5000}").exit_code == 2
    assert bhemu("run", write(PARK), "--set", f"{'9' * 5000}=u32:1").exit_code == 2


def test_the_largest_counts_are_no_overflow(write, bhemu) -> None:
    most = str((1 << 63) - 1)
    path = write(addi(A0, 0, 1), jal(0, 4), PARK, run=f"limit = {most}\nlivelock = {most}")
    script = f"step 1; step {HUGE}; tstep {HUGE}; continue; continue"
    assert bhemu("step", path, "-x", script).exit_code == 0
    assert bhemu("run", path, "--limit", most, "--livelock", most).exit_code == 0


def test_a_turn_is_short_enough_to_be_interrupted(write, bhemu) -> None:
    """Time-outs and Ctrl-C are noticed between turns."""
    assert Tile(quantum=LONGEST_TURN).state.quantum[0] == LONGEST_TURN
    path = write(addi(A0, A0, 1), jal(0, -4))
    result = bhemu("run", path, "--quantum", LONGEST_TURN, "--livelock", 0, "--timeout", 0.2)
    assert result.exit_code == 7
    assert "[TIMEOUT]" in result.stderr
    longer = bhemu("run", path, "--quantum", LONGEST_TURN + 1)
    assert (longer.exit_code, str(LONGEST_TURN) in longer.stderr) == (2, True)


def test_a_folder_is_no_elf(bhemu, tmp_path) -> None:
    result = bhemu("run", "--core", f"trisc0={tmp_path}")
    assert result.exit_code == 2
    assert "is a folder, not a file" in result.stderr


def test_an_array_is_no_saved_state(bhemu, tmp_path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros(3))
    path.rename(tmp_path / "a.npz")
    result = bhemu("dump", tmp_path / "a.npz")
    assert result.exit_code == 2
    assert "not a saved state: a single array" in result.stderr


def test_the_clock_of_a_limit_counts_the_open_turn(write, report) -> None:
    code, error = report("run", write(addi(A0, A0, 1), jal(0, -4)), "--limit", 10)
    assert (code, error["clock"]) == (7, 10)
