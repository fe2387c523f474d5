"""Numbers in tables and rows of values: what they may have been meant to be."""

import planted
import pytest

from bhemu import Program
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import addi, branch, sw
from bhemu.tensix.insn import assemble
from bhemu.why.ordering.delays import nops_before
from bhemu.why.repair import files, tables
from bhemu.why.repair.edits import pushing
from bhemu.why.repair.search import Search
from bhemu.why.repair.trial import Trials
from bhemu.why.walk import Word

SFPU = planted.ROOT / "elfs" / "sfpu"
LN2_LOW = 0x35BFBE8E  # in the table of constants of exp


def test_each_number_of_a_table_gets_another_value() -> None:
    part = Search(Program.load(SFPU), 100_000).parts[0]
    edits = list(tables.numbers(part.code, part.sites, part.tile))
    own = [edit for edit in edits if edit.datum == LN2_LOW]
    values = [dict(edit.code)[at][0] for edit in own for at in [edit.code[1][0]]]
    assert values[0] == LN2_LOW ^ 0x80000000
    assert own[0].cost < own[1].cost
    words = part.tile.state.l1.view("<u4")
    assert all(words[edit.code[1][0] >> 2] == LN2_LOW for edit in own)
    assert {edit.core for edit in edits} == {2}  # none pushes constants in turn elsewhere


def test_a_program_without_tables_of_numbers_has_none() -> None:
    part = Search(Program.load(planted.ROOT / "elfs" / "add1"), 5000).parts[0]
    assert list(tables.numbers(part.code, part.sites, part.tile)) == []


@pytest.mark.parametrize(
    ("words", "k", "beside"),
    [
        ([1, 5, 5, 5, 0, 9, 8], 4, [5]),
        ([1, 5, 5, 5, 0, 0, 0, 0], 4, [5, 0]),
        ([5, 5, 0, 1, 2], 2, []),
        ([0x40000, 0x40000, 0x40000, 0], 3, []),
        ([5, 5, 5, 0x80000], 3, []),
    ],
)
def test_what_a_row_of_values_has_alike(words: list[int], k: int, beside: list[int]) -> None:
    assert files._beside(words, k) == beside


def test_less_precision_is_no_cure_of_an_output() -> None:
    program = Program.load(SFPU)
    (spec,) = program.outputs
    assert (spec.dtype, spec.compare) == ("fp32", "ulp")
    texts = [one.text for one in files.FileEdits(Trials(program, 100_000))._outputs()]
    assert f"output {spec.name}: dtype = int32" in texts
    assert f"output {spec.name}: dtype = tf32" not in texts


def _nops_before(*code: int) -> int | None:
    """How many instructions before a word the first NOP is pushed that only lets time pass."""
    tile, at = Tile(), 0x8000
    for n, word in enumerate(code):
        tile.write(at + 4 * n, word.to_bytes(4, "little"))
    last = at + 4 * len(code)
    found = nops_before(tile, Word(0, 1, assemble("SFPLOAD"), last, 2, 0, 1, last))
    return None if found is None else (last - found) // 4


def test_nops_count_as_well_before_instructions_that_compute() -> None:
    nop, other = pushing(assemble("NOP")), pushing(assemble("SFPMOV"))
    assert _nops_before(other, nop, nop) == 2
    assert _nops_before(other, nop, nop, addi(15, 0, 32), addi(14, 0, 1)) == 4
    assert _nops_before(nop, nop, other, addi(15, 0, 32)) is None
    assert _nops_before(other, nop, nop, sw(15, 14, 0)) is None
    assert _nops_before(other, nop, nop, branch(0, 15, 14, -8)) is None
    assert _nops_before(other, other, nop, addi(15, 0, 32)) is None


def test_a_float_is_hardly_meant_as_the_bits_of_a_bf16() -> None:
    program = Program.load(planted.ROOT / "elfs" / "add1")
    bits, one = 0x3F80, 0x3F800000
    typed = {value: cost for value, _, cost in files._others(one, program, "f32:1.0")}
    plain = {value: cost for value, _, cost in files._others(one, program, "u32:0x3F800000")}
    assert typed[bits] > 1.3 > plain[bits]
