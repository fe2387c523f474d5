"""Disassembly against GNU objdump 2.40, with symbols, `.ttinsn` words and unknown words."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bhemu.riscv.assembly import disassemble
from bhemu.riscv.insn import REGISTRY

# Each line assembled by GNU as 2.40 and read back by its objdump. The texts differ from objdump
# in three points: the immediate forms carry the ISA's names (addi, rori, csrwi; binutils 2.40
# alone prints add, ror, csrw), the custom CSRs have their names, and lr and sc carry a note.
LITERALS = [
    (0x12345537, "lui a0,0x12345"),
    (0xFFFFF197, "auipc gp,0xfffff"),
    (0x00050067, "jr a0"),
    (0x00450067, "jr 4(a0)"),
    (0x00008067, "ret"),
    (0x000500E7, "jalr a0"),
    (0xFF8500E7, "jalr -8(a0)"),
    (0x000582E7, "jalr t0,a1"),
    (0x010582E7, "jalr t0,16(a1)"),
    (0xFFF10503, "lb a0,-1(sp)"),
    (0x00241583, "lh a1,2(s0)"),
    (0x7FFFA603, "lw a2,2047(t6)"),
    (0x8001C683, "lbu a3,-2048(gp)"),
    (0x00005703, "lhu a4,0(zero)"),
    (0xFEA10FA3, "sb a0,-1(sp)"),
    (0x00B41123, "sh a1,2(s0)"),
    (0x7ECFAFA3, "sw a2,2047(t6)"),
    (0x00000013, "nop"),
    (0xFFF00513, "li a0,-1"),
    (0x00058513, "mv a0,a1"),
    (0xFF010113, "addi sp,sp,-16"),
    (0x0055A513, "slti a0,a1,5"),
    (0xFFB5B513, "sltiu a0,a1,-5"),
    (0x0015B513, "seqz a0,a1"),
    (0xFFF5C513, "not a0,a1"),
    (0x0075C513, "xori a0,a1,7"),
    (0x8005E513, "ori a0,a1,-2048"),
    (0x00F5F513, "andi a0,a1,15"),
    (0x0FF5F513, "zext.b a0,a1"),
    (0x01F59513, "slli a0,a1,0x1f"),
    (0x0015D513, "srli a0,a1,0x1"),
    (0x4105D513, "srai a0,a1,0x10"),
    (0x60995493, "rori s1,s2,0x9"),
    (0x01B48433, "add s0,s1,s11"),
    (0x40C58533, "sub a0,a1,a2"),
    (0x40C00533, "neg a0,a2"),
    (0x00C59533, "sll a0,a1,a2"),
    (0x00C5A533, "slt a0,a1,a2"),
    (0x0005A533, "sltz a0,a1"),
    (0x00C02533, "sgtz a0,a2"),
    (0x00C5B533, "sltu a0,a1,a2"),
    (0x00C03533, "snez a0,a2"),
    (0x00C5C533, "xor a0,a1,a2"),
    (0x00C5D533, "srl a0,a1,a2"),
    (0x40C5D533, "sra a0,a1,a2"),
    (0x00C5E533, "or a0,a1,a2"),
    (0x00C5F533, "and a0,a1,a2"),
    (0x02C58533, "mul a0,a1,a2"),
    (0x02C59533, "mulh a0,a1,a2"),
    (0x02C5A533, "mulhsu a0,a1,a2"),
    (0x02C5B533, "mulhu a0,a1,a2"),
    (0x02C5C533, "div a0,a1,a2"),
    (0x02C5D533, "divu a0,a1,a2"),
    (0x02C5E533, "rem a0,a1,a2"),
    (0x02C5F533, "remu a0,a1,a2"),
    (0x20C5A533, "sh1add a0,a1,a2"),
    (0x20C5C533, "sh2add a0,a1,a2"),
    (0x20C5E533, "sh3add a0,a1,a2"),
    (0x40C5F533, "andn a0,a1,a2"),
    (0x40C5E533, "orn a0,a1,a2"),
    (0x40C5C533, "xnor a0,a1,a2"),
    (0x60059513, "clz a0,a1"),
    (0x60159513, "ctz a0,a1"),
    (0x60259513, "cpop a0,a1"),
    (0x0AC5C533, "min a0,a1,a2"),
    (0x0AC5D533, "minu a0,a1,a2"),
    (0x0AC5E533, "max a0,a1,a2"),
    (0x0AC5F533, "maxu a0,a1,a2"),
    (0x60459513, "sext.b a0,a1"),
    (0x60559513, "sext.h a0,a1"),
    (0x0805C533, "zext.h a0,a1"),
    (0x60C59533, "rol a0,a1,a2"),
    (0x60C5D533, "ror a0,a1,a2"),
    (0x2875D513, "orc.b a0,a1"),
    (0x6985D513, "rev8 a0,a1"),
    (0x08B6252F, "amoswap.w a0,a1,(a2)"),
    (0x04B6252F, "amoadd.w.aq a0,a1,(a2)"),
    (0x22B6252F, "amoxor.w.rl a0,a1,(a2)"),
    (0x66B6252F, "amoand.w.aqrl a0,a1,(a2)"),
    (0x40B6252F, "amoor.w a0,a1,(a2)"),
    (0x80B6252F, "amomin.w a0,a1,(a2)"),
    (0xA0B6252F, "amomax.w a0,a1,(a2)"),
    (0xC0B6252F, "amominu.w a0,a1,(a2)"),
    (0xE0B6252F, "amomaxu.w a0,a1,(a2)"),
    (0x1406252F, "lr.w.aq a0,(a2)  # Zalrsc: not on these cores"),
    (0x18B6252F, "sc.w a0,a1,(a2)  # Zalrsc: not on these cores"),
    (0x0FF0000F, "fence"),
    (0x0310000F, "fence rw,w"),
    (0x8330000F, "fence.tso"),
    (0x0100000F, "pause"),
    (0x0000100F, "fence.i"),
    (0x00000073, "ecall"),
    (0x00100073, "ebreak"),
    (0x30200073, "mret"),
    (0x10500073, "wfi"),
    (0xC0001073, "unimp"),
    (0xC0002573, "rdcycle a0"),
    (0xC0102573, "rdtime a0"),
    (0xC0202573, "rdinstret a0"),
    (0xC8002573, "rdcycleh a0"),
    (0xC8102573, "rdtimeh a0"),
    (0xC8202573, "rdinstreth a0"),
    (0xB0002573, "csrr a0,mcycle"),
    (0x7C05A073, "csrs cfg0,a1"),
    (0x7C05B073, "csrc cfg0,a1"),
    (0xBC0025F3, "csrr a1,tt_cfg_qstatus"),
    (0xBCA025F3, "csrr a1,intp_restore_pc"),
    (0x30559073, "csrw mtvec,a1"),
    (0x12359073, "csrw 0x123,a1"),
    (0x7C059573, "csrrw a0,cfg0,a1"),
    (0xF145A573, "csrrs a0,mhartid,a1"),
    (0x7C05B573, "csrrc a0,cfg0,a1"),
    (0x7C02D073, "csrwi cfg0,5"),
    (0x7C0FE073, "csrsi cfg0,31"),
    (0x7C007073, "csrci cfg0,0"),
    (0x7C02D573, "csrrwi a0,cfg0,5"),
    (0x7C036573, "csrrsi a0,cfg0,6"),
    (0x7C03F573, "csrrci a0,cfg0,7"),
]

# Address of the word, word, text; the targets are assembled from labels.
RELATIVE = [
    (0x1000, 0x00050063, "beqz a0,0x1000"),
    (0x1004, 0x00B50263, "beq a0,a1,0x1008"),
    (0x1008, 0x7E051FE3, "bnez a0,0x2006"),
    (0x100C, 0x80B51063, "bne a0,a1,0xc"),
    (0x1010, 0xFE0548E3, "bltz a0,0x1000"),
    (0x1014, 0xFEA046E3, "bgtz a0,0x1000"),
    (0x1018, 0xFEB544E3, "blt a0,a1,0x1000"),
    (0x101C, 0xFE0552E3, "bgez a0,0x1000"),
    (0x1020, 0xFEA050E3, "blez a0,0x1000"),
    (0x1024, 0xFCB55EE3, "bge a0,a1,0x1000"),
    (0x1028, 0xFCB56CE3, "bltu a0,a1,0x1000"),
    (0x102C, 0xFCB57AE3, "bgeu a0,a1,0x1000"),
    (0x1030, 0xFD1FF06F, "j 0x1000"),
    (0x1034, 0x7CC000EF, "jal 0x1800"),
    (0x1038, 0xFC9FF2EF, "jal t0,0x1000"),
]


@pytest.mark.parametrize(("word", "text"), LITERALS, ids=[text for _, text in LITERALS])
def test_literal(word: int, text: str) -> None:
    assert disassemble(word) == text
    assert disassemble(word, pc=0x4000) == text


@pytest.mark.parametrize(("pc", "word", "text"), RELATIVE, ids=[t for *_, t in RELATIVE])
def test_branch_target_is_absolute(pc: int, word: int, text: str) -> None:
    assert disassemble(word, pc) == text


def test_branch_target_wraps_at_32_bits() -> None:
    assert disassemble(0xFD1FF06F, pc=0x10) == "j 0xffffffe0"
    assert disassemble(0x7CC000EF, pc=0xFFFFFFFC) == "jal 0x7c8"


def test_x0_operands_follow_objdump() -> None:
    """Where several pseudo-instructions fit, objdump's choice."""
    assert disassemble(0x00000513) == "li a0,0"
    assert disassemble(0x00500013) == "li zero,5"
    assert disassemble(0x00005063) == "blez zero,0x0"
    assert disassemble(0x00004063) == "bltz zero,0x0"
    assert disassemble(0x7C002073) == "csrr zero,cfg0"
    assert disassemble(0x0000000F) == "fence unknown,unknown"


