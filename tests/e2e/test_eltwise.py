"""eltwise end to end on its compiled ELFs: exact against numpy, by tolerance, and by ttsim's bits.

Integers up to 16 and what they give are exact in bf16.  ELWADD and ELWSUB align the smaller operand
to 11 mantissa bits and round the sum to bf16; ELWMUL adds up one product of mantissa slices per
phase in a bf16 Dst (ELWADD, ELWSUB, ELWMUL, Blackhole ISA).  ttsim v1.10.0 gave the digests below
for these very ELFs.
"""

import hashlib
import shutil
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
ELTWISE = ROOT / "elfs" / "eltwise"
A, B, C, TILE_BYTES = 0x40000, 0x80000, 0xC0000, 2048
DONE = [(0x100, 0xD0E0)]
ADD, SUB, MUL = 0, 1, 2
BROADCAST = {"none": 0, "column": 1, "row": 2, "scalar": 3}
POISON = b"\xff" * 4096
DATA = script("scripts/make_eltwise_data.py")

Bf16 = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]


def bf16(values: npt.NDArray[np.generic]) -> Bf16:
    """Patterns of values that bf16 holds exactly."""
    bits = values.astype(np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype(np.uint16)


def widen(patterns: Bf16) -> Floats:
    return (patterns.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def start(arguments: tuple[int, ...], a: Bf16, b: Bf16, **options: object) -> Tile:
    """eltwise loaded and released, before the run."""
    tile = Tile(**options)  # type: ignore[arg-type]
    for name in ("brisc", "trisc0", "trisc1", "trisc2"):
        image = tile.core[name].load_elf(ELTWISE / f"{name}.elf")
        if name != "brisc":
            tile.core[name].set_reset_pc(image.entry)
    args = image.symbols.address("runtime_args")
    for i, value in enumerate(arguments):
        tile.write32(args + 4 * i, value)
    tile.write(A, a.tobytes())
    tile.write(B, b.tobytes())
    tile.core["brisc"].release()
    return tile


def eltwise(
    op: int, a: Bf16, b: Bf16, phases: int = 1, how: str = "none", **options: object
) -> Bf16:
    """C of a finished run on whole tiles (flat, in L1 order); nothing after C may be written."""
    arguments = (a.size // 1024, op, phases, A, B, C, BROADCAST[how])
    tile = start(arguments, a, b, poison="ff", **options)
    assert tile.run(DONE, timeout_s=60).reason == "until"
    assert tile.read(C + 2 * a.size, len(POISON)) == POISON
    return np.frombuffer(tile.read(C, 2 * a.size), np.uint16)


def scattered(count: int, seed: int) -> Bf16:
    """Patterns of both signs with every mantissa and 16 exponents around 1.0."""
    index = np.arange(seed * 0x10000, seed * 0x10000 + count, dtype=np.uint64)
    mixed = (index * 2654435761 & 0xFFFFFFFF) >> 8
    values = (mixed & 1) << 15 | (120 + (mixed >> 1 & 15)) << 7 | mixed >> 5 & 0x7F
    return values.astype(np.uint16)


@pytest.mark.parametrize("tiles", [1, 2, 3, 16])
@pytest.mark.parametrize(
    ("name", "op", "phases"),
    [("add", ADD, 1), ("sub", SUB, 1), *(("mul", MUL, phases) for phases in (1, 2, 3, 4))],
)
def test_integers_are_exact(name: str, op: int, phases: int, tiles: int) -> None:
    a, b = DATA.integers(tiles, 5).ravel(), DATA.integers(tiles, 6).ravel()
    want = bf16(DATA.results(a, b)[name])
    got = eltwise(op, bf16(a), bf16(b), phases)
    assert np.array_equal(got, want), np.argwhere(got != want)[:8]


def l1_order(matrix: Bf16) -> Bf16:
    """A (32 * tiles, 32) matrix as 32x32 tiles of four faces, flat."""
    faces = matrix.reshape(-1, 2, 16, 2, 16).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(faces).ravel()


@pytest.mark.parametrize("how", BROADCAST)
@pytest.mark.parametrize(
    ("name", "op", "phases"), [("add", ADD, 1), ("sub", SUB, 1), ("mul", MUL, 1), ("mul", MUL, 4)]
)
def test_broadcasts_are_exact(name: str, op: int, phases: int, how: str) -> None:
    a, b = DATA.integers(3, 7), DATA.integers(3, 8)
    want = l1_order(bf16(DATA.results(a, DATA.broadcast(b, how))[name]))
    got = eltwise(op, l1_order(bf16(a)), l1_order(bf16(b)), phases, how)
    assert np.array_equal(got, want), np.argwhere(got != want)[:8]


def test_no_tiles_finish_without_writing() -> None:
    nothing = np.zeros(0, np.uint16)
    assert eltwise(ADD, nothing, nothing).size == 0


@pytest.mark.parametrize("op", [ADD, SUB])
def test_a_sum_is_the_nearest_bf16(op: int) -> None:
    """Up to 3 binades apart the alignment keeps every bit; operands farther apart lose some."""
    a, b = scattered(4096, 1), scattered(4096, 2)
    exact = widen(a) + widen(b) * (1 if op == ADD else -1)
    got = widen(eltwise(op, a, b))
    spacing = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-20))) - 7)
    near = np.abs((a >> 7 & 0xFF).astype(int) - (b >> 7 & 0xFF).astype(int)) <= 3
    assert near.sum() > 1000
    assert (np.abs(got - exact)[near] <= spacing[near] / 2).all()
    # Farther apart the smaller operand is rounded first, to half of 1/8 unit of the larger one,
    # which is 1/8 of the result's where that has lost a binade: 1/2 + 1/8 in all.
    assert (np.abs(got - exact) <= spacing * 0.625).all()


