"""The numbers in the sentences of PACR's rules: what is configured, counted from the case by hand.

Configuration and limits: PACR, Blackhole ISA; input and output address generators, Wormhole ISA.
"""

from collections.abc import Callable

import pytest
from pack_model import Pack
from pack_runner import execute, setup
from test_pack_rules import change, columns, counter, nothing, plane
from unit_runner import numbers, view

from bhemu.machine import sentences
from bhemu.tensix.state import State
from bhemu.tensix.units.pack.modes import mode_of, zero_refused


def remapped(swizzle: int, remap: int) -> Callable[[State], None]:
    def alter(s: State) -> None:
        change("DEST_ACCESS_CFG_swizzle_32b", swizzle)(s)
        change("DEST_ACCESS_CFG_remap_addrs", remap)(s)

    return alter


def continued(data: int, exponent: int) -> Callable[[State], None]:
    """A tile that is open at these L1 addresses."""

    def alter(s: State) -> None:
        s.pack_open[0], s.pack_data[0], s.pack_exp[0] = 1, data, exponent

    return alter


INT32 = {"wide": 1, "fmt": 8, "out": 8}
CASES: list[tuple[str, list[int], Pack, Callable[[State], None], dict[str, int]]] = [
    ("PACR-FIELDS", [0x4], Pack(), nothing, {"ctxt_ctrl": 1}),
    ("PACR-FIELDS", [0xC], Pack(), nothing, {"ctxt_ctrl": 3}),
    ("PACR-FIELDS", [0x6000], Pack(), nothing, {"addr_cnt_context": 3}),
    ("PACR-FIELDS", [0x1C0000], Pack(), nothing, {"row_pad_zero": 7}),
    ("PACR-FIELDS", [0x600000], Pack(), nothing, {"cfg_context": 3}),
    ("PACR-FIELDS", [0x600004], Pack(), nothing, {"ctxt_ctrl": 1, "cfg_context": 3}),
    *(
        ("PACR-INTERFACES", [k], Pack(), nothing, {"read_intf_sel": k, "dst_access_mode": 1})
        for k in (2, 5, 15)
    ),
    *(
        ("PACR-STRIDED", [a, b], Pack(), remapped(a, b), {"dst_access_mode": 1})
        for a, b in ((0, 0), (0, 1), (1, 0))
    ),
    ("PACR-INTERFACE-GROUP", [15, 5], Pack(offset=5), nothing, {}),
    ("PACR-INTERFACE-GROUP", [10, 7], Pack(offset=7), nothing, {"read_intf_sel": 10}),
    ("PACR-DSTACC", [6, 5], Pack(), change("ALU_FORMAT_SPEC_REG2_Dstacc", 6), {}),
    ("PACR-DSTACC", [0, 5], Pack(), change("ALU_FORMAT_SPEC_REG_Dstacc_override", 1), {}),
    ("PACR-FORMATS", [9, 5, 0], Pack(fmt=9), nothing, {}),
    ("PACR-FORMATS", [8, 0, 1], Pack(wide=1, fmt=8, out=0), nothing, {}),
    ("PACR-ROUND", [0, 5, 1], Pack(wide=1, fmt=0, out=5, round_fp16=1), nothing, {}),
    ("PACR-READ-INT8", [1, 0, 0], Pack(fmt=1, out=0, raw=1), nothing, {}),
    ("PACR-READ-INT8", [5, 6, 1], Pack(wide=1, fmt=5, out=6, raw=1), nothing, {}),
    ("PACR-FP8", [5], Pack(fmt=5, out=10, e4m3=1), nothing, {}),
    ("PACR-EXP-THRESHOLD", [8], Pack(**INT32, least=1), nothing, {}),
    ("PACR-L1-ACC", [6], Pack(out=6, accumulate=1), nothing, {}),
    ("PACR-RELU-MODE", [4], Pack(relu=4), nothing, {}),
    ("PACR-RELU-MODE", [7], Pack(relu=7), nothing, {}),
    ("PACR-RELU-THRESHOLD", [0x8001], Pack(relu=2, threshold=0x8001), nothing, {}),
    ("PACR-RELU-FORMAT", [3, 8], Pack(**INT32, relu=3), nothing, {}),
    ("PACR-STRIDE", [2], Pack(strides=(1, 0, 0)), nothing, {}),
    ("PACR-STRIDE", [4], Pack(wide=1, fmt=0, out=0, strides=(0, 0, 2)), nothing, {}),
    ("PACR-ROW", [0, 8], Pack(), counter(0, 0, 8), {}),
    ("PACR-ROW", [8, 0], Pack(strides=(16, 0, 0)), counter(0, 1, 1), {}),
    ("PACR-COUNT", [0, 31], Pack(), counter(1, 0, 31), {}),
    ("PACR-COUNT", [9, 8], Pack(xstride=2), columns(9, 8), {}),
    ("PACR-COUNT", [0, 6], Pack(out=6), counter(1, 0, 6), {"read_intf_sel": 1}),
    ("PACR-DOWNSAMPLE", [0x1234], Pack(out=6, downsample=0x1234), nothing, {}),
    ("PACR-ROWS", [1021, 1024], Pack(offset=1021), nothing, {}),
    ("PACR-ROWS", [1023, 1024], Pack(offset=1023), nothing, {"read_intf_sel": 3}),
    ("PACR-ROWS", [1022, 1025], Pack(offset=1022), nothing, {"read_intf_sel": 10}),
    ("PACR-L1", [0x180000, 0x180080], Pack(address=0x17FFF), nothing, {}),
    ("PACR-L1", [0x17FF90, 0x180010], Pack(address=0x17FF8), nothing, {}),
    ("PACR-L1", [0x17FFF0, 0x180030], Pack(out=6, address=0x17FEE), nothing, {}),
    ("PACR-L1", [0x17FFFD, 0x180001], Pack(out=6), continued(0x1000, 0x17FFFD), {}),
    ("PACR-L1-ALIGN", [0x1001, 2], Pack(), continued(0x1001, 0), {}),
    ("PACR-L1-ALIGN", [0x1002, 4], Pack(wide=1, fmt=0, out=0), continued(0x1002, 0), {}),
    *(
        (
            "PACR-EDGE-MODE",
            [f],
            Pack(wide=1, fmt=f, out=f, masks=(1,), minus_infinity=1),
            nothing,
            {},
        )
        for f in (8, 14)
    ),
    ("PACR-TILE-POSITION", [4, 0], Pack(masks=(2, 0), sets=(0x55, 0)), plane(4), {}),
    ("PACR-TILE-POSITION", [6, 0], Pack(masks=(2, 0), sets=(0x1000, 0)), plane(6), {}),
    ("PACR-TILE-POSITION", [6, 1], Pack(masks=(2, 0), sets=(0x1000, 0)), plane(5), {}),
]


