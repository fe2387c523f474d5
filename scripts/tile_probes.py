"""Repeats measurements of one unit that packs or unpacks whole tiles, in modelled time.

The rows of tile_costs.csv are of tt-lang's operations, timed on a card without the other threads.
Here the unit gets the words of such a tile and nothing else: 16 PACR of 64 datums, or an UNPACR of
256 datums for each face and operand. What a card's thread does beside them (handshakes, words that
clear the other bank) takes time there and none here.
"""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bhemu import Tile
from bhemu.memmap import DEBUG_BASE, RISCV_DEBUG_REG_WALL_CLOCK_0
from bhemu.riscv import assembly as asm
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import BF16, BFP8, FP32, INT32, TF32
from bhemu.tensix.insn import assemble

COSTS = Path(__file__).with_name("tile_costs.csv")
FORMATS = {"Float32": FP32, "Float16_b": BF16, "Bfp8_b": BFP8, "Int32": INT32}
TILES = (32, 64, 96, 128)
RESULT, CODE, INPUT, OUTPUT = 0x100, 0x10000, 0x20000, 0x80000
CLOCK = DEBUG_BASE + RISCV_DEBUG_REG_WALL_CLOCK_0
FACE, LINE = 256, 16  # datums of an UNPACR; columns of the four rows of a PACR


class Row(NamedTuple):
    """A measurement: cycles of a tile on a card."""

    op: str
    source: str
    target: str
    wide: bool
    to_dst: bool
    cycles: float
    calibrates: bool


def rows() -> list[Row]:
    """All rows of tile_costs.csv."""
    lines = [line for line in COSTS.read_text().splitlines() if not line.startswith("#")]
    return [
        Row(op, source, target, wide == "1", to_dst == "1", float(cycles), used == "1")
        for op, source, target, wide, to_dst, cycles, used in csv.reader(lines[1:])
    ]


def _put(s: Any, field: cf.Field, value: int) -> None:
    word = int(s.cfg[0, field.word]) & ~(field.mask << field.shift)
    s.cfg[0, field.word] = word | value << field.shift


def _packs(s: Any, row: Row) -> tuple[str, list[int]]:
    """Configure the packer; its thread and the words of a tile."""
    wide, target = row.wide, FORMATS[row.target]
    between = FORMATS[row.source]
    if row.source == "Float32" and not wide:
        between = BF16  # Dst has 16 bits
    elif row.source == "Float16_b" and wide:
        between = FP32
    for field, value in (
        (cf.ALU_FORMAT_SPEC_REG2_Dstacc, between),
        (cf.THCON_SEC0_REG1_In_data_format, between),
        (cf.THCON_SEC0_REG1_Out_data_format, target),
        (cf.PCK_DEST_RD_CTRL_Read_32b_data, int(wide)),
        (cf.THCON_SEC0_REG1_Disable_zero_compress, 1),
        (cf.THCON_SEC0_REG1_Sub_l1_tile_header_size, 1),
        (cf.THCON_SEC0_REG1_L1_Dest_addr, OUTPUT // 16 - 1),
        (cf.THCON_SEC0_REG1_Exp_section_size, 4 if target == BFP8 else 0),
        (cf.PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF),
    ):
        _put(s, field, value)
    s.adc[2, 2, 1, 0] = LINE - 1
    s.dst_valid[:] = 1
    words = [assemble("PACR", last=int(i == 15)) for i in range(16)]
    return "trisc2", words


def _unpacks(s: Any, row: Row) -> tuple[str, list[int]]:
    """Configure the unpackers; their thread and the words of a tile."""
    source = FORMATS[row.source]
    target = source if source != FP32 or row.to_dst else TF32 if row.wide else BF16
    units = (0,) if row.op == "copy_tile" else (0, 1)
    for u in units:
        section = f"THCON_SEC{u}_"
        first = getattr(cf, f"{section}REG0_TileDescriptor").word
        s.cfg[0, first : first + 2] = source | FACE << 16, 1 | 4 << 16
        for name, value in (
            ("REG2_Out_data_format", target),
            ("REG2_Disable_zero_compress_cntx0", 1),
            ("REG3_Base_address", INPUT // 16 - 1),
        ):
            _put(s, getattr(cf, section + name), value)
        s.adc[0, u, 1, 0] = FACE - 1
    _put(s, cf.THCON_SEC0_REG2_Unpack_if_sel_cntx0, int(row.to_dst))
    _put(s, cf.THCON_SEC0_REG5_Tile_x_dim_cntx0, FACE)
    _put(s, cf.THCON_SEC0_REG5_Dest_cntx0_address, 64)
    face = [assemble("UNPACR", last=1, ovrd_thread_id=1, unpack_block_selection=u) for u in units]
    return "trisc0", face * 4


def _cycles(row: Row, tiles: int) -> int:
    """Cycles of so many tiles between the core's readings of the clock."""
    tile = Tile(timing="model", ub="silicon")
    make = _packs if row.op == "pack_tile" else _unpacks
    core, words = make(tile.state, row)
    body = [asm.ttinsn(word) for word in words]
    wait = [asm.ttinsn(assemble("STALLWAIT", stall_res=1 << 6, wait_res=0b1111))]
    program = asm.code(
        asm.li(asm.T0, CLOCK), asm.li(asm.A0, tiles),
        asm.lw(asm.T1, asm.T0, 0), asm.add(asm.T1, asm.T1, asm.ZERO),
        [*body, asm.addi(asm.A0, asm.A0, -1), asm.bne(asm.A0, asm.ZERO, -4 * (len(body) + 1))],
        wait,
        asm.lw(asm.T2, asm.T0, 0), asm.word("sub", asm.T2, asm.T2, asm.T1),
        asm.li(asm.A1, RESULT), asm.sw(asm.T2, asm.A1, 0), asm.jal(asm.ZERO, 0),
    )  # fmt: skip
    tile.write(CODE, program)
    tile.core[core].set_reset_pc(CODE)
    tile.core[core].release()
    tile.run(lambda t: bool(t.read32(RESULT)), limit=1_000_000)
    return tile.read32(RESULT)


def slope(row: Row) -> float:
    """Cycles a tile."""
    return float(np.polyfit(TILES, [_cycles(row, tiles) for tiles in TILES], 1)[0])
