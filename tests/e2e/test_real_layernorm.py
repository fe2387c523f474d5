"""tt-metal's sharded RMS norm without firmware, when its listing is at hand (test_real_kernels.py).

BHEMU_KERNEL_DIR names a folder with layernorm-all-cores.s. The test stands for the data movement
cores: it gathers the partial sums of eight cores, of which this one is the first, and hands back
the reciprocal root. ttsim refuses the kernel (bit 11 of DBG_FEATURE_DISABLE), so nothing is
compared with it: sums of integers are exact, the rest is within a tolerance.
"""

import numpy as np
import numpy.typing as npt
import pytest
from test_real_kernels import DONE, KERNELS, acked, received, started

from bhemu.errors import BhemuError
from bhemu.machine.tile import Tile
from bhemu.tensix import rules as status
from bhemu.tensix.rules import REFERENCE_LLK, REFERENCE_TTSIM, counted

pytestmark = pytest.mark.skipif(not KERNELS, reason="BHEMU_KERNEL_DIR is not set")

Array = npt.NDArray[np.float32]
SCALER, EPSILON, GLOBAL_SCALER, GAMMA = 2, 3, 4, 5
PARTIAL, MEAN, GATHERED, RESULT, ROOT, SQUARES = 11, 12, 13, 15, 20, 24
X, OUT = 0, 16
BF16, FP32, CORES = 2048, 4096, 8
PAGES = {X: (2, BF16), SCALER: (1, BF16), EPSILON: (1, BF16), GLOBAL_SCALER: (1, BF16)}
PAGES |= {GAMMA: (2, BF16), OUT: (2, BF16), SQUARES: (2, FP32), GATHERED: (CORES, FP32)}
PAGES |= dict.fromkeys((PARTIAL, MEAN, RESULT, ROOT), (1, FP32))
BUFFERS = {n: (0x40000 + 0x8000 * i, *pages) for i, (n, pages) in enumerate(PAGES.items())}
ARGUMENTS = [2, 1, 0, 0]  # tiles of a row, rows of this worker, one stage
EPS = 2.0**-10


def put(tile: Tile, n: int, array: Array, dtype: str = "bf16") -> None:
    """Tiles side by side into buffer `n`, which then has them."""
    address, _, size = BUFFERS[n]
    count = array.shape[1] // 32
    for i in range(count):
        tile.put_tensor(address + i * size, array[:, 32 * i : 32 * i + 32], dtype)
    tile.write32(received(n), count)


def scaler(value: float) -> Array:
    """As production fills it: the first row of each face."""
    tile = np.zeros((32, 32), np.float32)
    tile[[0, 16]] = value
    return tile


def normalise(x: Array, gamma: Array, others: Array, reference: int) -> tuple[Tile, Array, Array]:
    """(tile, sums of squares of this core, output); `others`: sums of seven cores, (7, 32)."""
    tile = started("layernorm", BUFFERS, ARGUMENTS)
    tile.state.reference[0] = reference
    put(tile, X, x)
    put(tile, SCALER, scaler(1.0))
    put(tile, GLOBAL_SCALER, scaler(1.0 / (CORES * 64)))
    put(tile, EPSILON, np.full((32, 32), EPS, np.float32))
    put(tile, GAMMA, np.tile(gamma, (32, 1)))
    sums: list[Array] = []
    done: set[int] = set()

    def host(t: Tile) -> bool:
        for n, answer in ((PARTIAL, GATHERED), (ROOT, RESULT)):
            if n in done or t.read32(received(n)) & 0xFFFF != 1:
                continue
            done.add(n)
            page = t.tensor(BUFFERS[n][0], (32, 32), "fp32")
            t.write32(acked(n), 1)
            if n == ROOT:
                put(t, answer, page, "fp32")
                continue
            sums.append(page[:, 0].copy())
            pages = np.zeros((32, CORES * 32), np.float32)
            pages[:, ::32] = np.vstack([page[:, 0], others]).T
            put(t, answer, pages, "fp32")
        return all(t.read32(at) == value for at, value in DONE)

    assert tile.run(host, timeout_s=120).reason == "until"
    address = BUFFERS[OUT][0]
    out = [tile.tensor(address + BF16 * i, (32, 32), "bf16") for i in range(2)]
    return tile, sums[0], np.hstack(out)


def test_rms_norm_of_integers() -> None:
    """Squares of 8 to 15: their sums have more bits than a high half holds."""
    rng = np.random.default_rng(4)
    x = (rng.integers(8, 16, (32, 64)) * rng.choice([-1, 1], (32, 64))).astype(np.float32)
    gamma = rng.choice([0.5, 1.0, 1.25, -2.0], 64).astype(np.float32)
    others = (rng.integers(8, 16, (7, 32, 64)) ** 2).sum(2).astype(np.float32)
    tile, sums, out = normalise(x, gamma, others, REFERENCE_LLK)
    assert np.array_equal(sums, (x**2).sum(1))
    assert (sums.view(np.uint32) & 0xFFFF).any()
    mean = (sums + others.sum(0)) / (CORES * 64)
    want = x / np.sqrt(mean + EPS)[:, None] * gamma
    assert np.abs(out / want - 1).max() < 2**-5
    rules = {status.RULES[number].rule for number in counted(tile.state)}
    assert {"DST-LOW-KEPT", "MOV-LOW-READ"} <= rules  # labelled


def test_the_golden_model_has_no_low_halves_of_16_bit_dst() -> None:
    ones = np.ones((32, 64), np.float32)
    with pytest.raises(BhemuError) as caught:
        normalise(ones, ones[0], np.ones((7, 32), np.float32), REFERENCE_TTSIM)
    assert caught.value.rule == "MOV-LOW-OF-16"
