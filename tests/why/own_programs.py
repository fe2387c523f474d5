"""Small programs of these tests: sources and PROGRAM.toml in programs/, the data from here.

`folder` writes one of them without its ELFs; `sources` puts the sources beside those of firmware/,
`elfs` lists what is to be built of them, and `built` is all of this. Each program sets up its units
itself, as kernels of different authors do, although much of that is alike: bugs are planted there.
"""

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

PROGRAMS = Path(__file__).parent / "programs"
CORES = ("brisc", "ncrisc", "trisc0", "trisc1", "trisc2")
Tensors = dict[str, Any]


def _random() -> Any:
    return np.random.default_rng(17)


def _bf16(values: Any) -> Any:
    """Cut to the 16 high bits."""
    return (values.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


def _widen() -> Tensors:
    x = _bf16(_random().uniform(-4, 4, (96, 32)))
    return {"in": x, "expected": x}


def _poly() -> Tensors:
    x = _bf16(_random().uniform(-4, 4, (64, 64)))
    exact = x.astype(np.float64)
    return {"x": x, "y": _bf16(exact * exact + 0.75 * exact)}


def _ring() -> Tensors:
    words = _random().integers(0, 100_000, (12, 16))
    sums = np.cumsum(words * 3 + 1, axis=0)
    return {"words": words.astype(np.int32), "sums": sums.astype(np.int32)}


def _mail() -> Tensors:
    words = _random().integers(0, 100_000, 64)
    ends = (0, 10, 30, 35, 43, 56, 64)
    answers = [words[a:b].sum() for a, b in pairwise(ends)]
    return {"words": words.astype(np.int32), "answers": np.array(answers, np.int32)}


def _flip() -> Tensors:
    x = _bf16(_random().uniform(-2, 2, (96, 32)))
    return {"in": x, "out": np.concatenate([x[i : i + 32].T for i in (0, 32, 64)])}


def _colsum() -> Tensors:
    x = _random().integers(1, 255, (96, 32)).astype(np.float32) / 64
    weights, sums = np.zeros((16, 16), np.float32), np.zeros((32, 32), np.float32)
    weights[0], sums[0] = 0.5, 0.5 * x.sum(axis=0)
    return {"data": x, "weights": weights, "sums": _bf16(sums)}


def _relay() -> Tensors:
    words = _random().integers(0, 100_000, (6, 16))
    result = words
    for index in range(4):
        result = 3 * result + index
    return {"words": words.astype(np.int32), "result": result.astype(np.int32)}


def _collect() -> Tensors:
    words = _random().integers(0, 1000, (4, 16))
    sums, total = np.zeros(16, int), np.zeros(16, int)
    for _ in range(3):
        sums = words.sum(axis=0) + 4 * sums
        total += sums
    each = {f"words_{i}": words[i].astype(np.int32) for i in range(4)}
    return {**each, "total": total.astype(np.int32)}


def _pull() -> Tensors:
    words = _random().integers(0, 100_000, (5, 32))
    pages = [(words[i] ^ i << 8) * (i + 1) for i in range(5)]
    return {"words": words.astype(np.int32), "sum": np.sum(pages, axis=0).astype(np.int32)}


def _votes() -> Tensors:
    words = _random().integers(0, 1000, (4, 16))
    sums, total = np.zeros(16, int), words[0]
    for _ in range(3):
        sums = sums + words[1:].sum(axis=0) * (1 + (sums & 7))
        total = sums + 3 * total
    each = {f"words_{i}": words[i].astype(np.int32) for i in range(4)}
    return {**each, "total": total.astype(np.int32)}


def _rectify() -> Tensors:
    random = _random()
    a, b = (random.integers(-24, 25, (128, 32)).astype(np.float32) / 8 for _ in range(2))
    each = np.where(a - b > 0.5, a - b, 0).reshape(4, 32, 32)
    total = each.sum(axis=0)
    ranks = np.argsort(-(total != 0).sum(axis=1), kind="stable")
    return {"a": a, "b": b, "sum": total, "ranks": ranks.astype(np.int32)}


def _blend() -> Tensors:
    x = _random().integers(-255, 256, (16, 32, 32)) / 64
    weights = _random().integers(128, 256, (2, 32, 32)) / 128
    y = [weights[t] * (x[8 * t + 2 * i] + x[8 * t + 2 * i + 1]) for i in range(4) for t in (0, 1)]
    tiles = {"x": x, "weights": weights, "y": np.array(y, np.float32)}
    return {name: tile.reshape(-1, 32) for name, tile in tiles.items()}


def _refeed() -> Tensors:
    a, b = _random().integers(-8, 9, (2, 64, 64)).astype(np.float32)
    out = a * b + b
    out[:, 32:] = np.maximum(out[:, 32:], 0)
    tiles = (out.view(np.uint32) >> 16).reshape(2, 32, 2, 32)
    sums = tiles.sum(axis=(1, 3)).reshape(-1)
    return {"a": a, "b": b, "out": out, "sums": sums.astype(np.int32)}


_DATA: dict[str, Callable[[], Tensors]] = {
    "widen": _widen,
    "poly": _poly,
    "ring": _ring,
    "mail": _mail,
    "flip": _flip,
    "colsum": _colsum,
    "relay": _relay,
    "collect": _collect,
    "pull": _pull,
    "votes": _votes,
    "rectify": _rectify,
    "refeed": _refeed,
}

KERNEL_DATA: dict[str, Callable[[], Tensors]] = {"blend": _blend}  # of programs with firmware


def is_own(name: str) -> bool:
    """Whether it is a program of this folder, not one of elfs/."""
    return name in _DATA


def folder(name: str, out: Path) -> None:
    """PROGRAM.toml and the data of a program."""
    out.mkdir(parents=True)
    shutil.copy(PROGRAMS / name / "PROGRAM.toml", out)
    for file, values in _DATA[name]().items():
        np.save(out / f"{file}.npy", values)


def sources(root: Path) -> None:
    """All sources into a copy of the repository's firmware/, unless they are there."""
    if not (root / "firmware/ring").exists():
        for one in PROGRAMS.iterdir():
            shutil.copytree(one, root / "firmware" / one.name, dirs_exist_ok=True)


def elfs(name: str, build: ModuleType) -> list[Any]:
    """The ELFs of a program, as firmware/build.py builds them."""
    return [
        build.Program(
            f"elfs/{name}/{core}.elf",
            core,
            ("firmware/lib/crt0.S", f"firmware/{name}/{core}.c"),
        )
        for core in CORES
        if (PROGRAMS / name / f"{core}.c").exists()
    ]


def built(name: str, out: Path, build: ModuleType) -> Path:
    """A program in the folder `out`; `build`: firmware/build.py over a copy of the sources."""
    folder(name, out)
    sources(build.ROOT)
    for each in elfs(name, build):
        build.build(each, out / Path(each.elf).name, build.ROOT / "firmware")
    return out
