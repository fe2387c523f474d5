"""tt-metal's matmul and eltwise kernels without firmware, when their listings are at hand.

BHEMU_KERNEL_DIR names a folder with matmul-all-cores.s and eltwise-binary-all-cores.s, which are
not part of this repository. A stub per TRISC stands for the firmware, the test for the two data
movement cores: circular buffer n counts in stream n.
"""

import os
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from listing import kernel

from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, PARK, RA, SP, T0, ZERO, code, jalr, li, sw

KERNELS = os.environ.get("BHEMU_KERNEL_DIR")
pytestmark = pytest.mark.skipif(not KERNELS, reason="BHEMU_KERNEL_DIR is not set")

GP = 3
LOCAL = 0xFFB00000
RTA = (0x14, 0x10, 0x14)  # rta_l1_base of each TRISC
INTERFACES = 0x20  # cb_interface
ARGUMENTS = 0x1000
SIGNAL, INDEX, THROTTLED = 0x3F0, 0x420, 0x10
DONE = [(0x100 + 4 * t, 0xD0E0 + t) for t in range(3)]


def received(n: int) -> int:
    return 0xFFB40028 + 0x1000 * n


def acked(n: int) -> int:
    return 0xFFB40020 + 0x1000 * n


def stub(t: int, entry: int) -> bytes:
    """What firmware gives a kernel: gp and sp; then the done word."""
    registers = [*li(GP, LOCAL + 0x7F0), *li(SP, LOCAL + 0xFF0), *li(T0, entry), jalr(RA, T0)]
    return code(registers, li(A0, 0xD0E0 + t), sw(A0, ZERO, 0x100 + 4 * t), PARK)


def started(name: str, buffers: dict[int, tuple[int, int, int]], arguments: list[int]) -> Tile:
    """The three kernels released; buffers: number -> (address, pages, bytes of a page)."""
    assert KERNELS is not None
    tile = Tile()
    tile.write(ARGUMENTS, struct.pack(f"<{len(arguments)}I", *arguments))
    for t in range(3):
        text = kernel(Path(KERNELS) / f"{name}-all-cores.s", f"TRISC{t}")
        start, entry = 0x10000 + 0x4000 * t, 0x11000 + 0x4000 * t
        tile.write(start, stub(t, entry))
        tile.write(entry, text)
        core = tile.core[f"trisc{t}"]
        core.set_reset_pc(start)
        core.release()
        core.write32(LOCAL + RTA[t], ARGUMENTS)
        for n, (address, pages, page) in buffers.items() if t != 1 else ():
            a, size = address >> 4, pages * page >> 4
            words = (size, a + size, page >> 4, pages, a, a, 0, 0)
            for i, word in enumerate(words):
                core.write32(LOCAL + INTERFACES + 32 * n + 4 * i, word)
    tile.write(SIGNAL, bytes((0, 0, 0, 0x80)))
    tile.write32(INDEX, 0)
    return tile


