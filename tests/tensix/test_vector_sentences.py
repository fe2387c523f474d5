"""A mode of the vector unit that is refused is named by its number, not by another operand's."""

import itertools

import pytest
from sfpu_runner import fresh
from unit_runner import run

from bhemu.tensix.insn import Instruction, instructions
from bhemu.tensix.rules import RULES

NAMED = (
    "VECTOR-MODE-RESERVED",
    "VECTOR-MODE-UNDEFINED",
    "VECTOR-MODE",
)
OTHERS = {"lreg_dest": 5, "lreg_c": 6, "lreg_src_a": 1, "lreg_src_b": 2, "lreg_src_c": 6}
CLASSES = [
    cls
    for cls in instructions().values()
    if cls.unit == "vector" and cls.execute and any(f.name == "instr_mod1" for f in cls.fields)
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_a_refused_mode_is_named(cls: type[Instruction]) -> None:
    s = fresh(0)
    names = {field.name for field in cls.fields}
    others = {name: value for name, value in OTHERS.items() if name in names}
    for mode, given in itertools.product(range(16), (others, {})):
        number = run(s, cls.name, instr_mod1=mode, **given)
        if number in RULES and RULES[number].rule in NAMED:
            assert s.detail[0] == mode, RULES[number].text
