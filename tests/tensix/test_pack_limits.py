"""PACR where a limit or a default is met exactly (PACR, Blackhole ISA; the packer's stages)."""

import pytest
from pack_model import Pack
from pack_runner import setup
from test_pack import step


@pytest.mark.parametrize("out", [6, 7, 15])
def test_a_downsample_mask_of_all_ones_is_no_mask(out: int) -> None:
    """Block floats take it, and so do several interfaces of less than a row."""
    p = Pack(out=out, downsample=0xFFFF)
    step(*setup(p), p)


def test_a_mask_of_all_ones_with_less_than_a_row() -> None:
    p = Pack(downsample=0xFFFF)
    s, model = setup(p)
    step(s, model, p, 3, n=8)
