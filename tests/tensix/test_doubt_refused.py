"""Who refuses a doubtful cell: the packer, cores, small tiles, what earlier work left."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from doubtful import BF16, FP16, in_doubt, note, rule
from matrix_reference import A, B, filled, high_row
from pack_model import Pack
from pack_runner import execute, setup
from unit_runner import run
from unpack_model import put

from bhemu.errors import BhemuError
from bhemu.machine.tile import Tile
from bhemu.memmap import RISCV_DEBUG_REG_DBG_FEATURE_DISABLE
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, code, li, lw, sw
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix.dest import HALVES, UNWRITTEN
from bhemu.tensix.state import State


def packing(p: Pack, at: int, columns: int) -> State:
    s, _ = setup(p)
    s.adc[0, 2, 1, 0] = 15
    s.dst_valid[:] = 1
    note(s, at, columns)
    return s


def masked(s: State) -> None:
    """As a reduction packs: the first row of a face as it is, the others cleared."""
    put(s, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, 16)
    put(s, cf.PCK_EDGE_OFFSET_SEC0_mask, 0)
    put(s, cf.PCK_EDGE_OFFSET_SEC1_mask, 0xFFFF)
    put(s, cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_0, 1)


def first_column(s: State) -> None:
    """Of each row the first column is kept."""
    put(s, cf.PCK_EDGE_OFFSET_SEC0_mask, 1)


def unmasked(s: State) -> None:
    pass


@pytest.mark.parametrize(
    ("p", "at", "columns", "prepare", "expected"),
    [
        (Pack(offset=4), 6, 0x20, unmasked, "FPU-EXPONENT"),
        (Pack(offset=4), 6, 0x20 << 16, unmasked, "FPU-DENORMALS"),
        (Pack(offset=4), 8, 0x20, unmasked, ""),
        (Pack(offset=12, wide=1, fmt=0, out=0), 21, 0x20, unmasked, "FPU-EXPONENT"),
        (Pack(offset=12, wide=1, fmt=0, out=0), 29, 0x20, unmasked, "FPU-EXPONENT"),
        (Pack(offset=12, wide=1, fmt=9, out=9), 29, 0x20, unmasked, ""),
        (Pack(offset=4), 5, 0x20, masked, ""),
        (Pack(offset=4), 4, 0x20, masked, "FPU-EXPONENT"),
        (Pack(offset=4), 5, 0x20, first_column, ""),
        (Pack(offset=4), 5, 0x21, first_column, "FPU-EXPONENT"),
    ],
)
def test_pacr(
    p: Pack, at: int, columns: int, prepare: Callable[[State], None], expected: str
) -> None:
    """Refused before any effect, unless no doubtful datum reaches L1."""
    s, other = packing(p, at, columns), packing(p, at, 0)
    for state in (s, other):
        prepare(state)
    before = s.l1.copy()
    assert rule(execute(s)) == expected
    assert execute(other) == rules.DONE
    assert np.array_equal(s.l1, before if expected else other.l1)


def test_rows_of_small_tiles_that_earlier_work_left_in_srca() -> None:
    """Tiles of two rows in fp16 after bf16 in all of SrcA, into 32-bit Dst: rows 0, 1 are packed.

    The same with the rest of SrcA clear gives the same bytes: what ran before does not matter.
    """
    packed = []
    for left in (0, 0x3F9A0000):
        p = Pack(offset=0, wide=1, fmt=5, out=5)
        s, _ = setup(p)
        s.src_valid[:], s.src_fmt[:] = 1, FP16
        s.src[A], s.src[B] = left, 0
        s.src[A, 0, :2] = 0x07A04000
        s.cfg[0, 1] |= 1 << 29  # Fp32_enabled
        assert run(s, "ELWADD", dst=0) == rules.DONE
        assert bool(s.doubt[0]) == bool(left)
        s.adc[0, 2, 1, 0] = 15
        assert execute(s, read_intf_sel=3) == rules.DONE
        packed.append(s.l1.copy())
        assert rule(execute(s)) == ("FPU-EXPONENT" if left else "")
    assert np.array_equal(*packed)


@pytest.mark.parametrize("llk", [0, 1])
def test_bit_11_that_an_integer_program_left_set(llk: int) -> None:
    """bf16 stores of the vector unit to 32-bit Dst, packed as bf16.

    By tt-llk's tests they leave the low halves, with bit 11 of DBG_FEATURE_DISABLE or without.
    """
    results = []
    for bit in (0, HALVES):
        p = Pack(offset=0, wide=1, fmt=5, out=5)
        s, _ = setup(p, 7)
        s.reference[0] = llk
        s.debug[RISCV_DEBUG_REG_DBG_FEATURE_DISABLE >> 2] = bit
        s.dst_valid[:] = 1
        s.cfg[0, 1] |= 1 << 30  # SFPU_Fp32_enabled
        s.lreg[3] = np.arange(32, dtype=np.uint32) << 18 | 0x3F800000
        assert run(s, "SFPSTORE", lreg_ind=3, instr_mod0=2, dest_reg_addr=0) == rules.DONE
        s.adc[0, 2, 1, 0] = 15
        results.append((rule(execute(s)), s.l1.copy()))
    if llk:
        assert results[0][0] == results[1][0] == ""
        assert np.array_equal(results[0][1], results[1][1])
    else:
        assert results[1][0] == "PACR-UNWRITTEN"


def test_low_halves_of_rows_that_were_cleared_are_not_taken_for_kept() -> None:
    s = filled(1, BF16, False)
    s.reference[0] = 1
    s.debug[RISCV_DEBUG_REG_DBG_FEATURE_DISABLE >> 2] = HALVES
    s.dst_valid[:] = 1
    s.dst_valid[high_row(66)] = 0
    before = s.dst.copy()
    assert run(s, "MOVB2D", dst=64, movb2d_instr_mod=4) == rules.DONE
    low = [high_row(64 + r) + 8 for r in range(4)]
    assert [int(s.dst_valid[at]) for at in low] == [1, 1, UNWRITTEN, 1]
    kept = [0, 1, 3]
    assert np.array_equal(s.dst[low][kept], before[low][kept])


WINDOW, START = 0xFFBD8000, 0x10000


def core_that(program: list[int], columns: int) -> Tile:
    """trisc2 with a program that accesses 16-bit datums of Dst, row 2 in doubt."""
    tile = Tile()
    tile.write(START, code(program, PARK))
    tile.core["trisc2"].set_reset_pc(START)
    tile.core["trisc2"].release()
    tile.state.cfg[0, 3] = 3 << 26  # bf16
    tile.state.dst_valid[:] = 1
    note(tile.state, 2, columns)
    return tile


@pytest.mark.parametrize(("columns", "expected"), [(0x30, "FPU-EXPONENT"), (0x40, "")])
def test_a_core_that_loads_a_doubtful_datum(columns: int, expected: str) -> None:
    tile = core_that([*li(A1, WINDOW + 2 * 32 + 2 * 4), lw(A0, A1)], columns)
    try:
        found = tile.run().reason
    except BhemuError as problem:
        found = problem.rule or ""
    assert found == (expected or "idle")


def test_a_core_that_stores_ends_the_doubt_of_its_datums() -> None:
    tile = core_that([*li(A1, WINDOW + 2 * 32 + 2 * 4), sw(ZERO, A1)], 0x70)
    assert tile.run().reason == "idle"
    assert in_doubt(tile.state, 2) == {6}


def test_packs_of_other_sizes_count_the_same() -> None:
    """One row of the interfaces: rows of the others are not read."""
    p = replace(Pack(offset=4), fmt=6, out=6)
    s = packing(p, 5, 0xFFFF)
    assert execute(s, read_intf_sel=1) == rules.DONE
    assert rule(execute(packing(p, 4, 1), read_intf_sel=1)) == "FPU-EXPONENT"
