"""The legacy group against the ISA's sentence on it (MatrixUnit, Wormhole ISA).

CONV3S1, CONV3S2, MFCONV3S1, APOOL3S1, APOOL3S2: Dst += 0. MPOOL3S1, MPOOL3S2: GMPOOL with zeros in
SrcA. tt-llk's assembly.yaml: both banks, eight rows of 16 for the two convolutions.
"""

import pytest
from matrix_reference import (
    BF16,
    FP16,
    FP32,
    INT8,
    TF32,
    A,
    B,
    Model,
    accumulate,
    filled,
    int32_pattern,
    int32_value,
    rule,
    section,
)
from unit_runner import numbers, run

from bhemu.machine import sentences
from bhemu.tensix import rules
from bhemu.tensix.state import State

CONV = ["CONV3S1", "CONV3S2"]
UNKNOWN_CELLS = ["MFCONV3S1", "APOOL3S1", "APOOL3S2"]
MPOOL = ["MPOOL3S1", "MPOOL3S2"]
ALL = [*CONV, *UNKNOWN_CELLS, *MPOOL]
NOTHING = [(0, 0, 0), (0, 0, 0)]


def mode_field(name: str) -> str:
    return "pool_addr_mode" if "POOL" in name else "addr_mode"


def add_zero(model: Model, first: int, fmt: int, wide: bool) -> None:
    """Eight rows of Dst += 0 in the datum format that Dst has."""
    e8 = fmt != FP16
    for row in range(first, first + 8):
        for j in range(16):
            if fmt == INT8:
                new = int32_pattern(int32_value(model.read(row, j, True, True)))
            else:
                new = accumulate(NOTHING, model.read(row, j, wide, e8), wide, e8)
            model.write(row, j, new, wide or fmt == INT8, e8)


@pytest.mark.parametrize("name", CONV)
@pytest.mark.parametrize(
    ("fmt", "wide"),
    [(BF16, False), (BF16, True), (FP32, False), (TF32, True), (FP16, False), (INT8, False)],
)
def test_conv_adds_zero_to_eight_rows(name: str, fmt: int, wide: bool) -> None:
    for seed in range(4):
        s = filled(seed, fmt, wide)
        s.rwc[0] = (0, 0, 16, 0)
        model = Model(s)
        add_zero(model, 24, fmt, wide)
        assert run(s, name, dst=8, rotate_weights=seed & 1) == rules.DONE
        model.check(s)
        assert s.src_valid.all()


@pytest.mark.parametrize("name", UNKNOWN_CELLS)
@pytest.mark.parametrize(("fmt", "wide"), [(BF16, False), (BF16, True), (FP16, False)])
def test_adding_zero_to_ordinary_numbers_changes_nothing(name: str, fmt: int, wide: bool) -> None:
    s = filled(0, fmt, wide)
    s.dst_valid[:] = 1
    s.dst[:] = s.dst & 0x7F00 | 0x8001  # negative, exponent 1
    s.dst[0] = 0
    s.dst[8 if wide else 1] = 0x0
    model = Model(s)
    assert run(s, name) == rules.DONE
    model.check(s)


@pytest.mark.parametrize("name", UNKNOWN_CELLS)
@pytest.mark.parametrize(
    ("fmt", "wide", "cell"),
    [
        (BF16, False, 0x8000),  # -0
        (BF16, False, 0x0100),  # denormal
        (BF16, False, 0x01FF),  # NaN
        (BF16, True, 0x8000),
        (BF16, True, 0x01FF),
        (FP16, False, 0x8000),
        (FP16, False, 0x0020),  # denormal
        (INT8, False, 0x8000),  # -0
    ],
)
def test_refused_where_the_extent_would_show(name: str, fmt: int, wide: bool, cell: int) -> None:
    """The ISA does not say how many rows and columns these write."""
    s = filled(0, fmt, wide)
    s.dst[:], s.dst_valid[:] = 0, 1
    s.dst[6, 11] = cell
    model = Model(s)
    assert rule(run(s, name, clear_dvalid=3)) == "LEGACY-EXTENT"
    assert s.detail[0] == 6
    model.check(s)
    s.dst[6, 11] = 0
    s.dst_valid[5] = 0
    model = Model(s)
    assert rule(run(s, name)) == "LEGACY-EXTENT"
    assert s.detail[0] == 5
    model.check(s)
    assert s.src_valid.all()


