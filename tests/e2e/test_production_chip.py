"""tt-metal's add1 (reader, compute, writer) from DRAM to DRAM, when its files are at hand.

BHEMU_FIRMWARE_DIR names a folder with the five P100A firmware ELFs, BHEMU_KERNEL_DIR one with the
listings of the add1 example; neither is part of this repository.
"""

from pathlib import Path

import pytest
from production import FIRMWARE, KERNELS, add1

from bhemu.launch import Program
from bhemu.machine.machine import Chip
from bhemu.program.coordinates import tensix

pytestmark = pytest.mark.skipif(
    not (FIRMWARE and KERNELS), reason="BHEMU_FIRMWARE_DIR or BHEMU_KERNEL_DIR is not set"
)


def ran(path: Path, **options: object) -> Chip:
    chip = Program.load(path).launch(**options)
    assert isinstance(chip, Chip)
    assert chip.run(timeout_s=200).reason == "until"
    return chip


@pytest.mark.parametrize("count", [1, 4, 64, 140])
def test_add1_from_dram_to_dram(tmp_path: Path, count: int) -> None:
    every = 140 // count
    tiles = [f"{x},{y}" for x, y in tensix()[::every][:count]]
    chip = ran(add1(tmp_path, tiles))
    (result,) = chip.check()
    assert result.equal, result
    assert len(chip.tiles()) == count


@pytest.mark.parametrize("options", [{"delivery": "late", "seed": 3}, {"threads": 2}])
def test_delivery_and_threads_change_nothing(tmp_path: Path, options: dict[str, object]) -> None:
    chip = ran(add1(tmp_path, ["1,2", "10,7"]), **options)
    assert all(result.equal for result in chip.check())


def test_the_same_kernels_run_without_firmware(tmp_path: Path) -> None:
    """What they expect in local RAM is where their ELFs' symbols say; GO stands in a set."""
    path = add1(tmp_path, ["1,2"], firmware=False)
    text = path.read_text()
    signal = '[[tile.set]]\nat = 0x370\nvalues = ["u32:0x80000000"]\n'
    path.write_text(text.replace("[[tile.buffer]]", signal + "[[tile.buffer]]", 1))
    chip = Program.load(path).launch()
    assert isinstance(chip, Chip)
    assert chip.run(timeout_s=60).reason == "idle"
    assert all(result.equal for result in chip.check())
