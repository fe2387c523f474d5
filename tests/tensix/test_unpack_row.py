"""SrcRow: the row that an unpacker's target is counted from (UNPACR_Regular, ISA).

`SrcRow` starts as SRCA_SET_Base << 4 with every bank handed over; with Unpack_Src_Reg_Set_Upd each
UNPACR that hands nothing over adds 16 and the base.  It is added to rows of SrcA (0 to 15) while
SRCA_SET_SetOvrdWithAddr is 0, and to rows of SrcB, whose rows wrap.
"""

from dataclasses import replace

import numpy as np
import pytest
from test_unpack import fresh
from unit_runner import run
from unpack_model import Unpack, put, put_thread

from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.state import State

CASES = [Unpack(), Unpack(zeros=1), Unpack(fmt=6, out=6), Unpack(fmt=2, out=2, forced=20)]
UPDATE = (cf.THCON_SEC0_REG2_Unpack_Src_Reg_Set_Upd, cf.THCON_SEC1_REG2_Unpack_Src_Reg_Set_Upd)


def unpacked(s: State, case: Unpack, moved: int) -> None:
    """One UNPACR; the rows of the model, `moved` rows further on, are those of the bank."""
    bank = int(s.unpack_bank[case.u])
    case.program(s)
    s.src[case.u, bank] = 0
    plain = np.zeros((64, 16), np.uint32)
    case.expect(s.l1.tobytes(), plain, s.dst.copy(), s.dst_valid.copy())
    assert run(s, "UNPACR", **case.operands()) == rules.DONE
    assert np.array_equal(s.src[case.u, bank], np.roll(plain, moved, axis=0))


@pytest.mark.parametrize("base", [0, 1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_srca_starts_at_the_base_of_its_set(base: int, case: Unpack) -> None:
    s = fresh()
    put_thread(s, 0, tf.SRCA_SET_Base, base)
    case = replace(case, count=240, override=0)
    unpacked(s, case, 0)  # nothing was handed over yet
    unpacked(s, replace(case, set_dat_valid=1), 0)
    assert s.unpack_row[0].tolist() == [16 * base, 0, 0]
    unpacked(s, case, 16 * base)


@pytest.mark.parametrize("base", [0, 1, 2])
def test_every_unpacr_goes_on_to_another_set(base: int) -> None:
    s = fresh()
    put_thread(s, 0, tf.SRCA_SET_Base, base)
    put(s, UPDATE[0], 1)
    row = 0
    for _ in range(6):
        unpacked(s, Unpack(count=256, override=0), row)
        row = (row + 16 + 16 * base) % 64
        assert s.unpack_row[0, 0] == row
    unpacked(s, Unpack(count=256, override=0, set_dat_valid=1), row)
    assert s.unpack_row[0, 0] == 16 * base


def test_rows_of_srcb_wrap() -> None:
    s = fresh()
    put(s, UPDATE[1], 1)
    for row in (0, 16, 32, 48, 0):
        unpacked(s, Unpack(u=1, count=640), row)


def test_the_override_ignores_the_set() -> None:
    s = fresh()
    s.unpack_row[0] = 32
    unpacked(s, Unpack(), 0)
    unpacked(s, Unpack(set_dat_valid=1), 0)
    assert s.unpack_row[0].tolist() == [0, 32, 32]


def test_rows_before_the_first_drop_before_the_set_is_added() -> None:
    s = fresh()
    s.unpack_row[0, 0] = 32
    unpacked(s, Unpack(count=128, override=0, dest=0), 32)


def test_unpacking_to_dst_goes_on_as_well() -> None:
    s = fresh()
    put(s, UPDATE[0], 1)
    case = Unpack(fmt=0, out=0, to_dst=1)
    case.program(s)
    assert run(s, "UNPACR", **case.operands()) == rules.DONE
    assert s.unpack_row[0, 0] == 16


def test_nop_starts_a_bank_at_the_base() -> None:
    """UNPACR_NOP_SETDVALID sets SrcRow too."""
    s = fresh()
    put_thread(s, 1, tf.SRCA_SET_Base, 3)
    assert run(s, "UNPACR_NOP", 1, unpack_pop=3, src_clr_val_ctrl=1) == rules.DONE
    assert s.unpack_row[0].tolist() == [0, 48, 0]


def test_the_base_of_srcb_is_refused_where_it_would_count() -> None:
    s = fresh()
    put(s, UPDATE[1], 1)
    put_thread(s, 0, tf.SRCB_SET_Base, 1)
    case = Unpack(u=1)
    case.program(s)
    number = run(s, "UNPACR", **case.operands())
    assert sentences.RULES[number].rule == "UNPACR-SRCB-BASE"
