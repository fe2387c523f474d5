"""`bhemu explain` and the hints that lead to it."""

import json
from pathlib import Path

import pytest

ADD1 = Path(__file__).parents[2] / "elfs" / "add1"


def test_text_and_json_say_the_same(bhemu) -> None:
    text = bhemu("explain", "SEMWAIT", "0xFFE80024")
    assert text.exit_code == 0
    assert text.stdout.splitlines()[0] == "SEMWAIT: a Tensix instruction"
    found = json.loads(bhemu("explain", "SEMWAIT", "0xFFE80024", "--json").stdout)["explained"]
    assert [one["kind"] for one in found] == ["a Tensix instruction", "an address"]
    for one in found:
        assert all(f"  {line}" in text.stdout for line in one["lines"])


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("LREG3", ("LReg[3]: a register of the vector unit: 32 lanes of 32 bits",)),
        ("lreg", ("lreg: state", "  LReg lanes")),
        ("sem:1", ("sem: state",)),
        ("GPR5", ("gpr: state",)),
        ("trisc1", ("trisc1: a RISC-V core", "  held in reset by bit 13 of SOFT_RESET_0")),
        ("NCRISC", ("ncrisc: a RISC-V core", "  local data RAM: 0x2000 bytes at 0xffb00000")),
        ("t1", ("T1: a thread of the coprocessor", "x6: a register of a core")),
        ("a0", ("x10: a register of a core", "  a0 in the calling convention")),
        ("PACR.last", ("PACR.last: an operand",)),
    ],
)
def test_places_are_explained_under_the_names_that_people_use(bhemu, name: str, lines) -> None:
    result = bhemu("explain", name)
    assert result.exit_code == 0
    assert set(lines) <= set(result.stdout.splitlines())


def test_an_unknown_name_is_exit_code_2(bhemu) -> None:
    result = bhemu("explain", "NOSUCHTHING")
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("explain", "--riscv"), "--riscv is about a word, an ELF or a program: name one"),
        (("explain", "--core", "brisc"), "--core is about a word"),
        (("explain", "--c-header", "SEMWAIT"), "leave SEMWAIT away"),
        (("isa", "--c-header", "SEMWAIT"), "leave SEMWAIT away"),
        (("explain", "--coverage", ADD1, "PACR", "NOP"), "--coverage shows one instruction"),
    ],
)
def test_what_would_be_ignored_is_refused(bhemu, arguments, told) -> None:
    result = bhemu(*arguments)
    assert (result.exit_code, result.stdout) == (2, "") and told in result.stderr


def test_isa_leads_from_a_field_to_explain(bhemu) -> None:
    result = bhemu("isa", "Zstride")
    assert result.exit_code == 2
    assert "bhemu explain PCK0_ADDR_CTRL_ZW_REG_0_Zstride" in result.stderr


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Zstrde", "Zstride?"),
        ("Out_data_fromat", "did you mean THCON_SEC"),
        ("semaphores", "sem: semaphores: value and maximum"),
        ("strem", "did you mean stream?"),
        ("gate_wrod", "did you mean gate"),
    ],
)
def test_a_misspelt_name_of_dump_has_a_near_one(bhemu, name: str, hint: str) -> None:
    result = bhemu("dump", ADD1, name)
    assert result.exit_code == 2
    assert hint in result.stderr


def test_a_stream_is_dumped_with_the_names_of_its_registers(bhemu) -> None:
    shown = bhemu("dump", ADD1, "stream:8").stdout.splitlines()[1:]
    assert 10 < len(shown) < 30
    assert "  stream  8  10 REMOTE_DEST_BUF_SIZE  0x0" in shown


def test_the_stepper_dumps_and_reads_streams_and_nius(bhemu) -> None:
    script = "dump stream:8; read32 0xFFB48028; mem 0xFFB48028 1; read32 0xFFB20044; dump niu:0"
    shown = bhemu("step", ADD1, "-x", script).stdout
    assert "REMOTE_DEST_BUF_SIZE" in shown
    assert "  ffb48028:  00000000  stream 8 REMOTE_DEST_BUF_SIZE (tiles received)" in shown
    assert "NoC 0 initiator 0 NOC_NODE_ID" in shown
    assert "NoC 0 NIU_CFG_0" in shown
