"""FP16A_FORCE_Enable: operands count as fp16 and Dst has 16-bit datums, whatever else is said.

tt-llk's row sums of int8 set it around moves of results from Dst to SrcB. Every instruction whose
page begins with it must do what it does with fp16 in both banks and 16-bit Dst (MVMUL, ELWADD,
ELWMUL, GMPOOL, MOVD2A, MOVD2B, MOVA2D, MOVB2D, Wormhole ISA). ttsim refuses the field.
"""

import numpy as np
import pytest
from fuzz.campaign import LONG
from matrix_reference import filled
from unit_runner import run

from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.state import State

FP16, BF16, INT8, TF32 = 1, 5, 14, 4
FP32_ENABLED, INT8_MATH = 1 << 29, 1 << 31
INSTRUCTIONS = {
    "MVMUL": {"dst": 40},
    "GAPOOL": {"dst": 40, "instr_mod19": 1},
    "ELWADD": {"dst": 40, "dest_accum_en": 1},
    "ELWSUB": {"dst": 40},
    "ELWMUL": {"dst": 40},
    "GMPOOL": {"dst": 40, "instr_mod19": 1},
    "MOVD2A": {"dst": 40, "src": 8, "instr_mod": 2},
    "MOVD2B": {"dst": 40, "src": 8, "instr_mod": 2},
    "MOVA2D": {"dst": 40, "src": 8, "instr_mod": 2},
    "MOVB2D": {"dst": 40, "src": 8, "movb2d_instr_mod": 4},
}


def states(seed: int, fmt: int, flags: int) -> tuple[State, State]:
    """fp16 as such, and forced onto other formats with other flags."""
    plain, forced = filled(seed, FP16, False), filled(seed, FP16, False)
    forced.src_fmt[:] = fmt
    forced.cfg[0, 1] |= flags
    forced.thread_cfg[0, tf.FP16A_FORCE_Enable.word] = 1
    return plain, forced


@pytest.mark.parametrize("name", INSTRUCTIONS)
@pytest.mark.parametrize("fmt", [BF16, INT8, TF32])
def test_it_goes_before_formats_and_widths(name: str, fmt: int) -> None:
    for flags in (0, FP32_ENABLED, INT8_MATH, FP32_ENABLED | INT8_MATH):
        for seed in range(3 if LONG else 1):
            plain, forced = states(seed, fmt, flags)
            for s in (plain, forced):
                assert run(s, name, **INSTRUCTIONS[name]) == rules.DONE
            assert np.array_equal(plain.dst, forced.dst)
            assert np.array_equal(plain.dst_valid, forced.dst_valid)
            assert np.array_equal(plain.src, forced.src)


def test_it_is_a_field_of_the_thread() -> None:
    """Of another thread it does not count: bf16 sums are not fp16 sums."""
    plain, forced = states(1, BF16, 0)
    for s in (plain, forced):
        assert run(s, "ELWADD", t=1, dst=40) == rules.DONE
    assert not np.array_equal(plain.dst, forced.dst)
