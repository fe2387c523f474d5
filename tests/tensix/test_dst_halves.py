"""Bit 11 of DBG_FEATURE_DISABLE: Dst16b[row] is the high half of Dst32b[row] (Dst, Blackhole ISA).

Each instruction runs on two records that hold the same 16-bit Dst: with the bit off in rows, with
the bit on in the high halves of 32-bit rows. What it does must be the same; the low halves of the
datums that it writes must not keep their values, all others must.
"""

import numpy as np
import pytest
from matrix_reference import high_row
from move_model import BF16, filled
from unit_runner import run

from bhemu.errors import BhemuError
from bhemu.machine.tile import Tile
from bhemu.tensix import rules
from bhemu.tensix.dest import UNWRITTEN
from bhemu.tensix.state import State

FEATURES, BIT = 0x068 >> 2, 0x800
ROWS = 256  # the 16-bit rows that the second record can hold twice
HIGH = np.array([high_row(row) for row in range(ROWS)])
LOW_BEFORE = 0x5A5A
REGISTER = 0xFFB12068


def pair(seed: int) -> tuple[State, State]:
    plain, halves = filled(seed, BF16), filled(seed, BF16)
    rng = np.random.default_rng(seed)
    plain.dst[:] = rng.integers(0, 1 << 16, plain.dst.shape, np.uint16)
    halves.dst[:] = LOW_BEFORE
    halves.dst_valid[:] = 1
    halves.dst[HIGH] = plain.dst[:ROWS]
    halves.dst_valid[HIGH] = plain.dst_valid[:ROWS]
    halves.debug[FEATURES] = BIT
    for s in (plain, halves):
        s.lreg[:8] = rng.integers(0, 1 << 32, (8, 32), np.uint32) if s is plain else plain.lreg[:8]
        s.cc[:] = rng.integers(0, 2, 32) if s is plain else plain.cc
    return plain, halves


