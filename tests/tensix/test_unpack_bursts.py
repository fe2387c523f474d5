"""Bursts of UNPACR over the boundary of a 16-row set of SrcA: which rows are doubtful, who refuses.

Sizes of bursts: ttsim's Tensix model. What is written: UNPACR_Regular, Wormhole ISA. That the first
row of a burst arrives: tt-llk's llk_unpack_untilize.
"""

from dataclasses import replace

import numpy as np
import pytest
from test_unpack import agree, fresh
from unit_runner import numbers, run
from unpack_model import Unpack, put

from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix.state import State

BF16 = 5


def doubtful(s: State, bank: int = 0) -> set[int]:
    """Rows of a SrcA bank that are noted."""
    return {i for i in range(64) if int(s.src_doubt[bank, i // 16]) >> i % 16 & 1}


def lost(start: int, rows: int, burst: int) -> tuple[set[int], set[int]]:
    """(doubtful rows, certain rows) of an UNPACR of whole rows, burst by burst."""
    doubt, certain = set(), set()
    for first in range(start, start + rows, burst):
        sets = {row // 16 for row in range(first, first + burst)}
        for row in range(first, min(first + burst, start + rows)):
            (doubt if len(sets) > 1 and row > first else certain).add(row)
    return doubt, certain


def unpack(s: State, row: int, count: int = 256, **more: int) -> None:
    """UNPACR to rows from `row` on; every row is written as the model says."""
    agree(s, replace(Unpack(dest=64 + 16 * row, count=count), **more))


def matrix(s: State, name: str, **fields: int) -> str:
    """The rule that an instruction of the matrix unit ends with, "" = done."""
    number = run(s, name, **fields)
    assert number <= 0, sentences.CONDITIONS.get(number)
    return sentences.RULES[number].rule if number else ""


def handed(s: State) -> None:
    """Both banks 0 belong to the matrix unit, as bf16."""
    s.src_valid[:, 0], s.src_fmt[:, 0] = 1, BF16
    s.matrix_bank[:] = 0
    s.src[1] = 0x3F800000
    s.dst[:], s.dst_valid[:] = 0x7F, 1


def taken(s: State) -> None:
    """The unpackers have them again."""
    s.src_valid[:] = 0


@pytest.mark.parametrize(
    ("burst", "fmt", "throttle"),
    [(4, 5, None), (2, 0, None), (8, 6, None), (4, 15, None), (1, 5, 0), (1, 5, 1), (2, 6, 1)],
)
def test_rows_after_the_first_of_a_crossing_burst_are_doubtful(
    burst: int, fmt: int, throttle: int | None
) -> None:
    for start in (*range(18), 29, 30, 31, 47):
        for count in (16, 32, 80, 256):
            s = fresh(start)
            if throttle is not None:
                put(s, cf.THCON_SEC0_REG1_ovrd_default_throttle_mode, 1)
                put(s, cf.THCON_SEC0_REG2_Throttle_mode, throttle)
            unpack(s, start, count, fmt=fmt, out=fmt or 4)
            want, _ = lost(start, count // 16, burst) if count > 16 else (set(), set())
            assert doubtful(s) == want, (start, count)
            assert not doubtful(s, 1)


def test_what_is_written_again_for_certain_is_certain() -> None:
    """Any sequence: the last UNPACR that wrote a row decides."""
    rng = np.random.default_rng(5)
    s, want = fresh(), set[int]()
    for _ in range(40):
        start, count = int(rng.integers(0, 48)), 16 * int(rng.integers(1, 17))
        unpack(s, start, count)
        doubt, certain = lost(start, count // 16, 4 if count > 16 else 1)
        want = (want - certain) | doubt
        assert doubtful(s) == want


def test_untilize() -> None:
    """16 UNPACRs of 256 datums, row by row: rows 0 to 15 can be read, the next ones cannot."""
    s = fresh()
    wanted = np.zeros((16, 16), np.uint32)
    for row in range(16):
        unpack(s, row)
        wanted[row] = s.src[0, 0, row]
    assert np.array_equal(s.src[0, 0, :16], wanted)
    assert doubtful(s) == {16, 17, 18}
    handed(s)
    for row in (0, 8):
        assert matrix(s, "MOVA2D", src=row, dst=row, instr_mod=2) == ""
    for row in range(16):
        exponents = (wanted[row] & 0x7F800000) != 0
        cells = wanted[row] >> 16 & 0xFFFF
        cells = np.where(exponents, (cells & 0x8000) | (cells & 0x7F) << 8 | cells >> 7 & 0xFF, 0)
        assert np.array_equal(s.dst[row], cells)
    assert matrix(s, "MOVA2D", src=16, instr_mod=2) == "UNPACR-BURST"
    assert s.detail[0] == 16
    assert matrix(s, "MOVA2D", src=17, instr_mod=0) == "UNPACR-BURST"
    assert s.detail[0] == 17
    assert matrix(s, "MOVA2D", src=19, instr_mod=0) == ""
    taken(s)
    unpack(s, 16, addr_mode=0)
    assert not doubtful(s)


READERS = [
    *((name, {}) for name in ("MVMUL", "DOTPV", "ELWADD", "ELWSUB", "ELWMUL")),
    *((name, {"instr_mod19": 1}) for name in ("GAPOOL", "GMPOOL")),
    *((name, {"instr_mod": mod}) for name in ("MOVA2D", "MOVDBGA2D") for mod in (0, 2)),
]


@pytest.mark.parametrize(("name", "fields"), READERS)
def test_readers_refuse_before_any_effect(name: str, fields: dict[str, int]) -> None:
    for row in (32, 33, 39):
        s = fresh()
        handed(s)
        s.rwc[0, 0] = 33 if fields.get("instr_mod") == 0 else 32
        s.src_doubt[0, 2] = 1 << row % 16
        reads = row == 33 if fields.get("instr_mod") == 0 else True
        before = [(m.name, a.copy()) for m, a in s.members()]
        rule = matrix(s, name, **fields)
        assert rule == ("UNPACR-BURST" if reads else "")
        if reads:
            assert s.detail[0] == row
            for member, was in before:
                assert member == "detail" or np.array_equal(getattr(s, member), was), member


@pytest.mark.parametrize(("name", "fields"), READERS)
def test_other_rows_and_the_other_bank_do_not_matter(name: str, fields: dict[str, int]) -> None:
    s = fresh()
    handed(s)
    s.src_doubt[0, [0, 1, 3]] = s.src_doubt[1] = 0xFFFF
    s.rwc[0, 0] = 32
    assert matrix(s, name, **fields) == ""


@pytest.mark.parametrize("name", ["ELWADD", "ELWMUL", "MOVA2D"])
def test_eight_rows_of_a_set(name: str) -> None:
    s = fresh()
    handed(s)
    fields = {"instr_mod": 2} if name == "MOVA2D" else {}
    s.src_doubt[0, 2] = 0xFF00
    s.rwc[0, 0] = 32
    assert matrix(s, name, **fields) == ""
    s.rwc[0, 0] = 40
    assert matrix(s, name, **fields) == "UNPACR-BURST"
    assert s.detail[0] == 40


def test_shiftxa_reads_one_set_and_writes_the_first() -> None:
    s = fresh()
    handed(s)
    s.src_doubt[0, 1:3] = 1 << 5
    s.srca_row[0] = 35
    before = s.src.copy()
    assert matrix(s, "SHIFTXA", direction=2) == "UNPACR-BURST"
    assert s.detail[0] == 37
    assert np.array_equal(s.src, before)
    s.src_doubt[0] = (0xFFFF, 1, 0, 2)
    assert matrix(s, "SHIFTXA", direction=2) == ""
    assert s.src_doubt[0].tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(("name", "row"), [("MOVB2A", "srca"), ("MOVD2A", "src")])
def test_moves_to_srca_settle_four_rows(name: str, row: str) -> None:
    s = fresh()
    handed(s)
    s.src_doubt[:] = 0xFFFF
    assert matrix(s, name, instr_mod=2, **{row: 40}) == ""
    assert doubtful(s) == set(range(64)) - {40, 41, 42, 43}
    assert len(doubtful(s, 1)) == 64


def test_moves_to_srcb_settle_nothing() -> None:
    s = fresh()
    handed(s)
    s.src_doubt[:] = 0xFFFF
    assert matrix(s, "MOVD2B", instr_mod=2) == ""
    assert len(doubtful(s)) == len(doubtful(s, 1)) == 64


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"src_mask": 1, "write_mode": 1}, (0, 64)),
        ({"src_mask": 2, "write_mode": 1}, (64, 64)),
        ({"src_mask": 3, "bank_mask": 1}, (0, 0)),
    ],
)
def test_zerosrc(fields: dict[str, int], left: tuple[int, int]) -> None:
    s = fresh()
    s.src_doubt[:] = 0xFFFF
    assert matrix(s, "ZEROSRC", **fields) == ""
    assert (len(doubtful(s)), len(doubtful(s, 1))) == left


def test_unpacr_nop_clears_the_unpack_bank() -> None:
    s = fresh()
    s.src_doubt[:] = 0xFFFF
    s.unpack_bank[0] = 1
    assert matrix(s, "UNPACR_NOP", unpack_pop=1, unpacker_select=1) == ""
    assert len(doubtful(s, 1)) == 64
    assert matrix(s, "UNPACR_NOP", unpack_pop=1, set_dvalid=1) == ""
    assert (len(doubtful(s)), len(doubtful(s, 1))) == (64, 0)


@pytest.mark.parametrize("bank", [0, 1])
def test_unpacrs_of_other_kinds_settle_whole_rows(bank: int) -> None:
    """In the unpack bank only; partly written rows stay as they were."""
    for case, want in (
        (Unpack(), set()),
        (Unpack(count=250), set(range(15, 64))),
        (Unpack(dest=64 + 16, count=16), {0, *range(2, 64)}),
        (Unpack(dest=64 + 16 * 62, count=16), set(range(64)) - {62}),
        (Unpack(dest=64 + 5, count=16), set(range(64))),
        (Unpack(zeros=1, dest=64 + 64, count=64), {*range(4), *range(8, 64)}),
        (Unpack(shift=3, count=256), set(range(64))),
        (Unpack(haloize=1, count=256), set(range(16, 64))),
        (Unpack(haloize=1, dest=64 + 8 * 16, count=512), {*range(16), *range(32, 64)}),
        (Unpack(haloize=1, count=240), set(range(64))),
        (Unpack(stride=64, count=512), set(range(32, 64))),
        (Unpack(u=1), set(range(64))),
        (Unpack(fmt=0, out=0, to_dst=1, count=256), set(range(64))),
        (Unpack(set_dat_valid=1), set()),
    ):
        s = fresh()
        s.unpack_bank[:] = bank
        s.src_doubt[:] = 0xFFFF
        agree(s, case)
        assert doubtful(s, bank) == want, case
        assert len(doubtful(s, 1 - bank)) == 64


def test_rows_of_the_set_that_the_target_is_moved_by() -> None:
    s = fresh()
    s.src_doubt[:] = 0xFFFF
    s.unpack_row[0, 0] = 32
    case = Unpack(override=0, dest=64 + 16 * 13, count=48)
    case.program(s)
    assert run(s, "UNPACR", **case.operands()) == rules.DONE
    assert doubtful(s) == set(range(64)) - {45}


@pytest.mark.parametrize(
    ("case", "shown"),
    [
        (Unpack(dest=72, count=32), [0, 4]),
        (Unpack(dest=64 + 16 * 62, count=48), [62, 4]),
        (Unpack(dest=48, count=48), [-1, 4]),
        (Unpack(dest=64 + 16 * 13, count=64, haloize=1), [13, 4]),
    ],
)
def test_modes_in_which_no_burst_may_cross(case: Unpack, shown: list[int]) -> None:
    s = fresh()
    case.program(s)
    number = run(s, "UNPACR", **case.operands())
    assert sentences.RULES[number].rule == "UNPACR-BURST-MODE"
    assert numbers(s, number) == shown
    assert not s.src_doubt.any()


def test_a_transposed_burst_inside_a_set() -> None:
    s = fresh()
    agree(s, Unpack(dest=64 + 16 * 3, count=64, haloize=1))
    assert not s.src_doubt.any()
