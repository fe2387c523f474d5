"""reduce end to end on its compiled ELFs: sums, maxima and means over rows, columns and everything.

Against numpy on integers, by tolerance, and by the bits of ttsim v1.10.0 on these very ELFs.
"""

import hashlib
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from script_module import script
from test_matmul import Bf16, Floats, bf16, matrix, scattered, tiles, widen

from bhemu.errors import Assert
from bhemu.machine.tile import Tile

ROOT = Path(__file__).parents[2]
REDUCE = ROOT / "elfs" / "reduce"
SRC, DST, SCALER = 0x40000, 0xC0000, 0x1C000
DONE = [(0x100, 0xD0E0)]
SUM, MAX = 0, 1
DIMS = {"row": 0, "column": 1, "scalar": 2}
POISON = b"\xff" * 4096
DATA = script("scripts/make_reduce_data.py")


def start(arguments: tuple[int, ...], values: Bf16) -> Tile:
    """reduce loaded and released, before the run."""
    tile = Tile(poison="ff")
    for name in ("brisc", "trisc0", "trisc1", "trisc2"):
        image = tile.core[name].load_elf(REDUCE / f"{name}.elf")
        if name != "brisc":
            tile.core[name].set_reset_pc(image.entry)
    args = image.symbols.address("runtime_args")
    for i, value in enumerate(arguments):
        tile.write32(args + 4 * i, value)
    tile.write(SRC, tiles(values))
    tile.core["brisc"].release()
    return tile


def bits(scale: float) -> int:
    (word,) = struct.unpack("<I", struct.pack("<f", scale))
    return int(word)


def reduce(values: Bf16, op: int, dim: str, scale: float = 1.0, phases: int = 1) -> Bf16:
    """Output tiles of a finished run; what follows them and the input must stay untouched."""
    rows, columns = values.shape
    arguments = (rows // 32, columns // 32, op, DIMS[dim], bits(scale), phases, SRC, DST, SCALER)
    tile = start(arguments, values)
    assert tile.run(DONE, timeout_s=60).reason == "until"
    shape = {"row": (rows, 32), "column": (32, columns), "scalar": (32, 32)}[dim]
    end = DST + shape[0] * shape[1] * 2
    assert tile.read(end, len(POISON)) == POISON
    assert tile.read(SRC, len(tiles(values))) == tiles(values)
    return matrix(tile.read(DST, end - DST), *shape)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("op", ["sum", "max", "mean"])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (2, 2), (4, 1)])
def test_integers_are_exact(sizes: tuple[int, int], op: str, dim: str) -> None:
    values = DATA.integers(*sizes, 3)
    want = bf16(DATA.reduced(values, op, dim))
    count = {"row": sizes[1], "column": sizes[0], "scalar": 32 * sizes[0] * sizes[1]}[dim] * 32
    scale = 1 / count if op == "mean" else 1.0
    got = reduce(bf16(values), MAX if op == "max" else SUM, dim, scale)
    assert np.array_equal(got, want), np.argwhere(got != want)[:8]


@pytest.mark.parametrize("dim", DIMS)
def test_a_maximum_of_negative_numbers(dim: str) -> None:
    """Rows of Dst that ZEROACC cleared count as minus infinity, not as 0 (GMPOOL)."""
    values = scattered(64, 64, 11) | np.uint16(0x8000)
    axis = {"row": 1, "column": 0, "scalar": None}[dim]
    got = widen(reduce(values, MAX, dim))
    result = got[:, 0] if dim == "row" else got[0] if dim == "column" else got[0, 0]
    assert np.array_equal(result, np.max(widen(values), axis=axis))
    assert np.count_nonzero(got) == np.size(result)


@pytest.mark.parametrize("dim", DIMS)
def test_one_element_alone_reaches_its_place(dim: str) -> None:
    """Wherever it stands: an element of another row, column or face cannot hide in a sum."""
    for row, column in ((0, 0), (5, 30), (17, 3), (31, 16), (40, 20), (63, 63)):
        values = np.zeros((64, 64))
        values[row, column] = 3
        got = widen(reduce(bf16(values), SUM, dim))
        place = {"row": (row, 0), "column": (0, column), "scalar": (0, 0)}[dim]
        assert got[place] == 3
        assert np.count_nonzero(got) == 1


@pytest.mark.parametrize("dim", DIMS)
def test_more_phases_are_closer(dim: str) -> None:
    """LoFi cuts the data to 5 bits, HiFi2 keeps all 8; the sums are rounded to bf16."""
    values = scattered(64, 96, 4) & np.uint16(0x7FFF)
    exact = widen(values).sum(axis={"row": 1, "column": 0, "scalar": None}[dim])
    errors = []
    for phases in (1, 2):
        got = widen(reduce(values, SUM, dim, phases=phases))
        result = got[:, 0] if dim == "row" else got[0] if dim == "column" else got[0, 0]
        errors.append(float(np.abs(result / exact - 1).max()))
    assert errors[0] > errors[1]
    assert errors[1] < 0.03


