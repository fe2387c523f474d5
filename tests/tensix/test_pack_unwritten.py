"""Dst rows that nothing has written: who writes which rows, and PACR of the others.

The rows are written out from Dst, Blackhole ISA (32-bit datums: high half at adj32, low half eight
rows below) and from the page of each instruction.
"""

from collections.abc import Iterable

import numpy as np
import pytest
from matrix_reference import BF16, FP16, TF32, filled
from pack_model import Pack
from pack_runner import execute, setup
from test_unpack import fresh as unpack_state
from unit_runner import WARN, count, run, sentence, view
from unpack_model import Unpack, put

from bhemu.machine import error_text, sentences
from bhemu.machine.tile import Tile
from bhemu.memmap import RISCV_DEBUG_REG_DBG_FEATURE_DISABLE
from bhemu.riscv.assembly import A1, PARK, ZERO, code, li, sw
from bhemu.tensix import config, rules
from bhemu.tensix import config_fields as cf
from bhemu.tensix.dest import HALVES, UNWRITTEN
from bhemu.tensix.state import State
from bhemu.tensix.units.pack import addresses

RULE = addresses._UNWRITTEN


def written(s: State) -> list[int]:
    return [int(row) for row in np.flatnonzero(s.dst_valid != UNWRITTEN)]


def wide(rows: Iterable[int]) -> list[int]:
    """Storage rows of 32-bit rows."""
    high = [(row & 0x1F8) << 1 | row & 0x207 for row in rows]
    return sorted([*high, *(row + 8 for row in high)])


def ready(fmt: int = BF16, in_32: bool = False) -> State:
    s = filled(1, fmt, in_32)
    s.src[1] = 0x3F800000  # 1.0, as GMPOOL wants it
    s.dst_valid[:] = UNWRITTEN
    return s


def test_nothing_is_written_after_power_up_and_reset() -> None:
    tile = Tile()
    assert written(tile.state) == []
    tile.state.dst_valid[:] = 1
    tile.reset()
    assert written(tile.state) == []


MATRIX: list[tuple[str, dict[str, int], int]] = [
    ("MVMUL", {"dst": 40}, 8),
    ("ELWADD", {"dst": 40}, 8),
    ("ELWSUB", {"dst": 40}, 8),
    ("ELWMUL", {"dst": 40}, 8),
    ("GAPOOL", {"dst": 40, "instr_mod19": 1}, 4),
    ("GMPOOL", {"dst": 40, "instr_mod19": 1}, 4),
]


@pytest.mark.parametrize(("name", "fields", "rows"), MATRIX, ids=[row[0] for row in MATRIX])
@pytest.mark.parametrize("in_32", [False, True])
def test_products_and_pools(name: str, fields: dict[str, int], rows: int, in_32: bool) -> None:
    s = ready(BF16, in_32)
    assert run(s, name, **fields) == rules.DONE
    expected = range(40, 40 + rows)
    assert written(s) == (wide(expected) if in_32 else list(expected))


MOVES: list[tuple[str, int, dict[str, int], list[int]]] = [
    ("MOVA2D", BF16, {"dst": 8, "instr_mod": 2}, list(range(8, 16))),
    ("MOVA2D", FP16, {"dst": 8, "instr_mod": 0}, [8]),
    ("MOVA2D", TF32, {"dst": 8, "instr_mod": 2}, wide(range(8, 16))),
    ("MOVB2D", BF16, {"dst": 8, "movb2d_instr_mod": 4}, [8, 9, 10, 11]),
    ("MOVB2D", TF32, {"dst": 8, "movb2d_instr_mod": 4}, wide([8, 9, 10, 11])),
    # the high halves keep what they hold
    ("MOVA2D", BF16, {"dst": 8, "instr_mod": 2, "dest_32b_lo": 1}, list(range(24, 32))),
]


@pytest.mark.parametrize(("name", "fmt", "fields", "rows"), MOVES)
def test_moves(name: str, fmt: int, fields: dict[str, int], rows: list[int]) -> None:
    s = ready(fmt)
    assert run(s, name, **fields) == rules.DONE
    assert written(s) == rows


def test_int8_products() -> None:
    s = filled(1, 14, True)
    s.dst_valid[:] = UNWRITTEN
    assert run(s, "MVMUL", dst=40) == rules.DONE
    assert written(s) == wide(range(40, 48))


