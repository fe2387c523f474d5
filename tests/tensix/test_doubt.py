"""Doubtful cells: who is in doubt, where doubt goes, and who refuses it.

The property that matters: a result that is not in doubt does not depend on what the doubtful
operand holds. It is checked by running the same instruction with other values in its place.
"""

import numpy as np
import pytest
from doubtful import (
    BF16,
    FP16,
    INT8,
    KEEPS,
    TF32,
    WIDE,
    datums,
    doubtful,
    in_doubt,
    note,
    storage,
)
from fuzz.campaign import LONG
from matrix_reference import A, B, filled
from test_unpack import fresh as unpack_state
from unit_runner import run
from unpack_model import Unpack

from bhemu.tensix import dest, rules, unspecified
from bhemu.tensix.state import State

ROWS = {"MVMUL": 8, "GAPOOL": 4, "ELWADD": 8, "ELWSUB": 8, "ELWMUL": 8}
OPERATIONS = [
    *(("MVMUL", fmt, wide) for fmt, wide in ((FP16, 0), (FP16, 1), (INT8, 1))),
    *(("GAPOOL", fmt, wide) for fmt, wide in ((FP16, 0), (INT8, 1))),
    *((name, fmt, w) for name in ("ELWADD", "ELWMUL") for fmt, w in ((FP16, 1), (INT8, 1))),
    ("ELWSUB", FP16, 0),
]


def operation(name: str, s: State) -> int:
    return run(s, name, dst=40, **({"instr_mod19": 1} if name.startswith("G") else {}))


@pytest.mark.parametrize("which", [A, B])
@pytest.mark.parametrize(("name", "fmt", "wide"), OPERATIONS)
def test_what_is_not_in_doubt_does_not_depend_on_the_operand(
    name: str, fmt: int, wide: int, which: int
) -> None:
    rows, differs = range(40, 40 + ROWS[name]), False
    for seed in range(6 if LONG else 2):
        row, column = seed % 4, 5 + seed
        results, marked = [], []
        for value in (WIDE, WIDE | 0x03FFE000, 0x91002000, 0x78E00000, 0x2F80A000):
            s = filled(seed, fmt, bool(wide))
            if seed > 2:
                s.src[1 - which, s.matrix_bank[1 - which], : 8 + seed] = 0  # products with zero
            s.src[which, s.matrix_bank[which], row, column] = value
            assert operation(name, s) == rules.DONE
            results.append(datums(s, wide, rows))
            marked.append([in_doubt(s, storage(wide, r)) for r in rows])
        assert all(m == marked[0] for m in marked)
        certain = np.array([[j not in m for j in range(16)] for m in marked[0]])
        for result in results[1:]:
            assert (result == results[0])[certain].all()
            differs |= bool((result != results[0]).any())
        assert certain.any()
    assert differs


def test_which_results_a_datum_of_a_product_reaches() -> None:
    """A datum of SrcA its column, of SrcB its row; a factor of zero ends it (MVMUL)."""
    s = filled(2, FP16, False)
    s.src[:] = 0x07802000
    s.src[A, s.matrix_bank[A], 3, 5] = WIDE
    s.src[B, s.matrix_bank[B], 6, 3] = 0
    assert operation("MVMUL", s) == rules.DONE
    assert [in_doubt(s, 40 + r) for r in range(8)] == [{5}] * 6 + [set(), {5}]
    s.dst_valid[40:48] = 1
    s.src[B, s.matrix_bank[B], 2, 7] = WIDE
    assert operation("MVMUL", s) == rules.DONE
    assert in_doubt(s, 42) == set(range(16)) and in_doubt(s, 41) == {5}


def test_no_datum_beyond_the_format_is_left_out() -> None:
    s = filled(2, FP16, False)
    assert operation("MVMUL", s) == operation("ELWMUL", s) == rules.DONE
    assert not s.doubt.any() and not (s.dst_valid & unspecified.DOUBT).any()


DENORMAL = 0x00052000  # bf16 takes its upper bits


@pytest.mark.parametrize(("name", "wide"), [("MVMUL", 0), ("MVMUL", 1), ("GAPOOL", 1)])
@pytest.mark.parametrize("exponent", [1, 100, 114, 115, 120, 127, 200])
def test_denormals_of_srcb_count_for_less_than_the_smallest_number(
    name: str, wide: int, exponent: int
) -> None:
    """Where the result is certain, zero and the smallest number in its place give the same."""
    rows, results = range(40, 40 + ROWS[name]), []
    for value in (DENORMAL, 0, DENORMAL | 0x00800000):
        s = filled(8, BF16, bool(wide))
        s.cfg[0, 2] = KEEPS
        s.dst_valid[:] = 0
        s.src[A], s.src[B] = exponent << 23 | 0x2000 << 4, 0
        s.src[B, s.matrix_bank[B], 1, 2] = value
        s.src[B, s.matrix_bank[B], 2, 2] = value
        s.src[B, s.matrix_bank[B], 2, 3] = 120 << 23
        assert operation(name, s) == rules.DONE
        results.append((datums(s, wide, rows), [in_doubt(s, storage(wide, r)) for r in rows]))
    marked = results[0][1]
    assert not any(results[1][1]) and not any(results[2][1])
    for i, row in enumerate(marked):
        same = (results[1][0][i] == results[2][0][i]).all()
        assert same or row == set(range(16))
    assert bool(marked[1]) == (exponent >= 127)  # or its sum has the exponent 0
    assert not marked[2]  # the other product is too large


def test_a_denormal_without_the_bit_is_zero() -> None:
    s = filled(8, BF16, False)
    s.src[B, s.matrix_bank[B], 1, 2] = DENORMAL
    assert operation("MVMUL", s) == rules.DONE
    assert not s.doubt.any()


