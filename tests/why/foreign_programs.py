"""Small programs as others write them: sources and PROGRAM.toml in foreign/, the data from here.

They share nothing with firmware/: hand-made words, one source for all cores, C++, assembler, -Os,
other places in L1, other ways for the cores to wait for each other. `folder` builds one of them.
"""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FOREIGN = Path(__file__).parent / "foreign"
TEXT = {"brisc": 0x4000, "ncrisc": 0x6000, "trisc0": 0x8000, "trisc1": 0xA000, "trisc2": 0xC000}
LARGE = ("brisc", "ncrisc")  # have 8 KiB of local memory, the others 4
FLAGS = (
    "-target riscv32-freestanding-none -mcpu=generic_rv32+m+a+zba+zbb -g -ffreestanding -nostdlib "
    "-nostdinc -fno-pic -fno-builtin -fno-sanitize=all -fomit-frame-pointer -fno-stack-protector "
    "-fno-asynchronous-unwind-tables -Wall -Wextra -Werror -fdebug-compilation-dir=."
).split()
CXX = "-std=c++17 -fno-exceptions -fno-rtti -nostdinc++".split()
OPTIMIZE = {"sortq": "-Os", "clampc": "-Os", "twoout": "-O1"}  # the others: -O2
Tensors = dict[str, Any]


def _random() -> Any:
    return np.random.default_rng(24)


def _bf16(values: Any) -> Any:
    """Cut to the 16 high bits."""
    return (values.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


def _halves(words: Any) -> Any:
    """The 16-bit halves of words."""
    return words.astype("<u4").view(np.uint16).copy()


def _saxpy() -> Tensors:
    x, y = _random().uniform(-8, 8, (2, 128, 32)).astype(np.float32)
    return {"x": x, "y0": y, "y1": (x.astype(np.float64) * -1.5 + y).astype(np.float32)}


def _sortq() -> Tensors:
    words = _random().integers(0, 65536, 256)
    blocks = np.sort(words.reshape(8, 32), axis=1).reshape(-1)
    bins = np.bincount(words >> 12, minlength=16)
    named = {"words": words, "sorted": blocks, "merged": np.sort(words), "histogram": bins}
    return {name: _halves(values) for name, values in named.items()}


def _clampc() -> Tensors:
    x = _bf16(_random().uniform(-8, 8, (192, 32)))
    return {"x": x, "y": _bf16(np.where(x < 0, x * 0.125, np.minimum(x, 3)))}


def _imm8() -> Tensors:
    a, b = _random().integers(-127, 128, (2, 3, 32, 32))
    c = (a @ b).sum(axis=0)
    return {
        "a": a.reshape(96, 32).astype(np.int8),
        "b": b.reshape(96, 32).astype(np.int8),
        "c": c.astype(np.int32),
    }


def _tilz() -> Tensors:
    x = (_random().integers(-512, 512, (32, 64)) / 64).astype(np.float32)
    column = (_random().integers(-256, 256, (64, 16)) / 64).astype(np.float32)
    parts = [x[:, k : k + 32].reshape(64, 16) - column[:, :1] for k in (0, 32)]
    out = np.concatenate([part.reshape(32, 32) for part in parts], axis=1)
    return {"rows": x, "column": column, "out": out}


def _ringpk() -> Tensors:
    return {"pages": (_random().integers(-8, 8, (160, 32)) / 4).astype(np.float32)}


def _rmax() -> Tensors:
    x = -_bf16(_random().uniform(1, 90, (96, 32)))
    return {"x": x, "ones": np.ones(1024, np.float32), "largest": x.max(axis=0)}


def _twoout() -> Tensors:
    x, y = _random().integers(-255, 256, (2, 96, 32)).astype(np.float32)
    x, y = x / 16, y / 8
    z = x * y + np.float32(0.0)  # no negative zero
    return {"x": x, "y": y, "z32": z, "z16": _bf16(z)}


def _mmtf() -> Tensors:
    random = _random()
    a = random.uniform(-2, 2, (64, 64)).astype(np.float32)
    b = random.uniform(-2, 2, (64, 32)).astype(np.float32)
    return {"a": a, "b": b, "c": (a.astype(np.float64) @ b).astype(np.float32)}


_DATA: dict[str, Callable[[], Tensors]] = {
    "saxpy": _saxpy,
    "sortq": _sortq,
    "clampc": _clampc,
    "imm8": _imm8,
    "tilz": _tilz,
    "ringpk": _ringpk,
    "rmax": _rmax,
    "twoout": _twoout,
    "mmtf": _mmtf,
}


def is_foreign(name: str) -> bool:
    """Whether it is a program of this folder."""
    return name in _DATA


def sources(name: str, out: Path) -> Path:
    """A copy of a program's sources and PROGRAM.toml, with its data, in the folder `out`."""
    shutil.copytree(FOREIGN / name, out)
    for file, values in _DATA[name]().items():
        np.save(out / f"{file}.npy", values)
    return out


def built(name: str, out: Path) -> Path:
    """Build the ELFs of the sources in `out`."""
    cores = tomllib.loads((out / "PROGRAM.toml").read_text())["cores"]
    for core in cores:
        _build(name, core, out)
    return out


def folder(name: str, out: Path) -> Path:
    """A program in the folder `out`, ready to run."""
    return built(name, sources(name, out))


def _build(name: str, core: str, out: Path) -> None:
    stems = [f"{stem}{ending}" for stem in (core, name) for ending in (".c", ".cpp", ".S")]
    source = next(file for file in stems if (out / file).exists())
    flags = [*FLAGS, OPTIMIZE.get(name, "-O2"), f"-DCORE_{core.upper()}"]
    start, kernel = f"{core}.boot.o", f"{core}.o"
    _run(out, ["cc", *flags, "-c", str(FOREIGN / "boot.S"), "-o", start])
    tool = ["c++", *CXX] if source.endswith(".cpp") else ["cc"]
    _run(out, [tool[0], *flags, *tool[1:], "-c", source, "-o", kernel])
    room = 0x2000 if core in LARGE else 0x1000
    script = ["-T", str(FOREIGN / "flat.ld"), f"--defsym=TEXT={TEXT[core]}", f"--defsym=RAM={room}"]
    linked = ["ld.lld", "-m", "elf32lriscv", "-z", "max-page-size=16", "--no-relax", *script]
    _run(out, [*linked, start, kernel, "-o", f"{core}.elf"])


def _run(out: Path, command: Sequence[str]) -> None:
    """Run one of the compiler's tools in the folder of the sources."""
    whole = [sys.executable, "-m", "ziglang", *command]
    done = subprocess.run(whole, cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
