"""Our own programs of many tiles: exact by numpy and a bit model, whatever the delivery."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from chip_program import add1, copied, edited, matmul
from matmul_model import matmul as model
from script_module import script

from bhemu.errors import BhemuError
from bhemu.launch import Program
from bhemu.machine.machine import Chip

ROOT = Path(__file__).parents[2]
NAMES = ("copy_dram", "add1_chip", "matmul_mcast", "all_gather")


def ran(path: Path, **options: Any) -> Chip:
    """The chip after the program's own end."""
    chip = Program.load(path).launch(**options)
    assert isinstance(chip, Chip)
    assert chip.run().reason == "until"
    return chip


def bf16(values: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """Patterns of the nearest bf16 values."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def widen(patterns: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    return (patterns.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_what_numpy_says(name: str) -> None:
    chip = ran(ROOT / "elfs" / name)
    (result,) = chip.check()
    assert result.report is not None
    assert result.report.equal, result


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_late_delivery_changes_nothing(name: str, seed: int) -> None:
    """No barrier, no credit and no semaphore is missing in the kernels."""
    chip = ran(ROOT / "elfs" / name, delivery="late", seed=seed)
    assert all(result.equal for result in chip.check())


@pytest.mark.parametrize("quantum", [1, 77])
@pytest.mark.parametrize("name", NAMES)
def test_the_length_of_a_turn_changes_nothing(name: str, quantum: int) -> None:
    chip = ran(ROOT / "elfs" / name, quantum=quantum, poison="ff")
    assert all(result.equal for result in chip.check())


@pytest.mark.parametrize("name", NAMES)
def test_two_threads_give_the_same_bytes_and_clock(name: str) -> None:
    one, two = (ran(ROOT / "elfs" / name, threads=n) for n in (1, 2))
    assert one.clock == two.clock
    for a, b in zip(one.tiles(), two.tiles(), strict=True):
        assert a.xy == b.xy
        assert a.clock == b.clock
        assert a.read(0, 0x180000) == b.read(0, 0x180000)
    assert all(result.equal for result in two.check())


@pytest.mark.parametrize("at", ["5,7", "6-10,2-3", "1-10,2-9"])
def test_add1_on_other_tiles(tmp_path: Path, at: str) -> None:
    """Any values: the sum is fp32, of which bf16 keeps the upper half."""
    x = bf16(np.random.default_rng(5).standard_normal((96, 32 * 27)) * 100)
    y = ((widen(x) + np.float32(1)).view(np.uint32) >> 16).astype(np.uint16)
    chip = ran(add1(tmp_path, at, widen(x), widen(y)))
    assert all(result.equal for result in chip.check())


def product(
    folder: Path, at: str, grid: tuple[int, int], sizes: tuple[int, int, int], phases: int
) -> tuple[Path, npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """A multicast matmul of random numbers: its path, A and B."""
    (rows, columns), (m, k, n) = grid, sizes
    rng = np.random.default_rng(rows + 10 * columns)
    a = bf16(rng.standard_normal((32 * rows * m, 32 * k)))
    b = bf16(rng.standard_normal((32 * k, 32 * columns * n)))
    nothing = np.zeros((a.shape[0], b.shape[1]), np.float32)
    return matmul(folder, at, sizes, widen(a), widen(b), nothing, phases), a, b


def result(chip: Chip, path: Path) -> npt.NDArray[np.uint16]:
    from bhemu.program import tensor

    (spec,) = Program.load(path).outputs
    data = chip.output(spec)[1]
    return tensor.element_bits(data, spec.shape, "bf16").astype(np.uint16)


@pytest.mark.parametrize(
    ("at", "grid", "sizes", "phases"),
    [
        ("4,4", (1, 1), (2, 3, 4), 4),
        ("1-3,5", (1, 3), (1, 5, 2), 2),
        ("16,2-4", (3, 1), (4, 2, 1), 1),
        ("6-11,9-11", (3, 4), (2, 4, 2), 3),  # columns 6 7 10 11
    ],
)
def test_multicast_matmul_is_exact_on_any_grid(
    tmp_path: Path,
    at: str,
    grid: tuple[int, int],
    sizes: tuple[int, int, int],
    phases: int,
) -> None:
    path, a, b = product(tmp_path, at, grid, sizes, phases)
    assert (result(ran(path), path) == model(a, b, phases)).all()


def test_512_by_512_by_512_on_64_tiles(tmp_path: Path) -> None:
    """Every 16th row against the bit model; all of them with BHEMU_LONG=1."""
    path, a, b = product(tmp_path, "1-10,2-9", (8, 8), (2, 16, 2), 4)
    step = 1 if os.environ.get("BHEMU_LONG") else 16
    got = result(ran(path), path)
    assert (got[::step] == model(a[::step], b, 4)).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_argument_does_not_pass_silently(tmp_path: Path, name: str) -> None:
    """A wrong number of pages leaves somebody waiting, a wrong tile gives other data."""
    path = copied(tmp_path, name)
    wrong = {
        "copy_dram": (r'(brisc = .*\n.*)"u32:64"', r'\1"u32:80"'),
        "add1_chip": (r'(brisc = .*\n.*)"u32:16", "u32:16"', r'\1"u32:20", "u32:16"'),
        "matmul_mcast": (r'(ncrisc = .*\n.*)"u32:4", "u32:1"', r'\1"u32:3", "u32:1"'),
        "all_gather": ("tile:next_y", "tile:y"),
    }
    edited(path, wrong[name], (r"limit = 50_000_000", "limit = 3_000_000"))
    chip = Program.load(path).launch()
    try:
        reason = chip.run().reason
    except BhemuError:
        return
    assert reason == "limit" or not all(result.equal for result in chip.check())


def test_the_data_is_what_the_script_makes() -> None:
    for name, values in script("scripts/make_chip_data.py").data(1).items():
        stored = np.load(ROOT / "elfs" / f"{name}.npy")
        assert np.array_equal(stored, values), name


def test_a_harvested_chip_of_seven_banks(tmp_path: Path) -> None:
    """Software sees the columns that are left, and bank numbers without a hole."""
    path = edited(
        copied(tmp_path, "copy_dram"),
        (r"\[\[tile\]\]", "[chip]\nharvest = [2, 15]\ndram_banks = 7\n[[tile]]"),
        (r'"u32:8"', '"u32:7"'),
        (r"dram = \{ address = (\w+) \}", r"dram = { address = \1, banks = 7 }"),
    )
    chip = ran(path)
    assert (len(chip.tile), len(chip.dram)) == (120, 7)
    assert all(result.equal for result in chip.check())