def test_accumulation_keeps_doubt_and_overwriting_ends_it() -> None:
    s = doubtful()
    assert run(s, "MVMUL", dst=40) == run(s, "ELWMUL", dst=40) == rules.DONE
    assert run(s, "ELWADD", dst=40, dest_accum_en=1) == rules.DONE
    assert run(s, "CONV3S1", dst=40) == rules.DONE
    assert in_doubt(s, 40) == {5} and in_doubt(s, 41) == set()
    assert run(s, "ELWADD", dst=40) == rules.DONE
    assert in_doubt(s, 40) == set()


def test_pooling_keeps_the_doubt_of_its_row() -> None:
    s = doubtful()
    s.src[B] = 0x3F800000
    assert run(s, "GMPOOL", dst=40, instr_mod19=1) == rules.DONE
    assert in_doubt(s, 40) == {5}
    assert run(s, "GMPOOL", dst=36, instr_mod19=1) == rules.DONE
    assert in_doubt(s, 36) == set()


def test_zeroacc_ends_doubt_until_it_is_taken_back() -> None:
    s = doubtful()
    s.ub_mode[0] = 1
    assert run(s, "ZEROACC", where=2, clear_mode=1) == rules.DONE
    assert in_doubt(s, 40) == set()
    assert run(s, "ZEROACC", where=2, clear_mode=1, clear_zero_flags=1) == rules.DONE
    assert in_doubt(s, 40) == {5} and s.dst_valid[40] & 1


def test_doubt_goes_through_srcb_and_its_transposition() -> None:
    """The way of a row reduction: MOVD2B, TRNSPSRCB, MOVB2D."""
    s = doubtful(columns=0x0020 | 0x0400 << 16)
    assert run(s, "MOVD2B", dst=40, src=16) == run(s, "TRNSPSRCB") == rules.DONE
    for k in range(4):
        fields = {"dst": 64 + 4 * k, "src": 16 + 4 * k, "movb2d_instr_mod": 4}
        assert run(s, "MOVB2D", **fields) == rules.DONE
    assert [in_doubt(s, row) for row in range(64, 80)] == [
        {0} if row in (69, 74) else set() for row in range(64, 80)
    ]
    assert int(s.dst_doubt[69]) == 1 and int(s.dst_doubt[74]) == 1 << 16


@pytest.mark.parametrize("mode", [2, 3])
def test_a_broadcast_takes_the_doubt_of_what_it_copies(mode: int) -> None:
    s = doubtful(columns=1)
    assert run(s, "MOVD2B", dst=40, src=16) == rules.DONE
    assert run(s, "MOVB2D", dst=64, src=16, movb2d_instr_mod=mode) == rules.DONE
    want = set(range(16)) if mode == 3 else {0}
    assert all(in_doubt(s, row) == want for row in range(64, 72))


def test_doubt_goes_through_srca_and_back() -> None:
    s = doubtful()
    assert run(s, "MOVD2A", dst=40, src=8, instr_mod=2) == rules.DONE
    assert run(s, "MOVA2D", dst=64, src=8, instr_mod=2) == rules.DONE
    assert in_doubt(s, 64) == {5} and in_doubt(s, 65) == set()
    s = doubtful()
    assert run(s, "MOVD2B", dst=40, src=16, instr_mod=2) == rules.DONE
    assert run(s, "MOVB2A", srcb=16, srca=4, instr_mod=2) == rules.DONE
    assert run(s, "ELWADD", dst=64) == rules.DONE
    assert in_doubt(s, 68) == {5}
    assert run(s, "GAPOOL", dst=72, instr_mod19=1) == rules.DONE
    assert in_doubt(s, 72) <= {5}


def test_cells_in_doubt_leave_nothing_in_the_low_half() -> None:
    """The mark of a Src cell is no part of its datum: a move of tf32 stores the datum alone."""
    results = []
    for columns in (0, 0x0021):
        s = doubtful(wide=1, columns=columns, fmt=TF32)
        assert run(s, "MOVD2A", dst=40, src=8, instr_mod=2) == rules.DONE
        assert run(s, "MOVA2D", dst=64, src=8, instr_mod=2) == rules.DONE
        results.append(s.dst.copy())
        assert in_doubt(s, storage(1, 64)) == ({0, 5} if columns else set())
    assert np.array_equal(*results)


def test_sfpstore_of_32_bits_ends_doubt_of_low_halves_too() -> None:
    s = doubtful(wide=1, columns=0x0033)
    low = storage(1, 40) + dest.LOW_HALF
    note(s, low, 0x0F0F)
    s.cc[:] = 1
    s.cc[1] = 0  # column 2
    assert run(s, "SFPSTORE", instr_mod0=3, dest_reg_addr=40) == rules.DONE
    assert in_doubt(s, storage(1, 40)) == {1, 5}
    assert in_doubt(s, low) == {1, 2, 3, 9, 11}


@pytest.mark.parametrize(("fmt", "wide"), [(5, 0), (0, 1)])
def test_unpack_to_dst_ends_the_doubt_of_what_it_writes(fmt: int, wide: int) -> None:
    s = unpack_state()
    case = Unpack(fmt=fmt, out=fmt, to_dst=1, count=20)
    case.program(s)
    first = case.first_cell() // 16
    s.dst_valid[:] = 1
    for row in (first, first + 1):
        note(s, storage(wide, row), 0x8011)
    assert run(s, "UNPACR", **case.operands()) == rules.DONE
    assert in_doubt(s, storage(wide, first)) == set()
    assert in_doubt(s, storage(wide, first + 1)) == {4, 15}
