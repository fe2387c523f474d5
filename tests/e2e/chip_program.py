"""Programs of many tiles in a folder of a test: those of elfs/ with other sizes, grids and data."""

import re
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).parents[2]
Floats = npt.NDArray[np.float32]


def copied(folder: Path, name: str) -> Path:
    """elfs/<name> as a program of its own; the path of its PROGRAM.toml."""
    shutil.copytree(ROOT / "elfs" / name, folder / name)
    return folder / name / "PROGRAM.toml"


def edited(path: Path, *changes: tuple[str, str]) -> Path:
    """Replace patterns, each of which must occur."""
    text = path.read_text()
    for pattern, value in changes:
        text, count = re.subn(pattern, value, text)
        assert count, f"{pattern} does not occur in {path}"
    path.write_text(text)
    return path


def add1(folder: Path, at: str, x: Floats, expected: Floats) -> Path:
    """add1_chip over any number of bf16 tiles on the tiles `at`."""
    path = copied(folder, "add1_chip")
    np.save(path.parent / "in.npy", x)
    np.save(path.parent / "expected.npy", expected)
    shape = str(list(x.shape))
    pages = f'"tile:count", "u32:{x.size // 1024}"'
    return edited(
        path,
        (r'at = "1-2,2-3"', f'at = "{at}"'),
        (r"shape = \[128, 128\]", f"shape = {shape}"),
        (r'"tile:count", "u32:16"', pages),
    )


def matmul(
    folder: Path, at: str, sizes: tuple[int, int, int], a: Floats, b: Floats, c: Floats, phases: int
) -> Path:
    """matmul_mcast on the grid `at`: sizes are tiles of C per core and steps of K (m, k, n)."""
    path = copied(folder, "matmul_mcast")
    for name, array in (("a", a), ("b", b), ("expected", c)):
        np.save(path.parent / f"{name}.npy", array)
    m, k, n = sizes
    edited(
        path,
        (r'at = "1-2,2-3"', f'at = "{at}"'),
        (r'"u32:1", "u32:4", "u32:1", "tile:row"', f'"u32:{m}", "u32:{k}", "u32:{n}", "tile:row"'),
        (r'"u32:8", "u32:4"', f'"u32:8", "u32:{phases}"'),
        (r"shape = \[64, 128\]", f"shape = {list(a.shape)}"),
        (r"shape = \[128, 64\]", f"shape = {list(b.shape)}"),
    )
    text = path.read_text()
    for at_l1, pages in (("0x30080", 2 * m), ("0x40080", 2 * n), ("0x50080", m * n)):
        text, count = re.subn(rf"at = {at_l1}\npages = \d+", f"at = {at_l1}\npages = {pages}", text)
        assert count == 1
    path.write_text(text)
    return path
