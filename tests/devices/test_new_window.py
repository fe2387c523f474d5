"""A window that no hardware has, declared in one new file: the bus and everything else find it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bhemu

PACKAGE = Path(bhemu.__file__).parent
BASE = 0xFFBC0000  # between the MOP configuration and the Dst window
WINDOW = f"""
from typing import Any

from bhemu.devices.bus.window import TRISCS, Effect, Register, Window, inert, not_modelled
from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE


@njit
def load_count(s: Any, c: Any, offset: Any) -> Any:
    s.loaded[0] = s.executed[c - 1] + 1000 * offset
    return DONE


WINDOW = Window(
    *("fictitious counters", {BASE:#x}, {BASE:#x} + 0x100),
    registers=(
        Register("COUNT", 0x10, load_count, None, effect=Effect.CLOCK),
        Register("PLAIN", 0x20),
        inert("NOTHING", 0x30, "it is fictitious", mask=0xFF),
        not_modelled("dreams", 0x40, 0x50),
    ),
    storage="debug",
    agents=TRISCS,
)
"""
LOOK = f"""
import pytest

from bhemu.devices.bus.address_map import INERT, REGISTERS, block_name
from bhemu.errors import InputError
from bhemu.machine.hang import explore
from bhemu.machine.tile import Tile

BASE = {BASE:#x}
assert block_name(BASE + 0x60) == "fictitious counters"
assert block_name(BASE + 0x48) == "fictitious counters: dreams"
assert REGISTERS["COUNT"] == BASE + 0x10 and INERT[BASE + 0x30].name == "NOTHING"

tile = Tile()
tile.state.executed[1] = 7
core = tile.core["trisc1"]
assert core.read32(BASE + 0x10) == 7 + 1000 * 0x10
core.write32(BASE + 0x20, 99)
assert core.read32(BASE + 0x20) == 99
core.write32(BASE + 0x30, 0x1234)
assert core.read32(BASE + 0x30) == 0x34

for access, why in (
    (lambda: core.write32(BASE + 0x10, 0), "read-only register"),
    (lambda: core.read32(BASE + 0x48), "fictitious counters: dreams.* is not modelled"),
    (lambda: core.read32(BASE + 0x60), "is not modelled"),
    (lambda: core.read32(BASE + 0x100), "is not mapped"),
    (lambda: tile.core["brisc"].read32(BASE + 0x20), "no access to the block"),
    (lambda: tile.read32(BASE + 0x20), "no access to the block"),
):
    with pytest.raises(InputError, match=why):
        access()

assert explore.is_clock(BASE + 0x10) and not explore.is_clock(BASE + 0x20)
assert explore.load(tile, 2, BASE + 0x10, 4) is None
accesses = tile.state.inert_count.copy()
assert explore.load(tile, 2, BASE + 0x30, 4) == 0x34
assert (tile.state.inert_count == accesses).all()
with pytest.raises(explore.Escape):
    explore.load(tile, 0, BASE + 0x20, 4)
"""


def test_a_new_window_is_found_by_the_bus_and_by_everything_else(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "bhemu", ignore=shutil.ignore_patterns("__pycache__"))
    text = '"""Counters of nothing."""\n' + WINDOW
    (tmp_path / "bhemu" / "devices" / "fictitious.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", LOOK]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
