"""Of many parts that hold other bytes, those that decide together."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bhemu.why.trials import Fill, Trials


@pytest.mark.parametrize("needed", [{2}, {0, 4}, {1, 2, 3}])
def test_of_many_parts_those_are_found_that_decide_together(needed: set[int]) -> None:
    parts = [Fill(np.array([n]), np.array([n], np.uint8)) for n in range(6)]
    trials: Any = SimpleNamespace(differs=lambda fill: needed <= set(fill.at.tolist()))
    assert set(Trials.needed(trials, parts)) == needed
