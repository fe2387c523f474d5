"""`bhemu disasm`: words, ELFs, symbols and source lines."""

from pathlib import Path

import pytest

import bhemu as package
from bhemu.riscv.assembly import ttinsn

ADD1 = Path(package.__file__).parent.parent / "elfs" / "add1"


def test_words_are_tensix_words(bhemu) -> None:
    result = bhemu("disasm", "0xA6A1000A", "a4000008", "0xFF000000")
    assert result.stdout.splitlines() == [
        "0xA6A1000A  SEMWAIT wait_sem_cond=0x2 sem_sel=0x2 stall_res=0x142",
        "0xA4000008  SEMPOST sem_sel=0x2",
        "0xFF000000  unknown opcode 0xff",
    ]


def test_operands_in_words_on_request(bhemu) -> None:
    result = bhemu("disasm", "--meanings", "0xA4000008", "0x7B000006", "0x8F000000")
    assert result.stdout.splitlines() == [
        "0xA4000008  SEMPOST sem_sel=0x2  ; posts semaphore 1 (MATH_PACK)",
        "0x7B000006  SFPSETCC instr_mod1=0x6  ; instr_mod1: flags where it is 0",
        "0x8F000000  SFPNOP",
    ]
    text = bhemu("disasm", ADD1 / "trisc1.elf", "--meanings").stdout
    assert "# SEMPOST sem_sel=0x2  ; posts semaphore 1 (MATH_PACK)" in text


def test_riscv_words_on_request(bhemu) -> None:
    pushed = f"{ttinsn(0xA4000008):#x}"
    result = bhemu("disasm", "--riscv", "0x00008067", pushed)
    assert result.stdout.splitlines() == [
        "0x00008067  ret",
        f"0x{int(pushed, 16):08X}  .ttinsn 0xa4000008  # SEMPOST sem_sel=0x2",
    ]


def test_an_elf_shows_functions_lines_and_tensix_words(bhemu) -> None:
    text = bhemu("disasm", ADD1 / "trisc1.elf").stdout
    assert "entry 0x00014000" in text.splitlines()[0]
    assert "00014000 <_start>:" in text
    assert "; math.c:" in text
    assert ".ttinsn 0x" in text
    assert "SFP" in text


def test_one_symbol_of_a_programs_core(bhemu) -> None:
    text = bhemu("disasm", ADD1, "--core", "brisc", "--symbol", "main").stdout
    headers = [line for line in text.splitlines() if line.endswith(">:")]
    assert headers == ["0000403c <main>:"]
    assert len(text.splitlines()) > 20


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "Missing argument"),
        (("nofile.elf",), "nofile.elf: no such file"),
        (("123456789",), "no such file"),
        (("12", "xyz"), "'xyz' is not a 32-bit word"),
        ((ADD1,), "name a core"),
        ((ADD1, "--core", "ncrisc"), "ncrisc has no ELF"),
        ((ADD1 / "brisc.elf", "--symbol", "mian"), "no symbol mian"),
        ((ADD1 / "in.npy",), "not an ELF file"),
        (("12", "--symbol", "main"), "go with a file"),
    ],
)
def test_bad_input_is_exit_code_2(bhemu, args, message) -> None:
    result = bhemu("disasm", *args)
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[0]
