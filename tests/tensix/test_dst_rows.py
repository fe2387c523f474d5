"""The rows of Dst that instructions declare: these decide what a word does, and no others."""

import numpy as np
import pytest
from matrix_reference import BF16, filled
from unit_runner import run

from bhemu.tensix import rules
from bhemu.tensix.insn import Instruction, instructions
from bhemu.tensix.state import State

OVERWRITE = ("MOVA2D", "MOVB2D")
MODE, POOLS, ADDS = {"instr_mod": 2}, {"instr_mod19": 1}, {"dest_accum_en": 1}
FIELDS = {"MOVB2D": {"movb2d_instr_mod": 2}, "MOVD2A": MODE, "MOVD2B": MODE, "MOVA2D": MODE}
FIELDS |= {"GMPOOL": POOLS, "GAPOOL": POOLS, "ELWADD": ADDS, "ELWSUB": ADDS}


def rows_of(cls: type[Instruction]) -> int:
    """How many rows the words of this test read or fill."""
    return cls.dst_rows_of(cls.operands(cls.assemble(**FIELDS.get(cls.name, {}))))


DECLARED = {cls.name: cls for cls in instructions().values() if rows_of(cls)}
ROW, SIGN = 16, 0x8000


def after(name: str, changed: slice) -> State:
    """A word at row ROW, where `changed` rows of Dst have the other sign."""
    s = filled(3, BF16, False)
    s.dst_valid[:] = 1
    s.dst[changed] ^= SIGN
    field = "dst" if hasattr(DECLARED[name], "dst") else "dest_reg_addr"
    assert run(s, name, **{field: ROW, **FIELDS.get(name, {})}) == rules.DONE
    return s


def results(s: State, end: int) -> bytes:
    """What the word made."""
    return s.src.tobytes() + s.lreg.tobytes() + s.dst[ROW:end].tobytes()


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_the_last_declared_rows_decide_and_none_behind(name: str) -> None:
    end = ROW + rows_of(DECLARED[name])
    first, last, behind = (
        after(name, slice(*rows)) for rows in ((0, 0), (end - 4, end), (end, 48))
    )
    assert results(first, end) == results(behind, end)
    assert np.array_equal(first.dst[end:48] ^ SIGN, behind.dst[end:48])
    overwritten = results(first, end)
    first.dst[end - 4 : end] ^= SIGN  # as if they were neither read nor written
    undecided = results(last, end) in (overwritten, results(first, end))
    assert undecided == (name in OVERWRITE)
