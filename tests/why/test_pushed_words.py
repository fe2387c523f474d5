"""Words that cores push: GPRs set anew, words of tables, constants in two halves."""

from typing import Any, cast

from bhemu.tensix.insn import assemble
from bhemu.why.checks.slots import Gprs


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
