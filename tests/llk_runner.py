"""Runs elfs/llk_like under the harness: parameters and operands in, the output's bytes out."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bhemu import llk as device
from bhemu.machine.tile import Tile
from bhemu.program import tensor

ELFS = Path(__file__).parents[1] / "elfs" / "llk_like"
PARAMS, A, B, C = 0x20000, 0x30000, 0x60000, 0x90000
CORES = ("brisc", "trisc0", "trisc1", "trisc2")

UNPACK_A, UNPACK_AB, UNPACK_A_TRANSPOSED, UNPACK_TILIZE, UNPACK_REDUCE = range(5)
UNPACK_A_EXCHANGED, UNPACK_A_THEN_B, UNPACK_TO_DST, UNPACK_UNTILIZE = range(5, 9)
UNPACK_FACE_PAIRS, UNPACK_B_FACES, UNPACK_A_ONLY, UNPACK_FAST_TILIZE, UNPACK_TOPK = range(9, 14)
COPY, ADD, SUB, MUL, MATMUL, TILIZE, REDUCE, TRANSPOSE, COPY_TWO, NOTHING = range(10)
COPY_BY_ADD, COPY_BLOCK, ADD_FACES, SUB_FACES, MUL_FACES = range(10, 15)
FAST_TILIZE, FAST_UNTILIZE, TOPK, MOVE_B = range(15, 19)
PACK_TILE, PACK_UNTILIZE, PACK_BLOCK_UNTILIZE, PACK_BLOCK_DENSE = range(4)
PACK_FAST_TILIZE, PACK_FAST_UNTILIZE, PACK_TOPK = range(4, 7)
UNSIGNED_IN, UNSIGNED_OUT, E4M3_IN, E4M3_OUT, ROUND_10_BITS, READ_INT8, SMALLEST_FIRST = (
    1 << i for i in range(7)
)
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
    "fp8_e4m3": 10,
    "bfp2a": 11,
    "int8": 14,
    "uint8": 14,
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
    faces: int = 4
    face_rows: int = 16
    width: int = 1
    b_bytes: int = 2048
    flags: int = 0
    broadcast: int = 0

    @property
    def output_bytes(self) -> int:
        """Bytes that the kernels write from `c` on."""
        side_by_side = self.width if self.pack >= PACK_BLOCK_UNTILIZE else 1
        indices = self.b_bytes if self.pack == PACK_TOPK else 0
        passes = 1 if self.l1_acc else self.tiles
        return passes * (side_by_side * self.out_bytes + indices)


def params(kind: dict[str, int], into: str, src: str, dst: str, out: str, **more: int) -> Params:
    """Parameters by format names; sizes follow from them."""
    sizes = {
        "in_bytes": tensor.encoded_size(TILE, into),
        "b_bytes": tensor.encoded_size(TILE, into),
        "out_bytes": tensor.encoded_size(TILE, out),
    }
    numbers = {"into": FORMATS[into], "src": FORMATS[src], "dst": FORMATS[dst], "out": FORMATS[out]}
    return Params(**{**kind, **numbers, **sizes, **more})


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
        tile.write(C, bytes(chosen.output_bytes))
    device.start(tile)
    stop = tile.run(device.done_words(), limit=20_000_000)
    assert stop.reason == "until", stop
    return tile.read(C, chosen.output_bytes)
