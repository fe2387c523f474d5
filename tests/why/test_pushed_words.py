"""Words that cores push: GPRs set anew, words of tables, constants in two halves."""

from typing import Any, cast

from bhemu.machine.tile import Tile
from bhemu.memmap import INSTRN_BUF_BASE
from bhemu.riscv.assembly import sw
from bhemu.tensix.insn import assemble, decode
from bhemu.why.ordering.gprs import Gprs
from bhemu.why.repair import constants, tables
from bhemu.why.repair.edits import Code, Site


class _At:
    """A step at a pc."""

    def __init__(self, pc: int) -> None:
        self.pc = pc


def _pushed(gprs: Gprs, pc: int, name: str, **fields: int) -> Any:
    return gprs.pushed(2, assemble(name, **fields), cast("Any", _At(pc)))


def test_a_gpr_that_another_line_sets_before_anything_reads_it() -> None:
    gprs = Gprs()
    assert _pushed(gprs, 0x10, "SETDMAREG", reg_index_16b=16, payload_sig_sel=7) is None
    lost = _pushed(gprs, 0x20, "SETDMAREG", reg_index_16b=16, payload_sig_sel=9)
    assert lost is not None
    assert (lost[0].pc, lost[1]) == (0x10, 8)


def test_a_gpr_that_is_read_or_set_by_the_same_line_may_be_set_anew() -> None:
    gprs = Gprs()
    _pushed(gprs, 0x10, "SETDMAREG", reg_index_16b=16, payload_sig_sel=7)
    assert _pushed(gprs, 0x10, "SETDMAREG", reg_index_16b=16, payload_sig_sel=8) is None
    _pushed(gprs, 0x18, "WRCFG", gpr_address=8)
    assert _pushed(gprs, 0x20, "SETDMAREG", reg_index_16b=16, payload_sig_sel=9) is None


def test_a_thread_that_records_words_of_gprs_is_not_followed() -> None:
    gprs = Gprs()
    gprs.recorded(2, assemble("WRCFG", gpr_address=8))
    _pushed(gprs, 0x10, "SETDMAREG", reg_index_16b=16, payload_sig_sel=7)
    assert _pushed(gprs, 0x20, "SETDMAREG", reg_index_16b=16, payload_sig_sel=9) is None


def test_each_word_of_a_table_is_changed_alone() -> None:
    words = [assemble("SFPMOV", lreg_dest=n) for n in (1, 2, 3)]
    tile = Tile()
    for n, word in enumerate(words):
        tile.write(0x4000 + 4 * n, word.to_bytes(4, "little"))
    site = Site(2, 0x100, INSTRN_BUF_BASE, 1, values=words, taken=words)
    code = Code({2: {0x100: sw(5, 6)}})
    found = list(tables.edits(code, [[site]], {}, tile))
    assert {edit.datum for edit in found} == set(words)
    assert {edit.code[1][0] for edit in found} == {0x4000, 0x4004, 0x4008}
    assert all(edit.at == 0x100 for edit in found)


def test_the_line_of_an_element() -> None:
    text = ["static const int t[] = {", "    A(1, 2),", "    B,", "    C(3),", "};", "int x;"]
    assert [tables._element(text, n, 3) for n in range(3)] == [1, 2, 3]
    assert [tables._element(["int t[] = {A, B(1), C};"], n, 3) for n in range(3)] == [0, 0, 0]


def test_a_constant_of_two_halves_that_is_an_integer_for_a_float() -> None:
    low = assemble("SFPLOADI", lreg_ind=4, instr_mod0=10, imm16=3)
    high = assemble("SFPLOADI", lreg_ind=4, instr_mod0=8, imm16=0)
    groups = [[Site(2, 4 * n, None, 1, values=[word])] for n, word in enumerate((low, high))]
    code = Code({2: {0: 0, 4: 0}})
    (edit,) = [
        one for one in constants.edits(code, groups) if "3.0," in one.text and "-" not in one.text
    ]
    pushed = [cast("Any", instead)[0] for _, instead in edit.code]
    halves = [(word >> 2 | word << 30) & 0xFFFF for word in pushed]
    assert halves == [0x0000, 0x4040]
    assert decode(high) is not None