@pytest.mark.parametrize("name", UNKNOWN_CELLS)
def test_low_halves_count_in_32_bit_dst(name: str) -> None:
    s = filled(0, BF16, True)
    s.dst[:], s.dst_valid[:] = 0, 1
    s.dst[8 + 3, 7] = 1  # low half of row 3: a denormal
    assert rule(run(s, name)) == "LEGACY-EXTENT"
    s.dst[3, 7] = 0x7F  # high half: an exponent
    assert run(s, name) == rules.DONE


@pytest.mark.parametrize("name", MPOOL)
@pytest.mark.parametrize(("fmt", "wide"), [(BF16, False), (BF16, True), (TF32, True)])
def test_mpool_is_gmpool_of_zeros(name: str, fmt: int, wide: bool) -> None:
    """max(Dst, 0) in one row, zeros in the next three; rows that are not valid give 0."""
    for seed in range(4):
        s = filled(seed, fmt, wide)
        s.src[B], s.src_fmt[B] = 0x3F800000, BF16
        s.rwc[0] = (32, 8, 16, 2)
        model, src = Model(s), s.src.tolist()
        model.src[A] = [[[0] * 16] * 64] * 2
        model.gmpool(20, 32, fmt, wide)
        model.src = src
        assert run(s, name, dst=4) == rules.DONE
        model.check(s)


@pytest.mark.parametrize("name", ALL)
def test_ends_as_other_matrix_operations(name: str) -> None:
    """Address modification and release of the banks."""
    s = filled(0, BF16, False)
    s.dst[:], s.dst_valid[:], s.src[B] = 0, 1, 0x3F800000
    section(s, 7)
    assert run(s, name, **{mode_field(name): 7}, clear_dvalid=3) == rules.DONE
    assert s.rwc[0].tolist() == [16, 8, 8, 1]
    assert s.src_valid.tolist() == [[1, 0], [0, 1]]
    assert s.matrix_bank.tolist() == [0, 1]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("which", [A, B])
def test_waits_for_both_banks(name: str, which: int) -> None:
    s = filled(0, BF16, False)
    s.src_valid[which, s.matrix_bank[which]] = 0
    model = Model(s)
    number = run(s, name, clear_dvalid=3)
    assert sentences.CONDITIONS[number].text.startswith(f"Src{'AB'[which]} bank")
    model.check(s)


def refused(s: State, name: str, **fields: int) -> str:
    model, counters = Model(s), s.rwc.tolist()
    number = run(s, name, **{"clear_dvalid": 3, **fields})
    model.check(s)
    assert s.rwc.tolist() == counters
    assert s.src_valid.all()
    return rule(number)


@pytest.mark.parametrize("name", ALL)
def test_refused(name: str) -> None:
    s = filled(0, BF16, False)
    s.src[B] = 0x3F800000
    assert refused(s, name, dst=1024) == "LEGACY-FIELD"
    assert numbers(s, "LEGACY-FIELD") == [1024, 1023]
    if "POOL" in name:  # the address mode of the others is three bits wide anyway
        assert refused(s, name, pool_addr_mode=8) == "LEGACY-FIELD"
        assert numbers(s, "LEGACY-FIELD") == [8, 7]
    else:
        assert refused(s, name, rotate_weights=2) == "LEGACY-FIELD"
        assert numbers(s, "LEGACY-FIELD") == [2, 1]
    assert refused(s, name, dst=2) == "FPU-DST-FIELD"
    s.rwc[0] = (0, 0, 2, 0)
    assert refused(s, name) == "FPU-DST-ROW"
    s.rwc[0] = 0
    s.thread_cfg[0, 47] = 1 << 4  # ADDR_MOD_BIAS_SEC0
    assert refused(s, name) == "ADDR-MOD-BIAS"
    s.cfg[0, 0] = 1 << 4
    assert refused(s, name) == "FPU-OVERRIDE"


@pytest.mark.parametrize("name", [*CONV, *UNKNOWN_CELLS])
def test_zeros_with_5_bit_exponents_in_32_bit_dst_are_refused(name: str) -> None:
    s = filled(0, FP16, True)
    assert refused(s, name) == "LEGACY-FP16-WIDE"
    s.src_fmt[A] = BF16
    assert refused(s, name) == "FPU-FORMATS"


@pytest.mark.parametrize("name", MPOOL)
def test_mpool_without_indices_and_with_ones_only(name: str) -> None:
    s = filled(0, BF16, False)
    s.src[B] = 0x3F800000
    assert refused(s, name, index_en=1) == "POOL-MODE"
    s.src[B, 0, 0, 3] = 0x40000000
    assert refused(s, name) == "GMPOOL-SCALE"
