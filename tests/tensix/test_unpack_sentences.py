"""The numbers in the sentences of UNPACR's rules: what is configured, counted by hand.

Every case runs with and without set_dat_valid: handing over has a check and numbers of its own.
Configuration and limits: UNPACR_Regular, Wormhole ISA.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from test_unpack import counter, field, fresh, nothing, thread_field
from unit_runner import numbers, run
from unpack_model import Unpack

from bhemu.machine import sentences
from bhemu.tensix.state import State

DST = Unpack(fmt=0, out=0, to_dst=1)
CASES: list[tuple[str, list[int], Unpack, Callable[[State], None]]] = [
    ("UNPACR-FIELDS", [1], Unpack(u=1, fields={"srcb_bcast": 1}), nothing),
    ("UNPACR-CONTEXT", [2], Unpack(u=1), thread_field("UNPACK_MISC_CFG_CfgContextOffset_1", 2)),
    ("UNPACR-FORMATS", [0, 5, 1], Unpack(fmt=5, out=1), nothing),
    ("UNPACR-FORMATS", [1, 6, 7], Unpack(u=1, fmt=6, out=7), nothing),
    ("UNPACR-CONVERSION", [1, 12], Unpack(u=1, fmt=12, out=12), nothing),
    ("UNPACR-SRC-FORMAT", [0, 0], Unpack(fmt=0, out=0), nothing),
    ("UNPACR-SRC-FORMAT", [1, 8], Unpack(u=1, fmt=8, out=8), nothing),
    *(
        (f"UNPACR-THCON_SEC{u}_{name}", [value], Unpack(u=u), field(f"THCON_SEC{u}_{name}", value))
        for u in (0, 1)
        for name, value in (("REG2_Context_count_non_log2_en", 1), ("REG2_Unpack_fifo_size", 0x123))
    ),
    ("UNPACR-COLUMN-SHIFT", [0], DST, field("THCON_SEC0_REG2_Shift_amount_cntx0", 1)),
    ("UNPACR-TILEIZE-FORMAT", [7], Unpack(fmt=7, out=7, stride=64), nothing),
    # base 0x4000 is address 0x40010; four bf16 datums further on
    ("UNPACR-ALIGN", [0, 0x40018], Unpack(stride=64, counters=(4, 0, 0, 0)), nothing),
    ("UNPACR-ALIGN", [0, 0x40018], Unpack(haloize=1, counters=(4, 0, 0, 0)), nothing),
    ("UNPACR-ALIGN", [1, 0x40018], Unpack(u=1, stride=64, counters=(4, 0, 0, 0)), nothing),
    *(
        (
            "UNPACR-NO-EXPONENTS",
            [u],
            Unpack(u=u, fmt=7, out=7),
            field(f"THCON_SEC{u}_REG0_TileDescriptor", 0x27),
        )
        for u in (0, 1)
    ),
    ("UNPACR-BFP-EXPONENT", [0, 2], Unpack(fmt=2, out=2, forced=32), nothing),
    ("UNPACR-BFP-EXPONENT", [1, 3], Unpack(u=1, fmt=3, out=3, forced=0), nothing),
    ("UNPACR-L1", [0, 0x180000, 0x180800], Unpack(base=0x17FFF, count=1024), nothing),
    ("UNPACR-L1", [1, 0x17FFF0, 0x180010], Unpack(u=1, base=0x17FFE, count=16), nothing),
    ("UNPACR-L1", [0, 0x17FFE0, 0x180002], Unpack(base=0x17FFD, count=17), nothing),
    # 16 rows of 32 bf16, 0xFFF0 bytes apart: the last one ends it
    (
        "UNPACR-L1",
        [0, 0x170010, 0x170010 + 0xFFF0 * 15 + 64],
        Unpack(stride=0xFFF0, base=0x17000, count=512),
        nothing,
    ),
    # rows of 64 bytes 16 apart: the last but one reaches further than one datum of the last
    ("UNPACR-L1", [1, 0x17FFD0, 0x180010], Unpack(u=1, stride=16, base=0x17FFC, count=33), nothing),
    ("UNPACR-STRIDE", [0, 2], Unpack(strides=(1, 0)), nothing),
    ("UNPACR-STRIDE", [0, 4], Unpack(fmt=0, out=4, strides=(0, 2)), nothing),
    ("UNPACR-STRIDE", [1, 2], Unpack(u=1), field("UNP1_ADDR_CTRL_ZW_REG_1_Wstride", 1)),
    ("UNPACR-DEST-LOW", [16], Unpack(fmt=0, out=0, to_dst=1, dest=48), nothing),
    ("UNPACR-X", [0, 9], Unpack(counters=(9, 0, 0, 0)), counter(1, 0, 8)),
    ("UNPACR-X", [1, 9], Unpack(u=1, counters=(9, 0, 0, 0)), counter(1, 0, 8, 1)),
    ("UNPACR-SRCB-ROWS", [65], Unpack(u=1, count=1025), nothing),
    ("UNPACR-DST-ROWS", [1024], Unpack(fmt=8, out=8, to_dst=1, dest=64 + 16368, count=17), nothing),
    ("UNPACR-SRCA-SET", [16], Unpack(count=257), thread_field("SRCA_SET_SetOvrdWithAddr", 0)),
    ("UNPACR-BURST-MODE", [0, 4], Unpack(dest=64 + 8, count=32), nothing),
    ("UNPACR-BURST-MODE", [60, 8], Unpack(fmt=6, out=6, dest=64 + 960, count=80), nothing),
]


@pytest.mark.parametrize("set_dat_valid", [0, 1])
@pytest.mark.parametrize(("rule", "shown", "case", "change"), CASES)
def test_the_sentence_shows_what_is_wrong(
    rule: str, shown: list[int], case: Unpack, change: Callable[[State], None], set_dat_valid: int
) -> None:
    s = fresh()
    case = replace(case, set_dat_valid=set_dat_valid)
    case.program(s)
    change(s)
    s.detail[:] = 77
    number = run(s, "UNPACR", **case.operands())
    assert sentences.RULES[number].rule == rule
    assert numbers(s, number) == shown
    if "THCON" in rule:  # the field that must be zero
        assert rule.removeprefix("UNPACR-").removesuffix("-2").removesuffix("-3") in (
            sentences.RULES[number].text
        )


@pytest.mark.parametrize("base", [1, 3])
def test_the_base_of_srcb_that_is_handed_over(base: int) -> None:
    s = fresh()
    case = Unpack(u=1, set_dat_valid=1)
    case.program(s)
    thread_field("SRCB_SET_Base", base)(s)
    number = run(s, "UNPACR", **case.operands())
    assert (sentences.RULES[number].rule, numbers(s, number)) == ("UNPACR-SRCB-BASE", [base])


UPSAMPLED = field("THCON_SEC0_REG2_Upsample_rate", 1)
ODD: list[tuple[str, list[int], Unpack, Callable[[State], None]]] = [
    ("UNPACR-TILEIZE-MODES", [0], Unpack(stride=64), UPSAMPLED),
    (
        "UNPACR-COMPRESSED-BFP2",
        [0, 15],
        Unpack(fmt=15, out=15),
        field("THCON_SEC0_REG2_Disable_zero_compress_cntx0", 0),
    ),
    ("UNPACR-STORED-L1", [0, 0x180000], Unpack(base=0x17FFE, count=32), UPSAMPLED),
    ("UNPACR-NOTHING", [0, 0], Unpack(count=1, fields={"row_search": 1}), nothing),
    ("UNPACR-SET-START", [1], Unpack(dest=80, count=16), UPSAMPLED),
    ("UNPACR-BFP-EXPONENT", [0, 2], Unpack(fmt=2, out=2, forced=32, count=16), UPSAMPLED),
]


@pytest.mark.parametrize(("rule", "shown", "case", "change"), ODD)
def test_compression_row_search_and_upsampling(
    rule: str, shown: list[int], case: Unpack, change: Callable[[State], None]
) -> None:
    test_the_sentence_shows_what_is_wrong(rule, shown, case, change, 0)


@pytest.mark.parametrize(
    ("rule", "shown", "word"),
    [
        ("UNPACR-NOP-STREAM", [0], {"unpack_pop": 0}),
        ("UNPACR-NOP-STREAM", [3], {"unpack_pop": 3}),
        ("UNPACR-NOP-STREAM", [1], {"unpack_pop": 1, "stream_id": 1}),
        ("UNPACR-NOP-FIELDS", [2], {"unpack_pop": 2, "set_dvalid": 1}),
        ("UNPACR-NOP-FIELDS", [3], {"unpack_pop": 3, "src_clr_val_ctrl": 1, "stall_clr_cntrl": 1}),
    ],
)
def test_unpacr_nop(rule: str, shown: list[int], word: dict[str, int]) -> None:
    s = fresh()
    s.detail[:] = 77
    number = run(s, "UNPACR_NOP", **word)
    assert (sentences.RULES[number].rule, numbers(s, number)) == (rule, shown)