@pytest.mark.parametrize(("phases", "most"), [(1, 0.08), (2, 0.02), (3, 0.016), (4, 0.016)])
def test_a_product_is_close(phases: int, most: float) -> None:
    """LoFi cuts A to 5 bits and B to 7; from HiFi2 on A is whole, from HiFi3 on both are."""
    a, b = scattered(4096, 3), scattered(4096, 4)
    exact = widen(a) * widen(b)
    error = np.abs(widen(eltwise(MUL, a, b, phases)) / exact - 1).max()
    assert most / 4 < error < most


# SHA-256 of C on ttsim v1.10.0 by operation and phases, for four tiles of `scattered` 5 and 6.
TTSIM = {
    (ADD, 1): "5525a3de3432ee375ba3e205c806be708be10a2226d8bbd4fc17b31893e7a359",
    (SUB, 1): "881d3d15058ca32bf2242ba3f983b08763846dacf5c88a3e2899a68760df0d49",
    (MUL, 1): "4c72a9b141f855ea3b5e431f02960f50080772b71e6d5dbbe9619d5d901a7f18",
    (MUL, 2): "22f03e291848b24b1a73f4411078a57f68ef47f57533e8e4f4941eda219b6456",
    (MUL, 3): "8594d54d29f9958df5a56d17090d96fa83a64ebd2912073d676a0a74df6a74cf",
    (MUL, 4): "8594d54d29f9958df5a56d17090d96fa83a64ebd2912073d676a0a74df6a74cf",
}


@pytest.mark.parametrize(("op", "phases"), TTSIM)
def test_bits_are_those_of_ttsim(op: int, phases: int) -> None:
    got = eltwise(op, scattered(4096, 5), scattered(4096, 6), phases)
    assert hashlib.sha256(got.tobytes()).hexdigest() == TTSIM[op, phases]


