"""Units in modelled time: bursts of words take what timing/cycles.py says of them."""

from typing import Any

import pytest

from bhemu import Tile
from bhemu.memmap import DEBUG_BASE, RISCV_DEBUG_REG_WALL_CLOCK_0
from bhemu.riscv import assembly as asm
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import BF16, FP32
from bhemu.tensix.insn import assemble

RESULT, CODE, INPUT, OUTPUT = 0x100, 0x10000, 0x20000, 0x80000
CLOCK = DEBUG_BASE + RISCV_DEBUG_REG_WALL_CLOCK_0
FEW, MANY = 32, 64  # bursts
FACE = 256
BLOCK = 8  # rows of Dst that a word of the matrix unit writes


def put(s: Any, field: cf.Field, value: int) -> None:
    word = int(s.cfg[0, field.word]) & ~(field.mask << field.shift)
    s.cfg[0, field.word] = word | value << field.shift


def packs(s: Any) -> None:
    """From bf16 in a Dst of 16 bits to bf16, four rows a word."""
    for field, value in (
        (cf.ALU_FORMAT_SPEC_REG2_Dstacc, BF16),
        (cf.THCON_SEC0_REG1_In_data_format, BF16),
        (cf.THCON_SEC0_REG1_Out_data_format, BF16),
        (cf.THCON_SEC0_REG1_Disable_zero_compress, 1),
        (cf.THCON_SEC0_REG1_Sub_l1_tile_header_size, 1),
        (cf.THCON_SEC0_REG1_L1_Dest_addr, OUTPUT // 16 - 1),
        (cf.PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF),
    ):
        put(s, field, value)
    s.adc[2, 2, 1, 0] = 15
    s.dst_valid[:] = 1


def unpacks(s: Any, source: int, to_dst: int) -> None:
    """A face a word, of one format, by unpacker 0."""
    first = cf.THCON_SEC0_REG0_TileDescriptor.word
    s.cfg[0, first : first + 2] = source | FACE << 16, 1 | 4 << 16
    for field, value in (
        (cf.THCON_SEC0_REG2_Out_data_format, source),
        (cf.THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1),
        (cf.THCON_SEC0_REG3_Base_address, INPUT // 16 - 1),
        (cf.THCON_SEC0_REG2_Unpack_if_sel_cntx0, to_dst),
        (cf.THCON_SEC0_REG5_Tile_x_dim_cntx0, FACE),
        (cf.THCON_SEC0_REG5_Dest_cntx0_address, 64),
    ):
        put(s, field, value)
    s.adc[0, 0, 1, 0] = FACE - 1


def multiplies(s: Any) -> None:
    s.src_valid[:] = 1
    s.src_fmt[:] = BF16


def cycles(core: str, configure: Any, words: list[int]) -> float:
    """Cycles of a burst of words, from two numbers of them."""
    took = []
    for bursts in (FEW, MANY):
        tile = Tile(timing="model", ub="silicon")
        configure(tile.state)
        body = [asm.ttinsn(word) for word in words]
        done = [asm.ttinsn(assemble("STALLWAIT", stall_res=1 << 6, wait_res=0b11111))]
        program = asm.code(
            asm.li(asm.T0, CLOCK), asm.li(asm.A0, bursts),
            asm.lw(asm.T1, asm.T0, 0), asm.add(asm.T1, asm.T1, asm.ZERO),
            [*body, asm.addi(asm.A0, asm.A0, -1), asm.bne(asm.A0, asm.ZERO, -4 * len(body) - 4)],
            done,
            asm.lw(asm.T2, asm.T0, 0), asm.word("sub", asm.T2, asm.T2, asm.T1),
            asm.li(asm.A1, RESULT), asm.sw(asm.T2, asm.A1, 0), asm.jal(asm.ZERO, 0),
        )  # fmt: skip
        tile.write(CODE, program)
        tile.core[core].set_reset_pc(CODE)
        tile.core[core].release()
        tile.run(lambda t: bool(t.read32(RESULT)), limit=1_000_000)
        took.append(tile.read32(RESULT))
    return (took[1] - took[0]) / (MANY - FEW)


def test_a_thread_goes_on_as_soon_as_its_unit_has_executed_the_word_before() -> None:
    words = [assemble("PACR", last=int(i == 15)) for i in range(16)]
    assert cycles("trisc2", packs, words) == pytest.approx(20, abs=0.5)


@pytest.mark.parametrize(
    ("source", "to_dst", "took"), [(BF16, 0, 8.75), (FP32, 1, 16.75)], ids=["to Src", "to Dst"]
)
def test_a_face_is_unpacked_two_rows_a_cycle_or_to_dst_one(
    source: int, to_dst: int, took: float
) -> None:
    face = assemble("UNPACR", last=1, ovrd_thread_id=1)
    found = cycles("trisc0", lambda s: unpacks(s, source, to_dst), [face] * 8)
    assert found == pytest.approx(8 * took, abs=0.5)


@pytest.mark.parametrize(("pop", "more"), [(1, 1.125), (2, 0)], ids=["clears", "does nothing"])
@pytest.mark.parametrize("unpacker", [1, 0], ids=["other unpacker", "own unpacker"])
def test_a_word_that_clears_a_bank_takes_from_the_other_unpacker(
    pop: int, more: float, unpacker: int
) -> None:
    face = assemble("UNPACR", last=1, ovrd_thread_id=1)
    nop = assemble("UNPACR_NOP", unpack_pop=pop, unpacker_select=unpacker)
    alone = 8.75 if unpacker else 8.75 + 2
    found = cycles("trisc0", lambda s: unpacks(s, BF16, 0), [face, nop] * 8)
    assert found == pytest.approx(8 * (alone + more * unpacker), abs=0.5)


def test_words_that_clear_a_bank_take_their_own_unpacker_two_cycles() -> None:
    nop = assemble("UNPACR_NOP", unpack_pop=1)
    assert cycles("trisc0", lambda s: None, [nop] * 8) == pytest.approx(16, abs=0.5)


@pytest.mark.parametrize(
    ("name", "fields", "apart"),
    [
        ("ELWMUL", {}, 6),
        ("MVMUL", {}, 6),
        ("ELWADD", {"dest_accum_en": 1}, 6),
        ("ELWADD", {}, 1),
    ],
)
@pytest.mark.parametrize("blocks", [1, 2, 4, 8])
def test_a_word_waits_for_the_rows_that_it_adds_to(
    name: str, fields: dict[str, int], apart: int, blocks: int
) -> None:
    """Words that add to the same rows are six cycles apart, those to others one cycle."""
    words = [assemble(name, dst=BLOCK * (i % blocks), **fields) for i in range(24)]
    took = cycles("trisc1", multiplies, words)
    # the last words of a burst and the first of the next one are apart by two words of the core
    assert took == pytest.approx(24 * max(apart / blocks, 1), abs=2.5)
