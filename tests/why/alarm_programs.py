"""Programs that are right, from the golden cases: what the checks must find nothing in."""

import shutil
from pathlib import Path
from typing import Any

import golden_case
import golden_noc
import numpy as np

from bhemu.memmap import L1_SIZE

_STARTS = {"brisc": 0, "ncrisc": 0x8000, "trisc0": 0x10000, "trisc1": 0x20000, "trisc2": 0x30000}
_WINDOW = 0x1000  # places from here on are windows of DRAM


def golden(name: str, folder: Path) -> Path:
    """The golden case as a program in `folder`: an image of L1 in, L1 without the GPRs out."""
    folder.mkdir(parents=True)
    case = golden_case.load(name)
    shutil.copy(golden_case.GOLDEN / f"{name}.npz", folder / "l1.npz")
    lines = _head("l1.npz")
    lines += ["[cores]", *(_core(f"trisc{i}") for i in range(3))]
    for first, end in _without(case.regions, "GPR dump"):
        case.after[first:end].tofile(folder / f"after_{first:x}.bin")
        lines += output(f"l1_{first:x}", f"after_{first:x}.bin", f"at = {first:#x}")
    lines += ["[run]", f"until = [{', '.join(word(*one) for one in golden_case.DONE)}]"]
    return written(folder, lines)


def noc(name: str, folder: Path) -> Path:
    """The golden case of several tiles as a program: images in; L1 and windows of DRAM out."""
    folder.mkdir(parents=True)
    case = golden_noc.load(name)
    starts = dict(case.start)
    lines = _head(None)
    for i, xy in enumerate(case.tiles):
        at = f"{xy[0]},{xy[1]}"
        image(folder / f"l1_{i}.npz", case.before[i])
        lines += ["[[tile]]", f'at = "{at}"', f'image = {{ file = "l1_{i}.npz" }}', "[tile.cores]"]
        lines += [_core(core) for core in starts.get(xy, ())]
        case.after[i].tofile(folder / f"after_{i}.bin")
        lines += output(f"l1_{i}", f"after_{i}.bin", f'at = 0\ntile = "{at}"')
    for i, (_, bank, address, length) in enumerate(case.dram):
        where = f"dram = {{ address = {address}, page = {length}, banks = [{bank}] }}"
        case.before[_WINDOW + i].tofile(folder / f"dram_{i}.bin")
        case.after[_WINDOW + i].tofile(folder / f"dram_after_{i}.bin")
        lines += ["[[input]]", f'file = "dram_{i}.bin"', f"{where}", *_RAW]
        lines += output(f"dram_{i}", f"dram_after_{i}.bin", where)
    words = [word(at, value, f', tile = "{x},{y}"') for (x, y), at, value in case.done]
    return written(folder, [*lines, "[run]", f"until = [{', '.join(words)}]"])


def _without(regions: list[tuple[str, int, int]], name: str) -> list[tuple[int, int]]:
    """L1 but for regions of that name: all 64 GPRs are stored there, also those never written."""
    gaps = sorted((at, at + size) for title, at, size in regions if title.startswith(name))
    edges = [0, *(edge for gap in gaps for edge in gap), L1_SIZE]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


_RAW = ('dtype = "raw"', 'layout = "raw"')


def _head(image: str | None) -> list[str]:
    lines = ["bhemu = 1", 'kind = "image"']
    return lines if image is None else [*lines, f'image = {{ file = "{image}" }}']


def _core(name: str) -> str:
    return f"{name} = {{ pc = {_STARTS[name]:#x} }}"


def word(at: int, value: int, more: str = "") -> str:
    """One of the words that end a run."""
    return f"{{ word = {at:#x}, equals = {value:#x}{more} }}"


def output(name: str, file: str, where: str) -> list[str]:
    """An [[output]] that is compared byte by byte."""
    return ["[[output]]", f'name = "{name}"', f'expect = "{file}"', where, *_RAW]


def image(path: Path, l1: Any) -> None:
    """A picture of L1 without the zeros at its end."""
    used = int(np.flatnonzero(l1)[-1]) + 1 if l1.any() else 1
    assert used <= L1_SIZE
    np.savez(path, in_addr=np.array([0]), in_len=np.array([used]), in_data=l1[:used])


def written(folder: Path, lines: list[str]) -> Path:
    """PROGRAM.toml of these lines."""
    path = folder / "PROGRAM.toml"
    path.write_text("\n".join(lines) + "\n")
    return path
