"""Which rows of Dst a word reads or fills."""

import pytest

import bhemu.tensix.units  # noqa: F401  (declares the instructions)
from bhemu.tensix.insn import assemble
from bhemu.tensix.state import State
from bhemu.why.ordering import effects

ROWS = {
    "MOVB2D of 4 rows": (assemble("MOVB2D", dst=12, movb2d_instr_mod=4), range(12, 16)),
    "MOVB2D of one row": (assemble("MOVB2D", dst=3), range(3, 4)),
    "MOVB2D to 8 rows": (assemble("MOVB2D", dst=8, movb2d_instr_mod=2), range(8, 16)),
    "MOVA2D of one row": (assemble("MOVA2D", dst=7), range(7, 8)),
    "MOVA2D of 8 rows": (assemble("MOVA2D", dst=8, instr_mod=2), range(8, 16)),
    "MOVD2B of 4 rows": (assemble("MOVD2B", dst=4, instr_mod=2), range(4, 8)),
    "MOVD2B of one row": (assemble("MOVD2B", dst=4), range(4, 5)),
    "SFPLOAD of odd columns": (assemble("SFPLOAD", dest_reg_addr=6), range(4, 8)),
    "SFPLOAD of 32 bits": (
        assemble("SFPLOAD", dest_reg_addr=36, instr_mod0=4),
        [*range(68, 72), *range(76, 80)],
    ),
    "SETRWC": (assemble("SETRWC"), range(0)),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_dst(name: str) -> None:
    word, rows = ROWS[name]
    before = effects.before_word(State(), 1, word)
    assert before is not None
    seen = [range(low, high) for low, high in before.reads if effects.kind(low) == "Dst"]
    assert [place - effects.DST for one in seen for place in one] == [*rows]
