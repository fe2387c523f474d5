"""tt-llk's broadcasts of 32-bit datums that were unpacked to Dst, after its datacopy.

Each is written as the kernel issues it: SETDVALID gives SrcB to the matrix unit, MOVD2B fetches
high and low halves with Fp32_enabled 0, MOVB2D spreads them. ttsim refuses SETDVALID.
"""

import numpy as np
import numpy.typing as npt
import pytest
from matrix_reference import high_row
from unit_runner import count, run

from bhemu.machine import sentences
from bhemu.memmap import RISCV_DEBUG_REG_DBG_FEATURE_DISABLE
from bhemu.tensix import rules
from bhemu.tensix.banks import NO_FORMAT
from bhemu.tensix.dest import HALVES
from bhemu.tensix.state import State
from bhemu.tensix.units import counters

FP16, BF16 = 1, 5
HIGH, LOW = 0, 1  # dest_32b_lo
Cells = npt.NDArray[np.uint32]


def fetch(s: State, low: int, src: int, dst: int, four: bool = False) -> None:
    fields = {"dst": dst, "src": src, "dest_32b_lo": low, "instr_mod": 2 * four}
    assert run(s, "MOVD2B", **fields) == rules.DONE


def spread(s: State, low: int, src: int, mode: int, *rows: int) -> None:
    for dst in rows:
        fields = {"dst": dst, "src": src, "dest_32b_lo": low, "movb2d_instr_mod": mode}
        assert run(s, "MOVB2D", **fields) == rules.DONE


def row(s: State) -> None:
    for first in (0, 16):
        rows = [first, first + 8, first + 32, first + 40]
        fetch(s, HIGH, 16, first)
        fetch(s, LOW, 0, first)
        spread(s, HIGH, 16, 2, *rows)
        spread(s, LOW, 0, 2, *rows)


def scalar(s: State) -> None:
    fetch(s, HIGH, 16, 0)
    fetch(s, LOW, 0, 0)
    spread(s, HIGH, 16, 3, *range(0, 64, 8))
    spread(s, LOW, 0, 3, *range(0, 64, 8))


def column(s: State) -> None:
    for first in (0, 32):
        for low, src in ((HIGH, 16), (LOW, 0)):
            for k in range(0, 16, 4):
                fetch(s, low, src + k, first + k, four=True)
        for low, src in ((HIGH, 16), (LOW, 0)):
            for face in (first, first + 16):
                for k in range(0, 16, 4):
                    spread(s, low, src + k, 5, face + k)


def of_row(cells: Cells) -> Cells:
    faces = [np.tile(cells[first], (16, 1)) for first in (0, 16)]
    return np.vstack([*faces, *faces])


def of_scalar(cells: Cells) -> Cells:
    return np.full((64, 16), cells[0, 0], np.uint32)


def of_column(cells: Cells) -> Cells:
    faces = [np.tile(cells[first : first + 16, :1], (1, 16)) for first in (0, 32)]
    return np.vstack([faces[0], faces[0], faces[1], faces[1]])


AT = [high_row(r) for r in range(64)]


def prepared(seed: int, left: int, llk: int = 1) -> tuple[State, Cells]:
    """A tile of 32-bit cells in Dst; `left`: format of what SrcB was used for before."""
    rng = np.random.default_rng(seed)
    s = State()
    s.reference[0] = llk
    s.debug[RISCV_DEBUG_REG_DBG_FEATURE_DISABLE >> 2] = HALVES
    s.dst_valid[:] = 1
    s.src[:] = rng.integers(0, 1 << 19, s.src.shape, np.uint32) << 13
    s.src_fmt[:] = left
    cells = rng.integers(0, 1 << 32, (64, 16), np.uint32)
    cells[::3] &= 0xFF00FFFF  # exponents of 0: Zero_Flag_disabled_src is what keeps them
    s.dst[AT] = cells >> 16
    s.dst[[at + 8 for at in AT]] = cells & 0xFFFF
    s.cfg[0, 2] = 1
    return s, cells


@pytest.mark.parametrize(
    ("kernel", "model"), [(row, of_row), (scalar, of_scalar), (column, of_column)]
)
@pytest.mark.parametrize("left", [0, BF16, FP16, 4])
def test_whatever_used_srcb_before_the_broadcast_is_exact(kernel, model, left: int) -> None:
    s, cells = prepared(left, left)
    assert run(s, "SETDVALID", setvalid=2) == rules.DONE
    kernel(s)
    got = s.dst[AT].astype(np.uint32) << 16 | s.dst[[at + 8 for at in AT]]
    assert np.array_equal(got, model(cells))
    assert count(s, counters._NO_FORMAT) == 1


def test_a_bank_without_format_serves_moves_alone() -> None:
    s, _ = prepared(1, BF16)
    assert run(s, "SETDVALID", setvalid=3) == rules.DONE
    assert s.src_fmt[:, 0].tolist() == [NO_FORMAT, NO_FORMAT]
    for name, more in (("ELWADD", {}), ("MVMUL", {}), ("GAPOOL", {"instr_mod19": 1})):
        assert sentences.RULES[run(s, name, **more)].rule == "FPU-FORMATS"
    assert sentences.RULES[run(s, "MOVA2D", instr_mod=2)].rule == "MOV-FORMAT"


def test_with_reference_ttsim_it_stays_unsupported() -> None:
    s, _ = prepared(1, BF16, llk=0)
    assert run(s, "SETDVALID", setvalid=2) == counters.SETDVALID_FORMAT
