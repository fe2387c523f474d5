"""PACR where a limit or a default is met exactly (PACR, Blackhole ISA; the packer's stages)."""

import pytest
from pack_model import Pack
from pack_runner import execute, setup
from test_pack import step
from unpack_model import put_thread

from bhemu.tensix import thread_fields as tf


@pytest.mark.parametrize("out", [6, 7, 15])
def test_a_downsample_mask_of_all_ones_is_no_mask(out: int) -> None:
    """Block floats take it, and so do several interfaces of less than a row."""
    p = Pack(out=out, downsample=0xFFFF)
    step(*setup(p), p)


def test_a_mask_of_all_ones_with_less_than_a_row() -> None:
    p = Pack(downsample=0xFFFF)
    s, model = setup(p)
    step(s, model, p, 3, n=8)


@pytest.mark.parametrize("n", [1, 5, 8, 15])
@pytest.mark.parametrize("select", [1, 3, 8])
def test_statistics_of_a_part_of_a_row(n: int, select: int) -> None:
    """Only the exponents of what is packed are counted (ExponentHistogram)."""
    p = Pack(masks=(0xFFFF, 0xFFFF))
    s, model = setup(p)
    put_thread(s, 0, tf.ENABLE_ACC_STATS_Enable, 1)
    for _ in range(3):
        step(s, model, p, select, n=n)
        s.adc[0, 2, 0, 1] += 4
    assert s.pack_histogram.tolist() == model.histogram
    assert s.pack_exponent.tolist() == [model.largest, 0, 0]


@pytest.mark.parametrize(("first", "last"), [(0, 15), (3, 9), (7, 7), (10, 15)])
def test_statistics_of_columns_within_a_row(first: int, last: int) -> None:
    """Each column has an exponent of its own: 64 + column, which goes to bin `column`."""
    s, _ = setup(Pack(xstride=2, masks=(0xFFFF, 0xFFFF)))
    put_thread(s, 0, tf.ENABLE_ACC_STATS_Enable, 1)
    s.dst[:], s.dst_valid[:] = [64 + column for column in range(16)], 1
    s.adc[0, 2, :, 0] = (first, last)
    assert execute(s, read_intf_sel=1, last=1) == 0
    assert [i for i in range(32) if s.pack_histogram[i]] == list(range(first, last + 1))
    assert s.pack_exponent[0] == 64 + last