WRITERS = {
    "MOVA2D one": ("MOVA2D", {"dst": 9}, [9]),
    "MOVA2D eight": ("MOVA2D", {"dst": 72, "instr_mod": 2}, range(72, 80)),
    "MOVB2D one to eight": ("MOVB2D", {"dst": 16, "movb2d_instr_mod": 2}, range(16, 24)),
    "MOVB2D four": ("MOVB2D", {"dst": 20, "movb2d_instr_mod": 4}, range(20, 24)),
    "ELWADD": ("ELWADD", {"dst": 40}, range(40, 48)),
    "ELWADD accumulating": ("ELWADD", {"dst": 40, "dest_accum_en": 1}, range(40, 48)),
    "ELWMUL": ("ELWMUL", {"dst": 200}, range(200, 208)),
    "MVMUL": ("MVMUL", {"dst": 64}, range(64, 72)),
    "GMPOOL": ("GMPOOL", {"dst": 32, "instr_mod19": 1}, range(32, 36)),
    "GAPOOL": ("GAPOOL", {"dst": 40, "instr_mod19": 1}, range(40, 44)),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_writer_writes_high_halves(name: str, seed: int) -> None:
    mnemonic, fields, rows = WRITERS[name]
    plain, halves = pair(seed)
    for s in (plain, halves):
        if mnemonic == "GMPOOL":  # its scaler
            s.src[1] = 0x3F800000
        assert run(s, mnemonic, **fields) == rules.DONE
    assert np.array_equal(halves.dst[HIGH], plain.dst[:ROWS])
    assert np.array_equal(halves.dst_valid[HIGH], plain.dst_valid[:ROWS])
    written = np.isin(np.arange(ROWS), list(rows))
    assert (halves.dst[HIGH[written] + 8] != LOW_BEFORE).all()
    assert (halves.dst[HIGH[~written] + 8] == LOW_BEFORE).all()


@pytest.mark.parametrize("mode", [1, 2, 6, 8, 14, 15])
@pytest.mark.parametrize("row", [4, 6, 200])
def test_a_vector_store_writes_high_halves(mode: int, row: int) -> None:
    plain, halves = pair(row)
    for s in (plain, halves):
        assert run(s, "SFPSTORE", lreg_ind=3, instr_mod0=mode, dest_reg_addr=row) == rules.DONE
    assert np.array_equal(halves.dst[HIGH], plain.dst[:ROWS])
    spoiled = halves.dst[HIGH + 8] != LOW_BEFORE
    lanes = np.zeros((ROWS, 16), bool)
    for lane in range(32):
        lanes[(row & ~3) + lane // 8, 2 * (lane & 7) + (row >> 1 & 1)] = plain.cc[lane]
    assert np.array_equal(spoiled, lanes)


@pytest.mark.parametrize(
    ("mnemonic", "fields"),
    [
        ("MOVD2A", {"dst": 24, "instr_mod": 2, "src": 4}),
        ("MOVD2B", {"dst": 24, "instr_mod": 2, "src": 4}),
        ("MOVD2B", {"dst": 28, "src": 8}),
        ("SFPLOAD", {"lreg_ind": 2, "instr_mod0": 2, "dest_reg_addr": 24}),
        ("SFPLOAD", {"lreg_ind": 2, "instr_mod0": 6, "dest_reg_addr": 30}),
    ],
)
def test_a_reader_reads_high_halves(mnemonic: str, fields: dict[str, int]) -> None:
    plain, halves = pair(5)
    before = halves.dst.copy()
    for s in (plain, halves):
        assert run(s, mnemonic, **fields) == rules.DONE
    assert np.array_equal(halves.src, plain.src)
    assert np.array_equal(halves.lreg, plain.lreg)
    assert np.array_equal(halves.dst, before)


def test_32_bit_datums_do_not_change() -> None:
    plain, halves = pair(6)
    halves.dst[:] = plain.dst
    halves.dst_valid[:] = plain.dst_valid
    for s in (plain, halves):
        assert run(s, "SFPSTORE", lreg_ind=3, instr_mod0=4, dest_reg_addr=40) == rules.DONE
        assert run(s, "MOVA2D", dst=80, instr_mod=2, dest_32b_lo=1) == rules.DONE
    assert np.array_equal(halves.dst, plain.dst)


def test_zeroacc_of_one_row_means_the_high_half() -> None:
    """Of sixteen rows, halves or all the physical rows are meant (ZEROACC, Blackhole ISA)."""
    _, halves = pair(7)
    halves.dst_valid[:] = 1
    assert run(halves, "ZEROACC", where=20, clear_mode=0) == rules.DONE
    assert np.flatnonzero(halves.dst_valid == 0).tolist() == [high_row(20)]
    halves.dst_valid[:] = 1
    assert run(halves, "ZEROACC", where=2, clear_mode=1) == rules.DONE
    assert np.flatnonzero(halves.dst_valid == 0).tolist() == list(range(32, 48))


def test_the_register_takes_bit_11_alone() -> None:
    tile = Tile()
    tile.write32(REGISTER, BIT)
    assert tile.read32(REGISTER) == BIT
    tile.write32(REGISTER, 0)
    assert tile.read32(REGISTER) == 0
    with pytest.raises(BhemuError, match="asks for what is not modelled"):
        tile.write32(REGISTER, BIT | 1 << 10)
    tile.write32(REGISTER, BIT)
    tile.reset()
    assert tile.read32(REGISTER) == 0


@pytest.mark.parametrize("row", [0, 4, 12, 100, 252])
def test_what_a_vector_store_leaves_in_low_halves_is_not_written(row: int) -> None:
    _, s = pair(1)
    s.cc[:] = 1
    s.dst_valid[:] = 1
    assert run(s, "SFPSTORE", instr_mod0=2, dest_reg_addr=row) == rules.DONE
    low = {high_row(row + j) + 8 for j in range(4)}
    assert {i for i in range(1024) if s.dst_valid[i] == UNWRITTEN} == low
    assert set(s.dst_valid.tolist()) == {1, UNWRITTEN}
