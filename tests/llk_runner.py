"""Runs elfs/llk_like under the harness: parameters and operands in, the output's bytes out."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bhemu import tensor
from bhemu.llk import harness
from bhemu.tile import Tile

ELFS = Path(__file__).parents[1] / "elfs" / "llk_like"
PARAMS, A, B, C = 0x20000, 0x30000, 0x60000, 0x90000
CORES = ("brisc", "trisc0", "trisc1", "trisc2")

UNPACK_A, UNPACK_AB, UNPACK_A_TRANSPOSED, UNPACK_TILIZE, UNPACK_REDUCE = range(5)
UNPACK_A_EXCHANGED, UNPACK_A_THEN_B, UNPACK_TO_DST, UNPACK_UNTILIZE = range(5, 9)
COPY, ADD, SUB, MUL, MATMUL, TILIZE, REDUCE, TRANSPOSE, COPY_TWO, NOTHING = range(10)
PACK_TILE, PACK_UNTILIZE = range(2)
SFPU_NONE, SFPU_ABS, SFPU_NEGATE, SFPU_SQUARE, SFPU_UINT16_TO_BF16 = range(5)
SFPU_ADD_TWO, SFPU_MUL_TWO, SFPU_MAX_TWO, SFPU_WHERE_TWO = range(5, 9)
FORMATS = {
    "fp32": 0,
    "fp16": 1,
    "bfp8a": 2,
    "bfp4a": 3,
    "tf32": 4,
    "bf16": 5,
    "bfp8": 6,
    "bfp4": 7,
    "int32": 8,
    "uint16": 9,
    "fp8_e5m2": 10,
    "bfp2a": 11,
    "int8": 14,
    "bfp2": 15,
}
TILE = (32, 32)


@dataclass
class Params:
    """struct params of firmware/llk_like/params.h, in its order."""

    unpack: int = UNPACK_A
    math: int = COPY
    pack: int = PACK_TILE
    sfpu: int = SFPU_NONE
    reduce: int = 0
    phases: int = 1
    tiles: int = 1
    inner: int = 1
    into: int = 5
    src: int = 5
    dst: int = 5
    out: int = 5
    dst32: int = 0
    int8: int = 0
    a: int = A
    b: int = B
    c: int = C
    in_bytes: int = 2048
    out_bytes: int = 2048
    accumulate: int = 0
    relu: int = 0
    l1_acc: int = 0


def params(kind: dict[str, int], into: str, src: str, dst: str, out: str, **more: int) -> Params:
    """Parameters by format names; sizes follow from them."""
    sizes = {
        "in_bytes": tensor.encoded_size(TILE, into),
        "out_bytes": tensor.encoded_size(TILE, out),
    }
    numbers = {"into": FORMATS[into], "src": FORMATS[src], "dst": FORMATS[dst], "out": FORMATS[out]}
    return Params(**kind, **numbers, **sizes, **more)


def loaded(**options: Any) -> Tile:
    """A tile with the four ELFs in place and every core in reset."""
    tile = Tile(poison="random", **options)
    for core in CORES:
        tile.core[core].load_elf(ELFS / f"{core}.elf", local="loader_init")
    return tile


def run(tile: Tile, chosen: Params, a: bytes, b: bytes = b"") -> bytes:
    """The output after one start of the kernels; the tile's cores are in reset.

    What lies at the output before counts only for accumulation in L1: zeros.
    """
    for i, field in enumerate(fields(Params)):
        tile.write32(PARAMS + 4 * i, getattr(chosen, field.name))
    tile.write(A, a)
    tile.write(B, b)
    if chosen.l1_acc:
        tile.write(C, bytes(chosen.out_bytes))
    harness.start(tile)
    stop = tile.run(harness.done_words(), limit=20_000_000)
    assert stop.reason == "until", stop
    return tile.read(C, (1 if chosen.l1_acc else chosen.tiles) * chosen.out_bytes)
