"""--l0 and `l0` of [run] and [chip]: the data caches of the cores."""

from pathlib import Path

import numpy as np
import pytest

from bhemu.machine.machine import Chip
from bhemu.program.schema import load_program
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, lw

PROGRAM = [lw(A0, ZERO), lw(A1, ZERO, 4), PARK]


@pytest.mark.parametrize(
    ("run", "flags", "loads"),
    [
        ("", (), 0),
        ("", ("--l0", "model"), 2),
        ('l0 = "model"', (), 2),
        ('l0 = "model"', ("--l0", "off"), 0),
    ],
)
def test_the_command_line_goes_before_the_program(
    write, bhemu, tmp_path, run: str, flags: tuple[str, ...], loads: int
) -> None:
    state = tmp_path / "state.npz"
    result = bhemu("run", write(*PROGRAM, run=run), *flags, "--save", str(state))
    assert result.exit_code == 0, result.stderr
    with np.load(state) as saved:
        assert saved["l0_uses"].sum() == loads


def test_a_chip_may_say_it_too(write) -> None:
    path = Path(write(*PROGRAM))
    text = path.read_text()
    assert load_program(path).l0 == "off"
    path.write_text(text + '\n[chip]\nl0 = "model"\n')
    assert load_program(path).l0 == "model"
    path.write_text(text.replace("[run]", '[run]\nl0 = "off"') + '\n[chip]\nl0 = "model"\n')
    assert "[run]" in text and load_program(path).l0 == "off"


def test_every_tile_of_a_chip_has_them() -> None:
    chip = Chip(l0="model", seed=1)
    one, other = chip.tile[1, 2].state, chip.tile[2, 2].state
    assert one.l0[0] == other.l0[0] == 1
    assert (one.l0_random != other.l0_random).all()