def test_symbol_names_the_target_only() -> None:
    asked: list[int] = []

    def symbol(address: int) -> str | None:
        asked.append(address)
        return "main+0x10" if address == 0x1000 else None

    assert disassemble(0x00050063, 0x1000, symbol) == "beqz a0,0x1000 <main+0x10>"
    assert disassemble(0x7CC000EF, 0x1034, symbol) == "jal 0x1800"
    assert disassemble(0x12345537, 0x1000, symbol) == "lui a0,0x12345"
    assert asked == [0x1000, 0x1800]


# A .ttinsn word is the Tensix word rotated left by 2 (PushTensixInstruction, Blackhole ISA):
# SEMPOST of semaphore 0 is 0xA4000004, the MVMUL of the ISA's listing 0x26010000.
TTINSN = [(0x90000012, 0xA4000004), (0x98040000, 0x26010000), (0x00000001, 0x40000000)]


@pytest.mark.parametrize(("word", "pushed"), TTINSN)
def test_ttinsn_shows_the_tensix_word(word: int, pushed: int) -> None:
    assert disassemble(word) == f".ttinsn 0x{pushed:08x}"
    assert disassemble(word, tensix=hex) == f".ttinsn 0x{pushed:08x}  # {pushed:#x}"


def test_tensix_is_not_asked_about_riscv_words() -> None:
    def refuse(word: int) -> str:
        raise AssertionError(f"asked about {word:#x}")

    assert disassemble(0x00000013, tensix=refuse) == "nop"
    with pytest.raises(AssertionError, match="asked about 0x40000000"):
        disassemble(0x00000001, tensix=refuse)


