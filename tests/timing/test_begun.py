"""Where in L1 a word begins is what Config said when its unit took it; the rest is read later."""

from fnmatch import fnmatch
from typing import Any

import pytest

from bhemu.jit.record import plain
from bhemu.machine.tile import Tile
from bhemu.tensix import config_fields as cf
from bhemu.tensix import in_flight, issue, spaces
from bhemu.tensix.config import SECTION_WORDS, has_effect
from bhemu.tensix.insn import assemble, instructions

BASE = cf.THCON_SEC0_REG3_Base_address.word
OFFSET = cf.THCON_SEC0_REG7_Offset_address.word
DESCRIPTOR = cf.THCON_SEC0_REG0_TileDescriptor.word
X_OF_CONTEXT = cf.THCON_SEC0_REG5_Tile_x_dim_cntx0.word
DESTINATION = cf.THCON_SEC0_REG1_L1_Dest_addr.word
OUT_FORMAT = cf.THCON_SEC0_REG2_Out_data_format.word
ALU = cf.ALU_ACC_CTRL_Fp32_enabled.word
ZERO_FLAG = cf.ALU_ACC_CTRL_Zero_Flag_disabled_src.word
DST_OFFSET = cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset.word
STRIDES = cf.PCK0_ADDR_CTRL_XY_REG_0_Ystride.word
DST_BASE = cf.DEST_REGW_BASE_Base.word
SECOND = SECTION_WORDS
WHOLE = 0xFFFFFFFF


@pytest.fixture(scope="module")
def state() -> Any:
    return Tile(engine="compiled").state


@pytest.mark.parametrize(
    ("name", "fields", "unit", "kept"),
    [
        (
            "UNPACR",
            {},
            in_flight.UNPACKER0,
            {BASE: WHOLE, OFFSET: 0xFFFF, DESCRIPTOR: 0xFFFF0000, DESCRIPTOR + 3: WHOLE},
        ),
        (
            "UNPACR",
            {"ovrd_thread_id": 1, "cfg_context_id": 3},
            in_flight.UNPACKER0,
            {BASE + 3: WHOLE, BASE: 0, OFFSET + 3: 0xFFFF, X_OF_CONTEXT + 1: WHOLE, OUT_FORMAT: 0},
        ),
        (
            "UNPACR",
            {"ovrd_thread_id": 1, "unpack_block_selection": 1},
            in_flight.UNPACKER1,
            {BASE + SECOND: WHOLE, BASE: 0, DESCRIPTOR + SECOND + 1: WHOLE, X_OF_CONTEXT: 0},
        ),
        (
            "PACR",
            {},
            in_flight.PACKER,
            {DESTINATION: WHOLE, DST_OFFSET: WHOLE, STRIDES: WHOLE, BASE: 0, OUT_FORMAT: 0},
        ),
        ("UNPACR_NOP", {}, in_flight.UNPACKER0, {BASE: 0}),
        ("MVMUL", {}, in_flight.MATRIX, {ALU: WHOLE, ZERO_FLAG: WHOLE, DST_BASE: WHOLE, BASE: 0}),
        ("SFPLOAD", {}, in_flight.VECTOR, {ALU: 0, DST_BASE: 0}),
    ],
)
def test_a_unit_keeps_where_it_begins(
    state: Any, name: str, fields: dict[str, int], unit: int, kept: dict[int, int]
) -> None:
    before, after = 0x12345678, 0xEDCBA987  # each bit is another one
    word, t = assemble(name, **fields), 2
    state.gate_word[t] = word
    for place in kept:
        state.cfg[0, place] = before
    plain(in_flight.take)(state, unit, t)
    plain(issue.keep)(state, unit, t, word)
    for place in kept:
        state.cfg[0, place] = after
    plain(issue.exchange)(state, unit)
    for place, bits in kept.items():
        assert state.cfg[0, place] == (before & bits) | (after & ~bits & WHOLE), place
    plain(issue.exchange)(state, unit)
    assert [int(state.cfg[0, place]) for place in kept] == [after] * len(kept)
    plain(in_flight.free)(state, unit)


def test_the_matrix_unit_keeps_all_config_that_it_reads() -> None:
    declared = {
        field.word
        for cls in instructions().values()
        if cls.unit == "matrix" and cls.execute
        for term in cls.reads
        if term.space == spaces.CFG
        for name, field in vars(cf).items()
        if isinstance(field, cf.Field) and any(fnmatch(name, one) for one in term.fields)
    }
    assert {word for word in declared if not has_effect(word)} == set(issue.AT_ISSUE["matrix"])
