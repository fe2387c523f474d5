"""SHIFTXA and SHIFTXB against the pages' pictures (SHIFTXA, SHIFTXB, Wormhole ISA)."""

from typing import Any

import pytest
from matrix_reference import BF16, A, B, Model, filled, rule, section
from unit_runner import run

from bhemu.machine import sentences
from bhemu.tensix import rules

RIGHT, LEFT = 2, 3


def shifted(cells: list[Any], direction: int) -> list[Any]:
    """The picture of SHIFTXA: right leaves column 0 empty, left column 15."""
    return [0, *cells[:15]] if direction == RIGHT else [*cells[1:], 0]


# Instructions that the page lists, with the SrcA row they start from, by RWC.SrcA = 16, SrcB = 8.
NAMED = [
    ("MVMUL", {}, 16),
    ("DOTPV", {}, 16),
    ("ELWADD", {}, 16),
    ("ELWSUB", {}, 16),
    ("ELWMUL", {}, 16),
    ("GAPOOL", {"instr_mod19": 1}, 16),
    ("GMPOOL", {"instr_mod19": 1}, 16),
    ("CONV3S1", {}, 16),
    ("CONV3S2", {}, 16),
    ("MFCONV3S1", {}, 16),
    ("APOOL3S1", {}, 16),
    ("APOOL3S2", {}, 16),
    ("MPOOL3S1", {}, 16),
    ("MPOOL3S2", {}, 16),
    ("MOVA2D", {"src": 40, "instr_mod": 2}, 56),
    ("MOVA2D", {"src": 17, "instr_mod": 0}, 33),
    ("MOVB2A", {"srca": 20, "instr_mod": 2}, 36),
    ("MOVD2A", {"src": 52, "instr_mod": 2}, 4),
]


@pytest.mark.parametrize("direction", [RIGHT, LEFT])
@pytest.mark.parametrize(("name", "fields", "row"), NAMED)
def test_shiftxa_takes_the_block_of_the_last_instruction(
    name: str, fields: dict[str, int], row: int, direction: int
) -> None:
    """Its starting SrcA row, whatever the counters say afterwards, rounded down to 16 rows."""
    s = filled(4, BF16, False)
    s.src[B] = 0x3F800000
    s.dst[:], s.dst_valid[:] = 0x7F, 1
    s.rwc[0] = (16, 8, 0, 0)
    section(s, 1)  # SrcA += 16
    mode = "pool_addr_mode" if "POOL" in name else "addr_mode"
    assert run(s, name, **{mode: 1}, **fields) == rules.DONE
    assert s.rwc[0, 0] == 32
    assert s.srca_row[0] == row
    model = Model(s)
    block = [model.a((row & 48) + i) for i in range(16)]
    assert run(s, "SHIFTXA", 2, direction=direction) == rules.DONE
    model.src[A][1][:16] = [shifted(cells, direction) for cells in block]
    model.check(s)
    assert s.rwc[0].tolist() == [32, 16, 8, 1]  # SHIFTXA has no address modification


@pytest.mark.parametrize("name", ["MOVB2D", "MOVD2B"])
def test_shiftxa_is_refused_where_the_page_names_no_row(name: str) -> None:
    """The list has MOVB2D and MOVD2B, but their pages compute no SrcA row."""
    s = filled(5, BF16, False)
    assert rule(run(s, "SHIFTXA", direction=RIGHT)) == "SHIFTXA-ROW"
    assert run(s, "MOVA2D", instr_mod=2) == rules.DONE
    assert run(s, "SHIFTXA", direction=RIGHT) == rules.DONE
    fields = {"movb2d_instr_mod": 4} if name == "MOVB2D" else {"instr_mod": 2}
    assert run(s, name, **fields) == rules.DONE
    model = Model(s)
    assert rule(run(s, "SHIFTXA", direction=RIGHT)) == "SHIFTXA-ROW"
    model.check(s)


