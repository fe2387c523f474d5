"""add1 end to end on its compiled ELFs, against numpy.

The expected value is the upper half of fp32(x) + scalar: SFPSTORE truncates to bf16. NaN operands
give 0x7F80, because the packer turns NaN into infinity (pack data path; numerics of PACR).
"""

import hashlib
import random
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from bhemu.machine.tile import Tile

ROOT = Path(__file__).parents[2]
ADD1 = ROOT / "elfs" / "add1"
SOURCE, TARGET, TILE_BYTES = 0x40000, 0xC0000, 2048
DONE = [(0x100, 0xD0E0)]


def started(data: npt.NDArray[np.uint16], scalar: int, **options: object) -> Tile:
    """add1 loaded over `data` (tiles, 1024) with an fp32 scalar pattern, brisc released."""
    tile = Tile(**options)  # type: ignore[arg-type]
    for name in ("brisc", "trisc0", "trisc1", "trisc2"):
        image = tile.core[name].load_elf(ADD1 / f"{name}.elf")
    args = image.symbols.address("runtime_args")
    for i, value in enumerate((len(data), scalar, SOURCE, TARGET)):
        tile.write32(args + 4 * i, value)
    tile.write(SOURCE, data.tobytes())
    tile.core["brisc"].release()
    return tile


def add1(data: npt.NDArray[np.uint16], scalar: int, **options: object) -> Tile:
    """A finished run of add1."""
    tile = started(data, scalar, **options)
    assert tile.run(DONE, timeout_s=60).reason == "until"
    return tile


def result(tile: Tile, tiles: int) -> npt.NDArray[np.uint16]:
    return np.frombuffer(tile.read(TARGET, tiles * TILE_BYTES), np.uint16).reshape(tiles, 1024)


def expected(data: npt.NDArray[np.uint16], scalar: int) -> npt.NDArray[np.uint16]:
    x = (data.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):
        # Denormal operands count as zero, results too (the vector unit's multiply-add).
        x = np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(0), x)
        y = x + np.uint32(scalar).view(np.float32)
        y = np.where(np.abs(y) < np.finfo(np.float32).tiny, np.float32(0), y)
    bits: npt.NDArray[np.uint16] = (y.view(np.uint32) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7F80), bits)


ALL = np.arange(1 << 16, dtype=np.uint16).reshape(64, 1024)


@pytest.mark.parametrize("scalar", [0x3F800000, 0x40000000, 0xBF800000, 0x40490FD0, 0x3DCCCCCD])
def test_every_bf16_pattern(scalar: int) -> None:
    got = result(add1(ALL, scalar), 64)
    want = expected(ALL, scalar)
    wrong = np.argwhere(got != want)
    assert len(wrong) == 0, [(hex(int(ALL[i, j])), hex(int(got[i, j]))) for i, j in wrong[:8]]


def test_rounding_to_nearest_would_be_noticed() -> None:
    """Truncation and rounding differ on this data: the check above can fail."""
    x = (ALL.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):
        y = (x + np.float32(1)).view(np.uint32)
    rounded = ((y + 0x7FFF + ((y >> 16) & 1)) >> 16).astype(np.uint16)
    assert (rounded != expected(ALL, 0x3F800000)).sum() > 1000


@pytest.mark.parametrize("tiles", [1, 2, 3, 16, 256])
def test_any_number_of_tiles_and_nothing_else_is_written(tiles: int) -> None:
    data = np.random.default_rng(tiles).integers(0, 1 << 16, (tiles, 1024), np.uint16)
    tile = add1(data, 0x3F800000, poison="ff")
    assert (result(tile, tiles) == expected(data, 0x3F800000)).all()
    after = TARGET + tiles * TILE_BYTES
    assert set(tile.read(after, 4096)) == {0xFF}
    assert tile.read(SOURCE, data.nbytes) == data.tobytes()


def test_the_run_is_the_same_for_every_quantum_and_repeats_exactly() -> None:
    data = ALL[:4]
    runs = [add1(data, 0x3F800000, quantum=q) for q in (1000, 1000, 7, 1)]
    assert runs[0].clock == runs[1].clock
    digests = {hashlib.sha256(result(t, 4).tobytes()).hexdigest() for t in runs}
    assert len(digests) == 1


def test_the_command_prints_a_checked_answer() -> None:
    command = [sys.executable, "-m", "bhemu", "run", str(ADD1)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "equal (1024 of 1024)" in done.stdout


def test_shipped_elfs_are_those_of_the_manifest() -> None:
    manifest = tomllib.loads((ROOT / "elfs" / "MANIFEST.toml").read_text())
    text = str(manifest)
    for path in ADD1.glob("*.elf"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() in text


def figures(tile: Tile) -> tuple[object, ...]:
    """Everything that a stop must not change."""
    retired = [core.retired for core in tile.core.values()]
    l1 = hashlib.sha256(bytes(tile.l1)).hexdigest()
    return tile.clock, int(tile.state.round[0]), retired, list(tile.state.executed), l1


@pytest.mark.parametrize("seed", range(4))
def test_stops_change_nothing(seed: int) -> None:
    """Steps, Tensix steps and breakpoints at random places, then the rest in one run."""
    free = started(ALL[:3], 0x3F800000)
    free.run(timeout_s=60)
    rng = random.Random(seed)
    tile = started(ALL[:3], 0x3F800000)
    tile.run(limit=2000)
    for _ in range(60):
        name = rng.choice(("trisc0", "trisc1", "trisc2"))
        if tile.core[name].state == "parked":
            continue
        kind = rng.randrange(3)
        if kind == 0:
            tile.step(name, rng.choice((1, 2, 7, 40)))
        elif kind == 1:
            tile.tstep(rng.randrange(3), rng.choice((1, 3, 20)))
        else:
            c = tile.core[name].index
            tile.state.breakpoint[c, 0] = tile.core[name].pc
            tile.state.breakpoint_count[c], tile.state.breakpoint_skip[c] = 1, 1
            tile.run(limit=rng.choice((10, 500)))
            tile.state.breakpoint_count[c] = 0
    tile.run(timeout_s=60)
    assert figures(tile) == figures(free)


def test_tracing_changes_nothing() -> None:
    free, traced = started(ALL[:3], 0x3F800000), started(ALL[:3], 0x3F800000)
    traced.state.trace[0] = 1
    for tile in (free, traced):
        tile.run(timeout_s=60)
    traced.drain_log()
    assert len(traced.log) == int(traced.state.executed.sum())
    assert figures(traced) == figures(free)
