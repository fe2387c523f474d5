"""bhemu build && pytest --bhemu: the kernel on an emulated chip; a failed test says what waits."""

from pathlib import Path

import numpy as np
import pytest
from bhemu import Program
from NAME_data import expected

FOLDER = Path(__file__).parent


@pytest.fixture
def chip():
    return Program.load(FOLDER).launch()


def test_the_kernel_ends_and_its_output_is_as_expected(chip):
    chip.run()
    assert [str(result) for result in chip.check() if not result.equal] == []


def test_other_values(chip):
    """Tile 0 of the tensor lies in bank 0 of DRAM, tile 1 in bank 1, and so on."""
    x = np.linspace(-4, 4, 1024).reshape(32, 32)
    chip.dram[0].put_tensor(0x100000, x, "bf16", convert="nearest")
    chip.run()
    y = chip.dram[0].tensor(0x200000, (32, 32), "bf16")
    assert np.allclose(y, expected(x), rtol=0.01, atol=0.03)
