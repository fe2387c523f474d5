"""Production kernels with SFPLOADMACRO: as one instruction at a time, and as numpy has it.

The scheduler's own reference (macro_reference.py) follows the ISA text; what the kernels of tt-llk
and tt-metal need was written by others, against silicon.
"""

import numpy as np
import pytest
from macro_kernel import LLK, Kernel, computed, data
from macro_kernels import KERNELS, floats
from macro_typecasts import TYPECASTS

ALL = KERNELS | TYPECASTS


@pytest.mark.parametrize("reference", [0, LLK])
@pytest.mark.parametrize("name", ALL)
def test_the_macros_do_what_single_instructions_do(name: str, reference: int) -> None:
    kernel = ALL[name]
    operands = data(kernel, 2)
    got = computed(kernel, kernel.macro, operands, reference)
    assert got.tolist() == computed(kernel, kernel.plain, operands, reference).tolist()


def wrong(kernel: Kernel, faces: int) -> int:
    """Results that are not what numpy computes, nor as close as the kernel promises."""
    assert kernel.want is not None
    operands = data(kernel, faces)
    got, want = computed(kernel, kernel.macro, operands), kernel.want(*operands)
    if not kernel.close:
        return int((got != want).sum())
    found = floats(np.asarray(got))
    found = np.maximum(found, 0) if kernel.positive else found
    close = np.abs(found - want) <= kernel.close * np.abs(want) + 1e-36
    return int((~close).sum())  # a NaN is not close


@pytest.mark.parametrize("name", [name for name in ALL if ALL[name].want])
def test_the_macros_compute_what_numpy_computes(name: str) -> None:
    assert wrong(ALL[name], 4) == 0
