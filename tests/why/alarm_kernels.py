"""tt-metal's kernels without firmware as programs: their data movement's pages are there at once.

Made of the listings that a user has at hand (tests/e2e/test_real_kernels.py); the buffers that the
host would feed hold all pages, or the same ones again and again, and their counters say so.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import test_real_kernels as real
import test_real_layernorm as norm
from alarm_programs import image, output, written

from bhemu.machine.tile import Tile

Counters = dict[int, int]  # pages that a buffer is said to have got
_WORDS = 8  # of a buffer's interface
_GPRS = 0xFFE00000


def eltwise(folder: Path, tiles: int = 4) -> Path:
    """Sums of bf16 and bfp8 pages."""
    rng = np.random.default_rng(tiles)
    a, b = (rng.integers(-60, 61, (tiles, 32, 32)).astype(np.float32) for _ in range(2))
    buffers = {
        0: (0x40000, tiles, 2048),
        1: (0x50000, tiles, 1088),
        2: (0x60000, tiles, 2048),
    }
    tile = real.started("eltwise-binary", buffers, [tiles, 1])
    for i in range(tiles):
        tile.put_tensor(0x40000 + 2048 * i, a[i], "bf16")
        tile.put_tensor(0x50000 + 1088 * i, b[i], "bfp8")
    return _program(tile, buffers, {0: tiles, 1: tiles}, (2,), folder)


def matmul(folder: Path) -> Path:
    """64 blocks, of which two alternate."""
    rng = np.random.default_rng(9)
    a = rng.integers(-2, 3, (real.M * 32, 64)).astype(np.float32)
    b = rng.integers(-1, 2, (64, real.N * 32)).astype(np.float32)
    tile = real.started("matmul", real.MATMUL, [])
    for n, pages in real.matmul_inputs(a, b).items():
        address, _, size = real.MATMUL[n]
        for i, (page, dtype) in enumerate(pages):
            tile.put_tensor(address + i * size, page, dtype)
    counters = {0: real.M * real.K, 1: real.N * real.K}
    return _program(tile, real.MATMUL, counters, (4,), folder)


def layernorm(folder: Path) -> Path:
    """An RMS norm; what the other cores answer lies there from the beginning."""
    rng = np.random.default_rng(4)
    x = rng.integers(8, 16, (32, 64)).astype(np.float32)
    gamma = rng.choice([0.5, 1.0, 1.25, -2.0], 64).astype(np.float32)
    others = (rng.integers(8, 16, (7, 32, 64)) ** 2).sum(2).astype(np.float32)
    ended, _, _ = norm.normalise(x, gamma, others, norm.REFERENCE_LLK)
    tile = real.started("layernorm", norm.BUFFERS, norm.ARGUMENTS)
    given = (norm.X, norm.SCALER, norm.GLOBAL_SCALER, norm.EPSILON, norm.GAMMA)
    given += (norm.GATHERED, norm.RESULT)
    counters = {}
    for n in given:
        address, pages, size = norm.BUFFERS[n]
        tile.write(address, ended.read(address, pages * size))
        counters[n] = pages
    return _program(tile, norm.BUFFERS, counters, (norm.OUT,), folder, 'reference = "llk"')


KERNELS: dict[str, Callable[[Path], Path]] = {
    "eltwise": eltwise,
    "matmul": matmul,
    "layernorm": layernorm,
}


def _program(
    tile: Tile,
    buffers: dict[int, tuple[int, int, int]],
    counters: Counters,
    outputs: tuple[int, ...],
    folder: Path,
    more: str = "",
) -> Path:
    """A tile that is about to run, as a program whose outputs are what it computes."""
    folder.mkdir(parents=True)
    image(folder / "l1.npz", np.array(tile.l1))
    lines = ["bhemu = 1", 'kind = "image"', 'image = { file = "l1.npz" }', "[cores]"]
    lines += [f"trisc{t} = {{ pc = {0x10000 + 0x4000 * t:#x} }}" for t in range(3)]
    for t in range(3):
        lines += _set(_GPRS, 0, f"trisc{t}", 64)  # as firmware does
        for at in _local(t, buffers):
            lines += _set(at, tile.core[f"trisc{t}"].read32(at), f"trisc{t}")
    for n, count in counters.items():
        lines += _set(real.received(n), count, "trisc0")
        tile.write32(real.received(n), count)
    if more:
        tile.state.reference[0] = norm.REFERENCE_LLK
    assert tile.run(timeout_s=200).reason == "idle"
    for n in outputs:
        address, pages, size = buffers[n]
        (folder / f"out_{n}.bin").write_bytes(tile.read(address, pages * size))
        lines += output(f"buffer_{n}", f"out_{n}.bin", f"at = {address:#x}")
    return written(folder, [*lines, "[run]", 'until = "idle"', more])


def _local(t: int, buffers: dict[int, tuple[int, int, int]]) -> list[int]:
    """Words of local memory that firmware leaves to the kernel of thread t."""
    interfaces = [
        real.LOCAL + real.INTERFACES + 4 * (_WORDS * n + i) for n in buffers for i in range(_WORDS)
    ]
    return [real.LOCAL + real.RTA[t], *(interfaces if t != 1 else ())]


def _set(at: int, value: int, core: str, count: int = 1) -> list[str]:
    values = ", ".join([f'"u32:{value:#x}"'] * count)
    return ["[[set]]", f"at = {at:#x}", f'core = "{core}"', f"values = [{values}]"]
