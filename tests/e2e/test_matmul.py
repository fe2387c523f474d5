"""matmul end to end on its compiled ELFs: exact against numpy, by tolerance, and by ttsim's bits.

Small integers are exact in every fidelity: few mantissa bits, and bf16 Dst holds integers to 256.
For other data the bits follow from the product slices of the phases and the rounding of Dst to bf16
after each MVMUL (MVMUL, Blackhole ISA); ttsim v1.10.0 gave the digests below for these very ELFs.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from script_module import script

from bhemu.errors import Assert
from bhemu.machine.tile import Tile

ROOT = Path(__file__).parents[2]
MATMUL = ROOT / "elfs" / "matmul"
A, B, C, TILE_BYTES = 0x40000, 0x80000, 0xC0000, 2048
DONE = [(0x100, 0xD0E0)]
PHASES = {1: "LoFi", 2: "HiFi2", 3: "HiFi3", 4: "HiFi4"}
POISON = b"\xff" * 4096
DATA = script("scripts/make_matmul_data.py")
PLAIN = (0,) * 7  # the arguments from the input format on; see test_matmul_blocks.py

Bf16 = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]


def bf16(values: npt.NDArray[np.generic]) -> Bf16:
    """Patterns of the nearest bf16 values, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def widen(patterns: Bf16) -> Floats:
    return (patterns.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def tiles(matrix: Bf16) -> bytes:
    """Row-major 32x32 tiles of four 16x16 faces."""
    rows, columns = matrix.shape
    faces = matrix.reshape(rows // 32, 2, 16, columns // 32, 2, 16).transpose(0, 3, 1, 4, 2, 5)
    return np.ascontiguousarray(faces).tobytes()


def matrix(data: bytes, rows: int, columns: int) -> Bf16:
    faces = np.frombuffer(data, np.uint16).reshape(rows // 32, columns // 32, 2, 2, 16, 16)
    return faces.transpose(0, 2, 4, 1, 3, 5).reshape(rows, columns)


def start(arguments: tuple[int, ...], a: bytes, b: bytes, **options: object) -> Tile:
    """matmul loaded and released, before the run."""
    tile = Tile(**options)  # type: ignore[arg-type]
    for name in ("brisc", "trisc0", "trisc1", "trisc2"):
        image = tile.core[name].load_elf(MATMUL / f"{name}.elf")
        if name != "brisc":
            tile.core[name].set_reset_pc(image.entry)
    args = image.symbols.address("runtime_args")
    for i, value in enumerate(arguments):
        tile.write32(args + 4 * i, value)
    tile.write(A, a)
    tile.write(B, b)
    tile.core["brisc"].release()
    return tile


def matmul(a: Bf16, b: Bf16, phases: int, **options: object) -> Bf16:
    """C of a finished run; the tiles after C must stay untouched."""
    (rows, inner), columns = a.shape, b.shape[1]
    sizes = (rows // 32, inner // 32, columns // 32)
    tile = start((*sizes, phases, A, B, C, *PLAIN), tiles(a), tiles(b), poison="ff", **options)
    assert tile.run(DONE, timeout_s=60).reason == "until"
    end = C + sizes[0] * sizes[2] * TILE_BYTES
    assert tile.read(end, len(POISON)) == POISON
    assert tile.read(A, len(tiles(a))) == tiles(a)
    return matrix(tile.read(C, end - C), rows, columns)


def scattered(rows: int, columns: int, seed: int) -> Bf16:
    """Patterns of both signs with every mantissa and 16 exponents around 1.0."""
    count = np.arange(seed * 0x10000, seed * 0x10000 + rows * columns, dtype=np.uint64)
    mixed = (count * 2654435761 & 0xFFFFFFFF) >> 8
    values = (mixed & 1) << 15 | (120 + (mixed >> 1 & 15)) << 7 | mixed >> 5 & 0x7F
    return values.astype(np.uint16).reshape(rows, columns)


@pytest.mark.parametrize("phases", PHASES, ids=PHASES.get)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 2), (1, 4, 3), (3, 1, 2)])
def test_small_integers_are_exact_in_every_fidelity(
    sizes: tuple[int, int, int], phases: int
) -> None:
    m, k, n = (32 * size for size in sizes)
    a, b = DATA.integers(m, k, phases), DATA.integers(k, n, 10 + phases)
    want = DATA.product(a, b)
    got = matmul(bf16(a), bf16(b), phases)
    assert np.array_equal(got, bf16(want)), np.argwhere(got != bf16(want))[:8]
    assert len(np.unique(want)) > 20


def test_one_permutation_matrix_moves_every_element() -> None:
    """A face or row in the wrong place cannot hide in a sum."""
    order = np.random.default_rng(3).permutation(32)
    values = np.arange(1024).reshape(32, 32) % 251 + 1
    moved = matmul(bf16(np.eye(32)[order]), bf16(values), 4)
    assert np.array_equal(moved, bf16(values[order]))
    moved = matmul(bf16(values), bf16(np.eye(32)[order]), 4)
    assert np.array_equal(moved, bf16(values @ np.eye(32)[order]))


@pytest.mark.parametrize(("phases", "least"), [(1, 0.98), (2, 0.999), (3, 0.999), (4, 0.999)])
def test_gaussian_data_is_close_to_float64(phases: int, least: float) -> None:
    rng = np.random.default_rng(7)
    a, b = bf16(rng.standard_normal((64, 128))), bf16(rng.standard_normal((128, 64)))
    want = widen(a) @ widen(b)
    got = widen(matmul(a, b, phases))
    assert np.corrcoef(want.ravel(), got.ravel())[0, 1] > least
    # bf16 Dst is rounded after each of the MVMULs that add to an element.
    assert np.abs(got - want).max() < (0.05 if phases == 1 else 0.03) * np.abs(want).max()


def test_more_phases_are_closer() -> None:
    """LoFi cuts mantissas of B to 5 bits and of A to 7; HiFi2 cuts only A; HiFi4 nothing."""
    rng = np.random.default_rng(8)
    a, b = bf16(rng.standard_normal((32, 32))), bf16(rng.standard_normal((32, 32)))
    want = widen(a) @ widen(b)
    errors = [float(np.abs(widen(matmul(a, b, p)) - want).mean()) for p in (1, 2, 4)]
    assert errors[0] > 2 * errors[1] > 0
    assert errors[1] > errors[2]


# SHA-256 of C's tiles on ttsim v1.10.0, A of 64x96 and B of 96x64 from `scattered` 1 and 2.
TTSIM = {
    1: "8f408cec496f3ef12577c7efe586808a57c112861e97b3594461c24339f717f6",
    2: "9d6b342055bc7eff9f9c36f372f23892ff25c1219175ab45a2049fb9e7aa09a5",
    3: "2ca647185fbad94795d9074604f204b99a27e553fc3768c8cfa7f1818a2c6c2d",
    4: "2638ffb1005038b60cd6d77664f04ceb2df25ff3ce57c3aba068b6a491947e2b",
}


@pytest.mark.parametrize("phases", PHASES, ids=PHASES.get)
def test_bits_are_those_of_ttsim(phases: int) -> None:
    a, b = scattered(64, 96, 1), scattered(96, 64, 2)
    got = tiles(matmul(a, b, phases))
    assert hashlib.sha256(got).hexdigest() == TTSIM[phases]


def test_result_does_not_depend_on_the_quantum() -> None:
    a, b = scattered(64, 64, 3), scattered(64, 96, 4)
    first, *others = (matmul(a, b, 4, quantum=q) for q in (1000, 7, 1))
    assert all(np.array_equal(first, other) for other in others)


@pytest.mark.parametrize(
    "arguments",
    [
        (1, 0, 1, 4, A, B, C),  # nothing to add up
        (1, 1, 1, 0, A, B, C),
        (1, 1, 1, 5, A, B, C),
        (1, 1, 1, 4, A + 8, B, C),
        (1, 1, 1, 4, A, 0x1000, C),  # BRISC's text lies there
        (2, 1, 2, 4, A, B, 0x17F000),  # C runs out of L1
        (2, 2, 2, 4, A, B, B + TILE_BYTES),  # C overwrites B
        (769, 769, 1, 4, A, B, C),
    ],
)
def test_a_bad_argument_stops_on_ebreak(arguments: tuple[int, ...]) -> None:
    tile = start(arguments, tiles(scattered(32, 32, 1)), tiles(scattered(32, 32, 2)))
    with pytest.raises(Assert, match="brisc"):
        tile.run(DONE, timeout_s=60)


def test_the_command_prints_a_checked_answer() -> None:
    command = [sys.executable, "-m", "bhemu", "run", str(MATMUL)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "equal (4096 of 4096)" in done.stdout


def test_the_data_is_what_the_script_makes() -> None:
    a, b = DATA.integers(64, 96, 1), DATA.integers(96, 64, 2)
    for name, values in (("a", a), ("b", b), ("expected", DATA.product(a, b))):
        stored = np.load(MATMUL / f"{name}.npy")
        assert stored.dtype == np.float32
        assert np.array_equal(stored, values), name


def test_the_script_refuses_sums_that_bf16_cannot_hold() -> None:
    with pytest.raises(ValueError, match="more than 256"):
        DATA.product(np.full((32, 96), 3), np.full((96, 32), 1))
