"""`bhemu explain`: everything that has a name, from its declaration, with its chapter."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import bhemu.kernel
from bhemu import Tile
from bhemu.debug.explain import explain, kernel_names
from bhemu.devices.bus.address_map import fields_of
from bhemu.errors import InputError
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.insn import assemble, instructions
from bhemu.tensix.rules import RULES

C = Path(bhemu.kernel.__file__).parent / "c"


def lines(text: str) -> str:
    return "\n".join(f"{one.name}: {one.kind}\n" + "\n".join(one.lines) for one in explain(text))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "UNPACR",
            [
                "opcode 0x42, unpack unit",
                "Blackhole ISA",
                "[ 6: 6]  set_dat_valid",
                "1  hands the bank to the matrix unit",
            ],
        ),
        ("unpacr", ["opcode 0x42"]),
        (
            "THCON_SEC0_REG1_Out_data_format",
            ["word 70, bits 4..7", "0xffef0118, bank 1 0xffef0498", "tensix.units.pack", "PACR"],
        ),
        ("THCON_SEC1_REG2_Out_data_format", ["word 120", "tensix.units.unpack.modes"]),
        ("CFG_STATE_ID_StateID", ["one per thread; written by SETC16"]),
        ("0xFFEF0130", ["Config bank 0 word 76 THCON_SEC0_REG3_Base_address", "trisc0"]),
        ("0xFFE80034", ["semaphore 5", "PCBuf"]),
        ("0xFFB48028", ["stream 8 REMOTE_DEST_BUF_SIZE (tiles received)"]),
        ("0xFFB20840", ["NoC 0 initiator 1 NOC_CMD_CTRL"]),
        ("0x20000", ["L1 (0 to 0x180000)"]),
        (
            "PACR-FORMATS",
            [
                "Unsupported: packing intermediate format <fmt> as <out> with Read_32b_data <wide>",
                "<fmt>, <out>, <wide>: numbers of the run that breaks it",
                "hint:",
                "declared in tensix.units.pack.modes",
            ],
        ),
        ("SOFT_RESET_0", ["0xffb121b0", "access: load, store"]),
        ("sem", ["semaphores: value and maximum", "dump sem"]),
        ("FACE_DIM_16x16", ["GPR 40 of T0"]),
        ("mhartid", ["number 0xf14"]),
        ("SRCA_VLD", ["bit 7 of wait_res"]),
        ("STALL_MATH", ["bit 6 of stall_res, 0x40: holds"]),
        ("OUTPUT_ADDR", ["GPR 12 of T2"]),
        ("bf16", ["code 5"]),
        ("0x00a50513", ["addi a0,a0,10"]),
        ("LIVELOCK", ["how a run ends", "NoProgress, exit code 3", "bhemu why PROGRAM"]),
        ("deadlock", ["how a run ends", "bhemu why PROGRAM"]),
        ("WAIT_MATH", ["bit 4 of wait_res, 0x10", "lib/tensix.h", "#define WAIT_MATH 0x010u"]),
        ("CLEAR_SRCA", ["lib/math_half.h", "Bits of SETRWC's bit_mask and clear_ab_vld."]),
        ("cb_pop", ["static inline void cb_pop(struct cb *cb, uint32_t pages)", "been read"]),
        ("cb_wait_room", ["lib/cb.h:", "Returns when there is room for `pages` more."]),
        ("EACH_TILE", ["args.h of a new kernel:", "tile < (args)->end"]),
        ("TTI_SFPLOAD", ["SFPLOAD: a Tensix instruction"]),
        ("TT_OP_SFPLOAD", ["SFPLOAD: a Tensix instruction"]),
        ("TTF_PACR_addr_mode", ["PACR.addr_mode: an operand"]),
        ("LREG3", ["LReg[3]: a register of the vector unit: 32 lanes", "step PROGRAM: lreg 3"]),
        ("LReg[10]", ["a constant for instructions: 1.0 (0x3f800000)"]),
    ],
)
def test_what_has_a_name_is_explained(name: str, said: list[str]) -> None:
    shown = lines(name)
    assert all(part in shown for part in said), shown


_NAME = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+")
_NO_RULES = {"RISC-V", "TDMA-RISC"}


def test_every_rule_that_an_error_may_print_is_explained() -> None:
    found = set[str]()
    for path in Path(bhemu.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            given = isinstance(node, ast.keyword) and node.arg == "rule"
            value = getattr(node, "value", None)
            text = getattr(value, "value", None) if given else value
            if isinstance(text, str) and (given or _NAME.fullmatch(text)):
                found.add(text)
    assert {"EBREAK", "NOC-WAITS", "LLK-BOOT"} < found
    for rule in found - _NO_RULES:
        kinds = {one.kind for one in explain(rule)}
        assert kinds & {"a rule", "how a run ends"}, rule


def test_a_word_is_taken_apart() -> None:
    word = assemble("STALLWAIT", wait_res=1 << 3 | 1 << 7, stall_res=1 << 6)
    shown = lines(f"{word:#x}")
    assert "holds MATH until PACK idle, SRCA_VLD" in shown
    assert "[12: 0] wait_res = 0x88  PACK idle, SRCA_VLD" in shown
    rotated = (word << 2 | word >> 30) & 0xFFFFFFFF
    assert f"pushes {word:#010x}" in lines(f"{rotated:#x}")


def test_every_instruction_field_and_rule_is_known() -> None:
    every = [cls.name for cls in instructions().values()]
    every += [*fields_of(config_fields), *fields_of(thread_fields)]
    every += [rule.rule for rule in list(RULES.values())]
    for name in every:
        assert explain(name)[0].lines, name


def test_no_rule_is_shown_as_a_template() -> None:
    explain("UNPACR")  # all rules are registered
    for rule in RULES.values():
        assert "{" not in lines(rule.rule), rule.rule


def test_an_instruction_says_what_its_operands_mean() -> None:
    shown = lines("SFPSETCC")
    assert "instr_mod1  while flags are not in use: flags = 0" in shown
    assert "6  flags where it is 0" in shown
    assert "1, 3, 5, 7  flags = imm12_math" in shown


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Zstride", "PCK0_ADDR_CTRL_ZW_REG_0_Zstride"),
        ("UNPCR", "did you mean UNPACR?"),
        ("PACR-FORMAT", "there are PACR-FORMATS"),
        ("PAR", "did you mean PACR? there are SFPARECIP"),
        ("nosuch:1", "an instruction, field, register, rule or number"),
    ],
)
def test_an_unknown_name_has_near_ones(name: str, hint: str) -> None:
    with pytest.raises(InputError, match="nothing is called") as caught:
        explain(name)
    assert hint in caught.value.hint


def test_a_number_of_more_than_32_bits_is_refused() -> None:
    with pytest.raises(InputError, match="more than 32 bits"):
        explain("0x123456789")


def test_state_with_an_index_is_that_state() -> None:
    assert explain("sem:1") == explain("sem")
    assert [one.kind for one in explain("stream:8:10")] == ["state"]


@pytest.mark.parametrize("name", ["MATH_PACK", "semaphore::MATH_PACK", "SEMAPHORE_MATH_PACK"])
def test_semaphores_have_the_names_that_kernels_give_them(name: str) -> None:
    found = explain(name)[0]
    assert (found.kind, found.name) == ("a semaphore", "MATH_PACK")
    assert "semaphore 1 " in found.lines[0] and "sem_sel = 0x2" in found.lines[0]


def test_a_misspelt_semaphore_is_suggested() -> None:
    with pytest.raises(InputError) as caught:
        explain("UNPACK_SYNK")
    assert "UNPACK_SYNC" in caught.value.hint


def test_constants_of_the_vector_unit_are_those_of_power_up() -> None:
    lreg = Tile().tensix.lreg
    for n in range(8, 15):
        said = lines(f"LREG{n}")
        number = float(lreg[n, 0].view("<f4"))
        assert (lreg[n] == lreg[n, 0]).all()
        assert f"{number:.6g}" in said or f"({lreg[n, 0]:#010x})" in said or "0.0" in said
    assert (lreg[15] == 2 * np.arange(32)).all()


def test_every_name_of_the_kernel_library_is_explained() -> None:
    names = kernel_names()
    texts = [path.read_text() for path in (C / "lib").glob("*.h")]
    defined = {n for text in texts for n in re.findall(r"^#define (\w+)", text, re.MULTILINE)}
    called = {n for text in texts for n in re.findall(r"^static inline .*?(\w+)\(", text, re.M)}
    assert len(defined) > 50 and len(called) > 50
    assert defined | called <= names.keys()
    for one in (one for several in names.values() for one in several):
        assert one.name in one.declared
        assert "/*" not in one.declared and "{" not in one.declared.removesuffix("{")[-1:]
        said = lines(one.name)
        assert f"{one.header}:{one.line}" in said
