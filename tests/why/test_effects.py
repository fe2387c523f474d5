"""Which rows of Dst and fields of Config a word reads or fills."""

from itertools import product
from types import FunctionType, ModuleType

import pytest
from order_walk import effects

from bhemu.jit.subset import Compiled
from bhemu.tensix import config_fields
from bhemu.tensix.config_fields import Field
from bhemu.tensix.insn import assemble, instructions
from bhemu.tensix.state import State
from bhemu.tensix.units import matrix, pack, unpack
from bhemu.tensix.units.unpack.unpacr import UNPACR

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


def _config(word: int, context: int = 0) -> set[str]:
    """Names of the fields of Config that a word reads."""
    ranges = effects.config_of(word, context)
    return {
        effects.field_name(effects.CONFIG + bit) for low, high in ranges for bit in range(low, high)
    }


def test_fields_of_either_unpacker_and_of_a_context() -> None:
    first, second = (assemble("UNPACR", unpack_block_selection=u) for u in (0, 1))
    for one, other in (("SEC0", "SEC1"), ("SEC1", "SEC0")):
        read = _config(first if one == "SEC0" else second, 3)
        assert {f"THCON_{one}_REG3_Base_cntx3_address", f"THCON_{one}_REG2_Out_data_format"} <= read
        assert not [name for name in read if other in name or "cntx2" in name]
    assert "THCON_SEC1_REG3_Base_address" in _config(second)
    assert "UNP0_NOP_REG_CLR_VAL_nop_reg_clr_val" not in _config(first)


def test_only_a_mode_that_takes_the_format_from_config_reads_it() -> None:
    implied, named = (assemble("SFPLOAD", instr_mod0=mode) for mode in (0, 3))
    assert "ALU_FORMAT_SPEC_REG1_SrcB" in _config(implied) - _config(named)


@pytest.mark.parametrize("package", [pack, unpack, matrix], ids=lambda one: one.__name__[13:])
def test_fields_that_functions_of_a_unit_name_are_declared(package: ModuleType) -> None:
    """Those of the other unpacker and of other contexts are reached by adding to the number."""
    named: set[str] = set()
    for module in vars(package).values():
        if isinstance(module, ModuleType) and module.__name__.startswith(package.__name__):
            for function in vars(module).values():
                plain = function.py_func if isinstance(function, Compiled) else function
                if isinstance(plain, FunctionType):
                    named |= set(plain.__code__.co_names)
    read: set[str] = set()
    for cls in instructions().values():
        if cls.unit == package.__name__.rpartition(".")[2]:
            selects = UNPACR.unpack_block_selection.mask if cls.unit == "unpack" else 0
            for context, selected in product(range(8), (0, selects)):
                read |= _config(cls.opcode << 24 | selected, context)
    fields = {name for name in named if isinstance(vars(config_fields).get(name), Field)}
    assert fields and fields <= read
