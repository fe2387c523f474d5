"""matmul's variants end to end: formats, 32-bit Dst, subblocks, blocks of K, partial sums in L1.

Small integers are exact on every way.  The digests are those of ttsim v1.10.0 for these very ELFs.
"""

import hashlib

import numpy as np
import pytest
from test_matmul import (
    DATA,
    MATMUL,
    PHASES,
    Bf16,
    Floats,
    bf16,
    matrix,
    scattered,
    widen,
)

from bhemu.errors import Assert
from bhemu.machine.tile import Tile
from bhemu.program.tensor import decode, encode

A, B, C, PARTIALS = 0x40000, 0x80000, 0xC0000, 0x100000
DONE = [(0x100, 0xD0E0)]
BF16, BFP8 = 0, 1
RELOAD, IN_L1 = 0, 1


def start(sizes: tuple[int, ...], a: Floats, b: Floats, phases: int = 4, **args: int) -> Tile:
    """matmul loaded and released; sizes m, k, n in tiles, the others by their names in args.h."""
    tile = Tile(poison="ff")
    for name in ("brisc", "trisc0", "trisc1", "trisc2"):
        image = tile.core[name].load_elf(MATMUL / f"{name}.elf")
        if name != "brisc":
            tile.core[name].set_reset_pc(image.entry)
    names = ("input", "fp32", "block_k", "rows", "columns", "mode")
    assert set(args) <= {*names, "partials"}
    values = [*sizes, phases, A, B, C, *(args.get(name, 0) for name in names)]
    values.append(args.get("partials", PARTIALS))
    at = image.symbols.address("runtime_args")
    for i, value in enumerate(values):
        tile.write32(at + 4 * i, value)
    dtype = "bfp8" if args.get("input") == BFP8 else "bf16"
    for address, values_ in ((A, a), (B, b)):
        tile.write(address, encode(values_.astype(np.float32), dtype))
    tile.core["brisc"].release()
    return tile


