"""Programs of many tiles on a user's libttsim.so ($BHEMU_TTSIM) and on bhemu, byte for byte."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from bhemu.errors import InputError
from bhemu.launch import launch
from bhemu.oracle import programs
from bhemu.oracle.libttsim import ENVIRONMENT, Library, find
from bhemu.program.schema import load_program
from bhemu.riscv.assembly import A0, A1, PARK, code, li, sw

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(ENVIRONMENT not in os.environ, reason=f"{ENVIRONMENT} is not set")


@pytest.fixture(scope="module")
def library() -> Library:
    return find(None)


@pytest.mark.parametrize("name", ["copy_dram", "add1_chip", "matmul_mcast", "all_gather"])
def test_dram_and_l1_of_every_tile_are_equal(library: Library, name: str) -> None:
    verdict = programs.compare_chip(library, load_program(ROOT / "elfs" / name))
    assert (verdict.verdict, verdict.lines) == ("equal", ())


def image(folder: Path, until: str) -> Path:
    """Two tiles whose brisc stores its own coordinate."""
    start = code(li(A0, 0xD0E0), li(A1, 0x100), sw(A0, A1), PARK)
    (folder / "l1.bin").write_bytes(start)
    path = folder / "PROGRAM.toml"
    path.write_text(
        'bhemu = 1\nkind = "image"\n[[tile]]\nat = "3-4,5"\nimage = { file = "l1.bin" }\n'
        '[tile.cores]\nbrisc = { pc = 0 }\n[[tile.set]]\nat = 0x200\nvalues = ["tile:x"]\n'
        f"[run]\nuntil = {until}\n"
    )
    return path


def test_programs_without_firmware(library: Library, tmp_path: Path) -> None:
    path = image(tmp_path, '[{ tile = "3-4,5", word = 0x100, equals = 0xD0E0 }]')
    assert programs.compare_chip(library, load_program(path)).verdict == "equal"


def test_an_end_that_nothing_shows_is_refused(library: Library, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ends when everything is idle"):
        programs.compare_chip(library, load_program(image(tmp_path, '"idle"')))


def test_a_difference_names_output_and_tile(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another input for bhemu than for ttsim."""
    shutil.copytree(ROOT / "elfs" / "add1_chip", tmp_path / "p")
    program = load_program(tmp_path / "p")

    def changed(*args: object, **options: object) -> object:
        chip = launch(*args, **options)  # type: ignore[arg-type]
        x = np.load(tmp_path / "p" / "in.npy")
        x[97, 70] += 2
        np.save(tmp_path / "p" / "in.npy", x)  # read again for ttsim
        return chip

    monkeypatch.setattr(programs, "launch", changed)
    verdict = programs.compare_chip(library, program)
    assert verdict.verdict == "different"
    assert (
        "y: 1 of 16384 elements differ; first at tile_row 3 tile_column 2 face 0 row 1"
        in (verdict.lines[0])
    )
    assert any(line.startswith("tile (1,3) L1 0x") for line in verdict.lines)
