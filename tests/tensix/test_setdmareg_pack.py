"""SETDMAREG reads the exponents of packed tiles (SETDMAREG_Special, ExponentHistogram, ISA)."""

import numpy as np
from pack_model import Pack
from pack_runner import setup
from test_pack import step
from unit_runner import run
from unpack_model import put_thread

from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.units import scalar


def special(source: int, register: int, size: int) -> dict[str, int]:
    select = {"payload_sig_sel": source << 3, "payload_sig_sel_size": size}
    return {"set_signals_mode": 1, "reg_index_16b": 2 * register, **select}


def test_the_histogram_and_the_largest_exponent_of_packed_tiles() -> None:
    p = Pack()
    s, model = setup(p)
    put_thread(s, 2, tf.ENABLE_ACC_STATS_Enable, 1)
    for _ in range(3):
        step(s, model, p)
    assert run(s, "SETDMAREG", 2, **special(6, 8, 2)) == rules.DONE
    assert run(s, "SETDMAREG", 2, **special(7, 12, 2)) == rules.DONE
    assert run(s, "SETDMAREG", 2, **special(9, 20, 1)) == rules.DONE
    assert s.gpr[2, 8:16].view(np.uint8).tolist() == model.histogram
    assert s.gpr[2, 20] == model.largest
    assert sum(model.histogram) > 100


def test_a_tile_packed_without_statistics_is_noticed() -> None:
    """The histogram stands still without ENABLE_ACC_STATS; the largest exponent would not."""
    p = Pack()
    s, model = setup(p)
    step(s, model, p)
    before = list(model.histogram)
    put_thread(s, 0, tf.ENABLE_ACC_STATS_Enable, 1)
    step(s, model, p)
    assert run(s, "SETDMAREG", **special(9, 8, 1)) == scalar.STATISTICS
    for source in (6, 7):
        assert run(s, "SETDMAREG", **special(source, 4 * source, 2)) == rules.DONE
    seen = s.gpr[0, 24:32].view(np.uint8).tolist()
    assert seen == [now - was for now, was in zip(model.histogram, before, strict=True)]
    assert run(s, "CLREXPHIST") == rules.DONE
    assert run(s, "SETDMAREG", **special(9, 8, 1)) == rules.DONE
    assert s.gpr[0, 8] == 0


def test_int8_has_no_bins() -> None:
    """What an int8 datum counts as is unspecified, so the histogram is refused afterwards."""
    p = Pack(wide=1, fmt=14, out=14)
    s, model = setup(p)
    put_thread(s, 0, tf.ENABLE_ACC_STATS_Enable, 1)
    step(s, model, p)
    for source in (6, 7, 9):
        assert run(s, "SETDMAREG", **special(source, 8, 1)) == scalar.STATISTICS