def matmul(a: Floats, b: Floats, phases: int = 4, **args: int) -> Bf16:
    """C of a finished run, as bf16 patterns."""
    (rows, inner), columns = a.shape, b.shape[1]
    tile = start((rows // 32, inner // 32, columns // 32), a, b, phases, **args)
    assert tile.run(DONE, timeout_s=60).reason == "until"
    return matrix(tile.read(C, rows * columns * 2), rows, columns)


SHAPES = [
    {},
    {"block_k": 4},
    {"rows": 2, "columns": 2},
    {"rows": 4, "columns": 1, "block_k": 2},
    {"rows": 1, "columns": 2, "block_k": 1},
    {"block_k": 1, "mode": IN_L1},
    {"rows": 2, "columns": 2, "block_k": 2, "mode": IN_L1},
    {"rows": 2, "columns": 1, "block_k": 1, "mode": IN_L1},
]


@pytest.mark.parametrize("input_format", [BF16, BFP8], ids=["bf16", "bfp8"])
@pytest.mark.parametrize("fp32", [0, 1], ids=["dst16", "dst32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_small_integers_are_exact(shape: dict[str, int], fp32: int, input_format: int) -> None:
    a, b = DATA.integers(128, 128, 3), DATA.integers(128, 64, 4)
    want = bf16(DATA.product(a, b))
    phases = 2 if input_format == BFP8 else 4
    got = matmul(a, b, phases, fp32=fp32, input=input_format, **shape)
    assert np.array_equal(got, want), np.argwhere(got != want)[:8]


def test_one_tile_of_eight_in_a_half_of_16_bit_dst() -> None:
    a, b = DATA.integers(64, 32, 5), DATA.integers(32, 128, 6)
    assert np.array_equal(matmul(a, b, rows=2, columns=4), bf16(DATA.product(a, b)))


@pytest.mark.parametrize("mode", [RELOAD, IN_L1])
def test_partial_sums_need_their_own_precision(mode: int) -> None:
    """Sums beyond 256 have gaps in bf16 partial sums, none in fp32 (tf32 on the way back)."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(-8, 9, (32, 128)), rng.integers(-8, 9, (128, 32))
    want = (a @ b).astype(np.float64)
    assert np.abs(want).max() > 512
    assert np.abs(a.astype(np.int64)[:, :96] @ b[:96]).max() < 2048
    got = widen(matmul(a, b, fp32=1, block_k=1, mode=mode))
    assert np.array_equal(got, widen(nearest(want)))
    assert not np.array_equal(widen(matmul(a, b, block_k=1, mode=mode)), got)


def nearest(values: Floats) -> Bf16:
    """The nearest bf16, halves away from zero, as the packer rounds."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x8000) >> 16).astype(np.uint16)


# Largest error of an element, as a part of the largest element, and least correlation.
BOUNDS = {
    (0, 1): (0.05, 0.99),
    (0, 2): (0.03, 0.999),
    (0, 3): (0.03, 0.999),
    (0, 4): (0.03, 0.999),
    (1, 1): (0.05, 0.99),
    (1, 2): (0.02, 0.9999),
    (1, 3): (0.005, 0.9999),
    (1, 4): (0.005, 0.9999),
}


@pytest.mark.parametrize(("fp32", "phases"), BOUNDS)
def test_gaussian_error(fp32: int, phases: int) -> None:
    """Against float64 of the same inputs: products by slices, sums of 16 or 32 bits, bf16 out."""
    rng = np.random.default_rng(7)
    a = widen(bf16(rng.standard_normal((64, 128))))
    b = widen(bf16(rng.standard_normal((128, 64))))
    want = a @ b
    got = widen(matmul(a, b, phases, fp32=fp32, rows=2, columns=2))
    error = np.abs(got - want)
    most, least = BOUNDS[fp32, phases]
    print(
        f"{PHASES[phases]} Dst {32 if fp32 else 16} bit: largest error {error.max():.4f}, "
        f"mean {error.mean():.5f}, of values up to {np.abs(want).max():.1f}"
    )
    assert error.max() < most * np.abs(want).max()
    assert np.corrcoef(want.ravel(), got.ravel())[0, 1] > least


@pytest.mark.parametrize(
    ("sizes", "args"),
    [
        ((1, 1, 1), {"input": 2}),
        ((1, 1, 1), {"fp32": 2}),
        ((1, 1, 1), {"mode": 2}),
        ((1, 3, 1), {"block_k": 2}),
        ((1, 1, 1), {"block_k": 2}),
        ((3, 1, 1), {"rows": 2}),
        ((1, 1, 3), {"columns": 2}),
        ((4, 1, 4), {"rows": 4, "columns": 4}),
        ((4, 1, 2), {"rows": 4, "columns": 2, "fp32": 1}),
        ((1, 2, 1), {"block_k": 1, "partials": C}),  # partial sums overwrite C
        ((1, 2, 1), {"block_k": 1, "partials": A + 2048}),
        ((1, 2, 1), {"block_k": 1, "partials": 0x17FC00}),
    ],
)
def test_a_bad_argument_stops_on_ebreak(sizes: tuple[int, ...], args: dict[str, int]) -> None:
    nothing = np.zeros((32, 32))
    with pytest.raises(Assert, match="brisc"):
        start(sizes, nothing, nothing, **args).run(DONE, timeout_s=60)


def test_a_whole_bf16_tile_is_not_read_of_bfp8() -> None:
    """A decoded bfp8 matrix through the identity comes back whole: 7 bits and a shared exponent."""
    rng = np.random.default_rng(9)
    values = decode(
        encode(rng.standard_normal((32, 32)).astype(np.float32), "bfp8", convert="nearest"),
        (32, 32),
        "bfp8",
    ).astype(np.float64)
    got = widen(matmul(values, np.eye(32), phases=4, input=BFP8))
    assert np.array_equal(got, values)


# SHA-256 of C on ttsim v1.10.0 (November 2026): A of 64x128, B of 128x64, `scattered` 1 and 2.
TTSIM: dict[tuple[int, int, int, int], str] = {
    (1, 0, 0, 0): "e54ad796731f983c61694c0611f6f5c0677d34b8506e2e16ebbca54a27c4badf",
    (1, 0, 0, 1): "1fe17b6256ac21274a5340cffd01de1b50902e635e96101341dab7c6dc3f5a4a",
    (1, 0, 1, 0): "dd9b951ea7b07175b90390682719a056e1dc22cfe420d48950e157f767eebb17",
    (1, 0, 1, 1): "26c85d3b752cdaafba7552864bd32a524cccc71dc033bb96374d18cec479ec62",
    (1, 1, 0, 0): "99872d149651ec6959c62eb8a0a4bf998e2d2b499bb6205eef1c27f4af71151a",
    (1, 1, 0, 1): "7578ba02b9a601f18ba943ccb55be7a8a7e7d1b05958b07a92c92427290025d2",
    (1, 1, 1, 0): "72f78820267dc051723c1c4bebb3266ab6054ca8d6cf238005e8d9d26b2d83d6",
    (1, 1, 1, 1): "84bdbaf02bcb7a6e68cbda3392d3f847bd3ed467fdd117155448678985805823",
    (2, 0, 0, 0): "2c9307e24f3b06b908fc1e388dd8200976cde3db2c4a5c4122800eb490efd687",
    (2, 0, 0, 1): "85f9484ef905dbbba1990e739e337a964437be759dd04f6e8e803cb95eb0b4be",
    (2, 0, 1, 0): "8f534ed2ab3e7daffaeaf450a7d9d79f6f4d2f5cc16df9fde84bff031c53613d",
    (2, 0, 1, 1): "d9d1c8579f67abadd4b0500ce05922146ee52214d6b577a4e3c751edbe2b75f5",
    (2, 1, 0, 0): "b0ffcba330119fe28712c33e37a1eebc835fab22dd5f9e5251a6755ee80442c5",
    (2, 1, 0, 1): "ae4737a5b2e984b8b99dbf3306405cc5fbe2849efd57ad448eea9d25e45bac3d",
    (2, 1, 1, 0): "00b08e662b7d4c19d16cf3ddaa2b265d3b8770802aa7b58b97c4dd24cbcbd696",
    (2, 1, 1, 1): "e799ab90f32eb887920ea677874eba0072c67532a308dca18ed995609da43f78",
    (3, 0, 0, 0): "dcf648c3a3c243f945a2e4710900b24b61f1d52f88b3cbf1d4b2b03953541ce7",
    (3, 0, 0, 1): "e042937077af55d7a8ad84fc4b55390a5f56e6ebedfd5c337f5b6550b275186d",
    (3, 0, 1, 0): "acfd826b4ac1f92bb2b804318d7a3bf6d5db38ad3e96c38a0af55c1db8b04bdf",
    (3, 0, 1, 1): "56667a11a820a3aca19a3289e5a070de2d1ee85455cdb62e836e5f073973ac20",
    (3, 1, 0, 0): "b0ffcba330119fe28712c33e37a1eebc835fab22dd5f9e5251a6755ee80442c5",
    (3, 1, 0, 1): "ae4737a5b2e984b8b99dbf3306405cc5fbe2849efd57ad448eea9d25e45bac3d",
    (3, 1, 1, 0): "00b08e662b7d4c19d16cf3ddaa2b265d3b8770802aa7b58b97c4dd24cbcbd696",
    (3, 1, 1, 1): "e799ab90f32eb887920ea677874eba0072c67532a308dca18ed995609da43f78",
    (4, 0, 0, 0): "cfae0f760f0cdeab63d2349e562c9837932cd6e82c523c78372a54bad7d31256",
    (4, 0, 0, 1): "e6c8c9e58234baceec97ef4e992f117e3c36b1869177fdb30626d91eba463822",
    (4, 0, 1, 0): "b099700e34d9e4454a4b56c24932f9331a9cd8b0abc469862f930d2c6f2e7080",
    (4, 0, 1, 1): "a109e164c26b7ec0794557d91efc6d1dda7200d2fc1b557783bb980c4c7d0283",
    (4, 1, 0, 0): "b0ffcba330119fe28712c33e37a1eebc835fab22dd5f9e5251a6755ee80442c5",
    (4, 1, 0, 1): "ae4737a5b2e984b8b99dbf3306405cc5fbe2849efd57ad448eea9d25e45bac3d",
    (4, 1, 1, 0): "00b08e662b7d4c19d16cf3ddaa2b265d3b8770802aa7b58b97c4dd24cbcbd696",
    (4, 1, 1, 1): "e799ab90f32eb887920ea677874eba0072c67532a308dca18ed995609da43f78",
}


@pytest.mark.parametrize(("phases", "input_format", "fp32", "mode"), TTSIM)
def test_bits_are_those_of_ttsim(phases: int, input_format: int, fp32: int, mode: int) -> None:
    a, b = widen(scattered(64, 128, 1)), widen(scattered(128, 64, 2))
    if input_format == BFP8:
        a, b = as_bfp8(a), as_bfp8(b)
    args = {"input": input_format, "fp32": fp32, "mode": mode, "block_k": 1, "rows": 2}
    got = matmul(a, b, phases, columns=1, **args)
    digest = hashlib.sha256(np.ascontiguousarray(got).tobytes()).hexdigest()
    assert digest == TTSIM[phases, input_format, fp32, mode]


def as_bfp8(values: Floats) -> Floats:
    data = encode(values.astype(np.float32), "bfp8", convert="nearest")
    return decode(data, values.shape, "bfp8").astype(np.float64)
