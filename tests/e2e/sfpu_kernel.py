"""Runs the sfpu kernel of elfs/sfpu on arrays of 32-bit datums."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from bhemu.machine.tile import Tile

ELFS = Path(__file__).parents[2] / "elfs" / "sfpu"
OPS = (
    *("exp", "log", "reciprocal", "sqrt", "sigmoid", "tanh", "gelu", "relu", "clamp", "leaky"),
    *("eq", "ne", "lt", "gt", "le", "ge", "where", "max", "min", "add_int32", "shift"),
    *("fp32_to_int32", "int32_to_fp32", "fp32_to_bf16", "fp32_to_bf16_rne", "fp32_to_uint16"),
    "approx_reciprocal",
)
IN, OUT, TILE = (0x20000, 0x60000, 0xA0000), 0xE0000, 1024
DONE = [(0x100, 0xD0E0)]

Words = npt.NDArray[np.uint32]


def bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def start(op: int, arguments: list[int], inputs: list[Words], **options: object) -> Tile:
    """The kernel loaded and released; `arguments`: n_tiles, macro, p0, p1."""
    tile = Tile(**options)  # type: ignore[arg-type]
    for name in ("brisc", "trisc0", "trisc1", "trisc2"):
        image = tile.core[name].load_elf(ELFS / f"{name}.elf")
        if name != "brisc":
            tile.core[name].set_reset_pc(image.entry)
    n_tiles, macro, p0, p1 = arguments
    args = image.symbols.address("runtime_args")
    words = [n_tiles, op, macro, len(inputs), *IN, OUT, p0, p1]
    for i, value in enumerate(words):
        tile.write32(args + 4 * i, value)
    for at, data in zip(IN, inputs, strict=False):
        tile.write(at, data.tobytes())
    tile.core["brisc"].release()
    return tile


def run(
    name: str,
    *inputs: npt.NDArray[np.generic],
    macro: int = 0,
    p0: float = 0,
    p1: float = 0,
    **options: object,
) -> Words:
    """Result patterns of the operation on arrays of 32-bit datums, whole tiles, in L1 order."""
    data = [np.ascontiguousarray(a).view(np.uint32).ravel() for a in inputs]
    arguments = [data[0].size // TILE, macro, bits(p0), bits(p1)]
    tile = start(OPS.index(name), arguments, data, poison="ff", **options)
    assert tile.run(DONE, timeout_s=120).reason == "until"
    end = OUT + 4 * data[0].size
    assert tile.read(end, 4096) == b"\xff" * 4096
    return np.frombuffer(tile.read(OUT, 4 * data[0].size), np.uint32)
