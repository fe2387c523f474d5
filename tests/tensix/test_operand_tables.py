"""What the values of operands stand for: a table beside each field, and none for what is refused.

Which values a mode field takes is measured: data/mode_coverage.json has every mode that executes or
is refused, from asking the instructions themselves. Of other fields the instruction is asked here.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import bhemu as package
import bhemu.tensix.units
from bhemu.bits import Bits, Flags, Number, choice, flags, number, parts
from bhemu.errors import BhemuError, NoProgress
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import meaning
from bhemu.riscv.assembly import PARK, code, ttinsn
from bhemu.tensix.insn import Instruction, assemble, instructions
from bhemu.tensix.units.vector import integer

MODES = json.loads((Path(package.__file__).parent / "data" / "mode_coverage.json").read_text())
NAMED = {cls.name: cls for cls in instructions().values()}
FIELDS = [(cls, field) for cls in instructions().values() for field in cls.fields]
ALONE = {  # a word with this value alone is refused; it is allowed beside others or by options
    "REG2FLOP": "by default, whatever the fields",
    "SETDMAREG set_signals_mode": "while no statistics are kept",
    "MOVDBGA2D": "by default, whatever the fields",
    "PACR dst_access_mode": "unless Dst is swizzled and remapped",
    "UNPACR_NOP": "fields go together",
}


def case(one: tuple[type[Instruction], Bits]) -> str:
    return f"{one[0].name} {one[1].name}"


def test_every_field_says_what_its_values_are() -> None:
    """But those of instructions that are refused: nothing says what they do."""
    silent = [
        case((cls, field))
        for cls, field in FIELDS
        if not cls.refused
        if field.operand is None or not (field.operand.about or [*field.operand.rows()])
    ]
    assert silent == []


MEASURED = [
    (cls, field)
    for cls, field in FIELDS
    if field.mode and cls.name in MODES and not isinstance(field.operand, Number)
]


@pytest.mark.parametrize("one", MEASURED, ids=case)
def test_a_table_has_the_values_that_execute(one: tuple[type[Instruction], Bits]) -> None:
    cls, field = one
    rows = [row for row in MODES[cls.name] if field.name in row["fields"]]
    valid = {row["fields"][field.name] for row in rows if row["status"] != "refused"}
    assert field.operand is not None
    told = {value for value in range(field.max + 1) if field.operand.describes(value)}
    assert valid <= told
    if isinstance(field.operand, Flags):
        told.discard(0)  # no bit: nothing that could be described
        valid.discard(0)
    if not {cls.name, case(one)} & ALONE.keys():
        assert told == valid
    assert all(field.operand.text(value) for value in told) or 0 in told


def rule_of(word: int) -> str:
    """The rule that refuses a word, executed by T0; "" where it executes or waits."""
    tile = Tile()
    tile.write(0x10000, code([ttinsn(word)], PARK))
    tile.core["trisc0"].set_reset_pc(0x10000)
    tile.core["trisc0"].release()
    try:
        tile.run("idle", timeout_s=60)
    except NoProgress:
        return ""
    except BhemuError as error:
        return error.rule
    return ""


@pytest.mark.parametrize(
    ("name", "field", "others"),
    [
        ("ATGETM", "mutex_index", {}),
        ("SFPCONFIG", "config_dest", {}),
        ("UNPACR", "addr_cnt_context_id", {"ovrd_thread_id": 1}),
        ("PACR", "addr_cnt_context", {"ovrd_thread_id": 1, "zero_write": 1}),
        ("CLEARDVALID", "reset", {"cleardvalid": 1}),
        ("XMOV", "last", {}),
        ("CONV3S1", "rotate_weights", {}),
    ],
)
def test_values_without_a_row_are_refused(name: str, field: str, others: dict[str, int]) -> None:
    cls = NAMED[name]
    bits = next(f for f in cls.fields if f.name == field)
    assert bits.operand is not None
    values = range(min(bits.max + 1, 16))
    rules = {value: rule_of(cls.assemble(**others, **{field: value})) for value in values}
    refused = {value for value in values if not bits.operand.describes(value)}
    assert refused
    for value, rule in rules.items():
        assert (rule in {rules[one] for one in refused}) == (value in refused), rules
    assert all(rules[value] for value in refused)


LOGIC: dict[str, Callable[[int, int], int]] = {
    "b": lambda a, b: b,
    "not b": lambda a, b: 1 - b,
    "a and b": lambda a, b: a & b,
    "a or b": lambda a, b: a | b,
    "a and not b": lambda a, b: a & (1 - b),
    "a or not b": lambda a, b: a | (1 - b),
    "b and not a": lambda a, b: b & (1 - a),
    "b or not a": lambda a, b: b | (1 - a),
    "neither a nor b": lambda a, b: 1 - (a | b),
    "not both": lambda a, b: 1 - (a & b),
    "either a or b": lambda a, b: a ^ b,
    "a same as b": lambda a, b: 1 - (a ^ b),
    "1, in use": lambda a, b: 1,
    "0, in use": lambda a, b: 0,
}


@pytest.mark.parametrize("mode", [*range(1, 13), 14, 15])
def test_what_becomes_of_two_flags_is_what_the_truth_table_says(mode: int) -> None:
    pushed, popped = integer.SFPPUSHC.instr_mod1.operand, integer.SFPPOPC.instr_mod1.operand
    assert pushed is not None and popped is not None
    text = pushed.text(mode).removeprefix("top of the stack = ")
    assert popped.text(mode) == f"flags = {text}"
    for a, b in itertools.product(range(2), repeat=2):
        assert integer._TRUTH[mode] >> (2 * a + b) & 1 == LOGIC[text](a, b)


def test_a_refused_mode_has_no_words() -> None:
    """SFPLOAD mode 10 (VECTOR-STACK)."""
    mode = next(f for f in NAMED["SFPLOAD"].fields if f.name == "instr_mod0").operand
    assert mode is not None
    assert not mode.describes(10)
    assert mode.text(10) == ""


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("STALLWAIT", {"stall_res": 0x41, "wait_res": 0x10}, "holds TDMA, MATH until MATH idle"),
        ("STALLWAIT", {"stall_res": 0x1FF}, "holds everything until THCON, UNPACK0, UNPACK1, PACK"),
        (
            "SEMWAIT",
            {"stall_res": 2, "sem_sel": 2, "wait_sem_cond": 1},
            "holds SYNC until semaphore 1 (MATH_PACK) is above 0",
        ),
        ("SFPSETCC", {}, "instr_mod1: flags where LReg[lreg_c] is negative"),
        ("SFPIADD", {"instr_mod1": 6}, "LReg[lreg_c] - LReg[lreg_dest], the flags stay"),
        ("SFPLOADI", {"instr_mod0": 8}, "high half of the LReg"),
        (
            "SETRWC",
            {"bit_mask": 3, "clear_ab_vld": 3},
            "bit_mask: SrcA, SrcB; clear_ab_vld: SrcA, SrcB",
        ),
        ("ADDDMAREG", {"op_a_reg_index": 3, "op_b_is_const": 1}, "op_a_reg_index GPR 3"),
        ("ZEROACC", {"clear_mode": 3}, "clear_mode: all of Dst"),
    ],
)
def test_a_word_is_told_from_the_tables(name: str, fields: dict[str, int], told: str) -> None:
    assert told in meaning(assemble(name, **fields))


def test_a_constant_is_no_gpr() -> None:
    word = assemble("ADDDMAREG", op_a_reg_index=3, op_b_reg_index=5, op_b_is_const=1)
    assert "GPR 5" not in meaning(word)


def test_tables_in_words() -> None:
    one = choice({0: "a", 1: "b", 2: "b", 3: "b", 7: "c"})
    assert [*one.rows()] == [("0", "a"), ("1-3", "b"), ("7", "c")]
    assert (one.text(2), one.text(5), one.describes(5)) == ("b", "", False)
    some = flags("x", "", "y", none="nothing", every="")
    assert [*some.rows()] == [("bit 0", "x"), ("bit 2", "y"), ("none", "nothing")]
    assert (some.text(5), some.text(0), some.describes(2)) == ("x, y", "nothing", False)
    both = parts((0, 0, choice({0: "", 1: "p"})), (3, 2, one))
    assert (both.text(5), both.describes(2), both.describes(12)) == ("p, b", False, True)
    assert number("rows").text(3) == ""