@pytest.mark.parametrize(("mode", "in_32"), [(2, False), (3, True), (4, True)])
def test_sfpstore(mode: int, in_32: bool) -> None:
    """A row counts as written with its first lane; rows without an enabled lane do not."""
    s = State()
    s.cc[:] = 0
    s.cc[9] = s.cc[31] = 1  # lanes of the second and fourth row
    assert run(s, "SFPSTORE", instr_mod0=mode, dest_reg_addr=8) == rules.DONE
    assert written(s) == (wide([9, 11]) if in_32 else [9, 11])


def test_zeroacc_writes_zeros_and_does_not_bring_leftovers_back() -> None:
    s = State()
    assert run(s, "ZEROACC", where=3, clear_mode=1) == rules.DONE
    assert written(s) == list(range(48, 64))
    again = {"where": 0, "clear_mode": 1, "use_32_bit_mode": 1, "clear_zero_flags": 1}
    assert run(s, "ZEROACC", **again) == rules.DONE
    assert written(s) == list(range(48, 64))
    assert run(s, "ZEROACC", where=1, clear_mode=2) == rules.DONE
    assert written(s) == [*range(48, 64), *range(512, 1024)]


@pytest.mark.parametrize(("fmt", "in_32"), [(5, False), (0, True)])
def test_unpack_to_dst(fmt: int, in_32: bool) -> None:
    s = unpack_state()
    s.dst_valid[:] = UNWRITTEN
    case = Unpack(fmt=fmt, out=fmt, to_dst=1, count=20)
    case.program(s)
    assert run(s, "UNPACR", **case.operands()) == rules.DONE
    rows = [case.first_cell() // 16, case.first_cell() // 16 + 1]
    assert written(s) == (wide(rows) if in_32 else rows)


@pytest.mark.parametrize(("fmt", "rows"), [(3, [1]), (0, wide([0]))])
def test_dst_window(fmt: int, rows: list[int]) -> None:
    tile = Tile()
    tile.write(0x10000, code(li(A1, 0xFFBD8000 + 32), sw(ZERO, A1), PARK))
    tile.core["trisc2"].set_reset_pc(0x10000)
    tile.core["trisc2"].release()
    tile.state.cfg[0, 3] = fmt << 26
    assert tile.run().reason == "idle"
    assert written(tile.state) == rows


def packed(p: Pack, rows: list[int]) -> State:
    s, _ = setup(p)
    s.adc[0, 2, 1, 0] = 15
    s.dst_valid[:] = 1
    s.dst_valid[rows] = UNWRITTEN
    return s


@pytest.mark.parametrize(
    ("p", "rows", "sentence_of"),
    [
        (Pack(offset=4), [6], "16 datums of Dst rows"),
        (Pack(offset=4), [4, 5, 6, 7], "64 datums of Dst rows"),
        (Pack(), [0, 1, 3], "the first in row 0 (16-bit datums)"),
        (Pack(), [1, 2], "the first in row 1 (16-bit datums)"),
        (Pack(offset=4, fmt=6, out=6), [7], "the first in row 7 (16-bit datums)"),
        (Pack(offset=12, wide=1, fmt=0, out=0), [20], "the first in row 12 (32-bit datums)"),
        (Pack(offset=12, wide=1, fmt=0, out=0), [29], "the first in row 13 (32-bit datums)"),
    ],
)
def test_packing_rows_never_written(p: Pack, rows: list[int], sentence_of: str) -> None:
    """Refused before any effect; tolerated, it packs the cells as they are and is counted."""
    s = packed(p, rows)
    l1, counters = s.l1.copy(), s.adc.copy()
    assert execute(s) == RULE
    assert sentence_of in sentence(s, RULE)
    assert np.array_equal(s.l1, l1) and np.array_equal(s.adc, counters)
    s.ub_mode[0] = WARN
    assert execute(s) == rules.DONE
    assert count(s, RULE) == 1
    other = packed(p, [])
    assert execute(other) == rules.DONE
    assert np.array_equal(s.l1, other.l1) and np.array_equal(s.pack_data, other.pack_data)


@pytest.mark.parametrize("rows", [[3], [8], [20], [1023]])
def test_rows_that_are_not_packed_do_not_matter(rows: list[int]) -> None:
    assert execute(packed(Pack(offset=4), rows)) == rules.DONE


@pytest.mark.parametrize(
    ("p", "refused"),
    [
        (Pack(wide=1, fmt=9, out=9), False),
        (Pack(wide=1, raw=1, fmt=5, out=5), False),
        (Pack(wide=1, fmt=5, out=5), True),
        (Pack(wide=1, fmt=8, out=8), True),
    ],
)
def test_low_halves_that_take_no_part_do_not_matter(p: Pack, refused: bool) -> None:
    """uint16 and truncated bf16 are the high halves of 32-bit datums (FormatConversion, ISA)."""
    s, other = packed(p, [8, 11]), packed(p, [])
    assert execute(s) == (RULE if refused else rules.DONE)
    assert execute(other) == rules.DONE
    assert refused or np.array_equal(s.l1, other.l1)


def test_rows_marked_as_zero_are_packed_as_zero() -> None:
    s = packed(Pack(offset=4), [])
    s.dst_valid[4:8] = 0
    assert execute(s) == rules.DONE


def test_zero_write_reads_no_rows() -> None:
    assert execute(packed(Pack(offset=4), [4, 5, 6, 7]), zero_write=1) == rules.DONE


@pytest.mark.parametrize(("rows", "refused"), [([5], False), ([4], True), ([7], False)])
def test_datums_that_an_edge_mask_clears_do_not_count(rows: list[int], refused: bool) -> None:
    """As a reduction packs: the first row of a face as it is, the others cleared."""
    s = packed(Pack(offset=4), rows)
    put(s, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, 16)
    put(s, cf.PCK_EDGE_OFFSET_SEC0_mask, 0)
    put(s, cf.PCK_EDGE_OFFSET_SEC1_mask, 0xFFFF)
    put(s, cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_0, 1)
    assert execute(s) == (RULE if refused else rules.DONE)


ORDER = [cf.DEST_ACCESS_CFG_remap_addrs, cf.DEST_ACCESS_CFG_swizzle_32b]


@pytest.mark.parametrize("field", ORDER)
@pytest.mark.parametrize(("p", "rows"), [(Pack(offset=4), [5]), (Pack(wide=1, fmt=0, out=0), [9])])
def test_rows_written_in_another_order(field: cf.Field, p: Pack, rows: list[int]) -> None:
    """Adj16 and Adj32 of the page give rows other numbers; what ZEROACC marked is zero in any."""
    s = packed(p, [])
    s.dst_valid[:] = 0
    s.dst_valid[rows] = 1
    if p.wide:
        s.dst_valid[[0, 1, 2, 3]] = 1
    config.write(view(s), 0, field.word, 1 << field.shift, 0)
    assert sentences.RULES[execute(s)].rule == "PACR-REORDERED"
    s.dst_valid[:] = 1  # written again
    config.write(view(s), 0, field.word, 1 << field.shift | 1 << 9, 0)  # another field of the word
    assert execute(s) == rules.DONE
    config.write(view(s), 0, field.word, 0, 0)
    assert sentences.RULES[execute(s)].rule == "PACR-REORDERED"
    assert run(s, "ZEROACC", clear_mode=3) == rules.DONE
    assert execute(s) == rules.DONE


@pytest.mark.parametrize(("row", "rule"), [(16, "PACR-REORDERED"), (8, "")])
def test_rows_written_in_another_order_as_high_halves(row: int, rule: str) -> None:
    """With bit 11 of DBG_FEATURE_DISABLE 16-bit row 8 lies in storage row 16, not 8."""
    s = packed(Pack(offset=8), [])
    s.debug[RISCV_DEBUG_REG_DBG_FEATURE_DISABLE >> 2] = HALVES
    s.dst_valid[:] = 0
    s.dst_valid[row] = 1
    config.write(view(s), 0, ORDER[0].word, 1 << ORDER[0].shift, 0)
    status_of = execute(s)
    assert (sentences.RULES[status_of].rule if status_of else "") == rule


@pytest.mark.parametrize("bits", [16, 32])
def test_the_error_names_the_rows_that_are_written_and_cleared(bits: int) -> None:
    s = State()
    s.dst_valid[:] = UNWRITTEN
    assert error_text._rows_of_dst(s, bits) == "nothing has written Dst"
    rows, cleared = [*range(16, 32), 40], range(64, 72)
    of = wide if bits == 32 else list
    s.dst_valid[of(rows)] = 1
    s.dst_valid[of(cleared)] = 0
    text = "cleared are rows 64 to 71; written are rows 16 to 31, 40 to 40"
    assert error_text._rows_of_dst(s, bits) == text