# The same with B broadcast, and one phase.
TTSIM_BROADCAST: dict[tuple[int, str], str] = {
    (0, "row"): "09cf472cc22fb75f917c9243799d8d100742ffaa2c79ac779dbc8de3e342caa7",
    (0, "column"): "f05f36847c2ff8bfdf23fa17916afa64a1fce843ec3e86eb4b64b5731dd1396e",
    (0, "scalar"): "5c11be12561cc96be46649e5735f70a4e2f34e6ac66375b262489ea21a24a5d8",
    (1, "row"): "e86128222cc40f61a450bad6b9a6d20256d92e6e48a7440e13179143f481f413",
    (1, "column"): "4b663ce972c6c2ec956ad629a0a18469b1b8cd9e44095d4041f1481d7a36cd87",
    (1, "scalar"): "ced163988b02d1ff3bb9ec89d342eea36b3884c2ce67e96961943bf340c23be5",
    (2, "row"): "cba918ee4aa935592dfc8ba3e0ffd5066e9117a4da02432ea1b65a21c883def9",
    (2, "column"): "fe03e75bae49cef9b50d1f7322e6f985c675c9014c5e0e677b4548f40cc9d85b",
    (2, "scalar"): "9c5934be4eeb95efb2dde0d7936282aa479db567ef0ece127f82ef5d1f4a745b",
}


@pytest.mark.parametrize(("op", "how"), TTSIM_BROADCAST)
def test_broadcast_bits_are_those_of_ttsim(op: int, how: str) -> None:
    a, b = scattered(2048, 5).reshape(64, 32), scattered(2048, 6).reshape(64, 32)
    got = eltwise(op, l1_order(a), l1_order(b), 1, how)
    assert hashlib.sha256(got.tobytes()).hexdigest() == TTSIM_BROADCAST[op, how]


def test_result_does_not_depend_on_the_quantum() -> None:
    a, b = scattered(3072, 7), scattered(3072, 8)
    first, *others = (eltwise(MUL, a, b, 4, quantum=q) for q in (1000, 7, 1))
    assert all(np.array_equal(first, other) for other in others)


@pytest.mark.parametrize(
    "arguments",
    [
        (1, 3, 1, A, B, C, 0),
        (1, ADD, 2, A, B, C, 0),  # a sum has no fidelity phases
        (1, MUL, 0, A, B, C, 0),
        (1, MUL, 5, A, B, C, 0),
        (1, ADD, 1, A, B + 8, C, 0),
        (1, ADD, 1, A, B, 0x10000, 0),  # TRISC0's text lies there
        (2, ADD, 1, A, B, A + TILE_BYTES, 0),  # C overwrites A
        (769, ADD, 1, A, B, C, 0),
        (1, ADD, 1, A, B, C, 4),
    ],
)
def test_a_bad_argument_stops_on_ebreak(arguments: tuple[int, ...]) -> None:
    tile = start(arguments, scattered(1024, 1), scattered(1024, 2))
    with pytest.raises(Assert, match="brisc"):
        tile.run(DONE, timeout_s=60)


@pytest.mark.parametrize(
    ("op", "phases", "how", "name"),
    [
        (0, 1, "none", "add"),
        (1, 1, "none", "sub"),
        (2, 4, "none", "mul"),
        *((0, 1, how, f"add_{how}") for how in ("row", "column", "scalar")),
    ],
)
def test_the_command_prints_a_checked_answer(
    tmp_path: Path, op: int, phases: int, how: str, name: str
) -> None:
    """The shipped program, with the lines its comment names changed for the other operations."""
    folder = tmp_path / "eltwise"
    shutil.copytree(ELTWISE, folder)
    text = (folder / "PROGRAM.toml").read_text()
    changed = text.replace('"u32:0", "u32:1"', f'"u32:{op}", "u32:{phases}"')
    changed = changed.replace('"u32:0xC0000", "u32:0"', f'"u32:0xC0000", "u32:{BROADCAST[how]}"')
    (folder / "PROGRAM.toml").write_text(changed.replace('"add.npy"', f'"{name}.npy"'))
    command = [sys.executable, "-m", "bhemu", "run", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "equal (2048 of 2048)" in done.stdout
    assert (changed == text) == (name == "add")


def test_the_data_is_what_the_script_makes() -> None:
    a, b = DATA.integers(2, 1), DATA.integers(2, 2)
    files = {"a": a, "b": b, **DATA.results(a, b)}
    files |= {f"add_{how}": a + DATA.broadcast(b, how) for how in ("row", "column", "scalar")}
    for name, values in files.items():
        stored = np.load(ELTWISE / f"{name}.npy")
        assert stored.dtype == np.float32
        assert np.array_equal(stored, values), name