UNKNOWN = {
    "czero.eqz (Zicond)": 0x0EC5D533,
    "clmul (Zbc)": 0x0AC59533,
    "pack (Zbkb)": 0x08C5C533,
    "clz family, rs2 code 3": 0x60359513,
    "slli with shamt bit 5 (RV64)": 0x02059513,
    "srai with shamt bit 5 (RV64)": 0x4205D513,
    "rori with shamt bit 5 (RV64)": 0x6205D513,
    "lwu (RV64)": 0x0005E503,
    "sd (RV64)": 0x00B53023,
    "addw (RV64)": 0x00C5853B,
    "amoadd.d (RV64)": 0x00B6352F,
    "lr.w with rs2": 0x1416252F,
    "jalr with funct3 1": 0x00009067,
    "branch with funct3 2": 0x00B52063,
    "fence with rd": 0x0FF0008F,
    "SYSTEM with funct3 4": 0x7C05C573,
    "sret": 0x10200073,
    "sfence.vma": 0x12000073,
    "fld (D)": 0x0005B507,
    "fadd.d": 0x02C5F553,
    "custom-0": 0x0000000B,
    "ones": 0xFFFFFFFF,
}


@pytest.mark.parametrize("word", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown_word(word: int) -> None:
    assert disassemble(word) == f".word 0x{word:08x}"


@settings(max_examples=1000)
@given(word=st.integers(0, 0xFFFFFFFF), pc=st.integers(0, 0x3FFFFFFF).map(lambda n: 4 * n))
@example(word=0, pc=0)
@example(word=0xFFFFFFFF, pc=0xFFFFFFFC)
def test_any_word_has_one_line_of_text(word: int, pc: int) -> None:
    text = disassemble(word, pc, symbol=lambda _: "f+0x4", tensix=lambda _: "NOP")
    assert text.isascii() and text.isprintable() and text == text.strip()
    assert text.startswith(".ttinsn ") == (word & 3 != 3)


OPCODES = sorted({cls.match & 0x7F for cls in REGISTRY if cls.match & 3 == 3})


@settings(max_examples=1000)
@given(
    bits=st.integers(0, (1 << 25) - 1),
    opcode=st.sampled_from(OPCODES),
)
def test_no_operand_is_left_unrendered(bits: int, opcode: int) -> None:
    text = disassemble(bits << 7 | opcode)
    placeholders = {"rd", "rs1", "rs2", "imm", "store", "upper", "shamt", "branch", "jump", "*"}
    placeholders |= {"uimm", "csr", "fd", "rm", "vd", "vs1", "vs2", "vm", "simm", "vtype", "vtypei"}
    assert placeholders.isdisjoint(re.split("[ ,()]", text))
