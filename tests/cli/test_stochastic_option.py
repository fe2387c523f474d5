"""Stochastic rounding: refused by default, else modelled and said so wherever a run is reported."""

import pytest

from bhemu.riscv.assembly import PARK, tt, ttinsn
from bhemu.tensix.insn import assemble

HAND_OVER = [ttinsn(assemble("UNPACR_NOP", unpacker_select=which) | 7) for which in (0, 1)]
SRND = tt("RMWCIB0", cfg_reg_addr=1, data=1, mask=1)  # ALU_ROUNDING_MODE_Fpu_srnd_en
PROGRAM = [*HAND_OVER, SRND, tt("ELWADD"), tt("ELWADD"), PARK]
RULE = "STOCHASTIC-MODELLED"


def test_it_is_refused_by_default(write, bhemu) -> None:
    result = bhemu("run", write(*PROGRAM))
    assert result.exit_code != 0
    assert "FPU-STOCHASTIC" in result.stderr
    assert "stochastic = SEED" in result.stderr


@pytest.mark.parametrize("value", ["7", "up", "down"])
def test_the_summary_says_that_it_was_modelled(write, bhemu, value: str) -> None:
    result = bhemu("run", write(*PROGRAM), "--stochastic", value)
    assert result.exit_code == 0
    assert f"{RULE}: 2 times" in result.stdout and "not bit-exact" in result.stdout


@pytest.mark.parametrize("value", ["7", '"up"', '"down"'])
def test_so_does_the_json_of_a_program_that_asks_for_it(write, report, value: str) -> None:
    path = write(*PROGRAM, run=f"stochastic = {value}")
    code, shown = report("run", path)
    assert code == 0 and shown["tolerated"] == {RULE: 2}


def test_the_command_line_goes_before_the_program(write, bhemu) -> None:
    path = write(*PROGRAM, run="stochastic = 7")
    assert "FPU-STOCHASTIC" in bhemu("run", path, "--stochastic", "off").stderr


def test_so_does_the_coverage(write, bhemu) -> None:
    result = bhemu("isa", "--coverage", write(*PROGRAM, run="stochastic = 7"))
    lines = [line for line in result.stdout.splitlines() if line.startswith("ELWADD")]
    assert len(lines) == 1 and lines[0].endswith("stochastic (modelled)")


@pytest.mark.parametrize("value", ["nearest", "-1", str(1 << 32), "0x10", ""])
def test_other_words_are_no_model(write, bhemu, value: str) -> None:
    result = bhemu("run", write(*PROGRAM), "--stochastic", value)
    assert result.exit_code == 2 and "stochastic = " in result.stderr