# SHA-256 of the output on ttsim v1.10.0 (November 2026): `scattered` 5, 2 x 3 tiles, scale 3/16.
TTSIM: dict[tuple[int, str, int], str] = {
    (SUM, "row", 1): "bafced9ce94e727b771bb995c52e710e9749a78694c1049ecd25282f92d93ea9",
    (SUM, "row", 2): "b1e26a57c34a03faf4faaac36cd0a45cdf1a5fdbd5d7d704c1a9e6ead2fca896",
    (SUM, "row", 4): "b1e26a57c34a03faf4faaac36cd0a45cdf1a5fdbd5d7d704c1a9e6ead2fca896",
    (SUM, "column", 1): "5c45a729520163cb740f524191f50749bd04ec5c1bdda0d4a45aafb00edf0796",
    (SUM, "column", 2): "c693e8c7588db4ea4abc38990ccd9bb325c5dddc00033af16d02e037a574e3d0",
    (SUM, "column", 4): "c693e8c7588db4ea4abc38990ccd9bb325c5dddc00033af16d02e037a574e3d0",
    (SUM, "scalar", 1): "62b4a8849bed469734ad34e9690836472046d719bc7059e7035a432ca7e78bba",
    (SUM, "scalar", 2): "1310cdb02df4b817177fe4d0773c2dc2d5a79829f41839db2fc460b8dbc66ded",
    (SUM, "scalar", 4): "1310cdb02df4b817177fe4d0773c2dc2d5a79829f41839db2fc460b8dbc66ded",
    (MAX, "row", 1): "00296c10fc32198f5b52f59ff106f251ec671409796877b3be40963038448f3e",
    (MAX, "column", 1): "b8eafec37692652c1bd43891d69779db98c169d02cd18baff7af5277894a1fbf",
    (MAX, "scalar", 1): "d9efb2352efdd2401085392b6eb2a20a14e0255ba93898beb02e7f77a0745ec6",
}


@pytest.mark.parametrize(("op", "dim", "phases"), TTSIM)
def test_bits_are_those_of_ttsim(op: int, dim: str, phases: int) -> None:
    got = reduce(scattered(64, 96, 5), op, dim, 0.1875 if op == SUM else 1.0, phases)
    digest = hashlib.sha256(np.ascontiguousarray(got).tobytes()).hexdigest()
    assert digest == TTSIM[op, dim, phases]


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 1, SUM, 0, bits(1.0), 1, SRC, DST, SCALER),
        (1, 0, SUM, 0, bits(1.0), 1, SRC, DST, SCALER),
        (1, 1, 2, 0, bits(1.0), 1, SRC, DST, SCALER),
        (1, 1, SUM, 3, bits(1.0), 1, SRC, DST, SCALER),
        (1, 1, SUM, 0, bits(0.1), 1, SRC, DST, SCALER),  # no bf16
        (1, 1, MAX, 0, bits(2.0), 1, SRC, DST, SCALER),
        (1, 1, MAX, 0, bits(1.0), 2, SRC, DST, SCALER),  # a maximum has no fidelity phases
        (1, 1, SUM, 0, bits(1.0), 5, SRC, DST, SCALER),
        (1, 1, SUM, 0, bits(1.0), 1, SRC, SRC, SCALER),
        (1, 1, SUM, 0, bits(1.0), 1, SRC, DST, SRC + 512),
        (1, 1, SUM, 0, bits(1.0), 1, SRC, DST, DST),
        (1, 1, SUM, 0, bits(1.0), 1, SRC + 8, DST, SCALER),
    ],
)
def test_a_bad_argument_stops_on_ebreak(arguments: tuple[int, ...]) -> None:
    tile = start(arguments, scattered(32, 32, 1))
    with pytest.raises(Assert, match="brisc"):
        tile.run(DONE, timeout_s=60)


@pytest.mark.parametrize(
    ("op", "dim", "scale", "shape"),
    [
        ("sum", "row", "1.0", "[64, 32]"),
        ("max", "column", "1.0", "[32, 64]"),
        ("mean", "scalar", "0.000244140625", "[32, 32]"),
    ],
)
def test_the_command_prints_a_checked_answer(
    tmp_path: Path, op: str, dim: str, scale: str, shape: str
) -> None:
    """The shipped program, with the lines its comment names changed."""
    folder = tmp_path / "reduce"
    shutil.copytree(REDUCE, folder)
    text = (folder / "PROGRAM.toml").read_text()
    phases = 1 if op == "max" else 2
    old = '"u32:0", "u32:0", "f32:1.0", "u32:2"'
    new = f'"u32:{int(op == "max")}", "u32:{DIMS[dim]}", "f32:{scale}", "u32:{phases}"'
    assert old in text
    changed = text.replace(old, new).replace('expect = "sum_row.npy"', f'expect = "{op}_{dim}.npy"')
    (folder / "PROGRAM.toml").write_text(changed.replace("shape = [64, 32]", f"shape = {shape}"))
    command = [sys.executable, "-m", "bhemu", "run", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "  equal (" in done.stdout


def test_the_data_is_what_the_script_makes() -> None:
    values = DATA.integers(2, 2, 1)
    assert np.array_equal(np.load(REDUCE / "in.npy"), values)
    for dim in DIMS:
        for op in ("sum", "max", "mean"):
            stored = np.load(REDUCE / f"{op}_{dim}.npy")
            assert stored.dtype == np.float32
            assert np.array_equal(stored, DATA.reduced(values, op, dim)), (op, dim)


def test_the_script_refuses_sums_that_bf16_cannot_hold() -> None:
    with pytest.raises(ValueError, match="more than 256"):
        DATA.reduced(np.ones((32, 512), np.int64), "sum", "row")


def both(values: Floats) -> Floats:
    return np.stack([values.min(), values.max()])


def test_the_shipped_sums_differ() -> None:
    """Sums that were all alike would show nothing."""
    for dim in ("row", "column"):
        least, most = both(np.load(REDUCE / f"sum_{dim}.npy"))
        assert most - least > 10
