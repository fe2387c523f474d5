"""Random programs among tiles: equal on every schedule, and to a libttsim.so where there is one."""

import os

import pytest
import ttsim_noc
from random_noc import Generator

from bhemu.oracle.libttsim import find

SEEDS = range(100, 100 + (200 if os.environ.get("BHEMU_LONG") else 6))


@pytest.mark.parametrize("seed", SEEDS)
def test_schedule_threads_and_late_delivery_change_no_byte(seed: int) -> None:
    made = Generator(seed)
    plain, tiles = ttsim_noc.on_chip(made)
    for options in (
        {"quantum": 7},
        {"quantum": 100, "delivery": "late", "seed": seed},
        {"threads": 2, "engine": "unicorn"},
    ):
        other, touched = ttsim_noc.on_chip(made, **options)
        assert touched == tiles
        assert all(other[place] == plain[place] for place in plain), options


@pytest.mark.skipif("BHEMU_TTSIM" not in os.environ, reason="BHEMU_TTSIM names no libttsim.so")
@pytest.mark.parametrize("seed", SEEDS)
def test_memory_is_that_of_the_golden_model(seed: int) -> None:
    assert ttsim_noc.differences(find(None), seed) == []
