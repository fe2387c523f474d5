"""`bhemu diff`: bad input in one line; with the user's library, equal and different programs."""

import json
import os
from pathlib import Path

import pytest

from bhemu.oracle.libttsim import ENVIRONMENT
from bhemu.riscv.assembly import A0, PARK, T0, li, sw

GOLDEN = Path(__file__).parents[1] / "golden"
ELFS = Path(__file__).parents[2] / "elfs"
needs_library = pytest.mark.skipif(
    not os.environ.get(ENVIRONMENT), reason="the library is the user's own"
)
OUTPUT = """[[output]]
name = "c"
at = 0x40000
dtype = "bf16"
layout = "rows"
shape = [2, 16]
"""


def test_a_bad_library_path_is_one_line_and_exit_code_2(bhemu, tmp_path) -> None:
    result = bhemu("diff", "--random", "pack", "--ttsim", tmp_path / "none.so")
    assert result.exit_code == 2
    error, hint = result.stderr.splitlines()
    assert error.endswith("none.so: no such library")
    assert "BHEMU_TTSIM" in hint


def test_a_foreign_library_as_json(bhemu, tmp_path) -> None:
    other = tmp_path / "libttsim.so"
    other.write_bytes(b"\x7fELF not a library")
    result = bhemu("diff", GOLDEN / "gpr_cfg.npz", "--ttsim", other, "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == report["exit_code"] == 2
    assert "not a libttsim.so of Blackhole" in report["message"]


def test_no_library_named(bhemu, monkeypatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    result = bhemu("diff", "--random", "pack")
    assert result.exit_code == 2
    assert "no libttsim.so named" in result.stderr


def test_a_program_or_a_unit(bhemu) -> None:
    for arguments in ((), (GOLDEN / "gpr_cfg.npz", "--random", "pack")):
        result = bhemu("diff", *arguments)
        assert result.exit_code == 2
        assert "name a program, or a unit with --random" in result.stderr


def test_time_goes_with_a_program(bhemu) -> None:
    for flag in ("--late", "--timing"):
        result = bhemu("diff", "--random", "pack", flag, 3)
        assert result.exit_code == 2
        assert f"{flag} goes with a program, not with --random" in result.stderr


@needs_library
@pytest.mark.parametrize("given", [("--late", 3), ("--timing", "model")])
@pytest.mark.parametrize("subject", [GOLDEN / "mm_lofi_bf16.npz", ELFS / "matmul"])
def test_a_late_run_is_compared(bhemu, subject, given) -> None:
    result = bhemu("diff", subject, *given)
    assert result.exit_code == 0, result.stdout
    assert result.stdout.endswith(": equal\n")


@needs_library
@pytest.mark.parametrize("subject", [GOLDEN / "mm_lofi_bf16.npz", ELFS / "add1"])
def test_equal_programs(bhemu, subject) -> None:
    result = bhemu("diff", subject)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip().endswith("equal")


@needs_library
def test_the_first_differing_element_of_an_output_is_named(report, write, bhemu) -> None:
    """The clock low word (RISCV_DEBUG_REG_WALL_CLOCK_0) is different on the two models."""
    words = [*li(T0, 0xFFB121F0), 0x0002A503, *li(T0, 0x40020), sw(A0, T0)]
    end = [*li(T0, 0x100), *li(A0, 0xD0E0), sw(A0, T0), PARK]
    run = "until = [{ word = 0x100, equals = 0xD0E0 }]"
    program = write(words, end, run=run, more=OUTPUT)
    code, found = report("diff", program)
    assert code == 1
    assert found["verdict"] == "different"
    assert "c: " in found["first"][0]
    assert "row 1 column 0" in found["first"][0]
    assert bhemu("diff", program).exit_code == 1


@needs_library
def test_no_second_opinion_says_why(bhemu) -> None:
    """ttsim does not model a core that waits for room in its instruction FIFO."""
    result = bhemu("diff", ELFS / "sfpu")
    assert result.exit_code == 0
    assert "sfpu: no second opinion" in result.stdout
    assert "bhemu: done" in result.stdout
    assert "inst fifo full" in result.stdout


@needs_library
def test_generated_programs(report) -> None:
    code, tally = report("diff", "--random", "sync", "--count", "2", "--seed", "3")
    assert code == 0
    assert tally["verdicts"] == {"equal": 2}
    assert tally["results"] > 1000


@needs_library
def test_a_campaign_is_the_same_for_any_number_of_processes(report) -> None:
    campaign = ("diff", "--random", "accept", "--count", "40", "--seed", "5")
    assert report(*campaign, "--workers", "3") == report(*campaign, "--workers", "1")


@needs_library
def test_a_difference_is_bisected_and_reduced(report, monkeypatch) -> None:
    """Under reference llk the models differ in SFPLOAD and SFPSTORE mode 2."""
    from random_programs import divergences

    monkeypatch.setattr(divergences, "TABLE", ())
    arguments = ("--random", "vector", "--reference", "llk", "--count", "40", "--most", "1")
    arguments += ("--workers", "1")  # processes would read the table anew
    code, tally = report("diff", *arguments)
    assert code == 1
    found = tally["differences"][0]
    assert "SFP" in found["instruction"]
    assert "instr_mod0=0x2" in found["instruction"]
    assert len(found["program"]) <= 3