def tiles_of(matrix: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
    """32x32 tiles in row-major order of tiles."""
    rows, columns = (n // 32 for n in matrix.shape)
    return [
        matrix[32 * i : 32 * i + 32, 32 * j : 32 * j + 32]
        for i in range(rows)
        for j in range(columns)
    ]


class Host:
    """Reader and writer: pages go in while there is room and come out as they are full."""

    def __init__(
        self,
        buffers: dict[int, tuple[int, int, int]],
        inputs: dict[int, list[tuple[npt.NDArray[np.float32], str]]],
        output: int,
        dtype: str,
    ) -> None:
        self.buffers, self.inputs = buffers, inputs
        self.output, self.dtype = output, dtype
        self.fed = dict.fromkeys(inputs, 0)
        self.out: list[npt.NDArray[np.float32]] = []

    def __call__(self, tile: Tile) -> bool:
        for n, pages in self.inputs.items():
            address, room, size = self.buffers[n]
            while self.fed[n] < len(pages) and self.fed[n] - self._count(tile, acked(n), n) < room:
                array, dtype = pages[self.fed[n]]
                tile.put_tensor(address + self.fed[n] % room * size, array, dtype)
                self.fed[n] += 1
                tile.write32(received(n), self.fed[n] & 0xFFFF)
        address, room, size = self.buffers[self.output]
        while len(self.out) & 0xFFFF != tile.read32(received(self.output)) & 0xFFFF:
            at = address + len(self.out) % room * size
            self.out.append(tile.tensor(at, (32, 32), self.dtype))
            tile.write32(acked(self.output), len(self.out) & 0xFFFF)
        return all(tile.read32(at) == value for at, value in DONE)

    def _count(self, tile: Tile, address: int, n: int) -> int:
        """Pages taken so far, from a counter of 16 bits that never runs ahead of what was fed."""
        return self.fed[n] - ((self.fed[n] - tile.read32(address)) & 0xFFFF)


@pytest.mark.parametrize("tiles", [3, 9])
def test_eltwise_add_of_bf16_and_bfp8(tiles: int) -> None:
    """Case 7, compute only: integers -60..60, so that every sum is exact."""
    rng = np.random.default_rng(tiles)
    a, b = (rng.integers(-60, 61, (tiles, 32, 32)).astype(np.float32) for _ in range(2))
    buffers = {0: (0x40000, 2, 2048), 1: (0x42000, 2, 1088), 2: (0x44000, 2, 2048)}
    inputs = {0: [(x, "bf16") for x in a], 1: [(x, "bfp8") for x in b]}
    host = Host(buffers, inputs, 2, "bf16")
    tile = started("eltwise-binary", buffers, [tiles, 1])
    assert tile.run(host, timeout_s=60).reason == "until"
    assert (np.array(host.out) == a + b).all()


MATMUL = {
    0: (0x40000, 14, 2048),
    1: (0x50000, 24, 1088),
    4: (0x60000, 84, 2048),
    5: (0x90000, 84, 4096),
}
M, N, K = 7, 12, 64


def matmul_inputs(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> dict[int, list]:
    """Blocks of one K step: a column of A's tiles, a row of B's."""
    steps = a.shape[1] // 32
    left = [x for k in range(steps) for x in tiles_of(a[:, 32 * k : 32 * k + 32])]
    right = [x for k in range(steps) for x in tiles_of(b[32 * k : 32 * k + 32])]
    return {0: [(x, "bf16") for x in left], 1: [(x, "bfp8") for x in right]}


def test_matmul_of_one_block_leaves_exact_partial_sums() -> None:
    """Case 8 with integers: 84 fp32 tiles at the partials buffer."""
    rng = np.random.default_rng(8)
    a = rng.integers(-2, 3, (M * 32, 32)).astype(np.float32)
    b = rng.integers(-3, 4, (32, N * 32)).astype(np.float32)
    host = Host(MATMUL, matmul_inputs(a, b), 4, "bf16")
    tile = started("matmul", MATMUL, [])

    def packed(t: Tile) -> bool:
        host(t)
        return t.read32(received(5)) == M * N

    assert tile.run(packed, timeout_s=60).reason == "until"
    got = [tile.tensor(0x90000 + 4096 * i, (32, 32), "fp32") for i in range(M * N)]
    want = tiles_of(a @ b)
    assert (np.array(got) == np.array(want)).all()


@pytest.mark.parametrize("throttled", [0, 1])
def test_matmul_of_64_blocks(throttled: int) -> None:
    """Case 9: A in -2..2, B with 2 % of its elements non-zero; 86016 exact results."""
    rng = np.random.default_rng(9)
    a = rng.integers(-2, 3, (M * 32, K * 32)).astype(np.float32)
    b = rng.integers(-1, 2, (K * 32, N * 32)) * (rng.random((K * 32, N * 32)) < 0.03)
    b = b.astype(np.float32)
    host = Host(MATMUL, matmul_inputs(a, b), 4, "bf16")
    tile = started("matmul", MATMUL, [])
    tile.write32(THROTTLED, throttled)
    assert tile.run(host, timeout_s=120).reason == "until"
    assert len(host.out) == M * N
    assert (np.array(host.out) == np.array(tiles_of(a @ b))).all()
    assert int(tile.state.op_count[1, 0x26]) == K * M * N * 32  # MVMUL