@pytest.mark.parametrize(("rule", "shown", "p", "alter", "word"), CASES)
def test_the_sentence_shows_what_is_wrong(
    rule: str,
    shown: list[int],
    p: Pack,
    alter: Callable[[State], None],
    word: dict[str, int],
) -> None:
    s, _ = setup(p)
    s.adc[0, 2, 1, 0] = 15
    alter(s)
    s.detail[:] = 77
    number = execute(s, **{"last": 1} | word)
    assert sentences.RULES[number].rule == rule
    assert numbers(s, number) == shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PACK_COUNTERS_SEC0_pack_yz_transposed", 1),
        ("DEST_TARGET_REG_CFG_PACK_SEC0_ZOffset", 33),
        ("THCON_SEC0_REG1_Row_start_section_size", 0x1234),
        ("THCON_SEC0_REG1_Downsample_rate", 5),
        ("ALU_ROUNDING_MODE_Gasket_srnd_en", 1),
    ],
)
def test_a_field_that_must_be_zero_is_shown_with_its_value(name: str, value: int) -> None:
    s, _ = setup(Pack())
    s.adc[0, 2, 1, 0] = 15
    change(name, value)(s)
    number = execute(s, last=1)
    assert sentences.RULES[number].rule == f"PACR-{name}"
    assert f" {name}=" in sentences.RULES[number].text
    assert numbers(s, number) == [value]


@pytest.mark.parametrize("bank", [0, 1])
def test_only_the_bank_in_use_is_looked_at(bank: int) -> None:
    s, _ = setup(Pack())
    change("THCON_SEC0_REG1_Downsample_rate", 1)(s)  # of bank 0
    mode = mode_of(view(s), 0)._replace(bank=bank)
    assert (zero_refused(view(s), mode) == 0) == bool(bank)
