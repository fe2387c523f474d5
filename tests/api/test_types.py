"""A type checker sees the package as a user has it installed: mypy --strict over a user's file."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import bhemu

pytest.importorskip("mypy", reason="mypy comes with the extra dev")

USER = """
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from bhemu import BhemuError, InputError, Program, Snapshot, Stop, Tile, load_elf

tile: Tile = Program.load("elfs/add1").launch(seed=3, ub="warn", xy=(1, 2))
stop: Stop = tile.run([(0x100, 1), ("done", 2)], limit=5, timeout_s=1.5)
again: Stop = tile.run(lambda t: t.clock > 5)
number: int = tile.break_at("trisc1", "main")
tile.delete(number)
registers: npt.NDArray[np.uint32] = tile.core["brisc"].regs
gpr: npt.NDArray[np.uint32] = tile.tensix.gpr
words: list[int] = [word.word for word in tile.trace(5)]
lines: tuple[str, ...] = tile.where()
saved: Snapshot = tile.snapshot()
saved.save("x.npz")
tile.restore(Snapshot.load("x.npz"))
equal: bool = all(result.equal for result in tile.check())
sections: Mapping[str, int] = load_elf("x.elf").sections
try:
    tile.read32("WALL_CLOCK_0")
except InputError as error:
    base: BhemuError = error
    hint: str = error.hint
"""
MISTAKES = {
    'tile.run(limit="5")': "arg-type",
    'tile.core["brisc"].pcs': "attr-defined",
    "tile.tensix.gprs": "attr-defined",
    "tile.steps()": "attr-defined",
    "Program.load(5)": "arg-type",
    'Program.load("x").launch(sed=3)': "call-arg",
    "import bhemu; bhemu.Tiles": "attr-defined",
}


def checked(folder: Path, text: str) -> list[str]:
    """What mypy says about a file, with the package among the installed ones."""
    venv.create(folder / "env", with_pip=False, symlinks=True)
    python = folder / "env" / "bin" / "python"
    installed = next((folder / "env" / "lib").glob("python*/site-packages"))
    paths = [str(Path(bhemu.__file__).parent.parent), sysconfig.get_path("purelib")]
    (installed / "packages.pth").write_text("\n".join(paths))
    (folder / "user.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python)]
    command += ["--config-file=", "--cache-dir", str(folder / "cache"), "user.py"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert result.stderr == ""
    return result.stdout.splitlines()[:-1]


def test_a_users_file_is_clean_and_its_mistakes_are_found(tmp_path) -> None:
    first = USER.count("\n") + 1
    lines = checked(tmp_path, USER + "\n".join(MISTAKES) + "\n")
    found = {}
    for line in lines:
        place, _, rest = line.partition(": error: ")
        if rest:
            found[int(place.split(":")[1])] = rest.rpartition("[")[2].rstrip("]")
    assert found == dict(enumerate(MISTAKES.values(), start=first)), "\n".join(lines)
