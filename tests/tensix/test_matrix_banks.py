"""Matrix instructions in each pair of Src banks: what is in the banks counts, not which they are.

Source: SrcASrcB, Wormhole ISA.
"""

from itertools import product

import numpy as np
import pytest
from matrix_reference import BF16, FP16, INT8, TF32, filled, rule
from unit_runner import run

from bhemu.tensix import rules
from bhemu.tensix.state import State

BY_BANK = ("src", "src_fmt", "src_valid", "src_doubt")  # [SrcA, SrcB][bank], the last [bank]
PHASES = ("MVMUL", "DOTPV", "ELWMUL", "GAPOOL")
INSTRUCTIONS: list[tuple[str, int, dict[str, int]]] = [
    *((name, fmt, {}) for name in ("MVMUL", "DOTPV") for fmt in (BF16, TF32, FP16, INT8)),
    *(
        (name, fmt, {"instr_mod19": mode})
        for name in ("ELWADD", "ELWSUB", "ELWMUL")
        for fmt in (BF16, FP16, INT8)
        for mode in (0, 1, 2)
    ),
    ("GAPOOL", BF16, {"instr_mod19": 1}),
    ("GMPOOL", BF16, {"instr_mod19": 1}),
    *((name, BF16, {}) for name in ("CONV3S1", "CONV3S2", "MPOOL3S1", "MPOOL3S2")),
    *((name, BF16, {"instr_mod": 0}) for name in ("MOVA2D", "MOVDBGA2D", "MOVD2B")),
    *(
        (name, BF16, {"instr_mod": 2})
        for name in ("MOVA2D", "MOVDBGA2D", "MOVD2A", "MOVD2B", "MOVB2A")
    ),
    *(("MOVB2D", BF16, {"movb2d_instr_mod": mode}) for mode in (2, 3, 4, 5)),
    ("TRNSPSRCB", BF16, {}),
    ("SHIFTXA", BF16, {"direction": 2}),
    ("SHIFTXB", BF16, {}),
    ("SHIFTXB", BF16, {"rot_shift": 1}),
    ("ZEROSRC", BF16, {"src_mask": 3, "write_mode": 1}),
    *(("CLEARDVALID", BF16, {"cleardvalid": mask}) for mask in (1, 2, 3)),
    *(("SETRWC", BF16, {"clear_ab_vld": mask}) for mask in (1, 2, 3)),
]


def turned(s: State, a: int, b: int) -> State:
    """The same with the banks of SrcA (a = 1) and SrcB (b = 1) exchanged."""
    other = State()
    other.buffer[:] = s.buffer
    for name in BY_BANK:
        banks = getattr(other, name)
        if name == "src_doubt":
            banks[:] = banks[::-1].copy() if a else banks
            continue
        for which, turn in enumerate((a, b)):
            banks[which] = banks[which, ::-1].copy() if turn else banks[which]
    other.matrix_bank[:] = (s.matrix_bank[0] ^ a, s.matrix_bank[1] ^ b)
    other.unpack_bank[:] = (s.unpack_bank[0] ^ a, s.unpack_bank[1] ^ b)
    return other


@pytest.mark.parametrize(("name", "fmt", "fields"), INSTRUCTIONS)
def test_banks_are_alike(name: str, fmt: int, fields: dict[str, int]) -> None:
    for seed in (1, 6):
        s = filled(seed, fmt, fmt == INT8)
        s.rwc[0] = (16, 32, 8, int(name in PHASES))
        s.src[1] = 0x3F800000 if "MPOOL" in name else s.src[1]
        s.src_doubt[:] = [[0, 0, 0xFFFF, 1], [0xF0, 0, 1, 0xFFFF]]
        s.srca_row[0] = 16
        states = [turned(s, a, b) for a, b in product((0, 1), (0, 1))]
        numbers = [run(state, name, **fields) for state in states]
        assert numbers == [rules.DONE] * 4, rule(numbers[0])
        for (a, b), state in zip(product((0, 1), (0, 1)), states, strict=True):
            back = turned(state, a, b)
            for member in (*BY_BANK, "dst", "dst_valid", "rwc", "matrix_bank", "unpack_bank"):
                want = getattr(states[0], member)
                assert np.array_equal(getattr(back, member), want), (member, a, b)