def test_movdbga2d_is_not_in_the_list_of_shiftxa() -> None:
    s = filled(5, BF16, False)
    assert run(s, "MOVA2D", instr_mod=2, src=16) == rules.DONE
    assert run(s, "MOVDBGA2D", instr_mod=2, src=48) == rules.DONE
    assert s.srca_row[0] == 16


def test_an_instruction_that_waits_or_is_refused_names_no_row() -> None:
    s = filled(6, BF16, False)
    assert run(s, "MVMUL") == rules.DONE
    s.rwc[0, 0] = 16
    assert rule(run(s, "MVMUL", dst=4)) == "FPU-DST-FIELD"
    s.src_valid[B] = 0
    assert run(s, "MVMUL") > 0
    assert s.srca_row[0] == 0


@pytest.mark.parametrize("direction", [0, 1])
def test_shiftxa_refuses_reserved_directions(direction: int) -> None:
    s = filled(7, BF16, False)
    s.srca_row[0] = 0
    model = Model(s)
    assert rule(run(s, "SHIFTXA", direction=direction)) == "SHIFTXA-DIRECTION"
    model.check(s)


@pytest.mark.parametrize("zero", [0, 1])
@pytest.mark.parametrize(("row", "counter"), [(0, 0), (5, 8), (40, 30), (1000, 24)])
def test_shiftxb(row: int, counter: int, zero: int) -> None:
    """Row modulo 64; every column takes its right neighbour, as in the page's picture."""
    s = filled(8, BF16, False)
    s.rwc[0] = (0, counter, 0, 0)
    section(s, 5)
    model = Model(s)
    cells = model.b((row + counter) % 64)
    model.src[B][0][(row + counter) % 64] = [*cells[1:], 0 if zero else cells[0]]
    assert run(s, "SHIFTXB", shift_row=row, rot_shift=zero, addr_mode=5) == rules.DONE
    model.check(s)
    assert s.rwc[0].tolist() == [16, counter + 8, 8, 1]


def test_sixteen_rotations_restore_the_row() -> None:
    s = filled(9, BF16, False)
    model = Model(s)
    for i in range(16):
        assert (s.src[B, 0, 3].tolist() == model.b(3)) == (i == 0)
        assert run(s, "SHIFTXB", shift_row=3) == rules.DONE
    model.check(s)


@pytest.mark.parametrize(("name", "which"), [("SHIFTXA", A), ("SHIFTXB", B)])
def test_waits_for_its_bank(name: str, which: int) -> None:
    s = filled(10, BF16, False)
    s.srca_row[0] = 0
    s.src_valid[:] = 1
    s.src_valid[which, s.matrix_bank[which]] = 0
    model = Model(s)
    fields = {"direction": LEFT} if which == A else {}
    number = run(s, name, **fields)
    text = f"Src{'AB'[which]} bank {s.matrix_bank[which]} to become valid"
    assert sentences.CONDITIONS[number].text.startswith(text)
    model.check(s)


@pytest.mark.parametrize(("name", "which"), [("SHIFTXA", A), ("SHIFTXB", B)])
def test_a_product_afterwards_sees_the_shifted_cells(name: str, which: int) -> None:
    """Slices that were prepared from the cells before are not used again."""
    s = filled(0, BF16, False)
    assert run(s, "MVMUL", dst=8) == rules.DONE
    fields = {"direction": LEFT} if which == A else {"shift_row": 2}
    assert run(s, name, **fields) == rules.DONE
    model = Model(s)
    model.matmul(16, 8, (0, 0), (BF16, BF16), 0, False)
    assert run(s, "MVMUL", dst=16) == rules.DONE
    model.check(s)


def test_shiftxb_refused_section() -> None:
    s = filled(11, BF16, False)
    s.thread_cfg[0, 47] = 1  # ADDR_MOD_BIAS_SEC0_BiasIncr
    model = Model(s)
    assert rule(run(s, "SHIFTXB")) == "ADDR-MOD-BIAS"
    model.check(s)
